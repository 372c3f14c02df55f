"""A child ends with its parent; the gate's test passes a signal on to ReFrame, and waits for it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clone import wait_for

from siteproof.gate import commands

# Starts a program that notes how it ends, as the gate starts ReFrame.
PARENT = """
import sys
from siteproof.gate import commands as children
with children.noted() as received:
    try:
        children.run(["sh", "-c", sys.argv[1]], received)
    except children.Interrupted as end:
        print("after it:", end, flush=True)
"""
NOTES = "trap 'echo ended >>{0}; exit' TERM; echo runs >>{0}; while :; do sleep .05; done"


@pytest.mark.parametrize(
    ("number", "last"), [("INT", "SIGINT"), ("TERM", "SIGTERM"), ("HUP", "SIGHUP"), ("KILL", "")]
)
def test_a_signal_ends_the_child_first(tmp_path, number, last):
    file = tmp_path / "notes"
    argv = [sys.executable, "-c", PARENT, NOTES.format(file)]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: file.exists() and "runs" in file.read_text())
    parent.send_signal(getattr(signal, f"SIG{number}"))
    out = parent.communicate()[0].strip()
    wait_for(lambda: file.read_text() == "runs\nended\n")
    assert out == (f"after it: {last}" if last else "")


def test_a_child_that_does_not_end_is_killed_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "GRACE", 0.2)
    file = tmp_path / "pid"
    script = f"trap '' TERM; sleep 600 & echo $! >{file}; while :; do sleep .05; done"

    def terminal_lost():
        if file.exists() and file.read_text():
            raise BrokenPipeError

    with commands.noted() as received, pytest.raises(BrokenPipeError):
        commands.run(["sh", "-c", script], received, look=terminal_lost)
    pid = int(file.read_text())
    wait_for(lambda: not running(pid))


def running(pid):
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().split()[2]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def test_after_a_signal_no_child_is_started(tmp_path):
    with commands.noted() as received, pytest.raises(commands.Interrupted):
        os.kill(os.getpid(), signal.SIGTERM)
        commands.run(["touch", str(tmp_path / "started")], received)
    assert not list(tmp_path.iterdir())
