"""One quantity over several links: all values, median and mean, as shares of the first link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

from siteproof.report.figure import style
from siteproof.report.figure.style import COLOURS, SOFT, short

FOOT, ROW = 50.0, 15.0  # units
ROOM = 1.5  # times the largest share: to the right of it is room for a text


@dataclass(frozen=True)
class Row:
    """One link. shares: every value as a share of the first link's median. text: its median."""

    name: str
    shares: Sequence[float]
    text: str


def draw(title: str, groups: Sequence[tuple[str, Sequence[Row]]]) -> str:
    """The figure for a page: each quantity with its links, the first with a median share of 1."""
    lines: list[tuple[str, Row | None]] = []  # a line of its own for each title
    for quantity, rows in groups:
        lines += [(quantity, None), *((row.name, row) for row in rows)]
    end = ROOM * max((share for _, row in lines if row for share in row.shares), default=1.0)

    def fill(made: style.Figure) -> None:
        place = made.add_subplot(xlim=(0, end), ylim=(max(1, len(lines)) - 0.5, -0.5))
        place.set_xlabel("share of the first link's median")
        for y, (name, row) in enumerate(lines):
            _row(place, y, row) if row else _text(place, 0, y, name)
        named = {y: short(name) for y, (name, row) in enumerate(lines) if row}
        place.set_yticks(list(named), list(named.values()))
        place.tick_params(axis="y", length=0)
        place.axvline(1.0, color="#000000", linewidth=0.8, linestyle=":", zorder=0)
        place.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        place.grid(visible=True, axis="x")

    return style.svg(title, FOOT + ROW * max(1, len(lines)), fill)


def _row(place: style.Axes, y: int, row: Row) -> None:
    low, high = min(row.shares), max(row.shares)
    place.hlines(y, low, high, color=SOFT, linewidth=1.2, label="range")
    for text, values, marker, colour in (
        ("value", row.shares, "o", COLOURS[0]),
        ("median", [median(row.shares)], "|", "#000000"),
        ("mean", [mean(row.shares)], "x", COLOURS[1]),
    ):
        place.plot(values, [y] * len(values), marker, color=colour, mfc="none", ms=6, label=text)
    _text(place, high, y, row.text)


def _text(place: style.Axes, x: float, y: float, text: str) -> None:
    place.annotate(text, (x, y), (5, 0), textcoords="offset points", va="center", fontsize=8.4)
