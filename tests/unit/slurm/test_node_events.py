"""Node events as sacctmgr prints them, recorded and broken."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rows import rows

from siteproof.slurm.records import parse_events

OUTPUTS = Path(__file__).parent / "outputs"
RECORDED = (OUTPUTS / "22.05/node_events.sacctmgr").read_text()
LINE = "testbed|node001|{}|{}|{}|2|reason"


def one(start=1000, end=2000, state="DOWN"):
    return parse_events(LINE.format(start, end, state)).events[0]


def test_every_event_of_a_recording_is_read():
    found = parse_events(RECORDED)
    assert [(e.node, e.end - e.start, e.state.said, e.down) for e in found.of_nodes] == [
        ("node001", 1, "FAIL", True),
        ("node001", 2, "FAIL", True),
        ("node002", 5, "DRAIN", True),
        ("node003", 8, "DOWN*", True),
    ]
    assert found.strange == 0


@rows("release, nodes, lasting", [("24.11", 3, 2), ("26.05", 9, 2)])
def test_the_events_of_later_releases_are_read(release, nodes, lasting):
    found = parse_events((OUTPUTS / f"{release}/node_events.sacctmgr").read_text())
    assert (len(found.of_nodes), len(found.of_cluster), found.strange) == (nodes, 1, 0)
    assert all(event.down for event in found.of_nodes)
    assert sum(event.end is None for event in found.of_nodes) == lasting


def test_a_reason_may_have_bars_and_several_lines():
    reasons = [event.reason for event in parse_events(RECORDED).of_nodes]
    assert reasons == ["kernel", "now down", "fan | half speed = slow", "Not responding"]


def test_registrations_and_disconnections_of_the_cluster_are_kept_apart():
    found = parse_events(RECORDED).of_cluster
    assert [(e.start, e.end, e.registered) for e in found] == [
        (1795436597, None, True),
        (1795436632, 1795436632, False),
    ]


@rows(
    "state, down",
    [
        ("DOWN", True),
        ("DOWN*", True),
        ("DOWN$", True),
        ("DRAIN", True),
        ("DRAINED", True),
        ("FAIL", True),
        ("ERROR", True),
        ("MAINT", True),
        ("REBOOT^", True),
        ("IDLE*", True),
        ("IDLE+DRAIN", True),
        ("A_STATE_OF_LATER", True),
        ("IDLE", False),
        ("ALLOCATED", False),
        ("MIXED", False),
        ("IDLE+PLANNED", False),
        ("IDLE+CLOUD+POWERED_DOWN", False),
    ],
)
def test_each_state_is_up_or_down(state, down):
    assert one(state=state).down is down


def test_an_event_that_ends_before_it_starts_is_named_so():
    assert one(2000, 1000).backwards
    assert not one(2000, "Unknown").backwards
    assert one(2000, "Unknown").end is None


@rows(
    "line",
    [
        "testbed|node001|1000",
        "testbed|node001|1000|2000|DOWN",
        "testbed|node 001|1000|2000|DOWN|1|x",
        "testbed|node001|2026-11-21T18:00:00|Unknown|DOWN|1|x",
        "testbed|../../x|1000|2000|DOWN|1|x",
        "testbed|node001|" + "9" * 40 + "|2000|DOWN|1|x",
        "|" * 100,
    ],
)
def test_a_line_that_is_cut_or_strange_is_counted(line):
    found = parse_events(RECORDED + line + "\n")
    assert (len(found.events), found.strange) == (6, 1)


def test_a_reason_steers_no_terminal():
    found = parse_events("testbed|node001|1|2|DOWN|1|\x1b[31mred")
    assert found.events[0].reason == "?[31mred"


@given(st.text(alphabet="|abn01Unko \n\t*+-9\x1b", max_size=300))
def test_no_text_breaks_the_parser(text):
    found = parse_events(text)
    assert all(event.end is None or event.end >= 0 for event in found.events)
