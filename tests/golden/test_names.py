"""A name that is not UTF-8 below perflogs/ or stage/: it is named, and costs nothing else."""

import os

import pytest
import record

STRANGE = os.fsdecode(b"\xff")
LINES = [
    *("history", "history --rebuild", "verdict --campaign after", "nodes --campaign after"),
    *("gate --campaign after", "trend", "export json --campaign after", "why node003", "collect"),
    *("report --brief --campaign after", "describe", "compare before after"),
]
PLACES = {
    "a system": f"perflogs/{STRANGE}/compute/a.jsonl",
    "a partition": f"perflogs/testbed/{STRANGE}/a.jsonl",
    "a file of samples": f"perflogs/testbed/compute/{STRANGE}.jsonl",
    "a perflog of plain ReFrame": f"perflogs/testbed/reframe/{STRANGE}.log",
    "a session's stage": f"stage/{STRANGE}/testbed/compute/x/rfm_job.out",
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """One as it was recorded, and one with names that no program of ours has written."""
    clean, strange = (record.World("campaign", tmp_path_factory.mktemp(n)) for n in ("a", "b"))
    for place in PLACES.values():
        path = strange.data / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    return clean, strange


def without_places(world, told):
    return [line for line in told.splitlines() if "its name is not UTF-8" not in line]


@pytest.mark.parametrize("line", LINES)
def test_each_command_answers_as_without_them(worlds, line):
    words = tuple(line.split())
    if words[0] not in ("history", "collect"):
        words = (*words, "--system", "testbed")
    clean, strange = (without_places(world, world.told(words)) for world in worlds)
    assert [text for text in strange if text != "--- stderr"] == [
        text for text in clean if text != "--- stderr"
    ]


@pytest.mark.parametrize("line", ["verdict --campaign after --system testbed", "history"])
def test_what_is_left_out_is_named(worlds, line):
    told = " ".join(worlds[1].told(tuple(line.split())).split())
    assert "perflogs/testbed/?: left out: its name is not UTF-8" in told
    assert "perflogs/testbed/compute/?.jsonl: left out: its name is not UTF-8" in told
