"""From the reports on a sweep to its pictures: plain data for siteproof.figure."""

from __future__ import annotations

from collections.abc import Sequence

from siteproof.analysis.plateau import At, Beyond
from siteproof.curves.measured import ALL, TASKS, Curve, Row, ordered
from siteproof.curves.run_findings import Axis, SweepReport
from siteproof.figure import Line, Picture
from siteproof.units import size
from siteproof.wording.sweep_results import at, number

MOST = 12  # pictures in one file
WIDE = 30.0  # highest over lowest value of what is better when lower: its axis is logarithmic

Named = Sequence[tuple[str, SweepReport]]


Together = Sequence[tuple[str, SweepReport, Sequence[Curve]]]  # run, its report, its curves


def together(reports: Named) -> list[Together]:
    """The curves of all runs, by what stands in one picture: figure, panel and axis.

    reports: each with a name that tells its run from the others.
    """
    held: dict[tuple[str, str, str], list[tuple[str, SweepReport, Sequence[Curve]]]] = {}
    for name, report in reports:
        for lines in report.groups:
            key = (report.axis.name, lines[0].metric, lines[0].panel)
            held.setdefault(key, []).append((name, report, lines))
    return list(held.values())


def pictures(reports: Named) -> list[Picture]:
    """A picture for each figure, panel and axis, with the curves of all runs."""
    return [
        picture(found, len({name for name, _ in reports}) > 1) for found in together(reports)[:MOST]
    ]


def picture(found: Together, several: bool) -> Picture:
    """One picture. several: the runs are told by their names."""
    axis, first = found[0][1].axis, found[0][2][0]
    curves = [
        (name if several else "", curve, lines)
        for name, _, lines in found
        for curve in lines
        if curve.line != ALL
    ]
    numeric = axis.kind != "word" and all(curve.numeric for _, curve, _ in curves)
    labels = [] if numeric else ordered({row.label for _, curve, _ in curves for row in curve.rows})
    told = ", ".join(filter(None, (first.metric, first.told_panel)))
    title = f"{told} against {axis.name}"
    if not several:
        title += f", {found[0][1].run.system}"
    values = [row.point.median for _, curve, _ in curves for row in curve.rows]
    return Picture(
        title,
        axis.name,
        f"{first.metric}, {first.unit}",
        [_line(axis, name, curve, lines, labels) for name, curve, lines in curves],
        labels,
        sizes=axis.kind == "size",
        log_y=first.better == "lower" and min(values) > 0 and max(values) > WIDE * min(values),
        bound=None if several else _bound(found[0][1], found[0][2]),
    )


def _line(
    axis: Axis, name: str, curve: Curve, lines: Sequence[Curve], labels: Sequence[str]
) -> Line:
    xs = [float(labels.index(row.label)) if labels else row.point.x for row in curve.rows]
    told = ", ".join(filter(None, (name, curve.told_line))) or curve.metric
    repeated = any(len(row.point.values) > 1 for row in curve.rows)
    return Line(
        told,
        xs,
        [row.point.median for row in curve.rows],
        [row.point.low for row in curve.rows] if repeated else (),
        [row.point.high for row in curve.rows] if repeated else (),
        None if labels else _mark(axis, curve, lines),
    )


def _mark(axis: Axis, curve: Curve, lines: Sequence[Curve]) -> tuple[float, str] | None:
    """The plateau of the best of all lines where there are several, else the curve's own."""
    best = next((c for c in lines if c.line == ALL), curve)
    place = best.finding.plateau if best.finding else None
    if isinstance(place, At):
        x, text = place.x, f"plateau {at(axis, place.x)}"
    elif isinstance(place, Beyond):
        x, text = place.last, f"plateau >{at(axis, place.last)}"
    else:
        return None
    row = next(row for row in best.rows if row.point.x == x)
    return (x, text) if row in curve.rows else None


def _bound(report: SweepReport, lines: Sequence[Curve]) -> Line | None:
    """The tightest bound at each place of the axis; of several lines that of the best."""
    rows: dict[float, tuple[Curve, Row]] = {}
    for curve in lines:
        for row in curve.rows if curve.numeric else ():
            held = rows.get(row.point.x)
            if held is None or row.point.median > held[1].point.median:
                rows[row.point.x] = curve, row
    known = [
        (x, limits[0])
        for x, (curve, row) in sorted(rows.items())
        if (limits := report.bounds_of(curve, row))
    ]
    if not known:
        return None
    last = known[-1][1]
    name = f"bound: at the end {last.what}, {number(last.limit)} {lines[0].unit}"
    return Line(name, [x for x, _ in known], [limit.limit for _, limit in known])


def place_label(axis: Axis, row: Row) -> str:
    """The place of a row as a table tells it."""
    if axis.kind == "size" and row.label.isdigit():
        return size(int(row.label))
    return (
        row.label
        if axis.name != TASKS or row.tasks_per_node == 1
        else (f"{row.label} ({row.tasks_per_node} a node)")
    )
