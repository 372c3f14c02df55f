"""Curves of a sweep: plain data in, a figure out.

Lines differ by colour, marker and dash, so that a grey print shows them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from siteproof.report.figure import style
from siteproof.report.figure.style import SOFT
from siteproof.units import size

HEIGHT = 230.0
NEAR = 1.7  # times the highest value: a bound is drawn up to there
ROOM = 1.08  # above the highest of all
TICKS = 13  # of a logarithmic axis
OCTAVES = 4.0  # times the first place, from which last place on the axis is logarithmic

Numbers = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One curve. lows, highs: a range around it. mark: a place, and what to call it.

    quiet: drawn in grey, only to compare with.
    """

    name: str
    xs: Numbers
    values: Numbers
    lows: Numbers = ()
    highs: Numbers = ()
    mark: tuple[float, str] | None = None
    quiet: bool = False


@dataclass(frozen=True)
class LinePlot:
    """Curves that share both axes. labels: of the places, where the axis has words.

    Numbers on it are in powers of two; sizes: they are bytes; from_one: they begin at 1, whatever
    the curves have. bound: a curve that nothing can exceed; its name has the reason.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    labels: Sequence[str] = ()
    log_y: bool = False
    sizes: bool = False
    bound: Line | None = None
    from_one: bool = False


def draw(plot: LinePlot) -> str:
    """One plot for a page, which has its title."""
    return style.svg(plot.title, HEIGHT, lambda made: _draw(made, replace(plot, title="")))


def file(plots: Sequence[LinePlot], kind: str) -> bytes:
    """The plots below each other, each with its title, as a file. kind: svg or png."""

    def fill(made: style.Figure) -> None:
        for part, plot in zip(
            made.subfigures(len(plots), 1, squeeze=False)[:, 0], plots, strict=True
        ):
            _draw(part, plot)

    return style.save(kind, "; ".join(plot.title for plot in plots), HEIGHT * len(plots), fill)


def _draw(part: style.Figure | style.SubFigure, plot: LinePlot) -> None:
    place = part.add_subplot(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    for line in plot.lines:
        _line(place, line)
    top = max((v for line in plot.lines for v in (*line.values, *line.highs)), default=1.0)
    if plot.bound:  # as far as it leaves the curves their height
        xs, limits = plot.bound.xs, plot.bound.values
        name = plot.bound.name + (" (above the figure)" if min(limits) > NEAR * top else "")
        place.plot(xs, limits, color=SOFT, marker="", linestyle=":", label=name)
        top = max([top, *(min(limit, NEAR * top) for limit in limits if min(limits) <= NEAR * top)])
    _axes(place, plot, top)


def _line(place: style.Axes, line: Line) -> None:
    """A ring is around the mark; the legend explains it, so that no text hides a point."""
    values, errors = np.array(line.values), None
    if line.lows and line.highs:
        errors = np.array([values - line.lows, line.highs - values])
    label = f"{line.name}; ring: {line.mark[1]}" if line.mark else line.name
    drawn, *_ = place.errorbar(line.xs, values, errors, label=label, capsize=2.5, elinewidth=0.9)
    if line.mark:
        at = list(line.xs).index(line.mark[0])
        place.plot(line.xs[at], values[at], "o", ms=11, mfc="none", color=drawn.get_color())


def _axes(place: style.Axes, plot: LinePlot, top: float) -> None:
    xs = [1.0] * plot.from_one + [x for line in plot.lines for x in line.xs]
    if plot.from_one:
        place.plot([1.0], [0.0], marker="", linestyle="")
    if plot.labels:
        place.set_xticks(range(len(plot.labels)), plot.labels)
    else:
        if min(xs, default=0.0) > 0 and (plot.sizes or max(xs) >= OCTAVES * min(xs)):
            place.set_xscale("log", base=2)
            place.locator_params(axis="x", numticks=TICKS)
            place.minorticks_off()
        place.xaxis.set_major_formatter(lambda x, _: _size(x) if plot.sizes else _plain(x))
    if plot.log_y:
        place.set_yscale("log")
        place.yaxis.set_major_formatter(lambda value, _: _plain(value))
    else:
        place.set_ylim(0, ROOM * top if top > 0 else 1)
    place.grid(visible=True)


def _plain(value: float) -> str:
    """Without an exponent."""
    return f"{value:.0f}" if value >= 1000 else f"{value:g}"


def _size(value: float) -> str:
    """Short, as ticks lie side by side: 4 KiB as 4Ki."""
    return size(int(value)).removesuffix("B").replace(" ", "")
