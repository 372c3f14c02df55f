"""TCP between two nodes by netperf, with the processor time that it takes."""

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import PerPairCheck
from siteproof.checks.per_pair import ONE
from siteproof.parsers import netperf


@rfm.simple_test
class Netperf(PerPairCheck):
    """netperf's TCP_STREAM and TCP_MAERTS, which is the way back."""

    descr = "TCP goodput between two nodes by netperf, both ways, and its service demand"
    tags = {"network"}
    script = "netperf.sh"
    parsers = {"netperf": netperf}
    metrics = ("throughput", "service_demand")
    patterns = ("star", "all", "random")

    duration = variable(int, value=0)  # seconds of each run; 0: as below

    by_mode = {
        **PerPairCheck.by_mode,
        "trials": ONE,
        "duration": {"quick": 3, "maintenance": 5, "acceptance": 15},
    }
    block = 128_000  # bytes of a call: the 128k of ExTENCI's command, as netperf reads them

    def turn(self) -> int:
        """Both directions, even if each takes as long as it may."""
        return 2 * (int(self.value_of("duration")) + 3) + 1

    def known_before(self) -> dict[str, str]:
        """With how long a run takes."""
        return {**super().known_before(), "duration": self.value_of("duration")}

    def settings(self) -> dict[str, str]:
        """For how long, with how large calls, and what is to be printed."""
        return {
            **super().settings(),
            "SECONDS_OF_RUN": self.value_of("duration"),
            "BLOCK": str(self.block),
            "KEYS": ",".join(netperf.KEYS),
        }
