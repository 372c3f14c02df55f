"""Figures that only a whole sweep has: highest rate, plateau, tasks on a node.

They are worked out whenever they are asked for, and never kept. An incomplete sweep has none, and a
plateau that was not reached is no number; each says why instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from siteproof.analysis.plateau import At, Beyond
from siteproof.curves import measured, run_findings, sweep_runs
from siteproof.curves.measured import PER_NODE, TASKS, Curve
from siteproof.curves.sweep_runs import SweepRun
from siteproof.record.point import KNOB, OWN
from siteproof.record.samples import Sample
from siteproof.sites import Site
from siteproof.sweeps import reading
from siteproof.sweeps.reading import SweepFile

CHECKS = ("Ior", "Lnet")  # those whose knobs the criteria of a file system speak of
TUNING = "Tuning"
POINTS, SAMPLES = f"{TUNING}.points", f"{TUNING}.samples"


def of_tuning(run: SweepRun) -> list[Sample]:
    """Tuning.points of each knob, with its name and its lowest and highest value; Tuning.samples.

    The name is the parameter's own, as max_dirty_mb of knob.lustre.osc.*.max_dirty_mb.
    """
    measured = [s for s in run.good if any(name.startswith(KNOB) for name in s.dims)]
    if run.check not in CHECKS or not measured:
        return []
    each = Counter((s.metric, tuple(sorted(s.dims.items()))) for s in measured)
    told = {
        k: v
        for k, v in measured[0].conditions.items()
        if k != "mode"
        and not k.startswith(KNOB)
        and all(s.conditions.get(k) == v for s in measured)
    }
    header = replace(run.newest.header, conditions=told, expected="")
    found = [Sample(header, "", SAMPLES, Decimal(min(each.values())), "count")]
    for knob in sorted({name for s in measured for name in s.dims if name.startswith(KNOB)}):
        values = sorted({int(s.dims[knob]) for s in measured if _was_set(s, knob)})
        if values:
            ends = {"from": str(values[0]), "to": str(values[-1])}
            found.append(
                Sample(
                    header,
                    "",
                    POINTS,
                    Decimal(len(values)),
                    "count",
                    own_conditions={"parameter": knob.rpartition(".")[2], **ends},
                )
            )
    return found


def _was_set(sample: Sample, knob: str) -> bool:
    """Whether a number was asked for, and the nodes read that number."""
    asked = sample.dims.get(knob, OWN)
    read = sample.conditions.get(knob, "")
    return (
        asked.isdecimal()
        and read.replace(".", "", 1).isdecimal()
        and (Decimal(read) == Decimal(asked))
    )


# By class: the figures of which a sweep over tasks has a maximum and a plateau.
FIGURES = {"Ior": ("read", "write")}
ENDINGS = ("max", "plateau")
METRICS = frozenset(
    [
        f"{check}.{name}_{end}"
        for check, names in FIGURES.items()
        for name in names
        for end in ENDINGS
    ]
    + [f"{check}.{PER_NODE}" for check in FIGURES]
)
LAYOUT, FILE_A_TASK = "layout", "file_a_task"  # what the criteria of parallel I/O speak of


@dataclass(frozen=True)
class Lack:
    """Why the sweep of some sessions gives no figure."""

    metric: str
    sessions: tuple[str, ...]
    why: str


@dataclass
class Derived:
    """Samples of the system as a whole, and why there is none of a metric; the newest last."""

    samples: list[Sample] = field(default_factory=list)
    lacks: list[Lack] = field(default_factory=list)

    def reason(self, metric: str, sessions: Collection[str]) -> str:
        """Why the newest sweep of these sessions gave none; empty where none lacks it."""
        found = [
            lack.why
            for lack in self.lacks
            if lack.metric == metric and not set(sessions).isdisjoint(lack.sessions)
        ]
        return found[-1] if found else ""


def of_all(site: Site, found: Iterable[Sample]) -> Derived:
    """What the sweeps among samples give. Raises UserError where their files cannot be found."""
    runs = sweep_runs.collect(found)
    known = reading.examine()[0] if runs else {}
    total = Derived()
    for run in runs:
        mine = of_run(site, run, known.get(run.name))
        total.samples += [*mine.samples, *of_tuning(run)]
        total.lacks += mine.lacks
    return total


def of_run(site: Site, run: SweepRun, file: SweepFile | None) -> Derived:
    """What one run gives. file: the sweep's, as it is today."""
    wanted = _wanted(run, file)
    if wanted and (why := _incomplete(run, file, site)):
        return Derived(lacks=[Lack(metric, run.sessions, why) for metric in sorted(wanted)])
    made = Derived()
    curves = (
        [
            curve
            for curve in measured.collect(run.good, site.catalogue, TASKS, PER_NODE)
            if curve.metric.partition(".")[2] in FIGURES.get(run.check, ())
            and _layout(run, [curve]) == FILE_A_TASK
        ]
        if wanted
        else []
    )
    for lines in measured.groups(curves):
        if f"{lines[0].metric}_max" in wanted:
            _rates(made, run, lines)
    if curves:
        _packing(made, run, curves)
    return made


def _wanted(run: SweepRun, file: SweepFile | None) -> set[str]:
    """What a sweep of these axes tells: over tasks all, over tasks a node how many one carries."""
    axis = run_findings.axes_of(run, file)[0]
    mine = {metric for metric in METRICS if metric.partition(".")[0] == run.check}
    if axis.alone or axis.name.startswith(KNOB):
        return set()
    if axis.name == TASKS:
        return mine
    return mine & {f"{run.check}.{PER_NODE}"} if PER_NODE in (axis.name, axis.lines) else set()


def _layout(run: SweepRun, lines: Sequence[Curve]) -> str:
    return {**_common(run), **_shared(lines)}.get(LAYOUT, FILE_A_TASK)


def _incomplete(run: SweepRun, file: SweepFile | None, site: Site) -> str:
    """Why a run is none that figures may be worked out from; empty if it is one."""
    state = sweep_runs.progress(run, file, site)
    where = f"sweep {run.name} in session {run.sessions[-1]}"
    if state.planned is None:
        return f"{where}: its sweep file is gone or has changed since"
    if not state.complete:
        return f"{where} is incomplete: {state.done} of {state.planned} points"
    return ""


def _rates(made: Derived, run: SweepRun, lines: Sequence[Curve]) -> None:
    """Highest rate and plateau of the best line at each number of tasks."""
    best = measured.envelope(lines)
    own = _conditions(lines)
    made.samples.append(
        _sample(
            run,
            lines,
            f"{best.metric}_max",
            best.best.point.median,
            best.unit,
            own,
            f"at {best.best.label} tasks",
        )
    )
    metric = f"{best.metric}_plateau"
    place = best.finding.plateau if best.finding else None
    if isinstance(place, At):
        made.samples.append(_sample(run, lines, metric, place.x, TASKS, own))
    elif isinstance(place, Beyond):
        why = f"sweep {run.name}: not reached, {place} tasks: it still rises at the last point"
        made.lacks.append(Lack(metric, run.sessions, why))
    else:
        why = f"sweep {run.name}: {place or 'too few points'}"
        made.lacks.append(Lack(metric, run.sessions, why))


def _packing(made: Derived, run: SweepRun, curves: Sequence[Curve]) -> None:
    """The tasks a node that neither reading nor writing loses by."""
    metric = f"{run.check}.{PER_NODE}"
    found = run_findings.packings(curves)
    if not found:
        why = f"sweep {run.name}: no number of tasks a node was measured beside one"
        made.lacks.append(Lack(metric, run.sessions, why))
        return
    figure, least = min(found.items(), key=lambda item: item[1].most)
    own = _conditions(curves) | {"compared_at": least.compared_at}
    made.samples.append(_sample(run, curves, metric, least.most, "ranks", own, f"by {figure}"))


def _conditions(lines: Sequence[Curve]) -> dict[str, str]:
    """What the sweep varied, as ranges; a value where it did not."""
    told: dict[str, str] = {}
    rows = [row for line in lines for row in line.rows]
    for name, values in (
        (TASKS, [row.tasks for row in rows]),
        (PER_NODE, [row.tasks_per_node for row in rows]),
    ):
        told |= {f"{name}_from": str(min(values)), f"{name}_to": str(max(values))}
        if min(values) == max(values):
            told[name] = str(values[0])
    return told | {"repetitions": str(min(len(row.point.values) for row in rows))}


def _shared(lines: Sequence[Curve]) -> dict[str, str]:
    """The dimensions that all of these points share, beside tasks and tasks a node."""
    first, *rest = [row.dims for line in lines for row in line.rows]
    return {
        key: value
        for key, value in first.items()
        if key not in (TASKS, PER_NODE) and all(d.get(key) == value for d in rest)
    }


def _common(run: SweepRun) -> dict[str, str]:
    """The conditions that all samples with a figure share."""
    first, *rest = [s.conditions for s in run.good]
    return {
        k: v for k, v in first.items() if k != "mode" and all(other.get(k) == v for other in rest)
    }


def _sample(
    run: SweepRun,
    lines: Sequence[Curve],
    metric: str,
    value: float,
    unit: str,
    conditions: Mapping[str, str],
    why: str = "",
) -> Sample:
    """One figure of the whole run. why: where it comes from, which makes it no other figure."""
    exact = Decimal(int(value)) if value == int(value) else Decimal(repr(value))
    head = replace(run.newest.header, conditions=_common(run), expected="")
    return Sample(
        head, "", metric, exact, unit, why=why, dims=_shared(lines), own_conditions=dict(conditions)
    )
