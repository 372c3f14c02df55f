"""Rates of metadata of many tasks together on a file system: mdtest, as IO500's easy and hard."""

from collections.abc import Collection, Mapping

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import FileSystemSweep, loading, session, standard
from siteproof.parsers import mdtest
from siteproof.record.point import Point

FILES = {"quick": 100, "maintenance": 1000, "acceptance": 10_000}  # of a task


@rfm.simple_test
class Mdtest(FileSystemSweep):
    """easy: empty files, a folder a task. hard: 3901 bytes each, in one folder; read and compared.

    Each phase is a run of its own, on files that another node made; on one node `cached` is yes.
    """

    descr = "Metadata rates on a file system"
    tags = {"storage"}
    tool = "mdtest"
    script = "mdtest.sh"
    features = ("mdtest",)
    parsers = {"mdtest": mdtest}
    derive = "mdtest"
    metrics = ("create", "stat", "read", "remove")
    headline = ("create", "stat", "read", "remove")
    seconds_of_point = {"quick": 120, "maintenance": 900, "acceptance": 3600}

    whole: Collection[int] = frozenset()  # numbers of nodes of all partitions
    files = variable(int, value=0)  # of a task; 0: by the mode

    def standard_points(self) -> list[Mapping[str, str]]:
        """All nodes that can take a job, both variants; and what criteria ask for."""
        loading.refuse_number(self, "files", 0)
        site = session.current().site
        counts = {
            standard.usable(site, name.partition(":")[2], self.nodes) for name in self.valid_systems
        }
        each = [{"tasks": str(count)} for count in sorted(counts - {0})]
        asked = standard.of_criteria(site, self.tool, self.fs) if self.fs else []
        self.whole = counts - {int(values["tasks"]) for values in asked}
        files = str(self.files or FILES[self.mode])
        found = [
            {"tasks_per_node": "1", "files": files, "variant": variant, **values}
            for variant in ("easy", "hard")
            for values in (*each, *asked)
        ]
        return [values for number, values in enumerate(found) if values not in found[:number]]

    def fitting(self, most: int) -> dict[int, Point]:
        """Of whole partitions only the one in question."""
        return standard.narrowed(super().fitting(most), self.whole, most)
