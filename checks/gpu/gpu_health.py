"""How well the GPUs of every node have been: events, memory errors, link, throttling."""

import reframe as rfm

from siteproof.checks import PerNodeCheck
from siteproof.checks.per_node import SCRIPTS, OnGpus
from siteproof.parsers import amd_smi, nvidia_smi


@rfm.simple_test
class GpuHealth(OnGpus, PerNodeCheck):
    """What the driver counts and states; Health has what it counts in its deltas."""

    descr = "Events, memory errors, link and throttling of every GPU"
    tags = {"gpu", "system"}
    script = "gpu_health.sh"
    shared_scripts = (*PerNodeCheck.shared_scripts, *SCRIPTS)
    parsers = {"nvidia-smi": nvidia_smi, "amd-smi": amd_smi}
    metrics = ("gpus", "unreadable")  # others where GPU and driver have them
    headline = metrics
    time_limit = "5m"
