"""A sweep that measures nothing; sweep_point.py puts it into a copy of the suite."""

import os

from siteproof.checks import SweepCheck
from siteproof.parsers import trivial


class TrivialSweep(SweepCheck, special=True):
    """Each point starts its ranks once, and may start them once more without Siteproof."""

    descr = "Next to nothing"
    tool = "trivial"
    script = "trivial_sweep.sh"
    parsers = {"trivial": trivial}
    metrics = ("answer",)

    def settings(self) -> dict[str, str]:
        """Where points leave the moments at which they began and ended what."""
        return {**super().settings(), "STAMPS": os.environ["BENCHMARK_STAMPS"]}
