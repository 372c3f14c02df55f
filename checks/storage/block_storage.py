"""Serial rates of every node on every file system: dd, 2 GB in blocks of 1 MiB."""

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, variable

from siteproof.checks import FileSystemCheck, loading
from siteproof.parsers import dd

TRIALS = {"quick": 1, "maintenance": 1, "acceptance": 5}


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
    trials = variable(int, value=0)  # 0: by the mode; their median counts

    @run_after("init")
    def refuse_wrong_trials(self) -> None:
        """0 is the mode's number."""
        loading.refuse_number(self, "trials", 0)

    def settings(self) -> dict[str, str]:
        """How often, and whether past the page cache."""
        return {
            **super().settings(),
            "TRIALS": str(self.trials_of_mode()),
            "PAST_CACHE": "yes" if self.direct else "no",
        }

    def facts(self) -> dict[str, object]:
        """What must have been done for the values to count."""
        return {"size": self.size * 2**20, "trials": self.trials_of_mode()}

    def written(self) -> float:
        """Every trial writes a file of its own."""
        return self.trials_of_mode()

    def trials_of_mode(self) -> int:
        """How many times it is written and read."""
        return self.trials or TRIALS[self.mode]
