"""What a sweep costs, how far it is, and what came to nothing: told in one line each."""

from decimal import Decimal
from types import SimpleNamespace

import pytest
from rows import rows

from siteproof.checks import options
from siteproof.checks.progress import failures, points_done
from siteproof.checks.settings import of_sweeps
from siteproof.record.samples import Header, Sample

HEAD = Header("s", "here", "node", "system", "Ior", "7", "2026-11-21T12:00:00+00:00")


def test_the_cost_is_that_of_the_jobs_that_run():
    told = options.of([(1, 3600, 10, 0, 0, 9), (8, 1800, 4, 0, 30, 9), (0, 120, 0, 7, 4, 0)])
    assert (told.jobs, told.points, told.nodes, told.left_out) == (2, 14, 8, 7)
    assert told.node_hours == 5
    assert str(told) == (
        "14 points in 2 jobs, on 8 nodes at most, 5.0 node-hours at most; "
        "7 points left out, because there are too few nodes; "
        "34 points above the caps of -S, not measured"
    )


@rows(
    "done, points, seconds, line",
    [
        (12, 42, 336, "12 of 42 points, about 14 min left"),
        (41, 42, 410, "41 of 42 points, about a minute left"),
        (42, 42, 410, "42 of 42 points"),
    ],
)
def test_progress_says_how_long_the_rest_will_take(done, points, seconds, line):
    assert points_done(done, points, seconds) == line


def test_failed_points_are_told_by_their_axes():
    failed = [
        Sample(HEAD, "", "Ior.*", status="timeout", why="hung", trial=t, dims={"tasks": str(n)})
        for n in (1, 2)
        for t in (1, 2)
    ]
    assert failures(failed) == (
        "tasks=1 trial=1: timeout: hung; tasks=1 trial=2: timeout: hung; "
        "tasks=2 trial=1: timeout: hung; and 1 more"
    )


@rows(
    "words, answer",
    [
        (["-c", "sweeps/", "-r"], True),
        (["-c", "/x/sweeps/sweeps.py"], True),
        (["--checkpath=sweeps"], True),
        (["-c", "checks/", "-r"], False),
        ([], False),
    ],
)
def test_jobs_take_turns_where_sweeps_run(words, answer):
    assert of_sweeps(words) is answer


def test_a_run_above_the_budget_of_its_mode_is_refused(capsys):
    def case(nodes, seconds, mode="acceptance", unoffered=(), local=False):
        check = SimpleNamespace(
            mode=mode,
            unoffered=unoffered,
            local=local,
            nodes_on=lambda _: nodes,
            seconds=lambda: seconds,
        )
        return SimpleNamespace(check=check, partition=SimpleNamespace(name="all"))

    budgets = {"acceptance": Decimal("10.5")}
    site = SimpleNamespace(name="here", system=SimpleNamespace(budgets=budgets))
    others = [case(1000, 3600, "quick"), case(1000, 3600, unoffered=["all"])]
    others.append(case(1000, 3600, local=True))  # a service that this host uses
    options.refuse_above(site, [case(10, 3600), case(1, 1800), *others])
    with pytest.raises(SystemExit) as end:
        options.refuse_above(site, [case(10, 3600), case(1, 1860), *others])
    assert end.value.code == 2
    assert "may take 10.5 node-hours, the budget is 10.5" in capsys.readouterr().err
