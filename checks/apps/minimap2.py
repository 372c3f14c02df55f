"""Sequence alignment of every node: minimap2 with reads of a random genome."""

import reframe as rfm

from siteproof.checks import ApplicationCheck
from siteproof.parsers import minimap2

GENOME = {"quick": 2_000_000, "maintenance": 10_000_000, "acceptance": 20_000_000}  # letters
READS = {"quick": 20_000, "maintenance": 50_000, "acceptance": 200_000}  # for each core


@rfm.simple_test
class Minimap2(ApplicationCheck):
    """The script takes the reads from known places of the genome, and changes one letter in 100.

    A random genome repeats nothing as long as a read, so each read has one place.
    """

    descr = "Alignment of reads to a genome on every node"
    tags = {"apps"}
    script = "minimap2.sh"
    features = ("minimap2",)
    parsers = {"minimap2": minimap2}
    metrics = ("rate", "time", "placed")
    headline = ("rate",)
    problems = {mode: {"GENOME": str(GENOME[mode]), "READS": str(READS[mode])} for mode in GENOME}
    solved = {mode: {"genome": str(GENOME[mode])} for mode in GENOME}
    references = {"placed": ("100", "0.1")}
