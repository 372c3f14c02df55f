"""Two campaigns side by side: every value of either, and what changed between them.

An outer join: values that only one of them has are listed, and not left out. Two sessions of a
sweep are compared point by point, and each curve by the highest of the points that both have.

Changes between two sets of samples in what is recorded with the values.

Kernel and suite, software and its lock, host parameters, and the nodes' descriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import median

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets, units
from siteproof.analysis import before_after as rules
from siteproof.analysis import uniformity
from siteproof.analysis.before_after import Change, Effect
from siteproof.record import descriptions, finding, series
from siteproof.record.finding import Finding, Kind, note
from siteproof.record.pair_units import PEER, as_pair, of_pairs
from siteproof.record.samples import SWEEP, Order, Sample
from siteproof.record.series import (
    JobValue,
    Series,
    comparable,
    differences,
    is_setting,
    of_the_machine,
)
from siteproof.sites import Metric, Site
from siteproof.sweeps import reading

Nodes = Mapping[str, list[JobValue]]
Sides = Mapping[Series, Nodes]  # of a campaign


@dataclass(frozen=True)
class Row:
    """One metric that both have. nodes: measured in both. worst: nodes that lost most.

    as_others: those of worst that were faster in A, and are now as the others are.
    """

    name: str
    role: str
    unit: str
    change: Change
    nodes: NodeSet
    worst: Sequence[tuple[str, float | None]] = ()
    as_others: NodeSet = field(default_factory=NodeSet)


@dataclass(frozen=True)
class Comparison:
    """A compared with B. rows: the worst changes first. only_a, only_b: measured in one of them."""

    rows: list[Row] = field(default_factory=list)
    not_comparable: list[Finding] = field(default_factory=list)
    only_a: list[Finding] = field(default_factory=list)
    only_b: list[Finding] = field(default_factory=list)
    changed: list[Finding] = field(default_factory=list)


def compare(site: Site, a: Sequence[Sample], b: Sequence[Sample], perflogs: Path) -> Comparison:
    """Compare two sets of samples. Raises UserError where descriptions of nodes are broken."""
    found = Comparison()
    a, b = ([as_pair(sample) for sample in side] for side in (a, b))
    first = _join(site, a)
    second = series.align(_join(site, b), first)
    places = {_place_of(key) for side in (first, second) for key in side}
    for place in sorted(places, key=lambda key: str((key.name, key.environment, key.role))):
        _place(site, place, _at(place, first), _at(place, second), found)
    # A node's median over its peers hides the pairs that fell by themselves.
    pairs = [_of_pairs(site, side) for side in (a, b)]
    for n, row in enumerate(found.rows):
        metric = site.catalogue[row.name.partition(" ")[0]]
        before, after = (side.get((row.name, row.role), {}) for side in pairs)
        found.rows[n] = replace(row, worst=[*row.worst, *_worst(metric, before, after)])
    found.rows.extend(_maxima(site, first, second))
    found.rows.sort(key=lambda r: (list(Effect).index(r.change.effect), r.name, r.role))
    found.changed.extend(between(a, b, perflogs))
    return found


def _of_pairs(site: Site, samples: Sequence[Sample]) -> dict[tuple[str, str], dict[str, float]]:
    """The median of each pair, in the catalogue's unit, by metric with dimensions and by role."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for sample in samples:
        role, metric = site.role_of(sample.node), site.catalogue.get(sample.metric)
        if not (role and metric and sample.status == "ok" and of_pairs(sample)):
            continue
        if series.is_number(metric):
            place = series.of_sample(sample, role).name, role
            value = float(units.convert(sample.number, sample.unit, metric.unit))
            pair = f"{sample.node}>{sample.dims[PEER]}"
            found.setdefault(place, {}).setdefault(pair, []).append(value)
    return {
        place: {pair: median(values) for pair, values in of_place.items()}
        for place, of_place in found.items()
    }


def _worst(
    metric: Metric, a: Mapping[str, float], b: Mapping[str, float]
) -> list[tuple[str, float | None]]:
    counts = units.kind(metric.unit) == "count"
    return rules.worst(a, b, metric.better, counts=counts)


def _place_of(key: Series) -> Series:
    """What is compared with each other, if the conditions allow it."""
    return replace(key, conditions=())


def _at(place: Series, side: Sides) -> Sides:
    return {key: nodes for key, nodes in side.items() if _place_of(key) == place}


def _join(site: Site, samples: Sequence[Sample]) -> dict[Series, dict[str, list[JobValue]]]:
    """The series, without the conditions that do not hinder a comparison."""
    joined: dict[Series, dict[str, list[JobValue]]] = {}
    for key, nodes in series.collect(site, samples, series.is_number, of_system=True).items():
        plain = comparable(key)
        for node, runs in nodes.items():
            joined.setdefault(plain, {}).setdefault(node, []).extend(runs)
    return joined


def _place(site: Site, place: Series, a: Sides, b: Sides, found: Comparison) -> None:
    if not a or not b:
        nodes = chain(*a.values(), *b.values())
        (found.only_a if a else found.only_b).append(_only(place, nodes))
        return
    both = sorted(a.keys() & b.keys(), key=str)
    compared = {node for key in both for node in a[key].keys() & b[key].keys()}
    apart = set(chain(*a.values())) & set(chain(*b.values())) - compared
    if apart or not both:
        found.not_comparable.append(_not_comparable(place, a, b, apart))
    for key in both:
        one = _few(a[key], a[key].keys() - apart)
        other = _few(b[key], b[key].keys() - apart)
        if one or other:
            _series(site, place, key, one, other, found)


def _series(site: Site, place: Series, key: Series, a: Nodes, b: Nodes, found: Comparison) -> None:
    """One series that both have: the nodes of both, and those of one only."""
    for nodes, others, only in ((a, b, found.only_a), (b, a, found.only_b)):
        alone = nodes.keys() - others.keys()
        if alone:
            only.append(_only(place, alone))
    if common := a.keys() & b.keys():
        found.rows.append(_row(site, place, _few(a, common), _few(b, common)))
    else:
        text = "not comparable on {role}: no node in both"
        found.not_comparable.append(_of_place(text, place, role=place.role))


def _only(place: Series, nodes: Iterable[str]) -> Finding:
    return _of_place("{subject}", place, subject=str(nodesets.of(nodes)))


def _not_comparable(place: Series, a: Sides, b: Sides, apart: Set[str]) -> Finding:
    """apart: the nodes of both sides, in no series of both."""
    sides = []
    for side in (a, b):
        of_apart = [key for key in side if not side[key].keys().isdisjoint(apart)]
        sides.append(dict(min(of_apart or side, key=str).conditions))
    one, other = sides
    unlike = sorted(k for k in one.keys() | other.keys() if one.get(k) != other.get(k))
    words = ", ".join(f"{k} {one.get(k, 'unknown')} vs {other.get(k, 'unknown')}" for k in unlike)
    text = "not comparable on {role}: {differences}"
    return _of_place(text, place, role=place.role, differences=words)


def _of_place(text: str, place: Series, **values: str) -> Finding:
    return note(text, check=place.metric.partition(".")[0], metric=place.name, **values)


def _few(nodes: Nodes, wanted: Iterable[str]) -> dict[str, list[JobValue]]:
    return {node: nodes[node] for node in sorted(wanted)}


def _row(site: Site, place: Series, a: Nodes, b: Nodes) -> Row:
    metric = site.catalogue[place.metric]
    first, second = (
        {n: median(r.value for r in runs) for n, runs in side.items()} for side in (a, b)
    )
    unit = _unit(metric, a, b)
    before, after = (_values(place, side, metric.unit, unit) for side in (a, b))
    change = rules.compare(before, after, metric.better)
    worst = _worst(metric, first, second) if len(a) > 1 else []
    level = rules.as_others(second, metric.better) if series.is_speed(metric) else set()
    as_others = nodesets.of(node for node, _ in worst if node in level)
    return Row(place.name, place.role, unit, change, nodesets.of(a), worst, as_others)


def _unit(metric: Metric, a: Nodes, b: Nodes) -> str:
    """The unit in which all was printed, so that a reader finds his values; else the metric's."""
    printed = {r.printed for side in (a, b) for runs in side.values() for r in runs}
    return printed.pop() or metric.unit if len(printed) == 1 else metric.unit


def _values(place: Series, nodes: Nodes, unit: str, to: str) -> list[float]:
    """What the noise is judged by: nodes, else a node's runs; of a sweep's point its trials."""
    if place.role == series.SYSTEM:
        found = [value for run in chain(*nodes.values()) for value in run.each]
    elif len(nodes) > 1:
        found = [median(run.value for run in runs) for runs in nodes.values()]
    else:
        found = [run.value for run in chain(*nodes.values())]
    factor = float(units.convert(1, unit, to))
    return [float(f"{value * factor:.12g}") for value in found]  # 885, not 885.0000000001


def _maxima(site: Site, a: Sides, b: Sides) -> Iterator[Row]:
    """The highest point of each curve of a sweep on either side, of the points that both have."""
    for (curve, axis), points in _curves(site, a.keys() & b.keys()).items():
        if len(points) < 2:
            continue
        first, second = _highest(points, a), _highest(points, b)
        before, after = dict(first.dims)[axis], dict(second.dims)[axis]
        name = f"{curve.name}, highest of {len(points)}: {axis} {before} -> {after}"
        row = _row(site, replace(curve, role=series.SYSTEM), a[first], b[second])
        yield replace(row, name=name)


def _curves(site: Site, both: Iterable[Series]) -> dict[tuple[Series, str], list[Series]]:
    """The points of each curve, with the axis along which they lie."""
    of_sweeps = [key for key in both if SWEEP in dict(key.conditions)]
    known = reading.examine()[0] if of_sweeps else {}
    curves: dict[tuple[Series, str], list[Series]] = {}
    for key in sorted(of_sweeps, key=str):
        sweep = known.get(dict(key.conditions)[SWEEP])
        if not sweep or site.catalogue[key.metric].better != "higher":
            continue
        axis = sweep.sweep.against
        rest = tuple((name, value) for name, value in key.dims if name != axis)
        if rest != key.dims:
            curves.setdefault((replace(key, dims=rest), axis), []).append(key)
    return curves


def _highest(points: Sequence[Series], side: Sides) -> Series:
    def middle(point: Series) -> float:
        return median(v for runs in side[point].values() for r in runs for v in r.each)

    return max(points, key=middle)


PROVENANCE = [
    "suite",
    "kernel",
    "processor",
    "reframe",
    "software_lock",
    "spack",
    "modules",
    "slurm",
]
DIGEST = "SystemDescription.digest"  # of all fields that a node reports
EVENTS = ("NodeHealth.last_failure",)  # texts on what happened, no property of a node
NOTHING = "nothing"  # the value of what is not reported
Side = Sequence[Sample]


def between(a: Side, b: Side, perflogs: Path) -> list[Finding]:
    """Everything that changed from A to B. Raises UserError where descriptions are broken."""
    return [*provenance(a, b), *software(a, b), *texts(a, b), *described(a, b, perflogs)]


def provenance(a: Side, b: Side) -> Iterator[Finding]:
    """What the headers record: suite, kernel, software lock, Slurm."""
    sides = [{id(s.header): s.header.provenance for s in side}.values() for side in (a, b)]
    for key in PROVENANCE:
        before, after = ({known.get(key, "unknown") for known in jobs} for jobs in sides)
        yield from _sets("", key, before, after)


def software(a: Side, b: Side) -> Iterator[Finding]:
    """Settings, and conditions of the machine, check by check."""
    before, after = _conditions(a), _conditions(b)
    for check, key in sorted(before.keys() & after.keys()):
        ends = ({key: min(side[check, key])} for side in (before, after))
        if is_setting(key) and not differences(*ends):
            continue  # but for a block of the problem size
        yield from _sets(check, key, before[check, key], after[check, key])


def _conditions(side: Side) -> dict[tuple[str, str], set[str]]:
    """The values of each check's settings and conditions of the machine, and its modes."""
    found: dict[tuple[str, str], set[str]] = {}
    good = [sample for sample in side if sample.status == "ok"]
    # Nearly all nodes of a job have its conditions and none of their own.
    alike = {id(s.header): s for s in good if not s.own_conditions}.values()
    for sample in [*alike, *(s for s in good if s.own_conditions)]:
        for key, text in sample.conditions.items():
            if of_the_machine(key) or is_setting(key) or key == "mode":
                found.setdefault((sample.header.check, key), set()).add(text)
    return found


def texts(a: Side, b: Side) -> Iterator[Finding]:
    """Host parameters and other texts that changed, each change with its nodes."""
    one, other = _newest_texts(a), _newest_texts(b)
    measured = {(s.node, s.header.check) for s in a} & {(s.node, s.header.check) for s in b}
    changes: dict[tuple[str, str, str], list[str]] = {}
    for node, name in one.keys() | other.keys():
        before, after = one.get((node, name), NOTHING), other.get((node, name), NOTHING)
        if before != after and (node, name.partition(".")[0]) in measured:
            changes.setdefault((name, before, after), []).append(node)
    for (name, before, after), nodes in sorted(changes.items()):
        yield _changed("", name, before, after, nodes)


def described(a: Side, b: Side, perflogs: Path) -> Iterator[Finding]:
    """What the nodes report of themselves: firmware, packages, devices."""
    before, after = (descriptions.of(side, perflogs) for side in (a, b))
    for change in uniformity.drift(before, after):
        values = _value(change.before), _value(change.after)
        yield _changed("", change.field, *values, change.nodes)


def _sets(check: str, name: str, one: set[str], other: set[str]) -> Iterator[Finding]:
    if one and other and one != other:
        yield _changed(check, name, " and ".join(sorted(one)), " and ".join(sorted(other)))


def _changed(check: str, what: str, before: str, after: str, nodes: Iterable[str] = ()) -> Finding:
    change = {"what": what, "before": before, "after": after}
    return finding.of(Kind.CHANGED, change, check=check, subject=str(nodesets.of(nodes)))


def _newest_texts(samples: Sequence[Sample]) -> dict[tuple[str, str], str]:
    """Texts that a node's newest run of a check gave, by node and metric."""
    newest: dict[tuple[str, str], Order] = {}
    for s in samples:
        key = (s.node, s.header.check)
        newest[key] = max(newest.get(key, s.header.order), s.header.order)
    return {
        (s.node, s.metric): str(s.value)
        for s in samples
        if s.status == "ok"
        and s.unit == "text"
        and s.metric not in EVENTS
        and "parameter" not in s.dims
        and s.header.order == newest[s.node, s.header.check]
    }


def _value(text: str | None) -> str:
    return NOTHING if text is None else text or "empty"
