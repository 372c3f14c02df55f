"""The headline metrics of all nodes over time, read from the history in one pass, as arrays.

Thousands of runs are evaluated with numpy; nothing here loops over values.

Bounds, baselines and medians as marks of a figure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from siteproof import units
from siteproof.answers.attempts import MIDDLES, why_not
from siteproof.history import tables
from siteproof.record import series
from siteproof.record.finding import NOT_TRIED
from siteproof.record.pair_units import LINK
from siteproof.record.samples import Sample
from siteproof.record.series import Series
from siteproof.report.figure.marked import Mark
from siteproof.report.material import Material
from siteproof.sites import Baseline, Criterion, Hardware, Site
from siteproof.sites.promise import SIGNS
from siteproof.trend import lines
from siteproof.wording.findings import stated

FAILED, NO_ANSWER = 1, 2
SESSIONS = 1200  # the newest: some years of one a day
# Of one metric, as medians are held in memory until all are known: a row for the trials of a node
# in a job, or a failure. Nodes, sessions and metrics are numbers, so no texts are fetched.
QUERY = """
WITH n AS (SELECT unnest($nodes) AS node, unnest($places) AS place),
     t AS (SELECT unnest($sessions) AS session, unnest($numbers) AS number)
SELECT n.place, t.number AS session, $which AS metric, s.series,
       coalesce(median(s.base), 'nan'::DOUBLE) AS value,
       CASE WHEN s.status = 'ok' THEN 0 WHEN list_contains($untried, s.status) THEN 2 ELSE 1 END
           AS status
FROM samples s JOIN n USING (node) JOIN t USING (session)
WHERE s.system = $system AND s.source = 'siteproof' AND s.metric = $metric
GROUP BY 1, 2, 4, 6, s.time
"""
KINDS = """
SELECT series, min(metric), min(environment), min(dims), min(conditions) FROM samples
WHERE system = $system AND source = 'siteproof' AND status = 'ok'
  AND list_contains($metrics, metric)
GROUP BY series ORDER BY max(place) DESC, max(time) DESC, series
"""

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Past:
    """Values (one for each node, job and series: the median of its trials) and failures.

    Arrays of equal length: place (of a node in nodes), metric (in metrics), number of the series,
    session (in sessions), value in the base unit of its kind, status: 0, FAILED or NO_ANSWER.
    A failure has no value; that of a whole check has the metric Check.*. same: of each series the
    one that it is counted with, as both differ by a block of the problem only.
    """

    nodes: Sequence[str]
    roles: Sequence[str]
    role: Ints
    metrics: Sequence[str]
    sessions: Sequence[str]
    starts: Sequence[datetime]
    place: Ints
    metric: Ints
    series: NDArray[np.uint64]
    session: Ints
    value: Floats
    status: Ints
    same: Mapping[int, int]

    def of_series(self, number: int, role: str) -> Flags:
        """Which rows are values of a series and role. number: as in the history."""
        rows: Flags = self.good & (self.series == np.uint64(self.same.get(number, number)))
        rows &= self.role[self.place] == self.roles.index(role)
        return rows

    @cached_property
    def good(self) -> Flags:
        """Which rows are values."""
        good: Flags = (self.status == 0) & np.isfinite(self.value)
        return good

    @cached_property
    def group(self) -> Ints:
        """Of each row the number of its series and role, within which values are compared."""
        number = np.unique(self.series, return_inverse=True)[1]
        return number * len(self.roles) + self.role[self.place]


def read(material: Material) -> Past | None:
    """The past of a system's headline speeds; None where there is none."""
    site = material.site
    metrics = _metrics(site)
    nodes = list(dict.fromkeys(n for role in site.system.nodes for n in site.expected(role)))
    sessions = material.history.sql(
        "SELECT session, min(time) FROM runs WHERE system = ? AND source = 'siteproof' "
        "GROUP BY session ORDER BY min(place), min(time), session",
        [material.system],
    )[-SESSIONS:]
    if not (metrics and nodes and sessions):
        return None
    names = [*metrics, *sorted({f"{name.partition('.')[0]}.*" for name in metrics})]
    shared = {
        "nodes": nodes,
        "places": list(range(len(nodes))),
        "system": material.system,
        "sessions": [s for s, _ in sessions],
        "numbers": list(range(len(sessions))),
        "untried": list(NOT_TRIED),
    }
    of_each = [
        material.history.columns(QUERY, {**shared, "metric": name, "which": number})
        for number, name in enumerate(names)
    ]
    columns = {key: np.concatenate([one[key] for one in of_each]) for key in of_each[0]}
    if not len(columns["place"]):
        return None
    same = _same(material, metrics)
    known, back = np.unique(columns["series"], return_inverse=True)
    columns["series"] = np.array([same.get(int(n), int(n)) for n in known], np.uint64)[back]
    roles = list(site.system.nodes)
    return Past(
        nodes,
        roles,
        np.array([roles.index(site.role_of(n) or roles[0]) for n in nodes]),
        names,
        [s for s, _ in sessions],
        [at.replace(tzinfo=UTC) for _, at in sessions],
        **columns,
        same=same,
    )


def _metrics(site: Site) -> list[str]:
    """The headline metrics of nodes by which these may be ranked."""
    return [
        name
        for name, metric in site.catalogue.items()
        if series.is_headline(metric) and LINK not in metric.conditions
    ]


def _same(material: Material, metrics: Sequence[str]) -> dict[int, int]:
    """Series that differ by a block of the problem's size, as after an update of the kernel."""
    numbers: dict[Series, int] = {}
    found: dict[int, int] = {}
    for number, metric, environment, dims, conditions in material.history.sql(
        KINDS, {"system": material.system, "metrics": list(metrics)}
    ):
        key = lines.key_of(metric, environment, json.loads(dims), json.loads(conditions))
        earlier = series.counted_as([key], numbers)[key]
        found[int(number)] = numbers[key] = numbers.get(earlier, int(number))
    return found


_SIGN = {">=": "≥", "<=": "≤", "=": "="}


def slug(text: str) -> str:
    """A text as part of an anchor: Stream.triad is stream-triad."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "figure"


def number_of(sample: Sample) -> int:
    """The number of a sample's series in the history."""
    part = tables.context(sample.header, sample.own_conditions).part
    return part ^ tables.of_metric(sample.metric) ^ tables.of_dims(sample.dims)


def criteria_of(site: Site, key: Series, like: Sample) -> dict[str, Criterion]:
    """The criteria with a number that values such as this sample answer, by id."""
    return {
        name: criterion
        for name, criterion in site.criteria.items()
        if criterion.metric == key.metric
        and criterion.bound is not None
        and key.role in site.roles_of(criterion)
        and not why_not(criterion, like)
    }


def unit_of(criteria: Iterable[Criterion], site: Site, key: Series, own: str) -> str:
    """The unit of the contract, else that in which all was printed, else the catalogue's."""
    for criterion in criteria:
        return criterion.bound_value(site.hardware_of(key.role)).unit
    return own or site.catalogue[key.metric].unit


def marks(site: Site, key: Series, criteria: dict[str, Criterion], unit: str) -> list[Mark]:
    """The bounds of these criteria, and the baselines of the series, in a unit.

    A bound is the worst value that still passes, so it includes the rounding. A bound of the median
    or mean of all nodes judges no single node.
    """
    facts, metric = site.hardware_of(key.role), site.catalogue[key.metric]
    found: list[Mark] = []
    for name, criterion in criteria.items():
        sign = _SIGN[SIGNS[criterion.kind]]
        value = stated(float(criterion.bound_value(facts).to(unit)), unit)
        rounds = f" ({criterion.rounding_rule})" if criterion.step else ""
        found += _sides(
            "bound", criterion, (metric.unit, unit), facts, f"{name} {sign} {value}{rounds}"
        )
    return found + baselines(site, key.metric, key.role, unit)


def baselines(
    site: Site, metric: str, role: str, unit: str, links: Sequence[str] = ()
) -> list[Mark]:
    """The baselines of a metric on a role, or over links, in a unit."""
    facts, own = site.hardware_of(role), site.catalogue[metric].unit
    found: list[Mark] = []
    for name, baseline in site.baselines.items():
        covers = baseline.metric == metric and role in site.roles_of(baseline)
        if covers and list(baseline.links) == list(links):
            kind, limit = baseline.limit(own, facts)
            value = stated(converted(limit.value, own, unit), unit)
            text = f"baseline {name} {_SIGN[SIGNS[kind]]} {value}"
            found += _sides("baseline", baseline, (own, unit), facts, text)
    return found


def _sides(
    kind: str, promise: Criterion | Baseline, own_and: tuple[str, str], facts: Hardware, text: str
) -> Iterator[Mark]:
    """A mark for each side on which a promise has a limit."""
    own, unit = own_and
    whom = f", {promise.scope}" if promise.scope in MIDDLES else ""
    for side, limit in zip(("at_least", "at_most"), promise.limits(own, facts), strict=True):
        if limit is not None:
            yield Mark(
                kind,
                converted(limit.value, own, unit),
                text + whom,
                "" if whom else side,
                limit.inclusive,
            )


def own_name(base: str, seen: dict[str, int]) -> str:
    """A name that no other figure has: the base, from the second on with a number.

    seen: how often each base was used; it is kept up to date.
    """
    seen[base] = seen.get(base, 0) + 1
    return base + (f"-{seen[base]}" if seen[base] > 1 else "")


def converted(value: Decimal | Fraction | int, unit: str, to: str) -> float:
    """A value in another unit, as a float."""
    return float(units.convert(value, unit, to))
