"""The gate at work beside a Slurm that is made up, and its log."""

import json
import re
from contextlib import nullcontext

import pytest
from test_gate import INVENTORY, QUARANTINE, cluster, decided, held, left_alone, planned

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.gate import act, commands, decision
from siteproof.record.finding import Kind
from siteproof.slurm.client import Cause, Failure
from siteproof.slurm.records import Node
from siteproof.slurm.spelling import node_state


class Slurm:
    """Answers what it is told to, and keeps what it is asked to do."""

    def __init__(self, *looks):
        self.looks, self.ran, self.errors = list(looks), [], {}

    def look(self):
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def run(self, argv):
        self.ran.append(argv[1:3])
        return self.errors.get(argv[1])


@pytest.fixture
def scope(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    return act.Scope(
        "here",
        decided(n3="FAILED", n6="FAILED"),
        {"compute": INVENTORY},
        QUARANTINE,
        "campaign winter",
        "me",
    )


@pytest.mark.parametrize("state", ["DOWN", "IDLE+NOT_RESPONDING"])
def test_a_dead_node_enters_the_quarantine_even_if_it_has_passed_before(scope, state):
    """It would be repaired and serve users, and nobody would have tested it."""
    dead = cluster(n5=Node("n5", node_state(state)))
    seen = scope.seen(dead)
    assert seen.decision.out == nodesets.of(["n3", "n5", "n6"])
    ruling = seen.decision.rulings["n5"]
    assert (ruling.state, ruling.findings[0].kind) == ("FAILED", Kind.NOT_RESPONDING)
    done, left = planned(seen.decision, dead)
    assert (done[0][-2], left) == ("Nodes=n[3,5-6]", {})
    assert seen.decision.certain.out == nodesets.of(["n5"])


def quarantine(scope, monkeypatch, fake, seen):
    monkeypatch.setattr(act, "look", fake.look)
    monkeypatch.setattr(act.client, "change", fake.run)
    return act.act(scope, "quarantine", act.plan_quarantine, seen)


def test_it_looks_again_right_before_it_acts(scope, monkeypatch):
    now = cluster(n3=Node("n3", node_state("IDLE+DRAIN"), "bad DIMM"))
    fake = Slurm(now, cluster(held("n6")))
    done = quarantine(scope, monkeypatch, fake, cluster())
    assert done.commands[0].nodes == "n6"
    assert left_alone(done.left_alone) == {
        "n3": (Kind.STATE_CHANGED, {"before": "idle", "after": "drain+idle: bad DIMM"}, "")
    }
    assert [r["phase"] for r in decision.read(scope.log)[:3]] == ["plan", "before", "after"]
    assert decision.read(scope.log)[2]["start"] == 5


def test_after_an_error_nothing_more_is_done_and_the_log_has_it(scope, monkeypatch):
    fake = Slurm(cluster())
    fake.errors["create"] = Failure(Cause.FAILED, "Duplicate reservation name")
    done = quarantine(scope, monkeypatch, fake, cluster())
    assert (fake.ran, done.commands) == ([("create", "reservation")], [])
    assert "Duplicate reservation name" in done.errors[0]
    assert decision.read(scope.log)[-1]["error"] == "Duplicate reservation name"


NO_ANSWER = Failure(Cause.NO_ANSWER)


def test_a_create_without_an_answer_is_looked_up_and_adopted(scope, monkeypatch):
    """Slurm had made it: the gate called it somebody else's for a year."""
    fake = Slurm(cluster(), cluster(held("n3", "n6")))
    fake.errors["create"] = NO_ANSWER
    done = quarantine(scope, monkeypatch, fake, cluster())
    assert (done.errors, done.commands[0].what) == ([], "create")
    assert decision.read(scope.log)[2]["start"] == 5
    assert act.ours(scope, cluster(held("n3", "n6")), "compute")


def test_a_create_that_nobody_could_look_up_is_found_the_next_time(scope, monkeypatch):
    looks = iter([cluster()])

    def look():
        try:
            return next(looks)
        except StopIteration:
            raise UserError("scontrol", "no answer") from None

    fake = Slurm()
    fake.look = look
    fake.errors["create"] = NO_ANSWER
    done = quarantine(scope, monkeypatch, fake, cluster())
    assert (len(done.errors), done.commands) == (1, [])
    last = decision.read(scope.log)[-1]
    assert last["perhaps"] == 1
    for nodes, start, ours in (
        (("n3", "n6"), last["unix"] + 30, True),
        (("n3", "n6"), last["unix"] + 3600, False),
        (("n3", "n7"), last["unix"] + 30, False),
    ):
        seen = cluster(held(*nodes, start=start))
        if ours:
            assert act.ours(scope, seen, "compute")
        else:
            with pytest.raises(commands.Refusal):
                act.ours(scope, seen, "compute")


def test_a_command_without_an_answer_and_without_effect_is_an_error(scope, monkeypatch):
    fake = Slurm(cluster())
    fake.errors["create"] = NO_ANSWER
    done = quarantine(scope, monkeypatch, fake, cluster())
    assert (len(done.errors), done.commands) == (1, [])
    assert decision.read(scope.log)[-1]["perhaps"] == 1  # slurmctld may still do it


def test_a_reservation_that_is_not_as_asked_for_is_an_error(scope, monkeypatch):
    fake = Slurm(cluster(), cluster(held("n1", "n3")))
    done = quarantine(scope, monkeypatch, fake, cluster())
    assert "Slurm has n[1,3] where n[3,6] was requested" in done.errors[0]
    assert len(fake.ran) == 1


def test_without_a_log_nothing_is_done(scope, monkeypatch):
    scope.log.mkdir(parents=True)
    fake = Slurm(cluster())
    with pytest.raises(UserError, match="regular file"):
        quarantine(scope, monkeypatch, fake, cluster())
    assert fake.ran == []


def test_a_quarantine_of_somebody_else_is_refused(scope, monkeypatch):
    with pytest.raises(commands.Refusal, match="not the gate"):
        quarantine(scope, monkeypatch, Slurm(cluster(held("n8"))), cluster(held("n8")))


# ---- the log


def entry(**keys):
    return {
        "what": "create",
        "reservation": "r",
        "unix": 100,
        "phase": "before",
        "nodes": "n[1-2]",
    } | keys


OURS = [
    ([], False),
    ([entry(), entry(phase="after", error="", start=102)], True),
    ([entry(), entry(phase="after", error="", start=99)], False),
    ([entry(), entry(phase="after", error="Duplicate name")], False),
    ([entry()], True),  # the gate died while it made it
    ([entry(nodes="n[1-3]")], False),
    ([entry(), entry(phase="after", error="no answer", perhaps=1, unix=160)], True),
    ([entry(unix=30), entry(phase="after", error="?", perhaps=1, unix=90)], True),
    ([entry(unix=9), entry(phase="after", error="?", perhaps=1, unix=20)], False),
    ([entry(), entry(phase="after", error="?", perhaps=1, nodes="n9")], True),
    ([entry(unix=9)], False),
    ([entry(unix=150)], True),  # slurmctld's clock is behind
    ([entry(unix=170)], False),
    ([entry(), entry(phase="after", error="Slurm has n9", perhaps=1, start=102)], True),
    ([entry(reservation="other")], False),
    ([entry(what="update")], False),
    ([entry(unix="soon")], False),
]


def test_the_log_knows_whose_a_reservation_is():
    found = held("n1", "n2", name="r", start=102)
    wrong = [records for records, ours in OURS if decision.made_by_us(records, found) is not ours]
    assert not wrong, wrong


def test_the_log_knows_which_nodes_the_gate_put_in():
    records = [
        entry(added="n[1-2]"),
        entry(what="update", added="n5"),
        entry(added=""),
        entry(reservation="other", added="n7"),
        entry(added=3),
        entry(added="n["),
    ]
    assert decision.put_in(records, "r") == {"n1": 100, "n2": 100, "n5": 100}


def test_the_log_is_appended_to_and_a_broken_line_costs_only_itself(tmp_path):
    path = tmp_path / "new" / decision.NAME
    with decision.held(path) as journal:
        journal({"one": "\x1b\n"})
    with path.open("a") as file:
        file.write('{"half')
    with decision.held(path) as journal:
        journal({"two": 2})
    assert decision.read(path) == [{"one": "\x1b\n"}, {"two": 2}]
    assert "\x1b" not in path.read_text()


def test_two_gates_never_act_at_a_time(tmp_path):
    path = tmp_path / decision.NAME
    with decision.held(path), pytest.raises(UserError, match="is running"), decision.held(path):
        pass


@pytest.mark.parametrize("text", [b"{}", b"what?\n", None])
def test_nobody_waits_for_ever_for_a_lock(tmp_path, monkeypatch, text):
    """text: of a broken lock file; None: another gate hangs."""
    monkeypatch.setattr(decision, "LONGEST", 0.01, raising=False)
    lock = tmp_path / decision.LOCK / "000001"
    with decision.held(tmp_path / decision.NAME) if text is None else nullcontext():
        if text is not None:
            lock.parent.mkdir()
            lock.write_bytes(text)
        held_too = decision.held(tmp_path / decision.NAME, wait=True)
        with pytest.raises(UserError, match=re.escape(str(lock))), held_too:
            pass


def test_a_log_that_leads_elsewhere_is_refused(tmp_path):
    (tmp_path / decision.NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="link"), decision.held(tmp_path / decision.NAME) as journal:
        journal({})


def test_a_group_of_operators_shares_the_log(tmp_path):
    tmp_path.chmod(0o2775)
    with decision.held(tmp_path / decision.NAME) as journal:
        journal({})
        assert (tmp_path / decision.NAME).stat().st_mode & 0o020


def test_every_record_is_one_line_of_json(tmp_path):
    with decision.held(tmp_path / decision.NAME) as journal:
        journal({"error": "a\nb"})
    assert [json.loads(x) for x in (tmp_path / decision.NAME).read_text().splitlines()] == [
        {"error": "a\nb"}
    ]
