"""Two sites on the test bed, joined as SC11's were."""

import json
from contextlib import contextmanager

from bed_suite import NODES, Suite
from testbed_fixture import Testbed

RTT = 50.5e-3  # seconds
TUNED = "4096 65536 167772160"  # SC11's tcp_rmem and tcp_wmem


class Sites(Suite):
    """The suite on a bed of two sites."""

    system = "testbed-wan"

    def good(self, metric, link="wan"):
        """The samples of a metric over a link, by sender and receiver; nothing has failed."""
        assert [(s.metric, s.node, s.dims, s.why) for s in self.samples() if s.status != "ok"] == []
        return {
            (s.node, s.dims["peer"]): s
            for s in self.samples()
            if s.metric == metric and s.conditions["link"] == link and "peer" in s.dims
        }

    def rates(self, link="wan"):
        """b/s of one stream, by sender and receiver."""
        found = self.good("TcpBandwidth.throughput", link)
        return {way: float(sample.value) for way, sample in found.items()}

    def misses(self, criterion):
        """The nodes or pairs that fail a criterion."""
        told = json.loads(self.siteproof("verdict", "--json").stdout)
        one = next(c for c in told["criteria"] if c["id"] == criterion)
        return sorted(row["node"] for row in one["nodes"] if row["verdict"] == "FAIL")


@contextmanager
def joined(rate, shared, name="-wan-slurm"):
    """Four nodes at each site, with SC11's buffers, and a WAN of that rate."""
    bed = Testbed(f"{name}-{rate}")
    bed.up("8", "--sites", "2", "--wan", f"50.5ms,{rate}", "--share", shared)
    try:
        tune(bed, tcp_rmem=TUNED, tcp_wmem=TUNED)
        yield bed
    finally:
        bed.down()


def tune(bed, **sysctls):
    """Set sysctls of TCP on every node."""
    for node in NODES:
        for file, value in sysctls.items():
            line = f"echo {value} >/proc/sys/net/ipv4/{file}"
            assert bed.run(["sh", "-c", line], node=node).returncode == 0


@contextmanager
def faults(bed, *wrong):
    """(fault, node, value) …, for a while."""
    try:
        for name, node, value in wrong:
            bed.fault(name, node, value=value)
        yield
    finally:
        bed.mend(*{node for _, node, _ in wrong})


def both(one, other):
    """Both directions of a pair."""
    return [(one, other), (other, one)]
