"""What one run of a sweep found: its progress, its curves, and their bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median

from siteproof import units
from siteproof.analysis.before_after import Change, compare
from siteproof.analysis.scaling import Packing, packing
from siteproof.curves import bounds, failing, measured
from siteproof.curves.bounds import Reached
from siteproof.curves.failing import FirstFailure
from siteproof.curves.measured import PER_NODE, TASKS, Curve, Row
from siteproof.curves.sweep_runs import Progress, SweepRun, progress
from siteproof.errors import ExitCode
from siteproof.record.point import KNOB, OWN
from siteproof.record.samples import Sample
from siteproof.sites import Metric, Site
from siteproof.sweeps.reading import SweepFile
from siteproof.sweeps.tools import TOOLS

MESSAGES = TOOLS["messages"].check
Dims = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Axis:
    """What a figure is shown against. kind: number, size (bytes) or word.

    alone: knobs that are left as the machine has them in this figure.
    """

    name: str
    kind: str
    lines: str = ""
    alone: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """The best of several settings. place: the other dimensions; knobs: without `knob.`.

    value: the median, in the catalogue's unit. change: against the machine's own values; None where
    they were not measured, or are the best.
    """

    metric: str
    unit: str
    place: Dims
    knobs: Dims
    value: float
    settings: int
    change: Change | None


@dataclass(frozen=True)
class SweepReport:
    """One run. groups: the curves of each figure and panel, with the best of all where several.

    packings: by metric, how many tasks a node carries. path: bytes that fill the link. settings:
    the best ones, where knobs were changed one at a time. failing: of a cloud, by line, from where
    on servers fail.
    """

    site: Site = field(repr=False)
    run: SweepRun
    description: str
    axis: Axis
    progress: Progress
    groups: Sequence[Sequence[Curve]]
    packings: Mapping[str, Packing]
    path: Fraction | None
    settings: Sequence[Setting] = ()
    failing: Sequence[FirstFailure] = ()

    @property
    def exit_code(self) -> ExitCode:
        """Failed points before missing ones."""
        if self.progress.failed:
            return ExitCode.FAIL
        done = self.progress.complete and self.groups
        return ExitCode.PASS if done else ExitCode.INCOMPLETE

    def bounds_of(self, curve: Curve, row: Row) -> Sequence[Reached]:
        """The bounds of a row, the tightest first."""
        return bounds.known(self.site, self.run, curve, row)


def reports(site: Site, run: SweepRun, file: SweepFile | None) -> list[SweepReport]:
    """What a run found, by axis: one, or several for knobs that were changed one at a time.

    file: the sweep's file as it is today; None where it was removed. From a file that has changed
    the axes are still taken, and no longer what is missing.
    """
    state = progress(run, file, site)
    return [_report(site, run, file, axis, state) for axis in axes_of(run, file)]


def _report(
    site: Site, run: SweepRun, file: SweepFile | None, axis: Axis, state: Progress
) -> SweepReport:
    alone = [
        s
        for s in run.good
        if all(value == OWN for name, value in s.dims.items() if name in axis.alone)
    ]
    found = measured.collect(failing.folded(alone), site.catalogue, axis.name, axis.lines)
    groups = [_with_best(lines, axis) for lines in measured.groups(found)]
    packed = {}
    # For MPI's messages two ranks on a node are another path, and no fuller node.
    if run.check != MESSAGES and PER_NODE in (axis.name, axis.lines):
        packed = packings(measured.collect(run.good, site.catalogue, TASKS, PER_NODE))
    first_knob = axis.alone and file is not None and axis == axes_of(run, file)[0]
    return SweepReport(
        site,
        run,
        file.sweep.description if file else "",
        axis,
        state,
        groups,
        packed,
        bounds.path(site, run),
        best_settings(run.good, site.catalogue) if first_knob else (),
        failing.first(alone, axis.name, axis.lines),
    )


def axes_of(run: SweepRun, file: SweepFile | None) -> list[Axis]:
    """The axes of the figures; against tasks where there is no file."""
    if file is None:
        several = {s.dims.get(PER_NODE, "1") for s in run.good}
        return [Axis(TASKS, "number", PER_NODE if len(several) > 1 else "")]
    sweep = file.sweep
    known = TOOLS[sweep.tool].all_axes
    alone = list(sweep.knobs.one_at_a_time) if sweep.knobs else []
    lines = "" if sweep.lines in alone else sweep.lines
    found = [Axis(knob, "word", lines, tuple(k for k in alone if k != knob)) for knob in alone]
    if sweep.against not in alone:
        kind = known[sweep.against].kind if sweep.against in known else "word"
        found.insert(0, Axis(sweep.against, kind, sweep.lines))
    return found


def packings(found: Sequence[Curve]) -> dict[str, Packing]:
    """How many tasks a node carries, by metric and panel; only for rates of all tasks.

    found: curves against tasks with a line for each number a node.
    """
    packed = {}
    for lines in measured.groups(found):
        by_number = {c.rows[0].tasks_per_node: [r.point for r in c.rows] for c in lines}
        result = packing(by_number) if lines[0].better == "higher" else None
        if result is not None:
            packed[lines[0].group_name] = result
    return packed


def _with_best(lines: Sequence[Curve], axis: Axis) -> list[Curve]:
    """The lines, and what the best of them at each place gives, where more is better."""
    several = len(lines) > 1 and all(c.numeric and c.better == "higher" for c in lines)
    if not several or (axis.name, axis.lines) != (TASKS, PER_NODE):
        return list(lines)
    return [*lines, measured.envelope(lines)]


def best_settings(samples: Iterable[Sample], catalogue: Mapping[str, Metric]) -> list[Setting]:
    """The best setting of each metric whose direction is known, place by place.

    The best of many settings looks better than it is, so it must differ from the machine's own
    values by more than noise does (siteproof.analysis.before_after).
    """
    values: dict[tuple[str, Dims], dict[Dims, list[float]]] = {}
    for sample in samples:
        entry = catalogue.get(sample.metric)
        if sample.status != "ok" or entry is None or entry.better == "neither":
            continue
        knobs = tuple(
            sorted((k.removeprefix(KNOB), v) for k, v in sample.dims.items() if k.startswith(KNOB))
        )
        place = tuple(sorted((k, v) for k, v in sample.dims.items() if not k.startswith(KNOB)))
        value = float(units.convert(sample.number, sample.unit, entry.unit))
        values.setdefault((sample.metric, place), {}).setdefault(knobs, []).append(value)
    return [
        _best(metric, catalogue[metric], place, settings)
        for (metric, place), settings in sorted(values.items())
        if len(settings) > 1
    ]


def _best(metric: str, entry: Metric, place: Dims, settings: Mapping[Dims, list[float]]) -> Setting:
    sign = -1 if entry.better == "lower" else 1
    chosen = max(settings, key=lambda knobs: (sign * median(settings[knobs]), knobs))
    own = next((v for k, v in settings.items() if all(text == OWN for _, text in k)), None)
    is_own = all(text == OWN for _, text in chosen)
    change = None if own is None or is_own else compare(own, settings[chosen], entry.better)
    return Setting(
        metric, entry.unit, place, chosen, median(settings[chosen]), len(settings), change
    )
