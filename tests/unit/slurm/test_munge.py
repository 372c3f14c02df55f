"""Credentials of a real munged, read without a process for each."""

import functools
import os
import shutil
import subprocess

import pytest
from clone import wait_for
from rows import rows

from siteproof.slurm import munge

pytestmark = pytest.mark.skipif(not shutil.which("munged"), reason="NOT TESTED: no munged")


@pytest.fixture
def munged(tmp_path, monkeypatch):
    """A munged with a key of its own; returns what makes a credential there."""
    (tmp_path / "key").write_bytes(os.urandom(64))
    (tmp_path / "key").chmod(0o600)
    place = tmp_path / "socket"
    files = [f"--{kind}-file={tmp_path}/{kind}" for kind in ("key", "log", "pid", "seed")]
    daemon = subprocess.Popen(
        [shutil.which("munged"), "--foreground", "--force", f"--socket={place}", *files],
        stderr=subprocess.DEVNULL,
    )
    wait_for(place.exists)
    monkeypatch.setattr(munge, "_socket_or_default", lambda: str(place))

    def make(said, *words):
        command = ["munge", "-S", place, "-s", said, *words]
        return subprocess.run(command, text=True, capture_output=True, check=True).stdout.strip()

    yield make
    daemon.terminate()
    daemon.wait(20)


def test_a_credential_is_read_as_unmunge_reads_it_whatever_its_age(munged):
    credential = munged("siteproof abc n1 n1 é")
    found = munge._by_library(credential)
    assert found == munge._by_library(credential)  # the second time
    assert found == munge._by_program(credential) == munge.read(credential)
    assert (found.uid, found.message) == (os.getuid(), "siteproof abc n1 n1 é")


def test_no_process_is_started_for_a_genuine_credential(munged, monkeypatch):
    credential = munged("x")
    monkeypatch.setenv("PATH", "/nowhere")
    assert munge.read(credential).message == "x"


BROKEN = {
    "another letter": lambda text: text[:40] + ("A" if text[40] != "A" else "B") + text[41:],
    "cut": lambda text: text[: len(text) // 2] + ":",
    "nothing": lambda _text: "MUNGE::",
}


@rows("kind", BROKEN)
def test_a_forged_credential_is_refused_with_what_munge_reports(munged, kind):
    credential = BROKEN[kind](munged("x"))
    assert munge._by_library(credential) is None
    with pytest.raises(munge.Forged):
        munge.read(credential)


@rows("more", ["\0", "\0more", " ", "\n", "MUNGE:AA=:"])
def test_what_is_more_than_a_credential_is_left_to_unmunge(munged, more):
    assert munge._by_library(munged("x") + more) is None


def test_a_machine_without_the_library_asks_the_program(munged, monkeypatch):
    monkeypatch.setattr(munge, "_library", functools.cache(lambda: None))
    assert munge.read(munged("x")).message == "x"
