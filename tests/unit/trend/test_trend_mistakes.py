"""`siteproof trend` and `siteproof history`: what is told of a drift, and what Ctrl-C does."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from clone import PATIENCE, wait_for
from test_trend import TRIAD, Here
from test_trend_ack import ask
from years import Drift

from siteproof.history.extract import interruptible

FOREVER = "SELECT sum(sqrt(range)) FROM range(100000000000)"  # hours
LONG = "SELECT sum(sqrt(range)) FROM range(2000000000)"  # seconds
AT_WORK = 1.5  # s of CPU, which the start alone never takes


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


@pytest.mark.deep
def test_ctrl_c_within_a_question_is_no_traceback(here):
    here.year(nodes=2, runs=2)
    command = [
        *(sys.executable, "-c", "from siteproof.cli import main; main()", "history", "--sql"),
        FOREVER,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as asked:
        try:
            wait_for(lambda: asked.poll() is not None or cpu(asked.pid) > AT_WORK)
            assert asked.returncode is None, asked.communicate()
            asked.send_signal(signal.SIGINT)
            _, told = asked.communicate(timeout=PATIENCE)
        finally:
            asked.kill()
    assert asked.returncode == 130
    assert told.strip() == "siteproof: interrupted"


def test_a_ctrl_c_that_comes_before_duckdb_is_at_work_ends_the_question():
    with duckdb.connect() as connection:

        def ask():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)
            return connection.execute(LONG).fetchall()

        with pytest.raises(KeyboardInterrupt):
            interruptible(connection, ask)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
