"""Knobs: settings of the nodes that a tuning sweep changes, and whether they are restored.

`knob.KIND.NAME`; on the nodes checks/on_node/knob_kinds.sh finds, reads and sets them. The values
are free text, because a kernel parameter may have several numbers, so the walker of the points
reads them from their own file (`lines`), as text and never as words of a shell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from siteproof import files, nodesets
from siteproof.errors import Mistake, UserError, harmless
from siteproof.record.point import KNOB, OWN
from siteproof.sites.key_types import blanks

LONGEST = 200  # characters of a value
MAX_FILES = 200_000  # of one combination: some for each node
_KINDS = {
    "sysctl": r"[a-z0-9_]+([./][A-Za-z0-9_.:-]+)+",
    "nic": r"(\{interface\}|[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14})\.(mtu|txqueuelen)",
    "lustre": r"[A-Za-z0-9_*-]+(\.[A-Za-z0-9_*-]+)+",
    "lnet": r"[a-z_]+",
}
ALLOWED = (
    "knob.sysctl.KERNEL.PARAMETER, knob.nic.INTERFACE.mtu, knob.nic.INTERFACE.txqueuelen "
    "(INTERFACE may be {interface}, the one that leads to the other node), "
    "knob.lustre.PARAMETER such as osc.*.max_dirty_mb, knob.lnet.TUNABLE"
)
_AXIS = re.compile(r"\{([^{}]+)\}")  # that a fixed value takes a number from: {buffer}


def check_name(name: str) -> None:
    """Raises a mistake of pydantic's if it is not the name of a knob."""
    kind, _, rest = name.removeprefix(KNOB).partition(".")
    if kind not in _KINDS or not re.fullmatch(_KINDS[kind], rest):
        raise Mistake(f"'{name}' is not a knob", ALLOWED)


def plain(name: str, text: str) -> str:
    """A value with each run of blanks as one. Raises a mistake of pydantic's."""
    value = blanks(text)
    if not value or not value.isprintable() or len(value) > LONGEST:
        allowed = f"one line of text, at most {LONGEST} characters"
        raise Mistake(f"{name}: unknown value '{harmless(text[:LONGEST])}'", allowed)
    return value


def check_fixed(fixed: Mapping[str, str], axes: Collection[str], for_knobs: Iterable[str]) -> None:
    """Raises a mistake if a fixed knob names an unknown axis, or no knob uses an axis that only
    knobs can use."""
    knobs = [text for name, text in fixed.items() if name.startswith(KNOB)]
    used = set(_AXIS.findall(" ".join(knobs)))
    if strange := sorted(used - set(axes)):
        what = f"'{{{strange[0]}}}' in fixed is not an axis of this sweep"
        raise Mistake(what, ", ".join(sorted(axes)))
    if idle := sorted(set(for_knobs) & set(axes) - used):
        allowed = f"knob.sysctl.net.ipv4.tcp_rmem: '4096 87380 {{{idle[0]}}}'"
        raise Mistake(f"no fixed knob uses the axis '{idle[0]}'", allowed)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A fixed value with the values of the axes that it names; `own` if one of them is.

    Raises KeyError if an axis is missing.
    """
    if OWN in (values[axis] for axis in _AXIS.findall(text)):
        return OWN
    return _AXIS.sub(lambda found: values[found[1]], text)


def lines(combinations: Iterable[Mapping[str, str]], every: Sequence[str]) -> list[str]:
    """What the walker reads: NUMBER, KNOB and VALUE with tabs between, numbers from 1 on.

    combinations: the values that are set, by knob. every: all knobs of the sweep; those that are
    not set have no value and are only read, so that each point records them.
    """
    return [
        f"{number}\t{knob}\t{values.get(knob, '')}"
        for number, values in enumerate(combinations, 1)
        for knob in every
    ]


def not_restored(stage: Path) -> dict[str, str]:
    """What a tuning job has set and not restored, as a sentence by node."""
    turns = [
        stage / "knobs.d" / turn / name
        for turn in _names(stage / "knobs.d", stage)
        for name in _names(stage / "knobs.d" / turn, stage)
        if name.endswith(".was") and not name.startswith(".")
    ]
    turns.sort(key=lambda path: path.lstat().st_mtime)
    last: dict[str, Path] = {path.stem: path for path in turns}
    found = {}
    for node, was in sorted(last.items()):
        if nodesets.is_name(node) and (left := _what_is_left(was, stage)):
            found[node] = left
    return found


def _what_is_left(was: Path, stage: Path) -> str:
    originals = _text(was, stage)
    if not originals or was.with_suffix(".restored").exists():
        return ""
    if stuck := _text(was.with_suffix(".stuck"), stage):
        return harmless(f"not restored: {'; '.join(stuck.splitlines())}")
    values = "; ".join(line.replace("\t", " was ", 1) for line in originals.splitlines())
    return harmless(
        f"may not be restored ({values}): its job was lost; a reboot or the next tuning sweep on "
        "that node restores it"
    )


def _names(folder: Path, stage: Path) -> list[str]:
    try:
        return files.names(folder, below=stage, most=MAX_FILES)
    except (OSError, UserError):
        return []


def _text(path: Path, stage: Path) -> str:
    """What a node has written into the stage directory; or why it cannot be read."""
    try:
        return files.read_text(path, below=stage, owners={files.owner(stage)}).strip()
    except FileNotFoundError:
        return ""
    except UserError as error:
        return error.what
