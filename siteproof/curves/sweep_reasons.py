"""Why a sweep has no value at a point, and what is doubtful in its curves: findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from siteproof.analysis.plateau import Beyond, CurveShape, Unknown
from siteproof.answers.attempts import failure
from siteproof.curves.measured import ALL, Curve
from siteproof.curves.run_findings import WINDOWS, SweepReport
from siteproof.curves.sweep_runs import Progress, SweepRun, point_of
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.sweeps.caps import in_words

STARVED = 0.5  # of the fastest rank's rate: a slower rank is a finding


def of_reports(reports: Iterable[SweepReport]) -> list[Finding]:
    """All findings on some runs, each with the run's system, session and place."""
    found: list[Finding] = []
    runs: set[int] = set()
    for report in reports:
        of_run = [] if id(report.run) in runs else of_points(report)  # a run has several axes
        runs.add(id(report.run))
        run = report.run
        where = finding.details(
            system=run.system, session=run.sessions[-1], place=run.place or None
        )
        for one in (*of_run, *of_curves(report)):
            found.append(replace(one, details=(*one.details, *where)))
    return list(dict.fromkeys(found))


def of_points(report: SweepReport) -> list[Finding]:
    """The points of a run without a value."""
    progress, run = report.progress, report.run
    bad = (*progress.failed, *progress.untried)
    found = [replace(failure(sample), subject=point_of(sample)) for sample in bad]
    found += [Finding(Kind.NOT_MEASURED, str(point), run.check) for point in progress.missing]
    if progress.planned is None:
        found.append(finding.of(Kind.SWEEP_FILE_CHANGED, {"sweep": run.name}))
    if progress.too_large:
        nodes = max(point.nodes for point in progress.too_large)
        counts = {"count": len(progress.too_large), "nodes": nodes, "partition": run.partition}
        found.append(finding.of(Kind.POINTS_TOO_LARGE, counts))
    if run.caps:
        found.append(capped(run, progress))
    return found


def capped(run: SweepRun, progress: Progress) -> Finding:
    """That -S kept points of the file from being measured, or lowered what they share."""
    above = len(progress.above_caps)
    every = (progress.planned or progress.done) + len(progress.too_large) + above
    details = {"sweep": run.name, "caps": in_words(run.caps), "count": above, "of": every}
    return finding.of(Kind.SWEEP_CAPPED, details)


def of_curves(report: SweepReport) -> Iterator[Finding]:
    """What is doubtful in the curves of a run."""
    for lines in report.groups:
        yield from _of_group(report, lines)
    shown = {lines[0].metric for lines in report.groups}
    cached = {s.metric for s in report.run.good if s.conditions.get("cached") == "yes"}
    for metric in sorted(cached & shown):
        yield Finding(Kind.CACHED, metric=metric)
    if report.path is not None and report.axis.name in WINDOWS:
        yield finding.of(Kind.PATH_HOLDS, {"bytes": int(report.path)})


def _of_group(report: SweepReport, lines: Sequence[Curve]) -> Iterator[Finding]:
    whole = best_of_all(lines)
    for curve in lines:
        if curve.shape and is_shown(curve, whole):
            for doubt in of_shape(report.axis.name, curve.shape):
                yield replace(doubt, metric=curve.name)
        if whole in (None, curve):
            yield from above_bound(report, curve)
    yield from ranks(report, lines)


def best_of_all(lines: Sequence[Curve]) -> Curve | None:
    """The line that is made of the best at each place, where there are several lines."""
    return next((curve for curve in lines if curve.line == ALL), None)


def is_shown(curve: Curve, whole: Curve | None) -> bool:
    """Whether a curve has lines of its own; next to a best of all only if it spans a doubling."""
    return whole is None or (curve.shape is not None and curve.shape.gain is not None)


def of_shape(axis: str, shape: CurveShape) -> list[Finding]:
    """What is not known of a curve's plateau and decline."""
    found = []
    if isinstance(shape.plateau, Beyond):
        details = {"axis": axis, "last": shape.plateau.last, "gain": shape.gain}
        found.append(finding.of(Kind.PLATEAU_BEYOND, details))
    elif isinstance(shape.plateau, Unknown):
        found.append(finding.of(Kind.PLATEAU_UNKNOWN, {"why": shape.plateau.why.value}))
    if isinstance(shape.decline, Unknown):
        found.append(finding.of(Kind.DECLINE_UNKNOWN, {"why": shape.decline.why.value}))
    if shape.doubtful and shape.noise is not None:
        found.append(finding.of(Kind.PLATEAU_ROUGH, {"noise": shape.noise}))
    return found


def above_bound(report: SweepReport, curve: Curve) -> Iterator[Finding]:
    """The place where a curve exceeds its tightest bound by most."""
    tightest = [(limit, row) for row in curve.rows for limit in report.bounds_of(curve, row)[:1]]
    tight, row = max(tightest, key=lambda one: one[0].share, default=(None, None))
    if tight is None or row is None or tight.share <= 1:
        return
    details = {
        "part": tight.bound.part.value,
        "count": tight.bound.count,
        "limit": tight.limit,
        "share": tight.share,
        "axis": report.axis.name,
        "at": row.label,
    }
    value = f"{row.point.median}"
    yield finding.of(Kind.ABOVE_BOUND, details, metric=curve.name, value=value, unit=curve.unit)


def ranks(report: SweepReport, lines: Sequence[Curve]) -> Iterator[Finding]:
    """The place where the slowest rank is far slower than the fastest, if there is one."""
    unfair = [
        (row.fair, row.label) for curve in lines for row in curve.rows if row.fair is not None
    ]
    share, place = min(unfair, key=lambda one: one[0], default=(1.0, ""))
    if share < STARVED:
        details = {"axis": report.axis.name, "at": place, "share": share}
        yield finding.of(Kind.RANKS_DIFFER, details, metric=lines[0].metric)
