"""The columns of a perflog of ReFrame.

From 4.0 on a file begins with the names of its columns: `result|job_completion_time|descr|…`, and
each performance variable has its own, `copy_value|copy_unit|copy_ref|…`. With perflog_multiline
there is a row a variable, its name under `perf_var`. A format may contain further text
(`jobid=%(check_jobid)s`), which is then in the names, too (`jobid=jobid`).

Before 4.0 no line has names. The default format is (3.0 to 3.12, reframe/core/settings.py):

    TIME|reframe VERSION|INFO|jobid=ID|VARIABLE=VALUE|ref=REF (l=LOWER, u=UPPER)|UNIT
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from siteproof.record import plain_tests

TIME, UNIX = "job_completion_time", "job_completion_time_unix"
NODES = "job_nodelist"
SESSION = "siteproof_session"  # of Siteproof's settings: the session with the samples of a line
NAMES = ("display_name", "name", "info", "unique_name", "short_name")  # of a test, best first
_FIGURE = ("_value", "_unit", "_ref", "_lower_thres", "_upper_thres", "_lower", "_upper", "_result")
_REFERENCE = ("_ref", "_lower_thres", "_lower", "_upper_thres", "_upper")
_WITH_LIMITS = re.compile(r"(?:ref=)?(\S+) \(l=(\S+), u=(\S+)\)")
_TIME_OF_A_LINE = re.compile(r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{8}\S*")
_DELIMITERS = "|,;\t"
_ASSIGNED = re.compile(r"([^=]+)=(?:[-+.0-9eE]+|nan|NaN|-?inf|-?Infinity|null|None)")
_COUNTED = re.compile(r"(jobid|ref|num_\w+|units?|lower|upper)=.*")
# What is no condition: columns that ReFrame's defaults leave out of a perflog, what differs from
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
    partition environ {SESSION}
    {NODES} {TIME} {UNIX}
    """.split()
)
_READ = (
    "display_name",
    "result",
    "fail_reason",
    "system",
    "partition",
    "environ",
    "perf_var",
    "perf_unit",
    SESSION,
)


@dataclass(frozen=True)
class Variable:
    """A performance variable. name: empty if each line has it. value, unit: columns.

    reference: columns of the reference and its limits, which may be one.
    """

    name: str
    value: int
    unit: int | None
    reference: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)  # equal ones are made once
class Layout:
    """The columns of a section of a file.

    names: one a column. assigned: columns of values that read `name=value`.
    origin: the columns with what was measured, and under which conditions.
    """

    names: tuple[str, ...]
    delimiter: str
    variables: tuple[Variable, ...]
    assigned: frozenset[int]
    origin: tuple[int, ...]

    @property
    def marks(self) -> int:
        """The number of delimiters in a line."""
        return len(self.names) - 1

    def column(self, name: str) -> int | None:
        """The column of a name."""
        return self.names.index(name) if name in self.names else None


def of_header(line: str) -> Layout | None:
    """The layout of a line of names; None if it is another line."""
    if TIME not in line:
        return None
    delimiter = max(_DELIMITERS, key=line.count)
    cells = line.split(delimiter)
    names = [_name(cell) for cell in cells]
    values = [i for i, name in enumerate(names) if name.endswith("_value") and name != "_value"]
    if len(names) < 3 or not {TIME, UNIX} & set(names):
        return None
    variables = [_variable(names, i) for i in values]
    assigned = frozenset(i for i in values if "=" in cells[i])
    return _layout(tuple(names), delimiter, tuple(variables), assigned)


def of_line(line: str) -> Layout | None:
    """The layout of a line of the formats before 4.0, by its cells; None of other lines."""
    cells = line.split("|")
    names = [_look(cell, i) for i, cell in enumerate(cells)]
    if names[0] != TIME or names.count("perf_value") != 1 or "info" not in names:
        return None
    value = names.index("perf_value")
    if "perf_unit" not in names and "" in names[value:]:
        names[names.index("", value)] = "perf_unit"
    unit = names.index("perf_unit") if "perf_unit" in names else None
    variable = Variable("", value, unit, _reference(names, "perf"))
    return _layout(tuple(names), "|", (variable,), frozenset({value}))


def _look(cell: str, column: int) -> str:
    if column == 0 and _TIME_OF_A_LINE.fullmatch(cell):
        return TIME
    if column == 1 and cell.startswith("reframe "):
        return "version"
    if column == 2:
        return "info"
    if match := _COUNTED.match(cell):
        return {"ref": "perf_ref", "units": "perf_unit", "unit": "perf_unit"}.get(
            match[1], match[1]
        )
    return "perf_value" if _ASSIGNED.fullmatch(cell) else ""


@lru_cache(10_000)
def _layout(
    names: tuple[str, ...],
    delimiter: str,
    variables: tuple[Variable, ...],
    assigned: frozenset[int],
) -> Layout:
    figures = {f"{v.name}{end}" for v in variables if v.name for end in _FIGURE}
    best = next((name for name in NAMES if name in names), "")
    read = {*_READ, best, "info"}
    units = {v.unit for v in variables}
    origin = [
        i
        for i, name in enumerate(names)
        if i in units or name in read or (name and name not in NO_CONDITION and name not in figures)
    ]
    return Layout(names, delimiter, variables, assigned, tuple(origin))


def _name(cell: str) -> str:
    """`jobid=jobid` and `reframe version` are `jobid` and `version`."""
    words = cell.rpartition("=")[2].split()
    return words[-1].strip("()[],") if words else ""


def _variable(names: Sequence[str], value: int) -> Variable:
    prefix = names[value].removesuffix("_value")
    # The columns of a variable are next to each other, so the nearest unit is its own.
    units = [i for i, name in enumerate(names) if name == f"{prefix}_unit"]
    return Variable(
        "" if prefix == "perf" else prefix,
        value,
        min(units, key=lambda i: abs(i - value)) if units else None,
        _reference(names, prefix),
    )


def _reference(names: Sequence[str], prefix: str) -> tuple[int, ...]:
    """The columns of a variable's reference and its limits, in this order."""
    found = [f"{prefix}{end}" for end in _REFERENCE]
    return tuple(names.index(name) for name in found if name in names)


def fields(layout: Layout, cells: Mapping[int, str]) -> dict[str, str]:
    """Texts of columns by their names, without `name=`, and empty where ReFrame has null."""
    found: dict[str, str] = {}
    for column, cell in cells.items():
        name = layout.names[column]
        text = cell.removeprefix(f"{name}=").strip()
        found[name] = "" if text in ("null", "None", "<undefined>") else text
    return found


def reference(cells: Sequence[str], unit: str) -> str:
    """The reference in these cells, as `plain_tests.reference` writes it; empty: none."""
    texts: Sequence[str] = cells
    if len(cells) == 1 and (match := _WITH_LIMITS.fullmatch(cells[0].strip())):
        texts = match.groups()
    if len(texts) != 3:
        return ""
    value, lower, upper = (text.strip() for text in texts)
    return plain_tests.reference(value, _limit(lower), _limit(upper), unit)


def _limit(text: str) -> float | None:
    """A limit as ReFrame prints it; None if there is none, or another text is in its place."""
    try:
        return float(text)
    except ValueError:
        return None
