"""The points of a sweep as plain ReFrame has them: a parameter, and a job each."""

import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, sanity_function


@rfm.simple_test
class TrivialPoint(rfm.RunOnlyRegressionTest):
    """Two ranks on two nodes, as in the sweep that it is compared with."""

    case = parameter(range(int(os.environ["BENCHMARK_CASES"])))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"
    executable_opts = ["answer 1"]
    num_tasks = 2
    num_tasks_per_node = 1
    exclusive_access = True
    time_limit = "5m"
    reference = {"*": {"answer": (1, 0, None, "count")}}

    @sanity_function
    def has_an_answer(self) -> bool:
        """The ranks came to their end."""
        return sn.assert_found(r"^answer \d+$", self.stdout)

    @performance_function("count")
    def answer(self) -> int:
        """What they say."""
        return sn.extractsingle(r"^answer (\d+)$", self.stdout, 1, int)
