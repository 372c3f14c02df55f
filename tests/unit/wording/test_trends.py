"""The lines of `siteproof trend`: swings, gaps, evidence and the last line."""

from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace

from ClusterShell.NodeSet import NodeSet

from siteproof.record.finding import Finding, Kind
from siteproof.record.series import Series
from siteproof.trend.alerts import TWO_LEVELS, Ack, Alert, Moment, Rhythm, Survey
from siteproof.wording import trends

SITE = SimpleNamespace(criteria={})
BEFORE, AFTER = (Moment(datetime(2026, 11, day), f"s000{day}") for day in (1, 2))
STEP = Alert(
    id="k7q2mx",
    kind="step",
    metric="Stream.triad",
    series_name="Stream.triad",
    environment="system",
    role="compute",
    nodes=NodeSet("n[001-002]"),
    place="rack1",
    before=181_000.4,
    after=162_900.2,
    unit="MB/s",
    relative=-0.1,
    worse=True,
    confidence="above 99.9 %",
    provisional=False,
    n_before=30,
    n_after=20,
    last_before=BEFORE,
    first_after=AFTER,
    earliest=BEFORE,
    latest=AFTER,
    series=Series("Stream.triad", (), "system", "compute", (("threads", "8"),)),
    better="higher",
)


def test_the_state_of_a_change():
    for changes, text in (
        ({}, "worse"),
        ({"worse": False}, "better"),
        ({"worse": False, "better": "neither"}, "other"),
        ({"kind": "drift"}, "worse drift"),
        ({"kind": "drift", "meets": "2027-01-03"}, "worse drift, meets its bound on 2027-01-03"),
        ({"unit_factor": 1 / 1024}, "worse, unit? factor 0.000976562"),
        ({"kind": "scatter"}, "worse scatter"),
        (
            {"kind": "episode", "made_good": AFTER, "n_after": 8},
            "worse for a while, 8 runs, recovered 2026-11-02 00:00",
        ),
        ({"made_good": AFTER}, "worse, recovered 2026-11-02 00:00"),
        ({"made_good": AFTER, "worse": False}, "better, until 2026-11-02 00:00"),
        ({"ends": AFTER}, "worse, ends the gain of 2026-11-02 00:00: now as the others"),
        ({"provisional": True, "n_after": 3}, "provisional: 3 of 5 runs"),
        ({"provisional": True, "n_after": 9}, "provisional: 4 of 5 runs"),
    ):
        assert trends.state(replace(STEP, **changes)) == text, (changes, text)


def test_the_place_of_a_change():
    assert trends.head(STEP)[2] == "n[001-002]"
    assert trends.phrases(SITE, STEP)[0] == "in rack1"
    assert "in " not in trends.phrases(SITE, replace(STEP, place="n[001-002]"))[0]
    assert trends.head(replace(STEP, of_fleet=True, place="compute"))[2] == "fleet compute"


def test_a_change_in_one_line_and_by_whom_it_was_acknowledged():
    line = (
        "k7q2mx Stream.triad of n[001-002] (rack1): 181.0 -> 162.9 GB/s, -10.0 %, since "
        "2026-11-02 00:00"
    )
    assert trends.sentence(SITE, STEP) == line
    known = replace(STEP, ack=Ack("k7q2mx", "me", "firmware", "2026-11-03T00:00:00+00:00"))
    assert trends.acknowledged(SITE, known) == f"{line}; by me on 2026-11-03: firmware"
    assert trends.sentence(SITE, replace(STEP, kind="drift")).endswith("since 2026-11-01 00:00")


def test_of_many_causes_the_first_are_shown():
    causes = [Finding(Kind.CHANGE_UNKNOWN, message=f"cause {n}") for n in range(6)]
    shown = [f"not known: cause {n}" for n in range(4)]
    assert trends.causes(replace(STEP, changed=causes[:4])) == shown
    assert trends.causes(replace(STEP, changed=causes))[4:] == ["2 more, see 'trend why'"]


def test_the_evidence_names_runs_and_conditions():
    lines = dict(trends.evidence(replace(STEP, provisional=True)))
    assert lines["runs"] == "30 before, 20 after; provisional until 5 confirm"
    assert lines["conditions"] == "threads 8"
    plain = replace(STEP, series=replace(STEP.series, conditions=()))
    assert dict(trends.evidence(plain))["conditions"] == "none"


def test_a_drift_is_over_all_its_runs_with_none_before_or_after():
    lines = dict(trends.evidence(replace(STEP, kind="drift", n_after=30)))
    assert lines["runs"] == "30"
    assert {"first", "last"} < lines.keys()
    assert not {"last before", "first after"} & lines.keys()


def test_a_change_from_zero_has_no_share():
    assert trends.change(float("inf")) == "from 0"
    assert trends.change(0.123) == "+12.3 %"


def test_a_swing_is_named_by_its_pattern():
    week = Rhythm(
        "Hpl.gflops", "Hpl.gflops", "compute", NodeSet("n1"), "weekday", "Monday", "Sunday", 0.05
    )
    text = "Hpl.gflops of n1: weekday, lowest Monday, highest Sunday, 5.0 % wide"
    assert trends.swing(week) == text
    flips = replace(week, pattern=TWO_LEVELS, lowest="", highest="")
    assert trends.pattern(flips) == "alternates between two levels"


def test_a_gap_cannot_steer_the_terminal():
    assert trends.gaps([Finding(Kind.NOT_READ, message="a\x1b[2J")]) == ["not read: a?[2J"]


def test_the_last_line_counts_what_is_worse():
    for seen, text in (
        (Survey(series=1, points=1), "too little history, a step needs 10 runs of a node"),
        (Survey(series=1, points=1, long_enough=1), "nothing proven got worse"),
        (
            Survey(alerts=[STEP, replace(STEP, provisional=True)], long_enough=1),
            "1 change for the worse, not acknowledged, 1 provisional",
        ),
    ):
        assert trends.last_lines("here", seen, {})[0].endswith(f" of here: {text}"), seen
