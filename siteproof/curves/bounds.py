"""What a sweep cannot exceed by what the site says: networks of its ends, a link, its windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from siteproof import units
from siteproof.analysis.scaling import Facts, bandwidth_delay, bounds
from siteproof.curves.measured import Curve, Row
from siteproof.curves.sweep_runs import SweepRun
from siteproof.sites import Link, Site

WINDOWS = ("window", "buffer")  # what bounds the bytes under way of one stream
STREAMS = "streams"


@dataclass(frozen=True)
class Reached:
    """A bound of a row. limit: in the curve's unit; share: of it that the median reached."""

    what: str
    limit: float
    share: float


def known(site: Site, run: SweepRun, curve: Curve, row: Row) -> list[Reached]:
    """Every bound of a row that the site tells, the tightest first; none of what is no rate."""
    if units.UNITS.get(curve.unit, ("", 0))[0] != "rate":
        return []
    found = bounds(_facts(site, run, row))
    limits = [(b.what, float(units.convert(b.rate, "B/s", curve.unit))) for b in found]
    return [Reached(what, limit, row.point.median / limit) for what, limit in limits]


def path(site: Site, run: SweepRun) -> Fraction | None:
    """The bytes under way that fill the run's link, if the site knows its speed and round trip."""
    link = _link(site, run)
    if link is None or link.speed is None or link.round_trip is None:
        return None
    return bandwidth_delay(link.speed.to("B/s"), link.round_trip.to("s"))


def _facts(site: Site, run: SweepRun, row: Row) -> Facts:
    link, told = _link(site, run), {**run.newest.conditions, **row.dims}
    serving = _servers(site, run)
    return Facts(
        nodes=1 if link else row.nodes,
        client=_network(site, _clients(site, run)),
        servers=len(site.expected(serving)) if serving else 0,
        server=_network(site, serving),
        link=link.speed.to("B/s") if link and link.speed else None,
        round_trip=link.round_trip.to("s") if link and link.round_trip else None,
        window=next((w for name in WINDOWS if (w := _whole(told, name))), None),
        streams=int(_whole(told, STREAMS) or 1),
    )


def _whole(told: Mapping[str, str], name: str) -> Fraction | None:
    text = told.get(name, "")
    return Fraction(int(text)) if text.isdigit() and int(text) else None


def _link(site: Site, run: SweepRun) -> Link | None:
    return site.system.links.get(run.place)


def _clients(site: Site, run: SweepRun) -> str | None:
    """The role that measured, if it did so over a network: a disk of its own is bound by none."""
    partition, link = site.system.partitions.get(run.partition), _link(site, run)
    there = site.system.file_systems.get(run.place)
    over_network = link or (there and (there.shared or there.servers))
    return partition.role if partition and over_network else None


def _servers(site: Site, run: SweepRun) -> str | None:
    file_system = site.system.file_systems.get(run.place)
    return file_system.servers if file_system else None


def _network(site: Site, role: str | None) -> Fraction | None:
    """What all interfaces of a node carry that are bonded, else the fastest; bytes a second."""
    if role is None:
        return None
    speeds = {
        name: nic.speed.to("B/s") for name, nic in site.hardware_of(role).nics.items() if nic.speed
    }
    bonds = [bond.members or [] for bond in site.parameters(role).bond.values()]
    bonded = [
        sum((speeds.get(name, Fraction(0)) for name in members), Fraction(0)) for members in bonds
    ]
    return max([*speeds.values(), *bonded], default=None)
