"""What a criterion covers: every node, pair or link that owes a value, and what counts for it.

Also what jobs may have answered whose files cannot be read: nobody knows how they ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from itertools import chain

from siteproof.answers.attempts import of_system
from siteproof.record import pair_units
from siteproof.record.grouped import grouped
from siteproof.record.samples import LOST, UNREAD, Header, Sample, expected_nodes
from siteproof.record.sessions import Sessions
from siteproof.sites import Baseline, Criterion, Hardware, Site, Waiver, pairs
from siteproof.sites.pairs import Pair

Laid = Mapping[str, Collection[Pair]]  # the pairs (client, server) of a run, by their link
Excuses = Sequence[tuple[str, Waiver]]  # waivers with their keys in the site


def covered(
    site: Site,
    name: str,
    criterion: Criterion,
    found: Sequence[Sample],
    today: date,
    laid: Laid | None = None,
) -> tuple[dict[str, Hardware], Mapping[str, Sequence[Baseline]], Mapping[str, Excuses]]:
    """The units that a criterion covers, with their baselines and waivers.

    name: the criterion's key; found, laid: as of `units`.
    """
    own = [b for b in site.baselines.values() if b.metric == criterion.metric]
    excused = waived(site, name, criterion.metric, today)
    if criterion.links:
        of_links = units(site, criterion, found, laid)
        baselines = dict.fromkeys(of_links, [b for b in own if b.links])
        return of_links, baselines, _excused_units(of_links, excused)
    by_node = grouped((node, baseline) for baseline in own for node in site.promised(baseline))
    owed = nodes(site, criterion)
    typical = {unit: by_node.get(pair_units.node_of(unit), ()) for unit in owed}
    return owed, typical, _excused_units(owed, excused)


def waived(site: Site, name: str, metric: str, today: date) -> dict[str, list[tuple[str, Waiver]]]:
    """The nodes that may miss a criterion today, each with its waivers and their keys."""
    return grouped(
        (node, (key, waiver))
        for key, waiver in site.waivers.items()
        if waiver.holds(today) and waiver.covers(name, metric)
        for node in waiver.set
    )


def _excused_units(units: Iterable[str], excused: Mapping[str, Excuses]) -> dict[str, Excuses]:
    """The waivers of each unit: of its nodes, or of a GPU itself."""
    found: dict[str, Excuses] = {}
    for unit in units if excused else ():
        of_ends = (one for node in pair_units.ends(unit) for one in excused.get(node, ()))
        found[unit] = [(key, waiver) for key, waiver in of_ends if waiver.is_of(unit)]
    return found


def nodes(site: Site, criterion: Criterion) -> dict[str, Hardware]:
    """Every node or GPU that a criterion covers, with its hardware; or the system as a whole."""
    if of_system(criterion):
        return {site.system.system: Hardware()}
    found: dict[str, Hardware] = {}
    for role in site.roles_of(criterion):
        hardware = site.hardware_of(role)
        for unit in of_role(site, criterion.metric, role):
            found.setdefault(unit, hardware)  # of several roles the first counts, as in `role_of`
    return found


def of_role(site: Site, name: str, role: str) -> Iterable[str]:
    """The nodes of a role, or their GPUs, of which a metric has a value each.

    `devices` of the hardware state how many GPUs a node has.
    """
    every, metric = list(site.expected(role)), site.catalogue.get(name)
    if metric is None or not metric.of_gpus:
        return every
    pairs, count = pair_units.PEER_GPU in metric.point, site.hardware_of(role).gpus
    of_each = (
        pair_units.gpu_units(node, count, pairs=pairs, directed=metric.directed) for node in every
    )
    return chain.from_iterable(of_each)


def units(
    site: Site, criterion: Criterion, found: Sequence[Sample], laid: Laid | None = None
) -> dict[str, Hardware]:
    """Every pair or link that a criterion over links covers, with the sender's hardware.

    found: samples; they alone know the pairs of a random pattern. A node of such a link that was
    in no pair stands alone: it should have been in one. laid: the pairs of a run, instead of all.
    """
    if criterion.subject == "system":
        return {link: Hardware() for link in criterion.links}
    covered = set(site.promised(criterion))  # a look into a NodeSet parses the name each time
    units: dict[str, Hardware] = {}
    for key in criterion.links:
        if laid is None:
            of_link = _units_of_link(site, criterion, key, found)
        else:
            of_link = of_pairs(site, criterion, key, laid.get(key, ()))
        for unit in of_link:
            if not covered.isdisjoint(pair_units.ends(unit)):
                units[unit] = hardware(site, unit)
    return units


def of_pairs(site: Site, criterion: Criterion, link: str, laid: Iterable[Pair]) -> list[str]:
    """What pairs (client, server) owe: both directions, if each has a value."""
    both = criterion.subject == "pair" and site.catalogue[criterion.metric].directed
    turns = (turn for a, b in laid for turn in ([(a, b), (b, a)] if both else [(a, b)]))
    return list(dict.fromkeys(pair_units.name(criterion, *turn, link) for turn in turns))


def _units_of_link(
    site: Site, criterion: Criterion, key: str, found: Sequence[Sample]
) -> list[str]:
    """The pairs that a link's pattern fixes in advance, else those that samples show.

    Of a random pattern also the nodes that were in no pair.
    """
    link = site.system.links[key]
    if fixed := of_pairs(site, criterion, key, pairs.planned(site, link)):
        return fixed
    seen = _seen_pairs(criterion, key, found)
    if not seen:
        return []
    drawn = {node for pair in seen for node in pair}
    everybody = pairs.servers(site, link) | pairs.clients(site, link)
    left = [node for node in everybody if node not in drawn]
    return of_pairs(site, criterion, key, seen) + left


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


def unread_jobs(site: Site, sessions: Sessions) -> dict[str, list[Sample]]:
    """For each such job, by `file_of`: a sample of each node, and one of all else."""
    return {file_of(header): _of_job(site, header) for header in sessions.unread}


def samples_of(
    unread: Mapping[str, Sequence[Sample]], sessions: Sessions, job: Header, nodes: Collection[str]
) -> Sequence[Sample]:
    """The samples of one job, at least those of some nodes. unread: as of `unread_jobs`."""
    return unread[file_of(job)] if job.is_unread else sessions.of_job(job, nodes)


def file_of(header: Header) -> str:
    """The file of such a job, below the system's folder."""
    return f"{header.partition}/{header.provenance[UNREAD]}"


def _of_job(site: Site, header: Header) -> list[Sample]:
    partition = site.system.partitions.get(header.partition)
    nodes = site.having(partition.roles) if partition else site.system.inventory
    why = f"{header.provenance[UNREAD]} cannot be read"
    return [
        Sample(header, node, f"{header.check}.*", status=LOST, why=why)
        for node in ("", *(expected_nodes(header.expected) or nodes))
    ]
