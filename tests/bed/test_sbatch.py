"""The scripts of sbatch/ on the test bed: a look at idle nodes, pinned jobs, and evenings."""

import os
import re
import shlex
import subprocess
import time

import pytest
from asked import unwrapped
from bed_suite import HONEST, NODES, PARAMETERS
from clone import TOP
from test_gate_slurm import CRITERIA
from testbed_fixture import until

KEPT = ("--keep-out", "FAILED,ODD,UNTESTED")  # eight nodes of one machine are slow by chance
# One small check, and criteria of nothing else: the evening is the same.
ONE = ("-n", "HostParameters")
# The checks of each node but for storage.
FEW = ("-T", "network", "-T", "storage", "-S", "Hpl.n=1200")
QUARANTINE = "siteproof-compute"


def script(suite, name, *words, campaign=""):
    """A script of sbatch/ on the login node, as a shell without `activate` calls it."""
    campaign = f"SITEPROOF_CAMPAIGN='{campaign}'"
    path = f"PATH='{suite.programs}':$PATH"
    line = f"cd '{TOP}' && {suite.variables()} {path} {campaign} sbatch/{name} {shlex.join(words)}"
    return suite.testbed.run(["sh", "-c", line])


def values(suite):
    return [s for s in suite.samples() if s.metric == PARAMETERS]


@pytest.mark.testbed
def test_pinned_jobs_measure_each_node_exactly_once_and_few_at_a_time(suite):
    words = ("--nodes", "node[001-003]", "--at-once", "2", "--time", "5", "--", *ONE)
    done = script(suite, "pinned", *words, "--mode", "quick", campaign="pin")
    assert done.returncode == 0, done.stderr
    assert "3 jobs submitted, at most 2 at a time" in done.stderr
    most = []

    def ended():
        jobs = suite.jobs()
        most.append(sum("RUNNING" in job for job in jobs))
        return not jobs

    until(ended, "the end of the pinned jobs", suite.jobs)
    assert max(most) <= 2
    told = "".join(p.read_text()[-2000:] for p in suite.data.glob("output/pinned/*.out"))
    assert sorted(s.node for s in values(suite) if s.status == "ok") == NODES[:3], told
    assert {s.header.campaign for s in values(suite)} == {"pin"}


@pytest.mark.testbed
def test_the_daily_look_measures_what_is_idle_and_leaves_what_is_at_work(suite):
    suite.busy(nodes=NODES[6:])
    script(suite, "daily", "quick", *ONE, campaign="day")
    assert suite.measured(PARAMETERS) == NODES[:6]
    assert '"campaign day"' in (suite.data / "output/reports/day/verdict.json").read_text()


# ---- an evening after maintenance


def wrong_mtu(testbed, mtu, *nodes):
    for node in nodes:
        testbed.run(["ip", "link", "set", "eth0", "mtu", mtu], node=node)


def reserved(suite):
    return suite.testbed.run(["scontrol", "show", "reservation"]).stdout


@pytest.fixture
def evening(suite):
    (suite.own_site() / "criteria.yaml").write_text(CRITERIA)
    yield suite
    wrong_mtu(suite.testbed, "9000", "node003")
    suite.testbed.run(["scontrol", "delete", f"ReservationName={QUARANTINE}"])


MOST_LINES = 60  # of an evening, on the screen
WORDS = ("--campaign", "e1", "--mode", "quick", *KEPT)


@pytest.mark.testbed
@pytest.mark.long
def test_an_evening_shows_what_it_would_do_and_changes_nothing_by_itself(evening):
    wrong_mtu(evening.testbed, "1500", "node003")
    done = script(evening, "evening", *WORDS, "--", *ONE)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 job on 8 nodes" in done.stdout
    assert len(done.stdout.splitlines()) <= MOST_LINES, done.stdout
    assert "siteproof" not in reserved(evening)


@pytest.mark.testbed
def test_an_evening_keeps_the_bad_node_out_and_frees_it_once_it_is_mended(evening):
    wrong_mtu(evening.testbed, "1500", "node003")
    words = (*WORDS, "--limit", "20%", "--apply", "--", *ONE)
    done = script(evening, "evening", *words)
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) <= MOST_LINES, done.stdout
    moved, out, repair, after = unwrapped(done.stdout)[-4:]
    assert moved.startswith("so far, on these samples: quarantined node003")
    assert re.match(r"1 of 8 nodes stay out: node003 FAILED \(.*\), since 20.* UTC", out)
    assert repair == "first repair node003"
    assert after.startswith("next: siteproof gate --campaign e1 ")
    assert "--limit 20%" in after
    assert "Nodes=node003 " in reserved(evening)
    log, *left = sorted((evening.data / "output/reports/e1").iterdir())
    assert "nic.eth0.mtu" in log.read_text()
    assert [path.name for path in left] == [
        "junit.xml",
        "report.html",
        "siteproof.prom",
        "verdict.json",
    ]

    wrong_mtu(evening.testbed, "9000", "node003")
    done = script(evening, "evening", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    moved, out, after = unwrapped(done.stdout)[-3:]
    assert moved.endswith("so far, on these samples: quarantined node003, released node003")
    assert out == "none of 8 nodes stays out"
    assert "--apply" not in after
    assert "siteproof" not in reserved(evening)


@pytest.mark.testbed
@pytest.mark.long
def test_an_evening_submitted_over_the_whole_reservation_does_not_wait_for_itself(evening):
    evening.sites = None  # all criteria of the test bed
    evening.likwid(HONEST)
    with evening.reservation("night", "ALL"):
        line = (
            f"cd '{TOP}' && {evening.variables()} "
            f"PATH='{evening.programs}':$PATH sbatch --wait -N8 --time=20 "
            f"--ntasks-per-node=1 --exclusive --reservation=night "
            f"--output='{evening.folder}/evening.out' "
            "sbatch/evening --campaign e3 --mode quick --keep-out FAILED,ODD "
            f"-- {shlex.join(FEW)}"
        )
        done = evening.testbed.run(["sh", "-c", line])
    out = (evening.folder / "evening.out").read_text()
    assert done.returncode == 0, out + done.stderr
    assert evening.measured(PARAMETERS) == NODES


@pytest.mark.testbed
def test_a_signal_while_it_measures_leaves_no_job_and_no_quarantine(evening):
    wrong_mtu(evening.testbed, "1500", "node003")
    evening.reframe(*ONE, before="SITEPROOF_CAMPAIGN=e1")  # a node that would be quarantined
    evening.likwid("sleep 1000")
    words = [*WORDS, "--limit", "20%", "--apply", "--", "-n", "^Stream"]
    command = f"sbatch/evening {shlex.join(words)} >'{evening.folder}/out' 2>&1"
    path = f"PATH='{evening.programs}':$PATH"
    starts = f"cd '{TOP}'; export {evening.variables()} {path}; {command} & echo $!"
    number = evening.testbed.run(["bash", "-c", starts]).stdout.strip()
    evening.until_job("RUNNING")
    assert evening.testbed.run(["kill", "-TERM", number]).returncode == 0
    file = evening.folder / "out"
    until(lambda: "\nnext: sbatch/evening" in file.read_text(), "the end", file.read_text)
    evening.until_no_job()
    assert "siteproof" not in reserved(evening)
    assert (
        file.read_text()
        .splitlines()[-1]
        .startswith("next: sbatch/evening --campaign e1 --nodes missing")
    )


@pytest.mark.testbed
def test_a_partition_that_is_down_is_named_before_anything_is_submitted(suite):
    down = ["scontrol", "update", "PartitionName=compute"]
    suite.testbed.run([*down, "State=DOWN"])
    try:
        done = script(suite, "evening", *WORDS, "--", *ONE)
    finally:
        suite.testbed.run([*down, "State=UP"])
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("siteproof: partition compute: is not UP in Slurm")
    assert not suite.samples()


@pytest.mark.testbed
@pytest.mark.long
def test_a_rolling_evening_measures_each_node_once_as_it_becomes_idle(suite):
    suite.busy("--time=1", nodes=NODES[6:])  # Slurm ends it
    words = ("--campaign", "e4", "--mode", "quick", "--rolling", "1", "--", *ONE)
    done = script(suite, "evening", *words)
    assert sorted(s.node for s in values(suite)) == NODES, done.stdout + done.stderr
    assert len({s.header.session for s in values(suite)}) == 2


# ---- without Slurm


def fake(folder, name, text):
    (folder / name).write_text(f"#!/bin/bash\n{text}\n")
    (folder / name).chmod(0o755)


def test_pinned_jobs_get_each_word_as_it_was_typed_and_a_log_in_the_folder_of_logs(tmp_path):
    data, words = tmp_path / "100%j", ("-S", "note=it's é\n$(id)", "--what=*")
    fake(tmp_path, "sbatch", f"cat >{tmp_path}/script; printf '%s\\n' \"$@\" >{tmp_path}/words")
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SITEPROOF_DATA": str(data), "LC_ALL": "C"}
    done = subprocess.run(
        [TOP / "sbatch/pinned", "--nodes", "n1", "--", *words],
        env={**os.environ, **path, "SITEPROOF_CAMPAIGN": "../a%b"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    log = f"--output={tmp_path}/100%%j/output/pinned/_._a_b.n1.out"
    assert log in (tmp_path / "words").read_text().splitlines()
    (tmp_path / "activate").touch()
    fake(tmp_path, "reframe", 'printf "%s\\0" "$@"')
    job = ["bash", tmp_path / "script"]
    told = subprocess.run(job, cwd=tmp_path, env={**os.environ, **path}, stdout=subprocess.PIPE)
    assert tuple(told.stdout.decode().split("\0")[-4:-1]) == words


def test_no_round_of_a_soak_begins_once_slurm_has_answered_after_the_date(tmp_path):
    (tmp_path / "sites").mkdir()
    answer = "case $* in *sinfo*) sleep 2; echo 'idle n1' ;; *) exit 1 ;; esac"
    fake(tmp_path, "timeout", f'echo "$*" >>{tmp_path}/calls; {answer}')
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SITEPROOF_DATA": str(tmp_path)}
    words = ["--until", f"@{int(time.time()) + 2}", "--campaign", "a", "--before", "1"]
    done = subprocess.run(
        [TOP / "sbatch/soak", *words],
        env={**os.environ, **path, "SITEPROOF_SITES": str(tmp_path / "sites")},
        capture_output=True,
        text=True,
    )
    calls = (tmp_path / "calls").read_text()
    assert "sinfo" in calls and "a round on n1" in done.stderr, done.stderr
    assert "reframe" not in calls


# ---- mistakes


def test_a_mistake_on_the_command_line_is_one_line_and_exit_2():
    for words, told in (
        ((), "--nodes is required"),
        (("--nodes", "node[1-"), "is not a node set"),
        (("--nodes", "a", "--at-once", "0"), "a whole number above 0"),
        (("--what",), "unknown argument '--what'"),
    ):
        done = subprocess.run([TOP / "sbatch" / "pinned", *words], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert re.fullmatch(r"siteproof: [^\n]*\n", done.stderr), words
        assert told in done.stderr
