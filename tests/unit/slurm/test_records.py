"""What sinfo, scontrol and sacct print, recorded, and what is made of it."""

import re
from pathlib import Path

import pytest
from rows import rows

from siteproof import nodesets
from siteproof.collect import cause
from siteproof.errors import UserError
from siteproof.gate import commands
from siteproof.gate.commands import Cluster
from siteproof.slurm.records import (
    Node,
    Reservation,
    parse_energy,
    parse_job_nodes,
    parse_nodes,
    parse_reservations,
    parse_sinfo,
    unusable,
)
from siteproof.slurm.spelling import node_state

OUTPUTS = Path(__file__).parent / "outputs"
RECORDED = sorted(OUTPUTS.glob("*/*.scontrol_nodes"))
NODE = "NodeName=n1 Arch=x86_64 OS=Linux #1 State={} ThreadsPerCore=1 Partitions=a"


def names(paths):
    return [f"{path.parent.name}/{path.stem}" for path in paths]


@pytest.fixture(params=RECORDED, ids=names(RECORDED))
def scontrol(request):
    """A recording of all nodes."""
    return request.param


# ---- recordings


def test_every_release_has_recordings():
    assert {path.parent.name for path in RECORDED} == {"22.05", "24.11", "26.05"}


def test_every_node_of_a_recording_is_read(scontrol):
    text = scontrol.read_text()
    found = parse_nodes(text)
    assert list(found) == re.findall(r"^NodeName=(\S+)", text, re.MULTILINE)
    for node in found.values():
        assert f" State={node.state.said} " in text


def test_checks_and_gate_judge_a_node_alike(scontrol):
    """The checks ask sinfo, the gate scontrol: of each node both have the same answer."""
    for ours, short in ((".sinfo", ""), (".sinfo_short", "short")):
        path = scontrol.with_suffix(ours)
        if short and not path.exists():
            continue
        gate, checks = parse_nodes(scontrol.read_text()), parse_sinfo(path.read_text())
        assert list(gate) == list(checks)
        for name in gate:
            seen, told = gate[name], checks[name]
            assert seen.state.usable == told.state.usable, (seen, told)
            assert seen.state.idle == told.state.idle, (seen, told)
            hidden = told.state.said in ("reboot^", "boot^")
            assert seen.state.drains == told.state.drains or hidden
            assert seen.state.reserved == told.state.reserved, (seen, told)
            assert seen.reason == told.reason


def test_a_node_that_the_gate_leaves_to_others_is_lost_for_the_checks(scontrol):
    nodes = parse_nodes(scontrol.read_text())
    seen = parse_sinfo(scontrol.with_suffix(".sinfo").read_text())
    lost = unusable(seen, seen)
    ours = [name for name, node in nodes.items() if node.state.taken_out]
    assert set(ours) <= set(lost)
    cluster = Cluster(nodes)
    for name in ours:
        left = commands._untouchable(name, cluster, "siteproof-compute", ())
        mine = (commands.Standing.BY_US, commands.Standing.DEAD)
        assert bool(left) is (commands.standing(nodes[name]) not in mine)


def test_what_is_cut_off_is_unknown_and_never_judged_otherwise(scontrol):
    for path, parse in ((scontrol, parse_nodes), (scontrol.with_suffix(".sinfo"), parse_sinfo)):
        text = path.read_text()
        whole, before = parse(text), ""
        for line in text.splitlines(keepends=True):
            for end in range(len(line)):
                # with the line before it, which it may belong to
                for name, node in parse(before + line[:end]).items():
                    assert whole[name].state == node.state, line[:end][-60:]
            before = line


def test_the_reservations_of_a_recording_are_read(scontrol):
    text = scontrol.with_suffix(".scontrol_reservations").read_text()
    found = parse_reservations(text)
    assert list(found) == re.findall(r"^ReservationName=(\S+)", text, re.MULTILINE)
    known = parse_nodes(scontrol.read_text())
    for reservation in found.values():
        assert reservation.start in (1795317814, 1795902303, 1795902327)
        assert set(reservation.nodes) == {n for n in reservation.nodes if known[n].state.reserved}


@rows(
    "release, node, reason, comment",
    [
        ("22.05/mixed_lot", "node001", "bad $(DIMM), a=b | rack 7", "bought = 2021, ask"),
        ("24.11/states", "node001", "bad $(DIMM), a=b | rack 7", "bought = 2021, ask"),
        ("24.11/states", "node008", "firmware of May : reboot issued", ""),
        (
            "26.05/states",
            "node004",
            "siteproof: FAILED: Stream.triad 12 %; winter; see: siteproof why node004",
            "siteproof: FAILED: Stream.triad 12 %",
        ),
    ],
)
def test_words_with_blanks_and_the_fields_behind_them(release, node, reason, comment):
    found = parse_nodes((OUTPUTS / f"{release}.scontrol_nodes").read_text())[node]
    assert (found.reason, found.comment) == (reason, comment)


@rows(
    "job, state, by_somebody",
    [
        ("1", "CANCELLED by 0", True),
        ("3", "COMPLETED", False),
        ("8", "TIMEOUT", False),
        ("12", "FAILED", False),
        ("14", "NODE_FAIL", True),
        ("10", "RESIZING", True),
    ],
)
def test_who_has_ended_a_recorded_job(job, state, by_somebody):
    text = (OUTPUTS / "22.05/jobs.sacct").read_text()
    assert re.search(rf"^{job}\|([^|]*)\|", text, re.MULTILINE)[1] == state
    assert cause.by_somebody(state) == by_somebody


def test_energy_that_slurm_does_not_account_is_none_and_never_zero():
    """Recorded with acct_gather_energy/none; what Slurm prints for "no value" is of its slurm.h."""
    assert parse_energy((OUTPUTS / "22.05/no_energy.sacct_energy").read_text()) == {}
    none = ["", "0", "4294967294", "4294967295", "18446744073709551614", "18446744073709551615"]
    assert parse_energy("".join(f"siteproof-00001|{text}\n" for text in none)) == {}
    assert parse_energy("job|500\nstep|120\nstep|30\nother|-1\n") == {"job": 500, "step": 150}


def test_a_job_that_ends_has_all_of_its_nodes():
    """Recorded while one of its two nodes had ended: the job's own line names the other one."""
    text = (OUTPUTS / "22.05/completing.sacct_nodes").read_text()
    assert text.startswith("node001\n")
    assert str(parse_job_nodes(text)) == "node[001-002]"
    assert not parse_job_nodes("None assigned\n\n@all\nnode[1-\n")


@rows(
    "state, by_somebody",
    [
        ("CANCELLED by 1000", True),
        ("OUT_OF_MEMORY", False),
        ("OUT_OF_ME+", False),
        ("DEADLINE", True),
        ("BOOT_FAIL", True),
        ("REVOKED", True),
        ("PREEMPTED", True),
        ("NODE_FAIL", True),
        ("TIMEOUT", False),
        ("SUSPENDED", True),
        ("", False),
    ],
)
def test_who_has_ended_a_job(state, by_somebody):
    assert cause.by_somebody(state) == by_somebody


# ---- what people write, and what is no output


@rows(
    "tail, reason, comment",
    [
        ("", "", ""),
        (" Comment=bought = 2021 Reason=x State=DOWN", "", "bought = 2021"),
        (" Comment= a=b", "", "a=b"),
        (
            " Reason=bad [x] Comment=y [root@1795227520] Comment=a State=DOWN",
            "bad [x] Comment=y",
            "a",
        ),
        (
            " Reason=bad [root@17] Comment=siteproof: FAILED: x Extra=z",
            "bad",
            "siteproof: FAILED: x",
        ),
        (" Reason=bad [root@2026-11-22T03:12:54] Comment=x", "bad", "x"),
        (' Reason=x [root@17] Comment={"podName":"w"} InstanceId=i-1', "x", '{"podName":"w"}'),
        (" Reason=first line [root@17]         second line Comment=x", "first line", "x"),
        (" Extra=a Comment=no comment", "", ""),
        (" Reason=\x1b[31mred [root@17]", "?[31mred", ""),
    ],
)
def test_reasons_and_comments_that_look_like_fields(tail, reason, comment):
    node = parse_nodes(NODE.format("IDLE+DRAIN") + tail + "\n")["n1"]
    by = "root" if "[root@" in tail else ""
    stamp = re.search(r"@(\d+)\]", tail)
    since = int(stamp[1]) if stamp else 0
    assert node == Node("n1", node_state("IDLE+DRAIN"), reason, comment, by, since=since)


def test_when_a_node_booted_is_read_from_its_own_field_only():
    said = NODE.format("IDLE") + " BootTime={} SlurmdStartTime=9 Reason=x BootTime=7 [root@17]\n"
    assert parse_nodes(said.format("1795300000"))["n1"].booted == 1795300000
    assert parse_nodes(said.format("None"))["n1"].booted == 0


def test_a_comment_of_several_lines_makes_no_node():
    said = NODE.format("IDLE") + " Comment=a\nn2 State=DOWN\n"
    assert list(parse_nodes(said)) == ["n1"]


def test_a_node_that_is_listed_twice_is_refused():
    with pytest.raises(UserError, match="twice"):
        parse_nodes(f"{NODE.format('IDLE')} Comment=a\n{NODE.format('DOWN')}\n")


def test_reservations_are_read():
    said = (
        "ReservationName=a StartTime=17 EndTime=18 Duration=1 Nodes=n[1-2] NodeCnt=2 Users=x\n"
        "ReservationName=b StartTime=19 EndTime=20 Duration=1 Nodes=(null) NodeCnt=0\n"
        "ReservationName=c StartTime=21 Duration=1 Nodes=n3 NodeCnt=1 Users=x,root Groups=(null)\n"
        "ReservationName=d StartTime=23 Duration=1 Nodes=n4 NodeCnt=1 Users=(null) Groups=g\n"
    )
    found = parse_reservations(said)
    assert found["a"] == Reservation("a", 17, nodesets.parse("n[1-2]"), ("x",))
    assert not found["b"].nodes
    assert [found[name].users for name in "bcd"] == [(), ("x", "root"), ()]


@rows(
    "text",
    [
        "",
        "\n",
        "No nodes in the system\n",
        "No reservations in the system\n",
        "\0\n",
        "|||\n",
        "slurm_load_node error: Unable to contact slurm controller (connect failure)\n",
        "sinfo: error: Invalid node format specification: x\n",
        "NodeName=\n",
        "NodeName=n1 State=\n",
        "<html>502</html>\n",
        "ReservationName=a\n",
    ],
)
def test_what_is_no_output_is_no_node_and_no_reservation(text):
    assert parse_nodes(text) == {}
    assert parse_sinfo(text) == {}
    assert parse_reservations(text) == {}


@pytest.mark.parametrize("digits", ["999999999999", "9" * 40, "0"])
def test_a_time_of_no_year_in_a_reason_is_no_time(digits):
    tail = f" Reason=bad [ada@{digits}] x [root@17]\n"
    node = parse_nodes(NODE.format("IDLE+DRAIN") + tail)["n1"]
    assert node.since == 0
    assert commands.out_of_service(node).since == ""


# ---- which nodes can take a job


@rows(
    "line, why",
    [
        ("n1|idle*|none", "idle (not responding)"),
        ("n1|down*|Not responding", "down (not responding)"),
        ("n1|drained|bad DIMM", "drained: bad DIMM"),
        ("n1|reboot^|kernel", "reboot (reboot issued): kernel"),
        ("n1|down$|bad DIMM", "down (maintenance): bad DIMM"),
        ("n1|drng|x", "drng: x"),
        ("n1|quarantined|x", "quarantined: x"),
        ("n1|idle", "unknown to Slurm"),
        ("n2|idle|none", "unknown to Slurm"),
    ],
)
def test_a_node_that_can_take_no_job_is_told_with_its_reason(line, why):
    assert unusable(["n1"], parse_sinfo(f"{line}\n")) == {"n1": why}


@rows("line", ["n1|idle|none", "n1|allocated|none", "n1|reserved|none"])
def test_a_node_that_can_take_a_job_is_not_told(line):
    assert unusable(["n1"], parse_sinfo(line)) == {}


@rows("state", ["maint", "reserved", "allocated$", "mixed$"])
def test_a_reserved_node_takes_no_job_from_outside(state):
    seen = parse_sinfo(f"n1|{state}|x")
    assert "-J reservation=NAME" in unusable(["n1"], seen, outside=True)["n1"]


def test_of_a_node_in_two_partitions_the_worst_line_stays():
    assert str(parse_sinfo("n1|idle|none\nn1|drained|x\nn1|idle|none\n")["n1"]) == "drained: x"


@rows("state", ["IDLE+NOT_RESPONDING", "IDLE+CLOUD+POWERED_DOWN", "IDLE+INVALID_REG", "DOWN+DRAIN"])
def test_the_gate_takes_what_comes_back_by_itself(state):
    """A failed node that sleeps or is silent now would be back among the others unseen."""
    cluster = Cluster({"n1": Node("n1", node_state(state), "x")})
    left = commands._untouchable("n1", cluster, "siteproof-compute", ())
    assert bool(left) == (state == "DOWN+DRAIN")
