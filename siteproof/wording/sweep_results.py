"""The result of a sweep in sentences: the lines below its table, and above its figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from siteproof.analysis.before_after import Effect
from siteproof.analysis.plateau import At, CurveShape, Decline, Loss, Packing, Place, Unknown
from siteproof.curves import run_findings
from siteproof.curves.measured import TASKS, Curve
from siteproof.curves.run_findings import FAILURES, Axis, FirstFailure, Setting, SweepReport
from siteproof.curves.sweep_runs import point_of
from siteproof.record.finding import Finding, Kind
from siteproof.record.manifest import OWN
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Sample
from siteproof.sweeps import caps
from siteproof.sweeps.reading import camel_case
from siteproof.units import count, with_unit
from siteproof.wording.findings import (
    WHYS,
    at,
    bound_name,
    change,
    full,
    number,
    per_cent,
    sentence,
)

MAX_POINTS = 8  # of each kind that are named; --json names all
HALF = 0.5  # of the efficiency on the fewest nodes
OF_RUN = (Kind.CACHED, Kind.PATH_HOLDS)  # findings with a line of their own after all curves


def headlines(report: SweepReport) -> list[str]:
    """The sentences of a run, metric by metric."""
    groups = [group for group in report.groups if group[0].metric != FAILURES]
    return [
        *(text for group in groups for text in of_group(report, group)),
        *(of_failing(report.axis, one) for one in report.failing),
        *(f"{name}: {of_packing(packing)}" for name, packing in report.packings.items()),
        *map(of_setting, report.settings),
        *_of_run(run_findings.of_curves(report)),
    ]


def _of_run(found: Iterable[Finding]) -> list[str]:
    lines = []
    for alike in grouped((one.kind, one) for one in found if one.kind in OF_RUN).values():
        metrics = ", ".join(one.metric for one in alike if one.metric)
        lines.append(": ".join(filter(None, (metrics, sentence(*alike)))))
    return lines


def of_group(report: SweepReport, lines: Sequence[Curve]) -> Iterator[str]:
    """Each curve's sentence; with a best of all, only of those that span a doubling."""
    whole = run_findings.best_of_all(lines)
    for curve in lines:
        if run_findings.is_shown(curve, whole):
            yield f"{curve.name}: {'; '.join(of_curve(report.axis, curve))}"
        if whole in (None, curve):
            yield from _bound(report, curve)
        yield from _efficiency(report, curve)
    for one in run_findings.ranks(report, lines):
        yield full(one)


def _efficiency(report: SweepReport, curve: Curve) -> Iterator[str]:
    """That on the most nodes, and from where on it is below a half."""
    found = report.efficiency_of(curve)
    if found:
        first, last = min(found), max(found)
        text = f"efficiency {per_cent(found[last])} on {count(last, 'node')}"
        text += f" against {count(first, 'node')}"
        if below := [nodes for nodes, share in found.items() if share < HALF]:
            text += f", below 50 % from {count(below[0], 'node')} on"
        yield f"{curve.name}: {text}"


def _bound(report: SweepReport, curve: Curve) -> Iterator[str]:
    """How much of its tightest bound a curve reaches at its best, and where it exceeds one."""
    limits = report.bounds_of(curve, curve.best)
    if limits:
        tight = limits[0]
        limit = with_unit(number(tight.limit), curve.unit)
        yield (
            f"{curve.name}: {per_cent(tight.share)} of the model's bound, "
            f"{bound_name(tight.bound.part, tight.bound.count)} ({limit})"
        )
    yield from map(full, run_findings.above_bound(report, curve))


def of_bound(share: float) -> str:
    """A share of a bound in a table; above 100 % either of the two is wrong."""
    return per_cent(share) + (" (above it)" if share > 1 else "")


def of_curve(axis: Axis, curve: Curve) -> list[str]:
    """The peak, and what the curve does before and after it."""
    parts = [_best(axis, curve)]
    if curve.shape:
        parts += of_shape(axis, curve.shape, curve.rows[0].point.x)
    return parts


def _best(axis: Axis, curve: Curve) -> str:
    best, first = curve.best, curve.rows[0]
    name = {"lower": "lowest", "higher": "highest"}.get(curve.better, "largest")
    value = with_unit(number(best.point.median), curve.unit)
    text = f"{name} {value} at {at(axis.name, best.label)}"
    if len(best.point.values) > 1:
        text += f" (median of {len(best.point.values)})"
    if axis.name == TASKS and curve.better == "higher" and best.tasks > 1:
        text += f", {number(best.per_task)} a task"
        if first.tasks == 1:
            text += f" against {number(first.point.median)} of one"
    return text


def of_shape(axis: Axis, shape: CurveShape, first: float) -> list[str]:
    """Plateau, fit and decline, each with what makes it doubtful. first: place of the curve."""
    doubts = {one.kind: sentence(one) for one in run_findings.of_shape(axis.name, shape)}
    parts = []
    if isinstance(shape.plateau, At):
        is_first = shape.plateau.x == first > 1
        more = "or before: it is the first point" if is_first else "the first within 5 % of it"
        parts.append(f"plateau from {at(axis.name, shape.plateau.x)} on, {more}")
    shown = (Kind.PLATEAU_BEYOND, Kind.PLATEAU_UNKNOWN)
    parts += [doubts[kind] for kind in shown if kind in doubts]
    if shape.fit and (shape.doubtful or Kind.PLATEAU_BEYOND not in doubts):
        parts.append(f"a rising and a flat line meet at {at(axis.name, shape.fit)}")
    if isinstance(shape.decline, At):
        parts.append(f"falls from {at(axis.name, shape.decline.x)} on")
    shown = (Kind.DECLINE_UNKNOWN, Kind.PLATEAU_ROUGH)
    return parts + [doubts[kind] for kind in shown if kind in doubts]


def place(found: Place | Decline) -> str:
    """A place of a curve for programs: 32, >166, none, or why it is undecided."""
    return f"undecided: {WHYS[found.why]}" if isinstance(found, Unknown) else f"{found}"


def of_packing(packing: Packing) -> str:
    """How many tasks a node carries, and what was compared."""
    lose = "task a node loses" if packing.most == 1 else "tasks a node lose"
    each = ", ".join(map(_loss, packing.losses))
    return f"{packing.most} {lose} at most 5 % against one, with {packing.compared_at}: {each}"


def _loss(loss: Loss) -> str:
    text = f"{loss.tasks_per_node} a node {change(-loss.typical)}"
    if loss.places > 1:
        text += f" (worst {change(-loss.worst)}, with {loss.worst_at} tasks)"
    return text


def of_failing(axis: Axis, one: FirstFailure) -> str:
    """From where on servers of a cloud fail, and the first cause."""
    name = f"{FAILURES} [{axis.lines} {one.line}]" if one.line else FAILURES
    if one.at is None:
        return f"{name}: no server failed, up to {at(axis.name, one.last)}"
    of = f" of {one.requested}" if one.requested else ""
    text = (
        f"{name}: servers fail from {at(axis.name, one.at)} on, there {one.failed}{of}; "
        f"the first cause is {one.cause}"
    )
    if one.without:
        text += f"; none failed at {axis.name} {', '.join(one.without)}"
    return text


def of_setting(setting: Setting) -> str:
    """The best setting of some knobs, and whether it is better than the machine's own values."""
    where = ", ".join(f"{key} {value}" for key, value in setting.place)
    knobs = ", ".join(f"{key} {value}" for key, value in setting.knobs if value != OWN)
    value = with_unit(number(setting.value), setting.unit)
    text = (
        f"{setting.metric} [{where}]: best of {setting.settings} settings "
        f"{knobs or 'as the machine has them'}: {value}"
    )
    if setting.change is None:
        return text
    if setting.change.change is not None:
        text += f", {change(setting.change.change)}"
    if setting.change.effect is Effect.BETTER:
        return f"{text}, {setting.change.text} than as the machine has them"
    return f"{text}, which is no clear gain over the machine's own values"


def progress(report: SweepReport) -> Iterator[str]:
    """How many points have a value, which have none, and how to go on."""
    run, found = report.run, report.progress
    reasons = {one.kind: sentence(one) for one in run_findings.of_points(report)}
    if found.planned is None:
        yield f"{run}: {found.done} points; {reasons[Kind.SWEEP_FILE_CHANGED]}"
    else:
        yield f"{run}: {found.done} of {found.planned} points"
    lists = {
        "failed": list(map(failure, found.failed)),
        "not measured": list(map(failure, found.untried)),
        "missing": list(map(str, found.missing)),
    }
    for title, points in lists.items():
        yield from (f"{title}: {point}" for point in points[:MAX_POINTS])
        if len(points) > MAX_POINTS:
            yield f"and {len(points) - MAX_POINTS} more {title}, see --json"
    if found.missing or found.untried:
        yield f"next: {_command(report)}"
    if found.too_large:
        yield f"left out: {reasons[Kind.POINTS_TOO_LARGE]}"
    if Kind.SWEEP_CAPPED in reasons:
        yield reasons[Kind.SWEEP_CAPPED]


def failure(sample: Sample) -> str:
    """A point without a value."""
    return f"{point_of(sample)}: {sample.status}: {sample.why}"


def _command(report: SweepReport) -> str:
    """The command that resumes a run."""
    run = report.run
    test, mode = camel_case(run.name), run.newest.header.mode
    if run.is_scaling:
        application = run.newest.conditions.get("application", "")
        return f"reframe -c checks/ -n 'Scaling%application={application}' -r --mode {mode}"
    if run.place:  # only there, and not on every file system or link
        test = f"'^{test}%.*={re.escape(run.place)}$'"
    command = f"reframe -c sweeps/ -n {test} -r -S resume={run.sessions[-1]}"
    command += "".join(f" -S {one}" for one in caps.as_options(run.caps))
    return f"{command} --mode {mode}" if mode else command
