"""ReFrame's perflogs: DuckDB splits lines into cells, and each different origin is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np

from siteproof.errors import harmless
from siteproof.history import tables
from siteproof.history.foreign import chosen_lines, columns, figures, origins, source
from siteproof.history.foreign.chosen_lines import Only
from siteproof.history.foreign.columns import NODES, SESSION, TIME, UNIX, Layout
from siteproof.history.foreign.figures import (
    FIRST,
    IN_SAMPLES,
    LAST,
    NOT_SELECTED,
    File,
    Files,
    Known,
    Variable,
)
from siteproof.history.foreign.origins import Origin, Refused
from siteproof.history.foreign.repair import NOT_A_CELL, repaired, wrong_column
from siteproof.history.store import quoted
from siteproof.history.views import RUN_SHIFT

MAX_NAME = 200  # characters of a variable
BLOCK = 32_000_000  # bytes read at once, and that wait; a longer line is refused
# The names in perflogs of Siteproof's settings (checks/settings.py), before they had SESSION.
OURS = (
    "job_completion_time_unix|version|display_name|system|partition|environ|jobid|result|"
    "perf_var|perf_value|perf_unit|perf_ref|perf_lower_thres|perf_upper_thres|perf_result"
)
_OURS = tuple(OURS.split("|"))
_NOTHING = ("null", "None")
_CONTROL = bytes({*range(32), 127} - {9, 10})  # no test prints them; they control terminals
_CUT = "its line has no end: cut short, or still being written"
_MARK = "\x1f"  # separates the texts of an origin's key; no cell contains it
_TIME_TEXT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?"
_ZONED = r".*\d(Z|[+-]\d\d:?\d\d)"
# The two times of a line may differ by a zone, which is a multiple of a quarter of an hour.
_ZONES_APART = """abs(epoch(exact) - epoch(local)) > 15 * 3600
    OR abs((epoch(exact) - epoch(local) + 450) % 900 - 450) > 2"""
_LOCAL = f"""
SELECT DISTINCT run >> {RUN_SHIFT} FROM foreign_lines
WHERE NOT regexp_full_match(local_text, '{_ZONED}')"""
_NODE = "[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"


def looks_like(first: str) -> bool:
    """Whether a file's first line is one of a perflog."""
    return bool(columns.of_header(first) or columns.of_line(first))


@dataclass
class Sheet:
    """Lines with the same layout. runs: the number of each."""

    layout: Layout
    delimiter: str
    site: str
    zone: str
    only: Only
    runs: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass
class Waiting:
    """Lines that wait until there are many: SQL takes as long for few. size: in characters."""

    sheets: dict[tuple[object, ...], Sheet] = field(default_factory=dict)
    size: int = 0

    def add(
        self, file: File, first: int, lines: Sequence[str], layout: Layout, delimiter: str
    ) -> None:
        """Add consecutive lines. first: the number of the first one."""
        key = layout, delimiter, file.site, file.zone, file.only
        if key not in self.sheets:
            self.sheets[key] = Sheet(*key)
        sheet = self.sheets[key]
        sheet.runs += range(file.run + first, file.run + first + len(lines))
        sheet.lines += lines
        self.size += sum(map(len, lines))

    def forget(self, turn: int) -> None:
        """Remove the lines of a file that cannot be read to its end."""
        for sheet in self.sheets.values():
            kept = [i for i, run in enumerate(sheet.runs) if run >> RUN_SHIFT != turn]
            sheet.runs = [sheet.runs[i] for i in kept]
            sheet.lines = [sheet.lines[i] for i in kept]

    def flush(self, connection: duckdb.DuckDBPyConnection, files: Files) -> None:
        """Add the figures of all lines to the new rows."""
        for sheet in self.sheets.values():
            if sheet.lines:
                _add(connection, files, sheet)
        self.sheets.clear()
        self.size = 0


def read(file: File, waiting: Waiting, flush: Callable[[], None]) -> None:
    """Add all lines of a perflog; flush when there are many. Raises OSError, UserError."""
    number, layout = 1, None
    unnamed: dict[int, Layout] = {}  # of lines without names, by how many cells they have
    for block in _blocks(file.path):
        if not block.endswith(b"\n"):
            file.refuse(number, _CUT)
            break
        lines = _lines(file, block, number)
        names = [i for i, line in enumerate(lines) if TIME in line and columns.of_header(line)]
        start = 0
        for end in (*names, len(lines)):
            _wait(waiting, file, number + start, lines[start:end], layout, unnamed)
            if end < len(lines):
                layout, start = columns.of_header(lines[end]), end + 1
        number += len(lines)
        if waiting.size > BLOCK:
            flush()


def _wait(
    waiting: Waiting,
    file: File,
    first: int,
    lines: Sequence[str],
    layout: Layout | None,
    unnamed: dict[int, Layout],
) -> None:
    """Add the lines below one line of names; lines without names have a layout each."""
    if layout and all(line.count(layout.delimiter) == layout.marks for line in lines):
        waiting.add(file, first, lines, layout, layout.delimiter)
        return
    for number, line in enumerate(lines, start=first):
        if not line.strip(" \t"):
            continue
        try:
            own = layout or _unnamed(line, unnamed)
            if line.count(own.delimiter) == own.marks:
                waiting.add(file, number, [line], own, own.delimiter)
            else:
                waiting.add(file, number, [repaired(line, own)], own, NOT_A_CELL)
        except Refused as error:
            file.refuse(number, str(error))


def _unnamed(line: str, layouts: dict[int, Layout]) -> Layout:
    """The layout of a line of the formats before 4.0, by how many cells it has. Raises Refused."""
    count = line.count("|")
    if count not in layouts:
        found = columns.of_line(line)
        if found is None:
            raise Refused("not a line of a perflog of ReFrame")
        layouts[count] = found
    return layouts[count]


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines of a file, many at once; the last block may have no line end."""
    rest = b""
    with source.stream(path) as stream:
        while len(rest) <= BLOCK and (data := stream.read(BLOCK)):
            whole, end, rest = (rest + data).rpartition(b"\n")
            if end:
                yield whole + end
    if rest:
        yield rest


def _lines(file: File, block: bytes, first: int) -> list[str]:
    """The lines of a block; those that are not plain text are refused, and returned empty."""
    if len(block.translate(None, _CONTROL)) == len(block):
        try:
            return block.decode().split("\n")[:-1]
        except UnicodeDecodeError:
            pass  # the loop finds the line
    lines = []
    for number, raw in enumerate(block.split(b"\n")[:-1], start=first):
        line, why = raw.removesuffix(b"\r"), ""
        try:
            text = line.decode()
        except UnicodeDecodeError:
            why = "not UTF-8"
        if len(line.translate(None, _CONTROL)) < len(line):
            why = "it holds control characters"
        if why and line.strip():
            file.refuse(number, why)
        lines.append("" if why else text)
    return lines


def _add(connection: duckdb.DuckDBPyConnection, files: Files, sheet: Sheet) -> None:
    """Add the figures of a sheet's lines to the new rows."""
    incoming = {"run": np.array(sheet.runs, dtype=np.uint64), "line": tables.array(sheet.lines)}
    connection.register("incoming", incoming)
    connection.execute(_cut(sheet))
    connection.unregister("incoming")
    if sheet.layout.column(UNIX) is None:
        for (turn,) in connection.execute(_LOCAL).fetchall():
            files[turn].has_local_times = True
    keys = connection.execute("SELECT DISTINCT origin FROM foreign_lines").fetchall()
    known = {key: _known(sheet, key) for (key,) in keys}
    figures.add(connection, files, known)


def _cut(sheet: Sheet) -> str:
    """SQL that makes `foreign_lines` of the lines in `incoming`."""
    layout = sheet.layout

    def cell(column: int | None) -> str:
        return "NULL" if column is None else f"x[{column + 1}]"

    def named(column: int | None, name: str) -> str:
        text, start = cell(column), len(f"{name}=") + 1
        return f"substr({text}, CASE WHEN starts_with({text}, '{name}=') THEN {start} ELSE 1 END)"

    origin = [cell(column) for column in layout.origin]
    values = []
    for variable in layout.variables:
        value = cell(variable.value)
        if variable.value in layout.assigned:  # name=value; strpos is 0 if there is no name
            origin.append(f"left({value}, greatest(strpos({value}, '=') - 1, 0))")
            value = f"substr({value}, strpos({value}, '=') + 1)"
        values.append(value)
    origin += [cell(column) for v in layout.variables for column in v.reference]
    local = cell(layout.column(TIME))
    local_time = f"""CASE WHEN exact IS NOT NULL THEN TRY_CAST({local} AS TIMESTAMP)
        WHEN NOT regexp_full_match({local}, '{_TIME_TEXT}') THEN NULL
        WHEN regexp_full_match({local}, '{_ZONED}') THEN TRY_CAST({local} AS TIMESTAMPTZ)
        ELSE timezone({quoted(sheet.zone)}, TRY_CAST({local} AS TIMESTAMP)) END"""
    # Seconds since 1970. Impossible values are excluded before they become a time.
    exact = f"TRY_CAST({cell(layout.column(UNIX))} AS DOUBLE)"
    return f"""
CREATE OR REPLACE TEMP TABLE foreign_lines AS
SELECT *, time AS began, CASE
        WHEN time IS NULL OR NOT time BETWEEN {FIRST} AND {LAST}
        THEN 'no time of the job''s end'
        WHEN {_ZONES_APART} THEN 'its two times differ by more than a zone'
        WHEN NOT regexp_full_match(job, '[!-~]*') THEN 'not a valid job number'
        ELSE '' END AS why
FROM (
    SELECT run, {_joined(origin)} AS origin, local_text, local, exact,
        coalesce(exact, local) AS time, CASE WHEN regexp_full_match(node_text, '{_NODE}')
            AND node_text NOT IN ('null', 'None') THEN node_text ELSE '' END AS node,
        CASE WHEN job_text IN ('null', 'None') THEN '' ELSE coalesce(job_text, '') END AS job,
        0 AS trial, words
    FROM (
        SELECT run, {local} AS local_text, CASE WHEN {exact} BETWEEN 0 AND 1e10
            THEN make_timestamp(({exact} * 1e6)::BIGINT) END AS exact,
            {local_time}::TIMESTAMP AS local,
            trim({named(layout.column(NODES), NODES)}) AS node_text,
            {named(layout.column("jobid"), "jobid")} AS job_text,
            [{", ".join(values)}]::VARCHAR[] AS words, x
        FROM (SELECT run, string_split(line, {quoted(sheet.delimiter)}) AS x FROM incoming)
    )
)"""


def _joined(texts: list[str]) -> str:
    return f"concat_ws({quoted(_MARK)}, {', '.join(texts)})" if texts else "''"


def _known(sheet: Sheet, key: str) -> Known | str:
    """The meaning of an origin's texts, or why lines with them are refused."""
    layout, texts = sheet.layout, key.split(_MARK)
    cells = dict(zip(layout.origin, texts, strict=False))
    found = columns.fields(layout, cells)
    if wrong := wrong_column(found):
        return f"'{harmless(found[wrong][:40])}' is not a valid {wrong}"
    rest = iter(texts[len(layout.origin) :])
    prefixes = {v.value: next(rest) for v in layout.variables if v.value in layout.assigned}
    variables = []
    try:
        for variable in layout.variables:
            name = _name(variable, prefixes.get(variable.value, ""), found)
            unit = "" if variable.unit is None else _unit(cells[variable.unit])
            reference = columns.reference([next(rest) for _ in variable.reference], unit)
            variables.append(Variable(name, unit, reference))
        origin = origins.of(found, sheet.site, tuple(variable.name for variable in variables))
    except Refused as error:
        return str(error)
    return Known(origin, tuple(variables), _left_out(sheet, found, origin))


def _name(variable: columns.Variable, prefix: str, found: Mapping[str, str]) -> str:
    """The name of a variable. prefix: what is before `=` in its column. Raises Refused."""
    if prefix in _NOTHING:
        prefix = ""
    if variable.name and prefix not in ("", variable.name):
        raise Refused(f"'{harmless(prefix[:40])}' in the column of {variable.name}")
    name = variable.name or prefix or found.get("perf_var", "")
    if "=" in name or "|" in name or len(name) > MAX_NAME:
        raise Refused(f"'{harmless(name[:40])}' is not a valid name of a variable")
    return harmless(name)


def _left_out(sheet: Sheet, found: Mapping[str, str], origin: Origin) -> str:
    """Why lines of an origin are not imported, as in Known."""
    if not sheet.only.takes(origin):
        return NOT_SELECTED
    if found.get(SESSION):
        return IN_SAMPLES
    # Before there was SESSION, only Siteproof's own checks had samples.
    is_ours = sheet.layout.names == _OURS and origin.check in chosen_lines.own_checks()
    return IN_SAMPLES if is_ours else ""


def _unit(cell: str) -> str:
    """A unit without `units=`; empty if there is none."""
    text = cell.rpartition("=")[2].strip()
    return "" if text in _NOTHING else text
