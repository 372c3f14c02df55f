"""Matrix product by precision on every GPU: cuBLAS or rocBLAS, each result compared."""

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import PerNodeCheck
from siteproof.checks.per_node import SCRIPTS, OnGpus
from siteproof.parsers import gpu_gemm, gpu_state


@rfm.simple_test
class GpuGemm(OnGpus, PerNodeCheck):
    """All GPUs of a node at once, as in production: they share power and cooling."""

    descr = "Matrix product on every GPU, by precision"
    tags = {"gpu"}
    script = "gemm.sh"
    shared_scripts = (*PerNodeCheck.shared_scripts, *SCRIPTS, "gpu_gemm.py")
    features = ("gpu_blas",)
    parsers = {"gpu_gemm": gpu_gemm, "gpu_state": gpu_state}
    derive = "gpu.with_state"
    metrics = ("fp64", "fp32", "fp16")  # others where GPU and library have them
    headline = ("fp64", "fp16")
    time_limit = "20m"

    n = variable(int, value=0)  # the order of the matrices; 0: as below
    duration = variable(int, value=0)  # seconds of each precision; 0: as below

    by_mode = {
        "n": {"quick": 4096, "maintenance": 8192, "acceptance": 8192},
        "duration": {"quick": 2, "maintenance": 10, "acceptance": 30},
    }
    precisions = ("fp64", "fp32", "tf32", "fp16", "bf16", "int8")

    def settings(self) -> dict[str, str]:
        """The problem."""
        return {
            **super().settings(),
            "N": self.value_of("n"),
            "SECONDS_OF_RUN": self.value_of("duration"),
            "PRECISIONS": " ".join(self.precisions),
        }
