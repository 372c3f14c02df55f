"""Times as ReFrame logs them: seconds since 1970, or texts with a zone or without."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from siteproof.errors import UserError
from siteproof.history.foreign.arrays import Bytes, Ints
from siteproof.history.foreign.cells import gather

BAD = np.iinfo(np.int64).min  # what is no time
_SECOND = 1_000_000
_TEN = 10  # digits of a second between 2001 and 2286
_PLACES = 6  # of a second, the others are cut off
_WHOLE = 12  # digits before the point, at most
_LONGEST = _WHOLE + 1 + _PLACES
_LENGTH = len("2026-11-21T19:39:48")
_DIGITS = np.array([i for i, c in enumerate("2026-11-21T19:39:48") if c.isdigit()])
_SIGNS = {4: "-", 7: "-", 13: ":", 16: ":"}
_DAY = 10  # letters, and a T or a blank behind them
_TAIL = re.compile(r"(?:\.([0-9]{1,6})[0-9]*)?(Z|[+-][0-9]{2}:?[0-9]{2})?")
FIRST, LAST = (  # what lies outside is no time of a test
    int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * _SECOND for year in (2000, 2100)
)
_QUARTER, _WIDEST = 900 * _SECOND, 15 * 3600 * _SECOND  # zones are whole quarters of an hour


def zone(name: str) -> ZoneInfo | None:
    """A zone by its name, such as Europe/Zurich; None for UTC. Raises UserError."""
    if name in ("", "UTC"):
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError):  # ZoneInfoNotFoundError is a KeyError, see below
        pass
    except KeyError:
        pass
    raise UserError(
        "--zone", f"'{name[:40]}' is no time zone", "a name such as Europe/Zurich, or UTC"
    )


def of_seconds(rows: Bytes) -> Ints:
    """Microseconds since 1970 of cells such as `1795289988.3626697`; BAD where they are none."""
    if (found := _regular(rows)) is not None:
        return found
    cells = np.ascontiguousarray(rows.T)
    found = np.zeros(len(rows), dtype=np.int64)
    point = np.full(len(rows), -1)
    good, ended = np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    places = np.zeros(len(rows), dtype=np.int64)
    for number, column in enumerate(cells):
        is_digit, is_point = (column >= ord("0")) & (column <= ord("9")), column == ord(".")
        ended |= column == 0
        good &= is_digit | (column == 0) | (is_point & (point < 0))
        good &= ~(ended & (column != 0))
        point = np.where(is_point, number, point)
        used = is_digit & (places < _PLACES) & (number < _LONGEST)
        found = np.where(used, found * 10 + (column - ord("0")), found)
        places += used & (point >= 0)
    found *= 10 ** (_PLACES - places)
    whole = np.where(point < 0, (cells != 0).sum(axis=0), point)
    return _plausible(np.where(good & (whole > 0) & (whole <= _WHOLE), found, BAD))


def _regular(rows: Bytes) -> Ints | None:
    """The same where all have ten digits, a point and digits, as times of our days have."""
    if rows.shape[1] <= _TEN or not (rows[:, _TEN] == ord(".")).all():
        return None
    is_digit = (rows >= ord("0")) & (rows <= ord("9"))
    if not is_digit[:, :_TEN].all() or not (is_digit | (rows == 0))[:, _TEN + 1 :].all():
        return None
    columns = [i for i in range(_TEN + 1 + _PLACES) if i != _TEN and i < rows.shape[1]]
    digits = np.where(is_digit[:, columns], rows[:, columns] - np.uint8(ord("0")), 0)
    powers = 10 ** np.arange(_TEN + _PLACES - 1, -1, -1, dtype=np.int64)[: len(columns)]
    found: Ints = digits.astype(np.int64) @ powers
    return _plausible(found)


def of_texts(text: Bytes, starts: Ints, ends: Ints, place: ZoneInfo | None) -> tuple[Ints, bool]:
    """Microseconds since 1970 of `2026-11-21T19:39:48` and the like; BAD where it is none.

    The second value says whether one of them had no zone, and was taken as time of `place`.
    """
    found = np.full(len(starts), BAD)
    long = np.flatnonzero(ends - starts >= _LENGTH)
    if not len(long):
        return found, False
    head = gather(text, starts[long], starts[long] + _LENGTH)[:, :_LENGTH]
    digits = head[:, _DIGITS]
    good = ((digits >= ord("0")) & (digits <= ord("9"))).all(axis=1)
    for column, sign in _SIGNS.items():
        good &= head[:, column] == ord(sign)
    good &= (head[:, _DAY] == ord("T")) | (head[:, _DAY] == ord(" "))
    long, head = long[good], head[good]
    if not len(long):
        return found, False
    local = _seconds(head) * _SECOND
    tails = starts[long] + _LENGTH
    if (tails == ends[long]).all():
        found[long], naive = _from(local, place), True
    else:
        found[long], naive = _zoned(local, gather(text, tails, ends[long]), place)
    return _plausible(found), naive


def agree(unix: Ints, local: Ints) -> NDArray[np.bool_]:
    """Whether two times of one line differ by nothing but a zone."""
    apart = np.abs(unix // _SECOND * _SECOND - local // _SECOND * _SECOND)
    rest = apart % _QUARTER
    alike: NDArray[np.bool_] = (apart <= _WIDEST) & (np.minimum(rest, _QUARTER - rest) <= _SECOND)
    return alike


def _plausible(found: Ints) -> Ints:
    return np.where((found >= FIRST) & (found < LAST), found, BAD)


def _seconds(head: Bytes) -> Ints:
    """Seconds since 1970 of well-formed texts; far outside where day or hour do not exist."""
    head[:, _DAY] = ord("T")
    texts = np.ascontiguousarray(head).view(f"S{_LENGTH}").ravel()
    try:
        return texts.astype("datetime64[s]").astype(np.int64)
    except ValueError:  # a 31st of February among them
        return np.array([_one(text) for text in texts.tolist()])


def _one(text: bytes) -> int:
    try:
        return int(np.datetime64(text.decode(), "s").astype(np.int64))
    except ValueError:
        return LAST


def _zoned(local: Ints, tails: Bytes, place: ZoneInfo | None) -> tuple[Ints, bool]:
    """Local times in UTC, by what follows them: a fraction, a zone, both or neither."""
    texts = tails.view(f"S{tails.shape[1]}").ravel()
    if (tails == tails[0]).all():
        words, each = texts[:1], np.zeros(len(texts), dtype=np.int64)
    else:
        words, each = np.unique(texts, return_inverse=True)
    found, naive = np.full(len(local), BAD), False
    for number, word in enumerate(words.tolist()):
        match, mine = _TAIL.fullmatch(word.decode("latin-1")), each == number
        if not match:
            continue
        fraction = int((match[1] or "0").ljust(6, "0"))
        if match[2]:
            found[mine] = local[mine] + fraction - _offset(match[2])
        else:
            naive = True
            found[mine] = _from(local[mine], place) + fraction
    return found, naive


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    minutes = 60 * int(text[1:3]) + int(text[-2:])
    return (-1 if text[0] == "-" else 1) * minutes * 60 * _SECOND


def _from(local: Ints, place: ZoneInfo | None) -> Ints:
    """Local times of a zone in UTC. Of an hour that comes twice, in autumn, it is the first."""
    if place is None:
        return local
    quarters, each = np.unique(local // _QUARTER, return_inverse=True)
    start = datetime(1970, 1, 1)  # noqa: DTZ001  local time
    offsets = []
    for quarter in quarters.tolist():
        try:
            when = (start + timedelta(minutes=15 * quarter)).replace(tzinfo=place)
            offsets.append(int((when.utcoffset() or timedelta()).total_seconds()))
        except OverflowError:
            offsets.append(0)
    return local - np.array(offsets, dtype=np.int64)[each] * _SECOND
