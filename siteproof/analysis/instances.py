"""Virtual machines in a cloud's listings: how many are ACTIVE at one instant, and why others fail.

Pure functions over what listings show. Times are seconds; those of the cloud since 1970.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from siteproof.record.grouped import grouped

ACTIVE, ERROR = "ACTIVE", "ERROR"
UNREACHABLE = "not reachable"  # it is ACTIVE, and was asked
CAUSES = ("no valid host", "quota", "image", "network", "timeout", UNREACHABLE, "other")
NONE = "none"  # in place of a cause where nothing failed
CLOUD, POLL = "launched_at", "poll"  # from what times to ACTIVE are known
P95 = 0.95
# In this order: a quota of ports is a quota, and a timeout of Neutron is the network's.
_PATTERNS = {
    "quota": r"quota|exceeds? .*limit",
    "no valid host": r"no valid host|exhausted all hosts|not enough (?:hosts|free)",
    "network": r"network|neutron|subnet|\bports?\b|ip address|virtual interface|\bvif\b",
    "image": r"\bimage|glance|flavor's (?:disk|memory)",
    "timeout": r"timed? ?out|timeout",
}


@dataclass(frozen=True)
class Request:
    """One request for servers. number: from 1 on; network: from 1 on; count: of servers."""

    number: int
    network: int
    count: int


@dataclass(frozen=True)
class Instance:
    """A server as a listing shows it. request: the number of the one that has created it.

    host: as this user sees it; empty: not shown. fault: why it failed, in the cloud's words.
    address: where it can be reached; empty: not shown.
    """

    request: int
    status: str
    host: str = ""
    created: float | None = None
    launched: float | None = None
    fault: str = ""
    address: str = ""

    @property
    def settled(self) -> bool:
        """Whether it has started or failed."""
        return self.status in (ACTIVE, ERROR)


@dataclass(frozen=True)
class Listing:
    """All servers of a test by their ids. at: when it was complete; whole: in one answer."""

    at: float
    instances: Mapping[str, Instance]
    whole: bool = True

    @property
    def active(self) -> set[str]:
        """The ids of those that run."""
        return {key for key, one in self.instances.items() if one.status == ACTIVE}


@dataclass
class Seen:
    """What all listings so far have shown.

    best: the last listing with the most servers that run at one instant, which are `running`.
    last: the last of all. first: when each was first seen to run. answered: those that have
    answered, where only these count; None: nobody asks them.
    """

    best: Listing = field(default_factory=lambda: Listing(0.0, {}))
    last: Listing = field(default_factory=lambda: Listing(0.0, {}))
    running: set[str] = field(default_factory=set)
    first: dict[str, float] = field(default_factory=dict)
    answered: set[str] | None = None

    @property
    def silent(self) -> set[str]:
        """The ids of those that run by the last listing, and have not answered."""
        return set() if self.answered is None else self.last.active - self.answered

    def take(self, listing: Listing) -> None:
        """One more listing.

        Of one in several answers only those count that ran in the listing before it, too: they all
        ran at an instant between the two.
        """
        active = listing.active
        sure = active if listing.whole else active & self.last.active
        sure = sure if self.answered is None else sure & self.answered
        if len(sure) >= len(self.running):
            self.best, self.running = listing, sure
        for key in active:
            self.first.setdefault(key, listing.at)
        self.last = listing


@dataclass(frozen=True)
class Figures:
    """What a test has found. hosts: None where the cloud shows none.

    seconds: of each server that ran, from its creation, by `clock`; failures: by cause.
    """

    instances: int
    per_network: int
    hosts: int | None
    seconds: Sequence[float]
    clock: str
    failures: Mapping[str, int]

    @property
    def middle(self) -> float:
        """The median of the times to ACTIVE."""
        return median(self.seconds)

    @property
    def p95(self) -> float:
        """The time within which 95 of 100 ran: a measured one, by the nearest rank."""
        return sorted(self.seconds)[math.ceil(P95 * len(self.seconds)) - 1]


def requests(servers: int, batch: int, networks: int) -> list[Request]:
    """The requests for so many servers: at most a batch each, the networks in turn.

    The servers are spread evenly, so that a batch may be smaller than required.
    """
    left = [servers // networks + (number < servers % networks) for number in range(networks)]
    found: list[Request] = []
    while any(left):
        for number in range(networks):
            if count := min(batch, left[number]):
                found.append(Request(len(found) + 1, number + 1, count))
                left[number] -= count
    return found


def figures(
    seen: Seen, planned: Collection[Request], begun: Mapping[int, float], refused: Mapping[int, str]
) -> Figures:
    """The figures of a test. begun: when each request was made, on the clock of the listings;
    refused: by number of the request, why it created nothing.
    """
    network_of = {one.number: one.network for one in planned}
    ran = [seen.best.instances[key] for key in seen.running]
    on_networks = Counter(network_of[one.request] for one in ran)
    hosts = {one.host for one in ran if one.host}
    seconds, clock = _times(seen, begun)
    return Figures(
        len(ran),
        max(on_networks.values(), default=0),
        len(hosts) or None,
        seconds,
        clock,
        failures(seen.last, planned, refused, len(seen.silent)),
    )


def _times(seen: Seen, begun: Mapping[int, float]) -> tuple[list[float], str]:
    """Seconds to ACTIVE by the cloud's own clock if it shows all of them, else as listed."""
    ran = [seen.last.instances[key] for key in sorted(seen.last.active)]
    by_cloud = [
        one.launched - one.created
        for one in ran
        if one.launched is not None and one.created is not None and one.launched >= one.created
    ]
    if len(by_cloud) == len(ran):
        return by_cloud, CLOUD
    listed = [
        seen.first[key] - begun[seen.last.instances[key].request]
        for key in sorted(seen.last.active)
    ]
    return listed, POLL


def failures(
    last: Listing, planned: Iterable[Request], refused: Mapping[int, str], silent: int = 0
) -> dict[str, int]:
    """How many servers do not run at the end, by cause; those without an answer are a timeout.

    silent: how many run, and do not answer.
    """
    there = grouped((one.request, one) for one in last.instances.values())
    found: Counter[str] = Counter({UNREACHABLE: silent})
    for request in planned:
        listed = there.get(request.number, [])
        found.update(_cause_of(one) for one in listed if one.status != ACTIVE)
        missing = request.count - len(listed)
        if missing > 0:
            why = refused.get(request.number)
            found["timeout" if why is None else cause(why)] += missing
    return {name: found[name] for name in CAUSES if found[name]}


def _cause_of(one: Instance) -> str:
    if one.status == ERROR:
        return cause(one.fault)
    return "timeout" if one.status == "BUILD" else "other"


def cause(message: str) -> str:
    """One of CAUSES, from a message of the cloud."""
    for name, pattern in _PATTERNS.items():
        if re.search(pattern, message, re.IGNORECASE):
            return name
    return "other"


def lacking(needed: Mapping[str, int], left: Mapping[str, int | None]) -> str:
    """What of a quota does not suffice: `320 instances, 118 are left`; empty if all does.

    left: what is left of each; None: no limit.
    """
    found = []
    for name, number in needed.items():
        rest = left.get(name)
        if rest is not None and rest < number:
            found.append(f"{number} {name}, {max(rest, 0)} are left")
    return "; ".join(found)
