"""How well every node has been: errors, throttling, clock, kernel log, time."""

import reframe as rfm

from siteproof.checks import PerNodeCheck
from siteproof.parsers import health


@rfm.simple_test
class Health(PerNodeCheck):
    """Counters since boot and states of the moment; two of a campaign give deltas."""

    descr = "Error counters and states of every node"
    tags = {"system"}
    script = "health.sh"
    shared_scripts = (*PerNodeCheck.shared_scripts, "other_tools.sh", "rdma.sh")
    parsers = {"sysfs": health}
    derive = "host.health"
    metrics = ("unreadable", "load", "read_only", "swap_used", "uptime", "zombies")
    headline = ("unreadable",)
    time_limit = "5m"
