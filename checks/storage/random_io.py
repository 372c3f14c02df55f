"""Random rates of every node on every file system: fio, in blocks of 4 KiB and of 1 MiB."""

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import FileSystemCheck
from siteproof.parsers import fio
from siteproof.record.samples import Sample
from siteproof.sites.catalogue import MODES

DURATION = {"quick": 2, "maintenance": 15, "acceptance": 60}  # seconds of each phase
HEADLINE_BLOCK = str(2**20)  # published rates of random access are plausible only with this one


@rfm.simple_test
class RandomIo(FileSystemCheck):
    """The file is written, read back and compared first; without that no rate counts."""

    descr = "Random reads and writes of every node on a file system"
    tags = {"storage"}
    script = "random_io.sh"
    shared_scripts = (*FileSystemCheck.shared_scripts, "fio.sh")
    parsers = {"fio": fio}
    derive = "storage.random_io"
    metrics = ("read", "write", "read_iops", "write_iops", "read_p99", "write_p99")
    headline = ("read", "write")
    mebibytes = {"quick": 64, "maintenance": 1024, "acceptance": 2048}
    seconds_of_turn = {"quick": 60, "maintenance": 240, "acceptance": 600}

    depth = variable(int, value=0)  # requests at a time; 0: as below; several need fio's libaio

    by_mode = {"depth": dict.fromkeys(MODES, 1)}

    def settings(self) -> dict[str, str]:
        """How long, and how many requests at a time."""
        return {
            **super().settings(),
            "DURATION": str(DURATION[self.mode]),
            "DEPTH": self.value_of("depth"),
        }

    def facts(self) -> dict[str, object]:
        """What must have been verified for the values to count."""
        return {"size": self.size * 2**20}

    def written(self) -> float:
        """Once to be verified, and at most once in each of two block sizes."""
        return 3

    def decides_headline(self, sample: Sample) -> bool:
        """Only large blocks: small ones would always be the worst."""
        return sample.dims.get("block") == HEADLINE_BLOCK
