"""What is recorded beside the figures, so that a change of it can be named."""

from decimal import Decimal

import fleets
import pytest
import reasons

from siteproof.compare import comparison
from siteproof.slurm import client


def around(before, after):
    """The same node before and after, with another provenance."""
    return [
        fleets.run_of({"n001": 1.0}, run, provenance=told)
        for run, told in ((1, before), (2, after))
    ]


def test_each_word_of_the_provenance_is_compared(tmp_path):
    for key in comparison.PROVENANCE:
        sides = around({key: "1"}, {key: "2"})
        assert reasons.changes(comparison.between(*sides, tmp_path)) == [(key, "1", "2", "")]


def test_what_was_not_recorded_before_is_told_as_unknown(tmp_path):
    found = comparison.between(*around({}, {"slurm": "23.11.4"}), tmp_path)
    assert reasons.changes(found) == [("slurm", "unknown", "23.11.4", "")]


def test_who_ran_it_is_no_change_of_the_machine(tmp_path):
    assert comparison.between(*around({"user": "a"}, {"user": "b"}), tmp_path) == []


def test_a_failure_that_a_node_has_recorded_is_no_change_of_the_machine(tmp_path):
    head, metric = fleets.header(1, "NodeHealth"), "NodeHealth.last_failure"
    failed = fleets.Sample(head, "n001", metric, "2026-11-01 a disk", "text")
    sound = fleets.Sample(
        fleets.header(2, "NodeHealth"), "n001", "NodeHealth.findings", Decimal(0), "count"
    )
    assert comparison.between([failed], [sound], tmp_path) == []


@pytest.mark.parametrize(
    "script, told",
    [
        ("echo slurm 23.11.4", {"slurm": "23.11.4"}),
        ("echo 'slurm-wlm 22.05.8'", {"slurm": "22.05.8"}),
        ("echo no configuration >&2; exit 1", {}),
        ("true", {}),
        (None, {}),
    ],
)
def test_slurms_version_is_recorded_where_it_says_it(script, told, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    if script:
        path = tmp_path / "sinfo"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    found = client.version()
    assert ({"slurm": found} if found else {}) == told
