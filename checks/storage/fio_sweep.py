"""Requests of one node to a file system, as points of a sweep: fio by block, depth and pattern."""

from reframe.core.builtins import variable

from siteproof import files
from siteproof.checks import FileSystemSweep, loading
from siteproof.errors import UserError
from siteproof.parsers import fio
from siteproof.record.manifest import Point

DURATION = {"quick": 2, "maintenance": 10, "acceptance": 30}  # seconds of a point
MEBIBYTES = {"quick": 64, "maintenance": 512, "acceptance": 2048}  # of its file


class FioSweep(FileSystemSweep, special=True):
    """The file of each point is written, read back and compared first."""

    descr = "Rate of a file system by block size and requests at a time"
    tags = {"storage"}
    tool = "fio"
    owns_size = True
    script = "fio_sweep.sh"
    shared_scripts = (*FileSystemSweep.shared_scripts, "fio.sh")
    parsers = {"fio": fio}
    derive = "storage.fio_sweep"
    metrics = ("rate", "iops", "p99")

    size = variable(str, value="0")  # of a point's file, in MiB or as 1GiB; 0: by the mode

    def capped(self, every: dict[int, Point]) -> dict[int, Point]:
        """As every sweep's; its size may be meant for another tool, of which it is a cap."""
        self.mebibytes = MEBIBYTES[self.mode]
        try:
            self.mebibytes = loading.mebibytes(self, "size") or self.mebibytes
        except UserError as error:
            self.refused = error
            return every
        return super().capped(every)

    def bytes_of(self, point: Point) -> int:
        """Its file once, and at most once more."""
        return 2 * self.mebibytes * files.MIB

    def settings(self) -> dict[str, str]:
        """How long, and how large."""
        return {
            **super().settings(),
            "DURATION": str(DURATION[self.mode]),
            "MEBIBYTES": str(self.mebibytes),
        }

    def facts(self) -> dict[str, object]:
        """What must have been verified for the values to count."""
        return {"size": self.mebibytes * files.MIB}
