"""Rates of metadata of many tasks together on a file system: mdtest, as IO500's easy and hard."""

from collections.abc import Mapping

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import FileSystemSweep, loading
from siteproof.parsers import mdtest

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
    derive = "storage.mdtest"
    metrics = ("create", "stat", "read", "remove")
    headline = ("create", "stat", "read", "remove")
    seconds_of_point = {"quick": 120, "maintenance": 900, "acceptance": 3600}

    files = variable(int, value=0)  # of a task; 0: by the mode

    def standard_points(self) -> list[Mapping[str, str]]:
        """All nodes that can take a job, both variants; and the points of criteria."""
        loading.refuse_number(self, "files", 0)
        whole, required = self.standard_tasks()
        default = {"tasks_per_node": "1", "files": str(FILES[self.mode])}
        own = {"files": str(self.files)} if self.files else {}  # of -S, whatever criteria require
        found = [
            {**default, "variant": variant, **values, **own}
            for variant in ("easy", "hard")
            for values in (*whole, *required)
        ]
        return [values for number, values in enumerate(found) if values not in found[:number]]
