"""Host parameters as a check of plain ReFrame, for `--distribute`: a case and a job a node."""

import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, sanity_function


@rfm.simple_test
class PlainParameters(rfm.RunOnlyRegressionTest):
    """Reads with the same script what checks/host reads, and counts what was read."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    sourcesdir = os.environ["BENCHMARK_SCRIPTS"]
    executable = "sh"
    executable_opts = ["parameters.sh"]
    env_vars = {
        "SYSCTLS": "'net.ipv4.tcp_timestamps net.ipv4.tcp_sack net.ipv4.tcp_window_scaling'",
        "NICS": "eth0",
    }
    time_limit = "5m"
    reference = {"*": {"parameters": (3, 0, 0, "count")}}

    @sanity_function
    def is_whole(self) -> bool:
        """The script came to its end."""
        return sn.assert_found(r"^end host parameters$", self.stdout)

    @performance_function("count")
    def parameters(self) -> int:
        """How many settings have the value that they should have."""
        return sn.count(sn.findall(r"^sysctl \S+ = 1$", self.stdout))
