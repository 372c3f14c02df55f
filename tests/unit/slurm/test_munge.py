"""Credentials of a real munged, read without a process for each."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from clone import wait_for
from rows import rows

from siteproof.errors import UserError
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


def test_a_credential_is_read_whatever_its_age_and_no_process_is_started(munged, monkeypatch):
    credential = munged("siteproof abc n1 n1 é")
    shown = subprocess.run(
        ["unmunge", "-S", munge._socket_or_default()],
        input=credential, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    monkeypatch.setenv("PATH", "/nowhere")
    found = munge.read(credential)
    assert found == munge.read(credential)  # the second time
    assert (found.uid, found.message) == (os.getuid(), "siteproof abc n1 n1 é")
    assert f"({found.address})" in shown


def test_this_process_has_a_credential_of_its_own(munged):
    munge.own.cache_clear()
    assert munge.own() == munge.read(munged(""))


FORGED = {
    "another letter": lambda text: text[:40] + ("A" if text[40] != "A" else "B") + text[41:],
    "cut": lambda text: text[: len(text) // 2] + ":",
    "nothing": lambda _text: "MUNGE::",
    "long": lambda _text: f"MUNGE:{'A' * 100_000}:",
    **{f"more {more!r}": lambda text, more=more: text + more for more in ("\0", " ", "\n", ":")},
}


@rows("kind", FORGED)
def test_a_forged_credential_is_refused_with_what_munge_reports(munged, kind):
    with pytest.raises(munge.Forged, match="[a-z]"):
        munge.read(FORGED[kind](munged("x")))


def test_a_munged_that_does_not_answer_is_named(munged, monkeypatch):
    credential = munged("x")
    monkeypatch.setattr(munge, "_socket_or_default", lambda: "/nowhere/socket")
    munge.own.cache_clear()
    for ask in (lambda: munge.read(credential), munge.own):
        with pytest.raises(UserError, match="/nowhere/socket"):
            ask()


def test_a_machine_without_the_library_is_named(munged, monkeypatch):
    credential = munged("x")
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: (_ for _ in ()).throw(OSError))
    munge._library.cache_clear()
    with pytest.raises(UserError, match="not installed"):
        munge.read(credential)


def test_the_library_beside_the_program_is_found_where_the_loader_does_not_look(
    munged, monkeypatch, tmp_path
):
    credential, real = munged("x"), ctypes.CDLL
    library = next(Path("/usr/lib").glob("*/libmunge.so.2"))
    for folder in ("bin", "lib"):
        (tmp_path / "opt" / folder).mkdir(parents=True)
    (tmp_path / "opt/lib/libmunge.so.2").symlink_to(library)
    (tmp_path / "opt/bin/munge").write_text("#!/bin/sh\n")
    (tmp_path / "opt/bin/munge").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/opt/bin")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: real(name if "/opt/" in name else "none.so"))
    munge._library.cache_clear()
    assert munge.read(credential).message == "x"
