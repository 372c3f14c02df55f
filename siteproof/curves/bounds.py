"""What a sweep cannot exceed by the site's description: networks of its ends, a link, windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from siteproof import units
from siteproof.analysis import scaling
from siteproof.analysis.scaling import Bound, Facts, bandwidth_delay
from siteproof.curves.measured import Curve, Row
from siteproof.curves.sweep_runs import SweepRun
from siteproof.sites import FileSystem, Link, Site

WINDOWS = ("window", "buffer")  # what bounds the bytes under way of one stream
STREAMS = "streams"
TOGETHER = "together"  # a pattern of links


@dataclass(frozen=True)
class Reached:
    """A bound of a row. limit: in the curve's unit; share: of it that the median reached."""

    bound: Bound
    limit: float
    share: float


def known(site: Site, run: SweepRun, curve: Curve, row: Row) -> list[Reached]:
    """Every bound of a row that follows from the site, the tightest first; only rates have some."""
    if curve.unit not in units.UNITS or units.kind(curve.unit) != "rate":
        return []
    found = []
    for bound in scaling.bounds(_facts(site, run, row)):
        limit = float(units.convert(bound.rate, "B/s", curve.unit))
        found.append(Reached(bound, limit, row.point.median / limit))
    return found


def path(site: Site, run: SweepRun) -> Fraction | None:
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
    limits = [_of_roles(site, partition.roles), _speed(carrier) if carrier else None]
    return min(filter(None, limits), default=None)


def _of_roles(site: Site, roles: Sequence[str]) -> Fraction | None:
    """The fastest network of several roles, as any of their nodes may have measured."""
    rates = [rate for role in roles if (rate := _network(site, role)) is not None]
    return max(rates) if rates and len(rates) == len(roles) else None


def _network(site: Site, role: str) -> Fraction | None:
    """What all interfaces of a node carry that are bonded, else the fastest; bytes a second."""
    speeds = {
        name: nic.speed.to("B/s") for name, nic in site.hardware_of(role).nics.items() if nic.speed
    }
    rates = list(speeds.values())
    for bond in site.parameters(role).bond.values():
        members = [speeds.get(name, Fraction(0)) for name in bond.members or []]
        rates.append(sum(members, Fraction(0)))
    return max(rates, default=None)
