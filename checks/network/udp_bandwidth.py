"""UDP between two nodes, as fast as it goes, in both directions."""

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks.per_pair import FILL, WINDOW, UdpCheck, UdpRun
from siteproof.sites.catalogue import MODES


@rfm.simple_test
class UdpBandwidth(UdpCheck):
    """nuttcp or iperf3, whichever is there; -S UdpBandwidth.program chooses."""

    descr = "UDP goodput between two nodes, both ways"
    derive = "network.udp_bandwidth"
    metrics = ("throughput", "sent", "loss", "cpu_sender", "cpu_receiver")
    headline = ("throughput",)

    duration = variable(int, value=0)  # seconds of each run; 0: as below
    datagram = variable(int, value=0)  # bytes; 0: what fills the MTU
    window = variable(int, value=0)  # bytes of the sockets' buffers; 0: as below

    by_mode = {
        **UdpCheck.by_mode,
        "duration": {"quick": 3, "maintenance": 5, "acceptance": 30},  # -T30 in the report
        "datagram": dict.fromkeys(MODES, FILL),
        "window": dict.fromkeys(MODES, WINDOW),
    }

    def runs(self) -> list[UdpRun]:
        """Datagrams that fill the MTU, unless their size is set, and no limit."""
        seconds, datagram = int(self.value_of("duration")), self.value_of("datagram")
        return [UdpRun("full", seconds, datagram, window=int(self.value_of("window")))]
