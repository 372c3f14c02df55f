"""What a user meets: how long services were up, and whether all nodes see the same paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from fractions import Fraction

from siteproof.availability import window_figures
from siteproof.availability.window_figures import DOWNTIME, MONTH, WINDOW_HOURS
from siteproof.derivations.given import Given, Lack, Result
from siteproof.errors import UserError
from siteproof.record import descriptions
from siteproof.record.samples import Header, Sample

DAYS = 14  # of a criterion without the condition window_hours
DIGEST = "Namespace.digest"
MAX_NAMED = 4


def availability(given: Given) -> Iterator[Result]:
    """One of the metrics Availability.*, over the hours that the criterion requires, until now."""
    metric, end = given.criterion.metric, given.material.now
    hours = float(MONTH if metric == DOWNTIME else DAYS * 24)
    rule = given.criterion.conditions.get(WINDOW_HOURS)
    if rule:
        hours = _hours(rule.at_least or rule.exact or "", hours)
    begin = end - timedelta(hours=hours)
    found = window_figures.figures(given.site, given.material.perflogs, begin, end, now=end)
    one = found[metric]
    if one.value is None or not one.meets_conditions(given.criterion):
        yield Lack(one.why or given.missing(["probes"]).why)
        return
    why = f"{one.subject}, {one.measured_hours:.10g} of {one.period_hours:.10g} hours measured"
    yield given.sample(one.value, [], why)


def _hours(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise


def namespace(given: Given) -> Iterator[Result]:
    """How many paths of a file system not all nodes list."""
    yield from given.without(DIGEST)
    found = given.each(DIGEST)
    wanted = given.units(given.input(DIGEST))
    if lacking := [f"{DIGEST} of {node}" for node in wanted if node not in found]:
        yield given.missing(lacking)
        return
    samples = [found[node][-1] for node in wanted]
    listed = _listed(given, samples)
    everywhere = set.intersection(*map(set, listed.values())) if listed else set()
    differing = sorted(set().union(*listed.values()) - everywhere)
    more = f" and {len(differing) - MAX_NAMED} more" if len(differing) > MAX_NAMED else ""
    why = f"not everywhere: {', '.join(differing[:MAX_NAMED])}{more}" if differing else "all alike"
    yield given.sample(Fraction(len(differing)), samples, why)


def _listed(given: Given, samples: list[Sample]) -> dict[str, Mapping[str, str]]:
    """The paths of each node, as kept next to the samples; none where all digests are equal."""
    if len({str(sample.value) for sample in samples}) == 1:
        return {}
    kept: dict[int, dict[str, descriptions.Fields]] = {}
    found: dict[str, Mapping[str, str]] = {}
    for sample in samples:
        own = kept.setdefault(id(sample.header), {}) or _read(given, sample.header)
        kept[id(sample.header)] = own
        paths = own.get(sample.node, {})
        if descriptions.digest(paths) != str(sample.value):
            where = descriptions.path_of(given.material.perflogs, sample.header)
            raise UserError(where, f"paths of {sample.node} are not those listed")
        found[sample.node] = paths
    return found


def _read(given: Given, header: Header) -> dict[str, descriptions.Fields]:
    return descriptions.read(descriptions.path_of(given.material.perflogs, header))
