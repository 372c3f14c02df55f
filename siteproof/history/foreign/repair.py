"""Lines with a delimiter in a text, which ReFrame does not escape: put right where that is sure."""

from __future__ import annotations

import re

from siteproof.history.foreign.columns import TIME, UNIX, Layout, fields
from siteproof.history.foreign.origins import Refused

NOT_A_CELL = "\x1f"  # ASCII's own separator of units, which no cell has: control characters refuse
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
_RULES = {  # by the end of a name: what its cell is
    "_value": _FIGURE,
    "_ref": _FIGURE,
    "_lower": _FIGURE,
    "_upper": _FIGURE,
    "_thres": _FIGURE,
    "_unit": re.compile(rf"(?!{_NUMBER.pattern}$).*"),
    "_result": re.compile("[a-z]*|None"),
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


def strange(found: dict[str, str]) -> str:
    """Of texts by their names, one that cannot stand where it stands; empty if there is none."""
    for name, text in found.items():
        rule = (
            _COUNT
            if name.startswith("num_")
            else _RULES.get(name)
            or next(
                (rule for end, rule in _RULES.items() if end[0] == "_" and name.endswith(end)), None
            )
        )
        if rule and not rule.fullmatch(text):
            return name
    return ""


def repaired(line: str, layout: Layout) -> str:
    """The line with its cells set apart by NOT_A_CELL. Raises Refused.

    What is too much belongs to a text, if there is one that leaves all other columns what they are.
    """
    cells = line.split(layout.delimiter)
    more = len(cells) - len(layout.names)
    if more < 0:
        raise Refused(f"{len(cells)} columns, {len(layout.names)} in the line of names: cut short?")
    found = {}
    for name in _TEXTS:
        if (at := layout.column(name)) is not None:
            held = [
                *cells[:at],
                layout.delimiter.join(cells[at : at + more + 1]),
                *cells[at + more + 1 :],
            ]
            if not strange(fields(layout, dict(enumerate(held)))):
                found[name] = held
    if len(found) != 1:
        raise Refused(
            f"{len(cells)} columns, {len(layout.names)} in the line of names, and "
            + (
                f"'{layout.delimiter}' could belong to {' or '.join(found)}"
                if found
                else f"no text to which a '{layout.delimiter}' could belong"
            )
        )
    return NOT_A_CELL.join(found.popitem()[1])
