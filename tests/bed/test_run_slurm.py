"""The checks on a real Slurm cluster: every node in one job, and each fault named."""

import json
import os
import re
import subprocess

import pytest
from clone import PATIENCE, TOP, wait_for

from siteproof.record.sessions import Sessions

pytest_plugins = ["testbed_fixture"]
pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]

RECORDED = TOP / "tests" / "unit" / "parsers" / "outputs" / "likwid" / "5.2.2-copy_and_stream.txt"
NODES = [f"node{number:03}" for number in range(1, 9)]


class Suite:
    """The suite on the test bed, with a data folder and a PATH of its own."""

    def __init__(self, testbed, folder):
        self.testbed, self.folder = testbed, folder
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.data = folder / "data"
        self.data.mkdir()

    def likwid(self, script, name="likwid-bench"):
        """Put a program named likwid-bench first on PATH, for faults; $2 is copy or stream."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\nstage=$(dirname $(dirname $(pwd)))\n{script}\n")
        path.chmod(0o755)

    def command(self, *words, before="", mode="quick", program="reframe"):
        """The shell line that runs ReFrame with these words."""
        said = " ".join(f"'{word}'" for word in words)
        return [
            "sh",
            "-c",
            f"cd '{TOP}' && . ./activate && export SITEPROOF_DATA='{self.data}' "
            f"PATH='{self.programs}':$PATH {before} && "
            f"exec {program} -c checks/ -r --mode {mode} {said}",
        ]

    def reframe(self, *words, user=None, **kw):
        """Run ReFrame on the login node and wait for it."""
        return self.testbed.run(self.command(*words, **kw), user=user)

    def start(self, *words, **kw):
        """Start ReFrame on the login node; the test goes on."""
        line = [self.testbed.program, "run", "--", *self.command(*words, **kw)]
        return subprocess.Popen(
            line,
            env=os.environ | self.testbed.environment,
            text=True,
            cwd=self.testbed.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def siteproof(self, *words):
        """Run the siteproof command on the login node."""
        said = " ".join(f"'{word}'" for word in words)
        return self.testbed.run(
            [
                "sh",
                "-c",
                f"cd '{TOP}' && . ./activate && SITEPROOF_DATA='{self.data}' siteproof {said}",
            ]
        )

    def samples(self):
        """All samples so far."""
        return Sessions(self.data / "perflogs", "testbed").of(lambda _: True)

    def measured(self, metric):
        """The nodes with a value of a metric."""
        return sorted({s.node for s in self.samples() if s.metric == metric and s.status == "ok"})

    def lost(self):
        """Each node without a value, with its status and reason."""
        return {s.node: f"{s.status}: {s.why}" for s in self.samples() if s.status != "ok"}

    def jobs(self):
        """Jobs of checks that Slurm holds or runs: not the step that asks nodes what they see."""
        told = self.testbed.run(["squeue", "-h", "-o", "%j %A %T %N"]).stdout.splitlines()
        named = [line.partition(" ") for line in told]
        return [job for name, _, job in named if name != "siteproof-sight"]

    def wait_for(self, what):
        """The first true answer of what(), asked again and again."""
        return wait_for(what, every=0.3)


@pytest.fixture
def suite(testbed, tmp_path):
    suite = Suite(testbed, tmp_path)
    yield suite
    testbed.run(["scancel", "--user=root"])
    suite.wait_for(lambda: not suite.jobs())
    suite.wait_for(lambda: testbed.command("status").returncode == 0)


def left_results(suite):
    """The nodes whose raw files are in place, in the jobs of this test."""
    return {path.name for path in suite.data.glob("stage/*/testbed/*/*/*/raw/[!.]*")}


# Every node in one job


def test_every_node_is_measured_in_one_job_a_check(suite):
    done = suite.reframe("-n", "HostParameters")
    assert done.returncode == 0, done.stdout + done.stderr
    assert suite.measured("HostParameters.mismatches") == NODES
    assert {s.header.job for s in suite.samples()} == {suite.samples()[0].header.job}
    assert suite.jobs() == []


def test_a_wrong_mtu_is_named_with_key_expected_and_found(suite):
    suite.testbed.run(["ip", "link", "set", "eth0", "mtu", "1500"], node="node003")
    try:
        done = suite.reframe("-n", "HostParameters")
    finally:
        suite.testbed.run(["ip", "link", "set", "eth0", "mtu", "9000"], node="node003")
    assert done.returncode == 1
    told = suite.siteproof("why", "node003").stdout
    assert "nic.eth0.mtu: expected 9000, found 1500" in told
    verdict = json.loads(suite.siteproof("verdict", "--json").stdout)
    parameters = next(c for c in verdict["criteria"] if c["id"] == "TB-PARAMETERS")
    assert parameters["verdict"] == "FAIL"
    assert [n["node"] for n in parameters["nodes"] if n["verdict"] == "FAIL"] == ["node003"]


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [("node[002,004-005]", ["node002", "node004", "node005"]), ("3", NODES[:3]), ("idle", NODES)],
)
def test_nodes_are_chosen_by_set_count_or_idleness(suite, spec, nodes):
    assert suite.reframe("-n", "HostParameters", "-S", f"nodes={spec}").returncode == 0
    assert suite.measured("HostParameters.mismatches") == nodes


def test_an_ordinary_user_measures_the_nodes(suite, testbed):
    home = testbed.path / "user"
    home.mkdir(exist_ok=True)
    home.chmod(0o777)
    suite.data = home
    before, program = "HOME=/tmp", "reframe"
    python = TOP / ".venv" / "bin" / "python"
    if testbed.run([str(python), "-c", ""], user="nobody").returncode:
        # The interpreter may lie in root's home; Debian's own reads the same packages.
        packages = next((TOP / ".venv" / "lib").glob("python*/site-packages"))
        before += f" PYTHONPATH='{packages}'"
        program = "/usr/bin/python3 .venv/bin/reframe"
    done = suite.reframe("-n", "HostParameters", user="nobody", before=before, program=program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert suite.measured("HostParameters.mismatches") == NODES


def test_the_whole_node_set_can_be_measured_inside_its_own_reservation(suite, testbed):
    testbed.run(
        [
            "scontrol",
            "create",
            "reservation",
            "ReservationName=night",
            "StartTime=now",
            "Duration=30",
            "Users=root",
            "Nodes=ALL",
            "Flags=maint,ignore_jobs",
        ]
    )
    try:
        done = suite.reframe("-n", "HostParameters", "-J", "reservation=night")
    finally:
        testbed.run(["scontrol", "delete", "ReservationName=night"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert suite.measured("HostParameters.mismatches") == NODES


def test_inside_a_job_that_holds_the_nodes_it_measures_them_and_does_not_wait_for_itself(suite):
    line = suite.command("-n", "HostParameters")[2]
    done = suite.testbed.run(
        [
            "sbatch",
            "--wait",
            "--nodelist=node[002-005]",
            "--exclusive",
            "--ntasks-per-node=1",
            "--nodes=4",
            f"--output={suite.folder}/job.out",
            "--time=5",
            "--wrap",
            line,
        ]
    )
    out = (suite.folder / "job.out").read_text()
    assert suite.measured("HostParameters.mismatches") == NODES[1:5], out + done.stderr
    assert suite.lost()["node001"] == ("interrupted: not in the job in which the check runs")
    assert "4 of 8 nodes measured" in out


def test_a_job_of_its_own_nodes_passes(suite):
    line = suite.command("-n", "HostParameters", "-S", "nodes=node[002-005]")[2]
    done = suite.testbed.run(
        [
            "sbatch",
            "--wait",
            "--nodelist=node[002-005]",
            "--exclusive",
            "--ntasks-per-node=1",
            "--nodes=4",
            f"--output={suite.folder}/job.out",
            "--time=5",
            "--wrap",
            line,
        ]
    )
    assert done.returncode == 0, (suite.folder / "job.out").read_text()


# Nodes that are gone, or go


def test_a_drained_node_is_incomplete_with_the_reason_that_somebody_gave(suite, testbed):
    testbed.run(["scontrol", "update", "NodeName=node005", "State=DRAIN", "Reason=bad DIMM"])
    try:
        done = suite.reframe("-n", "HostParameters")
    finally:
        testbed.run(["scontrol", "update", "NodeName=node005", "State=RESUME"])
    assert done.returncode == 1
    assert "node005" in done.stdout
    assert suite.measured("HostParameters.mismatches") == [n for n in NODES if n != "node005"]
    assert "bad DIMM" in suite.lost()["node005"]
    verdict = json.loads(suite.siteproof("verdict", "--json").stdout)
    parameters = next(c for c in verdict["criteria"] if c["id"] == "TB-PARAMETERS")
    assert (parameters["verdict"], parameters["nodes_ok"]) == ("INCOMPLETE", 7)


def slow_on(*nodes, seconds=1000):
    """A likwid-bench that hangs on some nodes and prints a recorded output on the others."""
    hang = "|".join(nodes)
    return (
        f"[ $2 = copy ] || exit 0\ncase $(uname -n) in {hang}) sleep {seconds};; esac\n"
        f"cat '{RECORDED}'"
    )


@pytest.mark.parametrize("victim", ["node004", "node001"], ids=["a node", "the batch host"])
def test_power_loss_half_way_costs_only_the_node_that_lost_it(suite, testbed, victim):
    suite.likwid(slow_on(victim))
    process = suite.start("-n", "Stream", "-S", "time_limit=4m")
    others = {n for n in NODES if n != victim}
    suite.wait_for(lambda: left_results(suite) == others)
    testbed.power_off(victim)
    try:
        out, _ = process.communicate(timeout=PATIENCE)  # half of the job's time limit
    finally:
        testbed.power_on(victim)
    assert process.returncode == 1
    assert suite.measured("Stream.triad") == sorted(others)
    assert list(suite.lost()) == [victim]
    assert suite.lost()[victim].startswith("node_lost")
    assert victim in out
    suite.wait_for(lambda: suite.jobs() == [])  # slurmstepd takes a minute to give up the dead


def test_a_node_that_goes_while_the_job_waits_costs_only_itself(suite, testbed):
    blocker = testbed.run(
        [
            "sbatch",
            "--parsable",
            "--nodes=8",
            "--exclusive",
            "--no-kill",
            "--output=/dev/null",
            "--wrap",
            "sleep 987",
        ]
    ).stdout.strip()
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    process = suite.start("-n", "HostParameters")
    suite.wait_for(lambda: any("PENDING" in job for job in suite.jobs()))
    testbed.power_off("node008")
    testbed.run(["scancel", blocker])
    try:
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        testbed.power_on("node008")
    assert suite.measured("HostParameters.mismatches") == NODES[:7], out
    assert suite.lost()["node008"].startswith("node_lost")


def test_a_node_that_is_reserved_while_the_job_waits_costs_only_itself(suite, testbed):
    """Slurm would hold the job for as long as the reservation lasts."""
    taken = ["--nodelist=node001", "--output=/dev/null", "--wrap", "sleep 987"]
    blocker = testbed.run(["sbatch", "--parsable", *taken]).stdout.strip()
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    process = suite.start("-n", "HostParameters")
    suite.wait_for(lambda: any("PENDING" in job for job in suite.jobs()))
    words = ["StartTime=now", "Duration=60", "Users=nobody", "Nodes=node008", "Flags=maint"]
    testbed.run(["scontrol", "create", "reservation", "ReservationName=class", *words])
    testbed.run(["scancel", blocker])
    try:
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        testbed.run(["scontrol", "delete", "ReservationName=class"])
    assert suite.measured("HostParameters.mismatches") == NODES[:7], out
    assert suite.lost()["node008"].startswith("interrupted: ")
    assert "in a reservation" in suite.lost()["node008"]


def test_a_healthy_node_without_a_result_is_submitted_once_more(suite):
    # The first attempt of node006 is killed with its shell, as by an administrator's mistake.
    suite.likwid(f"""[ $2 = copy ] || exit 0
if [ $(uname -n) = node006 ] && [ ! -e '{suite.folder}/killed' ]; then
    touch '{suite.folder}/killed'
    pkill -KILL -f node.sh
    sleep 5
fi
cat '{RECORDED}'""")
    done = suite.reframe("-n", "Stream")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "submitting node006 once more" in done.stdout
    assert suite.measured("Stream.triad") == NODES


def test_a_hung_program_costs_its_node_and_not_the_job(suite):
    suite.likwid(slow_on("node002"))
    done = suite.reframe("-n", "Stream", "-S", "time_limit=40s")
    assert done.returncode == 1
    assert suite.measured("Stream.triad") == [n for n in NODES if n != "node002"]
    assert suite.lost()["node002"].startswith("timeout")
    assert suite.jobs() == []


def test_a_job_at_its_time_limit_is_no_success_and_keeps_what_was_measured(suite):
    # node.sh and all below it ignore everything but the end of the job
    suite.likwid(slow_on("node007").replace("sleep", "touch hung; while :; do sleep 1; done;:"))
    (suite.programs / "timeout").write_text('#!/bin/sh\nshift 4\nexec "$@"\n')
    (suite.programs / "timeout").chmod(0o755)
    done = suite.reframe("-n", "Stream", "-S", "time_limit=1m")
    assert done.returncode == 1
    assert suite.measured("Stream.triad") == [n for n in NODES if n != "node007"]
    assert suite.lost()["node007"].startswith("timeout")
    suite.wait_for(lambda: suite.jobs() == [])


def test_a_restart_of_slurmctld_changes_nothing(suite, testbed):
    suite.likwid(slow_on(*NODES, seconds=8))
    process = suite.start("-n", "Stream")
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    testbed.restart_slurmctld()
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out
    assert suite.measured("Stream.triad") == NODES


@pytest.mark.long
def test_a_job_that_slurmctld_has_lost_does_not_hold_the_session(suite, testbed):
    """Killed before it had saved the job or told accounting about it."""
    suite.likwid(slow_on(*NODES, seconds=8))
    testbed.run(["pkill", "-STOP", "slurmdbd"])
    process = suite.start("-n", "Stream")
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    testbed.run(["pkill", "-KILL", "slurmctld"])
    for kept in (testbed.path.parent / "slurmctld").glob("job_state*"):
        kept.unlink()
    testbed.run(["pkill", "-CONT", "slurmdbd"])
    testbed.restart_slurmctld()
    out, _ = process.communicate(timeout=4 * PATIENCE)
    assert "lost by Slurm" in out, out
    assert not [n for n in NODES if n not in {*suite.measured("Stream.triad"), *suite.lost()}]


# Sessions that go


def test_a_killed_session_loses_no_sample(suite):
    suite.likwid(slow_on(*NODES, seconds=6))
    process = suite.start("-n", "Stream")
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    suite.testbed.run(["pkill", "-KILL", "-f", "reframe -c checks"])
    process.wait()
    suite.wait_for(lambda: not suite.jobs())
    assert suite.samples() == []
    told = suite.siteproof("collect")
    assert told.returncode == 0, told.stderr
    assert suite.measured("Stream.triad") == NODES
    assert suite.siteproof("collect").stdout.strip() == "nothing left to collect"


def test_a_job_that_still_runs_is_not_collected_by_the_next_start(suite):
    suite.likwid(slow_on(*NODES, seconds=25))
    process = suite.start("-n", "Stream")
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    suite.testbed.run(["pkill", "-KILL", "-f", "reframe -c checks"])
    process.wait()
    said = suite.siteproof("collect").stdout
    assert "its job or its session still runs" in said and "still running: 1" in said
    suite.wait_for(lambda: not suite.jobs())
    suite.siteproof("collect")
    assert suite.measured("Stream.triad") == NODES


def test_ctrl_c_cancels_the_job_and_keeps_what_was_measured(suite):
    suite.likwid(slow_on("node008"))
    process = suite.start("-n", "Stream")
    suite.wait_for(lambda: len(left_results(suite)) == 7)
    suite.testbed.run(["pkill", "-INT", "-f", "reframe -c checks"])
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    suite.wait_for(lambda: not suite.jobs())
    suite.siteproof("collect")
    assert suite.measured("Stream.triad") == NODES[:7]
    assert list(suite.lost()) == ["node008"]


def test_two_sessions_at_once_keep_apart(suite):
    suite.likwid(slow_on(*NODES, seconds=2))
    both = [suite.start("-n", "Stream"), suite.start("-n", "Stream")]
    outs = [process.communicate(timeout=PATIENCE)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outs
    assert len({s.header.session for s in suite.samples()}) == 2
    assert len(suite.samples()) == 2 * 8 * 2


# How much is asked of Slurm


def test_client_calls_do_not_grow_with_the_nodes_of_a_chunk(suite):
    calls = {}
    for name in ("sbatch", "sinfo", "scontrol", "srun", "squeue"):
        path = suite.programs / name
        path.write_text(
            f"#!/bin/sh\necho {name} >>'{suite.folder}/calls'\nexec /usr/bin/{name} \"$@\"\n"
        )
        path.chmod(0o755)
    for count in ("2", "8"):
        (suite.folder / "calls").write_text("")
        assert suite.reframe("-n", "HostParameters", "-S", f"nodes={count}").returncode == 0
        calls[count] = sorted((suite.folder / "calls").read_text().split())
    assert [c for c in calls["2"] if c != "squeue"] == [c for c in calls["8"] if c != "squeue"]
    assert calls["8"].count("sbatch") == 1


def test_a_large_system_is_listed_in_chunks_of_64_nodes(suite, tmp_path):
    site = tmp_path / "sites" / "testbed"
    site.mkdir(parents=True)
    for path in (TOP / "site-config" / "testbed").iterdir():
        text = path.read_text().replace("node[001-008]", "node[001-130]")
        (site / path.name).write_text(text)
    line = f"cd '{TOP}' && . ./activate && SITEPROOF_SITES='{site.parent}' reframe -c checks/ -l"
    listed = suite.testbed.run(["sh", "-c", line]).stdout
    assert len(re.findall(r"Stream %chunk=\d", listed)) == 3
    one = suite.testbed.run(["sh", "-c", f"{line} -S nodes=node[001-064]"]).stdout
    assert len(re.findall(r"Stream %chunk=\d", one)) == 1


def test_inside_a_reservation_only_its_nodes_are_asked_and_broken_pairs_are_skipped(suite):
    testbed = suite.testbed
    testbed.run(
        [
            "scontrol",
            "create",
            "reservation",
            "ReservationName=few",
            "StartTime=now",
            "Duration=30",
            "Users=root",
            "Nodes=node[003-004]",
            "Flags=maint,ignore_jobs",
        ]
    )
    try:
        done = suite.reframe("-n", "HostParameters|Latency", "-J", "reservation=few")
    finally:
        testbed.run(["scontrol", "delete", "ReservationName=few"])
    assert suite.measured("HostParameters.mismatches") == ["node003", "node004"], done.stdout
    lost = suite.lost()
    assert lost["node001"] == "interrupted: not in the reservation few"
    assert "no pair can be measured" in done.stdout
    assert "node001: not in the reservation few" in done.stdout


def test_a_reservation_that_is_not_there_fails_and_is_told(suite):
    done = suite.reframe("-n", "HostParameters", "-J", "reservation=nowhere")
    assert done.returncode == 1, done.stdout
    reason = next(line for line in done.stdout.splitlines() if "* Reason:" in line)
    assert "-J reservation=nowhere: scontrol:" in reason, reason
