"""What a criterion covers: every node, pair or link that owes a value."""

from __future__ import annotations

from collections.abc import Sequence

from siteproof.answers.attempts import of_system
from siteproof.record import pair_units
from siteproof.record.samples import Sample
from siteproof.sites import Criterion, Hardware, Site, pairs


def nodes(site: Site, criterion: Criterion) -> dict[str, Hardware]:
    """Every node that a criterion covers, with its hardware; or the system as a whole."""
    if of_system(criterion):
        return {site.system.system: Hardware()}
    found: dict[str, Hardware] = {}
    for role in site.roles_of(criterion):
        hardware = site.hardware_of(role)
        for node in site.expected(role):
            found.setdefault(node, hardware)  # of several roles the first counts, as in `role_of`
    return found


def units(site: Site, criterion: Criterion, found: Sequence[Sample]) -> dict[str, Hardware]:
    """Every pair or link that a criterion over links covers, with the sender's hardware.

    found: samples; they alone know the pairs of a random pattern. A node of such a link that was
    in no pair stands alone: it should have been in one.
    """
    if criterion.subject == "system":
        return {link: Hardware() for link in criterion.links}
    covered = set(site.promised(criterion))  # a look into a NodeSet parses the name each time
    units: dict[str, Hardware] = {}
    for key in criterion.links:
        for unit in _units_of_link(site, criterion, key, found):
            if not covered.isdisjoint(pair_units.ends(unit)):
                units[unit] = hardware(site, unit)
    return units


def _units_of_link(
    site: Site, criterion: Criterion, key: str, found: Sequence[Sample]
) -> list[str]:
    """The pairs that a link's pattern fixes in advance, else those that samples show."""
    link = site.system.links[key]
    expected = pairs.directed if _both_ways(site, criterion) else pairs.planned
    fixed = [pair_units.name(criterion, *pair, key) for pair in expected(site, link)]
    return fixed or _drawn(site, criterion, key, found)


def _both_ways(site: Site, criterion: Criterion) -> bool:
    """Whether a pair owes a value of each direction."""
    return criterion.subject == "pair" and site.catalogue[criterion.metric].directed


def _drawn(site: Site, criterion: Criterion, key: str, found: Sequence[Sample]) -> list[str]:
    """The pairs that were drawn for a link, as samples show, and the nodes that were in none."""
    link = site.system.links[key]
    seen = _seen_pairs(criterion, key, found)
    if not seen:
        return []
    drawn = {node for pair in seen for node in pair}
    everybody = pairs.servers(site, link) | pairs.clients(site, link)
    if _both_ways(site, criterion):
        seen = [turn for a, b in seen for turn in ((a, b), (b, a))]
    units = dict.fromkeys(pair_units.name(criterion, *pair, key) for pair in seen)
    return [*units, *(node for node in everybody if node not in drawn)]


def _seen_pairs(criterion: Criterion, key: str, found: Sequence[Sample]) -> list[tuple[str, str]]:
    """The pairs of a link that the samples of the criterion's check are of."""
    check = criterion.metric.partition(".")[0]
    return [
        (sample.node, sample.dims[pair_units.PEER])
        for sample in found
        if sample.header.check == check
        and pair_units.of_pairs(sample)
        and pair_units.link_of(sample) in ("", key)
    ]


def hardware(site: Site, unit: str) -> Hardware:
    """The hardware of a node, or of the sender of a pair."""
    role = site.role_of(pair_units.ends(unit)[0])
    return site.hardware_of(role) if role else Hardware()
