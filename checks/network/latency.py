"""How long a small packet is under way between two nodes and back."""

import reframe as rfm
from reframe.core.builtins import run_after, variable

from siteproof.checks import PerPairCheck, loading
from siteproof.parsers import ping, qperf

LARGEST = 65507  # bytes of data that a packet of IPv4 can hold


@rfm.simple_test
class Latency(PerPairCheck):
    """ping; and the latency of TCP by qperf, where both ends have it."""

    descr = "Round trip of a small packet between two nodes"
    tags = {"network"}
    script = "latency.sh"
    parsers = {"ping": ping, "qperf": qperf}
    derive = "tcp.latency"
    metrics = ("round_trip", "loss")
    headline = ("round_trip",)

    size = variable(int, value=56)  # bytes of data: ping's own default, 84 on the wire

    light = True
    packets = {"quick": 10, "maintenance": 25, "acceptance": 50}
    interval = "0.2"  # seconds: the least that an ordinary user may ask for
    seconds_of_tcp = 2
    seconds_of_turn = {"quick": 15, "maintenance": 18, "acceptance": 25}

    @run_after("init")
    def refuse_wrong_size(self) -> None:
        """Below 16 bytes ping has no room for the time."""
        loading.refuse_number(self, "size", 16, LARGEST)

    def settings(self) -> dict[str, str]:
        """How many packets of which size."""
        return {
            **super().settings(),
            "SIZE": str(self.size),
            "INTERVAL": self.interval,
            "PACKETS": str(self.packets[self.mode]),
            "SECONDS_OF_TCP": str(self.seconds_of_tcp),
        }
