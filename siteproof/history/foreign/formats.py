"""Perflogs and run reports of plain ReFrame 2 to 4, as rows of the view `samples`.

`siteproof import` copies them to `perflogs/<system>/imported/`. Rows are derived from the copies.
Perflogs are read line by line. Of run reports, JSON of versions 3 and 4: 3.x has `perfvars`, a list
of objects, and no time of a case; 4.x has `perfvalues`, by `system:partition:variable`, [value,
reference, lower, upper, unit], and the time. Figures that were restored from another session are in
that session's report.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history import tables
from siteproof.history.foreign import figures, layouts
from siteproof.history.foreign.figures import File, Line
from siteproof.history.foreign.layouts import (
    JOB,
    MAX_KNOWN,
    NAMES,
    NO_CONDITION,
    NODES,
    PRINTED,
    SESSION,
    TIME,
    UNIX,
    Layout,
    Origin,
    Refused,
    Variable,
    bare,
)
from siteproof.history.tables import Context
from siteproof.record import samples

_REFERENCE = ("reference", "thres_lower", "thres_upper")  # of a variable of 3.x
_OURS = "reframe_settings.py"  # the settings file of Siteproof's runs
_NO_FIELD = NO_CONDITION - {*NAMES, "system", "partition", "result", "fail_reason"}
_PREFIXES = ("build_", "dependencies_", "time_", "job_std")


class Report:
    """A run report. Raises UserError for another file."""

    PART = " test case "  # what the number of a line counts

    def __init__(self, file: File, data: bytes) -> None:
        self.file, self.report = file, _loaded(file.path, data)
        info = self.report["session_info"]
        self.start, self.end = (_of_session(file, info, key) for key in ("time_start", "time_end"))
        settings = info.get("config_files")
        # Of a run with Siteproof's settings all values are in samples.
        self.is_ours = isinstance(settings, list) and any(
            Path(str(s)).name == _OURS for s in settings
        )
        self.origin = lru_cache(MAX_KNOWN)(self._origin)

    def parts(self) -> Iterator[tuple[int, Any]]:
        """Each test case and its number, from 1, with that of its run: retries are later runs."""
        cases = [
            (trial, one)
            for trial, run in enumerate(self.report["runs"])
            for one in run["testcases"]
        ]
        return enumerate(cases, start=1)

    def line(self, part: tuple[int, Any]) -> Line | None:
        """The values of a test case; None if it has none. Raises Refused."""
        try:
            return self._line(*part)
        except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError):
            raise Refused("not as ReFrame writes a test case") from None

    def _line(self, trial: int, case: Any) -> Line | None:
        values = _measured(case)
        if not values:
            return None
        job, done = case.get("jobid"), case.get("job_completion_time_unix")
        return Line(
            self.origin(
                tuple(_named_fields(case).items()), tuple(variable for variable, _ in values)
            ),
            layouts.instant(done) if done else self.end,
            self.start,
            layouts.node(_as_logged(case.get("job_nodelist") or case.get("nodelist"))),
            "" if job is None else harmless(str(job)),
            ["" if value is None else repr(value) for _, value in values],
            trial,
        )

    def _origin(self, fields: Sequence[tuple[str, str]], variables: Sequence[Variable]) -> Origin:
        session = {SESSION: "with its settings"} if self.is_ours else {}
        return layouts.of({**dict(fields), **session}, variables, self.file.site)


def _loaded(path: Path, data: bytes) -> dict[str, Any]:
    if len(data) > files.REPORT:
        raise UserError(path, "too large", f"at most {files.REPORT >> 20} MiB")
    try:
        report: dict[str, Any] = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise UserError(f"{path}:{line}", "broken JSON: cut short?", "a whole run report") from None
    if files.is_deep(report):
        raise UserError(path, "not a run report: nested too deeply")
    match report:
        case {"session_info": dict(), "runs": [*runs]}:
            if all(
                isinstance(run, dict) and isinstance(run.get("testcases"), list) for run in runs
            ):
                return report
    raise UserError(path, "not a run report of ReFrame: no session_info, or no list of runs")


def _of_session(file: File, info: Mapping[str, Any], key: str) -> datetime:
    """When the session began or ended, in UTC. Raises UserError."""
    try:
        if isinstance(seconds := info.get(f"{key}_unix"), (int, float)):
            return layouts.instant(seconds)
        return file.in_utc(str(info.get(key)))
    except (ValueError, ArithmeticError):
        raise UserError(file.path, f"no valid {key} in its session_info") from None


def _measured(case: Mapping[str, Any]) -> list[tuple[Variable, object]]:
    """The performance variables and their values. Raises LookupError and others.

    A value that is not a number is refused as a text would be.
    """
    of_4, of_3 = case.get("perfvalues") or {}, case.get("perfvars") or []
    found = [(key.rpartition(":")[2], *texts[:5]) for key, texts in of_4.items()]
    for one in of_3:
        found.append((one["name"], one["value"], *map(one.get, _REFERENCE), one["unit"]))
    variables = []
    for name, value, expected, lower, upper, unit in found:
        unit = "" if unit is None else str(unit)
        reference = samples.reference(expected, lower, upper, unit)
        variables.append((Variable(harmless(str(name)), unit, reference), value))
    return variables


def _named_fields(case: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a case, with their names in a perflog."""
    flat = case
    for key in ("check_vars", "check_params"):  # 3.x
        flat = {**(case.get(key) or {}), **flat}
    found = {
        key: _as_logged(value)
        for key, value in flat.items()
        if value is not None and key not in _NO_FIELD and not key.startswith(_PREFIXES)
    }
    found["environ"] = _as_logged(case.get("environ") or case.get("environment"))
    found["system"], _, part = found.get("system", "").partition(":")  # 3.x: system:partition
    found["partition"] = found.get("partition") or part
    return found


def _as_logged(value: Any) -> str:
    """A value as in ReFrame's perflogs."""
    if value is None or value == "<undefined>":
        return ""
    if isinstance(value, list):
        return ",".join(_as_logged(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)


_A_TIME = "in 2025-03-01T10:00:00+01:00, of 2000 to 2099"
_CONTROL = bytes({*range(32), 127} - {9})  # no test prints them; they control terminals


class Perflog:
    """A perflog. Raises UserError for a file without a line of names or a given format."""

    PART = ""  # what the number of a line counts, if not lines

    def __init__(self, file: File, data: bytes) -> None:
        self.file, self.data = file, data
        first = data.lstrip().partition(b"\n")[0].decode(errors="replace")
        given = file.options.format
        layout = _names(first) or (layouts.of_format(given) if given else None)
        if layout is None:
            raise layouts.neither(file.path)
        self._follow(layout)

    def _follow(self, layout: Layout) -> None:
        """Read the lines from here on by these columns."""
        self.layout = layout
        self.time, self.unix = layout.place(TIME, PRINTED), layout.place(UNIX)
        self.node, self.job = layout.place(NODES), layout.place(JOB)
        self.origin = lru_cache(MAX_KNOWN)(layout.origin)

    def parts(self) -> Iterator[tuple[int, Any]]:
        """The lines with their numbers."""
        return enumerate(io.BytesIO(self.data), start=1)

    def line(self, raw: bytes) -> Line | None:
        """The values of a line; None if it is empty or a line of names. Raises Refused."""
        text = _text(raw)
        if layout := _names(text):
            self._follow(layout)
            return None
        if not text:
            return None
        texts = self.layout.cut(text)
        shared = tuple([texts[place] for place in self.layout.shared])
        origin = self.origin(shared, Path(self.file.name).stem, self.file.site)
        time = self._moment(texts)
        return Line(
            origin,
            time,
            time,
            origin.node or ("" if self.node is None else layouts.node(texts[self.node])),
            "" if self.job is None else bare(texts[self.job]),
            [texts[place] for place in self.layout.variables.values()],
        )

    def _moment(self, texts: Sequence[str]) -> datetime:
        """When the job ended, in UTC. Raises Refused."""
        exact = "" if self.unix is None else bare(texts[self.unix])
        printed = "" if self.time is None else texts[self.time]
        try:
            return layouts.instant(float(exact)) if exact else self.file.in_utc(printed)
        except ValueError:
            if text := exact or bare(printed):
                raise Refused(f"'{text[:40]}' is not a time as {_A_TIME}") from None
            raise Refused("no time of the job's end") from None


def _names(text: str) -> Layout | None:
    """The layout of a line of names; None if it is another line."""
    return layouts.of_header(text) if TIME in text else None


def _text(raw: bytes) -> str:
    """A line without its end. Raises Refused for what is not plain text."""
    line = raw[:-1].removesuffix(b"\r")
    if not raw.endswith(b"\n"):
        raise Refused("its line has no end: cut short, or still being written")
    if not line.strip():
        return ""
    if len(line.translate(None, _CONTROL)) < len(line):
        raise Refused("it holds control characters")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise Refused("not UTF-8") from None


FOLDER = "imported"
_TOGETHER = 100_000  # rows that are added at once
Row = Mapping[str, Any]


def imported(perflogs: Path, system: str) -> Iterator[Path]:
    """The imported files of a system in order of their names."""
    top = perflogs / system / FOLDER
    if top.is_symlink():
        yield top  # the reader refuses it
        return
    for path in sorted(top.rglob("*")):
        is_one = path.suffix != figures.ENDING and not path.name.startswith(".")
        if is_one and (path.is_file() or path.is_symlink()):
            yield path


def rows_of(file: File) -> Iterator[tuple[Row, list[dict[str, Any]], Context]]:
    """Of each line the run, the narrow rows and their context.

    Raises UserError, and yields nothing then.
    """
    try:
        data = file.content().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise UserError(file.path, f"cannot be read: {error.strerror}") from None
    if data.startswith(layouts.BEGIN):
        layouts.sessions(file.path)  # its mistake, for which it was not read by sessions
    file.is_report = data.lstrip().startswith(b"{")
    if not data.strip() or (file.is_report and b'"session_info"' not in data):
        raise layouts.neither(file.path)
    reader = Report(file, data) if file.is_report else Perflog(file, data)
    for number, part in reader.parts():
        try:
            line = reader.line(part)
            if line is not None and not file.leaves_out(line):
                yield *file.rows_of(number, line), line.origin.context
        except Refused as error:
            file.refuse(f"{reader.PART}{number}", str(error))


class Reader:
    """Adds files to the tables of the new rows, many lines at once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._runs: list[Row] = []
        self._samples: list[Row] = []
        self._contexts: dict[int, Context] = {}

    def add(self, file: File) -> None:
        """Add a file; its rows are complete after `flush`. Raises UserError, and adds none then."""
        for run, found, context in rows_of(file):
            self._runs.append(run)
            self._samples += found
            self._contexts[context.key] = context
            if len(self._samples) > _TOGETHER:
                self.flush()

    def flush(self) -> None:
        """Add all that has been read to the tables."""
        tables.add(self.connection, "runs", self._runs)
        tables.add(self.connection, "samples", self._samples)
        tables.add_contexts(self.connection, self._contexts.values())
        self._runs.clear()
        self._samples.clear()
        self._contexts.clear()
