"""Values of tests to rows of the store's tables.

A *line* is of one job: a line of a perflog, or a test case of a run report. What lines of the same
origin share is made once.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from siteproof.errors import harmless
from siteproof.history.foreign import import_options, origins
from siteproof.history.foreign.import_options import Options
from siteproof.history.foreign.origins import Origin, Refused
from siteproof.history.views import RUN_SHIFT
from siteproof.record.samples import MAX_DIGITS
from siteproof.units import count

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
    SILENT = "of tests that measure nothing"


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
    """

    path: Path
    name: str = ""
    turn: int = 0
    site: str = ""
    options: Options = import_options.DEFAULT
    is_report: bool = False
    refused: list[str] = field(default_factory=list)
    refused_count: int = 0
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    notes: set[str] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def in_utc(self, text: str) -> datetime:
        """A time as ReFrame prints it, in UTC and without a zone. Raises ValueError."""
        if not _TIME.fullmatch(text):
            raise ValueError(text)
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            zone = self.options.zone or "UTC"
            self.notes.add(f"times without a zone are taken as {zone}")
            found = found.replace(tzinfo=ZoneInfo(zone))
        return origins.instant(found.timestamp())

    def refuse(self, number: object, why: str) -> None:
        """Leave out a line."""
        self.refused_count += 1
        if self.refused_count <= MAX_REFUSED:
            self.refused.append(f"{self.path}:{number}: {harmless(why)}")

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
            return {**shared, **origins.NOT_FINITE}
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
