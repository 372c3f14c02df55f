"""ReFrame's perflogs, line by line: each different origin is read once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from siteproof.errors import harmless
from siteproof.history.foreign import layouts, origins, source
from siteproof.history.foreign.figures import File, Known, LeftOut, Line, Variable
from siteproof.history.foreign.layouts import NODES, PRINTED, TIME, UNIX, Layout, bare
from siteproof.history.foreign.origins import FIRST, LAST, SESSION, Refused
from siteproof.record import plain_tests

LONGEST = 32_000_000  # bytes of a line
MAX_KNOWN = 10_000  # origins that are remembered
ZONES = 15 * 3600  # s; two zones differ by no more
QUARTER, APART = 900, 2  # s; zones differ by quarters of an hour, and two clocks by this
_CONTROL = bytes({*range(32), 127} - {9})  # no test prints them; they control terminals
_CUT = "its line has no end: cut short, or still being written"
_TIME_TEXT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", re.ASCII)


def lines(file: File) -> Iterator[Line]:
    """All lines of a perflog that give rows. Raises OSError, UserError."""
    given = file.options.format
    section = _Section(layouts.of_format(given), file) if given else None
    for number, text in _texts(file):
        if TIME in text and (layout := layouts.of_header(text)):
            section = _Section(layout, file)
            continue
        try:
            if section is None:
                raise Refused("no line of names is above it")
            line = section.line(number, text)
        except Refused as error:
            file.refuse(number, str(error))
            continue
        if line:
            yield line


def _texts(file: File) -> Iterator[tuple[int, str]]:
    """The lines with a text, and their numbers; those that are not plain text are refused."""
    with source.stream(file.path) as stream:
        number = 0
        while raw := stream.readline(LONGEST):
            number += 1
            line = raw[:-1].removesuffix(b"\r")
            if not raw.endswith(b"\n"):
                file.refuse(number, _CUT)
                return
            if not line.strip():
                continue
            if len(line.translate(None, _CONTROL)) < len(line):
                file.refuse(number, "it holds control characters")
                continue
            try:
                yield number, line.decode()
            except UnicodeDecodeError:
                file.refuse(number, "not UTF-8")


class _Section:
    """The lines of one layout. known: the meaning of each different origin."""

    def __init__(self, layout: Layout, file: File) -> None:
        self.layout, self.file = layout, file
        self.known: dict[tuple[str, ...], Known] = {}
        self.zone = ZoneInfo(file.zone)
        self.time, self.unix = layout.place(TIME, PRINTED), layout.place(UNIX)
        self.node, self.job = layout.place(NODES), layout.place("jobid")

    def line(self, number: int, text: str) -> Line | None:
        """The values of a line; None if it is left out. Raises Refused."""
        texts = self.layout.cut(text)
        key = tuple([texts[place] for place in self.layout.origin])
        known = self.known.get(key)
        if known is None:
            known = self._read(key, texts)
        words = [texts[variable.value] for variable in self.layout.variables]
        if self.file.leaves_out(known, words):
            return None
        time = self._moment(texts)
        node = "" if self.node is None else origins.node(texts[self.node])
        job = "" if self.job is None else bare(texts[self.job])
        return Line(number, known, time, time, node, job, words)

    def _read(self, key: tuple[str, ...], texts: list[str]) -> Known:
        """The meaning of an origin. Raises Refused."""
        found = layouts.fields(self.layout, texts)
        variables = tuple(_variable(variable, texts) for variable in self.layout.variables)
        origin = origins.of(found, self.file.site)
        left_out = None
        if not self.file.options.takes(origin):
            left_out = LeftOut.NOT_SELECTED
        elif found.get(SESSION):
            left_out = LeftOut.IN_SAMPLES
        if len(self.known) >= MAX_KNOWN:
            self.known.clear()
        self.known[key] = Known(origin, variables, left_out)
        return self.known[key]

    def _moment(self, texts: list[str]) -> datetime:
        """When the job ended, in UTC. Raises Refused."""
        exact = None if self.unix is None else _instant(texts[self.unix])
        local = None if self.time is None else _local(texts[self.time])
        if exact and local:
            apart = (exact - local.replace(tzinfo=None)).total_seconds()
            rest = (apart + QUARTER / 2) % QUARTER - QUARTER / 2
            if abs(apart) > ZONES or abs(rest) > APART:
                raise Refused("its two times differ by more than a zone")
        found = exact or (local and self._in_utc(local))
        if not found or not FIRST <= found.year <= LAST:
            raise Refused("no time of the job's end")
        return found

    def _in_utc(self, local: datetime) -> datetime | None:
        if local.tzinfo is None:
            self.file.has_local_times = True
            local = local.replace(tzinfo=self.zone)
        try:
            return local.astimezone(UTC).replace(tzinfo=None)
        except OverflowError:
            return None


@lru_cache(1000)
def _local(text: str) -> datetime | None:
    """A time as ReFrame prints it; None: it is none."""
    try:
        return datetime.fromisoformat(text) if _TIME_TEXT.fullmatch(text) else None
    except ValueError:
        return None


def _instant(text: str) -> datetime | None:
    """The time of seconds since 1970, in UTC; None: it is none."""
    try:
        return origins.instant(float(text))
    except ValueError:
        return None


def _variable(place: layouts.Variable, texts: list[str]) -> Variable:
    """A variable as the lines of an origin have it. Raises Refused."""
    named = "" if place.named is None else bare(texts[place.named])
    if place.name and named not in ("", place.name):
        raise Refused(f"'{named[:40]}' in the column of {place.name}")
    unit = "" if place.unit is None else bare(texts[place.unit])
    reference = _reference([texts[one] for one in place.reference], unit)
    return Variable(harmless(place.name or named), unit, reference)


def _reference(cells: list[str], unit: str) -> str:
    """The reference in these cells, as `plain_tests.reference` writes it; empty: none."""
    if len(cells) != 3:  # noqa: PLR2004
        return ""
    value, lower, upper = (cell.rpartition("=")[2].strip() for cell in cells)
    return plain_tests.reference(value, _limit(lower), _limit(upper), unit)


def _limit(text: str) -> float | None:
    """A limit as ReFrame prints it; None if there is none, or another text is in its place."""
    try:
        return float(text)
    except ValueError:
        return None
