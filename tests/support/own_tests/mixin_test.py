"""In the style of EESSI's tests: a mixin with hooks, scales, variables made in a hook."""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable

SCALES = {"1_core": 1, "2_cores": 2}


class CentreMixin(rfm.RegressionTestPlugin):
    """What all tests of the centre share: a size, threads and their places."""

    scale = parameter(SCALES)
    suite_version = variable(str, value="1.0")

    @run_after("init")
    def set_scale(self):
        self.tags |= {self.scale}

    @run_after("setup")
    def assign_tasks(self):
        self.num_tasks = self.num_tasks_per_node = 1
        self.num_cpus_per_task = SCALES[self.scale]
        self.env_vars["OMP_NUM_THREADS"] = self.num_cpus_per_task

    @run_after("setup")
    def bind_processes(self):
        self.env_vars["OMP_PROC_BIND"] = "close"
        self.prerun_cmds += ["echo affinity $(taskset -cp $$ 2>/dev/null || echo unknown)"]


@rfm.simple_test
class CENTRE_Simulation(rfm.RunOnlyRegressionTest, CentreMixin):  # noqa: N801
    descr = "A simulation that prints its rate as molecular dynamics do"
    valid_systems = ["*"]
    valid_prog_environs = ["system"]
    executable = "simulate"
    time_limit = "5m"
    reference = {"*": {"perf": (10, -0.5, None, "ns/day")}}

    @sanity_function
    def assert_end(self):
        return sn.assert_found(r"finished", self.stdout)

    @run_before("performance")
    def set_perf_vars(self):
        rate = sn.extractsingle(r"Performance:\s+(\S+)", self.stdout, 1, float)
        loops = sn.extractsingle(r"loops (\S+)", self.stdout, 1, int)
        self.perf_variables = {
            "perf": sn.make_performance_function(rate, "ns/day"),
            "loops": sn.make_performance_function(loops, "loops"),
        }
