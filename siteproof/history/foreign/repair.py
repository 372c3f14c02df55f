"""Lines with a delimiter in a text, which ReFrame does not escape: repaired if unambiguous."""

from __future__ import annotations

import re
from collections.abc import Mapping

from siteproof.history.foreign.columns import TIME, UNIX, Layout, fields
from siteproof.history.foreign.origins import Refused

NOT_A_CELL = "\x1f"  # in no cell, as lines with control characters are refused
_TEXTS = (
    "descr",
    "fail_reason",
    "env_vars",
    "extra_resources",
    "modules",
    "job_nodelist",
    "spack_spec",
    "spack_spec_dict",
    "tags",
    "executable_opts",
    "prerun_cmds",
    "postrun_cmds",
    "prebuild_cmds",
    "postbuild_cmds",
)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_FIGURE = re.compile(
    rf"(?:[^=]+=)?(?:{_NUMBER.pattern}|[-+]?(?:nan|inf|infinity)|none|null|)", re.IGNORECASE
)
_BY_ENDING = {  # what a cell is, by the end of its name
    "_value": _FIGURE,
    "_ref": _FIGURE,
    "_lower": _FIGURE,
    "_upper": _FIGURE,
    "_thres": _FIGURE,
    "_unit": re.compile(rf"(?!{_NUMBER.pattern}$).*"),
    "_result": re.compile("[a-z]*|None"),
}
_BY_NAME = {
    "result": re.compile("[a-z]*"),
    "env_vars": re.compile(r"(\{.*\})?"),
    "extra_resources": re.compile(r"(\{.*\})?"),
    "spack_spec_dict": re.compile(r"(\{.*\})?"),
    "environ": re.compile(r"[\w.+-]*"),
    "system": re.compile(r"[\w.+-]*"),
    "partition": re.compile(r"[\w.+-]*"),
    "exclusive_access": re.compile("(?i:true|false)?"),
    TIME: re.compile(r"\d{4}-\d\d-\d\d\S*"),
    "use_multithreading": re.compile("(?i:true|false)?"),
    UNIX: re.compile(r"[0-9.]*"),
    "job_submit_time": re.compile(r"[0-9.]*"),
    "job_exitcode": re.compile(r"-?[0-9]*"),
}
_COUNT = re.compile(r"-?[0-9]*")


def wrong_column(found: Mapping[str, str]) -> str | None:
    """The name of a column whose text cannot be in it; None: all can."""
    for name, text in found.items():
        rule = _rule(name)
        if rule and not rule.fullmatch(text):
            return name
    return None


def _rule(name: str) -> re.Pattern[str] | None:
    if name.startswith("num_"):
        return _COUNT
    if name in _BY_NAME:
        return _BY_NAME[name]
    return next((rule for end, rule in _BY_ENDING.items() if name.endswith(end)), None)


def repaired(line: str, layout: Layout) -> str:
    """The line with its cells separated by NOT_A_CELL. Raises Refused.

    The surplus cells belong to a text if only one text leaves valid cells in all other columns.
    """
    cells = line.split(layout.delimiter)
    counted = f"{len(cells)} columns, {len(layout.names)} in the line of names"
    more = len(cells) - len(layout.names)
    if more < 0:
        raise Refused(f"{counted}: cut short?")
    found = {}
    for name in _TEXTS:
        if (at := layout.column(name)) is None:
            continue
        end = at + more + 1
        joined = [*cells[:at], layout.delimiter.join(cells[at:end]), *cells[end:]]
        if not wrong_column(fields(layout, dict(enumerate(joined)))):
            found[name] = joined
    if not found:
        raise Refused(f"{counted}, and no text to which a '{layout.delimiter}' could belong")
    if len(found) > 1:
        which = " or ".join(found)
        raise Refused(f"{counted}, and '{layout.delimiter}' could belong to {which}")
    return NOT_A_CELL.join(found.popitem()[1])
