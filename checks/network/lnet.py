"""LNET between clients and the servers of a Lustre file system, by LNET selftest.

Written after the Lustre manual and the source of lst (2.15); it was never run on Lustre.
"""

import re
from collections.abc import Mapping

import reframe as rfm
from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import run_after, variable

from siteproof.answers import expected
from siteproof.checks import FileSystemSweep, loading, session
from siteproof.errors import UserError
from siteproof.parsers import lst

_NID = re.compile(r"[A-Za-z0-9.:_-]+@[a-z0-9]+")


@rfm.simple_test
class Lnet(FileSystemSweep):
    """lst, one client with one server, and as criteria require. Needs root, and the module.

    The servers are those that the site names for the file system, at the addresses of their names
    in the clients' own LNET; -S Lnet.nids=NID,NID names others.
    """

    descr = "LNET between clients and the servers of a file system"
    tool = "lst"
    script = "lnet.sh"
    parsers = {"lnet_selftest": lst}
    derive = "storage.lnet"
    tags = {"network"}
    metrics = ("read", "write")

    nids = variable(str, value="")
    duration = variable(int, value=30)  # seconds; each 5 give a value, of which the median counts

    @run_after("init")
    def refuse_wrong_words(self) -> None:
        """What the script could not use."""
        loading.refuse_number(self, "duration", 10)
        if wrong := [nid for nid in filter(None, self.nids.split(",")) if not _NID.fullmatch(nid)]:
            loading.refuse(UserError("-S nids", f"'{wrong[0]}' is not a NID", "10.0.0.1@tcp"))

    def standard_points(self) -> list[Mapping[str, str]]:
        """One client with one server, and the numbers of criteria; each in both directions."""
        site = session.current().site
        points = expected.points(site, self.planned_job()) if self.fs else []
        each = [{"clients": "1", "servers": "1", **values} for values in ({}, *points)]
        return [
            {"size": str(2**20), "concurrency": "32", **values, "direction": direction}
            | {"tasks": values["clients"]}
            for number, values in enumerate(each)
            if values not in each[:number]
            for direction in ("read", "write")
        ]

    def expected_nodes(self) -> NodeSet:
        """Clients of a Lustre file system whose servers are known."""
        nodes = super().expected_nodes()
        if self.there.kind != "lustre":
            self.skip(f"{self.fs} is of kind {self.there.kind}: LNET belongs to Lustre")
        if not self.answering():
            self.skip(
                f"file system {self.fs} has no 'servers' in system.yaml, and -S nids names none"
            )
        return nodes

    def answering(self) -> list[str]:
        """NIDs, or the names of nodes."""
        role = self.there.servers
        known = [str(node) for node in self.site.system.nodes[role].nodes] if role else []
        return list(filter(None, self.nids.split(","))) or known

    def settings(self) -> dict[str, str]:
        """The servers, and how many intervals of 5 s."""
        return {
            **super().settings(),
            "SERVERS": " ".join(self.answering()),
            "INTERVALS": str(self.duration // 5),
        }
