"""The columns of a perflog, as ReFrame's format string or the file's own line of names has them.

From 4.0 on a file begins with the names of its columns: `result|job_completion_time|descr|…`, and
each performance variable has its own, `copy_value|copy_unit|copy_ref|…`. With perflog_multiline
there is a row a variable, its name under `perf_var`. That line is the format string with
`jobid=jobid` for `jobid=%(check_jobid)s`. Before 4.0 there is none, and the format must be given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from siteproof.errors import UserError, harmless
from siteproof.history.foreign import origins
from siteproof.history.foreign.origins import (
    NAMES,
    NO_CONDITION,
    SESSION,
    Origin,
    Refused,
    Variable,
)
from siteproof.record import plain_tests

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
        return origins.of(fields, [_variable(one, said) for one in self.variables], site)


def _variable(prefix: str, said: Mapping[str, str]) -> Variable:
    """A variable with what is said of it. Raises Refused."""
    named, unit = said.get(f"{prefix}_var", ""), said.get(f"{prefix}_unit", "")
    if prefix != "perf" and named not in ("", prefix):
        raise Refused(f"'{named[:40]}' in the column of {prefix}")
    limits = [said[prefix + end] for end in _REFERENCE if prefix + end in said]
    reference = ""
    if len(limits) == 3:  # noqa: PLR2004
        value, lower, upper = limits
        reference = plain_tests.reference(value, lower or None, upper or None, unit)
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
