"""The trivial check as one of Siteproof's; local_cost.py puts it into a copy of the suite."""

import os

import reframe as rfm
from reframe.core.builtins import parameter

from siteproof.checks import PerNodeCheck
from siteproof.parsers import trivial


@rfm.simple_test
class Trivial(PerNodeCheck):
    """Runs the same script as the plain check."""

    descr = "Next to nothing"
    case = parameter(range(int(os.environ["BENCHMARK_CASES"])))
    script = "trivial.sh"
    parsers = {"trivial": trivial}
    metrics = ("answer",)
    headline = ("answer",)
    time_limit = "5m"
