"""What one run of a sweep found: its progress, its curves, and their bounds.

A bound is what a sweep cannot exceed by the site's description: networks of its ends, a link,
windows. Of a cloud: from which place of the sweep on servers fail, and the first cause.

Why a sweep has no value at a point, and what is doubtful in its curves: findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from statistics import median

from siteproof import units
from siteproof.analysis import plateau
from siteproof.analysis.before_after import Change, compare
from siteproof.analysis.plateau import (
    Beyond,
    Bound,
    CurveShape,
    Facts,
    Packing,
    Unknown,
    bandwidth_delay,
    packing,
)
from siteproof.answers.attempts import failure
from siteproof.curves import measured
from siteproof.curves.measured import ALL, PER_NODE, TASKS, Curve, Row, ordered
from siteproof.curves.sweep_runs import Progress, SweepRun, point_of, progress
from siteproof.errors import ExitCode
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.manifest import KNOB, OWN
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Sample
from siteproof.sites import FileSystem, Link, Metric, Site
from siteproof.sweeps.caps import in_words
from siteproof.sweeps.keys import TOOLS
from siteproof.sweeps.reading import SweepFile

WINDOWS = ("window", "buffer")  # what bounds the bytes under way of one stream
STREAMS = "streams"
NODES = "nodes"
# A proof, an answer, and what a rate follows from: of these no curve is drawn.
NO_CURVES = ("Scaling.residual", "Scaling.result", "Scaling.time")
TOGETHER = "together"  # a pattern of links


@dataclass(frozen=True)
class Reached:
    """A bound of a row. limit: in the curve's unit; share: of it that the median reached."""

    bound: Bound
    limit: float
    share: float


def bytes_under_way(site: Site, run: SweepRun) -> Fraction | None:
    """The bytes under way that fill the run's link, if the site knows its speed and round trip."""
    link = site.system.links.get(run.place)
    if link is None or link.speed is None or link.round_trip is None:
        return None
    return bandwidth_delay(link.speed.to("B/s"), link.round_trip.to("s"))


def _facts(site: Site, run: SweepRun, row: Row) -> Facts:
    link = site.system.links.get(run.place)
    settings = {**run.newest.conditions, **row.dims}
    windows = [_whole(settings, name) for name in WINDOWS]
    file_system = site.system.file_systems.get(run.place)
    servers = file_system.servers if file_system else None
    facts = Facts(
        nodes=1 if link else row.nodes,
        client=_of_clients(site, run, link, file_system),
        servers=len(site.expected(servers)) if servers else 0,
        server=_network(site, servers) if servers else None,
        window=next(filter(None, windows), None),
        streams=int(_whole(settings, STREAMS) or 1),
    )
    if carrier := _carrier(site, file_system):  # all pairs of such a link share its speed
        return replace(facts, link=_speed(carrier) if carrier.pattern == TOGETHER else None)
    if link is None:
        return facts
    round_trip = link.round_trip.to("s") if link.round_trip else None
    return replace(facts, link=_speed(link), round_trip=round_trip)


def _whole(settings: Mapping[str, str], name: str) -> Fraction | None:
    """A setting that is a whole number above 0."""
    text = settings.get(name, "")
    return Fraction(int(text)) if text.isdigit() and int(text) else None


def _carrier(site: Site, file_system: FileSystem | None) -> Link | None:
    """The link that carries a file system, as the site names it."""
    name = file_system.network if file_system else None
    return site.system.links.get(name) if name else None


def _speed(link: Link) -> Fraction | None:
    return link.speed.to("B/s") if link.speed else None


def _of_clients(
    site: Site, run: SweepRun, link: Link | None, file_system: FileSystem | None
) -> Fraction | None:
    """The network of a node that measured over one; a disk of its own is bound by none.

    Where the site names the link that carries a file system, a node cannot exceed its speed either.
    """
    partition = site.system.partitions.get(run.partition)
    is_remote = file_system is not None and file_system.is_remote
    if partition is None or not (link or is_remote):
        return None
    carrier = _carrier(site, file_system)
    rates = [_network(site, role) for role in partition.roles]
    # The fastest of several roles, as any of their nodes may have measured.
    fastest = None if None in rates else max(filter(None, rates), default=None)
    limits = [fastest, _speed(carrier) if carrier else None]
    return min(filter(None, limits), default=None)


def _network(site: Site, role: str) -> Fraction | None:
    """What all interfaces of a node carry that are bonded, else the fastest; bytes a second."""
    nics = site.hardware_of(role).nics
    speeds = {name: nic.speed.to("B/s") for name, nic in nics.items() if nic.speed}
    rates = list(speeds.values())
    for bond in site.parameters(role).bond.values():
        members = [speeds.get(name, Fraction(0)) for name in bond.members or []]
        rates.append(sum(members, Fraction(0)))
    return max(rates, default=None)


FAILURES = "Cloud.failures"
CAUSE = "cause"  # dimension of it
SERVERS = "servers"  # how many were requested: a dimension, or a condition of all points
Dims = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FirstFailure:
    """One line of a sweep. line: its value; empty where there is one line only.

    at: the first place where servers failed, None: nowhere; failed of requested there, in its worst
    repetition, and why most of them. without: later places at which none failed. last: the last
    place of all.
    """

    line: str
    at: str | None
    failed: int
    requested: int
    cause: str
    without: Sequence[str]
    last: str


def folded(samples: Iterable[Sample]) -> list[Sample]:
    """The samples, with the failures of a point as one number over all causes."""
    is_count = grouped((one.metric == FAILURES and one.status == "ok", one) for one in samples)
    found = list(is_count.get(False, ()))
    by_point = grouped(((s.header.session, *_point(s)), s) for s in is_count.get(True, ()))
    for (_, _, dims_of_point), each in by_point.items():
        total = sum((sample.number for sample in each), Decimal(0))
        found.append(replace(each[0], value=total, dims=dict(dims_of_point)))
    return found


def _point(sample: Sample) -> tuple[int, Dims]:
    """The point of a sample of failures, of whatever cause."""
    dims = {name: value for name, value in sample.dims.items() if name != CAUSE}
    return sample.trial, tuple(sorted(dims.items()))


def first_failures(samples: Iterable[Sample], against: str, lines: str = "") -> list[FirstFailure]:
    """By line, from which value of the axis `against` on servers failed."""
    counts = [s for s in samples if s.metric == FAILURES and s.status == "ok" and against in s.dims]
    by_line = grouped((s.dims.get(lines, ""), s) for s in counts)
    return [
        _of_line(line, grouped((s.dims[against], s) for s in by_line[line]))
        for line in ordered(by_line)
    ]


def _of_line(line: str, places: Mapping[str, Sequence[Sample]]) -> FirstFailure:
    order = ordered(places)
    failed = {place: _worst(places[place]) for place in order}
    at = next((place for place in order if failed[place]), None)
    if at is None:
        return FirstFailure(line, None, 0, 0, "", (), order[-1])
    causes = failed[at]
    without = [place for place in order[order.index(at) :] if not failed[place]]
    asked = int(_whole({**places[at][0].conditions, **places[at][0].dims}, SERVERS) or 0)
    cause = causes.most_common(1)[0][0]
    return FirstFailure(line, at, causes.total(), asked, cause, without, order[-1])


def _worst(of_place: Iterable[Sample]) -> Counter[str]:
    """The failures by cause of the repetition and point with the most of them."""
    each: dict[tuple[int, Dims], Counter[str]] = {}
    for sample in of_place:
        causes = each.setdefault(_point(sample), Counter())
        if sample.number:
            causes[sample.dims.get(CAUSE, "")] += int(sample.number)
    return max(each.values(), key=Counter.total)


MESSAGES = TOOLS["messages"].check


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

    def efficiency_of(self, curve: Curve) -> Mapping[int, float]:
        """Of a program over growing numbers of nodes, by their number; of other curves nothing."""
        rates = {row.nodes: Fraction(row.point.median) for row in curve.rows}
        speeds = self.run.is_scaling and curve.better == "higher" and len(rates) > 1
        known = plateau.efficiency(rates) if speeds and min(rates.values()) > 0 else {}
        return {nodes: float(share) for nodes, share in known.items()}

    def bounds_of(self, curve: Curve, row: Row) -> Sequence[Reached]:
        """Every bound that follows from the site, the tightest first; only rates have some."""
        if curve.unit not in units.UNITS or units.kind(curve.unit) != "rate":
            return []
        found = []
        for bound in plateau.bounds(_facts(self.site, self.run, row)):
            limit = float(units.convert(bound.rate, "B/s", curve.unit))
            found.append(Reached(bound, limit, row.point.median / limit))
        return found


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
        if s.metric not in NO_CURVES and {s.dims.get(name, OWN) for name in axis.alone} <= {OWN}
    ]
    found = measured.collect(folded(alone), site.catalogue, axis.name, axis.lines)
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
        bytes_under_way(site, run),
        best_settings(run.good, site.catalogue) if first_knob else (),
        first_failures(alone, axis.name, axis.lines),
    )


def axes_of(run: SweepRun, file: SweepFile | None) -> list[Axis]:
    """The axes of the figures; against tasks where there is no file."""
    if run.is_scaling:
        return [Axis(NODES, "number")]
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
        dims = sorted(sample.dims.items())
        knobs = tuple((k.removeprefix(KNOB), v) for k, v in dims if k.startswith(KNOB))
        place = tuple((k, v) for k, v in dims if not k.startswith(KNOB))
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
    best = settings[chosen]
    own = next((v for k, v in settings.items() if all(text == OWN for _, text in k)), best)
    change = None if own is best else compare(own, best, entry.better)
    return Setting(metric, entry.unit, place, chosen, median(best), len(settings), change)


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
