"""baselines.yaml with some entries changed and all else as somebody wrote it, comments and all.

The text is never written anew: values are put where YAML says that the old ones stand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

MARK = "# calibrated: "  # the comment above an entry, which the next calibration replaces
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/%-]*")
_WORD = re.compile(r"(?i)true|false|yes|no|on|off|null|y|n")
Entry = Mapping[str, object]  # text, a list of texts, or a mapping of texts


@dataclass(frozen=True)
class Change:
    """What becomes of one entry. values: its keys, or those of them that change. told: comment."""

    name: str
    values: Entry
    told: str
    new: bool


class NotEditable(Exception):
    """Why a text cannot be changed without writing it anew."""


def apply(text: str, owner: str, changes: Sequence[Change]) -> str:
    """The text with all changes. owner: the system that a file of baselines names.

    Raises NotEditable.
    """
    root = yaml.compose(text)
    if not isinstance(root, yaml.MappingNode):
        raise NotEditable("no mapping of keys")
    if root.flow_style and root.value:
        raise NotEditable("all keys stand in one pair of braces; one key a line can be changed")
    edits: list[tuple[int, int, str]] = []
    for change in changes:
        if not change.new:
            edits += _changed(text, root, change)
    for begin, end, instead in sorted(edits, reverse=True):
        text = text[:begin] + instead + text[end:]
    if root.flow_style:  # {} and comments
        rest = text[: root.start_mark.index] + text[root.end_mark.index :].lstrip(" ")
        text = f"{rest.rstrip()}\n" if rest.strip() else ""
        text += f"\nsystem: {scalar(owner)}\n" if text else f"system: {scalar(owner)}\n"
    elif not any(key.value == "system" for key, _ in root.value):
        text = f"system: {scalar(owner)}\n{text}"
    added = [_block(change) for change in changes if change.new]
    return "\n".join([text.rstrip("\n") + "\n", *added]) if added else text


def _block(change: Change) -> str:
    lines = [f"{MARK}{change.told}", f"{change.name}:"]
    lines += [f"  {key}: {_value(value)}" for key, value in change.values.items()]
    return "\n".join(lines) + "\n"


def _changed(text: str, root: yaml.MappingNode, change: Change) -> list[tuple[int, int, str]]:
    """The edits of one entry that is there."""
    key, entry = next(((k, v) for k, v in root.value if k.value == change.name), (None, None))
    if (
        key is None
        or not isinstance(entry, yaml.MappingNode)
        or text[entry.start_mark.index] == "&"
    ):
        raise NotEditable(f"{change.name} is no mapping of its own")
    held = {k.value: (k, v) for k, v in entry.value}
    edits, missing = [], []
    for name, value in change.values.items():
        if name in held:
            node = held[name][1]
            if not isinstance(node, yaml.ScalarNode) or text[node.start_mark.index] in "|>&*":
                raise NotEditable(f"{name} of {change.name} is no plain value")
            edits.append((node.start_mark.index, node.end_mark.index, _value(value)))
        else:
            missing.append(f"{name}: {_value(value)}")
    if missing:
        edits.append(_insertion(text, entry, missing))
    edits.append(_comment(text, key, change))
    return edits


def _insertion(text: str, entry: yaml.MappingNode, missing: Sequence[str]) -> tuple[int, int, str]:
    """Keys that an entry lacks, before its first key."""
    first = entry.value[0][0].start_mark
    between = ", " if entry.flow_style else "\n" + " " * first.column
    return first.index, first.index, "".join(f"{line}{between}" for line in missing)


def _comment(text: str, key: yaml.Node, change: Change) -> tuple[int, int, str]:
    """The comment right above an entry, or in the place of the last calibration's."""
    begin = key.start_mark.index
    above = text.rfind("\n", 0, begin - 1) + 1 if begin else 0
    if begin and text.startswith(MARK, above):
        return above, begin, f"{MARK}{change.told}\n"
    return begin, begin, f"{MARK}{change.told}\n"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(str(k))}: {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(scalar(str(v)) for v in value) + "]"
    return scalar(str(value))


def scalar(text: str) -> str:
    """A text as YAML, quoted where it would not be read as that very text.

    Numbers and dates stay plain: a site's values are texts, however they are written.
    """
    plain = _PLAIN.fullmatch(text) and not text.endswith(" ") and not _WORD.fullmatch(text)
    return text if plain else json.dumps(text, ensure_ascii=False)
