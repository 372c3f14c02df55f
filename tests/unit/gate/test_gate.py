"""The decision, and the commands that follow from it: without Slurm."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

from siteproof import nodesets
from siteproof.gate import commands
from siteproof.gate.commands import Cluster, QuarantineOptions, Standing, standing
from siteproof.gate.decision import (
    STATES,
    Excuse,
    Ruling,
    Share,
    condemned,
    decide,
    is_certain,
    out_of_service,
)
from siteproof.record.finding import Finding, Kind, note, of
from siteproof.slurm.records import Node, Reservation
from siteproof.slurm.spelling import node_state

WAIVER = of(
    Kind.WAIVED, {"problem": "fan", "owner": "A. Colleague", "until": "2999-12-31"}, waived_by="W"
)
QUARANTINE = QuarantineOptions(["root"], "campaign winter")
SLOW = note("{message}", metric="Stream.triad", message="slow")
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


def planned(decision, seen, ours=None, options=QUARANTINE, moved=None):
    plan = commands.quarantine("compute", INVENTORY, decision, seen, ours, options, moved or {})
    return [
        c.argv[1:] for c in plan.commands if c.what not in ("comment", "drain")
    ], plan.left_alone


# ---- the decision


def test_each_state_goes_back_or_stays_out():
    states = ("OK", "UNSTABLE", "SLOW", "FAILED", "ODD", "UNTESTED")
    assert [s for s in states if decided(n3=s).out == nodesets.of()] == ["OK", "UNSTABLE"]


def test_a_site_may_choose_which_states_stay_out():
    reports = {s: Report(s) for s in STATES}
    chosen = ["FAILED", "UNSTABLE"]
    assert decide(reports, keep_out=chosen).out == nodesets.of(chosen)


HPL = slow("Hpl.gflops", "TB-HPL", "Hpl")
TIMEOUT = Finding(Kind.NO_VALUE, "n1", "Hpl", status="timeout")
OF_HPL = excuse(criteria=["TB-HPL"], metrics=["Hpl.gflops"], checks=["Hpl"])
FAN = Finding(Kind.FIELD_DIFFERS, "n1")


EXCUSED = [
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
]


def test_a_waiver_excuses_only_what_it_covers():
    for row in EXCUSED:
        reasons, excuses, back = row
        ruling = decide({"n1": Report("FAILED", reasons)}, {"n1": excuses}).rulings["n1"]
        assert ruling.back is back, row
        assert ruling.waived == ((WAIVER,) if back else ()), row
        assert ruling.findings == tuple(reasons), row


OF_STREAM = {"checks": ["Stream"], "metrics": ["Stream.triad"]}


WRONG_EXCUSED = [
    ([excuse(everything=True)], False),
    ([excuse(**OF_STREAM), OF_HPL], False),
    ([excuse(everything=True, wrong_answers=["checksum"])], False),
    ([excuse(checks=["Hpl"], wrong_answers=["invalid"]), excuse(checks=["Stream"])], False),
    ([excuse(**OF_STREAM, wrong_answers=["invalid"])], True),
    ([excuse(everything=True, wrong_answers=["invalid", "checksum"])], True),
]


def test_a_wrong_answer_keeps_a_node_out_unless_its_status_is_waived():
    for kind in (Kind.WRONG_ANSWER, Kind.NOTE, Kind.PAIRS_WITHOUT_VALUE):
        wrong = Finding(kind, "n1", "Stream", status="invalid", message="the word Hpl is in it")
        report = Report("FAILED", [wrong, slow(kind=Kind.NOT_MEASURED)])
        for excuses, back in WRONG_EXCUSED:
            ruling = decide({"n1": report}, {"n1": excuses}).rulings["n1"]
            assert ruling.back is back, (kind, excuses)


def test_a_wrong_answer_of_a_pair_that_another_node_explains_is_a_missing_value():
    why = Finding(Kind.NO_VALUE, "n1", "TcpBandwidth", "TcpBandwidth.throughput", status="invalid")
    excuses = [excuse(metrics=["TcpBandwidth.throughput"])]
    assert decide({"n1": Report("UNTESTED", [why])}, {"n1": excuses}).rulings["n1"].back


def test_a_node_that_nobody_measured_never_leaves_a_quarantine():
    decision = decide({"n1": Report("UNTESTED")}, keep_out=["FAILED"])
    assert decision.back == nodesets.of(["n1"])
    inside, none = nodesets.of(["n1"]), nodesets.of()
    for tested in (none, inside):  # the same rule as outside, once something was measured inside
        seen = cluster(held("n1"))
        plan = commands.release(decision, seen, held("n1"), INVENTORY, inside, tested, {})
        assert bool(plan.commands) is bool(tested)


def test_more_than_a_share_of_a_partition_is_refused():
    for out, limit, refused in (
        (1, 10, False),  # one of eight is 12.5 %, and always allowed
        (2, 10, True),
        (2, 25, False),
        (3, 25, True),
        (8, 100, False),
        (0, 0, False),
        (1, 0, False),
    ):
        decision = decided(**dict.fromkeys(list(INVENTORY)[:out], "FAILED"))
        for counted in (condemned, out_of_service):
            share = counted(decision, INVENTORY, nodesets.of())
            assert share == Share(out, len(INVENTORY))
            assert share.exceeds(Fraction(limit, 100)) is refused, (out, limit)


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
    comment = commands.text(decision.rulings["n3"], QUARANTINE)
    seen = cluster(held("n3"), n3=Node("n3", comment=comment))
    plan = commands.quarantine("compute", INVENTORY, decision, seen, held("n3"), QUARANTINE, {})
    assert plan.commands == []


def test_a_new_failure_is_added_and_who_has_passed_waits_for_its_release():
    done, _ = planned(decided(n3="FAILED"), cluster(held("n6")), held("n6"))
    assert done == [("update", "ReservationName=siteproof-compute", "Nodes=n[3,6]")]


def test_what_is_somebody_elses_is_left_alone_and_named():
    drained, down, taken = node_state("IDLE+DRAIN"), node_state("DOWN"), Kind.TAKEN_OUT
    failed = (Kind.TAKEN_OUT_BY_SLURM, {"state": "drain+idle"}, "Kill task failed")
    for node, others, why in (
        (Node("n3", drained, "bad DIMM"), [], (taken, {"state": "drain+idle"}, "bad DIMM")),
        (Node("n3", down, "bad DIMM"), [], (taken, {"state": "down"}, "bad DIMM")),
        (Node("n3", drained, "Kill task failed"), [], failed),
        (Node("n3"), [held("n3", name="class")], (Kind.RESERVED, {"reservations": "class"}, "")),
    ):
        done, left = planned(decided(n3="FAILED", n6="FAILED"), cluster(*others, n3=node))
        assert done[0][-2] == "Nodes=n6", node
        assert left_alone(left) == {"n3": why}


STANDINGS = [
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
]


def test_who_has_taken_a_node_out():
    for state, reason, expected in STANDINGS:
        assert standing(Node("n3", node_state(state), reason)) is expected, (state, reason)


def test_a_state_in_a_comment_does_not_change_while_the_node_is_down():
    """The comment was written anew when slurmctld's next ping had failed."""
    states = ("DOWN", "DOWN+NOT_RESPONDING", "DOWN+MAINTENANCE+NOT_RESPONDING+RESERVED")
    assert {commands.state_of(Node("n3", node_state(said))) for said in states} == {"down"}
    assert commands.state_of(Node("n3", node_state("IDLE+NOT_RESPONDING"))) == "idle+not_responding"


def test_a_node_that_slurm_does_not_know_is_named():
    seen = Cluster({n: Node(n) for n in INVENTORY if n != "n3"})
    done, left = planned(decided(n3="FAILED"), seen)
    assert (done, left_alone(left)) == ([], {"n3": (Kind.UNKNOWN_TO_SLURM, {}, "")})


def test_the_maintenances_own_reservation_may_be_overlapped_if_it_is_named():
    options = QuarantineOptions(["root"], "c", may_overlap=("maint",))
    done, left = planned(decided(n3="FAILED"), cluster(held("n3", name="maint")), options=options)
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


def test_a_comment_of_somebody_else_stays():
    older, failed = "siteproof: FAILED: something older", decided(n3="FAILED")
    for comment, written in (("", True), (older, True), ("bought in 2021", False)):
        seen = cluster(n3=Node("n3", comment=comment))
        plan = commands.quarantine("compute", INVENTORY, failed, seen, None, QUARANTINE, {})
        assert ("comment" in [c.what for c in plan.commands]) is written, comment


def test_a_drain_is_offered_and_not_repeated():
    options = QuarantineOptions(["root"], "campaign winter", drain=True)
    decision = decided(n3="FAILED")
    plan = commands.quarantine("compute", INVENTORY, decision, cluster(), None, options, {})
    assert plan.commands[-1].argv == (
        "scontrol",
        "update",
        "NodeName=n3",
        "State=DRAIN",
        "Reason=siteproof: FAILED: Stream.triad: slow; campaign winter; see: siteproof why n3",
    )
    drained = cluster(held("n3"), n3=Node("n3", node_state("IDLE+DRAIN"), "siteproof: x"))
    again = commands.quarantine("compute", INVENTORY, decision, drained, held("n3"), options, {})
    assert "drain" not in [c.what for c in again.commands]


def test_release_takes_out_what_has_passed_and_names_the_rest():
    plan = commands.release(
        decided(n6="FAILED"), cluster(), held("n3", "n6"), INVENTORY, INVENTORY, INVENTORY, {}
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
    plan = commands.release(
        decided(), seen, held("n3", "n4", "n5"), INVENTORY, INVENTORY, tested, {}
    )
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
    plan = commands.release(decided(), seen, held("n3"), *[INVENTORY] * 3, {})
    assert [c.argv[1:] for c in plan.commands] == [
        ("delete", "ReservationName=siteproof-compute"),
        ("update", "NodeName=n3", "Comment="),
        ("update", "NodeName=n3", "State=RESUME"),
    ]


def test_release_keeps_a_stranger_in_the_reservation():
    seen = held("n3", "n4", "gone9")
    members = nodesets.of(["n3", "gone9"])
    plan = commands.release(decided(), cluster(), seen, INVENTORY, members, INVENTORY, {})
    assert left_alone(plan.left_alone) == {
        "gone9": (Kind.NOT_IN_INVENTORY, {}, ""),
        "n4": (Kind.PUT_BY_OTHERS, {}, ""),
    }
    assert plan.commands[0].nodes == "gone9,n4"


def test_a_release_that_was_cut_off_is_finished_where_there_was_a_pass_inside():
    """All are outside the quarantine, and n3 to n6 with our comment and drain."""
    drained = Node("n3", node_state("IDLE+DRAIN"), "siteproof: x", "siteproof: x")
    ours = {n: replace(drained, name=n) for n in ("n3", "n4", "n5", "n6")}
    seen = cluster(**ours, n7=Node("n7", comment="siteproof: y"), n8=Node("n8", comment="bought"))
    tested, moved = nodesets.of(["n3", "n5"]), {"n5": Finding(Kind.STATE_CHANGED, "n5")}
    members = nodesets.of(["n3", "n4", "n5", "n6"])
    ruled = decided(n6="FAILED")
    plan = commands.release(ruled, seen, held(), INVENTORY, members, tested, moved)
    assert [c.argv[2:] for c in plan.commands] == [
        ("NodeName=n[3,7]", "Comment="),
        ("NodeName=n3", "State=RESUME"),
    ]
    assert {n: why.kind for n, why in plan.left_alone.items()} == {
        "n4": Kind.NOT_TESTED_INSIDE,
        "n5": Kind.STATE_CHANGED,
        "n6": Kind.NOT_PASSED,
    }


def test_only_our_own_drains_are_resumed():
    drained = node_state("IDLE+DRAIN")
    seen = cluster(n3=Node("n3", drained, "siteproof: x"), n6=Node("n6", drained, "bad DIMM"))
    plan = commands.resume(seen, held("n3", "n6"), "me", {})
    assert [c.argv[2] for c in plan.commands] == ["NodeName=n3"]
    assert left_alone(plan.left_alone) == {
        "n6": (Kind.TAKEN_OUT, {"state": "drain+idle"}, "bad DIMM")
    }


def test_no_reason_ends_a_field_or_steers_a_terminal():
    quoting, line = 'a "b" $(id) `id` \\ |', "x\nState=DOWN Reason=y"
    options = replace(QUARANTINE, campaign='c "; $(id)')
    for reason in (quoting, line, "\x1b[31m", "é\u202e", "w" * 5000):
        why = note("{message}", message=reason)
        words = commands.text(Ruling("n1", "FAILED", False, (why,)), options)
        assert words.isascii(), reason
        assert words.isprintable(), reason
        assert not set(words) & set("\"'`$\\|=\n"), reason
        assert len(words) <= commands.MAX_COMMENT
        assert words.endswith("see: siteproof why n1"), reason


def test_the_reservation_has_a_name_that_slurm_takes():
    assert commands.reservation_name("compute") == "siteproof-compute"
    assert commands.reservation_name("gpu a/b$(x)") == "siteproof-gpu_a_b__x_"


def test_a_waiver_says_nothing_of_a_check_whose_other_criterion_is_not_met():
    one = excuse(criteria=["C"], metrics=["Stream.triad", "Hpl.gflops"], checks=["Stream", "Hpl"])
    assert one.without({"C": "Stream.triad"}) == one
    kept = one.without({"D": "Stream.triad"})
    assert (kept.metrics, kept.checks) == ({"Hpl.gflops"}, {"Hpl"})
    assert one.without({"D": "Stream.copy"}).metrics == one.metrics


def test_a_node_with_one_certain_reason_stays_out_for_certain():
    dead, wrong = Finding(Kind.NOT_RESPONDING), slow(kind=Kind.WRONG_ANSWER, status="invalid")
    for findings, certain in (
        ([dead, slow()], True),
        ([slow(), wrong], True),
        ([slow()], False),
        ([], False),
    ):
        ruling = Ruling("n1", "FAILED", False, tuple(findings))
        assert is_certain(ruling) is certain
        assert not is_certain(replace(ruling, back=True))
