"""Data that one node writes and another one reads, on every file system."""

import reframe as rfm

from siteproof.checks import FileSystemCheck
from siteproof.parsers import sha256sum

FILES = 4


@rfm.simple_test
class DataIntegrity(FileSystemCheck):
    """On a shared file system the next node reads; otherwise the same one, its cache dropped."""

    descr = "What one node writes, another one reads"
    tags = {"storage"}
    script = "data_integrity.sh"
    parsers = {"sha256sum": sha256sum}
    derive = "storage.data_integrity"
    metrics = ("errors",)
    headline = ("errors",)
    mebibytes = {"quick": 16, "maintenance": 512, "acceptance": 2048}
    seconds_of_turn = {"quick": 30, "maintenance": 120, "acceptance": 240}
    turns = 2  # to write, and to read
    all_stay = True

    def settings(self) -> dict[str, str]:
        """So many files, of which each has its share."""
        return {
            **super().settings(),
            "FILES": str(FILES),
            "MEBIBYTES": str(max(1, self.size // FILES)),
        }

    def facts(self) -> dict[str, object]:
        """How many files must have come back."""
        return {"files": FILES, "size": max(1, self.size // FILES) * FILES * 2**20}
