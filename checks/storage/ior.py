"""Rates of many tasks together on a file system: IOR by POSIX and MPI-IO, one file or many."""

import math
from collections.abc import Mapping

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import FileSystemSweep, loading, session
from siteproof.errors import UserError
from siteproof.parsers import ior
from siteproof.record.manifest import Point
from siteproof.sites import Site

MIB = 2**20
TRANSFER = MIB
BLOCK = {"quick": 64 * MIB, "maintenance": 1024 * MIB, "acceptance": 4096 * MIB}  # of a task
ABOVE = 1.05  # of the servers' memory: what acceptance writes at least
WAYS = (
    {"api": "POSIX", "layout": "file_a_task"},
    {"api": "POSIX", "layout": "shared"},
    {"api": "MPIIO", "layout": "shared"},
)


@rfm.simple_test
class Ior(FileSystemSweep):
    """Written until it is on the storage, read by another node than wrote it, and compared.

    On one node, on file systems of the nodes' own, and where `reorder` is no, each task reads its
    own data, past the page cache if the file system takes O_DIRECT.
    `cached` is no where more was written than the memory of the point's nodes (but not with
    O_DIRECT) and of the servers holds; yes also where the site does not know the servers' memory.
    """

    descr = "Parallel write and read on a file system"
    tags = {"storage"}
    tool = "ior"
    script = "ior.sh"
    features = ("ior",)
    parsers = {"ior": ior}
    derive = "storage.ior"
    metrics = ("read", "write")
    headline = ("read", "write")
    seconds_of_point = {"quick": 120, "maintenance": 900, "acceptance": 3600}

    block = variable(str, value="0")  # of a task, in MiB or as 1GiB; 0: by the mode

    def standard_points(self) -> list[Mapping[str, str]]:
        """All nodes that can take a job, in three ways; and the points of criteria."""
        try:
            self.of_task = loading.mebibytes(self, "block") * MIB
        except UserError as error:
            loading.refuse(error)
        site = session.current().site
        whole, required = self.standard_tasks()
        each = [{**tasks, **way} for tasks in whole for way in WAYS]
        own = {"block": ""} if self.of_task else {}  # of -S, whatever criteria require
        found = [
            {"tasks_per_node": "1", "transfer": str(TRANSFER), **WAYS[0], **values, **own}
            for values in (*each, *required)
        ]
        return [
            {**values, "block": values.get("block") or self.block_of(site, values)}
            for number, values in enumerate(found)
            if values not in found[:number]
        ]

    def block_of(self, site: Site, values: Mapping[str, str]) -> str:
        """Bytes of a task, whole transfers of them."""
        least = self.of_task or BLOCK[self.mode]
        if self.mode == "acceptance" and not self.of_task and self.fs:
            memory = site.server_memory(self.fs) or 0
            least = max(least, math.ceil(memory * ABOVE / int(values["tasks"])))
        transfer = int(values["transfer"])
        return str(math.ceil(least / transfer) * transfer)

    def shared_files(self, point: Point) -> bool:
        """A task that reads its own file sees it on its node's own file system, too."""
        return point.values.get("layout", "file_a_task") != "file_a_task"

    def bytes_of(self, point: Point) -> int:
        """Its block of each task."""
        return point.tasks * int(point.values["block"])

    def settings(self) -> dict[str, str]:
        """What the servers may hold, for the label `cached`; nothing: the site does not know."""
        memory = self.site.server_memory(self.fs)
        return {**super().settings(), "SERVER_MEMORY": "" if memory is None else str(memory)}
