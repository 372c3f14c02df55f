"""Two campaigns on a real Slurm cluster: all is well, and six nodes are broken in six ways.

Each is measured once. Then everything that judges is asked what it says of them: what is broken is
named, with its cause, and nobody else; hostile text does nothing; only what is missing is measured.
"""

import json
import re
import time
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from bed_suite import NODES, PARAMETERS, Suite, all_idle

from siteproof.checks import progress

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]

CHECKS = ("-n", "HostParameters|SystemDescription")
BAD = ("FAILED", "SLOW", "ODD", "UNSTABLE")
CONFIGURED = {  # node: fault, and what has to stand in its reasons
    "node002": ("wrong-mtu", "nic.eth0.mtu: expected 9000, found 1500"),
    "node005": ("other-package", "package.munge is 0.0.1-other"),
    "node007": ("wrong-memory", "memory.total is 2097152 kB"),
}
HOSTILE, DOWN, BLIND = "node003", "node004", "node006"
LOST = [HOSTILE, DOWN, BLIND]
# What slurmctld says once it has noticed a dead slurmd, without the minute that takes.
DEAD = "Not responding"


# ---- all is well


@pytest.fixture(scope="module")
def well(testbed, tmp_path_factory):
    """All nodes, and then three; with a list of what Slurm was asked, by run."""
    suite = Suite(testbed, tmp_path_factory.mktemp("well"))
    log = suite.folder / "calls"
    for name in ("sbatch", "sinfo", "scontrol", "srun", "squeue"):
        # One write a call, as two may come at once.
        call = f"""call=$(printf '%s ' $(uname -n) {name} "$@" | tr '\\n' ' ')"""
        suite.likwid(f"""{call}\necho "$call" >>'{log}'\nexec /usr/bin/{name} "$@" """, name)
    found = []
    for words in ((), ("-S", "nodes=3")):
        log.write_text("")
        begun = time.monotonic()
        done = suite.reframe(*CHECKS, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        looks = int((time.monotonic() - begun) / progress.LOOK_EVERY)
        found.append(SimpleNamespace(calls=log.read_text().splitlines(), looks=looks))
    suite.whole, suite.few = found
    suite.jobs_left = suite.jobs()
    yield suite
    all_idle(testbed)


def by_job(suite):
    """The nodes of each job of HostParameters, the oldest first."""
    found = {}
    of_it = [s for s in suite.samples() if s.metric.startswith("HostParameters.")]
    for sample in sorted(of_it, key=lambda s: s.header.order):
        found.setdefault((sample.header.session, sample.header.job), set()).add(sample.node)
    return list(found.items())


def test_every_node_is_measured_in_one_job_a_check_and_a_count_is_of_the_first(well):
    assert [sorted(nodes) for _, nodes in by_job(well)] == [NODES, NODES[:3]]
    assert {s.status for s in well.samples()} == {"ok"}
    assert well.jobs_left == []


def test_one_step_asks_all_nodes_what_they_see_and_leaves_nothing_behind(well):
    for run, count in ((well.whole, 8), (well.few, 3)):
        (step,) = [call for call in run.calls if "siteproof-sight" in call]
        assert step.startswith("login srun ") and f" --nodes={count} " in step, step
    assert not [path for path in well.data.rglob(".sight*")]


def test_client_calls_do_not_grow_with_the_nodes_of_a_chunk(well):
    def count(run, *names, host="login"):
        called = [call.split()[:2] for call in run.calls]
        return sum(where == host and name in names for where, name in called)

    assert count(well.whole, "sbatch") == count(well.few, "sbatch") == 2, "a job of each check"
    assert count(well.whole, "srun") == count(well.few, "srun"), (well.whole.calls, well.few.calls)
    for run in (well.whole, well.few):
        steps = [call for call in run.calls if "--kill-on-bad-exit" in call]
        assert len(steps) == 3, "one of each job, and one that asks what the nodes see"
    states = ("sinfo", "scontrol")
    of_few, of_all = (count(run, *states) for run in (well.few, well.whole))
    assert of_few - well.few.looks <= of_all <= of_few + well.whole.looks


def test_each_result_bears_the_credential_of_its_own_node(well):
    assert {s.header.provenance["origin"] for s in well.samples()} == {"munge"}


# ---- six nodes are broken in six ways


@pytest.fixture(scope="module")
def broken(testbed, tmp_path_factory):
    """What ReFrame printed is .told; all is mended afterwards, and so it is for the tests."""
    suite = Suite(testbed, tmp_path_factory.mktemp("broken"))
    suite.trap = suite.folder / "trap"
    reason = (
        f'$(touch {suite.trap}); `touch {suite.trap}` "quoted" [red]x[/red] \x1b[31m 100%s |a|b'
    )
    with ExitStack() as undo:
        for node, (fault, _) in CONFIGURED.items():
            undo.callback(testbed.mend, node)
            testbed.fault(fault, node)
        undo.callback(testbed.mend, DOWN)
        testbed.fault("killed-slurmd", DOWN)
        undo.callback(update, testbed, HOSTILE, "State=RESUME")
        update(testbed, HOSTILE, "State=DRAIN", f"Reason={reason}")
        update(testbed, DOWN, "State=DOWN", f"Reason={DEAD}")
        undo.enter_context(suite.hidden(BLIND))
        suite.done = suite.reframe(*CHECKS)
    suite.told = suite.done.stdout + suite.done.stderr
    all_idle(testbed)
    return suite


def update(testbed, node, *words):
    done = testbed.run(["scontrol", "update", f"NodeName={node}", *words])
    assert done.returncode == 0, done.stderr


def states(suite):
    """Each node's state and reasons."""
    done = suite.siteproof("nodes", "--json")
    assert done.stdout, done.stderr
    return {
        n["node"]: (n["state"], "\n".join(n["reasons"])) for n in json.loads(done.stdout)["nodes"]
    }


def criterion(suite):
    told = json.loads(suite.siteproof("verdict", "--json").stdout)
    return next(c for c in told["criteria"] if c["id"] == "TB-PARAMETERS")


def test_exactly_the_broken_nodes_are_named_each_with_its_cause(broken):
    found = states(broken)
    bad = {node for node, (state, _) in found.items() if state in BAD}
    assert bad == {*CONFIGURED, *LOST}, found
    for node, (_, cause) in CONFIGURED.items():
        assert cause in found[node][1]
    assert re.search(rf"did not answer: down\*?: {DEAD}", found[DOWN][1])
    assert "[red]x[/red]" in found[HOSTILE][1]
    assert found[HOSTILE][0] == "FAILED"


def test_lost_nodes_cost_only_themselves_and_each_has_its_reason(broken):
    assert broken.done.returncode == 1
    assert broken.measured(PARAMETERS) == [n for n in NODES if n not in LOST]
    lost = broken.lost()
    assert sorted(lost) == LOST
    assert lost[BLIND] == f"node_lost: {broken.data} not seen by {BLIND}"
    assert "$(touch" in lost[HOSTILE]
    assert HOSTILE in broken.told


def test_nodes_that_cannot_see_the_data_folder_are_named_in_one_line(broken):
    own = [line for line in broken.told.splitlines() if line.startswith("siteproof:")]
    assert own == [f"siteproof: {broken.data}: not seen by {BLIND}; these nodes are not measured"]


def test_the_verdict_fails_the_wrong_node_and_misses_the_lost_ones(broken):
    found = criterion(broken)
    assert found["verdict"] == "FAIL"
    verdicts = {n["node"]: n["verdict"] for n in found["nodes"] if n["verdict"] != "PASS"}
    assert verdicts == {"node002": "FAIL", **dict.fromkeys(LOST, "INCOMPLETE")}
    assert found["nodes_ok"] == 4
    shown = broken.siteproof("why", "node002").stdout
    assert "nic.eth0.mtu: expected 9000, found 1500" in shown


def test_a_hostile_reason_is_shown_printable_and_runs_nothing(broken):
    assert "$(touch" in broken.told
    assert "\x1b[31m 100" not in broken.told
    answers = (("verdict",), ("nodes",), ("why", HOSTILE), ("nodes", "--json"))
    told = {words: broken.siteproof(*words) for words in (*answers, ("verdict", "--json"))}
    told["gate"] = broken.on_login("gate")
    for words, done in told.items():
        text = done.stdout + done.stderr
        assert "Traceback" not in text
        # What a user wrote is behind 'why'; lists of nodes have the kind of reason only.
        assert ("$(touch" in text) or words in (("nodes",), "gate"), words
        assert all(c.isprintable() or c == "\n" for c in text), (words, text)
    assert not broken.trap.exists()


# ---- and mended


def test_a_run_of_what_is_missing_measures_what_failed_or_was_lost_alone(broken, tmp_path):
    suite, again = broken.copy(tmp_path), {"node002", *LOST}
    assert "-S nodes=missing" in suite.siteproof("verdict").stdout
    planned = suite.on_login(
        "plan", "--mode", "quick", "-n", "HostParameters", "-S", "nodes=missing"
    )
    assert "1 job on 4 nodes," in planned.stdout, planned.stdout + planned.stderr
    assert "node[002-004,006]" in planned.stdout
    done = suite.reframe("-n", "HostParameters", "-S", "nodes=missing")
    assert done.returncode == 0, done.stdout
    (first, all_of_them), (second, measured) = by_job(suite)
    assert (all_of_them, measured) == ({*NODES}, again)
    assert first[0] != second[0]
    whole = criterion(suite)
    assert (whole["verdict"], whole["nodes_ok"]) == ("PASS", 8)
    done = suite.reframe("-n", "HostParameters", "-S", "nodes=missing")
    assert len(by_job(suite)) == 2, done.stdout
    assert "nothing is missing" in done.stdout


def test_a_restored_session_measures_what_failed_or_was_lost_alone(broken):
    """The last test of the campaign, as it goes on in it."""
    line = broken.shell("&& exec reframe --restore-session --failed -r --mode quick")
    done = broken.testbed.run(line)
    assert done.returncode == 0, done.stdout
    (first, all_of_them), (second, again) = by_job(broken)
    assert (all_of_them, again) == ({*NODES}, {"node002", *LOST})
    assert first[0] == second[0]
    whole = criterion(broken)
    assert (whole["verdict"], whole["nodes_ok"]) == ("PASS", 8)
