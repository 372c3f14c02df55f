"""Locks: never held twice, never by the dead, on any file system, whatever lies in the folder."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
from clone import TOP, wait_for
from refusals import refusal

from siteproof import locks
from siteproof.errors import UserError

COMPETE = """
import os, random, signal, sys, time
from pathlib import Path
from siteproof import locks
folder, inside, journal, seed = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
random.seed(seed)
for turn in range(int(sys.argv[5])):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        continue
    while True:
        try:
            lock = locks.take(folder)
            break
        except locks.Taken:
            time.sleep(random.random() / 200)
    inside.mkdir()  # fails if another process is inside
    time.sleep(random.random() / 500)
    with journal.open("a") as file:
        file.write("x")
    inside.rmdir()
    if random.random() < 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    lock.release()
    os._exit(0)
"""
HOLD = """
import sys, time
from pathlib import Path
from siteproof import locks
locks.take(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "lock"


def no_links(monkeypatch, number):
    def link(*_args, **_keys):
        raise OSError(number, "no links here")

    monkeypatch.setattr(os, "link", link)


def hold(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], cwd=TOP, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def newest(folder):
    return folder / locks.name_of(max(locks.numbers(folder)))


def written_by(folder, **keys):
    """A lock file as some other process would have left it."""
    with locks.take(folder) as lock:
        holder = replace(lock.holder, **keys)
    path = folder / locks.name_of(max(locks.numbers(folder)) + 1)
    path.write_text(json.dumps(asdict(holder)))
    return path


@pytest.mark.deep
@pytest.mark.parametrize("turns", [5, pytest.param(12, marks=pytest.mark.long)])
def test_many_processes_of_which_half_are_killed_never_hold_it_at_once(tmp_path, turns):
    journal = tmp_path / "journal"
    script = [sys.executable, "-c", COMPETE, tmp_path / "lock", tmp_path / "inside", journal]
    all_of_them = [
        subprocess.Popen(
            [*script, str(seed), str(turns)], cwd=TOP, stderr=subprocess.PIPE, text=True
        )
        for seed in range(6)
    ]
    told = [process.communicate()[1] for process in all_of_them]
    assert told == [""] * 6
    assert journal.read_text() == "x" * 6 * turns
    assert len(list((tmp_path / "lock").iterdir())) <= 2


def test_a_lock_ends_with_its_process_however_it_ends(folder):
    for end in (signal.SIGKILL, signal.SIGTERM):
        process = hold(folder)
        with pytest.raises(locks.Taken, match=f"process {process.pid}, since 20"):
            locks.take(folder)
        process.send_signal(end)  # it stays a zombie until it is waited for
        wait_for(lambda: not_taken(folder))
        process.wait()


def not_taken(folder):
    try:
        locks.take(folder).release()
    except locks.Taken:
        return False
    return True


def test_another_process_of_the_same_number_holds_nothing(folder):
    written_by(folder, pid=os.getppid(), start=1)
    locks.take(folder).release()


def test_a_holder_before_the_machine_was_started_anew_is_gone(folder, monkeypatch):
    here = replace(locks._myself(), machine="a" * 32)
    monkeypatch.setattr(locks, "_myself", lambda: here)
    written_by(folder, machine="a" * 32, boot="an earlier one")
    locks.take(folder).release()


def test_a_holder_of_which_nothing_is_certain_is_named_with_its_file(folder):
    for keys in (
        {"host": "login2", "boot": "another"},
        {"space": "pid:[1]"},
        {"machine": "", "boot": "x"},
    ):
        path = written_by(folder, pid=4194303, **keys)
        told = refusal(locks.take, folder, error=locks.Taken)
        assert "Remove this file if that process has ended" in told, keys
        assert str(path) in told, keys
        path.unlink()
        locks.take(folder).release()


def test_a_process_whose_start_is_hidden_lives(folder, monkeypatch):
    written_by(folder, pid=os.getppid())
    monkeypatch.setattr(locks, "_start_of", lambda _pid: locks.HIDDEN)
    with pytest.raises(locks.Taken):
        locks.take(folder)


def test_nothing_asks_for_flock(folder, monkeypatch):
    def refuse(*_args):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(fcntl, "lockf", refuse)
    with locks.take(folder), pytest.raises(locks.Taken):
        locks.take(folder)
    users = [p for p in (TOP / "siteproof").rglob("*.py") if "fcntl" in p.read_text()]
    assert users == []


def test_a_file_system_without_links_has_locks_too(folder, monkeypatch):
    for number in locks.NO_LINKS:
        no_links(monkeypatch, number)
        for _ in range(3):
            with locks.take(folder):
                assert "held by" in refusal(locks.take, folder, error=locks.Taken), number


def test_there_an_empty_file_is_being_written_for_a_minute_only(folder):
    with locks.take(folder):
        pass
    path = folder / locks.name_of(9)
    path.touch()
    with pytest.raises(locks.Taken, match="being written"):
        locks.take(folder)
    now = path.stat().st_mtime
    os.utime(path, (now, now - locks.WRITTEN - 5))
    locks.take(folder).release()


def test_a_lost_answer_to_a_link_is_no_loss(folder, monkeypatch):
    link = os.link

    def twice(*args, **keys):
        link(*args, **keys)
        link(*args, **keys)

    monkeypatch.setattr(os, "link", twice)
    with locks.take(folder) as lock:
        assert lock.path == newest(folder)


def test_who_was_slow_to_look_takes_nothing(folder, monkeypatch):
    """While this process waits between two steps, others take the lock and clear up after it."""
    for _ in range(3):
        with locks.take(folder):
            pass
    create, others = locks.create, []

    def slow(path, data):
        if not others:
            others.append(None)
            with locks.take(folder):
                pass
            others.append(locks.take(folder))
        return create(path, data)

    monkeypatch.setattr(locks, "create", slow)
    with pytest.raises(locks.Taken):
        locks.take(folder)
    assert newest(folder) == others[1].path


def test_a_file_that_is_no_lock_is_named_and_stops_only_who_wants_the_lock(folder):
    folder.mkdir()
    for text in ("[]", "{", '{"pid": 1}', "x" * 10_000, "[" * 3000, "\0" * 100):
        (folder / "000007").write_text(text)
        told = refusal(locks.take, folder, error=locks.Taken)
        assert "000007" in told, text[:20]
        assert told.endswith("Remove this file if no process uses it."), text[:20]


def test_a_link_a_pipe_and_a_folder_of_a_numbers_name_are_not_opened(folder, tmp_path):
    folder.mkdir()
    os.mkfifo(folder / "000001")
    with pytest.raises(locks.Taken, match="regular file"):
        locks.take(folder)
    (folder / "000002").symlink_to("/dev/zero")
    with pytest.raises(locks.Taken, match="link"):
        locks.take(folder)
    (folder / "000003").mkdir()
    with pytest.raises(locks.Taken, match="regular file"):
        locks.take(folder)


def test_only_names_as_we_write_them_are_numbers(folder):
    folder.mkdir()
    for name in ("٠٠٠٠٠٩", "0000009", "9", "000000", "-00009", "000009.x", "1000000000", "+00009"):
        (folder / name).write_text("junk")
    assert locks.numbers(folder) == []
    with locks.take(folder) as lock:
        assert lock.path.name == "000001"


def test_after_the_last_number_the_file_is_named(folder):
    folder.mkdir()
    (folder / "999999999").write_bytes(locks.FREE)
    with pytest.raises(UserError, match="999999999: is the last number"):
        locks.take(folder)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        locks.take(tmp_path / "file" / "lock")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="cannot be written"):
        locks.take(tmp_path / "lock")


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_where_a_group_may_write_it_may_take_the_lock(tmp_path, umask):
    tmp_path.chmod(0o2775)
    before = os.umask(umask)
    lock = locks.take(tmp_path / "lock")
    os.umask(before)
    with lock:
        assert (tmp_path / "lock").stat().st_mode & 0o2070 == 0o2070
        assert lock.path.stat().st_mode & 0o044 == 0o044


def test_a_child_gives_nothing_back_that_its_parent_holds(folder):
    with locks.take(folder) as lock:
        if not (child := os.fork()):
            lock.release()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(locks.Taken):
            locks.take(folder)
