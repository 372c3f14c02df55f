"""Two campaigns side by side: every figure of either, and what changed between them.

An outer join: what only one of them has is told, never left out. Two sessions of a sweep are
compared point by point, and each curve by the highest of the points that both have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets, units
from siteproof.analysis import before_after as rules
from siteproof.analysis.before_after import Change, Word
from siteproof.compare import changes
from siteproof.record import series
from siteproof.record.samples import Sample
from siteproof.record.series import SWEEP, JobValue, Series, comparable
from siteproof.sites import Metric, Site
from siteproof.sweeps import reading

Nodes = Mapping[str, list[JobValue]]


@dataclass(frozen=True)
class Row:
    """One figure that both have. nodes: measured in both. worst: nodes that lost most."""

    name: str
    role: str
    unit: str
    change: Change
    nodes: NodeSet
    worst: Sequence[tuple[str, float]] = ()
    of_a_point: bool = False  # of a sweep, of which there are many


@dataclass(frozen=True)
class Comparison:
    """A beside B. Each text of the lists is one line; rows: the gravest first."""

    rows: list[Row] = field(default_factory=list)
    not_comparable: list[str] = field(default_factory=list)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


def compare(site: Site, a: Sequence[Sample], b: Sequence[Sample], perflogs: Path) -> Comparison:
    """Compare two sets of samples. Raises UserError where descriptions of nodes are broken."""
    found = Comparison()
    first = _join(site, a)
    second = series.align(_join(site, b), first)
    for name in sorted({Place.of(key) for side in (first, second) for key in side}, key=str):
        one, other = (
            {k: v for k, v in side.items() if Place.of(k) == name} for side in (first, second)
        )
        _place(site, name, one, other, found)
    found.rows.extend(_maxima(site, first, second))
    found.rows.sort(key=lambda r: (list(Word).index(r.change.word), r.name, r.role))
    found.changed.extend(changes.between(a, b, perflogs))
    return found


@dataclass(frozen=True)
class Place:
    """What is compared with each other, if the conditions allow it."""

    name: str
    metric: str
    environment: str
    role: str

    @staticmethod
    def of(key: Series) -> Place:
        """The place of a series."""
        return Place(key.name, key.metric, key.environment, key.role)


def _join(site: Site, samples: Sequence[Sample]) -> dict[Series, dict[str, list[JobValue]]]:
    """The series, without the conditions that do not hinder a comparison."""
    joined: dict[Series, dict[str, list[JobValue]]] = {}
    for key, nodes in series.collect(site, samples, series.is_number, of_system=True).items():
        plain = comparable(key)
        for node, runs in nodes.items():
            joined.setdefault(plain, {}).setdefault(node, []).extend(runs)
    return joined


def _place(
    site: Site,
    place: Place,
    a: dict[Series, dict[str, list[JobValue]]],
    b: dict[Series, dict[str, list[JobValue]]],
    found: Comparison,
) -> None:
    told = f"{place.name} of {place.role}"
    if not a or not b:
        nodes = nodesets.of(node for side in (a, b) for held in side.values() for node in held)
        (found.only_a if a else found.only_b).append(f"{place.name} of {nodes}")
        return
    both = sorted(a.keys() & b.keys(), key=str)
    if not both:
        one, other = (dict(min(side, key=str).conditions) for side in (a, b))
        found.not_comparable.append(f"{told}: not comparable: {_difference(one, other)}")
    for key in both:
        common = a[key].keys() & b[key].keys()
        for mine, others, only in ((a, b, found.only_a), (b, a, found.only_b)):
            if alone := mine[key].keys() - others[key].keys():
                only.append(f"{place.name} of {nodesets.of(alone)}")
        if not common:
            found.not_comparable.append(f"{told}: not comparable: no node in both")
            continue
        row = _row(site, place, _few(a[key], common), _few(b[key], common))
        found.rows.append(replace(row, of_a_point=SWEEP in dict(key.conditions)))


def _few(nodes: Nodes, wanted: Iterable[str]) -> dict[str, list[JobValue]]:
    return {node: nodes[node] for node in sorted(wanted)}


def _row(site: Site, place: Place, a: Nodes, b: Nodes) -> Row:
    metric = site.catalogue[place.metric]
    first, second = (
        {n: median(r.value for r in runs) for n, runs in side.items()} for side in (a, b)
    )
    unit = _unit(metric, a, b)
    before, after = (_values(place, side, metric.unit, unit) for side in (a, b))
    change = rules.compare(before, after, metric.better)
    worst = rules.worst(first, second, metric.better) if len(a) > 1 else []
    return Row(place.name, place.role, unit, change, nodesets.of(a), worst)


def _unit(metric: Metric, a: Nodes, b: Nodes) -> str:
    """The unit in which all was printed, so that a reader finds his figures; else the metric's."""
    printed = {r.printed for side in (a, b) for runs in side.values() for r in runs}
    return printed.pop() or metric.unit if len(printed) == 1 else metric.unit


def _values(place: Place, nodes: Nodes, unit: str, to: str) -> list[float]:
    """What the noise is judged by: nodes, else a node's runs; of a sweep's point its trials."""
    if place.role == series.SYSTEM:
        found = [v for runs in nodes.values() for r in runs for v in r.each]
    elif len(nodes) > 1:
        found = [median(r.value for r in runs) for runs in nodes.values()]
    else:
        found = [r.value for runs in nodes.values() for r in runs]
    factor = units.convert(1, unit, to)
    return [float(f"{float(value * factor):.12g}") for value in found]  # 885, not 885.0000000001


def _maxima(site: Site, a: Mapping[Series, Nodes], b: Mapping[Series, Nodes]) -> Iterator[Row]:
    """The highest point of each curve of a sweep on either side, of the points that both have."""
    curves: dict[tuple[Series, str], list[Series]] = {}
    both = [key for key in a.keys() & b.keys() if SWEEP in dict(key.conditions)]
    known = reading.examine()[0] if both else {}
    for key in sorted(both, key=str):
        sweep = known.get(dict(key.conditions)[SWEEP])
        if sweep and site.catalogue[key.metric].better == "higher":
            rest = tuple((k, v) for k, v in key.dims if k != sweep.sweep.against)
            if rest != key.dims:
                curves.setdefault((replace(key, dims=rest), sweep.sweep.against), []).append(key)
    for (curve, axis), points in curves.items():
        if len(points) > 1:
            tops = [max(points, key=lambda p: _middle(side[p])) for side in (a, b)]  # noqa: B023
            at = [dict(top.dims)[axis] for top in tops]
            name = f"{curve.name}, highest of {len(points)}: {axis} {at[0]} -> {at[1]}"
            place = Place(name, curve.metric, curve.environment, series.SYSTEM)
            yield _row(site, place, a[tops[0]], b[tops[1]])


def _middle(nodes: Nodes) -> float:
    return median(v for runs in nodes.values() for r in runs for v in r.each)


def _difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    keys = sorted(k for k in one.keys() | other.keys() if one.get(k) != other.get(k))
    return ", ".join(f"{k} {one.get(k, 'unknown')} vs {other.get(k, 'unknown')}" for k in keys)
