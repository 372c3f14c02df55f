"""UDP between two nodes, as fast as it goes, in both directions."""

import reframe as rfm

from siteproof.checks.udp import UdpCheck, UdpRun
from siteproof.sites.catalogue import MODES


@rfm.simple_test
class UdpBandwidth(UdpCheck):
    """nuttcp or iperf3, whichever is there; -S UdpBandwidth.program chooses."""

    descr = "UDP goodput between two nodes, both ways"
    derive = "udp.udp_bandwidth"
    metrics = ("throughput", "sent", "loss", "cpu_sender", "cpu_receiver")
    headline = ("throughput",)

    seconds_of_run = {"quick": 3, "maintenance": 5, "acceptance": 30}  # -T30 in the report
    trials_of = dict.fromkeys(MODES, 1)

    def runs(self) -> list[UdpRun]:
        """Datagrams that fill the MTU, and no limit."""
        return [UdpRun("full", self.seconds_of_run[self.mode])]
