"""In the style of CSCS's tests: references by system and partition, chosen by a parameter."""

import reframe as rfm
import reframe.utility.sanity as sn


class allocation_base(rfm.RunOnlyRegressionTest):  # noqa: N801
    hugepages = parameter(["no", "2M"])  # noqa: F821 - a builtin of ReFrame within a test
    valid_systems = ["*"]
    valid_prog_environs = ["system"]
    executable = "allocate"
    tags = {"production"}
    maintainers = ["centre"]

    @run_after("init")  # noqa: F821
    def set_descr(self):
        self.descr = f"Time to allocate 4096 MB using {self.hugepages} hugepages"
        self.executable_opts = [self.hugepages]

    @sanity_function  # noqa: F821
    def assert_4gb(self):
        return sn.assert_found("4096 MB", self.stdout)

    @run_before("performance")  # noqa: F821
    def set_reference(self):
        self.reference = {
            "no": {"thishost:node": {"time": (0.14, None, 0.15, "s")}},
            "2M": {
                "elsewhere:mc": {"time": (0.07, None, 0.15, "s")},
                "*": {"time": (0.3, None, 0.15, "s")},
            },
        }[self.hugepages]

    @performance_function("s")  # noqa: F821
    def time(self):
        return sn.extractsingle(r"allocation time (?P<time>\S+)", self.stdout, "time", float)


@rfm.simple_test
class AllocSpeedTest(allocation_base):
    pass
