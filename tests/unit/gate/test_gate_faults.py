"""Gate, operators and nodes in random order, while the client of Slurm fails in every way."""

import pytest
from clone import World
from gate_plays import ASKS, CHANGES, NODES, Broken, Clock, Play, sequence
from slurm_model import Slurm

pytestmark = pytest.mark.command
APPLY = ("--limit", "100%", "--apply")
DRAIN = (*APPLY, "--drain")
RETEST, RELEASE = ("--retest", "--apply"), ("--release", "--apply")
N3, N6 = "node003", "node006"
CONDEMNED = [("break", N3), ("measure",)]
QUARANTINED = [*CONDEMNED, ("gate", DRAIN, {})]
RETESTED = [*QUARANTINED, ("mend", N3), ("gate", RETEST, {})]


def killed(number):
    """The gate is killed after its so-many-th command, which Slurm has done."""
    return {("change", number): ("gate killed after", 0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of all plays, each of which begins without data."""
    return World(tmp_path_factory.mktemp("plays"))


@pytest.fixture
def play(folder, monkeypatch):
    """Play steps from the beginning; how many faults came to pass. Raises Broken."""
    monkeypatch.setenv("SITEPROOF_SITES", str(folder.sites))

    def played(steps):
        clock = Clock()
        one = Play(folder, Slurm(NODES, clock.time), clock, monkeypatch.setattr)
        one.run(steps)
        return one.hit

    return played


def all_played(play, plays):
    """Each play, of which the faults come to pass; all that break a promise are told."""
    broken = []
    for name, steps in plays.items():
        try:
            assert play(steps), f"{name}: no such command"
        except Broken as promise:
            broken.append(f"{name}: {promise}")
    assert not broken, "\n\n".join(broken)


@pytest.mark.parametrize(
    ("first", "last"), [(0, 25), pytest.param(25, 200, marks=pytest.mark.long)]
)
def test_no_failure_of_a_client_harms_others_or_loses_a_node(play, first, last):
    assert sum(play(sequence(seed)) for seed in range(first, last)) > last - first


@pytest.mark.parametrize(
    ("options", "number"),
    [(DRAIN, 1), (DRAIN, 2), (DRAIN, 3), (RETEST, 1), (RELEASE, 1), (RELEASE, 2)],
)
def test_every_change_may_fail_in_every_way(play, options, number):
    before = {DRAIN: CONDEMNED, RETEST: QUARANTINED, RELEASE: RETESTED}[options]
    again = ("gate", options, {})
    plays = {
        fault: [*before, ("gate", options, {("change", number): (fault, 0.5)}), again]
        for fault in CHANGES
    }
    all_played(play, plays)


@pytest.mark.parametrize("number", range(1, 8))
def test_every_question_may_fail_in_every_way(play, number):
    plays = {
        fault: [*CONDEMNED, ("gate", DRAIN, {("ask", number): (fault, 0.5)})] for fault in ASKS
    }
    all_played(play, plays)


def test_an_adopted_quarantine_stays_ours_when_its_nodes_change(play):
    """The log had only the nodes of the create, and the next gate added one."""
    more = [("break", N6), ("measure",), ("gate", APPLY, {}), ("gate", APPLY, {})]
    play([*CONDEMNED, ("gate", APPLY, killed(1)), *more])


@pytest.mark.parametrize("number", [1, 2])
def test_a_release_that_was_cut_off_is_finished(play, number):
    """The node was free, and drained or with our comment for ever."""
    steps = [*RETESTED, ("gate", DRAIN, {}), ("gate", RELEASE, killed(number))]
    play([*steps, ("gate", RELEASE, {})])


# Its last command, the drain, is done after the test has passed.
DRAINED_LATE = [("gate", DRAIN, {("change", 3): ("slow, done later", 1)}), ("mend", N3)]
DRAINED_LATE += [("gate", RETEST, {}), ("wait", 60)]


def test_a_drained_node_that_is_down_is_not_freed(play):
    steps = [*CONDEMNED, *DRAINED_LATE, ("die", N3), ("gate", RELEASE, {})]
    play(steps)


def test_a_node_that_the_release_resumed_is_not_found_dead(play):
    """Slurm says NOT_RESPONDING until its slurmd answers again."""
    steps = [*CONDEMNED, *DRAINED_LATE, ("gate", RELEASE, {}), ("gate", APPLY, {})]
    play(steps)


def test_the_comment_of_a_dead_node_is_written_once(play):
    """Our own reservation changed the state that the comment repeats."""
    play([("measure",), ("die", N3)])
