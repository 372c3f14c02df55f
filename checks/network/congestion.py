"""Messages between two nodes while all others load the network, as GPCNeT measures them.

Chunduri, Groves, Mendygral and others, GPCNeT: Designing a Benchmark Suite for Inducing and
Measuring Contention in HPC Networks, SC19 (2019).
"""

import reframe as rfm

from siteproof.checks import TogetherCheck
from siteproof.parsers import mpi_together


@rfm.simple_test
class Congestion(TogetherCheck):
    """Two ranks exchange messages; the others rest, then exchange data each with each, in turn."""

    descr = "Messages between two nodes with and without load on the others"
    tool = "congestion"
    script = "congestion.sh"
    features = ("mpi4py",)
    parsers = {"mpi4py": mpi_together}
    derive = "network.congestion"
    metrics = ("latency", "latency_p99", "bandwidth", "latency_ratio", "latency_p99_ratio")
    headline = ("latency_ratio", "latency_p99_ratio", "bandwidth_ratio")
    fewest = 4  # two that load
    iterations_of = {"quick": 200, "maintenance": 1000, "acceptance": 10000}

    large = 2**20  # bytes of the messages of the bandwidth
    load = 2**16  # bytes from each to each of those that load

    def settings(self) -> dict[str, str]:
        """Which sizes."""
        return {**super().settings(), "LARGE": str(self.large), "LOAD": str(self.load)}
