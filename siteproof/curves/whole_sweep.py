"""Values that only a whole sweep has: highest rate, plateau, tasks on a node.

They are computed from the samples each time, and never kept. An incomplete sweep has none, and a
plateau that was not reached is no number; a finding names the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from siteproof.analysis.plateau import At, Unknown, Why
from siteproof.curves import measured, run_findings, sweep_runs
from siteproof.curves.measured import PER_NODE, TASKS, Curve
from siteproof.curves.sweep_runs import SweepRun
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind, note
from siteproof.record.manifest import KNOB, OWN
from siteproof.record.samples import Header, Sample
from siteproof.sites import Site
from siteproof.sweeps import reading
from siteproof.sweeps.reading import SweepFile

CHECKS = ("Ior", "Lnet")  # those whose knobs the criteria of a file system cover
TUNING = "Tuning"
POINTS, SAMPLES = f"{TUNING}.points", f"{TUNING}.samples"


def of_tuning(run: SweepRun) -> list[Sample]:
    """Tuning.points of each knob, with its name and its lowest and highest value; Tuning.samples.

    The name is the parameter's own, as max_dirty_mb of knob.lustre.osc.*.max_dirty_mb.
    """
    knobs = sorted({name for s in run.good for name in s.dims if name.startswith(KNOB)})
    measured = [s for s in run.good if not s.dims.keys().isdisjoint(knobs)]
    if run.check not in CHECKS or not measured:
        return []
    each = Counter((s.metric, tuple(sorted(s.dims.items()))) for s in measured)
    common = _common(measured).items()
    conditions = {name: value for name, value in common if not name.startswith(KNOB)}
    header = replace(run.newest.header, conditions=conditions, expected="")
    found = [Sample(header, "", SAMPLES, Decimal(min(each.values())), "count")]
    return found + [point for knob in knobs for point in _points(header, measured, knob)]


def _points(header: Header, measured: Sequence[Sample], knob: str) -> Iterator[Sample]:
    """How many values of a knob were measured, from which to which."""
    # Where a number was set, and the nodes read that number.
    read = {(s.dims.get(knob, OWN), s.conditions.get(knob, "")) for s in measured}
    numbers = [(a, b) for a, b in read if a.isdecimal() and b.replace(".", "", 1).isdecimal()]
    values = sorted({int(wanted) for wanted, found in numbers if Decimal(found) == int(wanted)})
    if values:
        own = {"parameter": knob.rpartition(".")[2], "from": str(values[0]), "to": str(values[-1])}
        yield Sample(header, "", POINTS, Decimal(len(values)), "count", own_conditions=own)


FIGURES = ("Ior.read", "Ior.write")  # of which a sweep over tasks has a maximum and a plateau
PACKED = f"Ior.{PER_NODE}"
METRICS = {PACKED, *(f"{name}_{end}" for name in FIGURES for end in ("max", "plateau"))}
LAYOUT, FILE_A_TASK = "layout", "file_a_task"  # what the criteria of parallel I/O cover


@dataclass
class Derived:
    """Samples of the system as a whole; and why sweeps of some sessions give no value of a metric.

    lacks: sessions, and a finding with the metric; the newest last.
    """

    samples: list[Sample] = field(default_factory=list)
    lacks: list[tuple[tuple[str, ...], Finding]] = field(default_factory=list)

    def reason(self, metric: str, sessions: Collection[str]) -> Finding | None:
        """Why the newest sweep of these sessions gave no value; None where it gave one."""
        for of_sweep, why in reversed(self.lacks):
            if why.metric == metric and not set(sessions).isdisjoint(of_sweep):
                return why
        return None


def of_all(site: Site, found: Iterable[Sample]) -> Derived:
    """What the sweeps among samples give. Raises UserError where their files cannot be found."""
    runs = sweep_runs.collect(found)
    known = reading.examine()[0] if runs else {}
    total = Derived()
    for run in runs:
        of_one = of_run(site, run, known.get(run.name))
        total.samples += [*of_one.samples, *of_tuning(run)]
        total.lacks += of_one.lacks
    return total


def of_run(site: Site, run: SweepRun, file: SweepFile | None) -> Derived:
    """What one run gives. file: the sweep's, as it is today."""
    made = Derived()
    wanted = _wanted(run, file)
    if not wanted:
        return made
    if why := _incomplete(run, file, site):
        made.lacks += [(run.sessions, replace(why, metric=metric)) for metric in sorted(wanted)]
        return made
    curves = [
        curve
        for curve in measured.collect(run.good, site.catalogue, TASKS, PER_NODE)
        if curve.metric in FIGURES and _layout(run, [curve]) == FILE_A_TASK
    ]
    for lines in measured.groups(curves):
        if f"{lines[0].metric}_max" in wanted:
            _rates(made, run, lines)
    if curves:
        _packing(made, run, curves)
    return made


def _wanted(run: SweepRun, file: SweepFile | None) -> set[str]:
    """What a sweep of these axes gives: over tasks all, over tasks a node how many one carries."""
    axis = run_findings.axes_of(run, file)[0]
    if run.check != PACKED.partition(".")[0] or axis.alone or axis.name.startswith(KNOB):
        return set()
    if axis.name == TASKS:
        return METRICS
    return {PACKED} if PER_NODE in (axis.name, axis.lines) else set()


def _layout(run: SweepRun, lines: Sequence[Curve]) -> str:
    return {**_common(run.good), **_shared(lines)}.get(LAYOUT, FILE_A_TASK)


def _incomplete(run: SweepRun, file: SweepFile | None, site: Site) -> Finding | None:
    """Why a run gives no value of the whole sweep, if it gives none."""
    state = sweep_runs.progress(run, file, site)
    where = {"sweep": run.name, "session": run.sessions[-1]}
    if state.planned is None:
        return finding.of(Kind.SWEEP_FILE_CHANGED, where)
    if run.caps:
        return run_findings.capped(run, state)
    if not state.complete:
        text = "sweep {sweep} in session {session} is incomplete: {done} of {planned} points"
        return note(text, **where, done=state.done, planned=state.planned)
    return None


def _rates(made: Derived, run: SweepRun, lines: Sequence[Curve]) -> None:
    """Highest rate and plateau of the best line at each number of tasks."""
    best = measured.envelope(lines)
    own = _conditions(lines)
    highest = best.best
    why = f"at {highest.label} tasks"
    made.samples.append(
        _sample(run, lines, f"{best.metric}_max", highest.point.median, best.unit, own, why)
    )
    metric = f"{best.metric}_plateau"
    place = best.shape.plateau if best.shape else Unknown(Why.FEW_POINTS)
    if isinstance(place, At):
        made.samples.append(_sample(run, lines, metric, place.x, TASKS, own))
        return
    if isinstance(place, Unknown):
        kind, details = Kind.PLATEAU_UNKNOWN, finding.details(sweep=run.name, why=place.why.value)
    else:
        gain = best.shape.gain if best.shape else None
        kind = Kind.PLATEAU_BEYOND
        details = finding.details(sweep=run.name, axis=TASKS, last=place.last, gain=gain)
    made.lacks.append((run.sessions, Finding(kind, metric=metric, details=details)))


def _packing(made: Derived, run: SweepRun, curves: Sequence[Curve]) -> None:
    """The most tasks on a node with which neither reading nor writing is slower."""
    found = run_findings.packings(curves)
    if not found:
        text = "{sweep:sweep %s: }"
        text += "no number of tasks a node was measured together with one task a node"
        made.lacks.append((run.sessions, note(text, metric=PACKED, sweep=run.name)))
        return
    slowest, least = min(found.items(), key=lambda item: item[1].most)
    own = _conditions(curves) | {"compared_at": least.compared_at}
    made.samples.append(_sample(run, curves, PACKED, least.most, "ranks", own, f"by {slowest}"))


def _conditions(lines: Sequence[Curve]) -> dict[str, str]:
    """What the sweep varied, as ranges; a value where it did not."""
    found: dict[str, str] = {}
    rows = [row for line in lines for row in line.rows]
    for name, values in (
        (TASKS, [row.tasks for row in rows]),
        (PER_NODE, [row.tasks_per_node for row in rows]),
    ):
        found |= {f"{name}_from": str(min(values)), f"{name}_to": str(max(values))}
        if min(values) == max(values):
            found[name] = str(values[0])
    return found | {"repetitions": str(min(len(row.point.values) for row in rows))}


def _shared(lines: Sequence[Curve]) -> dict[str, str]:
    """The dimensions that all of these points share, without tasks and tasks a node."""
    return _alike([row.dims for line in lines for row in line.rows], (TASKS, PER_NODE))


def _common(samples: Sequence[Sample]) -> dict[str, str]:
    """The conditions that all samples share."""
    return _alike([s.conditions for s in samples], ("mode",))


def _alike(each: Sequence[Mapping[str, str]], but: Sequence[str]) -> dict[str, str]:
    shared = set(each[0].items()).intersection(*(one.items() for one in each))
    return {k: v for k, v in each[0].items() if (k, v) in shared and k not in but}


def _sample(
    run: SweepRun,
    lines: Sequence[Curve],
    metric: str,
    value: float,
    unit: str,
    conditions: Mapping[str, str],
    why: str = "",
) -> Sample:
    """One value of the whole run. why: where it comes from; it does not separate series."""
    exact = Decimal(int(value)) if value == int(value) else Decimal(repr(value))
    head = replace(run.newest.header, conditions=_common(run.good), expected="")
    return Sample(
        head, "", metric, exact, unit, why=why, dims=_shared(lines), own_conditions=dict(conditions)
    )
