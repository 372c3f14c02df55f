"""`siteproof trend` and `siteproof history`: what is told of a drift, and what Ctrl-C does."""

import os
import signal
import subprocess
import sys
import time

import pytest
from test_trend import TRIAD, Here
from test_trend_ack import ask
from years import Drift

FOREVER = "SELECT sum(sqrt(range)) FROM range(100000000000)"  # hours


@pytest.fixture
def here(tmp_path, monkeypatch):
    return Here(tmp_path, monkeypatch)


def test_a_drift_holds_since_its_first_run(here):
    here.year(nodes=8, runs=200, drifts=[Drift(TRIAD, -0.2, ("n004",))])
    name = here.survey().drifts[0].id
    assert "since 2025-11-21 02:15" in ask("trend", "ack", name, "--why", "known")[1]


def test_ctrl_c_within_a_question_is_no_traceback(here):
    here.year(nodes=2, runs=2)
    command = [sys.executable, "-c", "from siteproof.cli import main; main()", "history", "--sql",
               FOREVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ)) as asked:
        time.sleep(4)
        assert asked.poll() is None  # it is at work
        asked.send_signal(signal.SIGINT)
        try:
            _, told = asked.communicate(timeout=20)
        finally:
            asked.kill()
    assert asked.returncode == 1
    assert told.strip() == "Aborted!"
