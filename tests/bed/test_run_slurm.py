"""Runs on a real Slurm cluster: which nodes, whose, where; and nodes that go."""

import re

import pytest
from bed_suite import HONEST, NODES, PARAMETERS, Suite, finish, hangs
from clone import TOP

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm")]
__all__ = ["Suite"]  # test_guests_slurm.py takes it from here
TRIAD = "Stream.triad"


def without(*nodes):
    return [n for n in NODES if n not in nodes]


# ---- which nodes, and whose


def test_only_the_nodes_of_a_set_are_measured_and_others_need_not_see_the_data_folder(suite):
    with suite.hidden("node001", "node003", *NODES[5:]):
        done = suite.reframe("-n", "HostParameters", "-S", "nodes=node[002,004-005]")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "siteproof:" not in done.stdout + done.stderr
    assert suite.measured(PARAMETERS) == ["node002", "node004", "node005"]


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
    assert suite.measured(PARAMETERS) == NODES


def test_inside_a_job_only_its_nodes_are_measured_and_it_does_not_wait_for_itself(suite):
    """First all nodes are asked for, then those of the job."""
    first = suite.command("-n", "HostParameters")[2].replace("exec ", "")
    second = suite.command("-n", "HostParameters", "-S", "nodes=node[002-005]")[2]
    out = suite.folder / "job.out"
    of_job = ["--nodelist=node[002-005]", "--nodes=4", "--exclusive", "--ntasks-per-node=1"]
    line = ["sbatch", *of_job, f"--output={out}", "--time=9"]
    done = suite.testbed.run([*line, "--wrap", f"({first}); echo first $?; ({second}); echo ok $?"])
    assert done.returncode == 0, done.stderr
    suite.until_no_job()
    said = out.read_text()
    assert "first 1\n" in said and said.endswith("ok 0\n") and "4 of 8 nodes measured" in said
    of_it = [s for s in suite.samples() if s.metric == PARAMETERS and s.status == "ok"]
    assert sorted(s.node for s in of_it) == sorted(2 * NODES[1:5]), said
    assert suite.lost()["node001"] == "interrupted: not in the job in which the check runs"


def test_inside_a_reservation_only_its_nodes_are_asked_and_broken_pairs_are_skipped(suite):
    with suite.reservation("few", "node[003-004]"):
        done = suite.reframe("-n", "HostParameters|Latency", "-J", "reservation=few")
    assert suite.measured(PARAMETERS) == ["node003", "node004"], done.stdout
    assert suite.lost()["node001"] == "interrupted: not in the reservation few"
    assert "no pair can be measured" in done.stdout
    assert "node001: not in the reservation few" in done.stdout


def test_a_reservation_that_is_not_there_fails_and_is_told(suite):
    done = suite.reframe("-n", "HostParameters", "-J", "reservation=nowhere")
    assert done.returncode == 1, done.stdout
    reason = next(line for line in done.stdout.splitlines() if "* Reason:" in line)
    assert "no reservation 'nowhere'" in reason, reason


def test_a_large_system_is_listed_in_chunks_of_64_nodes(suite):
    for path in suite.own_site().iterdir():
        path.write_text(path.read_text().replace("node[001-008]", "node[001-130]"))
    for words, chunks in (("", 3), ("-S nodes=node[001-064]", 1)):
        line = suite.shell(f"&& reframe -c checks/ -l -n Stream {words}")
        listed = suite.testbed.run(line).stdout
        assert len(re.findall(r"Stream %chunk=\d", listed)) == chunks, listed


# ---- what the nodes see


def test_a_data_folder_that_no_node_sees_is_one_line_and_nothing_is_submitted(suite):
    """Half of the nodes have another folder of that name, the others have none."""
    suite.data = type(suite.data)("/dev/shm") / f"siteproof-{suite.folder.name}"
    for node in NODES[:4]:
        suite.testbed.run(["mkdir", suite.data], node=node)
    try:
        done = suite.reframe("-n", "HostParameters|SystemDescription|Stream")
        left = suite.testbed.run(["find", suite.data, "-name", "*.jsonl", "-o", "-name", "raw"])
    finally:
        for node in (None, *NODES[:4]):
            suite.testbed.run(["rm", "-rf", suite.data], node=node)
    assert done.returncode == 2, done.stdout + done.stderr
    assert told(done) == [
        f"siteproof: {suite.data}: not seen by node[001-008]. SITEPROOF_DATA must name a "
        "folder that all nodes mount and root may write."
    ]
    assert "RUN " not in done.stdout
    assert left.stdout == ""
    assert suite.jobs() == []


def test_nodes_that_may_not_write_there_are_told_so(suite):
    for node in NODES:
        for words in (["--bind"], ["-o", "remount,bind,ro"]):
            suite.testbed.run(["mount", *words, suite.data, suite.data], node=node)
    try:
        done = suite.reframe("-n", "HostParameters")
    finally:
        for node in NODES:
            suite.testbed.run(["umount", "-l", suite.data], node=node)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "not writable on node[001-008]" in told(done)[0] and len(told(done)) == 1


def told(done):
    """What Siteproof says in lines of its own."""
    return [line for line in (done.stdout + done.stderr).splitlines() if line[:10] == "siteproof:"]


# ---- nodes that go


def test_nodes_that_go_while_the_job_waits_cost_only_themselves(suite, testbed):
    """One loses its power and one is reserved: Slurm would hold the job for ever.

    A third one, which was busy too, turns out not to see the data folder.
    """
    blocker = suite.busy("--no-kill")
    process = suite.start("-n", "HostParameters")
    suite.until_job("PENDING")
    testbed.lose_power("node008")
    try:
        with (
            suite.reservation("class", "node007", user="nobody", flags="maint,ignore_jobs"),
            suite.hidden("node002"),
        ):
            testbed.run(["scancel", blocker])
            out = finish(process)
    finally:
        testbed.power_on("node008")
    assert suite.measured(PARAMETERS) == without("node002", "node007", "node008"), out
    lost = suite.lost()
    assert sorted(lost) == ["node002", "node007", "node008"]
    assert lost["node002"] == f"node_lost: {suite.data} not seen by node002"
    assert lost["node007"].startswith("interrupted: ") and "in a reservation" in lost["node007"]
    assert lost["node008"].startswith("node_lost")


@pytest.mark.parametrize(
    "victim",
    ["node004", pytest.param("node001", marks=pytest.mark.long)],
    ids=["a node", "the batch host"],
)
def test_power_loss_half_way_costs_only_the_node_that_lost_it(suite, testbed, victim):
    suite.likwid(hangs(victim))
    process = suite.start("-n", "Stream", "-S", "time_limit=4m")
    suite.until_measured(*without(victim))
    testbed.lose_power(victim)
    try:
        out = finish(process)
    finally:
        testbed.power_on(victim)
    assert process.returncode == 1
    assert suite.measured(TRIAD) == without(victim)
    assert list(suite.lost()) == [victim]
    assert suite.lost()[victim].startswith("node_lost")
    assert victim in out
    # They would look for the dead one for a minute.
    for node in without(victim):
        testbed.run(["pkill", "-KILL", "slurmstepd"], node=node)


def test_a_healthy_node_without_a_result_is_submitted_once_more(suite):
    # The first attempt of node006 is killed with its shell, as by an administrator's mistake.
    suite.likwid(f"""[ $2 = copy ] || exit 0
if [ $(uname -n) = node006 ] && [ ! -e '{suite.folder}/killed' ]; then
    touch '{suite.folder}/killed'
    pkill -KILL -f node.sh
    sleep 1000
fi
{HONEST}""")
    done = suite.reframe("-n", "Stream")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "submitting node006 once more" in done.stdout
    assert suite.measured(TRIAD) == NODES


def test_a_hung_program_costs_its_node_and_not_the_job(suite):
    suite.likwid(hangs("node002"))
    done = suite.reframe("-n", "Stream", "-S", "time_limit=20s")
    assert done.returncode == 1
    assert suite.measured(TRIAD) == without("node002")
    assert suite.lost()["node002"].startswith("timeout")
    assert suite.jobs() == []


@pytest.mark.long
def test_a_job_at_its_time_limit_is_no_success_and_keeps_what_was_measured(suite):
    # node.sh and all below it ignore everything but the end of the job
    suite.likwid(hangs("node007").replace("sleep", "touch hung; while :; do sleep 1; done;:"))
    (suite.programs / "timeout").write_text('#!/bin/sh\nshift 4\nexec "$@"\n')
    (suite.programs / "timeout").chmod(0o755)
    done = suite.reframe("-n", "Stream", "-S", "time_limit=1m")
    assert done.returncode == 1
    assert suite.measured(TRIAD) == without("node007")
    assert suite.lost()["node007"].startswith("timeout")
    suite.until_no_job()
