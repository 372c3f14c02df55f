"""Ways of doing the same: all trials with range and median; or two links, bar beside bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from siteproof.figure import canvas
from siteproof.figure.canvas import COLOURS, GRID, SMALL, SOFT, WIDTH
from siteproof.figure.distribution import STYLES, Mark
from siteproof.figure.labels import nice_ticks, numbers, short, wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, FOOT, TOP, ROW, PAIR = WIDTH - 20, 34.0, 30.0, 26.0, 34.0
LONGEST = 30
ROOM = 1.5  # beside the longest bar, for its figure
BARS = 0.36  # of a row's height


@dataclass(frozen=True)
class Trials:
    """One way. values: every trial."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class Ranges:
    """Ways that share an axis from zero on. marks: what all are compared with."""

    title: str
    unit: str
    rows: Sequence[Trials]
    marks: Sequence[Mark] = ()


@dataclass(frozen=True)
class Beside:
    """One quantity on two links. share: of the second in the first; texts: with unit."""

    name: str
    share: float
    first: str
    second: str


@dataclass(frozen=True)
class Pairs:
    """Quantities on two links, such as LAN and WAN, each as a share of the first link's."""

    title: str
    names: tuple[str, str]
    rows: Sequence[Beside]


def draw(name: str, says: str, data: Ranges) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg."""
    left = 10 + max((wide(short(row.name, LONGEST)) for row in data.rows), default=40.0)
    high = ROW * max(len(data.rows), 1)
    top = TOP + 11 * len(data.marks)
    height = FOOT + high + top
    end = max((v for row in data.rows for v in row.values), default=1.0)
    end = 1.04 * max(end, *(m.value for m in data.marks), 0.0) or 1.0

    def fill(made: Figure) -> Sequence[canvas.Placed]:
        place = made.add_axes((left / WIDTH, FOOT / height, (RIGHT - left) / WIDTH, high / height))
        place.set_xlim(min(0.0, *(v for row in data.rows for v in row.values), 0.0), end)
        for y, row in enumerate(data.rows):
            _trials(place, y, row)
        for lane, mark in enumerate(data.marks):
            _mark(place, mark, lane, high)
        _axes(place, [row.name for row in data.rows])
        ticks = nice_ticks(*place.get_xlim(), 6)
        place.set_xticks(ticks, numbers(ticks))
        place.set_xlabel(data.unit)
        made.text(
            left / WIDTH, 1 - 12 / height, "○ trial · | median · × mean · — range", fontsize=SMALL
        )
        return ()

    return canvas.svg(name, data.title, says, height, fill)


def _trials(place: Axes, y: int, row: Trials) -> None:
    if not row.values:
        _beside(place, 0, y, "not measured")
        return
    place.plot([min(row.values), max(row.values)], [y, y], color=SOFT, linewidth=1.2)
    place.plot(
        row.values,
        [y] * len(row.values),
        linestyle="none",
        marker="o",
        markersize=6,
        markerfacecolor="none",
        markeredgecolor=COLOURS[0],
        markeredgewidth=1,
    )
    place.plot(
        [mean(row.values)],
        [y],
        linestyle="none",
        marker="x",
        markersize=7,
        color=COLOURS[1],
        markeredgewidth=1.6,
    )
    place.plot(
        [median(row.values)],
        [y],
        linestyle="none",
        marker="|",
        markersize=18,
        color="#000000",
        markeredgewidth=2.2,
    )


def _beside(place: Axes, x: float, y: float, text: str) -> None:
    place.annotate(
        text,
        (x, y),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
    )


def _mark(place: Axes, mark: Mark, lane: int, high: float) -> None:
    line, width = STYLES[mark.kind]
    up = high + 2 + 11 * lane
    place.plot(
        [mark.value] * 2,
        [0, (up + 8) / high],
        transform=place.get_xaxis_transform(),
        clip_on=False,
        color="#000000",
        linewidth=0.8 * width,
        linestyle=line,
    )
    late = mark.value > sum(place.get_xlim()) / 2
    place.annotate(
        mark.text,
        (mark.value, 0),
        (-3 if late else 3, up),
        fontsize=SMALL,
        xycoords=place.get_xaxis_transform(),
        textcoords="offset points",
        ha="right" if late else "left",
        va="bottom",
        annotation_clip=False,
    )


def _axes(place: Axes, names: Sequence[str]) -> None:
    place.set_ylim(max(len(names), 1) - 0.5, -0.5)
    place.set_yticks(range(len(names)), [short(name, LONGEST) for name in names])
    place.tick_params(labelsize=SMALL)
    place.tick_params(axis="y", length=0)
    place.grid(visible=True, axis="x", color=GRID, linewidth=0.5)


def draw_pairs(name: str, says: str, data: Pairs) -> str:
    """The figure for a page, as siteproof.figure.canvas.svg."""
    left = 10 + max((wide(short(row.name, LONGEST)) for row in data.rows), default=40.0)
    high = PAIR * max(len(data.rows), 1)
    height = FOOT + high + TOP
    end = ROOM * max((1.0, *(row.share for row in data.rows)))

    def fill(made: Figure) -> Sequence[canvas.Placed]:
        place = made.add_axes((left / WIDTH, FOOT / height, (RIGHT - left) / WIDTH, high / height))
        ys = range(len(data.rows))
        bars: tuple[tuple[float, list[float], dict[str, Any], str], ...] = (
            (-BARS / 2 - 0.02, [1.0] * len(data.rows), {"color": COLOURS[0]}, data.names[0]),
            (
                BARS / 2 + 0.02,
                [row.share for row in data.rows],
                {"facecolor": "#ffffff", "edgecolor": COLOURS[1], "hatch": "////"},
                data.names[1],
            ),
        )
        for shift, values, style, label in bars:
            place.barh([y + shift for y in ys], values, height=BARS, label=label, **style)
        for y, row in enumerate(data.rows):
            _beside(place, 1.0, y - BARS / 2 - 0.02, row.first)
            _beside(place, row.share, y + BARS / 2 + 0.02, f"{row.second} ({row.share:.0%})")
        place.axvline(1.0, color="#000000", linewidth=0.8, linestyle=":", zorder=0)
        _axes(place, [row.name for row in data.rows])
        place.set_xlim(0, end)
        ticks = [t for t in nice_ticks(0, end, 6) if t <= end]
        place.set_xticks(ticks, [f"{t:.0%}" for t in ticks])
        place.set_xlabel(f"share of {data.names[0]}")
        place.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=2,
            frameon=False,
            fontsize=SMALL,
            borderaxespad=0.2,
        )
        return ()

    return canvas.svg(name, data.title, says, height, fill)
