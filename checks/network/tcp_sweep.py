"""TCP between the first two nodes of a link, as a sweep: streams, windows, buffers of the hosts."""

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_after, variable

from siteproof.checks import SweepCheck, loading, per_pair, session
from siteproof.checks.timetable import FIRST_PORT
from siteproof.errors import UserError
from siteproof.parsers import iperf3
from siteproof.record.manifest import OfItsKind
from siteproof.sites import Site, pairs

TWO = 2  # nodes of every point


class TcpSweep(SweepCheck):
    """iperf3 from the client to the server, for sweeps/*.yaml with `tool: tcp`.

    The pair is the link's first; -S TcpSweep.pair=CLIENT,SERVER names another one of it.
    """

    descr = "TCP goodput between two nodes over the points of a sweep"
    tool = "tcp"
    script = "tcp_sweep.sh"
    shared_scripts = (*SweepCheck.shared_scripts, "network.sh", "tcp_end.sh")
    parsers = {"iperf3": iperf3}
    derive = "network.tcp_sweep"
    metrics = ("rate", "retransmits")

    link = parameter(per_pair.names())
    pair = variable(str, value="")  # CLIENT,SERVER; empty: the link's first
    omit = variable(int, value=3)  # seconds of slow start that do not count

    def places(self) -> list[str]:
        """The link's partition; all of them, to SKIP, where there is no link."""
        site = session.current().site
        loading.refuse_number(self, "omit", 0)
        if not self.link:
            return list(site.system.partitions)
        self.over = site.system.links[self.link]
        self.client, self.server = self.ends(site)
        return [self.over.partition]

    def roles_on(self, partition: str) -> list[str]:
        """All of the partition: the link names its nodes."""
        return session.current().site.partition(partition).roles

    def ends(self, site: Site) -> tuple[str, str]:
        """Client and server; a pair that the link does not have ends the run."""
        able = [
            (client, server)
            for client in pairs.clients(site, self.over)
            for server in pairs.servers(site, self.over)
            if client != server
        ]
        if not self.pair:
            return able[0]
        client, _, server = self.pair.partition(",")
        if (client, server) not in able:
            loading.refuse(
                UserError(
                    "-S pair",
                    f"'{self.pair}' is not a pair of link {self.link}",
                    f"CLIENT,SERVER such as {','.join(able[0])}",
                )
            )
        return client, server

    @run_after("init")
    def refuse_other_numbers_of_nodes(self) -> None:
        """A mistake in the sweep file, reported before anything runs."""
        wrong = next((p for p in self.points.values() if p.nodes != TWO), None)
        if wrong and self.sweep_file:
            loading.refuse(
                UserError(
                    self.sweep_file.path,
                    f"tcp on {wrong.nodes} nodes ({wrong})",
                    "tasks: 2, tasks_per_node: 1",
                )
            )

    def expected_nodes(self) -> NodeSet:
        """Both ends, if there is a link, and Slurm to start the second one."""
        if not self.link:
            self.skip("the site names no links")
        if not self.on_slurm:
            self.skip("a pair needs two nodes, and this partition has no Slurm")
        return super().expected_nodes()

    def nodes_for(self, count: int) -> NodeSet:
        """The two ends."""
        self.in_order = [self.client, self.server]
        return NodeSet.fromlist(self.in_order)

    def where_of(self) -> dict[str, str]:
        """Which link, and which of its nodes."""
        return {"link": self.link, "client": self.client, "server": self.server}

    def plan_of_its_kind(self) -> OfItsKind:
        """The link is what all points were measured on."""
        plan = super().plan_of_its_kind()
        return {**plan, "conditions": {**plan["conditions"], **self.where_of()}}

    def settings(self) -> dict[str, str]:
        """Client, server, and the server's address."""
        address = self.over.address_of
        return {
            **super().settings(),
            "CLIENT": self.client,
            "SERVER": self.server,
            "ADDRESS": address(self.server),
            "PORT": str(FIRST_PORT),
            "OMIT": str(self.omit),
            "KNOB_PEERS": f"{address(self.client)} {address(self.server)}",
        }
