"""The decision, the commands that follow from it, and the log: without Slurm."""

import json
import re
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

import pytest
from documents_checked import check
from fleets import broken, furnish, names, run_of

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.gate import act, commands, log
from siteproof.gate.commands import Cluster, Standing, Wish, standing
from siteproof.gate.decision import STATES, Excuse, Ruling, Share, condemned, decide, out_of_service
from siteproof.record import samples
from siteproof.record.finding import Finding, Kind, of
from siteproof.record.samples import Header, Sample
from siteproof.slurm.client import Cause, Failure
from siteproof.slurm.records import Node, Reservation
from siteproof.slurm.spelling import node_state

WAIVER = of(
    Kind.WAIVED, {"problem": "fan", "owner": "A. Colleague", "until": "2999-12-31"}, waived_by="W"
)
WISH = Wish(["root"], "campaign winter")
SLOW = Finding(Kind.MEASURED_UNDER, metric="Stream.triad", message="slow")
INVENTORY = nodesets.of(f"n{i}" for i in range(1, 9))


@dataclass
class Report:
    state: str
    findings: list = field(default_factory=list)


def excuse(*, everything=False, criteria=(), metrics=(), checks=(), wrong_answers=()):
    return Excuse(WAIVER, everything, *map(frozenset, (criteria, metrics, checks, wrong_answers)))


def slow(metric="Stream.triad", criterion="", check="Stream", kind=Kind.MISSES_BOUND, **fields):
    return Finding(kind, "n1", check, metric, criterion, **fields)


def decided(**states):
    """A decision with these states; every other node is OK."""
    reports = {n: Report("OK") for n in INVENTORY}
    found = {n: Report(s, [replace(SLOW, subject=n)]) for n, s in states.items()}
    return decide(reports | found)


def left_alone(found):
    """Kind, details and message of why each node is left alone."""
    assert all(why.subject == node for node, why in found.items())
    return {node: (why.kind, dict(why.details), why.message) for node, why in found.items()}


def cluster(*reservations, **nodes):
    """A cluster of idle nodes, but for those given."""
    known = {n: Node(n) for n in INVENTORY} | nodes
    return Cluster(known, {r.name: r for r in reservations})


def held(*names, name="siteproof-compute", start=5):
    return Reservation(name, start, nodesets.of(names))


def planned(decision, seen, ours=None, wish=WISH, moved=None):
    plan = commands.quarantine("compute", INVENTORY, decision, seen, ours, wish, moved or {})
    return [
        c.argv[1:] for c in plan.commands if c.what not in ("comment", "drain")
    ], plan.left_alone


# ---- the decision


@pytest.mark.parametrize(
    ("state", "back"),
    [
        ("OK", True),
        ("UNSTABLE", True),
        ("SLOW", False),
        ("FAILED", False),
        ("ODD", False),
        ("UNTESTED", False),
    ],
)
def test_each_state_goes_back_or_stays_out(state, back):
    assert (decided(n3=state).out == nodesets.of()) is back


def test_a_site_may_choose_which_states_stay_out():
    reports = {s: Report(s) for s in STATES}
    chosen = ["FAILED", "UNSTABLE"]
    assert decide(reports, keep_out=chosen).out == nodesets.of(chosen)


HPL = slow("Hpl.gflops", "TB-HPL", "Hpl")
TIMEOUT = Finding(Kind.NO_VALUE, "n1", "Hpl", status="timeout")
OF_HPL = excuse(criteria=["TB-HPL"], metrics=["Hpl.gflops"], checks=["Hpl"])
FAN = Finding(Kind.FIELD_DIFFERS, "n1")


@pytest.mark.parametrize(
    ("reasons", "excuses", "back"),
    [
        ([FAN], [excuse(everything=True)], True),
        ([HPL], [OF_HPL], True),
        ([slow(kind=Kind.SLOW)], [excuse(metrics=["Stream.triad"])], True),
        ([slow("Stream.triad [size 8]", kind=Kind.SLOW)], [excuse(metrics=["Stream.triad"])], True),
        ([TIMEOUT], [OF_HPL], True),
        ([FAN], [OF_HPL], False),
        ([slow("Hpl.gflops", "TB-HPL-ANY", "Hpl")], [OF_HPL], False),
        ([slow("Hpl.gflops", "TB-HPL-ANY", "Hpl")], [excuse(metrics=["Hpl.gflops"])], False),
        ([slow("Hpl.seconds", "", "Hpl")], [OF_HPL], False),
        ([slow("Hpl.gflops_all", "", "Hpl")], [OF_HPL], False),
        ([replace(TIMEOUT, message="TB-HPL Hpl.gflops Stream", check="Stream")], [OF_HPL], False),
        ([HPL, slow("Stream.triad", "TB-STREAM")], [OF_HPL], False),
        ([HPL, slow("Stream.triad", "TB-STREAM")], [OF_HPL, excuse(criteria=["TB-STREAM"])], True),
        ([], [OF_HPL], False),
        ([], [excuse(everything=True)], False),
    ],
)
def test_a_waiver_excuses_only_what_it_covers(reasons, excuses, back):
    ruling = decide({"n1": Report("FAILED", reasons)}, {"n1": excuses}).rulings["n1"]
    assert ruling.back is back
    assert ruling.waived == ((WAIVER,) if back else ())
    assert ruling.findings == tuple(reasons)


OF_STREAM = {"checks": ["Stream"], "metrics": ["Stream.triad"]}


@pytest.mark.parametrize(
    ("excuses", "back"),
    [
        ([excuse(everything=True)], False),
        ([excuse(**OF_STREAM), OF_HPL], False),
        ([excuse(everything=True, wrong_answers=["checksum"])], False),
        ([excuse(checks=["Hpl"], wrong_answers=["invalid"]), excuse(checks=["Stream"])], False),
        ([excuse(**OF_STREAM, wrong_answers=["invalid"])], True),
        ([excuse(everything=True, wrong_answers=["invalid", "checksum"])], True),
    ],
)
@pytest.mark.parametrize(
    "kind", [Kind.WRONG_ANSWER, Kind.WRONG_BEFORE, Kind.PAIRS_WITHOUT_VALUE], ids=str
)
def test_a_wrong_answer_keeps_a_node_out_unless_its_status_is_waived(kind, excuses, back):
    wrong = Finding(kind, "n1", "Stream", status="invalid", message="the word Hpl is in it")
    report = Report("FAILED", [wrong, slow(kind=Kind.NOT_MEASURED)])
    assert decide({"n1": report}, {"n1": excuses}).rulings["n1"].back is back


def test_a_wrong_answer_of_a_pair_that_another_node_explains_is_a_missing_value():
    why = Finding(Kind.NO_VALUE, "n1", "TcpBandwidth", "TcpBandwidth.throughput", status="invalid")
    excuses = [excuse(metrics=["TcpBandwidth.throughput"])]
    assert decide({"n1": Report("UNTESTED", [why])}, {"n1": excuses}).rulings["n1"].back


def test_a_node_that_nobody_measured_never_leaves_a_quarantine():
    decision = decide({"n1": Report("UNTESTED")}, keep_out=["FAILED"])
    assert (decision.back, decision.passed) == (nodesets.of(["n1"]), nodesets.of())


@pytest.mark.parametrize(
    ("out", "limit", "refused"),
    [
        (1, 10, False),  # one of eight is 12.5 %, and always allowed
        (2, 10, True),
        (2, 25, False),
        (3, 25, True),
        (8, 100, False),
        (0, 0, False),
        (1, 0, False),
    ],
)
def test_more_than_a_share_of_a_partition_is_refused(out, limit, refused):
    decision = decided(**dict.fromkeys(list(INVENTORY)[:out], "FAILED"))
    for share in (
        condemned(decision, INVENTORY, nodesets.of()),
        out_of_service(decision, INVENTORY, nodesets.of()),
    ):
        assert share == Share(out, len(INVENTORY))
        assert share.exceeds(Fraction(limit, 100)) is refused


def test_what_is_out_already_is_not_condemned_again_and_counts_for_the_capacity():
    """Four evenings with one bad node each took four of four nodes."""
    decision = decided(n1="FAILED", n2="FAILED", n3="FAILED", n4="UNTESTED")
    held = nodesets.of(["n1", "n2", "n8"])
    assert condemned(decision, INVENTORY, held) == Share(1, 7)
    assert out_of_service(decision, INVENTORY, held) == Share(5, 8)
    drained = nodesets.of(["n1", "n2", "n3", "n4"])
    assert out_of_service(decision, INVENTORY, drained) == Share(0, 8)


# ---- the commands


def test_failed_nodes_come_under_a_reservation():
    done, left = planned(decided(n3="FAILED", n6="FAILED"), cluster())
    assert done == [
        (
            "create",
            "reservation",
            "ReservationName=siteproof-compute",
            "StartTime=now",
            "Duration=UNLIMITED",
            "Users=root",
            "Nodes=n[3,6]",
            "Flags=MAINT,IGNORE_JOBS",
        )
    ]
    assert left == {}


def test_nothing_is_done_twice():
    decision = decided(n3="FAILED")
    comment = commands.text(decision.rulings["n3"], WISH.campaign)
    seen = cluster(held("n3"), n3=Node("n3", comment=comment))
    plan = commands.quarantine("compute", INVENTORY, decision, seen, held("n3"), WISH, {})
    assert plan.commands == []


def test_a_new_failure_is_added_and_who_has_passed_waits_for_its_release():
    done, _ = planned(decided(n3="FAILED"), cluster(held("n6")), held("n6"))
    assert done == [("update", "ReservationName=siteproof-compute", "Nodes=n[3,6]")]


@pytest.mark.parametrize(
    ("node", "others", "why"),
    [
        (
            Node("n3", node_state("IDLE+DRAIN"), "bad DIMM"),
            [],
            (Kind.TAKEN_OUT, {"state": "drain+idle"}, "bad DIMM"),
        ),
        (
            Node("n3", node_state("DOWN"), "bad DIMM"),
            [],
            (Kind.TAKEN_OUT, {"state": "down"}, "bad DIMM"),
        ),
        (
            Node("n3", node_state("IDLE+DRAIN"), "Kill task failed"),
            [],
            (Kind.TAKEN_OUT_BY_SLURM, {"state": "drain+idle"}, "Kill task failed"),
        ),
        (Node("n3"), [held("n3", name="class")], (Kind.RESERVED, {"reservations": "class"}, "")),
    ],
)
def test_what_is_somebody_elses_is_left_alone_and_named(node, others, why):
    done, left = planned(decided(n3="FAILED", n6="FAILED"), cluster(*others, n3=node))
    assert done[0][-2] == "Nodes=n6"
    assert left_alone(left) == {"n3": why}


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("IDLE", "", Standing.IN_SERVICE),
        ("DOWN", "Not responding", Standing.DEAD),
        ("DOWN+NOT_RESPONDING", "", Standing.DEAD),
        ("IDLE+NOT_RESPONDING", "", Standing.DEAD),
        ("ALLOCATED+NOT_RESPONDING", "old reason", Standing.DEAD),
        ("DOWN", "Node unexpectedly rebooted", Standing.DEAD),
        ("DOWN", "bad DIMM", Standing.BY_PERSON),
        ("DOWN+DRAIN", "Not responding", Standing.BY_SLURM),
        ("IDLE+DRAIN", "Prolog error", Standing.BY_SLURM),
        ("IDLE+DRAIN", "Low RealMemory", Standing.BY_SLURM),
        ("IDLE+DRAIN", "NHC: check_fs_mount: /scratch", Standing.BY_SLURM),
        ("IDLE+DRAIN", "siteproof: FAILED", Standing.BY_US),
        ("MIXED+DRAIN", "ticket 7", Standing.BY_PERSON),
        ("IDLE+CLOUD+POWERED_DOWN", "", Standing.IN_SERVICE),
        ("IDLE+POWERED_DOWN+NOT_RESPONDING", "", Standing.IN_SERVICE),
        ("IDLE+PLANNED+NOT_RESPONDING", "", Standing.IN_SERVICE),
        ("IDLE+REBOOT_ISSUED+NOT_RESPONDING", "", Standing.IN_SERVICE),
        ("DOWN+REBOOT_REQUESTED", "reboot", Standing.BY_PERSON),
        ("FUTURE", "", Standing.BY_PERSON),
    ],
)
def test_who_has_taken_a_node_out(state, reason, expected):
    assert standing(Node("n3", node_state(state), reason)) is expected


def test_a_state_in_a_comment_does_not_change_while_the_node_is_down():
    """The comment was written anew when slurmctld's next ping had failed."""
    states = ("DOWN", "DOWN+NOT_RESPONDING", "DOWN+MAINTENANCE+NOT_RESPONDING+RESERVED")
    assert {commands.state_of(Node("n3", node_state(said))) for said in states} == {"down"}
    assert commands.state_of(Node("n3", node_state("IDLE+NOT_RESPONDING"))) == "idle+not_responding"


@pytest.mark.parametrize("state", ["DOWN", "IDLE+NOT_RESPONDING"])
def test_a_dead_node_enters_the_quarantine_even_if_it_has_passed_before(scene, state):
    """It would be repaired and serve users, and nobody would have tested it."""
    dead = cluster(n5=Node("n5", node_state(state)))
    seen = scene.seen(dead)
    assert seen.decision.out == nodesets.of(["n3", "n5", "n6"])
    ruling = seen.decision.rulings["n5"]
    assert (ruling.state, ruling.findings[0].kind) == ("FAILED", Kind.NOT_RESPONDING)
    done, left = planned(seen.decision, dead)
    assert (done[0][-2], left) == ("Nodes=n[3,5-6]", {})
    assert seen.decision.certain.out == nodesets.of(["n5"])


def test_a_node_that_slurm_does_not_know_is_named():
    seen = Cluster({n: Node(n) for n in INVENTORY if n != "n3"})
    done, left = planned(decided(n3="FAILED"), seen)
    assert (done, left_alone(left)) == ([], {"n3": (Kind.UNKNOWN_TO_SLURM, {}, "")})


def test_the_maintenances_own_reservation_may_be_overlapped_if_it_is_named():
    wish = Wish(["root"], "c", may_overlap=("maint",))
    done, left = planned(decided(n3="FAILED"), cluster(held("n3", name="maint")), wish=wish)
    assert (len(done), left) == (1, {})


def test_a_node_that_changed_since_the_plan_is_left_alone():
    before, now = cluster(), cluster(n3=Node("n3", node_state("DOWN"), "power"))
    moved = commands.changed(before, now, ["n3", "n6"])
    assert left_alone(moved) == {
        "n3": (Kind.STATE_CHANGED, {"before": "idle", "after": "down: power"}, "")
    }
    done, left = planned(decided(n3="FAILED", n6="FAILED"), now, moved=moved)
    assert (done[0][-2], list(left)) == ("Nodes=n6", ["n3"])


def test_a_job_that_begins_is_no_change():
    now = cluster(n3=Node("n3", node_state("ALLOCATED")))
    assert commands.changed(cluster(), now, ["n3"]) == {}


def test_a_reservation_that_comes_between_is_a_change():
    moved = commands.changed(cluster(), cluster(held("n3", name="x")), ["n3"])
    assert left_alone(moved) == {
        "n3": (Kind.STATE_CHANGED, {"before": "in no reservation", "after": "in x"}, "")
    }


def test_a_node_that_slurm_forgets_is_a_change():
    now = Cluster({n: Node(n) for n in INVENTORY if n != "n3"})
    (why,) = commands.changed(cluster(), now, ["n3", "n6"]).values()
    assert (why.kind, why.subject, why["after"]) == (Kind.STATE_CHANGED, "n3", "unknown to Slurm")


@pytest.mark.parametrize(
    ("comment", "written"),
    [("", True), ("siteproof: FAILED: something older", True), ("bought in 2021", False)],
)
def test_a_comment_of_somebody_else_stays(comment, written):
    seen = cluster(n3=Node("n3", comment=comment))
    plan = commands.quarantine("compute", INVENTORY, decided(n3="FAILED"), seen, None, WISH, {})
    assert ("comment" in [c.what for c in plan.commands]) is written


def test_a_drain_is_offered_and_not_repeated():
    wish = Wish(["root"], "campaign winter", drain=True)
    decision = decided(n3="FAILED")
    plan = commands.quarantine("compute", INVENTORY, decision, cluster(), None, wish, {})
    assert plan.commands[-1].argv == (
        "scontrol",
        "update",
        "NodeName=n3",
        "State=DRAIN",
        "Reason=siteproof: FAILED: Stream.triad: slow; campaign winter; see: siteproof why n3",
    )
    drained = cluster(held("n3"), n3=Node("n3", node_state("IDLE+DRAIN"), "siteproof: x"))
    again = commands.quarantine("compute", INVENTORY, decision, drained, held("n3"), wish, {})
    assert "drain" not in [c.what for c in again.commands]


def test_release_takes_out_what_has_passed_and_names_the_rest():
    plan = commands.release(
        decided(n6="FAILED"), cluster(), held("n3", "n6"), INVENTORY, INVENTORY, {}
    )
    assert [c.argv[1:] for c in plan.commands] == [
        ("update", "ReservationName=siteproof-compute", "Nodes=n6")
    ]
    assert left_alone(plan.left_alone) == {
        "n6": (Kind.NOT_PASSED, {"state": "FAILED"}, "Stream.triad: slow")
    }


def test_only_a_pass_inside_the_quarantine_frees_a_node():
    seen = cluster(n4=Node("n4", node_state("DOWN"), "Not responding"))
    tested = nodesets.of(["n4", "n5"])
    plan = commands.release(decided(), seen, held("n3", "n4", "n5"), INVENTORY, tested, {})
    assert plan.commands[0].argv[1:] == (
        "update",
        "ReservationName=siteproof-compute",
        "Nodes=n[3-4]",
    )
    assert left_alone(plan.left_alone) == {
        "n3": (Kind.NOT_TESTED_INSIDE, {}, ""),
        "n4": (Kind.NOT_RESPONDING, {"state": "down"}, "Not responding"),
    }


def test_the_last_node_takes_the_reservation_with_it():
    """An empty `Nodes=` would let Slurm choose nodes."""
    seen = cluster(n3=Node("n3", node_state("IDLE+DRAIN"), "siteproof: x", "siteproof: x"))
    plan = commands.release(decided(), seen, held("n3"), INVENTORY, INVENTORY, {})
    assert [c.argv[1:] for c in plan.commands] == [
        ("delete", "ReservationName=siteproof-compute"),
        ("update", "NodeName=n3", "Comment="),
        ("update", "NodeName=n3", "State=RESUME"),
    ]


def test_release_keeps_a_stranger_in_the_reservation():
    seen = held("n3", "n4", "gone9")
    plan = commands.release(decided(), cluster(), seen, nodesets.of(["n3", "gone9"]), INVENTORY, {})
    assert left_alone(plan.left_alone) == {
        "gone9": (Kind.NOT_IN_INVENTORY, {}, ""),
        "n4": (Kind.PUT_BY_OTHERS, {}, ""),
    }
    assert plan.commands[0].nodes == "gone9,n4"


def test_only_our_own_drains_are_resumed():
    drained = node_state("IDLE+DRAIN")
    seen = cluster(n3=Node("n3", drained, "siteproof: x"), n6=Node("n6", drained, "bad DIMM"))
    plan = commands.resume(seen, held("n3", "n6"), "me", {})
    assert [c.argv[2] for c in plan.commands] == ["NodeName=n3"]
    assert left_alone(plan.left_alone) == {
        "n6": (Kind.TAKEN_OUT, {"state": "drain+idle"}, "bad DIMM")
    }


@pytest.mark.parametrize(
    "reason", ['a "b" $(id) `id` \\ |', "x\nState=DOWN Reason=y", "\x1b[31m", "é\u202e", "w" * 5000]
)
def test_no_reason_ends_a_field_or_steers_a_terminal(reason):
    why = Finding(Kind.MEASURED_UNDER, message=reason)
    words = commands.text(Ruling("n1", "FAILED", False, (why,)), 'c "; $(id)')
    assert words.isascii()
    assert words.isprintable()
    assert not set(words) & set("\"'`$\\|=\n")
    assert len(words) <= commands.MAX_COMMENT
    assert words.endswith("see: siteproof why n1")


@pytest.mark.parametrize(
    ("partition", "name"),
    [("compute", "siteproof-compute"), ("gpu a/b$(x)", "siteproof-gpu_a_b__x_")],
)
def test_the_reservation_has_a_name_that_slurm_takes(partition, name):
    assert commands.reservation_name(partition) == name


# ---- at work, beside a Slurm that is made up


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
def scene(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    return act.Scene(
        "here",
        decided(n3="FAILED", n6="FAILED"),
        {"compute": INVENTORY},
        WISH,
        "campaign winter",
        "me",
    )


def quarantine(scene, monkeypatch, fake, seen):
    monkeypatch.setattr(act, "look", fake.look)
    monkeypatch.setattr(act.client, "change", fake.run)
    return act.act(scene, "quarantine", act.plan_quarantine, seen)


def test_it_looks_again_right_before_it_acts(scene, monkeypatch):
    now = cluster(n3=Node("n3", node_state("IDLE+DRAIN"), "bad DIMM"))
    fake = Slurm(now, cluster(held("n6")))
    done = quarantine(scene, monkeypatch, fake, cluster())
    assert done.commands[0].nodes == "n6"
    assert left_alone(done.left_alone) == {
        "n3": (Kind.STATE_CHANGED, {"before": "idle", "after": "drain+idle: bad DIMM"}, "")
    }
    assert [r["phase"] for r in log.read(scene.log)[:3]] == ["plan", "before", "after"]
    assert log.read(scene.log)[2]["start"] == 5


def test_after_an_error_nothing_more_is_done_and_the_log_has_it(scene, monkeypatch):
    fake = Slurm(cluster())
    fake.errors["create"] = Failure(Cause.FAILED, "Duplicate reservation name")
    done = quarantine(scene, monkeypatch, fake, cluster())
    assert (fake.ran, done.commands) == ([("create", "reservation")], [])
    assert "Duplicate reservation name" in done.errors[0]
    assert log.read(scene.log)[-1]["error"] == "Duplicate reservation name"


NO_ANSWER = Failure(Cause.NO_ANSWER)


def test_a_create_without_an_answer_is_looked_up_and_adopted(scene, monkeypatch):
    """Slurm had made it: the gate called it somebody else's for a year."""
    fake = Slurm(cluster(), cluster(held("n3", "n6")))
    fake.errors["create"] = NO_ANSWER
    done = quarantine(scene, monkeypatch, fake, cluster())
    assert (done.errors, done.commands[0].what) == ([], "create")
    assert log.read(scene.log)[2]["start"] == 5
    assert act.ours(scene, cluster(held("n3", "n6")), "compute")


def test_a_create_that_nobody_could_look_up_is_found_the_next_time(scene, monkeypatch):
    looks = iter([cluster()])

    def look():
        try:
            return next(looks)
        except StopIteration:
            raise UserError("scontrol", "no answer") from None

    fake = Slurm()
    fake.look = look
    fake.errors["create"] = NO_ANSWER
    done = quarantine(scene, monkeypatch, fake, cluster())
    assert (len(done.errors), done.commands) == (1, [])
    last = log.read(scene.log)[-1]
    assert last["perhaps"] == 1
    for nodes, start, ours in (
        (("n3", "n6"), last["unix"] + 30, True),
        (("n3", "n6"), last["unix"] + 3600, False),
        (("n3", "n7"), last["unix"] + 30, False),
    ):
        seen = cluster(held(*nodes, start=start))
        if ours:
            assert act.ours(scene, seen, "compute")
        else:
            with pytest.raises(commands.Refusal):
                act.ours(scene, seen, "compute")


def test_a_command_without_an_answer_and_without_effect_is_an_error(scene, monkeypatch):
    fake = Slurm(cluster())
    fake.errors["create"] = NO_ANSWER
    done = quarantine(scene, monkeypatch, fake, cluster())
    assert (len(done.errors), done.commands) == (1, [])
    assert log.read(scene.log)[-1]["perhaps"] == 1  # slurmctld may still do it


def test_a_reservation_that_is_not_as_asked_for_is_an_error(scene, monkeypatch):
    fake = Slurm(cluster(), cluster(held("n1", "n3")))
    done = quarantine(scene, monkeypatch, fake, cluster())
    assert "Slurm has n[1,3] where n[3,6] was requested" in done.errors[0]
    assert len(fake.ran) == 1


def test_without_a_log_nothing_is_done(scene, monkeypatch):
    scene.log.mkdir(parents=True)
    fake = Slurm(cluster())
    with pytest.raises(UserError, match="cannot be"):
        quarantine(scene, monkeypatch, fake, cluster())
    assert fake.ran == []


def test_a_quarantine_of_somebody_else_is_refused(scene, monkeypatch):
    with pytest.raises(commands.Refusal, match="not the gate"):
        quarantine(scene, monkeypatch, Slurm(cluster(held("n8"))), cluster(held("n8")))


# ---- the log


def entry(**keys):
    return {
        "what": "create",
        "reservation": "r",
        "unix": 100,
        "phase": "before",
        "nodes": "n[1-2]",
    } | keys


@pytest.mark.parametrize(
    ("records", "ours"),
    [
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
    ],
)
def test_the_log_knows_whose_a_reservation_is(records, ours):
    assert log.made_by_us(records, held("n1", "n2", name="r", start=102)) is ours


def test_the_log_knows_which_nodes_the_gate_put_in():
    records = [
        entry(added="n[1-2]"),
        entry(what="update", added="n5"),
        entry(added=""),
        entry(reservation="other", added="n7"),
        entry(added=3),
        entry(added="n["),
    ]
    assert log.put_in(records, "r") == {"n1": 100, "n2": 100, "n5": 100}


def test_the_log_is_appended_to_and_a_broken_line_costs_only_itself(tmp_path):
    path = tmp_path / "new" / log.NAME
    with log.held(path) as journal:
        journal.add({"one": "\x1b\n"})
    with path.open("a") as file:
        file.write('{"half')
    with log.held(path) as journal:
        journal.add({"two": 2})
    assert log.read(path) == [{"one": "\x1b\n"}, {"two": 2}]
    assert "\x1b" not in path.read_text()


def test_two_gates_never_act_at_a_time(tmp_path):
    path = tmp_path / log.NAME
    with log.held(path), pytest.raises(UserError, match="is running"), log.held(path):
        pass


@pytest.mark.parametrize("text", [b"{}", b"what?\n", None])
def test_nobody_waits_for_ever_for_a_lock(tmp_path, monkeypatch, text):
    """text: of a broken lock file; None: another gate hangs."""
    monkeypatch.setattr(log, "LONGEST", 0.01, raising=False)
    lock = tmp_path / log.LOCK / "000001"
    with log.held(tmp_path / log.NAME) if text is None else nullcontext():
        if text is not None:
            lock.parent.mkdir()
            lock.write_bytes(text)
        held_too = log.held(tmp_path / log.NAME, wait=True)
        with pytest.raises(UserError, match=re.escape(str(lock))), held_too:
            pass


def test_a_log_that_leads_elsewhere_is_refused(tmp_path):
    (tmp_path / log.NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="cannot be written"), log.held(tmp_path / log.NAME):
        pass


def test_a_group_of_operators_shares_the_log(tmp_path):
    tmp_path.chmod(0o2775)
    with log.held(tmp_path / log.NAME):
        assert (tmp_path / log.NAME).stat().st_mode & 0o020


# ---- the command, on a machine without Slurm


def measure(world, mismatches, **keys):
    """A session in which this machine was found with so many mismatches."""
    head = Header(
        **{
            "session": "s1",
            "system": "thishost",
            "partition": "node",
            "environment": "system",
            "check": "HostParameters",
            "job": "1",
            "time": "2026-11-21T00:00:00+00:00",
            "mode": "quick",
            **keys,
        }
    )
    one = Sample(head, "localhost", "HostParameters.mismatches", Decimal(mismatches), "count")
    samples.write(world.data / "perflogs", head, [one])


CRITERION = """HERE-PARAMETERS:
  description: The machine is configured as the site says
  metric: HostParameters.mismatches
  at_most: 0 count
  conditions: {mode: [quick, maintenance, acceptance]}
  source: here
"""


@pytest.fixture
def here(world):
    world.site(criteria=CRITERION, baselines="{}\n")
    world.data.mkdir()
    return world


def test_nothing_measured_is_exit_code_3(here):
    done = here.siteproof("gate")
    assert (done.code, "nothing was measured" in done.out) == (3, True)


def test_nothing_was_measured_is_not_said_where_one_metric_is_missing(world):
    here = furnish(world)
    head = replace(run_of({"n001": 1})[0].header, check="HostParameters", campaign="c")
    metric = "HostParameters.mismatches"
    here.keep([Sample(head, n, metric, Decimal(0), "count") for n in names(8)])
    told = here.ask("gate", "--campaign", "c")
    read = check("gate", here.ask("gate", "--campaign", "c", "--json").out)
    assert {node["state"] for node in read["nodes"]} == {"UNTESTED"}
    assert (told.code, "nothing was measured" in told.out) == (1, False)
    run = "reframe -c checks/ -r --system here --mode maintenance"
    missing = f"SITEPROOF_CAMPAIGN=c {run} -S 'nodes=n[001-008]'"
    assert told.out.splitlines()[-1].startswith(f"next: {missing}")


@pytest.mark.parametrize(
    ("mismatches", "code", "last"),
    [
        (0, 0, ["none of 1 nodes stays out", "next: siteproof report"]),
        (
            2,
            1,
            [
                "1 of 1 nodes stay out: localhost FAILED (HERE-PARAMETERS)",
                "next: siteproof why localhost",
            ],
        ),
    ],
)
def test_the_decision_needs_no_slurm(here, mismatches, code, last):
    measure(here, mismatches)
    done = here.siteproof("gate")
    assert (done.code, done.out.splitlines()[-3:]) == (code, ["nothing was changed", *last])
    assert not (here.data / "perflogs/thishost/gate.jsonl").exists()
    answered = here.siteproof("gate", "--json")
    read = check("gate", answered.out)
    assert (answered.code, read["exit_code"], read["out"]) == (code, code, "localhost" * bool(code))
    assert [n["back"] for n in read["nodes"]] == [not code]
    assert [n["service"] for n in read["nodes"]] == ["stays_out" if code else "goes_back"]
    kinds = {why["kind"] for why in read["findings"]}
    assert kinds == ({"misses_bound", "parameters_differ"} if code else set())


def test_where_slurm_cannot_be_asked_the_commands_are_shown_nevertheless(here):
    here.edit("system", "scheduler: local", "scheduler: slurm")
    here.fake("scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    measure(here, 2)
    done = here.siteproof("gate")
    assert done.code == 1
    assert "Slurm does not answer here (Unable to contact" in done.out
    assert "Nodes=localhost" in done.out
    refused = here.siteproof("gate", "--apply", "--limit", "100%")
    assert (refused.code, "Unable to contact" in refused.said) == (2, True)


def test_a_waived_failure_goes_back_and_says_why(here):
    measure(here, 2)
    here.site(
        waivers="W:\n  {nodes: localhost, waives: HERE-PARAMETERS, problem: fan, "
        "owner: me, expires: 2999-12-31}\n"
    )
    done = here.siteproof("gate")
    assert done.code == 0, done.said
    assert "2999-12-31 by me: fan" in done.out


def test_a_waiver_of_another_criterion_on_the_same_metric_does_not_excuse(here):
    other = CRITERION.replace("HERE-PARAMETERS", "HERE-FEW").replace("at_most: 0", "at_most: 1")
    here.site(
        criteria=CRITERION + other,
        waivers="W:\n  {nodes: localhost, waives: HERE-FEW, problem: fan, "
        "owner: me, expires: 2999-12-31}\n",
    )
    measure(here, 2)
    assert here.siteproof("gate").code == 1
    path = here.sites / "thishost/waivers.yaml"
    path.write_text(path.read_text().replace("waives: HERE-FEW", "waives: HERE-PARAMETERS"))
    measure(here, 1, session="s2", time="2026-11-22T00:00:00+00:00")
    assert here.siteproof("gate").code == 0


@pytest.mark.parametrize("waives", ["all", "C-TRIAD", "Stream.triad"])
def test_a_waiver_of_slowness_frees_no_node_whose_answers_are_wrong(world, waives):
    here = furnish(world)
    here.keep([*run_of({n: 100 for n in names(8) if n != "n003"}), broken("n003", "invalid")])
    text = f"W: {{nodes: n003, waives: {waives}, problem: fan, owner: me, expires: 2999-12-31}}\n"
    path = world.sites / "here/waivers.yaml"
    path.write_text(text)
    done, verdict = here.ask("gate"), here.ask("verdict")
    assert (done.code, "stay out: n003 FAILED" in done.out) == (1, True), done
    (criterion,) = json.loads(here.ask("verdict", "--json").out)["criteria"]
    (why,) = criterion["findings"]
    assert (why["kind"], why["status"], why["message"]) == ("wrong_answer", "invalid", "because")
    assert verdict.code == 1
    path.write_text(text.replace("problem", "wrong_answers: [invalid], problem"))
    assert (here.ask("gate").code, here.ask("verdict").code) == (0, 0)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--apply"], "no partition of thishost uses Slurm"),
        (["--retest"], "no partition of thishost uses Slurm"),
        (["--release", "--apply"], "no partition of thishost uses Slurm"),
        (["--retest", "--release"], "together"),
        (["--limit", "many"], "--limit: 'many' is not a share"),
        (["--limit", "101%"], "not a share"),
        (["--keep-out", "OK"], "'OK' is not a state"),
        (["--keep-out", ""], "is not a state"),
        (["--users", "root $(id)"], "not a list of users"),
        (["-n"], ""),
        (["x"], "'x' without --retest"),
    ],
)
def test_a_wrong_word_is_refused(here, words, told):
    measure(here, 2)
    done = here.siteproof("gate", *words)
    assert done.code == 2
    assert told in done.said
    assert "Traceback" not in done.said


def test_every_record_is_one_line_of_json(tmp_path):
    with log.held(tmp_path / log.NAME) as journal:
        journal.add({"error": "a\nb"})
    assert [json.loads(x) for x in (tmp_path / log.NAME).read_text().splitlines()] == [
        {"error": "a\nb"}
    ]
