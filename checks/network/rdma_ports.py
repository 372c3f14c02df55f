"""Ports of InfiniBand and RoCE devices of every node: state, rate, width, errors."""

import reframe as rfm

from siteproof.checks import PerNodeCheck
from siteproof.parsers import rdma_ports


@rfm.simple_test
class RdmaPorts(PerNodeCheck):
    """The kernel's own files; counters are totals since the driver was loaded or they were reset.

    Health has the same counters, of which a campaign gives deltas. Nodes without a device SKIP,
    unless the site states one.
    """

    descr = "State, rate and errors of InfiniBand and RoCE ports"
    tags = {"network"}
    script = "rdma_ports.sh"
    shared_scripts = (*PerNodeCheck.shared_scripts, "rdma.sh")
    parsers = {"sysfs": rdma_ports}
    derive = "network.rdma_ports"
    metrics = ("ports", "ports_active")  # errors where a device keeps counters
    headline = ("ports_active",)
    time_limit = "2m"

    def settings(self) -> dict[str, str]:
        """The devices, ports and interfaces whose rate the site states."""
        return {**super().settings(), "STATED": " ".join(self.stated())}

    def facts(self) -> dict[str, object]:
        """The rate that the site states for a device or port, in b/s, by its name."""
        return {"stated": self.stated()}

    def stated(self) -> dict[str, str]:
        """In b/s, by the name of a device, port or interface."""
        nics = self.hardware.nics.items() if self.hardware else ()
        return {name: str(nic.speed.to("b/s")) for name, nic in nics if nic.speed}
