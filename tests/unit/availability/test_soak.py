"""A soak with failures that were planted, against a plain calculation."""

from datetime import UTC, datetime
from fractions import Fraction
from functools import partial

import pytest
import soaks
from scipy.stats import chi2
from soaks import BEGIN, EVERY, NODES, begin, session

from siteproof import sites
from siteproof.answers import implausible
from siteproof.availability import soak
from siteproof.availability.soak import Failure, is_soak
from siteproof.errors import UserError
from siteproof.record.finding import Verdict
from siteproof.record.sessions import Sessions
from siteproof.wording import trends as words

NOW = datetime(2026, 11, 20, tzinfo=UTC)
OUTAGE = begin(5) + 300, begin(7)  # of n003: rounds 5 and 6
PLANTED = {
    (5, "n003", "Stream"): "node_lost",
    (5, "n003", "Hpl"): "node_lost",
    (6, "n003", "Stream"): "node_lost",
    (6, "n003", "Hpl"): "node_lost",
    (10, "n005", "Hpl"): "invalid",  # one failure, and one of the two rounds after a good one
    (12, "n005", "Hpl"): "checksum",
    (13, "n005", "Hpl"): "invalid",
    (20, "n002", "Stream"): "timeout",
    (21, "n002", "Stream"): "interrupted",  # by a person: neither good nor bad
    (22, "n002", "Stream"): "generic",  # still the same failure
    (30, "n008", "Hpl"): "lost",
}
SLOW = {(number, "n007", "Stream"): 0.5 for number in (25, 26, 27)}


@pytest.fixture
def read(tmp_path, monkeypatch):
    soaks.write_site(tmp_path / "sites")
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))

    def read(name="soak", now=NOW):
        site = sites.load("here")
        found = Sessions(tmp_path / "perflogs", "here", partial(implausible.checked, site))
        return soak.read(site, found, soak.jobs_of(found, name, now), now)

    read.perflogs = tmp_path / "perflogs"
    return read


@pytest.fixture
def planted(read):
    """Every class of failure once or more."""
    where = read.perflogs
    soaks.write(where, failures=PLANTED, slow=SLOW, without={(33, "Stream")}, lost={36})
    soaks.write_events(where, [("n003", *OUTAGE)], [(begin(15), begin(15) + 600)])
    return read()


def unrecorded(found):
    return [one.subject for one in found.events if one.kind is Failure.ROUND]


def tallies(found):
    return {one.kind: one for one in found.tallies}


def test_each_planted_failure_is_counted_once_in_its_class(planted):
    counts = {kind: (one.failures, one.subjects) for kind, one in tallies(planted).items()}
    assert counts == {
        Failure.NODE_DOWN: (1, 1),
        Failure.WRONG: (2, 1),
        Failure.BROKE: (1, 1),
        Failure.BELOW: (1, 1),
        Failure.MISSING: (2, 2),  # n008 in round 30, and Stream in round 33
        Failure.CONTROL: (1, 1),
        Failure.ROUND: (1, 1),
    }
    results = {(one.kind, one.subject): one.results for one in planted.events}
    assert results[Failure.BELOW, "n007"] == 3
    assert results[Failure.BROKE, "n002"] == 2


def test_the_hours_under_load_are_those_in_which_a_node_answered(planted):
    """20 minutes a round and node, 10 where only Stream answered, none where nothing did."""
    minutes = 39 * 8 * 20  # of 40 rounds one has no record
    minutes -= 2 * 20  # n003 in two rounds
    minutes -= 10  # n008 lacks Hpl in round 30
    assert planted.node_hours == pytest.approx(minutes / 60)
    assert {node: round(60 * soak.seconds(one) / 3600) for node, one in planted.load.items()} == {
        node: 780 - {"n003": 40, "n008": 10}.get(node, 0) for node in NODES
    }


def test_mean_time_between_failures_and_its_bound_agree_with_a_second_calculation(planted):
    found, load = tallies(planted), planted.node_hours
    period = (39 * EVERY + 1200) / 3600
    connected, outage = period - 600 / 3600, (OUTAGE[1] - OUTAGE[0]) / 3600
    # A time that Slurm does not know is no up time: the disconnection is in none of them.
    hours = dict.fromkeys(Failure, load) | {
        Failure.NODE_DOWN: 8 * connected - outage,
        Failure.CONTROL: connected,
        Failure.ROUND: period,
    }
    for kind, one in found.items():
        assert one.hours == pytest.approx(hours[kind]), kind
        assert one.mtbf_hours == pytest.approx(hours[kind] / one.failures), kind
        bound = 2 * hours[kind] / chi2.ppf(0.9, 2 * one.failures + 2)
        assert one.mtbf_bound_hours == pytest.approx(bound), kind


def test_availability_is_that_of_the_nodes_between_the_first_and_the_last_round(planted):
    period, lost = 39 * EVERY + 1200, 600
    up = 8 * (period - lost) - (OUTAGE[1] - OUTAGE[0])
    four = planted.known.definitions
    assert four.node_overall == four.node_scheduled == Fraction(up, 8 * (period - lost))
    assert planted.known.period == (BEGIN, BEGIN + period)


def test_a_round_names_who_did_not_answer_and_what_it_lacks(planted):
    by_session = {one.session: one for one in planted.rounds}
    assert session(36) not in by_session and unrecorded(planted) == [session(36)]
    bad = {
        name: (str(one.asked - one.answered), list(one.lacking))
        for name, one in by_session.items()
        if one.lacking or one.asked != one.answered
    }
    assert bad == {
        session(5): ("n003", []),
        session(6): ("n003", []),
        session(21): ("n002", []),  # interrupted
        session(30): ("n008", []),
        session(33): ("", ["Stream"]),
    }
    assert planted.whole_rounds == 34
    assert set(planted.verdicts) == {Verdict.FAIL, Verdict.ERROR, Verdict.INCOMPLETE}


def test_a_quiet_soak_has_bounds_and_no_failures(read):
    soaks.write(read.perflogs)
    soaks.write_events(read.perflogs)
    found = read()
    assert not found.events and not found.verdicts and found.whole_rounds == 40
    for one in found.tallies:
        bound = one.hours / 2.302585  # T / ln 10
        assert (one.failures, one.mtbf_hours) == (0, None)
        assert one.mtbf_bound_hours == pytest.approx(bound)


def test_what_nothing_recorded_could_show_has_no_number(read):
    """Without Slurm's events no outage is known, and without a criterion no slow value."""
    soaks.write_site(read.perflogs.parent / "sites", criteria="{}\n")
    soaks.write(read.perflogs, failures=PLANTED)
    found = read()
    unknown = {kind for kind, one in tallies(found).items() if one.failures is None}
    assert unknown == {Failure.NODE_DOWN, Failure.CONTROL, Failure.BELOW}
    assert tallies(found)[Failure.MISSING].failures == 3  # n003 of two checks counts here, then
    assert len(found.findings) == 2


def test_the_answer_says_how_much_was_measured_if_it_is_not_all(read):
    soaks.write(read.perflogs)
    soaks.write_events(read.perflogs, rounds=20)
    assert words.answer(read()).endswith("100.00 % of the measured time, 10.0 of 19.8 h")


def test_no_failure_is_not_known_without_an_hour_in_which_one_would_have_been_seen(read):
    """Slurm's events end as the first round begins, and no node answered in it."""
    lost = {(0, node, check): "lost" for node in NODES for check in ("Stream", "Hpl")}
    soaks.write(read.perflogs, rounds=1, failures=lost)
    soaks.write_events(read.perflogs, rounds=0)
    found = read()
    known = {kind: one.failures for kind, one in tallies(found).items() if one.failures is not None}
    assert known == {Failure.MISSING: 16, Failure.ROUND: 0}
    assert "not known: node down, wrong answer" in words.answer(found)


def test_speed_is_compared_at_both_ends_and_a_fading_one_drifts(read):
    soaks.write(
        read.perflogs, fade=0.1, failures={(n, "n008", "Hpl"): "lost" for n in range(20, 40)}
    )
    soaks.write_events(read.perflogs)
    by_metric = {one.metric: one for one in read().speeds}
    for one in by_metric.values():
        assert (one.rounds, one.compared, one.effect, one.drifts) == (40, 10, "worse", True)
        assert one.change == pytest.approx(-0.075, abs=0.004)  # 30 of 40 rounds apart
        assert one.drift == pytest.approx(-0.1, abs=0.005)


def test_a_last_round_without_a_record_is_named_unless_it_may_still_run(read):
    soaks.write(read.perflogs, rounds=7, lost={6})
    soaks.write_events(read.perflogs)
    assert unrecorded(read()) == [session(6)]
    running = datetime.fromtimestamp(begin(6) + 60, UTC)
    assert not unrecorded(read(now=running))
    soaks.write(read.perflogs, rounds=9, lost={*range(7), 8}, campaign="other")
    assert unrecorded(read()) == [session(6)]


def test_a_clock_that_was_set_back_makes_no_round_longer(read):
    soaks.write(read.perflogs, rounds=3)
    soaks.write_events(read.perflogs)
    for path in list((read.perflogs / "here/compute").glob(f"{session(1)}*")):
        old = session(1).replace("2026", "1970")
        path.with_name(path.name.replace(session(1), old)).write_text(
            path.read_text().replace(session(1), old)
        )
        path.unlink()
    found = read()
    # Of each node: from the begin of the first round to the end of the second, and the third.
    assert found.node_hours == pytest.approx(8 * (1200 + EVERY + 1200) / 3600)
    assert found.known.period == (BEGIN, begin(2) + 1200)


def test_a_clock_of_the_future_gives_no_hours(read):
    soaks.write(read.perflogs, rounds=3)
    soaks.write_events(read.perflogs)
    path = next((read.perflogs / "here/compute").glob(f"{session(2)}.Hpl*"))
    path.write_text(path.read_text().replace('"time":"2026', '"time":"2150'))
    now = datetime.fromtimestamp(begin(2) + 1500, UTC)
    found = read(now=now)
    assert found.known.period[1] == int(now.timestamp()) and found.findings
    assert found.node_hours == pytest.approx(8 * (1200 + 1200 + 1500) / 3600)


def test_few_rounds_show_no_change_of_speed(read):
    soaks.write(read.perflogs, rounds=5)
    soaks.write_events(read.perflogs)
    for one in read().speeds:
        assert (one.effect, one.drift, one.first) == ("too few rounds", None, None)


def test_a_campaign_is_a_soak_from_six_alike_sessions_within_a_day_on(read):
    soaks.write(read.perflogs, rounds=6)
    headers = Sessions(read.perflogs, "here").headers
    assert is_soak(headers) and soak.newest(headers) == headers
    fewer = [header for header in headers if header.place > 1]
    assert not is_soak(fewer) and not soak.newest(fewer)
    others = [header for header in headers if header.place > 1 or header.check == "Hpl"]
    assert not is_soak(others)  # one of the six has other checks


def test_a_campaign_that_is_not_known_is_named(read):
    soaks.write(read.perflogs, rounds=1)
    with pytest.raises(UserError, match="no sample of 'sok'"):
        read("sok")
