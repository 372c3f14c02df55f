"""Bandwidth to, from, between and within the GPUs of every node: nvbandwidth."""

import reframe as rfm

from siteproof.checks import PerNodeCheck
from siteproof.checks.per_node import SCRIPTS, OnGpus
from siteproof.parsers import gpu_state, nvbandwidth


@rfm.simple_test
class GpuBandwidth(OnGpus, PerNodeCheck):
    """One copy after the other; nvbandwidth verifies what it has copied."""

    descr = "Bandwidth to, from and between the GPUs of every node"
    tags = {"gpu"}
    script = "bandwidth.sh"
    shared_scripts = (*PerNodeCheck.shared_scripts, *SCRIPTS)
    features = ("nvbandwidth",)
    parsers = {"nvbandwidth": nvbandwidth, "gpu_state": gpu_state}
    derive = "gpu.with_state"
    metrics = ("to_device", "from_device")  # between where there are several
    headline = metrics
    time_limit = "20m"
