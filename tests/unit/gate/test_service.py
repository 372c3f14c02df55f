"""Where each node is after the decision, and the rights that a user lacks: without Slurm."""

import os
import pwd
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_gate import INVENTORY, QUARANTINE, cluster, decided, held

from siteproof import files, nodesets
from siteproof.cli import gate_answer
from siteproof.cli.gate_answer import Options
from siteproof.gate import act, decision, service
from siteproof.gate.act import Scope
from siteproof.gate.commands import QuarantineOptions
from siteproof.gate.service import Place, Quarantine, Service
from siteproof.record.finding import Finding, Kind
from siteproof.slurm.client import Cause, Failure
from siteproof.slurm.records import Node, Reservation
from siteproof.slurm.spelling import node_state

NAME = "siteproof-compute"
SLURM_STATES = ["IDLE", "DOWN", "IDLE+DRAIN", "IDLE+NOT_RESPONDING", "IDLE+POWERED_DOWN"]
REASONS = ["", "bad DIMM", "Kill task failed", "Not responding", "siteproof: FAILED: x"]


def placed(decision, seen, *inside, tested=(), in_slurm=INVENTORY, left_alone=None):
    """The place of each node; inside: nodes that the gate has put into its quarantine."""
    one = Quarantine(held(*inside), dict.fromkeys(inside, 5.0), nodesets.of(tested))
    found = service.places(decision, in_slurm, seen, [one] if inside else [], left_alone or {})
    assert sorted(p.node for p in found) == sorted(INVENTORY)
    return {p.node: p for p in found}


def test_each_node_is_in_service_or_out_by_somebody():
    seen = cluster(
        n2=Node("n2", node_state("IDLE+DRAIN"), "bad DIMM", by="alice"),
        n3=Node("n3", node_state("IDLE+DRAIN"), "Kill task failed", by="slurm"),
        n4=Node("n4", node_state("DOWN"), "Not responding"),
    )
    found = placed(
        decided(n2="FAILED", n5="FAILED", n6="SLOW"), seen, "n6", "n7", "n8", tested=["n7"]
    )
    assert {n: p.service for n, p in found.items()} == {
        "n1": Service.IN_SERVICE,
        "n2": Service.BY_OTHERS,
        "n3": Service.BY_OTHERS,
        "n4": Service.DOWN,
        "n5": Service.STILL_IN_SERVICE,
        "n6": Service.BY_US,
        "n7": Service.PASSED,
        "n8": Service.BY_US,
    }
    assert (found["n2"].why.kind, found["n2"].why["by"]) == (Kind.TAKEN_OUT, "alice")
    assert found["n3"].why.kind is Kind.TAKEN_OUT_BY_SLURM
    assert found["n8"].why.kind is Kind.NOT_TESTED_INSIDE


def test_without_an_answer_of_slurm_only_the_decision_is_known():
    found = placed(decided(n5="FAILED"), None)
    assert found["n5"].service is Service.STAYS_OUT
    assert {p.service for n, p in found.items() if n != "n5"} == {Service.GOES_BACK}


nodes = st.sampled_from(sorted(INVENTORY))


@given(
    st.dictionaries(nodes, st.sampled_from(["FAILED", "SLOW", "UNTESTED", "UNSTABLE"])),
    st.dictionaries(nodes, st.tuples(st.sampled_from(SLURM_STATES), st.sampled_from(REASONS))),
    st.sets(nodes),
    st.sets(nodes),
    st.sets(nodes),
)
def test_the_numbers_add_up_to_the_inventory(states, in_slurm, inside, tested, gone):
    decision = decided(**states)
    known = {n: Node(n, node_state(s), why) for n, (s, why) in in_slurm.items()}
    seen = cluster(**known)
    seen = type(seen)({n: v for n, v in seen.nodes.items() if n not in gone}, seen.reservations)
    found = list(placed(decision, seen, *inside, tested=tested).values())
    lines = service.table(found, decision)
    assert sum(int(line.split()[0]) for line in lines) == len(INVENTORY)
    listed = [n for line in lines for n in nodesets.parse(line.rsplit(": ", 1)[1])]
    assert sorted(listed) == sorted(INVENTORY)
    line = service.who_stays_out(found, decision)
    assert f"of {len(INVENTORY)} nodes" in line
    assert "\n" not in line


def test_many_nodes_are_a_number_in_the_line_of_those_that_stay_out():
    names = [f"n{2 * i:05}" for i in range(500)]
    found = [Place(n, Service.DOWN, Finding(Kind.UNKNOWN_TO_SLURM, n)) for n in names]
    line = service.who_stays_out(found, decided())
    assert line == "500 of 500 nodes stay out: 500 nodes unknown to Slurm"


# ---- rights


@pytest.fixture
def scope(tmp_path, monkeypatch):
    """A scope whose Slurm answers what a test says."""
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    (tmp_path / "perflogs" / "here").mkdir(parents=True)
    return Scope("here", decided(n3="FAILED"), {"compute": INVENTORY}, QUARANTINE, "c", "me")


def running(monkeypatch, refuse):
    """Every scontrol succeeds, but for those that refuse(argv) gives a failure for."""
    made: dict[str, Reservation] = {}

    def change(argv):
        if failure := refuse(argv):
            return failure
        if "create" in argv:
            made[NAME] = held("n3", start=7)
        return None

    monkeypatch.setattr(act.client, "change", change)
    monkeypatch.setattr(act, "look", lambda: cluster(*made.values()))
    return made


DENIED = Failure(Cause.DENIED, "Invalid user id")


def test_without_the_right_to_change_nodes_the_reservation_is_made_and_the_rest_is_handed_over(
    scope, monkeypatch
):
    made = running(monkeypatch, lambda argv: DENIED if "NodeName=n3" in argv else None)
    done = act.act(scope, "quarantine", act.plan_quarantine, cluster())
    assert (str(done.quarantined), [c.what for c in done.handed_over]) == ("n3", ["comment"])
    assert (done.errors, list(made)) == ([], [NAME])


def test_without_any_right_each_command_is_handed_over_and_only_one_is_tried(scope, monkeypatch):
    tried = []
    running(monkeypatch, lambda argv: tried.append(argv) or DENIED)
    done = act.act(scope, "quarantine", act.plan_quarantine, cluster())
    assert [c.what for c in done.handed_over] == ["create", "comment"]
    assert (len(tried), str(done.quarantined)) == (1, "")


def test_a_reservation_that_somebody_else_makes_for_us_is_ours_and_tested_from_the_next_test(
    scope, monkeypatch
):
    running(monkeypatch, lambda _argv: DENIED)
    act.act(scope, "quarantine", act.plan_quarantine, cluster())
    records = decision.read(scope.log)
    later = records[-1]["unix"] + 86400
    assert decision.made_by_us(records, held("n3", start=later))
    assert not decision.made_by_us(records, held("n4", start=later))
    assert decision.put_in(records, NAME) == {"n3": float("inf")}
    test = {"what": "reframe", "reservation": NAME, "nodes": "n3", "unix": later + 60}
    assert decision.put_in([*records, {**test, "phase": "before"}], NAME) == {"n3": later + 60}


@pytest.mark.parametrize(("booted", "freed"), [(5, True), (20, False)])
def test_a_node_that_booted_after_its_test_needs_another(scope, monkeypatch, booted, freed):
    made = running(monkeypatch, lambda _argv: None)
    act.act(scope, "quarantine", act.plan_quarantine, cluster())
    now = decision.read(scope.log)[-1]["unix"]
    passed = replace(scope, decision=decided(), measured={"n3": now + 10})
    seen = cluster(*made.values(), n3=Node("n3", booted=now + booted))
    plan = act.plan_release(passed, seen, {})["compute"]
    assert [c.what for c in plan.commands] == ["delete"] * freed
    kept = {node: why.kind for node, why in plan.left_alone.items()}
    assert kept == ({} if freed else {"n3": Kind.NOT_TESTED_INSIDE})


NEW_WORDS = Failure(Cause.UNSURE, "Error creating the reservation: Unspecified error")


@pytest.mark.parametrize("refusal", [DENIED, NEW_WORDS], ids=["22.05", "26.05"])
def test_where_slurm_does_not_admit_the_colleagues_the_quarantine_is_made_without_them(
    scope, monkeypatch, refusal
):
    options = QuarantineOptions(["me", "root"], "c", colleagues=["gone"])
    scope = Scope(*(scope.system, scope.decision, scope.partitions, options, "c", "me"))
    running(monkeypatch, lambda argv: refusal if any("gone" in word for word in argv) else None)
    done = act.act(scope, "quarantine", act.plan_quarantine, cluster())
    assert (done.refused_users, done.handed_over, str(done.quarantined)) == (["gone"], [], "n3")


def test_the_operators_are_those_who_may_write_to_the_folder(tmp_path):
    assert files.group_members(tmp_path) == []
    tmp_path.chmod(0o2775)
    members = files.group_members(tmp_path)
    assert pwd.getpwuid(os.getuid()).pw_name in members
    assert all(pwd.getpwnam(name) for name in members)


def test_the_log_says_what_was_done_on_the_same_samples():
    records = [
        {"samples_of": "c", "phase": "before", "added": "n1"},
        {"samples_of": "c", "phase": "after", "error": "", "added": "n[1-2]", "released": ""},
        {"samples_of": "c", "phase": "after", "error": "no", "added": "n3"},
        {"samples_of": "d", "phase": "after", "error": "", "added": "n4"},
        {"samples_of": "c", "phase": "after", "error": "", "released": "n2", "added": 7},
    ]
    assert tuple(map(str, decision.done(records, "c"))) == ("n[1-2]", "n2")


def test_the_next_command_has_the_same_choice_and_no_option_twice():
    chosen = Options(given=[("--campaign", "a b"), ("--limit", "5%"), ("--drain",)])
    assert chosen.command("--limit", "30%", "--apply") == (
        "siteproof gate --campaign 'a b' --drain --limit 30% --apply"
    )


def test_after_a_refusal_certain_is_the_next_only_while_such_a_node_is_not_in_quarantine():
    dead = cluster(n2=Node("n2", node_state("DOWN"), "Not responding"))
    scope = Scope("here", decided(), {"compute": INVENTORY}, QUARANTINE, "c", "me").seen(dead)
    for at, left in ((Service.DOWN, "n2"), (Service.BY_US, "")):
        places = [Place("n2", at)]
        assert str(gate_answer._certain(scope, Options(), places)) == left
        assert not gate_answer._certain(scope, Options(certain=True, apply=True), places)
