"""What sinfo says of nodes, and which of them can take a job, each with the reason."""

import pytest

from siteproof.checks.slurm import parse_sinfo, unusable


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("n1|idle*|none", "idle*: not responding"),
        ("n1|down*|Not responding", "down*: Not responding"),
        ("n1|drained|bad DIMM", "drained: bad DIMM"),
        ("n2|idle|none", "unknown to Slurm"),
    ],
)
def test_a_node_that_can_take_no_job_is_told_with_its_reason(line, why):
    assert unusable(["n1"], parse_sinfo(f"{line}\n")) == {"n1": why}


@pytest.mark.parametrize("line", ["n1|idle|none", "n1|allocated|none", "n1|reserved|none"])
def test_a_node_that_can_take_a_job_is_not_told(line):
    assert unusable(["n1"], parse_sinfo(line)) == {}


def test_a_reserved_node_takes_no_job_from_outside():
    assert "-J reservation=NAME" in unusable(["n1"], parse_sinfo("n1|maint|x"), outside=True)["n1"]


def test_of_a_node_in_two_partitions_the_worst_line_stays():
    assert str(parse_sinfo("n1|idle|none\nn1|drained|x\nn1|idle|none\n")["n1"]) == "drained: x"
