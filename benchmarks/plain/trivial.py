"""A trivial check as plain ReFrame has it, with one figure and one reference."""

import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, sanity_function


@rfm.simple_test
class Trivial(rfm.RunOnlyRegressionTest):
    """Runs the same script as the check that it is compared with."""

    case = parameter(range(int(os.environ["BENCHMARK_CASES"])))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    sourcesdir = "../ours"
    executable = "sh"
    executable_opts = ["trivial.sh"]
    reference = {"*": {"answer": (1, 0, None, "count")}}

    @sanity_function
    def has_an_answer(self) -> bool:
        """The script came to its end."""
        return sn.assert_found(r"^answer \d+$", self.stdout)

    @performance_function("count")
    def answer(self) -> int:
        """The script's output."""
        return sn.extractsingle(r"^answer (\d+)$", self.stdout, 1, int)
