"""Values of tests to rows of the store's tables.

A *line* is of one job: a line of a perflog, or a test case of a run report. What lines of the same
origin share is made once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum, StrEnum, auto
from functools import cached_property
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from siteproof.errors import harmless
from siteproof.history import rows
from siteproof.history.foreign import import_options, origins
from siteproof.history.foreign.import_options import Options
from siteproof.history.foreign.origins import FAILED, Origin, Refused
from siteproof.history.views import RUN_SHIFT
from siteproof.record import plain_tests, unit_names
from siteproof.record.samples import MAX_DIGITS, Header, Sample
from siteproof.units import count

MAX_REFUSED = 10_000  # lines of a file that are named
MAX_NAME = 200  # characters of a variable
MAX_KNOWN = 10_000  # origins that are remembered
_ANY_TIME = "2000-01-01T00:00:00+00:00"  # of a header whose runs have times of their own
_JOB = re.compile("[!-~]*")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_EMPTY = ("", "none", "null")
_NOT_FINITE = ("nan", "inf", "infinity")
_SMALLEST, _LARGEST = 10.0**-MAX_DIGITS, 10.0**MAX_DIGITS


class State(Enum):
    """What a variable has in a line."""

    VALUE = auto()
    NO_VALUE = auto()
    NOT_FINITE = auto()


class LeftOut(StrEnum):
    """Which lines can be read and are not imported."""

    IN_SAMPLES = "of Siteproof's runs, whose values are in its samples"
    NOT_SELECTED = "that --only-system or --only-test leaves out"


@dataclass(frozen=True)
class Variable:
    """A performance variable of a line. unit: as printed; empty if there is none.

    reference: ReFrame's, as `record.plain_tests.reference` writes it; empty if there is none.
    """

    name: str
    unit: str
    reference: str = ""

    def __post_init__(self) -> None:
        if "=" in self.name or "|" in self.name or len(self.name) > MAX_NAME:
            raise Refused(f"'{harmless(self.name[:40])}' is not a valid name of a variable")


@dataclass(frozen=True, eq=False)
class Known:
    """The meaning of a line's origin. variables: one for each of the line's words."""

    origin: Origin
    variables: tuple[Variable, ...]
    left_out: LeftOut | None = None
    _templates: dict[tuple[int, State], dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def _head(self) -> Header:
        references = {
            plain_tests.REFERENCE + v.name: v.reference for v in self.variables if v.reference
        }
        return Header(
            session="",
            system=self.origin.system,
            partition=self.origin.partition,
            environment=self.origin.environment,
            check=self.origin.check,
            job="",
            time=_ANY_TIME,
            mode=rows.IMPORTED,
            provenance=references,
        )

    @cached_property
    def context(self) -> rows.Context:
        """The conditions of all values."""
        return rows.context(self._head, self.origin.conditions)

    @cached_property
    def run(self) -> dict[str, Any]:
        """What the rows of all runs share."""
        return rows.run_row(self._head, "", 0, len(self.variables))

    def template(self, place: int, state: State) -> dict[str, Any]:
        """What the rows of a variable share in one state."""
        key = place, state
        if key not in self._templates:
            self._templates[key] = self._template(self.variables[place], state)
        return self._templates[key]

    def _template(self, variable: Variable, state: State) -> dict[str, Any]:
        metric, dims = f"{self.origin.check}.{variable.name}", self.origin.dims
        if state is State.VALUE:
            unit = unit_names.known(variable.unit) or harmless(variable.unit)
            sample = Sample(self._head, "", metric, Decimal(0), unit, dims=dims)
        else:
            status, why = self._failure(state)
            sample = Sample(self._head, "", metric, status=status, why=why, dims=dims)
        return rows.row(sample, 0, self.context)

    def _failure(self, state: State) -> tuple[str, str]:
        """Why there is no value: the sample's status, and the reason."""
        if state is State.NOT_FINITE:
            return "invalid", "the value is not a finite number"
        if self.origin.result in FAILED:
            return "generic", self.origin.why or "the test failed, without a value"
        return "parse", "the test gave no value"


@dataclass(frozen=True)
class Line:
    """What a test measured in one job. number: from 1. words: its values, as logged."""

    number: int
    known: Known
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
    reasons. silent: lines of tests that measure nothing. left_out: how many lines. strange_units:
    units that are unknown here. systems: the names in the file; others: those of lines that are not
    selected. known: the meaning of each different origin.
    """

    path: Path
    name: str = ""
    turn: int = 0
    site: str = ""
    options: Options = import_options.DEFAULT
    refused: list[str] = field(default_factory=list)
    more_refused: int = 0
    label: str = ""  # what the number of a line counts, if not lines
    silent: int = 0
    is_report: bool = False
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    has_local_times: bool = False
    strange_units: set[str] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    known: dict[tuple[object, ...], Known] = field(default_factory=dict)

    @property
    def zone(self) -> str:
        """The zone of times that have none."""
        return self.options.zone or "UTC"

    def in_utc(self, text: str) -> datetime:
        """A time as ReFrame prints it, in UTC and without a zone. Raises ValueError."""
        if not _TIME.fullmatch(text):
            raise ValueError(text)
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            self.has_local_times = True
            found = found.replace(tzinfo=ZoneInfo(self.zone))
        return origins.instant(found.timestamp())

    def refuse(self, number: int, why: str) -> None:
        """Leave out a line."""
        if len(self.refused) < MAX_REFUSED:
            self.refused.append(f"{self.path}:{self.label}{number}: {harmless(why)}")
        else:
            self.more_refused += 1

    def learn(
        self,
        key: tuple[object, ...],
        fields: Mapping[str, str],
        variables: tuple[Variable, ...],
        *,
        is_ours: bool,
    ) -> Known:
        """The meaning of an origin, remembered by its key. is_ours: of Siteproof's runs.

        Raises Refused.
        """
        origin = origins.of(fields, self.site)
        left_out = LeftOut.IN_SAMPLES if is_ours else None
        if not self.options.takes(origin):
            left_out = LeftOut.NOT_SELECTED
        if len(self.known) >= MAX_KNOWN:
            self.known.clear()
        self.known[key] = Known(origin, variables, left_out)
        return self.known[key]

    def leaves_out(self, known: Known, words: Sequence[str]) -> bool:
        """Whether a line can be read and gives no rows; it is then counted."""
        if known.left_out:
            self.left_out[known.left_out] += 1
            if known.left_out is LeftOut.NOT_SELECTED:
                self.others.add(known.origin.system_in_file)
            return True
        is_silent = not any(variable.name for variable in known.variables) and all(
            _state(text) is State.NO_VALUE for text in words
        )
        self.silent += is_silent
        return is_silent

    def rows_of(self, line: Line) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The run and the narrow rows of a line. Raises Refused."""
        if not _JOB.fullmatch(line.job):
            raise Refused("not a valid job number")
        known = line.known
        run = (self.turn << RUN_SHIFT) + line.number
        found = [self._row(line, place, run) for place in range(len(line.words))]
        self.systems |= {known.origin.system_in_file} - {""}
        session = f"{line.began:%Y%m%dT%H%M%SZ}-reframe"
        own = {"run": run, "time": line.time, "job": line.job, "file": self.name}
        return known.run | own | {"session": session}, found

    def _row(self, line: Line, place: int, run: int) -> dict[str, Any]:
        text, variable = line.words[place], line.known.variables[place]
        state = _state(text)
        if state is State.VALUE and not unit_names.known(variable.unit):
            self.strange_units.add(harmless(variable.unit))
        if state is not State.NO_VALUE and not variable.name:
            raise Refused("a value without the name of its variable")
        is_value = state is State.VALUE
        return line.known.template(place, state) | {
            "run": run,
            "node": line.node,
            "trial": line.trial,
            "value": float(text) if is_value else None,
            "digits": text if is_value else None,
        }

    def refused_lines(self) -> list[str]:
        """The refused lines, with file and line, and how many more there are."""
        if not self.more_refused:
            return self.refused
        return [*self.refused, f"{self.path}: {count(self.more_refused, 'more line')}"]

    def notes(self) -> Iterator[str]:
        """What a user should know of its content."""
        if self.has_local_times:
            yield f"times without a zone are taken as {self.zone}"
        if self.silent:
            yield f"{count(self.silent, 'line')} of tests that measure nothing"
        for unit in sorted(self.strange_units):
            yield f"unit '{unit}' is unknown and kept as it is" if unit else "no unit"


def _state(text: str) -> State:
    """Raises Refused for a text that no test prints as a value."""
    if _NUMBER.fullmatch(text):
        number = abs(float(text))
        if number == 0 or _SMALLEST <= number <= _LARGEST:
            return State.VALUE
    plain = text.strip().lower()
    if plain in _EMPTY:
        return State.NO_VALUE
    if plain.lstrip("+-") in _NOT_FINITE:
        return State.NOT_FINITE
    raise Refused(f"'{text[:40]}' is not a number that a test prints")
