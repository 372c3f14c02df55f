"""The columns of a perflog, as ReFrame's format string or the file's own line of names has them.

From 4.0 on a file begins with the names of its columns: `result|job_completion_time|descr|…`, and
each performance variable has its own, `copy_value|copy_unit|copy_ref|…`. With perflog_multiline
there is a row a variable, its name under `perf_var`. That line is the format string with
`jobid=jobid` for `jobid=%(check_jobid)s`. Before 4.0 there is none, and the format must be given.

ReFrame's results database: each session in it is a run report, kept as JSON.

reframe/frontend/reporting/storage.py, schema 1.0: sessions(uuid, session_start_unix,
session_end_unix, json_blob, report_file).

Where, what, and under which conditions a test of ReFrame measured: what many lines share.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history import tables
from siteproof.record import samples
from siteproof.record.samples import Header, Sample

SESSION = "siteproof_session"  # of Siteproof's settings: the session with the samples of a line
NAMES = ("display_name", "name", "info", "unique_name", "short_name")  # of a test, best first
# What is no condition: fields that ReFrame's defaults leave out of a perflog, what differs from
# run to run by chance, and what has a column of its own in the history.
NO_CONDITION = frozenset(
    f"""
    build_locally build_time_limit display_name executable executable_opts hashcode keep_files
    local maintainers max_pending_time outputdir prebuild_cmds prefix prerun_cmds
    postbuild_cmds postrun_cmds readonly_files sourcepath sourcesdir stagedir strict_check
    tags time_limit valid_prog_environs valid_systems variables descr info name short_name
    unique_name version jobid job_submit_time job_exitcode result fail_phase fail_reason
    osuser osgroup hostname asctime created levelname message perf_var perf_value perf_unit
    perf_ref perf_lower perf_upper perf_lower_thres perf_upper_thres perf_result system
    partition environ {SESSION} job_nodelist job_completion_time job_completion_time_unix
    perfvalues perfvars check_vars check_params fail_info nodelist environment description
    fail_severe filename fixture run_index scheduler session_uuid uuid runid
    """.split()
) | {"reframe version"}

_INFO = re.compile(  # 4.x: NAME %p=v /hash @system:partition+environment; 3.0: NAME on … using …
    r"(?P<name>\S+(?: %\S.*?)?)(?: ~\S+)?(?: /[0-9a-f]{8})?"
    r"(?: (?:@|on )(?P<system>[^\s:+]+)(?::(?P<partition>[^\s+]+))?"
    r"(?:(?:\+| using )(?P<environ>\S+))?)?"
)
_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PLACE = re.compile(r"[\w.+-]*")
_CHECK = re.compile(r"[A-Za-z_][\w.:<>~+@/-]*")
_RESULT = re.compile(r"[a-z_]*")
_DISTRIBUTED = ("$nodes", "$nid", ".nid")  # parameters that --distribute makes
_UNSET = ("", "{}", "[]", "false", "False")
FIRST, LAST = 2000, 2099  # years of a test
LONGEST = 100_000  # characters: a list of some ten thousand nodes
MAX_KNOWN = 10_000  # origins of a file that are remembered
MAX_NAME = 200  # characters of a variable
_ANY_TIME = "2000-01-01T00:00:00+00:00"  # of a header whose runs have times of their own
_FAILED = ("fail", "failure", "failed", "abort", "aborted")
_NO_VALUE = {"value": None, "digits": None, "unit": "", "factor": None, "kind": ""}
NOT_FINITE = {**_NO_VALUE, "status": "invalid", "why": "the value is not a finite number"}


class Refused(Exception):
    """The reason why a line cannot be read."""


@dataclass(frozen=True)
class Variable:
    """A performance variable of a test. unit: as printed; empty if there is none.

    reference: ReFrame's, as `record.plain_tests.reference` writes it; empty if there is none.
    """

    name: str
    unit: str
    reference: str = ""

    def __post_init__(self) -> None:
        if "=" in self.name or "|" in self.name or len(self.name) > MAX_NAME:
            raise Refused(f"'{self.name[:40]}' is not a valid name of a variable")


@dataclass(frozen=True, eq=False)
class Origin:
    """What all values of a test's runs share, apart from time and job.

    variables: one for each value of a line. dims: the test's parameters. no_value: the columns of
    a row without a value. node: that of ReFrame's --distribute. system_in_file: the file's; it may
    be imported as another. is_ours: of Siteproof's runs.
    """

    header: Header
    variables: Sequence[Variable]
    dims: Mapping[str, str]
    conditions: Mapping[str, str]
    no_value: Mapping[str, Any]
    system_in_file: str
    is_ours: bool
    node: str = ""

    @cached_property
    def context(self) -> tables.Context:
        """The conditions of all values."""
        return tables.context(self.header, self.conditions)

    @cached_property
    def run(self) -> dict[str, Any]:
        """What the rows of all runs share."""
        return tables.run_row(self.header, "", 0, len(self.variables))

    @cached_property
    def samples(self) -> Sequence[dict[str, Any]]:
        """What the rows of each variable share, if they have a value."""
        return [self._sample(variable) for variable in self.variables]

    def _sample(self, variable: Variable) -> dict[str, Any]:
        metric = f"{self.header.check}.{variable.name}"
        unit = samples.known_unit(variable.unit) or harmless(variable.unit)
        sample = Sample(self.header, "", metric, Decimal(0), unit, dims=self.dims)
        return tables.row(sample, 0, self.context)


def of(fields: Mapping[str, str], variables: Sequence[Variable], site: str = "") -> Origin:
    """The origin in named texts. Raises Refused.

    site: the system that the values are imported for; another name in them is a condition.
    """
    if any(len(text) > LONGEST for text in fields.values()):
        raise Refused(f"a text of more than {LONGEST} characters")
    name, dims = _named(fields)
    own = next((dims.pop(key) for key in _DISTRIBUTED if key in dims), "")
    place = _place(fields)
    conditions = {
        harmless(key): harmless(text)
        for key, text in fields.items()
        if key and key not in NO_CONDITION and key not in dims and text not in _UNSET
    }
    if place["system"] not in ("", site or place["system"]):
        conditions["system"] = place["system"]
    if place["partition"]:
        conditions["partition"] = place["partition"]
    header = Header(
        session="",
        system=site or place["system"],
        partition=place["partition"],
        environment=place["environ"],
        check=name,
        job="",
        time=_ANY_TIME,
        mode=tables.IMPORTED,
        provenance={samples.REFERENCE + v.name: v.reference for v in variables if v.reference},
    )
    return Origin(
        header,
        variables,
        dims,
        conditions,
        _no_value(fields),
        place["system"] or site,
        bool(fields.get(SESSION)),
        node(own),
    )


def node(text: str) -> str:
    """The node on which a test ran; empty if there were several, or it is unknown."""
    name = text.removeprefix("job_nodelist=").strip()
    return name if _NODE.fullmatch(name) and name not in ("null", "None") else ""


def _named(fields: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The test's class, and its parameters as in `Stream %threads=4`."""
    text = next((fields[name] for name in NAMES if fields.get(name)), "")
    match = _INFO.fullmatch(text)
    check, dims = samples.named(match["name"] if match else "")
    if not _CHECK.fullmatch(check):
        raise Refused(f"'{text[:40]}' is not the name of a test" if text else "no name")
    return check, dims


def _place(fields: Mapping[str, str]) -> dict[str, str]:
    match = _INFO.fullmatch(fields.get("info", ""))
    found = {}
    for key in ("system", "partition", "environ"):
        found[key] = fields.get(key) or (match[key] if match and match[key] else "")
        if not _PLACE.fullmatch(found[key]):
            raise Refused(f"'{found[key][:40]}' is not a {key}")
    return found


def _no_value(fields: Mapping[str, str]) -> dict[str, Any]:
    """The columns of a row without a value, with the reason."""
    result = fields.get("result", "")
    if not _RESULT.fullmatch(result):
        raise Refused(f"'{result[:40]}' is not a result of a test")
    if result not in _FAILED:
        return {**_NO_VALUE, "status": "parse", "why": "the test gave no value"}
    why = harmless(fields.get("fail_reason", "")) or "the test failed, without a value"
    return {**_NO_VALUE, "status": "generic", "why": why}


def instant(seconds: float) -> datetime:
    """A time in UTC, without a zone. Raises ValueError if no test can have ended then."""
    if not 0 < seconds < 1e10:
        raise ValueError(seconds)
    found = datetime(1970, 1, 1) + timedelta(microseconds=round(seconds * 1e6))  # noqa: DTZ001
    if not FIRST <= found.year <= LAST:
        raise ValueError(seconds)
    return found


TIME, UNIX, PRINTED = "job_completion_time", "job_completion_time_unix", "asctime"
NODES, JOB = "job_nodelist", "jobid"
_BEFORE = "reframe %(version)s|%(check_info)s|jobid=%(check_jobid)s|"
_TASKS = "num_tasks=%(check_num_tasks)s|"
_VALUE = "%(check_perf_var)s=%(check_perf_value)s|"
_AFTER = (
    "ref=%(check_perf_ref)s (l=%(check_perf_lower_thres)s, u=%(check_perf_upper_thres)s)|"
    "%(check_perf_unit)s"
)
# Formats of perflogs without a line of names, in reframe/core/settings.py, and in the published
# settings of CSCS and of ExCALIBUR's benchmarks for ReFrame 3.
PRESETS = {
    "2.x": f"%(asctime)s|{_BEFORE}{_VALUE}{_AFTER}",
    "3.x": f"%(check_job_completion_time)s|{_BEFORE}{_VALUE}{_AFTER}",
    "cscs-2.x": f"%(asctime)s|{_BEFORE}{_TASKS}{_VALUE}{_AFTER}",
    "cscs-3.x": f"%(check_job_completion_time)s|{_BEFORE}{_TASKS}{_VALUE}{_AFTER}",
    "excalibur-3.x": f"%(check_job_completion_time)s|{_BEFORE}{_VALUE}{_TASKS}"
    "num_cpus_per_task=%(check_num_cpus_per_task)s|"
    "num_tasks_per_node=%(check_num_tasks_per_node)s|ref=%(check_perf_ref)s|"
    "lower=%(check_perf_lower_thres)s|upper=%(check_perf_upper_thres)s|"
    "units=%(check_perf_unit)s|spack_spec=%(check_spack_spec)s",
}
NEITHER = "no run report of ReFrame, and no perflog with a line of names, as ReFrame 4 writes it"
_REFERENCE = ("_ref", "_lower_thres", "_lower", "_upper_thres", "_upper")
_SAID = ("_var", "_unit", *_REFERENCE)  # of a variable, in many lines the same
_OF_VARIABLE = (*_SAID, "_value", "_result")
_DELIMITERS = re.compile(r"[|,;\t]")
_NOTHING = ("null", "None", "<undefined>")
_FIELD = re.compile(r"%\((?:check_)?(\w+)\)s")
_WORD = re.compile(r"[^=(),\s]+")
_READ = {"display_name", "info", "result", "fail_reason", "system", "partition", "environ", SESSION}


def neither(path: Path) -> UserError:
    """The mistake of a file that is none of ReFrame, or whose format nobody has given."""
    formats = f"--format {', '.join(PRESETS)}, the format in the settings of ReFrame, or their path"
    return UserError(path, NEITHER, [formats])


@dataclass(frozen=True)
class Column:
    """A column. texts: what is before its first name, between its names and after the last."""

    names: tuple[str, ...]
    texts: tuple[str, ...]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # A delimiter between names is within none of their texts: values would be shifted.
        stops = re.escape("".join(_DELIMITERS.findall("".join(self.texts))))
        text = f"([^{stops}]*?)" if stops else "(.*?)"
        first, *others = self.texts
        *between, last = others or [""]
        texts = [first.lstrip(), *between, last.rstrip()] if others else [first.strip()]
        return re.compile(text.join(map(re.escape, texts)), re.DOTALL)

    def cut(self, cell: str) -> Sequence[str]:
        """The text of each name in a cell, whatever blanks are around it. Raises Refused."""
        match = self._pattern.fullmatch(cell.strip())
        if not match:
            raise Refused(f"'{cell[:40]}' in the column of '{self}'")
        return match.groups()

    def __str__(self) -> str:
        pairs = zip(self.texts, (*self.names, ""), strict=True)
        return "".join(text + name for text, name in pairs)


@dataclass(frozen=True, eq=False)  # equal ones are made once
class Layout:
    """The columns of a section of a file. is_named: by the file's own line of names."""

    columns: tuple[Column, ...]
    delimiter: str
    is_named: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all texts of a line."""
        return tuple(name for column in self.columns for name in column.names)

    def place(self, *names: str) -> int | None:
        """The place of the first of these names that there is."""
        return next((self.names.index(name) for name in names if name in self.names), None)

    @cached_property
    def variables(self) -> dict[str, int]:
        """The place of each variable's value by its name; `perf`: each line has the name."""
        return {
            name.removesuffix("_value"): place
            for place, name in enumerate(self.names)
            if name.endswith("_value") and name != "_value"
        }

    @cached_property
    def _said(self) -> set[str]:
        return {variable + end for variable in self.variables for end in _SAID}

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """The places of what many lines share: which test measured what, where and how."""
        best = next((name for name in NAMES if name in self.names), "")
        read = _READ | {best} | self._said
        own = {variable + end for variable in self.variables for end in ("_value", "_result")}
        apart = (NO_CONDITION | own | {""}) - read
        return tuple(place for place, name in enumerate(self.names) if name not in apart)

    @cached_property
    def _is_bare(self) -> bool:
        return all(column.texts == ("", "") for column in self.columns)

    def cut(self, line: str) -> Sequence[str]:
        """The text of each name. Raises Refused: ReFrame escapes no delimiter within a text."""
        cells = line.split(self.delimiter)
        if len(cells) != len(self.columns):
            why = "cut short?" if len(cells) < len(self.columns) else "a delimiter within a text?"
            raise Refused(f"{len(cells)} columns, {len(self.columns)} have names: {why}")
        if self._is_bare:
            return cells
        pairs = zip(self.columns, cells, strict=True)
        return [text for column, cell in pairs for text in column.cut(cell)]

    def origin(self, shared: Sequence[str], file: str, site: str) -> Origin:
        """The origin that the texts at the places `shared` name. Raises Refused.

        file: the name of the test where no column has it, as ReFrame names its files.
        """
        texts = dict(zip([self.names[place] for place in self.shared], shared, strict=True))
        said = {name: bare(texts.pop(name)) for name in self._said & texts.keys()}
        if self.is_named:
            said.setdefault("perf_var", "perf")  # a variable of that name, as no column names it
        fields = {name: _known(text.removeprefix(f"{name}=")) for name, text in texts.items()}
        if not fields.keys() & {*NAMES}:
            fields["name"] = file
        return of(fields, [_variable(one, said) for one in self.variables], site)


def _variable(prefix: str, said: Mapping[str, str]) -> Variable:
    """A variable with what is said of it. Raises Refused."""
    named, unit = said.get(f"{prefix}_var", ""), said.get(f"{prefix}_unit", "")
    if prefix != "perf" and named not in ("", prefix):
        raise Refused(f"'{named[:40]}' in the column of {prefix}")
    limits = [said[prefix + end] for end in _REFERENCE if prefix + end in said]
    reference = ""
    if len(limits) == 3:  # noqa: PLR2004
        value, lower, upper = limits
        reference = samples.reference(value, lower or None, upper or None, unit)
    return Variable(harmless(named if prefix == "perf" else prefix), unit, reference)


def bare(text: str) -> str:
    """A text without `ref=`, and empty where ReFrame has nothing.

    Up to 4.3 the line of names lacks a text before a name that the lines have.
    """
    return _known(text.rpartition("=")[2])


def _known(text: str) -> str:
    found = text.strip()
    return "" if found in _NOTHING else found


@lru_cache(1000)
def of_format(given: str) -> Layout:
    """The layout of a preset, or of ReFrame's format string. Raises UserError."""
    text = PRESETS.get(given, given)
    delimiter = _delimiter(text)
    columns = []
    for cell in text.split(delimiter):
        parts = _FIELD.split(cell)
        columns.append(Column(tuple(parts[1::2]), tuple(parts[::2])))
    found = Layout(tuple(columns), delimiter)
    _must_name_all(given, found)
    return found


def _must_name_all(given: str, layout: Layout) -> None:
    """Raises UserError for a format that does not say what each column is."""
    texts = [column.texts for column in layout.columns]
    between = [text for one in texts for text in one[1:-1]]
    for is_wrong, what in (
        ("perfvalues" in layout.names, "only a line of names has those of %(check_perfvalues)s"),
        ("%(" in str(texts), "it has a field that is not as %(check_jobid)s"),
        ("" in between, "it has two fields with nothing between them"),
        (layout.place(TIME, UNIX, PRINTED) is None, "it has no %(check_job_completion_time)s"),
        (not layout.variables, "it has no %(check_perf_value)s"),
    ):
        if is_wrong:
            raise UserError(
                "--format",
                f"'{given[:60]}' does not name all columns: {what}",
                [*PRESETS, "the format in the settings of ReFrame, or their path"],
            )


@lru_cache(1000)
def of_header(line: str) -> Layout | None:
    """The layout of a line of names; None if it is another line."""
    delimiter = _delimiter(line)
    found = Layout(tuple(map(_column, line.split(delimiter))), delimiter, is_named=True)
    return None if found.place(TIME, UNIX) is None else found


def _column(cell: str) -> Column:
    """A name; or texts with names between: those of a variable, or else the last word after `=`."""
    words = list(_WORD.finditer(cell))
    found = [match for match in words if match[0].endswith(_OF_VARIABLE)]
    if "=" in cell and not found:
        found = words[-1:]
    if not found:
        return Column((cell.strip(),), ("", ""))
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(cell)]
    texts = tuple(cell[end:start] for end, start in zip(ends, starts, strict=True))
    return Column(tuple(match[0] for match in found), texts)


def _delimiter(text: str) -> str:
    """Of columns: the first there is. Values of variables may have another one between them."""
    match = _DELIMITERS.search(text)
    return match[0] if match else "|"


NAME = "results.db"  # ReFrame's own
BEGIN = b"SQLite format 3\0"  # of each such file
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_SESSIONS = 100_000  # sessions
# A table that is stored, and no column of which is computed: reading one could take hours.
_IS_TABLE = """
    SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'sessions' AND rootpage > 0
    AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo('sessions') WHERE hidden)"""
_SESSIONS = f"SELECT uuid FROM sessions ORDER BY session_start_unix, uuid LIMIT {MAX_SESSIONS + 1}"
_WAL = 2  # in both bytes of a header that has its changes in a second file
_REPORT = """
    SELECT CASE WHEN length(CAST(json_blob AS BLOB)) <= ? THEN json_blob END
    FROM sessions WHERE uuid = ?"""


def sessions(path: Path) -> Sequence[str]:
    """The sessions in a results database, oldest first; none in another file. Raises UserError."""
    with files.named(path, files.SAMPLES) as handle:
        head = os.read(handle, 20)
    if not head.startswith(BEGIN):
        return []
    if _WAL in head[18:]:  # to read it would make files beside it, with this user's name
        hint = f"Run: sqlite3 {path.name} 'PRAGMA journal_mode = DELETE'"
        raise UserError(path, "a database with a write-ahead log; ReFrame makes none", hint=hint)
    with _open(path) as database:
        if not database.execute(_IS_TABLE).fetchone():
            raise UserError(path, "a database without the sessions of ReFrame", f"a {NAME}")
        found = [uuid for (uuid,) in database.execute(_SESSIONS)]
    if len(found) > MAX_SESSIONS:
        raise UserError(path, "too many sessions", f"at most {MAX_SESSIONS}")
    for uuid in found:
        if not isinstance(uuid, str) or not _UUID.fullmatch(uuid):
            raise UserError(path, f"'{str(uuid)[:40]}' is not a session of ReFrame")
    return found


def report(path: Path, session: str) -> bytes:
    """The run report of a session. Raises UserError."""
    with _open(path) as database:
        row = database.execute(_REPORT, (files.REPORT, session)).fetchone()
    if not row or not isinstance(row[0], str):
        allowed = f"at most {files.REPORT >> 20} MiB"
        raise UserError(path, f"session {session} has no report, or one that is too large", allowed)
    return row[0].encode()


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, which is only read, and of which nothing is run. Raises UserError."""
    database = None
    try:
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        database.execute("PRAGMA trusted_schema = OFF")
        yield database
    except sqlite3.Error as error:
        raise UserError(path, f"cannot be read: {error}") from None
    finally:
        if database:
            database.close()
