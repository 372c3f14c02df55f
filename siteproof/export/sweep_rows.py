"""The reports of `siteproof sweep` for programs: rows of CSV, and one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from siteproof.analysis.plateau import At, Beyond
from siteproof.curves.measured import ALL, Curve
from siteproof.curves.run_findings import SweepReport
from siteproof.record.samples import Sample
from siteproof.wording import sweep_results

COLUMNS = (
    "system",
    "session",
    "partition",
    "environment",
    "place",
    "metric",
    "unit",
    "panel",
    "line",
    "axis",
    "at",
    "tasks",
    "tasks_per_node",
    "median",
    "low",
    "high",
    "repetitions",
    "per_task",
    "slowest_of_fastest",
    "bound",
    "bound_by",
)
REACHED = {At: True, Beyond: False}  # any other plateau is unknown


def point_of(sample: Sample) -> str:
    """A point by its axes; the job where the sample covers all points of it."""
    parts = [f"{k}={v}" for k, v in sample.dims.items()]
    if sample.trial:
        parts.append(f"trial={sample.trial}")
    return " ".join(parts) or f"job {sample.header.job}"


def cells(reports: Sequence[SweepReport]) -> Iterator[Sequence[object]]:
    """The names of the columns, then a row for each point."""
    yield COLUMNS
    for report in reports:
        run = report.run
        head = (run.system, run.sessions[-1], run.partition, run.environment, run.place)
        for lines in report.groups:
            for curve in lines:
                if curve.line == ALL:
                    continue
                for row in curve.rows:
                    limits = report.bounds_of(curve, row)
                    yield (
                        *head,
                        curve.metric,
                        curve.unit,
                        curve.panel,
                        curve.line,
                        report.axis.name,
                        row.label,
                        row.tasks,
                        row.tasks_per_node,
                        row.point.median,
                        row.point.low,
                        row.point.high,
                        len(row.point.values),
                        row.per_task,
                        "" if row.fair is None else row.fair,
                        limits[0].limit if limits else "",
                        limits[0].what if limits else "",
                    )


def record(name: str, reports: Sequence[SweepReport], code: int) -> dict[str, Any]:
    """One object for programs; a plateau that was not reached is a text such as >166."""
    return {"sweep": name, "exit_code": int(code), "runs": [_run(r) for r in reports]}


def _run(report: SweepReport) -> dict[str, Any]:
    run, found = report.run, report.progress
    return {
        "system": run.system,
        "partition": run.partition,
        "environment": run.environment,
        "place": run.place,
        "sessions": list(run.sessions),
        "axis": report.axis.name,
        "points": {
            "done": found.done,
            "planned": found.planned,
            "missing": [str(point) for point in found.missing],
            "failed": [f"{point_of(s)}: {s.status}: {s.why}" for s in found.failed],
            "not_measured": [f"{point_of(s)}: {s.status}: {s.why}" for s in found.untried],
            "too_large": [str(point) for point in found.too_large],
        },
        "curves": [_curve(report, curve) for lines in report.groups for curve in lines],
        "tasks_per_node": {
            key: {"most": p.most, "compared_at": p.compared_at}
            for key, p in report.packings.items()
        },
        "told": sweep_results.headlines(report),
    }


def _curve(report: SweepReport, curve: Curve) -> dict[str, Any]:
    found = curve.finding
    shown: dict[str, Any] = {
        "metric": curve.metric,
        "unit": curve.unit,
        "panel": curve.panel,
        "line": curve.line,
        "best": curve.best.point.median,
        "best_at": curve.best.label,
        "rows": [
            {
                "at": r.label,
                "tasks": r.tasks,
                "tasks_per_node": r.tasks_per_node,
                "values": r.point.values,
                "median": r.point.median,
                "per_task": r.per_task,
                "slowest_of_fastest": r.fair,
                "bounds": [{"by": b.what, "limit": b.limit} for b in report.bounds_of(curve, r)],
            }
            for r in curve.rows
        ],
    }
    if found:
        shown |= {
            "plateau": found.plateau.x if isinstance(found.plateau, At) else str(found.plateau),
            "plateau_reached": REACHED.get(type(found.plateau)),
            "fit": found.fit.x if found.fit else None,
            "decline": found.decline.x if isinstance(found.decline, At) else str(found.decline),
            "noise": found.noise,
            "last_doubling": found.gain,
        }
    return shown
