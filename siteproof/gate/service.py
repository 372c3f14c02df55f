"""Where every node of the inventory is after the gate's decision: in service, or out by whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.gate import commands
from siteproof.gate.commands import Cluster, Standing
from siteproof.gate.decision import Decision, Ruling
from siteproof.record.finding import Finding, Kind
from siteproof.record.pair_units import grouped
from siteproof.slurm.records import Reservation
from siteproof.wording.findings import days, sentence

MAX_GROUPS = 4  # in the line of the nodes that stay out
MAX_SET = 60  # characters; a longer node set is a number there


class Service(Enum):
    """Whether users' jobs can run on a node, and who keeps them away if not."""

    IN_SERVICE = "in service"
    STILL_IN_SERVICE = "should be out, still in service"
    PASSED = "passed and still in quarantine"
    BY_US = "out: by us"
    BY_OTHERS = "out: by others"
    DOWN = "down, not in quarantine"
    GOES_BACK = "goes back"
    STAYS_OUT = "stays out"


OUT = (Service.BY_US, Service.BY_OTHERS, Service.DOWN, Service.STAYS_OUT)


@dataclass(frozen=True)
class Place:
    """A node. why: who has it, or why it is left alone. since: seconds since 1970."""

    node: str
    service: Service
    why: Finding | None = None
    since: float | None = None


@dataclass(frozen=True)
class Quarantine:
    """Our reservation of a partition.

    since: its nodes that the gate has put there, with the time; infinity if that is not known.
    tested: those that were measured since then.
    """

    reservation: Reservation
    since: Mapping[str, float]
    tested: NodeSet


def places(
    decision: Decision,
    in_slurm: NodeSet,
    cluster: Cluster | None,
    quarantines: Iterable[Quarantine],
    left_alone: Mapping[str, Finding],
) -> list[Place]:
    """The place of each node of the inventory, every node once.

    in_slurm: the nodes of its Slurm partitions. cluster: as Slurm has it now; None if it is silent.
    left_alone: why the gate does not touch a node.
    """
    of_node = {node: q for q in quarantines for node in q.reservation.nodes}
    found = []
    for ruling in decision.rulings.values():
        if cluster is None or ruling.node not in in_slurm:
            service = Service.GOES_BACK if ruling.back else Service.STAYS_OUT
            found.append(Place(ruling.node, service))
        else:
            found.append(_place(ruling, cluster, of_node.get(ruling.node), left_alone))
    return found


def _place(
    ruling: Ruling,
    cluster: Cluster,
    quarantine: Quarantine | None,
    left_alone: Mapping[str, Finding],
) -> Place:
    node = ruling.node
    known = cluster.nodes.get(node)
    if known is None:
        return Place(node, Service.BY_OTHERS, commands.unknown(node))
    standing = commands.standing(known)
    if standing in (Standing.BY_SLURM, Standing.BY_PERSON):
        return Place(node, Service.BY_OTHERS, commands.taken_out(known))
    if quarantine and node not in quarantine.since:
        return Place(node, Service.BY_OTHERS, Finding(Kind.PUT_BY_OTHERS, node))
    if quarantine:
        since = quarantine.since[node]
        if not ruling.back or standing is Standing.DEAD:
            return Place(node, Service.BY_US, since=since)
        if node in quarantine.tested:
            return Place(node, Service.PASSED, since=since)
        return Place(node, Service.BY_US, Finding(Kind.NOT_TESTED_INSIDE, node), since)
    if standing is Standing.DEAD:
        return Place(node, Service.DOWN, commands.not_responding(known), known.since or None)
    if standing is Standing.BY_US:
        return Place(node, Service.BY_US)
    if ruling.back:
        return Place(node, Service.IN_SERVICE)
    return Place(node, Service.STILL_IN_SERVICE, left_alone.get(node))


def table(found: Iterable[Place], decision: Decision) -> list[str]:
    """The places, a line each group of nodes; the numbers add up to the inventory."""
    groups = grouped(((one.service, _detail(one, decision)), one.node) for one in found)
    order = list(Service)
    return [
        f"{len(nodes):6}  {service.value}{detail}: {nodesets.of(nodes)}"
        for (service, detail), nodes in sorted(groups.items(), key=lambda g: order.index(g[0][0]))
    ]


def _detail(place: Place, decision: Decision) -> str:
    if place.service is Service.BY_US:
        why = sentence(place.why) if place.why else decision.rulings[place.node].state
        return f"{_since(place.since)}, {why}"
    if place.service is Service.PASSED:
        return _since(place.since)
    return f", {sentence(place.why)}" if place.why else ""


def _since(moment: float | None) -> str:
    if moment is None:
        return ""
    if moment == float("inf"):
        return ", since an unknown time"
    return f", since {datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"


def who_stays_out(found: Iterable[Place], decision: Decision) -> str:
    """The nodes that users do not have, or should not have, and why, in a line."""
    everything = list(found)
    out = [place for place in everything if place.service in (*OUT, Service.STILL_IN_SERVICE)]
    if not out:
        return f"none of {len(everything)} nodes stays out"
    groups = grouped((_reason(place, decision), place) for place in out)
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))
    texts = [
        f"{_named(group)} {why}{_first_since(group) or _failing_since(group, decision)}"
        for why, group in largest[:MAX_GROUPS]
    ]
    if rest := [place for _, group in largest[MAX_GROUPS:] for place in group]:
        texts.append(f"{_named(rest)} for other reasons")
    return f"{len(out)} of {len(everything)} nodes stay out: {'; '.join(texts)}"


def waits_for_us(found: Iterable[Place]) -> bool:
    """Whether a node stays out that is not somebody else's matter."""
    waiting = (Service.BY_US, Service.DOWN, Service.STAYS_OUT, Service.STILL_IN_SERVICE)
    return any(place.service in waiting for place in found)


def _first_since(group: Iterable[Place]) -> str:
    """Since when the gate has them, or the first of them; the reason of others has it."""
    times = {_since(p.since): p.since or 0 for p in group if p.service is Service.BY_US}
    first = min(times, key=lambda text: times[text], default="")
    return f"{first} or later" if len(times) > 1 else first


def _failing_since(group: Iterable[Place], decision: Decision) -> str:
    """Since when the reason of nodes holds that nobody has taken out; empty if one's is unknown."""
    served = (Service.STAYS_OUT, Service.STILL_IN_SERVICE)
    nodes = [place.node for place in group if place.service in served]
    found = [why for node in nodes for why in decision.rulings[node].findings[:1]]
    return f", since {days(found)}" if found and all(why.since for why in found) else ""


def _reason(place: Place, decision: Decision) -> str:
    """Why a node stays out, as short as it can be said of many nodes."""
    if place.service is not Service.STILL_IN_SERVICE and place.why:
        return sentence(place.why)
    ruling = decision.rulings[place.node]
    named = (why.criterion or why.metric or why.check for why in ruling.findings)
    about = next(filter(None, named), "")  # of the most severe reason
    reason = f"{ruling.state}{f' ({about})' if about else ''}"
    if place.service is Service.STILL_IN_SERVICE:
        left = f", {sentence(place.why)}" if place.why else ""
        return f"{reason}, still in service{left}"
    return reason


def _named(group: Sequence[Place]) -> str:
    folded = str(nodesets.of(place.node for place in group))
    return folded if len(folded) <= MAX_SET else f"{len(group)} nodes"
