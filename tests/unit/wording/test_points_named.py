"""Of a criterion with several points the bad ones are named, and all are counted."""

from decimal import Decimal
from itertools import permutations

import fleets
import pytest
from fleets import names

from siteproof.cli.why import _criterion
from siteproof.record.samples import Sample
from siteproof.verdict.judgement import judge_samples
from siteproof.verdict.tally import Tally
from siteproof.wording import tallies

CRITERIA = """\
C-PAIRS: {description: d, metric: Bisection.pair, subject: system, at_least: 900 MB/s, source: s,
  max_age: none}
C-SLURM: {description: d, metric: Scheduler.seconds, subject: service, at_most: 3 min, source: s,
  max_age: none, conditions: {service: batch}}
"""
SERVICE = "services:\n  batch: {kind: slurm, address: compute, timeout: 5 min, jobs: 20}\n"
SLOW = [("n002", "n007"), ("n003", "n005")]


def pairs():
    head = fleets.header(1, "Bisection", conditions={"program": "mpi4py"})
    for number, (a, b) in enumerate(permutations(names(8), 2)):
        value = Decimal(400 if (a, b) in SLOW else 1000 + number)
        dims = {"tasks": "8", "from": a, "to": b}
        yield Sample(head, "", "Bisection.pair", value, "MB/s", dims=dims)


def cases():
    conditions = {"service": "batch", "kind": "slurm", "jobs": "20"}
    head, metric = fleets.header(1, "Scheduler", conditions=conditions), "Scheduler.seconds"
    yield Sample(head, "", metric, Decimal(3), "s", dims={"step": "array"})
    for case in ("memory", "cores"):
        dims = {"step": case}
        yield Sample(head, "", metric, status="invalid", why="it COMPLETED", dims=dims)


@pytest.fixture
def judged(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    site = fleets.load(tmp_path / "sites", monkeypatch, criteria=CRITERIA, more=SERVICE)
    return judge_samples(site, [*pairs(), *cases()], "all")


def test_a_verdict_names_the_pairs_that_miss_and_the_cases_of_slurm_that_failed(judged):
    of_pairs, of_slurm = (Tally.of(judged.site, result) for result in judged.verdicts)
    assert tallies.counts(of_pairs) == ["1 failed (2 of 56 points: n002>n007, n003>n005)"]
    assert tallies.worst(of_pairs) == "at n002>n007, by mpi4py"
    assert tallies.counts(of_slurm) == ["1 failed (2 points: step memory, step cores)"]
    assert tallies.reasons(of_slurm) == ["wrong answer: invalid: memory: it COMPLETED"]


def test_why_lists_the_points_from_the_worst_on_and_counts_the_rest(judged, capsys):
    for result in judged.verdicts:
        _criterion(judged, result)
    lines = capsys.readouterr().out.splitlines()
    assert "  here: FAIL, 400 MB/s at n002>n007 by mpi4py" in lines
    first = lines.index("    at n003>n005: FAIL, 400 MB/s by mpi4py")
    assert lines[first + 1] == "    at n001>n002: PASS, 1000 MB/s by mpi4py"
    assert lines[first + 6] == "    49 more points: 49 PASS"
    assert "    at step cores: FAIL, wrong answer: invalid: cores: it COMPLETED" in lines
