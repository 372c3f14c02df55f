"""Values of tests to rows of the store's tables; and how a file is read, as said at its import.

A *line* is of one job: a line of a perflog, or a test case of a run report. What lines of the same
origin share is made once. The options of an import are kept next to the copy.
"""

from __future__ import annotations

import json
import math
import re
import zoneinfo
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history.foreign import layouts
from siteproof.history.foreign.layouts import Origin, Refused
from siteproof.history.views import RUN_SHIFT
from siteproof.record.samples import MAX_DIGITS
from siteproof.units import count

ENDING = ".import"  # of the file with the options of an imported file


@dataclass(frozen=True)
class Options:
    """What was given. Raises UserError for a zone or a format that is none.

    zone: of times without a zone; empty: UTC. format: of lines above which no line of names is:
    a name in `layouts.PRESETS`, or ReFrame's format string. systems: names in the file whose lines
    count. tests: patterns of the classes that count, with * and ?. An empty one selects all.
    """

    zone: str = ""
    format: str = ""
    systems: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.zone and self.zone not in zoneinfo.available_timezones():
            raise UserError(
                "--zone",
                f"'{self.zone[:40]}' is not a time zone",
                "a name such as Europe/Zurich, or UTC",
            )
        if self.format:
            layouts.of_format(self.format)

    def takes(self, origin: Origin) -> bool:
        """Whether lines of this origin are imported."""
        if self.systems and origin.system_in_file not in self.systems:
            return False
        return not self.tests or any(fnmatchcase(origin.header.check, one) for one in self.tests)

    def __str__(self) -> str:
        """As they are typed."""
        given = {
            "--zone": [self.zone],
            "--format": [self.format],
            "--only-system": self.systems,
            "--only-test": self.tests,
        }
        words = [f"{name} '{text}'" for name, texts in given.items() for text in texts if text]
        return " ".join(words) or "no option"

    def dump(self) -> bytes:
        """The content of the file that is kept next to an imported one."""
        return f"{json.dumps(asdict(self))}\n".encode()


DEFAULT = Options()


def file_of(path: Path) -> Path:
    """The file with the options of an imported file."""
    return path.with_name(path.name + ENDING)


def of(path: Path) -> Options:
    """The options with which a file was imported. Raises UserError."""
    place = file_of(path)
    try:
        kept = files.loads(place, content(place, files.ACCOUNT))
    except FileNotFoundError:
        return DEFAULT
    except OSError as error:
        raise UserError(place, f"cannot be read: {error.strerror}") from None
    match kept:
        case {"zone": str(zone), "format": str(form), "systems": [*systems], "tests": [*tests]}:
            if all(isinstance(text, str) for text in (*systems, *tests)):
                return Options(zone, form, tuple(systems), tuple(tests))
    raise UserError(place, "not the options of an import", list(asdict(DEFAULT)))


def content(path: Path, limit: int = files.SAMPLES) -> bytes:
    """All of a file: a copy below perflogs, or one that a person imports.

    Below perflogs its owner must be trusted, and no link is followed. Raises OSError, UserError.
    """
    top = files.perflogs()
    if path.is_relative_to(top):
        return files.read(path, below=top, limit=limit)
    return files.read_named(path, limit)


MAX_REFUSED = 10_000  # lines of a file that are named
_JOB = re.compile("[!-~]*")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_EMPTY = ("", "none", "null")
_NOT_FINITE = ("nan", "inf", "infinity")
_SMALLEST, _LARGEST = 10.0**-MAX_DIGITS, 10.0**MAX_DIGITS


class LeftOut(StrEnum):
    """Which lines can be read and are not imported."""

    IN_SAMPLES = "of Siteproof's runs, whose values are in its samples"
    NOT_SELECTED = "that --only-system or --only-test leaves out"
    SILENT = "of tests without a measurement"


@dataclass(frozen=True)
class Line:
    """What a test measured in one job. words: its values, as logged. began: of the session."""

    origin: Origin
    time: datetime
    began: datetime
    node: str
    job: str
    words: Sequence[str]
    trial: int = 0


@dataclass
class File:
    """A file, and the result of reading it.

    name: of the file in its rows. turn: its number, with which the numbers of its runs begin.
    site: the system that it is imported for; empty: the one in the file. refused: lines and
    reasons, of the first MAX_REFUSED. left_out: how many lines. notes: what a user should know of
    its content. systems: the names in the file; others: those of lines that are not selected.
    session: the one in a results database whose report it is; empty: it is a file of its own.
    """

    path: Path
    name: str = ""
    turn: int = 0
    site: str = ""
    options: Options = DEFAULT
    is_report: bool = False
    refused: list[str] = field(default_factory=list)
    refused_count: int = 0
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    notes: set[str] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    session: str = ""

    def content(self) -> bytes:
        """All of it. Raises OSError, UserError."""
        return layouts.report(self.path, self.session) if self.session else content(self.path)

    def in_utc(self, text: str) -> datetime:
        """A time as ReFrame prints it, in UTC and without a zone. Raises ValueError."""
        if not _TIME.fullmatch(text):
            raise ValueError(text)
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            zone = self.options.zone or "UTC"
            self.notes.add(f"times without a zone are taken as {zone}")
            found = found.replace(tzinfo=ZoneInfo(zone))
        return layouts.instant(found.timestamp())

    def refuse(self, number: object, why: str) -> None:
        """Leave out a line."""
        self.refused_count += 1
        if self.refused_count <= MAX_REFUSED:
            place = f"{self.path}:{self.session}" if self.session else self.path
            self.refused.append(f"{place}:{number}: {harmless(why)}")

    def refused_lines(self) -> list[str]:
        """The refused lines, with file and line, and how many more there are."""
        more = self.refused_count - len(self.refused)
        return [*self.refused, *([f"{self.path}: {count(more, 'more line')}"] if more else [])]

    def leaves_out(self, line: Line) -> bool:
        """Whether a line can be read and gives no rows; it is then counted. Raises Refused."""
        why = self._why_not(line)
        if why is None:
            return False
        self.left_out[why] += 1
        if why is LeftOut.NOT_SELECTED:
            self.others.add(line.origin.system_in_file)
        return True

    def _why_not(self, line: Line) -> LeftOut | None:
        origin = line.origin
        if not self.options.takes(origin):
            return LeftOut.NOT_SELECTED
        if origin.is_ours:
            return LeftOut.IN_SAMPLES
        has_name = any(variable.name for variable in origin.variables)
        if has_name or any(_number(text) is not None for text in line.words):
            return None
        return LeftOut.SILENT

    def rows_of(self, number: int, line: Line) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The run and the narrow rows of a line. number: of the line, from 1. Raises Refused."""
        if not _JOB.fullmatch(line.job):
            raise Refused("not a valid job number")
        run = (self.turn << RUN_SHIFT) + number
        own = {"run": run, "node": line.node, "trial": line.trial}
        found = [self._row(line, place) | own for place in range(len(line.words))]
        self.systems |= {line.origin.system_in_file} - {""}
        return {
            **line.origin.run,
            "run": run,
            "time": line.time,
            "job": line.job,
            "file": self.name,
            "session": f"{line.began:%Y%m%dT%H%M%SZ}-reframe",
        }, found

    def _row(self, line: Line, place: int) -> dict[str, Any]:
        shared, text = line.origin.samples[place], line.words[place]
        number = _number(text)
        if number is None:
            return {**shared, **line.origin.no_value}
        if not line.origin.variables[place].name:
            raise Refused("a value without the name of its variable")
        if math.isnan(number):
            return {**shared, **layouts.NOT_FINITE}
        if not shared["kind"]:
            unit = shared["unit"]
            self.notes.add(f"unit '{unit}' is unknown and kept as it is" if unit else "no unit")
        return {**shared, "value": number, "digits": text}


def _number(text: str) -> float | None:
    """The number in a text: NaN if it is not finite, None if there is none.

    Raises Refused for a text that no test prints as a value.
    """
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number == 0 or _SMALLEST <= abs(number) <= _LARGEST:
            return number
    plain = text.strip().lower()
    if plain in _EMPTY:
        return None
    if plain.lstrip("+-") in _NOT_FINITE:
        return math.nan
    raise Refused(f"'{text[:40]}' is not a number that a test prints")
