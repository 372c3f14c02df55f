"""The gate on a real Slurm cluster: what it quarantines, tests, frees, and what it leaves alone."""

import re
import shlex
import shutil
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from asked import unwrapped
from bed_suite import OFTEN, all_idle
from clone import TOP
from testbed_fixture import until

from siteproof.gate import decision
from siteproof.record import samples
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions

pytestmark = pytest.mark.testbed

NODES = [f"node{number:03}" for number in range(1, 9)]
NAME = "siteproof-compute"
CRITERIA = """TB-PARAMETERS:
  description: Every node is configured as the site says
  metric: HostParameters.mismatches
  at_most: 0 count
  conditions: {mode: [quick, maintenance, acceptance]}
  source: test bed
"""


class Gate:
    """The gate on the login node, with a site and data of its own."""

    program = "siteproof"

    def __init__(self, testbed, folder):
        self.testbed, self.folder = testbed, folder
        self.data, self.sites = folder / "data", folder / "sites"
        self.data.mkdir()
        shutil.copytree(TOP / "site-config" / "testbed", self.sites / "testbed")
        (self.sites / "testbed" / "criteria.yaml").write_text(CRITERIA)

    def measured(self, bad=("node003", "node006"), session="s1", campaign="winter", why=""):
        """A session of the campaign in which some nodes are configured wrongly."""
        head = Header(
            session,
            "testbed",
            "compute",
            "system",
            "HostParameters",
            "1",
            datetime.now(UTC).isoformat(timespec="seconds"),
            mode="quick",
            campaign=campaign,
        )
        found = [
            Sample(head, n, "HostParameters.mismatches", Decimal(int(n in bad)), "count")
            for n in NODES
        ]
        found += [
            Sample(
                head,
                n,
                "HostParameters.mismatch",
                why or "expected 9000, found 1500",
                "text",
                dims={"parameter": "nic.eth0.mtu"},
            )
            for n in bad
        ]
        samples.write(self.data / "perflogs", head, found)

    def __call__(self, *words, code=None, user=None):
        line = " ".join(f"'{word}'" for word in words)
        where = f"SITEPROOF_DATA='{self.data}' SITEPROOF_SITES='{self.sites}' {OFTEN}"
        line = f"cd '{TOP}' && . ./activate && {where} {self.program} gate {line}"
        done = self.testbed.run(["sh", "-c", line], user=user)
        assert "Traceback" not in done.stdout + done.stderr
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def scontrol(self, *words):
        return self.testbed.run(["scontrol", *words]).stdout

    def reservations(self):
        """The nodes of each reservation."""
        said = self.scontrol("-o", "show", "reservations")
        fields = [
            dict(word.partition("=")[::2] for word in line.split())
            for line in said.splitlines()
            if line.startswith("ReservationName=")
        ]
        return {f["ReservationName"]: f["Nodes"] for f in fields}

    def node(self, name):
        return self.scontrol("-o", "show", "node", name)

    def reserve(self, name, nodes):
        said = self.scontrol(
            "create",
            "reservation",
            f"ReservationName={name}",
            "StartTime=now",
            "Duration=60",
            "Users=root",
            f"Nodes={nodes}",
            "Flags=maint",
        )
        assert "created" in said

    @property
    def log(self):
        return decision.read(self.data / "perflogs/testbed/gate.jsonl")

    def everything(self):
        """What Slurm holds that a gate could change."""
        keys = ("NodeName", "State", "Reason", "Comment")
        said = self.scontrol("-o", "show", "nodes")
        said = re.sub(r"\+(MAINTENANCE|RESERVED|PLANNED)", "", said)  # Slurm takes its time
        nodes = [word for word in said.split() if word.startswith(keys)]
        return self.scontrol("show", "reservations"), nodes


BY_HAND = re.compile(r"first |--certain keeps out |(--limit|--capacity) .* keeps all of them out")


def answer(told):
    """What was done, who stays out and why, the next command; since when is not compared."""
    lines = unwrapped(told)
    done, who = [line for line in lines[:-1] if not BY_HAND.match(line)][-2:]
    return [done, re.sub(r", since 20[-0-9]+( [0-9:]+ UTC)?", "", who), lines[-1]]


@pytest.fixture
def gate(testbed, tmp_path):
    made = Gate(testbed, tmp_path)
    yield made
    for name in made.reservations():
        made.scontrol("delete", f"ReservationName={name}")
    testbed.run(["scontrol", "update", "NodeName=ALL", "Comment="])
    drained = testbed.run(["sinfo", "-h", "-N", "-t", "drain", "-o", "%N"]).stdout.split()
    for name in set(drained):
        testbed.run(["scontrol", "update", f"NodeName={name}", "State=RESUME"])
    all_idle(testbed)


def test_a_plan_and_a_refusal_above_the_limit_change_nothing_and_show_how(gate):
    gate.measured()
    before = gate.everything()
    told = gate("--campaign", "winter", code=1)
    assert f"ReservationName={NAME}" in told
    assert "'Nodes=node[003,006]'" in told
    refused = "2 of 8 measured nodes of compute would stay out, more than 10 %"
    assert answer(told) == [
        f"--apply would refuse: {refused}, so look first for a cause that they share",
        "2 of 8 nodes stay out: node[003,006] FAILED (TB-PARAMETERS), still in service",
        "next: siteproof why TB-PARAMETERS --campaign winter --system testbed",
    ]
    told = gate("--apply", code=1)
    assert answer(told)[2].startswith("next: siteproof why TB-PARAMETERS ")
    assert "\n--limit 25% keeps all of them out\n" in told
    assert gate.everything() == before
    assert gate.log == []


def test_exactly_the_failed_nodes_are_reserved_tested_and_freed(gate, testbed):
    gate.measured()
    gate("--limit", "25%", "--apply", code=1)
    assert gate.reservations() == {NAME: "node[003,006]"}
    assert "Comment=siteproof: FAILED: TB-PARAMETERS, HostParameters.mismatches: " in gate.node(
        "node003"
    )
    assert "see: siteproof why node006" in gate.node("node006")

    before, records = gate.everything(), len(gate.log)
    assert "nothing to change" in gate("--limit", "25%", "--apply", code=1)
    assert gate.everything() == before
    assert len(gate.log) == records

    told = gate("--release", "--apply", code=1)
    assert answer(told) == [
        "nothing to change",
        "2 of 8 nodes stay out: node[003,006] FAILED (TB-PARAMETERS)",
        "next: siteproof gate --retest --apply",
    ]
    assert "     6  in service: node[001-002,004-005,007-008]\n" in told
    assert re.search(r"     2  out: by us, since 20.* UTC, FAILED: node\[003,006\]\n", told)

    testbed.run(["ip", "link", "set", "eth0", "mtu", "1500"], node="node006")
    try:
        shown = gate("--retest", "--", "-n", "HostParameters", code=1)
        assert f"-J reservation={NAME}" in shown
        assert "SITEPROOF_CAMPAIGN=winter reframe" in shown
        gate("--retest", "--apply", "--", "-n", "HostParameters")
    finally:
        testbed.run(["ip", "link", "set", "eth0", "mtu", "9000"], node="node006")
    found = Sessions(gate.data / "perflogs", "testbed").of(lambda _: True)
    new = {
        s.node: s.number
        for s in found
        if s.metric == "HostParameters.mismatches" and s.header.session != "s1"
    }
    assert new == {"node003": 0, "node006": 1}
    assert {s.header.campaign for s in found} == {"winter"}

    told = gate("--release", code=1)
    assert re.search(r"     1  passed and still in quarantine, since 20.* UTC: node003\n", told)
    assert answer(told)[0] == "nothing was changed; 1 of 2 nodes may be released"
    assert answer(told)[2] == "next: siteproof gate --release --apply"
    assert gate.reservations() == {NAME: "node[003,006]"}
    assert answer(gate("--release", "--apply", code=1))[0] == "released node003"
    assert gate.reservations() == {NAME: "node006"}
    assert "Comment" not in gate.node("node003")

    log_of = [(r["action"], r.get("what"), r["phase"], r.get("error")) for r in gate.log]
    assert ("quarantine", "create", "before", None) in log_of
    assert ("quarantine", "create", "after", "") in log_of
    assert ("retest", "reframe", "after", None) in log_of
    assert ("release", "update", "after", "") in log_of
    assert all({"time", "user", "host", "samples_of"} <= r.keys() for r in gate.log)
    assert gate.log[0]["out"] == {"node003": "FAILED", "node006": "FAILED"}


def test_the_last_node_takes_the_reservation_with_it(gate):
    gate.measured(bad=["node003"])
    gate("--apply", code=1)
    gate.measured(bad=[], session="s2")
    told = gate("--campaign", "winter", "--apply", code=0)
    assert answer(told) == [
        "nothing to change",
        "none of 8 nodes stays out",
        "next: siteproof gate --campaign winter --release --apply",
    ]
    assert gate.reservations() == {NAME: "node003"}
    assert answer(gate("--campaign", "winter", "--release", "--apply", code=0)) == [
        "released node003",
        "none of 8 nodes stays out",
        "next: siteproof accept winter --why TEXT --system testbed",
    ]
    assert gate.reservations() == {}
    told = gate("--campaign", "winter", code=0)
    before = "quarantined node003, released node003"
    assert answer(told)[0] == f"so far, on these samples: {before}"
    assert "nothing is in quarantine" in gate("--release", "--apply", code=0)


def test_a_dead_node_is_quarantined_and_freed_only_after_a_test_inside(gate, testbed):
    """It had passed; it would be repaired, and serve users untested."""
    gate.measured(bad=[])
    testbed.lose_power("node005")
    told = gate("--apply", code=1)
    assert gate.reservations() == {NAME: "node005"}
    assert "node005" in told
    testbed.power_on("node005")
    told = gate("--release", "--apply", code=1)
    assert answer(told)[1] == (
        "1 of 8 nodes stay out: node005 passed before, and was not measured in the quarantine "
        "since it came there or booted"
    )
    gate.measured(bad=[], session="s2")
    assert answer(gate("--release", "--apply", code=0))[0] == "released node005"


def test_what_others_have_drained_or_reserved_is_left_alone_and_named(gate):
    gate.measured(bad=["node003", "node005", "node006"])
    gate.scontrol("update", "NodeName=node003", "State=DRAIN", "Reason=bad $(DIMM), a=b")
    gate.scontrol("update", "NodeName=node006", "Comment=bought = 2021")
    gate.reserve("class", "node005")
    told = gate("--limit", "100%", "--apply", "--drain", code=1)
    assert "drain+idle by root: bad $(DIMM), a=b, since " in told
    told = re.sub(r",\s+since\s+20[-0-9]+(\s+[0-9:]+\s+UTC)?", "", told)  # the day of the test
    assert "node003  left alone: drain+idle by root: bad $(DIMM), a=b" in told
    assert "node006  keeps its comment: bought = 2021\n" in told
    assert "node005  left alone: in reservation class" in told
    assert "     1  out: by others, drain+idle by root: bad $(DIMM), a=b: node003\n" in told
    assert answer(told) == [
        "quarantined node006",
        "3 of 8 nodes stay out: node003 drain+idle by root: bad $(DIMM), a=b; "
        "node005 FAILED (TB-PARAMETERS), still in service, in reservation class; "
        "node006 FAILED (TB-PARAMETERS)",
        "next: siteproof gate --limit 100% --drain --retest --apply",
    ]
    assert gate.reservations() == {"class": "node005", NAME: "node006"}
    assert "Reason=bad $(DIMM), a=b" in gate.node("node003")
    assert "Comment=bought = 2021" in gate.node("node006")
    assert "State=IDLE+DRAIN" in gate.node("node006")
    assert "Reason=siteproof: FAILED" in gate.node("node006")


def test_a_reservation_of_our_name_that_somebody_else_made_is_refused(gate):
    gate.measured(bad=["node003"])
    gate.reserve(NAME, "node008")
    told = gate(code=1)
    assert f"--apply would refuse: reservation {NAME} is not the gate's own" in told
    assert answer(told)[1].startswith("1 of 8 nodes stay out: node003 FAILED")
    for words in (["--apply"], ["--release", "--apply"], ["--retest", "--apply"]):
        told = gate(*words, code=1)
        assert f"reservation {NAME} is not the gate's own" in told
    assert gate.reservations() == {NAME: "node008"}


def test_our_own_drains_are_resumed_for_a_retest(gate):
    gate.measured(bad=["node003"])
    gate("--apply", "--drain", code=1)
    assert "Reason=siteproof: FAILED" in gate.node("node003")
    told = gate("--retest", "--apply", "--", "-n", "HostParameters", code=0)
    assert "done: scontrol update NodeName=node003 State=RESUME" in told
    assert answer(told)[0] == "tested node003 in quarantine"
    assert answer(told)[2] == "next: siteproof gate --release --apply"
    assert answer(gate("--release", "--apply", code=0))[0] == "released node003"


def test_a_job_that_still_runs_there_is_told(gate, testbed):
    gate.measured(bad=["node003"])
    testbed.run(["sbatch", "-w", "node003", "-o", "/dev/null", "--wrap", "sleep 987"])
    running = ["squeue", "-h", "-t", "running", "-o", "%N"]
    until(lambda: "node003" in testbed.run(running).stdout, "a job on node003")
    told = gate("--apply", code=1)
    assert "still runs there, as a reservation ends no job: job" in told
    assert gate.reservations() == {NAME: "node003"}
    testbed.run(["scancel", "--user=root"])


def as_another_user(gate, testbed, user):
    """Let a user whose home is not root's run the gate, on files of their own."""
    home = testbed.path / f"gate-of-{user}"
    shutil.copytree(gate.sites, home / "sites")
    gate.sites, gate.data = home / "sites", home / "data"
    gate.data.mkdir()
    gate.measured(bad=["node003"])
    testbed.run(["chown", "-R", f"{user}:", str(home)])
    packages = next((TOP / ".venv" / "lib").glob("python*/site-packages"))
    # The clone's interpreter may lie in root's home; Debian's own reads the same packages.
    gate.program = (
        f"HOME=/tmp PYTHONPATH='{packages}:{TOP}' /usr/bin/python3 -c "
        "'from siteproof.cli import main; main()'"
    )


def test_commands_that_slurm_refuses_to_a_user_are_for_somebody_with_the_right(gate, testbed):
    as_another_user(gate, testbed, "nobody")
    told = gate("--apply", code=1, user="nobody")
    assert gate.reservations() == {}
    lines = told.splitlines()
    first = lines.index("Slurm refuses these to you; they are for somebody with the right:") + 1
    create, comment = lines[first : first + 2]
    assert answer(told)[0] == "nothing was done; 2 commands refused to you"
    assert {r["user"] for r in gate.log} == {"nobody"}
    assert "Invalid user id" in str(gate.log)

    # Somebody with the right runs them: the reservation is the gate's own, and tested inside.
    for line in (create, comment):
        testbed.run(shlex.split(line))
    assert gate.reservations() == {NAME: "node003"}
    assert "see: siteproof why node003" in gate.node("node003")
    gate.measured(bad=[], session="s2")
    told = gate("--release", code=1, user="nobody")
    assert "node003  stays: passed before, and was not measured in the quarantine" in told


def test_hostile_reasons_reach_slurm_as_harmless_words(gate):
    hostile = 'a "b" $(touch x) `id` \\'
    gate.measured(bad=["node003"], why=f"{hostile}\nState=DOWN Reason=y\x1b[31m")
    told = gate("--apply", "--drain", code=1)
    assert "\x1b" not in told
    said = gate.node("node003")
    assert said.count("\n") == 1
    assert "State=IDLE+DRAIN" in said
    assert not set("\"'`$\\\x1b") & set(said.partition("Reason=")[2])


@pytest.fixture
def operator(testbed):
    """A user that Slurm knows as operator: may change reservations, and no nodes."""
    testbed.run(["sacctmgr", "-i", "add", "account", "ops"])
    testbed.run(["sacctmgr", "-i", "add", "user", "games", "account=ops", "adminlevel=operator"])
    yield "games"
    testbed.run(["sacctmgr", "-i", "delete", "user", "games"])
    testbed.run(["sacctmgr", "-i", "delete", "account", "ops"])


def test_an_operator_quarantines_and_releases_and_others_change_the_nodes(gate, testbed, operator):
    as_another_user(gate, testbed, operator)
    told = gate("--apply", "--drain", code=1, user=operator)
    assert gate.reservations() == {NAME: "node003"}
    assert answer(told)[0] == "quarantined node003; 2 commands refused to you"
    refused = [line for line in told.splitlines() if line.startswith("scontrol update NodeName=")]
    assert [shlex.split(line)[3][:6] for line in refused] == ["Commen", "State="]
    assert "\nfirst somebody with the right runs the 2 commands above\n" in told

    testbed.run(shlex.split(refused[0]))
    told = gate("--apply", code=1, user=operator)
    assert answer(told)[0] == "nothing to change"
    gate.measured(bad=[], session="s2")
    testbed.run(["chown", "-R", f"{operator}:", str(gate.data)])
    told = gate("--release", "--apply", code=1, user=operator)
    assert gate.reservations() == {}
    assert answer(told)[0] == "released node003; 1 command refused to you"


def test_a_colleague_of_the_group_tests_in_the_quarantine_by_default(gate, testbed):
    gate.measured(bad=["node003"])
    shutil.chown(gate.data / "perflogs/testbed", group="games")
    (gate.data / "perflogs/testbed").chmod(0o2775)
    gate("--apply", code=1)
    assert "Users=root,games " in gate.scontrol("-o", "show", "reservations")
    inside = ["srun", "-N1", "--immediate=20", f"--reservation={NAME}", "hostname"]
    assert testbed.run(inside, user="games").stdout == "node003\n"


def test_who_may_not_run_jobs_in_the_quarantine_is_admitted_for_a_retest(gate):
    gate.measured(bad=["node003"])
    gate("--apply", "--users", "games", code=1)
    told = gate("--retest", "--apply", "--", "-n", "HostParameters", code=0)
    assert f"done: scontrol update ReservationName={NAME} Users+=root" in told
    assert "Users=games,root " in gate.scontrol("-o", "show", "reservations")
    assert answer(told)[0] == "tested node003 in quarantine"
