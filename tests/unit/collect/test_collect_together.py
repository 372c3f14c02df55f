"""What a link carries while all of its pairs run, from what a job left; or why there is none."""

import json
from decimal import Decimal

from clone import OUTPUTS
from test_pair_turns import BACK, GOOD, Job


def interval_run(begin, rate, seconds=10, reverse=False):
    """A recorded output of iperf3, edited to a run of so many b/s."""
    known = json.loads((OUTPUTS / "iperf3" / f"{BACK if reverse else GOOD}.txt").read_text())
    known["start"]["timestamp"]["timesecs"] = begin
    known["start"]["test_start"] |= {"omit": 0, "duration": seconds}
    known["intervals"] = [
        {
            "streams": [],
            "sum": {
                "start": n,
                "end": n + 1,
                "seconds": 1,
                "bytes": rate // 8,
                "bits_per_second": rate,
                "omitted": False,
            },
        }
        for n in range(seconds)
    ]
    for end in ("sum_sent", "sum_received"):
        known["end"][end] |= {
            "start": 0,
            "end": seconds,
            "seconds": seconds,
            "bytes": rate // 8 * seconds,
            "bits_per_second": rate,
        }
    return json.dumps(known)


TOGETHER = [(trial, f"n{n}", "s1") for trial in (1, 2) for n in (1, 2, 3)]


def all_together(folder, skip=(), program="iperf3", text=None):
    job = Job(folder, TOGETHER, together=True, facts={"speed": "10000000000"})
    for number, (trial, _, _) in enumerate(TOGETHER):
        job.server(number)
        if number not in skip:
            job.client(
                number,
                *(
                    (
                        way,
                        text
                        or interval_run(1000 * trial, 2 * 10**9 + number * 8, reverse=way == "in"),
                        0,
                    )
                    for way in ("out", "in")
                ),
                program=program,
            )
    return job


def of_the_link(found, metric="aggregate"):
    return {
        (s.dims["direction"], s.trial): s.value
        for s in found
        if s.node == "" and s.metric == f"TcpBandwidth.{metric}"
    }


def test_a_link_has_a_figure_of_each_trial_and_direction(tmp_path):
    found = all_together(tmp_path).collect()
    assert all(s.status == "ok" for s in found), [s for s in found if s.status != "ok"]
    assert of_the_link(found) == {
        ("out", 1): 6000000024,
        ("in", 1): 6000000024,
        ("out", 2): 6000000096,
        ("in", 2): 6000000096,
    }
    assert set(of_the_link(found, "fairness").values()) == {Decimal("1.0000")}
    assert of_the_link(found, "efficiency")["out", 1] == 60
    assert of_the_link(found, "seconds_together")["in", 2] == 8
    one = next(s for s in found if s.node == "")
    assert one.dims == {"link": "lan", "direction": one.dims["direction"], "streams": "1"}
    assert one.conditions["mtu"] == "9000"
    assert one.conditions["program"] == "iperf3"


def test_a_link_has_no_figure_where_a_pair_has_none_and_says_which(tmp_path):
    found = all_together(tmp_path, skip=[4]).collect()
    assert set(of_the_link(found)) == {("out", 1), ("in", 1)}
    assert {
        (s.dims["direction"], s.trial, s.status, s.why)
        for s in found
        if s.node == "" and s.status != "ok"
    } == {
        (
            way,
            2,
            "generic",
            "2 of 3 pairs gave a value; n2>s1: generic: left no result (job "
            "COMPLETED): it came too late for its turn, or could not write",
        )
        for way in ("out", "in")
    }


def test_a_lost_node_is_no_fault_of_the_link(tmp_path):
    job = all_together(tmp_path, skip=[1, 4])
    job.manifest.lost = {"n2": "down*"}
    job.manifest.save(job.stage)
    told = {
        (s.dims["direction"], s.trial, s.status, s.why)
        for s in job.collect()
        if s.node == "" and s.status != "ok"
    }
    assert told == {
        (way, trial, "interrupted", "2 of 3 pairs gave a value; n2>s1: node_lost: down*")
        for way in ("out", "in")
        for trial in (1, 2)
    }


def test_where_nothing_was_measured_the_link_says_so(tmp_path):
    job = Job(tmp_path, TOGETHER[:3], together=True)
    told = [(dict(s.dims), s.status) for s in job.collect("CANCELLED") if s.node == ""]
    assert told == [({"link": "lan"}, "interrupted")]


def test_a_tool_without_intervals_cannot_be_added_up_and_says_so(tmp_path):
    job = all_together(tmp_path, program="nuttcp", text="8.2.2-tcp_parse")
    told = {(s.status, s.why) for s in job.collect() if s.node == ""}
    assert told == {
        (
            "tool_missing",
            "nuttcp does not print how much it moved when, so pairs cannot be added up",
        )
    }
