"""The order of sessions: each takes a number when it begins to measure, independent of clocks.

`perflogs/<system>/.sessions/NNNNNN` holds the name of the session that has the number.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from siteproof import files, locks
from siteproof.errors import UserError
from siteproof.record import samples

FOLDER = ".sessions"
LEAP = 10_000  # so many sessions in a row cannot all have lost their numbers and samples
LONGEST = 200  # bytes of a session's name


class TooHigh(NamedTuple):
    """A file of a number that is far above the last session's, and does not count."""

    file: Path
    last: int


def new_name(now: datetime) -> str:
    """A session's name: unique, and in the order of time even within a second."""
    return f"{now:%Y%m%dT%H%M%SZ}-{now.microsecond:05x}{secrets.token_hex(1)}"


def take(
    perflogs: Path, system: str, session: str, *, continued: bool = False
) -> tuple[int, TooHigh | None]:
    """The next number, or the one that a continued session has; and the first that is too high.

    Raises UserError where none can be taken.
    """
    folder = perflogs / system / FOLDER
    if folder.parent.is_symlink():  # whoever makes a link must not choose where we write
        raise UserError(folder.parent, "no number for this session: it is a link", "a folder")
    try:
        locks.make_folder(folder)
        taken = locks.numbers(folder)
        if continued and session in (has := _of_sessions(folder, taken)):
            return has[session], None
        last, beyond = highest([*taken, *_of_samples(perflogs, system)])
        too_high = TooHigh(folder / locks.name_of(beyond[0]), last) if beyond else None
        for number in range(last + 1, samples.LAST_PLACE):
            if _create(folder / locks.name_of(number), session):
                return number, too_high
    except OSError as error:
        raise UserError(
            folder,
            f"no number for this session: {error.strerror}",
            hint="Give write access to all who run checks",
        ) from None
    raise UserError(folder, "no number is left for a session", f"1 to {samples.LAST_PLACE - 1}")


def _create(path: Path, session: str) -> bool:
    """On a full disk the file is left empty: there may be space later, when samples are written."""
    try:
        return locks.create(path, f"{session}\n".encode())
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return locks.create(path, b"")


def highest(numbers: Iterable[int]) -> tuple[int, list[int]]:
    """The last number before a gap that is too large, and the numbers after the gap."""
    last, found = 0, sorted(set(numbers))
    for at, number in enumerate(found):
        if number - last > LEAP:
            return last, found[at:]
        last = number
    return last, []


def known(perflogs: Path, system: str) -> dict[str, int]:
    """The number of each session of a system, as far as the files in their folder record it."""
    folder = perflogs / system / FOLDER
    try:
        return _of_sessions(folder, locks.numbers(folder))
    except OSError:
        return {}


def _of_sessions(folder: Path, numbers: Iterable[int]) -> dict[str, int]:
    """The number of each session; files that cannot be read are skipped."""
    found: dict[str, int] = {}
    for number in sorted(numbers, reverse=True):
        path = folder / locks.name_of(number)
        try:
            text = files.read_text(path, below=folder.parents[1], limit=LONGEST)
        except (UserError, FileNotFoundError):
            continue
        found[text.removesuffix("\n")] = number
    return found


def _of_samples(perflogs: Path, system: str) -> Iterable[int]:
    """The numbers in samples, as files of numbers may be lost. One file of a session is enough."""
    first = {path.name.partition(".")[0]: path for path in samples.files(perflogs, system)}
    for path in first.values():
        try:
            yield samples.read_header(path).place
        except UserError:
            continue  # reported when its samples are read
