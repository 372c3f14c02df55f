"""Messages between two ranks by size, as points of a sweep: latency and bandwidth of MPI."""

from reframe.core.builtins import variable

from siteproof.checks import SweepCheck
from siteproof.parsers import imb, mpi4py_bench, osu


class MessageSweep(SweepCheck, special=True):
    """OSU, IMB or mpi4py, the first that is there; -S program chooses.

    One run gives all sizes, so that each has its own value with the dimension `size`.
    tasks_per_node: 1 is between two nodes, 2 within one.
    """

    descr = "Latency and bandwidth of MPI by message size"
    tags = {"network"}
    tool = "messages"
    script = "message_sweep.sh"
    shared_scripts = (*SweepCheck.shared_scripts, "messages.sh")
    features = ("osu", "imb", "mpi4py")
    parsers = {"osu": osu, "imb": imb, "mpi4py": mpi4py_bench}
    derive = "network.message_sweep"
    metrics = ("latency", "bandwidth")

    program = variable(str, value="")  # osu, imb, mpi4py; empty: the first that is installed

    smallest = 1  # bytes
    largest = 2**22  # bytes, where the sweep sets none
    iterations_of = {"quick": 50, "maintenance": 200, "acceptance": 1000}

    def settings(self) -> dict[str, str]:
        """Which sizes, how often, by which program."""
        return {
            **super().settings(),
            "PROGRAM": self.program,
            "SMALLEST": str(self.smallest),
            "LARGEST": str(self.largest),
            "ITERATIONS": str(self.iterations_of[self.mode]),
        }
