"""health.sh: the age of a node and of its slurmd are of one moment, also on a node at full load."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from clone import TOP

SCRIPT = TOP / "checks" / "system" / "health.sh"
TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def slurmd(tmp_path):
    """A process of that name; seconds from the machine's start to its own."""
    program = tmp_path / "slurmd"
    shutil.copy(shutil.which("sleep"), program)
    process = subprocess.Popen([program, "60"])
    stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    yield int(stat[19]) / TICKS
    process.kill()
    process.wait()


@pytest.mark.deep
def test_a_slow_look_does_not_move_the_start_of_slurmd(tmp_path, slurmd):
    # Only what this test has started, and not the slurmd of a test bed nearby.
    stat = f"/proc/{own(tmp_path)}/stat"
    slow = tmp_path / "cat"
    slow.write_text(f'#!/bin/sh\n[ "$*" != {stat} ] || sleep 0.4\nexec /bin/cat "$@"\n')
    slow.chmod(0o755)
    text = SCRIPT.read_text().replace("/proc/[0-9]*/stat", stat)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", text, "measure", TOP / "siteproof/checks/on_node"],
        cwd=tmp_path,
        env=os.environ | path,
        capture_output=True,
        text=True,
    )
    said = dict(re.findall(r"^count (\w+) = (\S+)$", done.stdout, re.MULTILINE))
    assert float(said["uptime"]) - float(said["slurmd_age"]) == pytest.approx(slurmd, abs=0.05)


def own(folder):
    """The number of the process that runs the program of this test."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").readlink() == folder / "slurmd":
                return process.name
        except OSError:
            continue
    raise AssertionError("no slurmd")
