"""RDMA writes between two nodes over InfiniBand or RoCE: bandwidth and latency."""

import math

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import PerPairCheck
from siteproof.parsers import perftest, rdma_ports
from siteproof.sites.catalogue import MODES


@rfm.simple_test
class RdmaWrite(PerPairCheck):
    """perftest's ib_write_bw, then ib_write_lat, on the link's `device`, or the first one.

    What the client's ports count while both run is kept next to it. Without a device it SKIPs.
    """

    descr = "Bandwidth and latency of RDMA writes between two nodes"
    tags = {"network"}
    script = "rdma_write.sh"
    shared_scripts = (*PerPairCheck.shared_scripts, "rdma.sh")
    parsers = {"ib_write_bw": perftest, "ib_write_lat": perftest, "sysfs": rdma_ports}
    derive = "network.rdma_write"
    metrics = ("bandwidth", "latency")
    headline = ("bandwidth", "latency")
    patterns = ("star", "all", "random")  # the tool holds its device alone

    latency_size = variable(int, value=0)  # bytes of a message; 0: as below
    bandwidth_size = variable(int, value=0)  # bytes of a message; 0: as below

    by_mode = {
        **PerPairCheck.by_mode,
        "latency_size": dict.fromkeys(MODES, 8),
        "bandwidth_size": dict.fromkeys(MODES, 2**20),
    }
    iterations_of = {"quick": 1000, "maintenance": 5000, "acceptance": 20_000}
    seconds_of_turn = {"quick": 25, "maintenance": 40, "acceptance": 90}

    def turn(self) -> int:
        """By the mode; as many times more as the messages are larger."""
        return math.ceil(super().turn() * self.larger("bandwidth_size"))

    def settings(self) -> dict[str, str]:
        """The device and its port, the sizes, how often."""
        device, _, port = self.over.device.partition(":")
        index = self.over.gid_index
        return {
            **super().settings(),
            "DEVICE": device,
            "DEVICE_PORT": port or "1",
            "GID_INDEX": "" if index is None else str(index),
            "LARGEST": self.value_of("bandwidth_size"),
            "SMALLEST": self.value_of("latency_size"),
            "ITERATIONS": str(self.iterations_of[self.mode]),
        }
