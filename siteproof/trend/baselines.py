"""Proposals as a change of baselines.yaml: what there is gets new values, the rest is added."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import unified_diff
from math import isclose
from pathlib import Path

import yaml

from siteproof import files, units
from siteproof.errors import UserError, UserErrors
from siteproof.judge.criterion import refusal
from siteproof.record.pair_units import LINK
from siteproof.record.series import SYSTEM
from siteproof.schema.yamlfile import MAX_BYTES, shown
from siteproof.sites import Baseline, Site
from siteproof.sites.site import examine
from siteproof.trend.propose import Proposal

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
        edits.append(_insertion(entry, missing))
    edits.append(_comment(text, key, change))
    return edits


def _insertion(entry: yaml.MappingNode, missing: Sequence[str]) -> tuple[int, int, str]:
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


NAME = "baselines.yaml"
SOURCE = "siteproof calibrate"
DIGITS = 4  # of a bound: the tolerance is thousands of times coarser
SAME = 0.1  # of the tolerance: a median that moved by less is the old one
BLOCK = Decimal("0.99")  # a problem chosen by the node's memory may differ by a block
MANY = 1000  # from here on a number may be such a problem's size
_NOT_OF_IDS = re.compile(r"[^A-Z0-9._-]+")


def changes(site: Site, proposals: Iterable[Proposal]) -> list[Change]:
    """What the file would be changed by; a baseline that holds as it is is left alone."""
    taken = {*site.criteria, *site.baselines}
    found = []
    for one in proposals:
        old = next((name for name, b in site.baselines.items() if _speaks_of(site, b, one)), None)
        if old is None:
            name = _name(one, taken)
            taken.add(name)
            found.append(Change(name, _whole(site, one), one.told, new=True))
        elif not _holds(site.baselines[old], one):
            found.append(Change(old, _values(one, site.baselines[old]), one.told, new=False))
    return found


def text_of(site: Site) -> tuple[Path, str]:
    """The file and what it holds now."""
    path = (site.folder / NAME).resolve()
    try:
        return path, files.read_named(path, MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        raise UserError(path, "cannot be read") from None


def applied(site: Site, path: Path, text: str, made: Sequence[Change]) -> str:
    """The text with all changes, which has no mistake. Raises UserError and UserErrors."""
    try:
        changed = apply(text, site.name, made)
    except NotEditable as why:
        raise UserError(shown(path), str(why), "one key a line, plain values") from None
    with tempfile.TemporaryDirectory(prefix="siteproof-") as top:
        copy = Path(top) / site.name
        shutil.copytree(site.folder, copy)
        (copy / NAME).write_text(changed, encoding="utf-8")
        _, documents = examine(site.name, copy)
    mistakes = [error for document in documents for error in document.sorted_mistakes()]
    if mistakes:
        raise UserErrors(
            [
                UserError(shown(path), f"would have a mistake: {e.what}", e.allowed, e.hint)
                for e in mistakes
            ]
        )
    return changed


def diff(path: Path, old: str, new: str) -> str:
    """The change as `git diff` would print it."""
    name = str(shown(path)).lstrip("/")
    return "".join(
        unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}"
        )
    )


def write(path: Path, text: str) -> None:
    """The file of `text_of`, whole or not at all. Raises OSError, UserError."""
    files.write(path, text.encode(), below=path.parent)


def _speaks_of(site: Site, baseline: Baseline, one: Proposal) -> bool:
    """Whether a baseline is the one of a proposal's values, and of no others."""
    if baseline.metric != one.key.metric or baseline.kind != one.kind:
        return False
    if baseline.links != ([one.link] if one.link else []) or refusal(baseline, one.sample):
        return False
    alone = one.link or one.key.role == SYSTEM
    return bool(alone) or site.roles_of(baseline) == [one.key.role]


def _holds(old: Baseline, one: Proposal) -> bool:
    if old.bound is None or old.bound.fact or old.tolerance is None:
        return False
    bound = float(units.convert(old.bound.quantity.value, old.bound.quantity.unit, one.group.unit))
    slack = float(old._slack)
    return (
        isclose(slack, one.tolerance, rel_tol=1e-6)  # 41 * 0.005 is not 0.205
        and abs(bound / one.median - 1) <= SAME * one.tolerance
    )


def _values(one: Proposal, old: Baseline | None) -> dict[str, object]:
    """The keys that every calibration sets."""
    unit = one.group.unit
    if old is not None and old.bound and not old.bound.fact:
        unit = old.bound.quantity.unit
    median = float(units.convert(Decimal(repr(one.median)), one.group.unit, unit))
    bound = f"{float(f'{median:.{DIGITS}g}'):.10g}"
    return {
        one.kind: f"{bound} {unit}",
        "tolerance": f"{100 * one.tolerance:.3g} %",
        "source": SOURCE,
        "note": f"Median of {one.count} values in {one.runs} runs",
        "taken": str(one.last),
    }


def _whole(site: Site, one: Proposal) -> dict[str, object]:
    entry: dict[str, object] = {
        "description": site.catalogue[one.key.metric].description,
        "metric": one.key.metric,
    }
    if one.link:
        entry |= {"scope": "every pair", "links": [one.link]}
    elif one.key.role == SYSTEM:
        entry |= {"scope": "system"}
    elif one.key.role != LINK:
        entry |= {"nodes": [one.key.role]}
    values = _values(one, None)
    entry |= {key: values.pop(key) for key in (one.kind, "tolerance")}
    if one.conditions:
        entry |= {"conditions": {k: _rule(v) for k, v in sorted(one.conditions.items())}}
    if one.program:
        entry |= {"programs": [one.program]}
    return entry | values


def _rule(text: str) -> object:
    """The condition itself; of a problem's size all that is no more than a block smaller."""
    if text.isdecimal() and int(text) >= MANY:
        return {"at_least": str(int(int(text) * BLOCK))}
    return text


def _name(one: Proposal, taken: Container[str]) -> str:
    words = [
        "BASE",
        one.key.metric.replace(".", "-"),
        one.link or one.key.role,
        *(v for _, v in one.key.dims),
    ]
    name = _NOT_OF_IDS.sub("-", "-".join(words).upper())
    number = 2
    while name in taken:
        name = f"{name.rstrip('0123456789').rstrip('-')}-{number}"
        number += 1
    return name
