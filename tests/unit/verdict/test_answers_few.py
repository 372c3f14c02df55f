"""Nodes that nothing answers for: older sessions are looked through for these nodes alone."""

import fleets
import pytest

from siteproof.errors import UserErrors
from siteproof.record import samples
from siteproof.verdict import judgement

RUNS, NODES = 12, 8
LOST = "n008"


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Keep a session a number; of the node that is lost only the run `answers`, if any."""
    fleets.load(tmp_path / "sites", monkeypatch, criteria=fleets.CRITERIA)
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))

    def keep(answers=None):
        for run in range(RUNS):
            there = fleets.names(NODES if run == answers else NODES - 1)
            found = fleets.run_of(dict.fromkeys(there, 100.0), run)
            samples.write(tmp_path / "perflogs", found[0].header, found)
        return sorted((tmp_path / "perflogs").glob("*/*/*.jsonl"))

    return keep


@pytest.fixture
def made(monkeypatch):
    """The sessions of all samples that were made of lines with a number."""
    found, make = [], samples._of_number

    def note(header, *parts):
        found.append(header.session)
        return make(header, *parts)

    monkeypatch.setattr(samples, "_of_number", note)
    return found


def test_a_node_that_was_never_measured_makes_no_sample_of_older_sessions(measured, made):
    measured()
    judged = judgement.judge_system("here")
    assert "session s0011" in judged.chosen
    assert set(made) == {"s0011"}


def test_the_session_that_answers_for_it_is_read_whole_and_the_others_are_not(measured, made):
    measured(answers=3)
    judged = judgement.judge_system("here")
    assert set(made) == {"s0011", "s0003"}
    assert {s.node for s in judged.samples if s.header.session == "s0003"} == {*fleets.names(NODES)}
    (verdict,) = judged.verdicts
    assert verdict.ok == NODES


def test_a_broken_line_of_another_node_is_an_error_all_the_same(measured):
    path = measured()[5]
    path.write_text(path.read_text().replace('"100.00","unit":"MB/s"', '"100.00","unit":"ells"', 1))
    with pytest.raises(UserErrors, match="unknown unit 'ells'"):
        judgement.judge_system("here")
