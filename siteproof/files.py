"""The data folder, and the one way to read a file that others may have written.

A file below perflogs/ or stage/ may have been written by a node, another user or a broken file
system. It is read only if it is a regular file, reached without a link below the folder that the
site names, of an owner whom that folder's owner trusts, and no larger than such a file can be.
"""

from __future__ import annotations

import errno
import functools
import getpass
import grp
import json
import math
import os
import pwd
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from siteproof import installed
from siteproof.errors import UserError

T = TypeVar("T")
P = ParamSpec("P")

MIB = 1 << 20
OUTPUT = 64 * MIB  # what a tool printed on a node
ACCOUNT = MIB  # KEY=VALUE lines of a node, and what people keep in a file
SAMPLES = 1024 * MIB  # of one job: 10,000 nodes with 100 samples of 1 KiB each
DEEPEST = 50  # arrays and objects within each other in JSON
LONGEST_NUMBER = 400  # digits; a float has at most 309 before its point

REPORT = 256 * MIB  # JSON of a run of ReFrame, which takes ten times the memory

MAX_UID = 2**32 - 2  # of Linux: 2**32 - 1 is -1, which stands for no user

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Errors that are due to what is there. Any other is of the side that reads (EIO, ESTALE, ENOMEM …).
_LASTING = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.EINVAL, errno.ENAMETOOLONG}
_trusted: set[int] = set()
left_out: set[Path] = set()  # what is never read; each command names it at its end


class Refused(UserError):
    """A file that no trusted user can have written: a link, a device, a file of another user."""


class TooLarge(UserError):
    """A file that is larger than its kind can be."""


class Unread(UserError):
    """The reading side failed: the file may be whole, and be read at another time."""


def folder() -> Path:
    """The folder that holds perflogs/, stage/ and output/; the clone, if none is named.

    Raises UserError if none is named and a wheel is installed.
    """
    if given := os.environ.get("SITEPROOF_DATA"):
        return Path(given).resolve()
    if installed.IS_WHEEL:
        hint = "Run 'siteproof init DIR', then '. DIR/activate'"
        raise UserError("SITEPROOF_DATA", "is not set, so there is no folder of data", hint=hint)
    return installed.SUITE


def must_exist() -> None:
    """Refuse a SITEPROOF_DATA that names no folder. Raises UserError."""
    if not folder().is_dir():
        raise UserError("SITEPROOF_DATA", f"{folder()} is not a folder")


def perflogs() -> Path:
    """The folder of all samples."""
    return folder() / "perflogs"


def stages() -> Path:
    """The folder of all stage directories, one below it a session."""
    return folder() / "stage"


def cache_folder() -> Path:
    """The folder of this user's derived files.

    SITEPROOF_CACHE, else siteproof in XDG_CACHE_HOME if that is set, else in the data folder, so
    that nothing is written in HOME. But where others could replace a folder in the data folder, or
    this user may not write there, it is in ~/.cache: DuckDB opens the files by their names.
    """
    if own := os.environ.get("SITEPROOF_CACHE"):
        return Path(own).resolve()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "siteproof"
    parts = (folder(), folder() / "output", folder() / "output" / "cache")
    there = [path for path in parts if path.is_dir()]
    if there and all(map(_only_mine, there)) and os.access(there[-1], os.W_OK | os.X_OK):
        return parts[-1] / str(os.geteuid())
    return Path("~").expanduser() / ".cache/siteproof"


def _only_mine(folder: Path) -> bool:
    """Whether nobody but this user and root can rename what lies in a folder."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (0, os.geteuid()):
        return False
    if found.st_mode & stat.S_ISVTX or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    return not found.st_mode & stat.S_IWOTH and _private_group(found.st_gid)


def _private_group(gid: int) -> bool:
    """Whether a group is this user's own, as many distributions make one for each user."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    own = user.pw_gid == gid and group.gr_name == user.pw_name
    return own and set(group.gr_mem) <= {user.pw_name}


def trust(owners: Collection[int]) -> None:
    """Read files of these users, too: the site's `trusted_owners`."""
    _trusted.update(owners)


def uid_of(owner: str) -> int | None:
    """A user by name or number; None of a name unknown to the machine, or too large a number."""
    if re.fullmatch("[0-9]{1,10}", owner):
        return int(owner) if int(owner) <= MAX_UID else None
    try:
        return pwd.getpwnam(owner).pw_uid
    except (KeyError, OSError, ValueError):
        return None


def mapped_owner(folder: Path) -> str | None:
    """The owner of a file that this user makes in a folder, if that is a user who is not trusted.

    Otherwise None. A file system that maps owners, as NFS does for root, changes the owner.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=folder)
    except OSError:
        return None
    try:
        owner = os.fstat(handle).st_uid
        return None if trusts(owner, folder.stat()) else name_of(owner)
    finally:
        os.close(handle)
        Path(name).unlink()


def _repeated(reading: Callable[P, T]) -> Callable[P, T]:
    """Read once more after an error of the file system (ESTALE is gone by then)."""

    @functools.wraps(reading)
    def read_again(*args: P.args, **how: P.kwargs) -> T:
        try:
            return reading(*args, **how)
        except Unread:
            return reading(*args, **how)

    return read_again


@_repeated
def read(
    path: Path, *, below: Path, limit: int = ACCOUNT, owners: Collection[int] | None = None
) -> bytes:
    """The content of a file that somebody else may have written; a failed read is repeated once.

    below: the folder that the site or the user names; links are followed above it, and refused
    below it. limit: in bytes. owners: only their files are read; by default those of this user,
    of root, of the owner of `below`, of the site's `trusted_owners`, and of the members of its
    group if the group may write to it.
    Raises FileNotFoundError if there is none, Unread if the file system fails, and UserError if the
    file is refused.
    """
    with opened(path, below=below, limit=limit, owners=owners) as handle, _explained(path):
        data = rest(functools.partial(os.read, handle), limit + 1)
    if len(data) > limit:
        raise _too_large(path, limit)
    return data


@_repeated
def exists(path: Path) -> bool:
    """Whether there is anything of that name, also a broken link. Raises Unread."""
    try:
        with _explained(path):
            os.lstat(path)
    except (FileNotFoundError, Refused):
        return False
    return True


def read_text(
    path: Path, *, below: Path, limit: int = ACCOUNT, owners: Collection[int] | None = None
) -> str:
    """The same as text; bytes that are not UTF-8 are replaced."""
    return read(path, below=below, limit=limit, owners=owners).decode("utf-8", "replace")


def read_json(
    path: Path, *, below: Path, limit: int = ACCOUNT, owners: Collection[int] | None = None
) -> Any:
    """The same as JSON: see `loads`."""
    return loads(path, read(path, below=below, limit=limit, owners=owners))


@contextmanager
def opened(
    path: Path, *, below: Path, limit: int, owners: Collection[int] | None = None
) -> Iterator[int]:
    """A file descriptor for reading, closed at the end. Arguments and errors as those of `read`."""
    parts = path.relative_to(below).parts or (".",)
    with _walked(path, below, parts[:-1], owners) as handles:
        with _explained(path):
            handles.append(_step(parts[-1], _FILE, path, handles, owners))
            _check_owner(path, os.fstat(handles[-1]), os.fstat(handles[0]), owners)
            _must_be_file(path, handles[-1], limit)
        yield handles[-1]


def read_named(path: Path, limit: int = ACCOUNT) -> bytes:
    """The content of a file that the user names; it may be a link, and have any owner.

    Raises FileNotFoundError, and UserError if it is not a regular file, or too large.
    """
    with named(path, limit) as handle, _explained(path):
        return rest(functools.partial(os.read, handle), limit)


@contextmanager
def named(path: Path, limit: int) -> Iterator[int]:
    """A file descriptor of such a file, closed at the end. Errors as those of `read_named`."""
    try:
        with _explained(path):
            handle = os.open(path, _FILE & ~os.O_NOFOLLOW)
    except ValueError:
        raise UserError(path, "is not the name of a file") from None
    try:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise UserError(path, "is a folder", "a file")
        _must_be_file(path, handle, limit)
        yield handle
    finally:
        os.close(handle)


@_repeated
def names(path: Path, *, below: Path, most: int) -> list[str]:
    """The names in a folder, sorted; never more than `most`. Arguments and errors as of `read`."""
    found: list[str] = []
    parts = path.relative_to(below).parts
    with (
        _walked(path, below, parts) as handles,
        _explained(path),
        os.scandir(handles[-1]) as entries,
    ):
        for entry in entries:
            found.append(entry.name)
            if len(found) > most:
                raise UserError(path, "refused: it holds too many files", f"at most {most}")
    return sorted(found)


def trusts_below(folder: Path, uid: int) -> bool:
    """Whether `read` reads this user's files below a folder by default."""
    try:
        return trusts(uid, folder.stat())
    except OSError:
        return uid in (0, os.geteuid())


def owner(path: Path) -> int:
    """The owner of a folder that is not a link. Raises FileNotFoundError and UserError."""
    with _explained(path):
        found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise UserError(path, "refused: it is a link, or not a folder")
    return found.st_uid


def write(
    path: Path,
    data: bytes,
    *,
    below: Path,
    may_replace: Callable[[int], bool] = lambda _handle: True,
    belongs_to: int | None = None,
    mode: int = 0o666,
) -> None:
    """Write a file where others may write, too: whole or not at all, and never through a link.

    below: as of `read`; missing folders are made. may_replace: whether a regular file of that name,
    by its descriptor, may be replaced. belongs_to: the owner of the file. mode: its permissions,
    without those of the umask; in a folder of a group of operators, it may be read and replaced by
    the group, whatever the umask.
    Raises OSError if it cannot be written, and UserError if it must not be.
    """
    parts = path.relative_to(below).parts
    below.mkdir(parents=True, exist_ok=True)
    name, part = _plain(parts[-1], path), f".{secrets.token_hex(8)}.tmp"
    with _naming(path), _walked(path, below, parts[:-1], make=True) as handles:
        _must_give_way(path, name, handles[-1], may_replace)
        handle = os.open(part, _NEW, mode, dir_fd=handles[-1])
        try:
            with os.fdopen(handle, "wb") as stream:
                if mode & stat.S_IWGRP:
                    _share(handle, handles[-1])
                stream.write(data)
                stream.flush()
                if belongs_to is not None and belongs_to != os.geteuid():
                    os.fchown(stream.fileno(), belongs_to, -1)
                os.fsync(stream.fileno())
            os.rename(part, name, src_dir_fd=handles[-1], dst_dir_fd=handles[-1])
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=handles[-1])
            raise


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Give an OSError the file's name: that of a full disk has none."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def append(path: Path, line: bytes, *, below: Path, limit: int = OUTPUT) -> None:
    """Append one line in one write, so that lines of several processes never mix.

    Local file systems keep such a write whole; NFS does so for one host, so each host needs a file
    of its own. below: as of `read`; missing folders are made. limit: no larger file is appended to.
    Raises OSError if it cannot be written, and UserError if it must not be.
    """
    parts = path.relative_to(below).parts
    below.mkdir(parents=True, exist_ok=True)
    with _naming(path), _walked(path, below, parts[:-1], make=True) as handles:
        name = _plain(parts[-1], path)
        with _explained(path, make=True):
            handles.append(os.open(name, _APPEND, 0o666, dir_fd=handles[-1]))
        found = os.fstat(handles[-1])
        _check_owner(path, found, os.fstat(handles[0]), None)
        _must_be_file(path, handles[-1], limit)
        if found.st_nlink > 1:
            raise Refused(path, "refused: it is a link to another file")
        if found.st_uid == os.geteuid() and os.fstat(handles[-2]).st_mode & stat.S_IWGRP:
            os.fchmod(handles[-1], 0o664)  # colleagues append to it, too
        if found.st_size and os.pread(handles[-1], 1, found.st_size - 1) != b"\n":
            line = b"\n" + line  # a line that a full disk cut off stays a line of its own
        if os.write(handles[-1], line) != len(line):
            raise UserError(path, "written only in part", hint="Is the disk full?")
        os.fsync(handles[-1])


def remove(path: Path, *, below: Path, may_remove: Callable[[int], bool]) -> None:
    """Remove a regular file, if it is there; never through a link. below: as of `read`.

    may_remove: whether it may be removed, by its descriptor.
    Raises OSError if it cannot be removed, and UserError if it must not be.
    """
    parts = path.relative_to(below).parts
    name = _plain(parts[-1], path)
    with suppress(FileNotFoundError), _walked(path, below, parts[:-1]) as handles:
        _must_give_way(path, name, handles[-1], may_remove)
        os.unlink(name, dir_fd=handles[-1])


def _must_give_way(path: Path, name: str, folder: int, may_replace: Callable[[int], bool]) -> None:
    """Raises UserError if something of that name must not be replaced or removed."""
    try:
        with _explained(path):
            handle = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UserError(path, "not written: something there is not a regular file")
        if not may_replace(handle):
            raise UserError(path, "not written: a file that is not the same result is there")
    finally:
        os.close(handle)


def open_to_all(top: Path, system: str) -> list[Path]:
    """The folders of a system's samples to which everybody may write. top: perflogs."""
    folders, found = [top.parent, top, top / system], []
    with suppress(OSError):
        folders += sorted(path for path in (top / system).iterdir() if path.is_dir())
    for path in folders:
        with suppress(OSError):
            found += [path] * bool(path.stat().st_mode & stat.S_IWOTH)
    return found


def no_link(path: str, flags: int) -> int:
    """An `opener` for files below the data folder: it follows no link, and waits for no pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)


def loads(where: object, text: str | bytes) -> Any:
    """JSON that somebody else may have written: no deep nesting, no very long number, no NaN.

    Raises UserError.
    """
    try:
        text = text.decode() if isinstance(text, bytes) else text
        value = json.loads(text, parse_int=_whole, parse_float=_float, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise UserError(where, "broken JSON", "one whole JSON value") from None
    if text.count("[") + text.count("{") > DEEPEST and is_deep(value):
        raise UserError(where, "broken JSON", f"at most {DEEPEST} levels")
    return value


def user() -> str:
    """The name of whoever runs the command; the number if the name is unknown here."""
    try:
        return os.environ.get("USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@functools.cache
def name_of(uid: int) -> str:
    """A user's name; the number where the machine does not know it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OSError):
        return f"user {uid}"


@contextmanager
def _walked(
    path: Path,
    below: Path,
    parts: Iterable[str],
    owners: Collection[int] | None = None,
    make: bool = False,
) -> Iterator[list[int]]:
    """Descriptors of `below` and of the folders from there to `path`, closed at the end.

    parts: the names of the folders; none of them may be a link. make: missing folders are made; an
    OSError if that fails. Raises what `read` raises.
    """
    handles: list[int] = []
    try:
        with _explained(path, make):
            handles.append(_root(below))
            for part in parts:
                handles.append(_step(part, _FOLDER, path, handles, owners, make))
        yield handles
    finally:
        for handle in handles:
            os.close(handle)


def _root(below: Path) -> int:
    """The root itself, and folders above it, may be links, as the site or the user names it."""
    try:
        return os.open(below, _FOLDER & ~os.O_NOFOLLOW)
    except NotADirectoryError:  # then nothing lies below it
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(below)) from None


def _step(
    part: str,
    flags: int,
    path: Path,
    handles: Sequence[int],
    owners: Collection[int] | None,
    make: bool = False,
) -> int:
    """One part of a path, opened within the part before it; the first of `handles` is the root."""
    name, made = _plain(part, path), False
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=handles[-1])
            made = True
    try:
        handle = os.open(name, flags, dir_fd=handles[-1])
        if made:
            _share(handle, handles[-1])
        return handle
    except PermissionError:  # a file of a user who is not trusted is refused, and no other error
        if not make:
            found = os.stat(name, dir_fd=handles[-1], follow_symlinks=False)
            _check_owner(path, found, os.fstat(handles[0]), owners)
        raise


def _share(handle: int, folder: int) -> None:
    """Give what was made in a folder of a group of operators the group's permissions.

    /tmp, which is sticky, is not one, nor is a folder of another group than the new file's.
    """
    above, new = os.fstat(folder), os.fstat(handle)
    if above.st_mode & stat.S_ISVTX or above.st_gid != new.st_gid:
        return
    if above.st_mode & stat.S_IWGRP:
        wanted = stat.S_IRWXG | stat.S_ISGID if stat.S_ISDIR(new.st_mode) else 0o060
        if not above.st_mode & stat.S_ISGID:
            wanted &= ~stat.S_ISGID
        os.fchmod(handle, stat.S_IMODE(new.st_mode) | wanted)


def _must_be_file(path: Path, handle: int, limit: int) -> None:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise Refused(path, "refused: it is not a regular file")
    if found.st_size > limit:
        raise _too_large(path, limit)


def _check_owner(
    path: Path, found: os.stat_result, root: os.stat_result, owners: Collection[int] | None
) -> None:
    if not trusts(found.st_uid, root, owners):
        owner = name_of(found.st_uid)
        raise Refused(
            path,
            f"refused: it belongs to {owner}",
            hint="'trusted_owners' in system.yaml names further owners",
        )


def trusts(uid: int, root: os.stat_result, owners: Collection[int] | None = None) -> bool:
    """Whether a file of this user is read below a folder. root: its stat. owners: as of `read`."""
    if owners is not None:
        return uid in owners or uid in _trusted
    if uid in (0, os.geteuid(), root.st_uid) or uid in _trusted:
        return True
    return bool(root.st_mode & stat.S_IWGRP) and _in_group(uid, root.st_gid)


@functools.cache
def _in_group(uid: int, gid: int) -> bool:
    try:
        user = pwd.getpwuid(uid)
        return gid in os.getgrouplist(user.pw_name, user.pw_gid) or user.pw_name in (
            grp.getgrgid(gid).gr_mem
        )
    except (KeyError, OSError):
        return False


def group_members(folder: Path) -> list[str]:
    """The users of the group that may write to a folder; empty if it is the owner's alone."""
    found = folder.stat()
    if not found.st_mode & stat.S_IWGRP:
        return []
    try:
        members = set(grp.getgrgid(found.st_gid).gr_mem)
    except KeyError:
        return []
    users = pwd.getpwall()
    primary = {user.pw_name for user in users if user.pw_gid == found.st_gid}
    return sorted(primary | {name for name in members if _exists(name)})


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _plain(part: str, path: Path) -> str:
    if part in ("..", ".", "") or "/" in part or "\0" in part:
        raise Refused(path, "refused: it leads out of its folder")
    return part


def has_plain_name(path: Path) -> bool:
    """Whether a name is UTF-8, as all that Siteproof writes; another one is kept in `left_out`."""
    try:
        path.name.encode()
    except UnicodeEncodeError:
        left_out.add(path)
        return False
    return True


def rest(read: Callable[[int], bytes], most: int) -> bytes:
    """What a stream still holds, at most so many bytes; `read(most)` would take as much memory."""
    parts = []
    while most and (part := read(min(most, MIB))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


@contextmanager
def _explained(path: Path, make: bool = False) -> Iterator[None]:
    """Turns an error of the kernel into one that names the file.

    make: while folders are made, only errors about a link or a file in place of a folder.
    """
    try:
        yield
    except OSError as error:
        if make and error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> Exception:
    if error.errno == errno.ENOENT:
        return FileNotFoundError(errno.ENOENT, "no such file", str(path))
    if error.errno in (errno.ELOOP, errno.ENXIO):
        return Refused(path, "refused: it is a link, or not a regular file")
    if error.errno == errno.ENOTDIR:
        return Refused(path, "refused: a part of its path is a link, or not a folder")
    kind = UserError if error.errno in _LASTING else Unread
    return kind(path, f"cannot be read: {error.strerror}")


def _too_large(path: Path, limit: int) -> TooLarge:
    size = f"{limit} bytes" if limit % MIB else f"{limit // MIB} MiB"
    return TooLarge(path, "refused: it is too large", f"at most {size}")


def _whole(text: str) -> int:
    return int(_short(text))


def _float(text: str) -> float:
    value = float(_short(text))
    if not math.isfinite(value):
        raise ValueError("too large a number")
    return value


def _short(text: str) -> str:
    if len(text) > LONGEST_NUMBER:
        raise ValueError("a number of too many digits")
    return text


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def is_deep(value: Any) -> bool:
    """Whether arrays and objects are nested deeper than any file needs."""
    level = [value]
    for _ in range(DEEPEST):  # without recursion, whose depth Python limits
        level = [part for outer in level for part in _parts(outer)]
    return any(isinstance(part, (dict, list)) for part in level)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
