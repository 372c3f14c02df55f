"""How long a small packet is under way between two nodes and back."""

import math

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import PerPairCheck
from siteproof.parsers import ping, qperf
from siteproof.sites.catalogue import MODES


@rfm.simple_test
class Latency(PerPairCheck):
    """ping; and the latency of TCP by qperf, where both ends have it."""

    descr = "Round trip of a small packet between two nodes"
    tags = {"network"}
    script = "latency.sh"
    parsers = {"ping": ping, "qperf": qperf}
    derive = "network.latency"
    metrics = ("round_trip", "loss")
    headline = ("round_trip",)

    size = variable(int, value=0)  # bytes of data; 0: as below
    packets = variable(int, value=0)  # 0: as below

    light = True
    by_mode = {
        **PerPairCheck.by_mode,
        "size": dict.fromkeys(MODES, 56),  # ping's own default, 84 on the wire
        "packets": {"quick": 10, "maintenance": 25, "acceptance": 50},
    }
    interval = "0.2"  # seconds: the least that an ordinary user may ask for
    seconds_of_tcp = 2
    seconds_of_turn = {"quick": 15, "maintenance": 18, "acceptance": 25}

    def turn(self) -> int:
        """By the mode, and longer by the packets that are more."""
        more = int(self.value_of("packets")) - int(self.by_mode["packets"][self.mode])
        return super().turn() + max(0, math.ceil(more * float(self.interval)))

    def settings(self) -> dict[str, str]:
        """How many packets of which size."""
        return {
            **super().settings(),
            "SIZE": self.value_of("size"),
            "INTERVAL": self.interval,
            "PACKETS": self.value_of("packets"),
            "SECONDS_OF_TCP": str(self.seconds_of_tcp),
        }
