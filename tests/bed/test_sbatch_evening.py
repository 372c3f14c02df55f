"""An evening after maintenance on the test bed: what it shows, and as a job over a reservation."""

import shlex

import pytest
from clone import TOP
from test_run_slurm import NODES, RECORDED, suite  # noqa: F401 - the fixture
from test_sbatch import FEW, script

pytest_plugins = ["testbed_fixture"]
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
        "junit.xml",
        "report.html",
        "siteproof.prom",
        "verdict.json",
    ]
    assert "siteproof" not in evening.testbed.run(["scontrol", "show", "reservation"]).stdout


@pytest.mark.testbed
def test_an_evening_submitted_over_the_whole_reservation_does_not_wait_for_itself(evening):
    testbed = evening.testbed
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
        line = (
            f"cd '{TOP}' && SITEPROOF_DATA='{evening.data}' "
            f"PATH='{evening.programs}':$PATH sbatch --wait -N8 --time=5 "
            f"--ntasks-per-node=1 --exclusive --reservation=night "
            f"--output='{evening.folder}/evening.out' "
            "sbatch/evening --campaign e3 --mode quick --keep-out FAILED,ODD "
            f"-- {shlex.join(FEW)}"
        )
        done = testbed.run(["sh", "-c", line])
    finally:
        testbed.run(["scontrol", "delete", "ReservationName=night"])
    out = (evening.folder / "evening.out").read_text()
    assert done.returncode == 0, out + done.stderr
    assert evening.measured("HostParameters.mismatches") == NODES
