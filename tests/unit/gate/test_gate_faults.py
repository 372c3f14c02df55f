"""Gate, operators and nodes in random order, while the client of Slurm fails in every way."""

import pytest
from gate_plays import ASKS, CHANGES, NODES, Clock, Play, sequence
from slurm_model import Slurm

APPLY = ("--limit", "100%", "--apply")
DRAIN = (*APPLY, "--drain")
RETEST, RELEASE = ("--retest", "--apply"), ("--release", "--apply")
N3, N6 = "node003", "node006"
CONDEMNED = [("break", N3), ("measure",)]


def killed(number):
    """The gate is killed after its so-many-th command, which Slurm has done."""
    return {("change", number): ("gate killed after", 0)}


def play(world, monkeypatch):
    clock = Clock()
    monkeypatch.setenv("SITEPROOF_SITES", str(world.sites))
    return Play(world, Slurm(NODES, clock.time), clock, monkeypatch.setattr)


@pytest.mark.deep
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_no_failure_of_a_client_harms_others_or_loses_a_node(world, monkeypatch, first):
    hit = 0
    for seed in range(first, first + 50):
        one = play(world, monkeypatch)
        one.run(sequence(seed))
        hit += one.hit
    assert hit > 50


@pytest.mark.parametrize("fault", CHANGES)
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("options", [DRAIN, RETEST, RELEASE])
def test_every_change_may_fail_in_every_way(world, monkeypatch, options, number, fault):
    steps = [*CONDEMNED, ("gate", DRAIN, {})]
    steps += [("mend", N3), ("gate", RETEST, {})] if options == RELEASE else []
    steps = CONDEMNED if options == DRAIN else steps
    faults = {("change", number): (fault, 0.5)}
    play(world, monkeypatch).run([*steps, ("gate", options, faults), ("gate", options, {})])


@pytest.mark.parametrize("fault", ASKS)
@pytest.mark.parametrize("number", range(1, 8))
def test_every_question_may_fail_in_every_way(world, monkeypatch, number, fault):
    faults = {("ask", number): (fault, 0.5)}
    play(world, monkeypatch).run([*CONDEMNED, ("gate", DRAIN, faults)])


def test_an_adopted_quarantine_stays_ours_when_its_nodes_change(world, monkeypatch):
    """The log had only the nodes of the create, and the next gate added one."""
    more = [("break", N6), ("measure",), ("gate", APPLY, {}), ("gate", APPLY, {})]
    play(world, monkeypatch).run([*CONDEMNED, ("gate", APPLY, killed(1)), *more])


@pytest.mark.parametrize("number", [1, 2])
def test_a_release_that_was_cut_off_is_finished(world, monkeypatch, number):
    """The node was free, and drained or with our comment for ever."""
    steps = [*CONDEMNED, ("gate", DRAIN, {}), ("mend", N3), ("gate", RETEST, {})]
    steps += [("gate", DRAIN, {}), ("gate", RELEASE, killed(number))]
    one = play(world, monkeypatch)
    one.run([*steps, ("gate", RELEASE, {})])


# Its last command, the drain, is done after the test has passed.
DRAINED_LATE = [("gate", DRAIN, {("change", 3): ("slow, done later", 1)}), ("mend", N3)]
DRAINED_LATE += [("gate", RETEST, {}), ("wait", 60)]


def test_a_drained_node_that_is_down_is_not_freed(world, monkeypatch):
    steps = [*CONDEMNED, *DRAINED_LATE, ("die", N3), ("gate", RELEASE, {})]
    play(world, monkeypatch).run(steps)


def test_a_node_that_the_release_resumed_is_not_found_dead(world, monkeypatch):
    """Slurm says NOT_RESPONDING until its slurmd answers again."""
    steps = [*CONDEMNED, *DRAINED_LATE, ("gate", RELEASE, {}), ("gate", APPLY, {})]
    play(world, monkeypatch).run(steps)


def test_the_comment_of_a_dead_node_is_written_once(world, monkeypatch):
    """Our own reservation changed the state that the comment repeats."""
    play(world, monkeypatch).run([("measure",), ("die", N3)])
