"""Values of tests to rows of the store's tables, with a few statements of SQL for many lines.

A *line* is of one job: a line of a perflog, or a test case of a run report. Readers fill the table
`foreign_lines` (see LINES), and give the meaning of each different origin of a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

import duckdb

from siteproof import units
from siteproof.errors import harmless
from siteproof.history import rows, tables
from siteproof.history.foreign.chosen_lines import ALL, Only
from siteproof.history.foreign.origins import FAILED, MODE, Origin
from siteproof.history.views import RUN_SHIFT
from siteproof.record import plain_tests, unit_names
from siteproof.record.samples import MAX_DIGITS, Header
from siteproof.units import count

SOURCE = "reframe"
FIRST, LAST = "TIMESTAMP '2000-01-01'", "TIMESTAMP '2100-01-01'"  # limits of a test's time
MAX_REFUSED = 10_000  # lines of a file that are named
# run: its file's turn and its number, from 1. origin: a key of the argument `origins` of `add`.
# words: the values of its variables, as logged. why: the reason if it is refused, or empty.
LINES = {
    "run": "UBIGINT",
    "origin": "VARCHAR",
    "time": "TIMESTAMP",
    "began": "TIMESTAMP",
    "node": "VARCHAR",
    "job": "VARCHAR",
    "trial": "INTEGER",
    "words": "VARCHAR[]",
    "why": "VARCHAR",
}
_FILES = {"turn": "UBIGINT", "file": "VARCHAR"}
_ORIGINS = {
    "origin": "VARCHAR",
    "place": "UINTEGER",
    "why_not": "VARCHAR",
    "measures_nothing": "BOOLEAN",
    "system": "VARCHAR",
    "partition": "VARCHAR",
    "environment": "VARCHAR",
    "check_name": "VARCHAR",
    "provenance": "VARCHAR",
}
_TEMPLATES = {
    "place": "UINTEGER",
    "variable": "BIGINT",
    "state": "VARCHAR",
    "metric": "VARCHAR",
    "unit": "VARCHAR",
    "factor": "DOUBLE",
    "kind": "VARCHAR",
    "status": "VARCHAR",
    "why": "VARCHAR",
    "dims": "VARCHAR",
    "context": "UBIGINT",
    "series": "UBIGINT",
}
NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?"
VALUE, NO_VALUE, NOT_FINITE, REFUSED = "value", "no value", "not finite", "refused"
_EMPTY = "('', 'none', 'null')"
_FIGURES = f"""
CREATE OR REPLACE TEMP TABLE foreign_figures AS
SELECT run, place, node, trial, variable, word, CASE
        WHEN regexp_full_match(word, '{NUMBER}') THEN CASE
            WHEN as_number = 0 OR abs(as_number) BETWEEN 1e-{MAX_DIGITS} AND 1e{MAX_DIGITS}
            THEN '{VALUE}' ELSE '{REFUSED}' END
        WHEN lower(trim(word)) IN {_EMPTY} THEN '{NO_VALUE}'
        WHEN ltrim(lower(trim(word)), '+-') IN ('nan', 'inf', 'infinity') THEN '{NOT_FINITE}'
        ELSE '{REFUSED}' END AS state,
    CASE WHEN state = '{VALUE}' THEN as_number END AS value
FROM (
    SELECT *, TRY_CAST(word AS DOUBLE) AS as_number
    FROM (SELECT run, origin, node, trial, unnest(words) AS word,
              unnest(range(len(words))) AS variable
          FROM foreign_lines)
) JOIN foreign_origins USING (origin)"""
# Lines without a row: refused ones with the reason; those that measure nothing with NULL.
_LEFT_OUT = f"""
CREATE OR REPLACE TEMP TABLE foreign_left_out AS
SELECT run, CASE
        WHEN why_not <> '' THEN why_not
        WHEN is_silent THEN NULL
        WHEN why <> '' THEN why
        ELSE concat('''', left(wrong, 40), ''' is not a number that a test prints') END AS reason
FROM (
    SELECT *, measures_nothing AND len(
        list_filter(words, lambda word: lower(trim(word)) NOT IN {_EMPTY})) = 0 AS is_silent
    FROM foreign_lines JOIN foreign_origins USING (origin)
) LEFT JOIN (
    SELECT run, min(word) AS wrong FROM foreign_figures WHERE state = '{REFUSED}' GROUP BY run
) USING (run)
WHERE why_not <> '' OR is_silent OR why <> '' OR wrong IS NOT NULL"""
_RUNS = f"""
INSERT INTO new_runs BY NAME
SELECT run, system, partition, environment, check_name, job, time, file,
    strftime(began, '%Y%m%dT%H%M%SZ-{SOURCE}') AS session, '' AS campaign, '{MODE}' AS mode,
    '{SOURCE}' AS source, 0 AS place, '' AS expected, len(words)::INTEGER AS samples,
    '{{}}' AS conditions, provenance
FROM foreign_lines JOIN foreign_origins USING (origin)
JOIN foreign_files ON turn = run >> {RUN_SHIFT} ANTI JOIN foreign_left_out USING (run)"""
_SAMPLES = """
INSERT INTO new_samples BY NAME
SELECT run, node, metric, value, unit, kind, status, why, trial, dims, context,
    series, CASE WHEN value IS NOT NULL THEN factor END AS factor,
    CASE WHEN value IS NOT NULL AND word <> value::VARCHAR THEN word END AS digits
FROM foreign_figures JOIN foreign_templates USING (place, variable, state)
ANTI JOIN foreign_left_out USING (run)"""
_SYSTEMS = f"""
SELECT DISTINCT run >> {RUN_SHIFT}, place FROM foreign_lines JOIN foreign_origins USING (origin)
WHERE why_not = '{{}}'"""
_USED = f"""
SELECT DISTINCT run >> {RUN_SHIFT}, place, variable, state FROM foreign_figures
ANTI JOIN foreign_left_out USING (run)"""


# Why a line is left out that can be read; no text in a file contains a control character.
IN_SAMPLES, NOT_SELECTED = "\x1fsamples", "\x1fnot selected"


@dataclass(frozen=True)
class Variable:
    """A performance variable of a line. unit: as printed; empty if there is none.

    reference: ReFrame's, as `record.plain_tests.reference` writes it; empty if there is none.
    """

    name: str
    unit: str
    reference: str = ""


@dataclass(frozen=True)
class Known:
    """The meaning of a line's origin. variables: one for each of the line's words.

    left_out: why its lines are not imported, IN_SAMPLES or NOT_SELECTED; empty: they are.
    """

    origin: Origin
    variables: tuple[Variable, ...]
    left_out: str = ""


class Note(Enum):
    """A note on the content of a file, with a text."""

    LOCAL_TIMES = auto()  # the zone in which they are read
    SILENT_LINES = auto()  # the number of lines of tests that measure nothing
    UNKNOWN_UNIT = auto()  # the unit
    NO_UNIT = auto()


@dataclass
class File:
    """A file, and the result of reading it.

    name: of the file in its rows. turn: its number, with which the numbers of its runs begin.
    site: the system that it is imported for; empty: the one in the file. zone: of times without a
    zone. only: which lines are imported. refused: lines and reasons. silent: lines of tests that
    measure nothing. in_samples, not_selected: lines that are left out. strange_units: units that
    are unknown here. systems: the names in the file; others: those of lines that are not selected.
    """

    path: Path
    name: str
    turn: int
    site: str
    zone: str
    only: Only = ALL
    refused: list[tuple[int, str]] = field(default_factory=list)
    more_refused: int = 0
    label: str = ""  # what the number of a line counts, if not lines
    silent: int = 0
    in_samples: int = 0
    not_selected: int = 0
    has_local_times: bool = False
    strange_units: set[str] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    @property
    def run(self) -> int:
        """The number that comes before those of its runs."""
        return self.turn << RUN_SHIFT

    def refuse(self, number: int, why: str) -> None:
        """Leave out a line."""
        if len(self.refused) < MAX_REFUSED:
            self.refused.append((number, harmless(why)))
        else:
            self.more_refused += 1

    def leave_out(self, number: int, why: str | None) -> None:
        """Leave out a line, for this reason; None: its test measures nothing."""
        if why is None:
            self.silent += 1
        elif why == IN_SAMPLES:
            self.in_samples += 1
        elif why == NOT_SELECTED:
            self.not_selected += 1
        else:
            self.refuse(number, why)

    def refused_lines(self) -> list[str]:
        """The refused lines, with file and line, in the order of the lines."""
        found = [f"{self.path}:{self.label}{line}: {why}" for line, why in sorted(self.refused)]
        if self.more_refused:
            found.append(f"{self.path}: {count(self.more_refused, 'more line')}")
        return found

    def notes(self) -> list[tuple[Note, str]]:
        """What a user should know of its content."""
        found: list[tuple[Note, str]] = []
        if self.has_local_times:
            found.append((Note.LOCAL_TIMES, self.zone))
        if self.silent:
            found.append((Note.SILENT_LINES, str(self.silent)))
        for unit in sorted(self.strange_units):
            found.append((Note.UNKNOWN_UNIT if unit else Note.NO_UNIT, unit))
        return found


Files = Mapping[int, File]  # by their turns


def add(
    connection: duckdb.DuckDBPyConnection, files: Files, origins: Mapping[str, Known | str]
) -> None:
    """Add the values of `foreign_lines` to the new rows.

    origins: by their keys, or the reason why lines of one are refused.
    """
    found = [_origin_row(place, key, origins[key]) for place, key in enumerate(origins)]
    tables.make(connection, "foreign_origins", _ORIGINS, tables.columns(found, _ORIGINS))
    names = [{"turn": turn, "file": file.name} for turn, file in files.items()]
    tables.make(connection, "foreign_files", _FILES, tables.columns(names, _FILES))
    connection.execute(_FIGURES)
    connection.execute(_LEFT_OUT)
    _add_templates(connection, files, list(origins.values()))
    connection.execute(_RUNS)
    connection.execute(_SAMPLES)
    for run, why in connection.execute("SELECT run, reason FROM foreign_left_out").fetchall():
        file = files[run >> RUN_SHIFT]
        file.leave_out(run - file.run, why)
    values = list(origins.values())
    for turn, place in connection.execute(_SYSTEMS.format(NOT_SELECTED)).fetchall():
        known = values[place]
        assert isinstance(known, Known)
        files[turn].others.add(known.origin.system_in_file)


def _origin_row(place: int, key: str, known: Known | str) -> dict[str, Any]:
    row = dict.fromkeys(_ORIGINS, "") | {"origin": key, "place": place, "measures_nothing": False}
    if isinstance(known, str):
        return row | {"why_not": known}
    origin = known.origin
    references = {
        plain_tests.REFERENCE + v.name: v.reference for v in known.variables if v.reference
    }
    return row | {
        "why_not": known.left_out,
        "provenance": rows.canonical(references),
        "measures_nothing": not any(variable.name for variable in known.variables),
        "system": origin.system,
        "partition": origin.partition,
        "environment": origin.environment,
        "check_name": origin.check,
    }


def _add_templates(
    connection: duckdb.DuckDBPyConnection, files: Files, known: list[Known | str]
) -> None:
    """Add what all values of one origin, variable and state share, and their contexts."""
    templates: dict[tuple[int, int, str], dict[str, Any]] = {}
    contexts: dict[int, rows.Context] = {}
    for turn, place, variable, state in connection.execute(_USED).fetchall():
        used = known[place]
        assert isinstance(used, Known)  # the lines of the others are refused
        file, unit = files[turn], used.variables[variable].unit
        file.systems |= {used.origin.system_in_file} - {""}
        if state == VALUE and not unit_names.known(unit):
            file.strange_units.add(harmless(unit))
        key = place, variable, state
        if key not in templates:
            context = contexts.setdefault(place, _context(used.origin))
            templates[key] = _template(used.origin, used.variables[variable], state, context)
            templates[key] |= {"place": place, "variable": variable, "state": state}
    rows_ = list(templates.values())
    tables.make(connection, "foreign_templates", _TEMPLATES, tables.columns(rows_, _TEMPLATES))
    tables.add_contexts(connection, contexts.values())


def _context(origin: Origin) -> rows.Context:
    head = Header(
        session="",
        system=origin.system,
        partition=origin.partition,
        environment=origin.environment,
        check=origin.check,
        job="",
        time="",
        mode=MODE,
    )
    return rows.context(head, origin.conditions)


def _template(
    origin: Origin, variable: Variable, state: str, context: rows.Context
) -> dict[str, Any]:
    metric = f"{origin.check}.{variable.name}"
    found = {
        "metric": metric,
        "unit": "",
        "factor": 1.0,
        "kind": "",
        "status": "ok",
        "why": "",
        "dims": rows.canonical(origin.dims),
        "context": context.key,
        "series": context.part ^ rows.of_metric(metric) ^ rows.of_dims(origin.dims),
    }
    if state == VALUE:
        unit = unit_names.known(variable.unit)
        if not unit:
            return found | {"unit": harmless(variable.unit)}
        return found | {"unit": unit, "factor": rows.factor(unit), "kind": units.kind(unit)}
    if state == NOT_FINITE:
        return found | {"status": "invalid", "why": "the value is not a finite number"}
    if origin.result in FAILED:
        why = origin.why or "the test failed, without a value"
        return found | {"status": "generic", "why": why}
    return found | {"status": "parse", "why": "the test gave no value"}
