"""A mounted file system, looked at on this machine."""

import os
import subprocess
import tempfile

import pytest
from served import job, steps_of

from siteproof.services import mount


def looked(tmp_path, address, seconds="5 s"):
    return steps_of(mount, job(tmp_path, kind="mount", address=str(address), timeout=seconds))[0]


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="/dev/shm is no mount here")
def test_a_byte_of_a_mounted_file_system_is_read(tmp_path):
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(b"x")
        file.flush()
        assert looked(tmp_path, "/dev/shm") == [("mounted", "ok", ""), ("read", "ok", "")]


@pytest.mark.skipif(not os.path.ismount("/dev/pts"), reason="/dev/pts is no mount here")
def test_a_mount_without_a_file_that_can_be_read_fails(tmp_path):
    why = "no file that is not empty is there to be read"  # only terminals are
    assert looked(tmp_path, "/dev/pts") == [("mounted", "ok", ""), ("read", "generic", why)]


def test_a_folder_on_which_nothing_is_mounted_fails(tmp_path):
    assert looked(tmp_path, tmp_path) == [("mounted", "generic", "nothing is mounted there")]


def test_a_dead_file_system_is_waited_for_only_as_long_as_a_step_may_take(tmp_path, monkeypatch):
    monkeypatch.setattr(mount, "MOUNTED", "import time; time.sleep(60)")
    ended = []
    kill = subprocess.Popen.kill
    monkeypatch.setattr(subprocess.Popen, "kill", lambda self: (ended.append(self), kill(self)))
    found = looked(tmp_path, "/proc", "1 s")
    assert [one[:2] for one in found] == [("mounted", "timeout")]
    assert len(ended) == 1
