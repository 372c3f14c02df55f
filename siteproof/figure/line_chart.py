"""Curves as SVG or PNG: plain data in, a picture out.

Lines differ by colour, marker and dash, so that a picture may be printed grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import TYPE_CHECKING, Any

from siteproof.figure import canvas
from siteproof.figure.canvas import COLOURS, DASHES, GRID, MARKERS, SOFT, UNITS
from siteproof.units import size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 7.2, 4.0  # inches of one picture in a file of its own
NEAR = 1.7  # times the highest value: so much of a bound is drawn, and what is higher told
ROOM = 1.08  # above the highest of all
TICKS = 14  # that fit below a picture
DOTS = 110  # an inch, in PNG
LANDMARKS = ("*", "D", "P", "X", "^")
LATE = 200.0  # tasks: right of it a word has no room on its right


@dataclass(frozen=True)
class Line:
    """One curve. lows, highs: the range of the repetitions. mark: a place, and what to call it."""

    name: str
    xs: Sequence[float]
    values: Sequence[float]
    lows: Sequence[float] = ()
    highs: Sequence[float] = ()
    mark: tuple[float, str] | None = None


@dataclass(frozen=True)
class Landmark:
    """What others say of a curve that they do not print. name: all of it, for the legend.

    highest: place, value, and whether the place is only known to be beyond it. plateaus: places
    where the curve is said to become flat, each with the same.
    """

    name: str
    highest: tuple[float, float, bool] | None = None
    plateaus: Sequence[tuple[float, bool]] = ()


@dataclass(frozen=True)
class Picture:
    """Curves that share both axes. labels: of the places, where the axis has words.

    Numbers on it are in powers of two; sizes: they are bytes. bound: a curve that nothing can
    exceed, told in its name. landmarks: on an axis of numbers only.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    labels: Sequence[str] = ()
    log_y: bool = False
    sizes: bool = False
    bound: Line | None = None
    landmarks: Sequence[Landmark] = ()


def svg(pictures: Sequence[Picture]) -> str:
    """The pictures below each other, as the text of one <svg> element."""
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    wide, high = WIDTH * UNITS, HEIGHT * UNITS * len(pictures)
    drawn = _save(pictures, "svg", metadata=nothing)
    return canvas.plain_svg(drawn, wide, high, "; ".join(p.title for p in pictures))


def png(pictures: Sequence[Picture]) -> bytes:
    """The pictures below each other, as one PNG."""
    return _save(pictures, "png", dpi=DOTS, metadata={"Software": "siteproof"})


def draw(name: str, says: str, picture: Picture) -> str:
    """One picture for a page, as siteproof.figure.canvas.svg; its title is the page's."""

    def fill(made: Figure) -> Sequence[canvas.Placed]:
        made.set_layout_engine("constrained")
        lines = [_ringed(line) for line in picture.lines]
        _draw(made.add_subplot(), replace(picture, title="", lines=lines))
        return ()

    entries = len(picture.lines) + bool(picture.bound)
    told = sum(1 + m.name.count("\n") for m in picture.landmarks)
    below = 12 * (entries + told if told else entries // 2)
    return canvas.svg(name, picture.title, says, 250 + below, fill)


def _ringed(line: Line) -> Line:
    """On a page the legend says what a ring means, where it hides no point."""
    if line.mark is None:
        return line
    return replace(line, name=f"{line.name}; ring: {line.mark[1]}", mark=(line.mark[0], ""))


def _save(pictures: Sequence[Picture], kind: str, **options: object) -> bytes:
    def fill(made: Figure) -> None:
        made.set_layout_engine("constrained")
        for place, picture in zip(_places(made, len(pictures)), pictures, strict=True):
            _draw(place, picture)

    return canvas.save(
        fill, kind, WIDTH * UNITS, HEIGHT * UNITS * len(pictures), "siteproof", **options
    )


def _places(made: Figure, count: int) -> list[Axes]:
    return list(made.subplots(count, 1, squeeze=False)[:, 0]) if count else []


def _draw(place: Axes, picture: Picture) -> None:
    place.set_title(picture.title)
    place.set_xlabel(picture.x_label)
    place.set_ylabel(picture.y_label)
    for index, line in enumerate(picture.lines):
        _line(place, line, index)
    for index, landmark in enumerate(picture.landmarks):
        _landmark(place, landmark, index)
    tops = [v for line in picture.lines for v in (*line.values, *line.highs)]
    top = max([*tops, *(m.highest[1] for m in picture.landmarks if m.highest)], default=1.0)
    if picture.bound:
        _bound(place, picture.bound, top)
        if min(picture.bound.values) <= NEAR * top:
            top = max(top, min(NEAR * top, max(picture.bound.values)))
    _axes(place, picture, top)
    for index, line in enumerate(picture.lines):
        _mark(place, line, COLOURS[index % len(COLOURS)], xs_of(picture)[-1])
    _legend(place, picture)


def _legend(place: Axes, picture: Picture) -> None:
    """The curves, then what others say of theirs; none for a single curve."""
    ringed = any(line.mark and not line.mark[1] for line in picture.lines)
    if not (len(picture.lines) > 1 or picture.bound or picture.landmarks or ringed):
        return
    handles, names = place.get_legend_handles_labels()
    told = {m.name for m in picture.landmarks}
    order = sorted(range(len(names)), key=lambda n: names[n] in told)
    place.legend(
        [handles[n] for n in order],
        [names[n] for n in order],
        loc="upper left",
        bbox_to_anchor=(-0.02, -0.14),
        frameon=False,
        fontsize=8,
        ncols=1 if told else 2,
    )


def _line(place: Axes, line: Line, index: int) -> None:
    errors = None
    if line.lows and line.highs:
        errors = [
            [v - low for v, low in zip(line.values, line.lows, strict=True)],
            [high - v for v, high in zip(line.values, line.highs, strict=True)],
        ]
    place.errorbar(
        line.xs,
        line.values,
        yerr=errors,
        label=line.name,
        capsize=2.5,
        elinewidth=0.9,
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        markersize=4.5,
        linestyle=DASHES[index % len(DASHES)],
        linewidth=1.4,
    )


def _bound(place: Axes, bound: Line, top: float) -> None:
    """What cannot be exceeded, as far as it does not press the curves down."""
    above = (
        ""
        if max(bound.values) <= NEAR * top
        else "\n(above the picture)"
        if (min(bound.values) > NEAR * top)
        else "\n(in part above the picture)"
    )
    place.plot(
        bound.xs, bound.values, color=SOFT, linewidth=1.2, linestyle=":", label=bound.name + above
    )


def _landmark(place: Axes, landmark: Landmark, index: int) -> None:
    """A hollow mark where the highest value is, and a caret on the axis for each plateau."""
    style: dict[str, Any] = {"color": "#000000", "markerfacecolor": "none", "linestyle": "none"}
    mark = LANDMARKS[index % len(LANDMARKS)]
    label: str | None = landmark.name
    if landmark.highest:
        x, value, beyond = landmark.highest
        place.plot([x], [value], marker=mark, markersize=9, label=label, **style)
        label = None
        if beyond:
            place.annotate("→", (x, value), (6, 0), textcoords="offset points", va="center")
    up = place.get_xaxis_transform()
    for x, beyond in landmark.plateaus:
        place.plot(
            [x],
            [0.03 + 0.06 * index],
            marker=mark,
            markersize=6,
            transform=up,
            label=label,
            **style,
        )
        place.plot(
            [x, x],
            [0, 0.03 + 0.06 * index],
            transform=up,
            color="#000000",
            linewidth=0.8,
            linestyle=":",
        )
        if label or landmark.highest and x == landmark.plateaus[0][0]:
            late = x > LATE
            place.annotate(
                "plateau →" if beyond else "plateau",
                (x, 0.03 + 0.06 * index),
                (-6 if late else 6, 0),
                xycoords=up,
                textcoords="offset points",
                va="center",
                ha="right" if late else "left",
                fontsize=7,
            )
        label = None


def xs_of(picture: Picture) -> list[float]:
    """All places of a picture, in order."""
    told = {m.highest[0] for m in picture.landmarks if m.highest}
    told |= {x for m in picture.landmarks for x, _ in m.plateaus}
    return sorted(told | {x for line in picture.lines for x in line.xs})


def _axes(place: Axes, picture: Picture, top: float) -> None:
    xs = xs_of(picture)
    if picture.labels:
        place.set_xticks(range(len(picture.labels)), picture.labels)
    elif xs and xs[0] > 0:
        place.set_xscale("log", base=2)
        if not picture.lines:
            place.set_xlim(1, 1.25 * xs[-1])
            xs = [float(2**n) for n in range(64) if 2**n < xs[-1]] + xs[-1:]
        shown = _thinned(xs)
        place.set_xticks(shown, [_size(x) if picture.sizes else _plain(x) for x in shown])
        place.minorticks_off()
    if picture.log_y:
        place.set_yscale("log")
        place.yaxis.set_major_formatter(lambda value, _: _plain(value))
    else:
        place.set_ylim(0, ROOM * top if top > 0 else 1)
    place.grid(visible=True, color=GRID, linewidth=0.6)


def _plain(value: float) -> str:
    """Without an exponent."""
    return f"{value:.0f}" if value >= 1000 else f"{value:g}"


def _size(value: float) -> str:
    """Short, as ticks lie side by side: 4 KiB as 4Ki."""
    return size(int(value)).removesuffix("B").replace(" ", "")


def _thinned(xs: Sequence[float]) -> list[float]:
    """Ticks that do not lie on each other: the last one, powers of two, then what has room."""
    room = max((xs[-1] / xs[0]) ** (1 / TICKS), 1.15)
    kept = [xs[-1]]
    for x in sorted(xs[:-1], key=lambda x: (not log2(x).is_integer(), x)):
        if all(max(x / other, other / x) >= room for other in kept):
            kept.append(x)
    return sorted(kept)


def _mark(place: Axes, line: Line, colour: str, last: float) -> None:
    """A ring where the curve becomes flat, with its name on the side that has room."""
    if line.mark is None:
        return
    x, text = line.mark
    value, side = line.values[list(line.xs).index(x)], -1 if 2 * x > last else 1
    place.plot(
        [x],
        [value],
        marker="o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=colour,
        markeredgewidth=1.3,
        linestyle="none",
    )
    if not text:
        return
    place.annotate(
        text,
        (x, value),
        xytext=(side * 10, -14),
        textcoords="offset points",
        va="top",
        ha="left" if side > 0 else "right",
        color=colour,
        fontsize=8,
        bbox={"color": "white", "alpha": 0.8, "pad": 1},
    )
