"""A trivial test of plain ReFrame with one figure, for its results database."""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, sanity_function


@rfm.simple_test
class Stored(rfm.RunOnlyRegressionTest):
    """Prints a rate."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"
    executable_opts = ["rate", "1000.5"]

    @sanity_function
    def is_there(self) -> bool:
        """A rate was printed."""
        return sn.assert_found("^rate", self.stdout)

    @performance_function("MB/s")
    def rate(self) -> float:
        """The rate."""
        return sn.extractsingle(r"rate (\S+)", self.stdout, 1, float)
