"""Bursts of UDP between two nodes: whether what lies between has the buffers for them."""

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import loading
from siteproof.checks.per_pair import POWER, UdpCheck, UdpRun
from siteproof.collect.derive.network import REQUESTED_MBPS
from siteproof.errors import UserError

SMALL, LARGE = 20, 100  # packets: nuttcp -Ri300m/20 and -l8972 -w4m -Ri300m/100
MAX_BURST = 10_000  # packets of a burst: more are a third of a second of 10 Gb/s
LEAST_BURSTS = 20  # of a run, so that one more or less moves its rate by no more than 5 %
JUMBO = 9000  # bytes: the MTU for which a run is long enough, where the site states none


@rfm.simple_test
class UdpBurst(UdpCheck):
    """nuttcp from 6.2.7 on, or iperf3; then ever larger bursts, until one loses something.

    -S UdpBurst.bursts=200,400,800 sets which; none beyond 100 packets: -S UdpBurst.bursts=100
    """

    descr = "Loss of UDP bursts between two nodes, both ways"
    derive = "network.udp_burst"
    metrics = ("loss_small", "loss_large", "largest_lossless")
    headline = ("loss_small", "loss_large")

    bursts = variable(str, value="")  # packets, with commas; empty: by the mode

    seconds_of_small = {"quick": 2, "maintenance": 3, "acceptance": 5}
    seconds_of_large = {"quick": 3, "maintenance": 5, "acceptance": 30}
    seconds_of_step = {"quick": 2, "maintenance": 2, "acceptance": 5}
    bursts_of = {"quick": "200", "maintenance": "200,400", "acceptance": "200,400,800,1600"}

    def steps(self) -> list[int]:
        """The bursts beyond the large ones. Ends the run where they are no numbers of packets."""
        words = (self.bursts or self.bursts_of[self.mode]).split(",")
        if not all(w.isascii() and w.isdigit() and LARGE <= int(w[:9]) <= MAX_BURST for w in words):
            loading.refuse(
                UserError(
                    "-S UdpBurst.bursts",
                    f"'{self.bursts}' is not a list of burst sizes",
                    f"whole numbers from {LARGE} to {MAX_BURST}, such as 200,400,800",
                )
            )
        return sorted(set(map(int, words)) - {LARGE})

    def runs(self) -> list[UdpRun]:
        """Small bursts, large ones, and then until something is lost."""
        small, large, step = (
            seconds[self.mode]
            for seconds in (self.seconds_of_small, self.seconds_of_large, self.seconds_of_step)
        )
        return [
            UdpRun("small", small, POWER, REQUESTED_MBPS, SMALL, window=0),
            UdpRun("large", large, mbps=REQUESTED_MBPS, burst=LARGE, until_loss=True),
            *(
                UdpRun(
                    "step",
                    max(step, self.seconds_for(burst)),
                    mbps=REQUESTED_MBPS,
                    burst=burst,
                    until_loss=True,
                )
                for burst in self.steps()
            ),
        ]

    def seconds_for(self, burst: int) -> int:
        """How long a run has to be, in whole seconds, to hold enough bursts of so many packets."""
        bits = 8 * LEAST_BURSTS * burst * (self.over.mtu or JUMBO)
        return -(-bits // (REQUESTED_MBPS * 10**6))
