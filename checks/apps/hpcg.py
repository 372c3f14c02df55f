"""Conjugate gradients of every node: HPCG on all of its cores."""

import reframe as rfm

from siteproof.checks import ApplicationCheck
from siteproof.parsers import hpcg

EDGE = {"quick": 32, "maintenance": 104, "acceptance": 104}  # of a task's grid; 104 is HPCG's own
SECONDS = {"quick": 10, "maintenance": 60, "acceptance": 1800}  # 1800 for an official result


@rfm.simple_test
class Hpcg(ApplicationCheck):
    """xhpcg by Spack or on PATH; Debian has none. HPCG checks its answer itself."""

    descr = "Conjugate gradients on every node"
    tags = {"apps"}
    script = "hpcg.sh"
    features = ("hpcg",)
    parsers = {"xhpcg": hpcg}
    metrics = ("gflops", "time")
    headline = ("gflops",)
    problems = {
        mode: {"EDGE": str(EDGE[mode]), "SECONDS_ASKED": str(SECONDS[mode])} for mode in EDGE
    }
    solved = {mode: dict.fromkeys(("nx", "ny", "nz"), str(EDGE[mode])) for mode in EDGE}
