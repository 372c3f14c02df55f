"""A program that is missing on another partition takes no answer back; one that is gone does."""

from dataclasses import replace

import fleets
import pytest

from siteproof.answers.criterion import judge
from siteproof.record import samples
from siteproof.record.finding import Verdict
from siteproof.record.samples import Header, Sample
from siteproof.sites import Criterion, Hardware
from siteproof.verdict import judgement

CRITERION = {
    "description": "d",
    "metric": "Stream.triad",
    "source": "s",
    "scope": "every node",
    "at_least": "65 GB/s",
}


def attempt(number, place, value, **keys):
    """Of n1, in a session of its own: a value in GB/s, or a status."""
    partition, _, environment = place.partition("/")
    head = Header(
        *(f"s{number}", "here", partition, environment or "system", "Stream", f"{number}"),
        f"2026-11-{20 + number}T00:00:00+00:00",
        mode="acceptance",
    )
    if value.isdigit():
        return Sample(head, "n1", "Stream.triad", fleets.Decimal(value), "GB/s", **keys)
    return Sample(head, "n1", "Stream.*", status=value, why="stream is not installed", **keys)


ATTEMPTS = [
    (["compute 70", "debug tool_missing"], Verdict.PASS),
    (["compute 60", "debug tool_missing"], Verdict.FAIL),
    (["compute timeout", "debug tool_missing"], Verdict.ERROR),
    (["compute/system 70", "compute/other tool_missing"], Verdict.PASS),
    (["compute 70", "compute tool_missing"], Verdict.SKIP),
    (["compute 70", "debug 70", "debug tool_missing"], Verdict.SKIP),
    (["compute 70", "compute tool_missing", "debug tool_missing"], Verdict.SKIP),
    (["compute 70", "debug tool_missing", "compute tool_missing"], Verdict.SKIP),
    (["compute 70", "debug 60", "debug tool_missing"], Verdict.SKIP),  # and never a PASS
    (["compute 70", "debug 60"], Verdict.FAIL),
    (["debug tool_missing"], Verdict.SKIP),
]


def test_a_missing_program_is_the_answer_of_its_own_partition_only():
    for trials in ({}, {"trials": 1}):
        criterion = Criterion(**CRITERION, **trials)
        for attempts, expected in ATTEMPTS:
            found = [attempt(number, *one.split()) for number, one in enumerate(attempts)]
            told = judge("C", criterion, found, {"n1": Hardware()}).verdict
            assert told is expected, (trials, attempts)


@pytest.fixture
def measured(tmp_path, monkeypatch):
    fleets.load(tmp_path / "sites", monkeypatch, criteria=fleets.CRITERIA)
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))

    def keep(run, partition, *, there=True):
        found = fleets.run_of(dict.fromkeys(fleets.names(8), 100.0), run)
        header = replace(found[0].header, partition=partition)
        found = [replace(sample, header=header) for sample in found]
        if not there:
            found = [
                Sample(header, node, "Stream.*", status="tool_missing", why="not installed")
                for node in fleets.names(8)
            ]
        samples.write(tmp_path / "perflogs", header, found)

    return keep


def test_the_older_session_is_read_where_it_still_answers(measured):
    measured(0, "compute")
    measured(1, "debug", there=False)
    (verdict,) = judgement.judge_system("here").verdicts
    assert verdict.verdict is Verdict.PASS
    assert {node.sample.header.partition for node in verdict.nodes} == {"compute"}


def test_a_failure_in_between_is_not_passed_over(measured):
    """A program that is gone since hides no newer answer behind an older one."""
    measured(0, "compute")
    measured(1, "debug")
    measured(2, "debug", there=False)
    judged = judgement.judge_system("here")
    assert judged.verdicts[0].verdict is Verdict.SKIP


def test_older_sessions_of_the_same_partition_are_not_read(measured, monkeypatch):
    for run in range(4):
        measured(run, "compute")
    measured(4, "compute", there=False)
    judged = judgement.judge_system("here")
    assert judged.verdicts[0].verdict is Verdict.SKIP
    assert {s.header.session for s in judged.samples} == {"s0004"}
