"""Collectives of MPI by number of nodes and size of message."""

import reframe as rfm

from siteproof.checks import TogetherCheck
from siteproof.parsers import imb, mpi_together, osu


@rfm.simple_test
class Collectives(TogetherCheck):
    """OSU, IMB or mpi4py, the first that is there; -S Collectives.program chooses.

    One run gives all sizes, so that each has its own value with the dimension `size`.
    """

    descr = "Collectives of MPI on 2, 4, 8 ... all nodes"
    tool = "collectives"
    script = "collectives.sh"
    features = ("osu", "imb", "mpi4py")
    parsers = {"osu": osu, "imb": imb, "mpi4py": mpi_together}
    derive = "network.collectives"
    metrics = ("barrier", "bcast", "allreduce", "allgather", "alltoall")
    headline = metrics
    growing = True

    smallest = 8  # bytes: whole numbers are added
    largest_of = {"quick": 2**12, "maintenance": 2**16, "acceptance": 2**18}  # bytes

    def settings(self) -> dict[str, str]:
        """Which sizes."""
        return {
            **super().settings(),
            "SMALLEST": str(self.smallest),
            "LARGEST": str(self.largest_of[self.mode]),
        }
