"""As in ReFrame's tutorial: compiled from source, two performance functions, no reference."""

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class stream_test(rfm.RegressionTest):  # noqa: N801 - the tutorial writes it so
    valid_systems = ["*"]
    valid_prog_environs = ["system"]
    build_system = "SingleSource"
    sourcepath = "triad.c"

    @run_before("compile")  # noqa: F821 - a builtin of ReFrame within a test
    def set_flags(self):
        self.build_system.cflags = ["-O2"]

    @sanity_function  # noqa: F821
    def validate_solution(self):
        return sn.assert_found(r"Solution Validates", self.stdout)

    @performance_function("MB/s")  # noqa: F821
    def copy_bw(self):
        return sn.extractsingle(r"Copy:\s+(\S+)", self.stdout, 1, float)

    @performance_function("MB/s")  # noqa: F821
    def triad_bw(self):
        return sn.extractsingle(r"Triad:\s+(\S+)", self.stdout, 1, float)
