"""The scripts of sbatch/ on the test bed."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from test_run_slurm import NODES, RECORDED, Suite, suite  # noqa: F401 - the fixture

pytest_plugins = ["testbed_fixture"]
CLONE = Path(__file__).parents[1]
# Small problems and few checks: the evening is the same.
FEW = ("-T", "network", "-T", "storage", "-S", "Hpl.n=1200")


def script(suite: Suite, name, *words, timeout=900, campaign=""):  # noqa: F811
    said = " ".join(f"'{word}'" for word in words)
    line = (f"cd '{CLONE}' && SITEPROOF_DATA='{suite.data}' PATH='{suite.programs}':$PATH "
            f"SITEPROOF_CAMPAIGN='{campaign}' "
            f"sbatch/{name} {said}")
    return suite.testbed.run(["sh", "-c", line], timeout=timeout)


@pytest.mark.testbed
def test_pinned_jobs_measure_each_node_exactly_once_and_few_at_a_time(suite):  # noqa: F811
    done = script(suite, "pinned", "--nodes", "node[001-006]", "--at-once", "2", "--time", "5",
                  "--", "-n", "HostParameters", "--mode", "quick", campaign="pin")
    assert done.returncode == 0, done.stderr
    assert "6 jobs submitted, at most 2 at a time" in done.stderr
    most = 0
    while jobs := suite.jobs():
        most = max(most, sum("RUNNING" in job for job in jobs))
    assert most <= 2
    values = [s for s in suite.samples() if s.metric == "HostParameters.mismatches"]
    told = "".join(p.read_text()[-2000:] for p in suite.data.glob("output/pinned/*.out"))
    assert sorted(s.node for s in values if s.status == "ok") == NODES[:6], told
    assert {s.header.campaign for s in values} == {"pin"}


@pytest.mark.testbed
def test_the_daily_look_measures_what_is_idle_and_leaves_what_is_at_work(suite):  # noqa: F811
    suite.testbed.run(["sbatch", "--nodelist=node[007-008]", "--nodes=2", "--exclusive",
                       "--output=/dev/null", "--wrap", "sleep 60"])
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    for name in ("likwid-bench", "mpirun"):  # fail at once: this is about nodes, not about figures
        suite.likwid("exit 3", name)
    script(suite, "daily", "quick", *FEW, campaign="day")
    assert suite.measured("HostParameters.mismatches") == NODES[:6]
    assert '"campaign day"' in (suite.data / "output/reports/day/verdict.json").read_text()


KEPT = ("--keep-out", "FAILED,ODD,UNTESTED")  # eight nodes of one machine are slow by chance
SHORT = (*KEPT, "--", *FEW)


def wrong_mtu(testbed, mtu, *nodes):
    for node in nodes:
        testbed.run(["ip", "link", "set", "eth0", "mtu", mtu], node=node)


@pytest.fixture
def evening(suite):  # noqa: F811
    suite.likwid(f"[ $2 = copy ] || exit 0\ncat '{RECORDED}'")
    yield suite
    wrong_mtu(suite.testbed, "9000", "node003")
    suite.testbed.run(["scontrol", "delete", "ReservationName=siteproof-compute"])


@pytest.mark.testbed
def test_an_evening_shows_what_it_would_do_and_changes_nothing_by_itself(evening):
    wrong_mtu(evening.testbed, "1500", "node003")
    done = script(evening, "evening", "--campaign", "e1", "--mode", "quick", *SHORT)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "jobs on 8 nodes" in done.stdout
    assert "nic.eth0.mtu" in done.stdout
    assert "scontrol create" in done.stdout
    assert sorted(path.name for path in (evening.data / "output/reports/e1").iterdir()) == [
        "junit.xml", "report.html", "siteproof.prom", "verdict.json"]
    assert "siteproof" not in evening.testbed.run(["scontrol", "show", "reservation"]).stdout


@pytest.mark.testbed
def test_an_evening_keeps_the_bad_node_out_and_frees_it_once_it_is_mended(evening):
    wrong_mtu(evening.testbed, "1500", "node003")
    words = ("--campaign", "e2", "--mode", "quick", "--limit", "20%", "--apply", *SHORT)
    assert script(evening, "evening", *words).returncode == 1
    shown = evening.testbed.run(["scontrol", "show", "reservation", "siteproof-compute"]).stdout
    assert "Nodes=node003 " in shown
    wrong_mtu(evening.testbed, "9000", "node003")
    done = script(evening, "evening", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "siteproof" not in evening.testbed.run(["scontrol", "show", "reservation"]).stdout


@pytest.mark.testbed
def test_an_evening_submitted_over_the_whole_reservation_does_not_wait_for_itself(evening):
    testbed = evening.testbed
    testbed.run(["scontrol", "create", "reservation", "ReservationName=night", "StartTime=now",
                 "Duration=30", "Users=root", "Nodes=ALL", "Flags=maint,ignore_jobs"])
    try:
        line = (f"cd '{CLONE}' && SITEPROOF_DATA='{evening.data}' "
                f"PATH='{evening.programs}':$PATH sbatch --wait -N8 --time=5 "
                f"--ntasks-per-node=1 --exclusive --reservation=night "
                f"--output='{evening.folder}/evening.out' "
                "sbatch/evening --campaign e3 --mode quick --keep-out FAILED,ODD "
                f"-- {shlex.join(FEW)}")
        done = testbed.run(["sh", "-c", line], timeout=900)
    finally:
        testbed.run(["scontrol", "delete", "ReservationName=night"])
    out = (evening.folder / "evening.out").read_text()
    assert done.returncode == 0, out + done.stderr
    assert evening.measured("HostParameters.mismatches") == NODES


@pytest.mark.testbed
def test_a_rolling_evening_measures_each_node_once_as_it_becomes_idle(evening):
    evening.testbed.run(["sbatch", "--nodelist=node[007-008]", "--nodes=2", "--exclusive",
                         "--output=/dev/null", "--wrap", "sleep 40"])
    evening.wait_for(lambda: any("RUNNING" in job for job in evening.jobs()))
    done = script(evening, "evening", "--campaign", "e4", "--mode", "quick", "--rolling", "1",
                  "--", "-n", "HostParameters")
    values = [s for s in evening.samples() if s.metric == "HostParameters.mismatches"]
    assert sorted(s.node for s in values) == NODES, done.stdout + done.stderr
    assert len({s.header.session for s in values}) == 2


@pytest.mark.parametrize(("words", "told"), [
    ((), "--nodes: which nodes?"), (("--nodes", "node[1-"), "is no node set"),
    (("--nodes", "a", "--at-once", "0"), "a whole number above 0"),
    (("--what",), "unknown word '--what'"),
])
def test_a_mistake_on_the_command_line_is_one_line_and_exit_2(words, told):
    done = subprocess.run([CLONE / "sbatch" / "pinned", *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"siteproof: [^\n]*\n", done.stderr)
    assert told in done.stderr
