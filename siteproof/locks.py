"""Locks and numbers that work on NFS, and without `flock`, which some Lustre file systems lack.

Both use one step: a complete file gets its name by link(2), which only one process can do. A lock
is a folder of numbered files; the highest names the process that has the lock, or none. The numbers
only rise, so a process with an old listing cannot take a lock that another one has.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import socket
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError, harmless

LAST = 999_999_999
FREE = b"{}\n"  # of a lock file: nobody holds it
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK)
MAX_BYTES = 4096
WRITTEN = 60  # seconds after which nobody still writes an empty file
LEFTOVER = 3600  # the same for a draft
HIDDEN = -1  # a process that runs, of which the kernel shows nothing else
TRIES = 1000  # other processes may take the lock so often before this one sees the holder
_NUMBER = re.compile(r"[0-9]{6,9}")  # ASCII, which \d is not


@dataclass(frozen=True)
class _Here:
    """What all processes of a user on a machine share.

    machine: of the installation; boot: of its kernel since it was started; space: the namespace of
    its process numbers.
    """

    user: str
    host: str
    machine: str
    boot: str
    space: str


@dataclass(frozen=True)
class Holder(_Here):
    """A process that holds a lock. start: when it began, in the kernel's ticks."""

    pid: int
    start: int
    since: str
    token: str

    def __str__(self) -> str:
        text = f"{self.user} on {self.host}, process {self.pid}, since {self.since}"
        return harmless(text)[:200]

    def is_visible(self) -> bool:
        """Whether this process sees the other one, if it runs."""
        here = _myself()
        return (self.boot, self.space) == (here.boot, here.space)

    def has_ended(self) -> bool:
        """Whether it has certainly ended; this is not known of a process of another machine."""
        if self.is_visible():
            return _start_of(self.pid) not in (self.start, HIDDEN)
        here = _myself()
        rebooted = (self.host, self.machine) == (here.host, here.machine)
        return rebooted and bool(self.machine) and self.boot != here.boot


class Taken(UserError):
    """Another process has the lock."""


@dataclass(frozen=True)
class Lock:
    """A lock of this process, until the end of a `with` or until it is released."""

    path: Path
    holder: Holder

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()

    def release(self) -> None:
        """Release it. The end of the process does so, too, for processes that can see the end."""
        with suppress(OSError, UserError):
            if os.getpid() == self.holder.pid and _read(self.path) == self.holder:
                _draft(self.path, FREE).replace(self.path)  # not removed: the numbers must rise


def take(folder: Path) -> Lock:
    """Take a lock, also after a process that has ended without releasing it.

    Raises Taken, and UserError where the folder cannot be written.
    """
    try:
        make_folder(folder)
        return _take(folder)
    except OSError as error:
        raise UserError(folder, f"cannot be written: {error.strerror}") from None


def _take(folder: Path) -> Lock:
    pid, since = os.getpid(), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    here, token = asdict(_myself()), secrets.token_hex(8)
    holder, known = Holder(**here, pid=pid, start=_start_of(pid), since=since, token=token), 0
    for _ in range(TRIES):
        number = max([known, *numbers(folder)])
        known = 0
        if number and not _is_free(folder / name_of(number)):
            continue
        if number >= LAST:
            raise UserError(folder / name_of(number), "is the last number", hint="Remove this file")
        path = folder / name_of(number + 1)
        if not create(path, json.dumps(asdict(holder)).encode()):
            known = number + 1  # on NFS a listing may be older than this file
        elif max(numbers(folder)) > number + 1:
            path.unlink(missing_ok=True)  # this process was slow: others have had the lock since
        else:
            _clear(folder, number + 1)
            return Lock(path, holder)
    raise UserError(folder, "too many processes try to take the lock", hint="Try again later")


def _is_free(path: Path) -> bool:
    """Whether nobody has the lock; false: a later file decides. Raises Taken."""
    try:
        holder = _read(path)
    except FileNotFoundError:
        return False
    except UserError as error:
        raise Taken(path, error.what, hint="Remove this file if no process uses it") from None
    if holder and not holder.has_ended():
        advice = "" if holder.is_visible() else "Remove this file if that process has ended"
        raise Taken(path, f"held by {holder}", hint=advice)
    return True


def _read(path: Path) -> Holder | None:
    """The process that has a lock; None: no process. Raises UserError, FileNotFoundError."""
    data = files.read(path, below=path.parent, limit=MAX_BYTES)
    if data == FREE:
        return None
    if not data:  # only a file system without links shows a file before it is whole
        if _age(path) > WRITTEN:
            return None
        raise UserError(path, "is being written just now")
    record = files.loads(path, data)
    kinds = {field.name: int if field.type == "int" else str for field in fields(Holder)}
    if not (
        isinstance(record, dict)
        and record.keys() == kinds.keys()
        and all(type(record[name]) is kind for name, kind in kinds.items())
        and record["pid"] > 0
    ):
        raise UserError(path, "is not a lock file")
    return Holder(**record)


# ---- numbered files


def name_of(number: int) -> str:
    """The file of a number."""
    return f"{number:06}"


def numbers(folder: Path) -> list[int]:
    """The numbers that are taken in a folder. Raises OSError."""
    with os.scandir(folder) as found:
        names = [entry.name for entry in found if _NUMBER.fullmatch(entry.name)]
    return [int(name) for name in names if name == name_of(int(name)) and int(name)]


def create(path: Path, data: bytes) -> bool:
    """Create a file, whole, unless its name is taken; whether this call did. Raises OSError."""
    draft = _draft(path, data)
    try:
        os.link(draft, path, follow_symlinks=False)
    except FileExistsError:
        # On NFS the answer to a link may be lost, and the client asks once more.
        with suppress(FileNotFoundError):
            return os.path.samestat(path.lstat(), draft.lstat())
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return _create_without_links(path, data)
    finally:
        draft.unlink(missing_ok=True)
    return True


def _create_without_links(path: Path, data: bytes) -> bool:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    _fill(handle, data)
    return True


def _draft(path: Path, data: bytes) -> Path:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with suppress(OSError):
            os.fchmod(handle, 0o644)  # a process that waits may read who has the lock
        _fill(handle, data)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def _fill(handle: int, data: bytes) -> None:
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def make_folder(folder: Path) -> None:
    """Make a folder to which a group may write that may write to its parent. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir()
        above = stat.S_IMODE(folder.parent.stat().st_mode)
        given = stat.S_ISGID | (stat.S_IRWXG if above & stat.S_IWGRP else 0)  # whatever the umask
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | above & given)
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "is not a folder", str(folder))


def _clear(folder: Path, number: int) -> None:
    """Remove lower numbers, and drafts of processes that were killed."""
    for lower in numbers(folder):
        if lower < number:
            with suppress(OSError):
                (folder / name_of(lower)).unlink()
    for draft in folder.glob(".*.tmp"):
        with suppress(OSError):
            if _age(draft) > LEFTOVER:
                draft.unlink()


def _age(path: Path) -> float:
    """Seconds since a file was changed, by the clock of the file system alone."""
    now = _draft(path, b"")
    try:
        return now.stat().st_mtime - path.lstat().st_mtime
    finally:
        now.unlink()


# ---- processes


@cache
def _myself() -> _Here:
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return _Here(
        files.name_of(os.geteuid()),
        socket.gethostname(),
        _line("/etc/machine-id"),
        _line("/proc/sys/kernel/random/boot_id") or socket.gethostname(),
        space,
    )


def _line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _start_of(pid: int) -> int:
    """When a process began, in the kernel's ticks; 0 if there is none; HIDDEN."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return 0
    except PermissionError:
        pass  # it runs, and belongs to another user
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return HIDDEN
    words = text.rpartition(")")[2].split()
    return 0 if words[0] in ("Z", "X") else int(words[19])
