"""The figures of a sweep, from the reports on its runs, as data for siteproof.report.figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from siteproof.analysis.plateau import At, Beyond
from siteproof.curves.measured import ALL, Curve, Row, ordered
from siteproof.curves.run_findings import Reached, SweepReport
from siteproof.record.grouped import grouped
from siteproof.report.figure.line_plot import Line, LinePlot
from siteproof.units import with_unit
from siteproof.wording.amounts import at, number
from siteproof.wording.findings import bound_name

MAX_FIGURES = 12  # in one file
LOG_SPAN = 30.0  # highest over lowest value, from which on a time has a logarithmic axis

Named = Sequence[tuple[str, SweepReport]]  # each with the unique name of its run


@dataclass(frozen=True)
class ShownRun:
    """What a figure shows of one run. lines: the curves of one metric, with the best of all."""

    run: str
    report: SweepReport
    lines: Sequence[Curve]

    @property
    def curves(self) -> list[Curve]:
        """The curves that are drawn."""
        return [curve for curve in self.lines if curve.line != ALL]


def by_figure(reports: Named) -> list[list[ShownRun]]:
    """The curves of all runs, by what shares a figure: axis, metric and panel."""
    found = grouped(
        ((report.axis.name, lines[0].metric, lines[0].panel), ShownRun(name, report, lines))
        for name, report in reports
        for lines in report.groups
    )
    return list(found.values())


def plots(reports: Named) -> list[LinePlot]:
    """A figure for each axis, metric and panel, with the curves of all runs."""
    several = len({name for name, _ in reports}) > 1
    return [plot(shown, several) for shown in by_figure(reports)[:MAX_FIGURES]]


def plot(shown: Sequence[ShownRun], several: bool) -> LinePlot:
    """One figure. several: it has several runs, which differ by their names."""
    first, axis = shown[0].lines[0], shown[0].report.axis
    labels = _labels(shown)
    medians = [row.point.median for one in shown for curve in one.curves for row in curve.rows]
    what = ", ".join(filter(None, (first.metric, first.panel_name)))
    title = f"{what} against {axis.name}"
    bound = None
    if not several:
        title += f", {shown[0].report.run.system}"
        bound = _bound(shown[0])
    return LinePlot(
        title,
        axis.name,
        f"{first.metric}, {first.unit}",
        [_line(one, curve, several, labels) for one in shown for curve in one.curves],
        labels,
        sizes=axis.kind == "size",
        log_y=first.better == "lower" and 0 < LOG_SPAN * min(medians) < max(medians),
        bound=bound,
    )


def _labels(shown: Sequence[ShownRun]) -> list[str]:
    """The places of an axis of words; empty for an axis of numbers."""
    curves = [curve for one in shown for curve in one.curves]
    if shown[0].report.axis.kind != "word" and all(curve.numeric for curve in curves):
        return []
    return ordered({row.label for curve in curves for row in curve.rows})


def curve_name(shown: ShownRun, curve: Curve, several: bool) -> str:
    """The name of a curve in the legend and in tables."""
    parts = (shown.run if several else "", curve.line_name)
    return ", ".join(filter(None, parts)) or curve.metric


def _line(shown: ShownRun, curve: Curve, several: bool, labels: Sequence[str]) -> Line:
    points = [row.point for row in curve.rows]
    spread = any(len(point.values) > 1 for point in points)
    return Line(
        curve_name(shown, curve, several),
        [float(labels.index(row.label)) if labels else row.point.x for row in curve.rows],
        [point.median for point in points],
        [point.low for point in points if spread],
        [point.high for point in points if spread],
        None if labels else _mark(shown, curve),
    )


def _mark(shown: ShownRun, curve: Curve) -> tuple[float, str] | None:
    """The plateau: that of the best of all lines where there are several, else the curve's own."""
    best = next((line for line in shown.lines if line.line == ALL), curve)
    plateau = best.shape.plateau if best.shape else None
    if not isinstance(plateau, At | Beyond):
        return None
    x, sign = (plateau.x, "") if isinstance(plateau, At) else (plateau.last, ">")
    row = next(row for row in best.rows if row.point.x == x)
    return (x, f"plateau {sign}{at(shown.report.axis.name, x)}") if row in curve.rows else None


def _bound(shown: ShownRun) -> Line | None:
    """The tightest bound at each place of the axis; of several lines that of the best."""
    rows = [(row, curve) for curve in shown.lines if curve.numeric for row in curve.rows]
    limits: dict[float, Reached] = {}
    for _, of_place in groupby(sorted(rows, key=_place), key=_place):
        row, curve = max(of_place, key=lambda one: one[0].point.median)
        for tightest in shown.report.bounds_of(curve, row)[:1]:
            limits[row.point.x] = tightest
    if not limits:
        return None
    last = list(limits.values())[-1]
    limit = with_unit(number(last.limit), shown.lines[0].unit)
    ends = bound_name(last.bound.part, last.bound.count)
    exceeded = any(reached.share > 1 for reached in limits.values())
    name = f"{'exceeded ' if exceeded else ''}bound: at the end {ends}, {limit}"
    return Line(name, list(limits), [float(reached.limit) for reached in limits.values()])


def _place(one: tuple[Row, Curve]) -> float:
    return one[0].point.x
