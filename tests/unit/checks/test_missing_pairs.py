"""`-S nodes=missing` of a check over pairs: which pairs have no answer that counts."""

from types import SimpleNamespace

import nets
import pytest
from nets import failed, ok

from siteproof.checks import missing
from siteproof.record import samples

LAID = [(f"n{number}", "s1") for number in range(1, 7)]
TCP = nets.TCP.replace("source:", "max_age: none, source:")


@pytest.fixture
def lacking(tmp_path, monkeypatch):
    """The pairs that a run of what is missing would measure after these samples."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))

    def ask(found, criteria=TCP, session="", mode="maintenance"):
        site = nets.load(tmp_path / "sites", monkeypatch, criteria=criteria)
        for job in {s.header.session: s.header for s in found}.values():
            mine = [s for s in found if s.header.session == job.session]
            samples.write(tmp_path / "perflogs", job, mine)
        now = SimpleNamespace(campaign="", name=session)
        monkeypatch.setattr(missing.session, "current", lambda: now)
        missing._sessions.cache_clear()
        planned = missing.Planned("TcpBandwidth", mode)
        return sorted(missing.pairs(site, "lan", LAID, planned, restored=bool(session)))

    yield ask
    missing._sessions.cache_clear()


def without(*pairs):
    return [s for s in nets.star() if f"{s.node}>{s.dims['peer']}" not in pairs]


def test_of_nothing_measured_all_pairs_are_missing(lacking):
    assert lacking([]) == LAID


def test_of_all_measured_none_is(lacking):
    assert lacking(nets.star()) == []


def test_a_pair_of_which_one_direction_has_no_figure_or_a_bad_one_is_measured_again(lacking):
    assert lacking(without("s1>n2")) == [("n2", "s1")]
    assert lacking(nets.star(slow={"n3>s1": 4}, run=2)) == [("n3", "s1")]


def test_a_newer_failure_outranks_an_older_figure(lacking):
    assert lacking([*nets.star(), failed("n5>s1", run=2)]) == [("n5", "s1")]


def test_a_newer_figure_is_an_answer(lacking):
    found = [*nets.star(slow={"n4>s1": 4}), ok("n4>s1", 9.4, run=2), ok("s1>n4", 9.4, run=2)]
    assert lacking(found) == []


def test_another_link_answers_nothing(lacking):
    assert lacking([ok(f"{a}>{b}", 9.4, link="wan") for a, b in LAID]) == LAID


def test_a_quick_run_measures_no_pair_for_a_criterion_that_it_may_not_answer(lacking):
    assert lacking([], mode="quick") == []


def test_of_a_restored_session_its_own_figures_count_alone(lacking):
    found = [
        *nets.star(run=1),
        *[s for s in nets.star(run=2) if "n6" not in (s.node, *s.dims.values())],
    ]
    session = found[-1].header.session
    assert lacking(found, session=session) == [("n6", "s1")]
