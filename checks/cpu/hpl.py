"""Floating-point rate of every node: HPL on all of its cores."""

import reframe as rfm
from reframe.core.builtins import variable

from siteproof.checks import PerNodeCheck
from siteproof.parsers import hpcc, hpl

QUICK = 3000  # solved within a second; HPCC's other tests take half a minute


@rfm.simple_test
class Hpl(PerNodeCheck):
    """xhpl answers a contract; HPCC, where only that exists, is a smoke test."""

    descr = "Floating-point rate of every node"
    tags = {"cpu"}
    script = "hpl.sh"
    features = ("hpl", "hpcc")
    parsers = {"xhpl": hpl, "hpcc": hpcc}
    derive = "hpl"
    metrics = ("gflops", "time", "residual")
    headline = ("gflops",)
    time_limit = "60m"

    share = variable(float, value=0.5)  # of the memory: what contracts ask for at least
    n = variable(int, value=0)  # the problem itself; 0: by the mode

    def settings(self):
        """The problem: a small one in quick mode, otherwise a share of the node's memory."""
        n = self.n or (QUICK if self.mode == "quick" else 0)
        size = {"N": str(n)} if n else {"SHARE": str(self.share)}
        return {"NB": "192", **size, **self.hardware_variables()}

    def facts(self):
        """Peak, memory and cores, for the shares of them."""
        return self.hardware_facts()
