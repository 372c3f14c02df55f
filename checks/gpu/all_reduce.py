"""NCCL's or RCCL's all-reduce over the GPUs of 1, 2, 4, 8 ... all nodes."""

import reframe as rfm

from siteproof.checks import TogetherCheck
from siteproof.checks.per_node import SCRIPTS, OnGpus
from siteproof.parsers import gpu_state, nccl_tests


@rfm.simple_test
class GpuAllReduce(OnGpus, TogetherCheck):
    """A rank a node, with all of its GPUs; every number of each result is compared."""

    descr = "All-reduce by NCCL or RCCL on 1, 2, 4 ... all nodes"
    tags = {"gpu", "network"}
    script = "all_reduce.sh"
    shared_scripts = (*TogetherCheck.shared_scripts, *SCRIPTS)
    features = ("nccl_tests",)
    parsers = {"nccl_tests": nccl_tests, "gpu_state": gpu_state}
    derive = "gpu.all_reduce"
    metrics = ("bus_bandwidth", "time", "gpus")
    headline = ("bus_bandwidth",)
    fewest = 1
    growing = True

    iterations_of = {"quick": 20, "maintenance": 20, "acceptance": 50}
    smallest = 8  # bytes
    largest_of = {"quick": 2**26, "maintenance": 2**30, "acceptance": 2**33}  # bytes

    def settings(self) -> dict[str, str]:
        """Which sizes."""
        return {
            **super().settings(),
            "SMALLEST": str(self.smallest),
            "LARGEST": str(self.largest_of[self.mode]),
        }
