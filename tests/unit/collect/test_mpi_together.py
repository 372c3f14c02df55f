"""Ranks on many nodes: where they have to be, what follows from load, and a run for real."""

import os
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from siteproof import checks
from siteproof.collect.derive import Measured, network
from siteproof.collect.raw import Execution, Raw
from siteproof.errors import OutputError
from siteproof.parsers import Reading, mpi_together

PROGRAM = Path(checks.__file__).with_name("on_node") / "mpi_together.py"
HERE = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@pytest.mark.parametrize(
    ("ranks", "why"),
    [
        ([(0, "a"), (1, "b"), (2, "c")], "ranks: 3, expected 4"),
        ([(0, "a"), (1, "b"), (1, "c"), (3, "d")], "that differ, from 0 on: 3, expected 4"),
        ([(0, "a"), (1, "b"), (2, "b"), (3, "d")], "nodes of the ranks: 3, expected 4"),
    ],
)
def test_ranks_that_are_not_one_a_node_give_no_value(ranks, why):
    text = "".join(f"rank {rank} on {node}\n" for rank, node in ranks)
    with pytest.raises(OutputError, match=why) as error:
        network.ranks_on(text, 4, 1)
    assert error.value.status == "invalid"


def test_a_ratio_is_the_value_with_load_by_the_value_without():
    text = "".join(f"rank {rank} on n{rank}\n" for rank in range(4))
    readings = [
        Reading("latency", Decimal(value), "us", {"load": load})
        for load, value in (("no", 2), ("yes", 5))
    ]
    raw = Raw({}, {}, "", "", (Execution({}, 0, text, ""),))
    given = Measured(readings, {}, raw, {"tasks": "4", "tasks_per_node": "1"})
    found, _ = network.congestion(given)
    assert found[len(readings) :] == [Reading("latency_ratio", Decimal("2.5"), "x")]


def test_the_bandwidth_of_the_halves_is_the_sum_of_a_round_both_ways_and_pairs_have_their_nodes():
    text = "".join(f"rank {rank} on n{rank}\n" for rank in range(4))
    readings = [
        Reading("pair", Decimal(value), "MB/s", dict(kind=kind, round=number, a=a, b=b))
        for value, kind, number, a, b in (
            *((10, "across", "0", "0", "2"), (20, "across", "0", "1", "3")),
            *((30, "across", "1", "0", "3"), (50, "across", "1", "1", "2")),
            (7, "all", "2", "0", "1"),
        )
    ]
    raw = Raw({}, {}, "", "", (Execution({}, 0, text, ""),))
    found, _ = network.bisection(Measured(readings, {}, raw, {"tasks": "4"}))
    assert found == [
        Reading("bandwidth", Decimal(110), "MB/s"),  # the median of 2 x 30 and 2 x 80
        Reading("pair", Decimal(7), "MB/s", {"from": "n0", "to": "n1"}),
    ]


@pytest.mark.skipif(not shutil.which("mpirun"), reason="NOT TESTED: no mpirun")
@pytest.mark.parametrize(
    ("words", "metrics"),
    [
        ("collective alltoall 8 32 2", {"alltoall"}),
        ("rounds 1024 2", {"pair"}),
        ("congestion 10 4096 1024", {"latency", "latency_p99", "bandwidth", "moved"}),
    ],
)
def test_the_program_of_mpi4py_prints_what_its_parser_reads(words, metrics):
    command = ["mpirun", "-np", "4", sys.executable, str(PROGRAM), *words.split()]
    command += ["across 0:2 1:3/all 0:3 1:2"] if words.startswith("rounds") else []
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | HERE, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert {reading.metric for reading in mpi_together.parse(ran.stdout)} == metrics
