"""Memory bandwidth of every node: STREAM, best of its repetitions."""

import reframe as rfm

from siteproof.checks import PerNodeCheck
from siteproof.parsers import likwid, stream
from siteproof.sites import job_keys


@rfm.simple_test
class Stream(PerNodeCheck):
    """STREAM 5.10 answers a contract; likwid-bench stands in for it, under its own name."""

    descr = "Memory bandwidth of every node"
    tags = {"cpu", "memory"}
    script = "stream.sh"
    features = ("stream", "likwid")
    parsers = {"stream": stream, "likwid-bench": likwid}
    derive = "cpu.stream"
    steering = job_keys.OF_LIBRARIES
    clean = True
    metrics = ("copy", "triad")
    headline = ("triad",)
    time_limit = "10m"

    def settings(self) -> dict[str, str]:
        """Threads and caches, where the site knows them."""
        return self.hardware_variables()

    def facts(self) -> dict[str, object]:
        """The size of the caches, which the arrays must exceed."""
        return self.hardware_facts()
