"""Rates of one task on every node and every file system: IOR, in requests of 1 MiB."""

import reframe as rfm

from siteproof.checks import FileSystemCheck
from siteproof.parsers import ior


@rfm.simple_test
class IorSingle(FileSystemCheck):
    """The write counts until its data are on the storage, the read without the page cache.

    The read data are compared afterwards, outside the measured time; without that no rate counts.
    """

    descr = "Serial write and read of one task on a file system, by IOR"
    tags = {"storage"}
    script = "ior_single.sh"
    features = ("ior",)
    parsers = {"ior": ior}
    derive = "storage.ior"
    metrics = ("read", "write")
    headline = ("read", "write")
    mebibytes = {"quick": 64, "maintenance": 2048, "acceptance": 8192}
    seconds_of_turn = {"quick": 60, "maintenance": 300, "acceptance": 900}

    def facts(self) -> dict[str, object]:
        """What must have been written, read and compared for the values to count."""
        return {"size": str(self.size * 2**20), "tasks": "1"}
