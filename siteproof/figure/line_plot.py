"""Curves as SVG or PNG: plain data in, a figure out.

Lines differ by colour, marker and dash, so that a grey print shows them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite, log2
from typing import TYPE_CHECKING

from siteproof.figure import canvas
from siteproof.figure.canvas import COLOURS, DASHES, GRID, MARKERS, SOFT, UNITS
from siteproof.figure.labels import legend_columns, number
from siteproof.units import size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 7.2, 4.0  # inches of one plot in a file of its own
NEAR = 1.7  # times the highest value: a bound is drawn up to there
ROOM = 1.08  # above the highest of all
TICKS = 14  # that fit below a plot
DOTS = 110  # an inch, in PNG


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
class LinePlot:
    """Curves that share both axes. labels: of the places, where the axis has words.

    Numbers on it are in powers of two; sizes: they are bytes. bound: a curve that nothing can
    exceed; its name has the reason.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    labels: Sequence[str] = ()
    log_y: bool = False
    sizes: bool = False
    bound: Line | None = None


def svg(plots: Sequence[LinePlot]) -> str:
    """The plots below each other, as the text of one <svg> element."""
    wide, high = WIDTH * UNITS, HEIGHT * UNITS * len(plots)
    drawn = _save(plots, "svg")
    return canvas.plain_svg(drawn, wide, high, "; ".join(p.title for p in plots))


def png(plots: Sequence[LinePlot]) -> bytes:
    """The plots below each other, as one PNG."""
    return _save(plots, "png", dpi=DOTS, metadata={"Software": "siteproof"})


def draw(name: str, caption: str, plot: LinePlot) -> str:
    """One plot for a page, as siteproof.figure.canvas.svg; its title is the page's."""

    def fill(made: Figure) -> Sequence[canvas.Hover]:
        made.set_layout_engine("constrained")
        place = made.add_subplot()
        _draw(place, replace(plot, title=""))
        made.draw_without_rendering()  # only then it is known where the axes lie
        return list(_hovers(made, place, plot))

    names = [_label(line) for line in plot.lines]
    rows = -(-(len(names) + bool(plot.bound)) // legend_columns(names))
    return canvas.svg(name, plot.title, caption, 250 + 12 * rows, fill)


def _hovers(made: Figure, place: Axes, plot: LinePlot) -> Iterator[canvas.Hover]:
    """The values of every curve at each place of the axis."""
    xs = sorted({x for line in plot.lines for x in line.xs})
    if not xs:
        return
    box = place.get_position()
    points = place.transData.transform([(x, 1.0) for x in xs])
    shares = [float(x) for x, _ in made.transFigure.inverted().transform(points)]
    edges = [box.x0, *((a + b) / 2 for a, b in pairwise(shares)), box.x1]
    for x, (left, right) in zip(xs, pairwise(edges), strict=True):
        texts = [text for line in plot.lines for text in _values_at(line, x)]
        if texts:
            head = f"{plot.x_label} {_x_text(plot, x)}, {plot.y_label}"
            part = (left, box.y0, right - left, box.height)
            yield canvas.Hover(part, f"{head}: {'; '.join(texts)}")


def _values_at(line: Line, x: float) -> Iterator[str]:
    """`write 885 (800 to 900)` for each of its values there."""
    for index, (at, value) in enumerate(zip(line.xs, line.values, strict=True)):
        if at == x and isfinite(value):
            ends = ""
            if line.lows and line.highs and line.lows[index] < line.highs[index]:
                ends = f" ({number(line.lows[index])} to {number(line.highs[index])})"
            yield f"{line.name} {number(value)}{ends}"


def _x_text(plot: LinePlot, x: float) -> str:
    if plot.labels:
        return plot.labels[int(x)]
    return size(int(x)) if plot.sizes else _plain(x)


def _label(line: Line) -> str:
    """Its name in the legend, which also explains the ring, so that no text hides a point."""
    return f"{line.name}; ring: {line.mark[1]}" if line.mark else line.name


def _save(plots: Sequence[LinePlot], kind: str, **options: object) -> bytes:
    def fill(made: Figure) -> None:
        made.set_layout_engine("constrained")
        places = made.subplots(len(plots), 1, squeeze=False)[:, 0]
        for place, plot in zip(places, plots, strict=True):
            _draw(place, plot)

    return canvas.save(
        fill, kind, WIDTH * UNITS, HEIGHT * UNITS * len(plots), "siteproof", **options
    )


def _draw(place: Axes, plot: LinePlot) -> None:
    place.set_title(plot.title)
    place.set_xlabel(plot.x_label)
    place.set_ylabel(plot.y_label)
    for index, line in enumerate(plot.lines):
        _line(place, line, index)
    top = max((v for line in plot.lines for v in (*line.values, *line.highs)), default=1.0)
    if plot.bound:
        _bound(place, plot.bound, top)
        if min(plot.bound.values) <= NEAR * top:
            top = max(top, min(NEAR * top, max(plot.bound.values)))
    xs = sorted({x for line in plot.lines for x in line.xs})
    _axes(place, plot, xs, top)
    for index, line in enumerate(plot.lines):
        if line.mark:
            _ring(place, line, line.mark[0], COLOURS[index % len(COLOURS)])
    _legend(place, plot)


def _legend(place: Axes, plot: LinePlot) -> None:
    """None for a single curve without a ring."""
    if len(plot.lines) > 1 or plot.bound or any(line.mark for line in plot.lines):
        place.legend(
            loc="upper left",
            bbox_to_anchor=(-0.02, -0.14),
            frameon=False,
            fontsize=8,
            ncols=legend_columns([_label(line) for line in plot.lines]),
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
        label=_label(line),
        capsize=2.5,
        elinewidth=0.9,
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        markersize=4.5,
        linestyle=DASHES[index % len(DASHES)],
        linewidth=1.4,
    )


def _bound(place: Axes, bound: Line, top: float) -> None:
    """What cannot be exceeded, as far as it leaves the curves their height."""
    above = ""
    if min(bound.values) > NEAR * top:
        above = "\n(above the figure)"
    elif max(bound.values) > NEAR * top:
        above = "\n(in part above the figure)"
    place.plot(
        bound.xs, bound.values, color=SOFT, linewidth=1.2, linestyle=":", label=bound.name + above
    )


def _axes(place: Axes, plot: LinePlot, xs: Sequence[float], top: float) -> None:
    if plot.labels:
        place.set_xticks(range(len(plot.labels)), plot.labels)
    elif xs and xs[0] > 0:
        place.set_xscale("log", base=2)
        shown = _thinned(xs)
        place.set_xticks(shown, [_size(x) if plot.sizes else _plain(x) for x in shown])
        place.minorticks_off()
    if plot.log_y:
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


def _ring(place: Axes, line: Line, x: float, colour: str) -> None:
    """A ring around one place of a curve."""
    place.plot(
        [x],
        [line.values[list(line.xs).index(x)]],
        marker="o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=colour,
        markeredgewidth=1.3,
        linestyle="none",
    )
