"""The scripts of sbatch/ on the test bed."""

import re
import subprocess
from pathlib import Path

import pytest
from test_run_slurm import NODES, Suite, suite  # noqa: F401 - the fixture

pytest_plugins = ["testbed_fixture"]
CLONE = Path(__file__).parents[1]


def script(suite: Suite, name, *words, timeout=120, campaign=""):  # noqa: F811
    said = " ".join(f"'{word}'" for word in words)
    line = (f"cd '{CLONE}' && SITEPROOF_DATA='{suite.data}' SITEPROOF_CAMPAIGN='{campaign}' "
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
    assert sorted(s.node for s in values if s.status == "ok") == NODES[:6]
    assert {s.header.campaign for s in values} == {"pin"}


@pytest.mark.testbed
def test_the_daily_look_measures_what_is_idle_and_leaves_what_is_at_work(suite):  # noqa: F811
    suite.testbed.run(["sbatch", "--nodelist=node[007-008]", "--nodes=2", "--exclusive",
                       "--output=/dev/null", "--wrap", "sleep 60"])
    suite.wait_for(lambda: any("RUNNING" in job for job in suite.jobs()))
    suite.likwid("exit 3")  # fails at once: this test is about which nodes, not about bandwidth
    script(suite, "daily", "quick", timeout=240, campaign="day")
    assert suite.measured("HostParameters.mismatches") == NODES[:6]


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
