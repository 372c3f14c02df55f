"""ReFrame's perflogs, line by line: each different origin is read once."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime

from siteproof.errors import harmless
from siteproof.history.foreign import layouts, origins
from siteproof.history.foreign.figures import File, Line, Variable
from siteproof.history.foreign.layouts import NODES, PRINTED, TIME, UNIX, Layout, bare
from siteproof.history.foreign.origins import SESSION, Refused
from siteproof.record import plain_tests

_CONTROL = bytes({*range(32), 127} - {9})  # no test prints them; they control terminals
_CUT = "its line has no end: cut short, or still being written"


def lines(file: File, data: bytes) -> Iterator[Line]:
    """All lines of a perflog that give rows. Raises UserError for another file, at its end."""
    given = file.options.format
    section = _Section(layouts.of_format(given), file) if given else None
    is_perflog = False
    for number, text in _texts(file, data):
        if TIME in text and (layout := layouts.of_header(text)):
            section, is_perflog = _Section(layout, file), True
            continue
        try:
            if section is None:
                raise Refused("no line of names is above it")
            texts, is_perflog = section.layout.cut(text), True
            line = section.line(number, texts)
        except Refused as error:
            file.refuse(number, str(error))
            continue
        if line:
            yield line
    if not is_perflog:
        raise layouts.neither(file.path)


def _texts(file: File, data: bytes) -> Iterator[tuple[int, str]]:
    """The lines with a text, and their numbers; those that are not plain text are refused."""
    for number, raw in enumerate(io.BytesIO(data), start=1):
        line = raw[:-1].removesuffix(b"\r")
        if not raw.endswith(b"\n"):
            file.refuse(number, _CUT)
        elif not line.strip():
            continue
        elif len(line.translate(None, _CONTROL)) < len(line):
            file.refuse(number, "it holds control characters")
        else:
            try:
                yield number, line.decode()
            except UnicodeDecodeError:
                file.refuse(number, "not UTF-8")


class _Section:
    """The lines of one layout."""

    def __init__(self, layout: Layout, file: File) -> None:
        self.layout, self.file = layout, file
        self.time, self.unix = layout.place(TIME, PRINTED), layout.place(UNIX)
        self.node, self.job = layout.place(NODES), layout.place("jobid")
        file.known.clear()

    def line(self, number: int, texts: list[str]) -> Line | None:
        """The values of a line; None if it is left out. Raises Refused."""
        key = tuple([texts[place] for place in self.layout.origin])
        known = self.file.known.get(key)
        if known is None:
            fields = layouts.fields(self.layout, texts)
            variables = tuple(_variable(variable, texts) for variable in self.layout.variables)
            known = self.file.learn(key, fields, variables, is_ours=bool(fields.get(SESSION)))
        words = [texts[variable.value] for variable in self.layout.variables]
        if self.file.leaves_out(known, words):
            return None
        time = self._moment(texts)
        node = "" if self.node is None else origins.node(texts[self.node])
        job = "" if self.job is None else bare(texts[self.job])
        return Line(number, known, time, time, node, job, words)

    def _moment(self, texts: list[str]) -> datetime:
        """When the job ended, in UTC. Raises Refused."""
        try:
            if self.unix is not None and (exact := bare(texts[self.unix])):
                return origins.instant(float(exact))
            return self.file.in_utc("" if self.time is None else texts[self.time])
        except ValueError:
            raise Refused("no time of the job's end") from None


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
    value, lower, upper = map(bare, cells)
    return plain_tests.reference(value, lower or None, upper or None, unit)
