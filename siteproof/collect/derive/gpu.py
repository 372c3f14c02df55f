"""On GPUs: what a program measured, with clocks, power and temperature while it ran."""

from __future__ import annotations

from siteproof.collect.derive import Derived, Measured, must_be
from siteproof.parsers import gpu_gemm, nccl_tests, nvbandwidth

STATE = "gpu_state"
PROGRAMS = {"nvbandwidth": nvbandwidth, "gpu_gemm": gpu_gemm, "nccl_tests": nccl_tests}


def with_state(given: Measured) -> Derived:
    """The readings, and the conditions of the program: the state of the GPUs has none."""
    conditions = dict(given.conditions)
    for run in given.raw.runs:
        if run.dims.get("program") != STATE:
            conditions |= PROGRAMS[given.raw.facts["program"]].conditions(run.stdout)
    return given.readings, conditions


def all_reduce(given: Measured) -> Derived:
    """The same, of ranks on as many nodes as the point has. Raises OutputError: `invalid`."""
    for run in given.raw.runs:
        if run.dims.get("program") != STATE:
            must_be("nodes of the ranks", len(nccl_tests.hosts(run.stdout)), given.fact("tasks"))
    return with_state(given)
