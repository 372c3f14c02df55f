"""The reports of `siteproof sweep` for programs: rows of CSV, and one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from siteproof.analysis.plateau import At, Beyond, Decline, Place
from siteproof.curves import sweep_reasons
from siteproof.curves.measured import ALL, Curve, Row
from siteproof.curves.run_findings import SweepReport
from siteproof.export.answer_model import Answer, same
from siteproof.record.finding import Finding
from siteproof.wording import sweep_results
from siteproof.wording.findings import bound_name

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


def cells(reports: Sequence[SweepReport]) -> Iterator[Sequence[object]]:
    """A row of COLUMNS for each point; None where there is none."""
    for report in reports:
        curves = [curve for lines in report.groups for curve in lines if curve.line != ALL]
        for curve, row in ((one, row) for one in curves for row in one.rows):
            values = _row(report, curve, row) | _of_curve(report, curve)
            values |= {**same(row.point, "low", "high"), "repetitions": len(row.point.values)}
            tightest = values["bounds"][0] if values["bounds"] else {}
            values |= {"bound": tightest.get("limit"), "bound_by": tightest.get("by")}
            yield [values[name] for name in COLUMNS]


def _of_curve(report: SweepReport, curve: Curve) -> dict[str, Any]:
    return {
        **same(report.run, "system", "partition", "environment", "place"),
        **same(curve, "metric", "unit", "panel", "line"),
        "session": report.run.sessions[-1],
        "axis": report.axis.name,
    }


@dataclass(frozen=True)
class Sweeps(Answer):
    """What a sweep found: 'siteproof sweep NAME --json'.

    exit_code: 0 all points have a value; 1 a point failed; 3 points are missing.
    sweep: The name of the sweep.
    runs: Each run: its points, and its curves with rows, plateau and fit. A plateau that was not
        reached is a text such as >166.
    findings: Points without a value, a plateau that was not reached, a rate above its bound.
    """

    sweep: str
    runs: Sequence[Mapping[str, Any]]
    findings: Sequence[Finding]


def answer(name: str, reports: Sequence[SweepReport], code: int) -> Sweeps:
    """What programs get."""
    chosen = "; ".join(dict.fromkeys(str(report.run) for report in reports))
    runs = [_run(report) for report in reports]
    return Sweeps(
        *(reports[0].run.system, chosen, code, name, runs), sweep_reasons.of_reports(reports)
    )


def _run(report: SweepReport) -> dict[str, Any]:
    run, found = report.run, report.progress
    return {
        **same(run, "system", "partition", "environment", "place", "sessions"),
        "axis": report.axis.name,
        "points": {
            "done": found.done,
            "planned": found.planned,
            "missing": [str(point) for point in found.missing],
            "failed": list(map(sweep_results.failure, found.failed)),
            "not_measured": list(map(sweep_results.failure, found.untried)),
            "too_large": [str(point) for point in found.too_large],
            "caps": dict(run.caps),
            "above_caps": [str(point) for point in found.above_caps],
        },
        "curves": [_curve(report, curve) for lines in report.groups for curve in lines],
        "tasks_per_node": {
            key: same(p, "most", "compared_at") for key, p in report.packings.items()
        },
        "told": sweep_results.headlines(report),
    }


def _curve(report: SweepReport, curve: Curve) -> dict[str, Any]:
    plain: dict[str, Any] = {
        **same(curve, "metric", "unit", "panel", "line"),
        "best": curve.best.point.median,
        "best_at": curve.best.label,
        "rows": [_row(report, curve, row) for row in curve.rows],
    }
    shape = curve.shape
    if shape is None:
        return plain
    return plain | {
        "plateau": _place(shape.plateau),
        "plateau_reached": REACHED.get(type(shape.plateau)),
        "fit": shape.fit,
        "decline": _place(shape.decline),
        "noise": shape.noise,
        "last_doubling": shape.gain,
    }


def _place(place: Place | Decline) -> float | str:
    return place.x if isinstance(place, At) else sweep_results.place(place)


def _row(report: SweepReport, curve: Curve, row: Row) -> dict[str, Any]:
    limits = [
        {"by": bound_name(one.bound.part, one.bound.count), "limit": one.limit}
        for one in report.bounds_of(curve, row)
    ]
    return {
        "at": row.label,
        "tasks": row.tasks,
        "tasks_per_node": row.tasks_per_node,
        "values": row.point.values,
        "median": row.point.median,
        "per_task": row.per_task,
        "slowest_of_fastest": row.fair,
        "bounds": limits,
    }
