"""The capacity of a cloud: servers in batches over networks of their own, until all run or fail.

One point of a sweep. What it creates carries the mark of its session, and is removed at its end;
whether all is gone is read from the cloud.

Virtual machines in a cloud's listings: how many are ACTIVE at one instant, and why others fail.

What the listings show is judged by pure functions. Times are seconds; the cloud's since 1970.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from openstack.exceptions import raise_from_response

from siteproof.record.pair_units import grouped
from siteproof.services import openstack_api, runner, ssh
from siteproof.services.openstack_api import ERRORS, Cloud
from siteproof.services.steps import Job, StepFailed, Steps, without_secrets
from siteproof.units import count

UNLIMITED = "unlimited"  # a rate: the next request as soon as the one before is answered
LAUNCH, REMOVE, CLEAN = 0.6, 0.25, 0.12  # shares of a point's time
POLL = 3.0  # seconds between two listings, at least
SHARE = 4  # a listing takes at most one part in so many of the cloud's time
MAX_ANSWERS = 200  # of one listing
PAGE = 1000  # servers in an answer; a cloud may give fewer
_NETWORK_QUOTA = {"networks": "network", "subnets": "subnet", "ports": "port"}
_COMPUTE_QUOTA = {
    "instances": ("maxTotalInstances", "totalInstancesUsed"),
    "cores": ("maxTotalCores", "totalCoresUsed"),
    "MiB of memory": ("maxTotalRAMSize", "totalRAMUsed"),
}
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")  # of a server: it becomes part of a path
KNOCK = 5.0  # seconds for which a server may take to answer a look
AT_ONCE = 64  # servers that are looked at
AGAIN = 60.0  # seconds after which what was deleted and is still there is deleted once more
_MAX_REASONS = 20  # different ones, on stderr


@dataclass(frozen=True)
class CapacityJob(Job):
    """A point. rate: requests a minute; 0: as fast as possible. limit: seconds of all of it."""

    servers: int = 1
    batch: int = 1
    rate: int = 0
    networks: int = 1
    limit: float = 3600.0

    @property
    def module(self) -> str:
        """This one."""
        return "capacity"

    @property
    def clean_seconds(self) -> float:
        """Removing hundreds of servers takes longer than a step of one."""
        return max(self.seconds, CLEAN * self.limit)


def job_of(job: Job, values: Mapping[str, str]) -> CapacityJob:
    """The job of a point. values: servers, batch, rate, networks, limit."""
    numbers = {key: int(values[key]) for key in ("servers", "batch", "networks")}
    rate = 0 if values["rate"] == UNLIMITED else int(values["rate"])
    return CapacityJob(**{**vars(job), **numbers}, rate=rate, limit=float(values["limit"]))


def main(path: str, *given: str) -> None:
    """Measure the point that KEY=VALUE arguments describe, at the service that a file describes."""
    runner.print_records(job_of(runner.load(Path(path)), dict(one.split("=", 1) for one in given)))


def test(job: CapacityJob, steps: Steps) -> None:
    """Networks, servers, figures, and the removal of all."""
    cloud = Cloud(job)
    with steps.step("login"):
        image = cloud.api.image.find_image(job.service.image, ignore_missing=False)
        flavor = cloud.api.compute.find_flavor(job.service.flavor, ignore_missing=False)
        left = _quota(cloud)
    how = {"reachable": job.service.reachable} if job.service.reachable else {}
    steps.condition(flavor=job.service.flavor, image=job.service.image, **how)
    with steps.step("quota"):
        if lacks := lacking(_needed(job, flavor), left):
            raise StepFailed(f"it needs {lacks}")
    with steps.step("networks", seconds=job.seconds * job.networks):
        networks = [_network(cloud, number) for number in range(1, job.networks + 1)]
    launch = _Launch(cloud, networks, f"{image.id}", f"{flavor.id}")
    try:
        with steps.step("launch", seconds=LAUNCH * job.limit):
            launch.all()
        _report(cloud, steps, launch)
    finally:
        begun = time.monotonic()
        with steps.step("remove", seconds=REMOVE * job.limit):
            launch.remove()
    steps.value("cleanup_seconds", round(time.monotonic() - begun, 3), "s")


def _needed(job: CapacityJob, flavor: Any) -> dict[str, int]:
    return {
        "instances": job.servers,
        "cores": job.servers * int(flavor.vcpus),
        "MiB of memory": job.servers * int(flavor.ram),
        "networks": job.networks,
        "subnets": job.networks,
        "ports": job.servers,
    }


def _quota(cloud: Cloud) -> dict[str, int | None]:
    """What is left of each quota of this project; None: no limit, or not shown."""
    limits = _object(cloud.api.compute.get("/limits"), "limits").get("absolute", {})
    project = cloud.api.current_project_id
    answer = cloud.api.network.get(f"/quotas/{project}/details.json")
    shown = answer.json().get("quota", {}) if answer.status_code == 200 else {}
    found = {
        name: _left(limits.get(most), limits.get(used))
        for name, (most, used) in _COMPUTE_QUOTA.items()
    }
    for name, key in _NETWORK_QUOTA.items():
        one = shown.get(key, {})
        found[name] = _left(one.get("limit"), one.get("used"))
    return found


def _left(most: object, used: object) -> int | None:
    if not isinstance(most, int) or most < 0:
        return None
    return most - used if isinstance(used, int) else most


def _object(answer: Any, key: str) -> dict[str, Any]:
    """The object under a key of an answer. Raises StepFailed."""
    raise_from_response(answer)
    found = answer.json().get(key)
    if not isinstance(found, dict):
        raise StepFailed(f"the answer has no '{key}'")
    return found


def _network(cloud: Cloud, number: int) -> str:
    """The id of a new network with an IPv4 subnet of 65 000 addresses."""
    name = f"{cloud.job.mark}-n{number}"
    made = cloud.api.network.create_network(name=name)
    cloud.api.network.create_subnet(
        name=name, network_id=made.id, ip_version=4, cidr=f"10.{100 + number}.0.0/16"
    )
    return f"{made.id}"


class _Launch:
    """The servers of a point: requested, listed and removed. networks: their ids, in order."""

    def __init__(self, cloud: Cloud, networks: list[str], image: str, flavor: str) -> None:
        assert isinstance(cloud.job, CapacityJob)
        self.job, self._cloud, self._networks = cloud.job, cloud, networks
        self._image, self._flavor = image, flavor
        self.planned = requests(self.job.servers, self.job.batch, self.job.networks)
        self.begun: dict[int, float] = {}  # when each request was made
        self.refused: dict[int, str] = {}
        self.noted: Counter[str] = Counter()  # what went wrong, and did not end the test
        self.seen = Seen(answered=set() if self.job.service.reachable else None)
        self._next_listing = 0.0
        own = re.escape(self.job.mark)
        self._name = re.compile(rf"{own}-n[0-9]{{1,3}}-r([0-9]{{1,5}})(?:-[0-9]{{1,5}})?")

    def all(self) -> None:
        """Request all servers and wait until each runs or has failed, or the time is over.

        The time ends before that of the step, so that there are figures then, too.
        """
        start, whole = time.monotonic(), LAUNCH * self.job.limit
        reserve = min(self.job.seconds, whole / 4)
        self._until_settled(start, start + whole - 2 * reserve)
        self._ask_for_faults(start + whole - reserve)

    def _until_settled(self, start: float, end: float) -> None:
        left = list(self.planned)
        while time.monotonic() < end:
            if left and time.monotonic() >= self._due(start, left[0]):
                self._request(left.pop(0))
            if time.monotonic() >= self._next_listing:
                if not left:
                    self._knock(end)
                self._look()
                if not left and self._settled():
                    return
            self._wait(self._due(start, left[0]) if left else end)
        self.seen.take(self._listing())

    def _ask_for_faults(self, end: float) -> None:
        """Read the faults that the last listing does not have, one by one, until a time.

        Nova lists none of servers that no scheduler has placed (they are in its cell 0).
        """
        last = self.seen.last
        found = dict(last.instances)
        for key, one in last.instances.items():
            if one.status == ERROR and not one.fault and time.monotonic() < end:
                shown = _object(self._cloud.api.compute.get(f"/servers/{key}"), "server")
                found[key] = replace(one, fault=_fault(shown))
        self.seen.last = replace(last, instances=found)

    def _due(self, start: float, request: Request) -> float:
        """When a request is to be made, by the rate."""
        return start + (request.number - 1) * 60 / self.job.rate if self.job.rate else start

    def _wait(self, due: float) -> None:
        rest = min(due, self._next_listing) - time.monotonic()
        time.sleep(max(rest, 0))

    def _settled(self) -> bool:
        """Whether each server of a request that was accepted runs, and answers, or has failed."""
        listed = self.seen.last.instances.values()
        accepted = sum(one.count for one in self.planned if one.number not in self.refused)
        settled = all(one.settled for one in listed) and not self.seen.silent
        return len(listed) >= accepted and settled

    def _request(self, request: Request) -> None:
        """Request servers; a refusal is kept with its reason, and ends nothing."""
        number = request.number
        server = {
            "name": f"{self.job.mark}-n{request.network}-r{number}",
            "imageRef": self._image,
            "flavorRef": self._flavor,
            "networks": [{"uuid": self._networks[request.network - 1]}],
            "min_count": request.count,
            "max_count": request.count,
        }
        if self.job.service.zone:
            server["availability_zone"] = self.job.service.zone
        self.begun[number] = time.monotonic()
        try:
            answer = self._cloud.api.compute.post("/servers", json={"server": server})
            raise_from_response(answer)
        except ERRORS as error:
            self.refused[number] = self._why(error)

    def _knock(self, end: float) -> None:
        """Look at port 22 of each server that runs and has not answered, if only these count.

        None is looked at after a time, however many do not answer.
        """
        silent, listed = sorted(self.seen.silent), self.seen.last.instances
        if self.seen.answered is None or not silent:
            return
        with ThreadPoolExecutor(AT_ONCE) as pool:
            each = pool.map(
                lambda key: time.monotonic() < end and answers(listed[key].address), silent
            )
            self.seen.answered.update(key for key, good in zip(silent, each, strict=True) if good)

    def _look(self) -> None:
        """One listing. One that fails is none: the next one counts, and the last one must not."""
        try:
            self.seen.take(self._listing())
        except ERRORS as error:
            self.noted[f"a listing failed: {self._why(error)}"] += 1

    def _why(self, error: Exception) -> str:
        found = openstack_api.explain(error)
        late = f"timeout: no answer within {self.job.seconds:g} s"
        return late if isinstance(found, TimeoutError) else f"{found}"

    def _listing(self) -> Listing:
        """All servers of this test, as the cloud shows them now; in several answers if it must."""
        begun = time.monotonic()
        query = {"name": f"^{self.job.mark}-", "limit": f"{PAGE}"}
        found: dict[str, Instance] = {}
        try:
            for answers in range(1, MAX_ANSWERS + 1):
                answer = self._cloud.api.compute.get("/servers/detail", params=query)
                servers, more = _servers(answer)
                found |= self._instances(servers)
                if not more or not servers:
                    return Listing(time.monotonic(), found, whole=answers == 1)
                query["marker"] = f"{servers[-1].get('id')}"
            raise StepFailed(f"a listing of more than {MAX_ANSWERS} answers")
        finally:
            now = time.monotonic()
            self._next_listing = now + max(POLL, (SHARE - 1) * (now - begun))

    def _instances(self, servers: list[dict[str, Any]]) -> dict[str, Instance]:
        found = {}
        for one in servers:
            match = self._name.fullmatch(f"{one.get('name')}")
            if match and _ID.fullmatch(f"{one.get('id')}"):
                found[one["id"]] = _instance(int(match[1]), one)
        return found

    def remove(self) -> None:
        """Delete all servers at once, then the networks, and read that they are gone."""
        end = time.monotonic() + REMOVE * self.job.limit - self.job.seconds
        deleted: dict[str, float] = {}
        while left := self._listing().instances:
            if time.monotonic() > end:
                rest = f"{len(left)} of {count(len(deleted), 'server')}"
                raise StepFailed(f"{rest} are still there", "timeout")
            for key in left:
                if time.monotonic() - deleted.get(key, -AGAIN) >= AGAIN:
                    self._delete(key)
                    deleted[key] = time.monotonic()
            self._wait(self._next_listing)
        _remove_networks(self._cloud, self._networks)

    def _delete(self, key: str) -> None:
        try:
            self._cloud.api.compute.delete_server(key)  # one that is gone is no error
        except ERRORS as error:
            self.noted[f"delete: {self._why(error)}"] += 1

    def notes(self) -> list[str]:
        """The cloud's own words about what has failed, each with how often."""
        faults = [one.fault for one in self.seen.last.instances.values() if one.fault]
        every = Counter([*self.refused.values(), *faults]) + self.noted
        return [f"{number} x {why}" for why, number in every.most_common(_MAX_REASONS)]


def _servers(answer: Any) -> tuple[list[dict[str, Any]], bool]:
    """The servers of one answer, and whether there are more. Raises StepFailed."""
    raise_from_response(answer)
    body = answer.json()
    servers = body.get("servers")
    if not isinstance(servers, list):
        raise StepFailed("the answer has no 'servers'")
    return [one for one in servers if isinstance(one, dict)], bool(body.get("servers_links"))


def _remove_networks(cloud: Cloud, networks: list[str]) -> None:
    """Delete networks with all that is in them, and read that they are gone."""
    api = cloud.api.network
    for network in networks:
        for port in api.ports(network_id=network):
            if not f"{port.device_owner}".startswith("network:"):
                api.delete_port(port)
        api.delete_network(network)
    there = {f"{one.id}" for one in api.networks()}
    if left := there.intersection(networks):
        raise StepFailed(f"{count(len(left), 'network')} still there")


def answers(address: str, port: int = ssh.PORT) -> bool:
    """Whether an ssh server shows its version at an address."""
    if not address:
        return False
    at = f"[{address}]" if ":" in address else address
    try:
        return ssh.greeting(f"{at}:{port}", KNOCK).startswith(ssh.SPOKEN)
    except OSError:
        return False


def _instance(request: int, one: Mapping[str, Any]) -> Instance:
    return Instance(
        request,
        f"{one.get('status')}",
        f"{one.get('hostId') or ''}",
        moment(one.get("created")),
        moment(one.get("OS-SRV-USG:launched_at")),
        _fault(one),
        openstack_api.address_of(one.get("addresses")),
    )


def _fault(shown: Mapping[str, Any]) -> str:
    """Why a server failed, in the cloud's words; empty: not shown."""
    fault = shown.get("fault")
    return f"{fault.get('message')}" if isinstance(fault, dict) else ""


def moment(text: object) -> float | None:
    """Seconds since 1970 of a time of OpenStack, which is in UTC; None if it is none."""
    try:
        made = datetime.fromisoformat(f"{text}")
    except ValueError:
        return None
    return (made if made.tzinfo else made.replace(tzinfo=UTC)).timestamp()


def _report(cloud: Cloud, steps: Steps, launch: _Launch) -> None:
    """The figures, and under which conditions they are."""
    made = figures(launch.seen, launch.planned, launch.begun, launch.refused)
    steps.value("instances", made.instances, "VMs")
    steps.value("instances_per_network", made.per_network, "instances")
    if made.hosts is not None:
        steps.value("hosts", made.hosts, "nodes")
    if made.seconds:
        steps.value("seconds_to_active", round(made.middle, 3), "s")
        steps.value("seconds_to_active_p95", round(made.p95, 3), "s")
    for cause, number in (made.failures or {NONE: 0}).items():
        steps.value("failures", number, "count", cause=cause)
    if active := launch.seen.last.active:  # else nobody knows what would have run them
        kind = cloud.hypervisor(cloud.api.compute.get_server(min(active)))
        fake = {"emulated": "hypervisor"} if kind == "fake" else {}
        steps.condition(active_by=made.clock, hypervisor=kind, **fake)
    for note in launch.notes():
        print(without_secrets(note), file=sys.stderr)  # kept with the raw files of the point


KINDS = openstack_api.kinds(test)


ACTIVE, ERROR = "ACTIVE", "ERROR"
UNREACHABLE = "not reachable"  # it is ACTIVE, and was asked
CAUSES = ("no valid host", "quota", "image", "network", "timeout", UNREACHABLE, "other")
NONE = "none"  # in place of a cause where nothing failed
CLOUD, LISTED = "launched_at", "poll"  # from what times to ACTIVE are known
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
    return listed, LISTED


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
