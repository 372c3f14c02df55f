"""Nodes and partitions as `scontrol show` prints them: composed outputs, and a test bed's own."""

from pathlib import Path

import pytest
import scontrol_made as made
from rows import rows

from siteproof.errors import UserError
from siteproof.slurm import configured

OUTPUTS = Path(__file__).parent / "outputs"


def test_a_node_is_read_from_several_lines_and_from_one():
    text = made.nodes("n1", gres="gpu:a100:4(S:0-1),nvme:1T", features="milan,rack1")
    (several,) = configured.parse_nodes(text).values()
    (one,) = configured.parse_nodes(" ".join(text.split()) + "\n").values()
    assert several == one
    assert (one.sockets, one.cores_per_socket, one.threads_per_core) == (2, 64, 2)
    assert one.memory == 257_000
    assert one.features == {"milan", "rack1"}
    assert one.gres == (("gpu:a100", "4"), ("nvme", "1T"))


def test_what_people_wrote_is_no_field():
    text = made.nodes("n1", comment="   Comment=Sockets=9 NodeName=evil\n   Reason=RealMemory=1")
    (node,) = configured.parse_nodes(text).values()
    assert (node.name, node.sockets, node.memory) == ("n1", 2, 257_000)


def test_memory_that_slurm_does_not_know_is_none():
    assert configured.parse_nodes(made.nodes("n1", memory=1))["n1"].memory == 0


@rows("release", ["24.11", "26.05"])
def test_nodes_and_partitions_of_later_releases_are_read(release):
    nodes = configured.parse_nodes((OUTPUTS / f"{release}/states.scontrol_nodes").read_text())
    absent = [name for name, node in nodes.items() if node.absent]
    assert (len(nodes), nodes["node001"].memory) == (11, 1506)
    assert set(absent) == {"cloud1", "cloud2", "cloud3"}
    text = (OUTPUTS / f"{release}/partitions.scontrol").read_text()
    (part,) = configured.parse_partitions(text).values()
    assert (part.name, len(part.nodes), part.up, part.restricted) == ("compute", 8, True, ())


def test_a_partition_with_who_may_not_use_it():
    text = made.partition("gpu", "n[1-4]", accounts="physics", limit="00:30:00")
    (part,) = configured.parse_partitions(text).values()
    assert len(part.nodes) == 4
    assert part.restricted == ("AllowAccounts=physics",)
    assert (part.up, part.default, part.limit) == (True, False, "00:30:00")


@rows(
    "text, what",
    [
        ("", "lists no node"),
        ("slurm_load_node error: Unable to contact slurm controller", "lists no node"),
        (made.nodes("n1") * 2, "lists node n1 twice"),
        (made.nodes("n1", sockets="2").replace("Sockets=2", "Sockets=two"), "not a whole number"),
        (made.nodes("n1").replace("NodeName=n1", "NodeName=$(reboot)"), "not a valid name"),
        (
            made.nodes("n[1-2]").rpartition("Sockets=")[0],
            "NodeName=n2 is cut off: no Sockets, State, ThreadsPerCore",
        ),
    ],
)
def test_what_is_no_list_of_nodes_is_refused(text, what):
    with pytest.raises(UserError, match=what):
        configured.parse_nodes(text)


@rows("name", ["a b", "--wrap=reboot", "$(reboot)", "a;b"])
def test_a_partition_whose_name_is_no_word_is_refused(name):
    with pytest.raises(UserError, match="not a name"):
        configured.parse_partitions(f"PartitionName={name}\n   Nodes=n1 State=UP\n")


def test_a_partition_that_is_cut_off_is_refused():
    text = made.partition("batch", "n[1-8]")
    with pytest.raises(UserError, match="PartitionName=batch is cut off: no State"):
        configured.parse_partitions(text[: text.index("State=")])
