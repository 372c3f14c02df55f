"""The columns of a perflog, as ReFrame's format string or the file's own line of names has them.

From 4.0 on a file begins with the names of its columns: `result|job_completion_time|descr|…`, and
each performance variable has its own, `copy_value|copy_unit|copy_ref|…`. With perflog_multiline
there is a row a variable, its name under `perf_var`. That line is the format string with
`jobid=jobid` for `jobid=%(check_jobid)s`. Before 4.0 there is none, and the format must be given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from siteproof.errors import UserError
from siteproof.history.foreign.origins import NAMES, NO_CONDITION, SESSION, Refused

TIME, UNIX, PRINTED = "job_completion_time", "job_completion_time_unix", "asctime"
NODES = "job_nodelist"
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
_OF_VARIABLE = ("_var", "_value", "_unit", "_result", *_REFERENCE)
_DELIMITERS = "|,;\t"
_FEWEST = 3  # columns
_NOTHING = ("null", "None", "<undefined>")
_FIELD = re.compile(r"%\((?:check_)?(\w+)\)s")
_WORD = re.compile(r"[^=(),\s]+")
_READ = {"display_name", "info", "result", "fail_reason", "system", "partition", "environ", SESSION}


def neither(path: Path) -> UserError:
    """The mistake of a file that is none of ReFrame, or whose format nobody has given."""
    formats = f"--format {', '.join(PRESETS)}, or the format in the settings of ReFrame"
    return UserError(path, NEITHER, [formats])


@dataclass(frozen=True)
class Column:
    """A column. texts: what is before its first name, between its names and after the last."""

    names: tuple[str, ...]
    texts: tuple[str, ...] = ("", "")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("(.*?)".join(map(re.escape, self.texts)), re.DOTALL)

    def cut(self, cell: str) -> Sequence[str]:
        """The text of each name in a cell. Raises Refused."""
        match = self._pattern.fullmatch(cell)
        if not match:
            raise Refused(f"'{cell[:40]}' in the column of '{self}'")
        return match.groups()

    def __str__(self) -> str:
        pairs = zip(self.texts, (*self.names, ""), strict=False)
        return "".join(text + name for text, name in pairs)


@dataclass(frozen=True)
class Variable:
    """A performance variable. name: empty if each line has it, in `named`.

    value, unit, named: places of its texts in a line. reference: of the reference and its limits.
    """

    name: str
    value: int
    unit: int | None
    named: int | None
    reference: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)  # equal ones are made once
class Layout:
    """The columns of a section of a file."""

    columns: tuple[Column, ...]
    delimiter: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all texts of a line."""
        return tuple(name for column in self.columns for name in column.names)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The first place of each name."""
        return {name: place for place, name in reversed(list(enumerate(self.names)))}

    def place(self, *names: str) -> int | None:
        """The place of the first of these names that there is."""
        return next((self._places[name] for name in names if name in self._places), None)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """In the order of their values."""
        prefixes = {
            place: name.removesuffix("_value")
            for place, name in enumerate(self.names)
            if name.endswith("_value") and name != "_value"
        }
        return tuple(
            Variable(
                "" if prefix == "perf" else prefix,
                value,
                self.place(f"{prefix}_unit"),
                self.place(f"{prefix}_var"),
                tuple(
                    self._places[prefix + end] for end in _REFERENCE if prefix + end in self._places
                ),
            )
            for value, prefix in prefixes.items()
        )

    @cached_property
    def of_test(self) -> tuple[int, ...]:
        """The places that say which test measured, where, and under which conditions."""
        best = next((name for name in NAMES if name in self.names), "")
        figures = {f"{v.name or 'perf'}{end}" for v in self.variables for end in _OF_VARIABLE}
        apart = NO_CONDITION - _READ - {best} | figures | {""}
        return tuple(place for place, name in enumerate(self.names) if name not in apart)

    @cached_property
    def origin(self) -> tuple[int, ...]:
        """The same, with those of names, units and references: what many lines share."""
        of_variables = [(v.unit, v.named, *v.reference) for v in self.variables]
        return (*self.of_test, *(p for places in of_variables for p in places if p is not None))

    @cached_property
    def _has_texts(self) -> bool:
        return any(column.texts != ("", "") for column in self.columns)

    def cut(self, line: str) -> list[str]:
        """The text of each name. Raises Refused: ReFrame escapes no delimiter within a text."""
        cells = line.split(self.delimiter)
        if len(cells) != len(self.columns):
            why = "cut short?" if len(cells) < len(self.columns) else "a delimiter within a text?"
            raise Refused(f"{len(cells)} columns, {len(self.columns)} have names: {why}")
        if not self._has_texts:
            return cells
        pairs = zip(self.columns, cells, strict=True)
        return [text for column, cell in pairs for text in column.cut(cell)]


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
        (len(texts) < _FEWEST, "it has fewer than three columns"),
        (layout.place(TIME, UNIX, PRINTED) is None, "it has no %(check_job_completion_time)s"),
        (not layout.variables, "it has no %(check_perf_value)s"),
    ):
        if is_wrong:
            raise UserError(
                "--format",
                f"'{given[:60]}' does not name all columns: {what}",
                [*PRESETS, "the format of the perflog in the settings of ReFrame"],
            )


@lru_cache(1000)
def of_header(line: str) -> Layout | None:
    """The layout of a line of names; None if it is another line."""
    if TIME not in line:
        return None
    delimiter = _delimiter(line)
    found = Layout(tuple(map(_column, line.split(delimiter))), delimiter)
    is_one = len(found.columns) >= _FEWEST and found.place(TIME, UNIX) is not None
    return found if is_one else None


def _column(cell: str) -> Column:
    """A name, or texts with names between: those of a variable, or else the last word."""
    if "=" not in cell:
        return Column((cell.strip(),))
    words = list(_WORD.finditer(cell))
    found = [match for match in words if match[0].endswith(_OF_VARIABLE)] or words[-1:]
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(cell)]
    texts = tuple(cell[end:start] for end, start in zip(ends, starts, strict=True))
    return Column(tuple(match[0] for match in found), texts)


def _delimiter(text: str) -> str:
    return max(_DELIMITERS, key=text.count)


def bare(text: str) -> str:
    """A text without `ref=`, and empty where ReFrame has nothing.

    Up to 4.3 the line of names lacks a text before a name that the lines have.
    """
    found = text.rpartition("=")[2].strip()
    return "" if found in _NOTHING else found


def fields(layout: Layout, texts: Sequence[str]) -> dict[str, str]:
    """The texts of a test by their names, without `name=`; empty where ReFrame has nothing."""
    found: dict[str, str] = {}
    for place in layout.of_test:
        name = layout.names[place]
        text = texts[place].removeprefix(f"{name}=").strip()
        found[name] = "" if text in _NOTHING else text
    return found
