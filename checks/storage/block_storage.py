"""Serial rates of every node on every file system: dd, 2 GB in blocks of 1 MiB."""

import math

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import variable

from siteproof.checks import FileSystemCheck
from siteproof.parsers import dd


@rfm.simple_test
class BlockStorage(FileSystemCheck):
    """The write counts until its data are on the storage, the read without the page cache."""

    descr = "Serial write and read of every node on a file system"
    tags = {"storage"}
    script = "block_storage.sh"
    parsers = {"dd": dd}
    derive = "storage.block_storage"
    metrics = ("read", "write")
    headline = ("read", "write")
    mebibytes = {"quick": 64, "maintenance": 2000, "acceptance": 2000}
    seconds_of_turn = {"quick": 30, "maintenance": 120, "acceptance": 600}

    direct = variable(typ.Bool, value=True)  # O_DIRECT, where the file system takes it
    trials = variable(int, value=0)  # 0: as below; their median counts

    by_mode = {"trials": {"quick": 1, "maintenance": 1, "acceptance": 5}}

    def turn(self) -> int:
        """By the mode; as many times more as there are more trials."""
        return math.ceil(super().turn() * self.larger("trials"))

    def settings(self) -> dict[str, str]:
        """How often, and whether past the page cache."""
        return {
            **super().settings(),
            "TRIALS": str(self.number()),
            "PAST_CACHE": "yes" if self.direct else "no",
        }

    def facts(self) -> dict[str, object]:
        """What must have been done for the values to count."""
        return {"size": self.size * 2**20, "trials": self.number()}

    def written(self) -> float:
        """Every trial writes a file of its own."""
        return self.number()

    def number(self) -> int:
        """How many times it is written and read."""
        return int(self.value_of("trials"))
