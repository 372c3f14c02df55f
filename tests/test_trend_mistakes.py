"""`siteproof trend` and `siteproof history`: what is told of a drift, and what Ctrl-C does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clone import wait_for
from test_trend import TRIAD, Here
from test_trend_ack import ask
from years import Drift

FOREVER = "SELECT sum(sqrt(range)) FROM range(100000000000)"  # hours
AT_WORK = 3.0  # s of CPU, which the start alone never takes


def cpu(pid):
    """User and system time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def here(tmp_path, monkeypatch):
    return Here(tmp_path, monkeypatch)


def test_a_drift_holds_since_its_first_run(here):
    here.year(nodes=8, runs=200, drifts=[Drift(TRIAD, -0.2, ("n004",))])
    name = here.survey().drifts[0].id
    assert "since 2025-11-21 02:15" in ask("trend", "ack", name, "--why", "known")[1]


def test_ctrl_c_within_a_question_is_no_traceback(here):
    here.year(nodes=2, runs=2)
    command = [
        sys.executable,
        "-c",
        "from siteproof.cli import main; main()",
        "history",
        "--sql",
        FOREVER,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as asked:
        try:
            wait_for(lambda: cpu(asked.pid) > AT_WORK, 60)
            assert asked.poll() is None
            asked.send_signal(signal.SIGINT)
            _, told = asked.communicate(timeout=60)
        finally:
            asked.kill()
    assert asked.returncode == 1
    assert told.strip() == "Aborted!"
