"""Messages between two nodes: latency and bandwidth of MPI, by size."""

import math

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import PerPairCheck
from siteproof.parsers import imb, mpi4py_bench, osu
from siteproof.sites.catalogue import MODES


@rfm.simple_test
class MpiPingPong(PerPairCheck):
    """OSU, IMB or mpi4py, the first that is there; -S MpiPingPong.program chooses.

    One rank on the client, one on the server, started by srun inside this check's job. MPI takes
    the network that the environment's variables set, whatever the link's address is.
    """

    descr = "Latency and bandwidth of MPI between two nodes"
    tags = {"network"}
    script = "mpi_ping_pong.sh"
    shared_scripts = (*PerPairCheck.shared_scripts, "mpi.sh", "messages.sh")
    features = ("osu", "imb", "mpi4py")
    parsers = {"osu": osu, "imb": imb, "mpi4py": mpi4py_bench}
    derive = "network.mpi_ping_pong"
    metrics = ("latency", "bandwidth")
    headline = ("latency", "bandwidth")

    program = variable(str, value="")  # osu, imb, mpi4py; empty: the first that is installed
    latency_size = variable(int, value=0)  # bytes of the smallest message; 0: as below
    bandwidth_size = variable(int, value=0)  # bytes of the largest one; 0: as below
    launch = variable(str, value="")  # srun's --mpi; empty: as the system or the library has it

    by_mode = {
        **PerPairCheck.by_mode,
        "latency_size": dict.fromkeys(MODES, 8),
        "bandwidth_size": {"quick": 2**20, "maintenance": 2**22, "acceptance": 2**22},
    }
    iterations_of = {"quick": 50, "maintenance": 200, "acceptance": 1000}
    light = True  # a message at a time
    seconds_of_turn = {"quick": 25, "maintenance": 45, "acceptance": 120}

    def largest(self) -> int:
        """Bytes of the largest message."""
        return int(self.value_of("bandwidth_size"))

    def turn(self) -> int:
        """By the mode; as many times more as the largest message is larger."""
        return math.ceil(super().turn() * self.larger("bandwidth_size"))

    def iterations(self) -> int:
        """Of each size, as many as a long link leaves time for in a quarter of the turn."""
        wanted = self.iterations_of[self.mode]
        if not self.over.round_trip:
            return wanted
        sizes = (self.largest() // int(self.value_of("latency_size"))).bit_length()
        trips = self.seconds_of_turn[self.mode] / 4 / float(self.over.round_trip.to("s"))
        return max(5, min(wanted, int(trips / sizes)))

    def settings(self) -> dict[str, str]:
        """Which sizes, how often, by which program."""
        return {
            **super().settings(),
            "PROGRAM": self.program,
            "LAUNCH": self.launch or self.mpi_of_site(),
            "SMALLEST": self.value_of("latency_size"),
            "LARGEST": str(self.largest()),
            "ITERATIONS": str(self.iterations()),
        }

    def facts(self) -> dict[str, object]:
        """The sizes whose values are compared."""
        return {
            **super().facts(),
            "smallest": self.value_of("latency_size"),
            "largest": str(self.largest()),
        }
