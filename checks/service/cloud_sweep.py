"""The capacity of a cloud: servers that run at a time against how many are requested, and how."""

import re

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_after, run_before, variable

from siteproof import nodesets
from siteproof.checks import SweepCheck, loading, per_node, session
from siteproof.checks.job import LOCAL
from siteproof.checks.per_node import HERE
from siteproof.errors import UserError
from siteproof.parsers import cloud_capacity
from siteproof.record.manifest import OfItsKind
from siteproof.services import runner, steps
from siteproof.units import count

KIND = "openstack"
MAX_NETWORKS = 100  # each has an address range of its own: 10.101.0.0/16 and so on
RATE = re.compile(r"0|unlimited|[1-9][0-9]{0,5}")


def clouds() -> list[str]:
    """The first service of each cloud of the site; one without a name stands for none."""
    found: dict[tuple[str, str], str] = {}
    for name, one in session.current().site.system.services.items():
        if one.kind == KIND:
            found.setdefault((one.address, one.zone), name)
    return list(found.values()) or [""]


class Cloud(SweepCheck, special=True):
    """Servers of a cloud, a service of kind openstack, for sweeps/*.yaml with `tool: openstack`.

    A point creates networks and servers, counts those that run at one instant, and removes all.
    """

    descr = "Virtual machines that a cloud runs at a time over the points of a sweep"
    tags = {"service"}
    tool = KIND
    script = "cloud_sweep.sh"
    parsers = {"cloud": cloud_capacity}
    metrics = ("instances", "failures", "cleanup_seconds")
    exclusive_access = False

    service = parameter(clouds())
    largest = variable(str, value="")  # how many servers the largest point has, for the plan
    unfit = variable(str, value="")  # why no cloud can be used, for the plan

    def places(self) -> list[str]:
        """The service's partition; without one the first, whose scheduler is not used."""
        site = session.current().site
        if not self.service:
            return list(site.system.partitions)
        self.unfit = runner.lacking(KIND)
        self.entry = site.system.services[self.service]
        self.local = self.entry.partition is None
        return [self.entry.partition or next(iter(site.system.partitions))]

    def roles_on(self, partition: str) -> list[str]:
        """All of the partition: nothing of its nodes is measured."""
        return session.current().site.partition(partition).roles

    def most_nodes(self, partition: str) -> int:
        """One, from which the cloud is used; none where there is no cloud."""
        return min(1, super().most_nodes(partition)) if self.service else 0

    @run_after("init")
    def refuse_other_requests(self) -> None:
        """A mistake in the sweep file, reported before anything runs; and what the plan shows."""
        values = [point.values for point in self.points.values()]
        for one in values:
            if not RATE.fullmatch(one.get("rate", "0")):
                self._refuse(f"rate {one['rate']}", "requests a minute, or unlimited")
            if int(one.get("networks", "1")) > MAX_NETWORKS:
                self._refuse(f"{one['networks']} networks", f"at most {MAX_NETWORKS}")
        most = max((int(one["servers"]) for one in values), default=0)
        self.largest = f"up to {count(most, 'server')}" if most else ""

    def _refuse(self, what: str, allowed: str) -> None:
        assert self.sweep_file is not None
        loading.refuse(UserError(self.sweep_file.path, what, allowed))

    @run_after("setup")
    def choose_nodes(self) -> None:
        """This machine, or the first node of the partition that can take a job."""
        if not self.service:
            self.skip(f"the site names no services of kind {KIND}")
        if self.unfit:
            self.skip(self.unfit)
        if not self.local and self.where.scheduler != LOCAL:
            super().choose_nodes()
        else:
            per_node.run_here(self, self.expected_nodes)

    def nodes_for(self, count: int) -> NodeSet:
        """This machine, unless the site names a partition."""
        if self.on_slurm:
            return super().nodes_for(count)
        self.in_order = [HERE]
        return nodesets.of(self.in_order)

    def where_of(self) -> dict[str, str]:
        """Which cloud."""
        return {"service": self.service}

    def plan_of_its_kind(self) -> OfItsKind:
        """The cloud is what all points were measured on."""
        plan = super().plan_of_its_kind()
        own = {**self.where_of(), "kind": KIND}
        return {**plan, "conditions": {**plan["conditions"], **own}}

    def settings(self) -> dict[str, str]:
        """The Python that has Siteproof."""
        return {**super().settings(), **per_node.settings(self.stagedir)}

    @run_before("run")
    def place_service(self) -> None:
        """The service's entry, and a mark that is not that of another test of it."""
        mark = steps.mark(session.current().name, f"{self.service[:31]}-capacity")
        work = runner.written(self.site, self.service, mark)
        self.place("service.json", [work], mode=0o600)
