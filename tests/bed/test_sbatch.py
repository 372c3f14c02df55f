"""The scripts of sbatch/ on the test bed."""

import re
import subprocess

import pytest
from clone import TOP
from test_run_slurm import NODES, Suite, suite  # noqa: F401 - the fixture

pytest_plugins = ["testbed_fixture"]
# Small problems and few checks: the evening is the same.
FEW = ("-T", "network", "-T", "storage", "-S", "Hpl.n=1200")


def script(suite: Suite, name, *words, campaign=""):  # noqa: F811
    said = " ".join(f"'{word}'" for word in words)
    line = (
        f"cd '{TOP}' && SITEPROOF_DATA='{suite.data}' PATH='{suite.programs}':$PATH "
        f"SITEPROOF_CAMPAIGN='{campaign}' "
        f"sbatch/{name} {said}"
    )
    return suite.testbed.run(["sh", "-c", line])


@pytest.mark.testbed
def test_pinned_jobs_measure_each_node_exactly_once_and_few_at_a_time(suite):  # noqa: F811
    done = script(
        suite,
        "pinned",
        "--nodes",
        "node[001-006]",
        "--at-once",
        "2",
        "--time",
        "5",
        "--",
        "-n",
        "HostParameters",
        "--mode",
        "quick",
        campaign="pin",
    )
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
    suite.testbed.run(
        [
            "sbatch",
            "--nodelist=node[007-008]",
            "--nodes=2",
            "--exclusive",
            "--output=/dev/null",
            "--wrap",
            "sleep 60",
        ]
    )
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    for name in ("likwid-bench", "mpirun"):  # fail at once: this is about nodes, not about figures
        suite.likwid("exit 3", name)
    script(suite, "daily", "quick", *FEW, campaign="day")
    assert suite.measured("HostParameters.mismatches") == NODES[:6]
    assert '"campaign day"' in (suite.data / "output/reports/day/verdict.json").read_text()


@pytest.mark.testbed
def test_a_rolling_evening_measures_each_node_once_as_it_becomes_idle(suite):  # noqa: F811
    suite.testbed.run(
        [
            "sbatch",
            "--nodelist=node[007-008]",
            "--nodes=2",
            "--exclusive",
            "--output=/dev/null",
            "--wrap",
            "sleep 40",
        ]
    )
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    done = script(
        suite,
        "evening",
        "--campaign",
        "e4",
        "--mode",
        "quick",
        "--rolling",
        "1",
        "--",
        "-n",
        "HostParameters",
    )
    values = [s for s in suite.samples() if s.metric == "HostParameters.mismatches"]
    assert sorted(s.node for s in values) == NODES, done.stdout + done.stderr
    assert len({s.header.session for s in values}) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--nodes is required"),
        (("--nodes", "node[1-"), "is not a node set"),
        (("--nodes", "a", "--at-once", "0"), "a whole number above 0"),
        (("--what",), "unknown argument '--what'"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_and_exit_2(words, told):
    done = subprocess.run([TOP / "sbatch" / "pinned", *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"siteproof: [^\n]*\n", done.stderr)
    assert told in done.stderr
