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
from siteproof.answers.attempts import refusal
from siteproof.errors import UserError, UserErrors
from siteproof.record.pair_units import LINK
from siteproof.record.series import SYSTEM
from siteproof.sites import Baseline, Site
from siteproof.sites.key_types import parse_tolerance
from siteproof.sites.schema.yamlfile import MAX_BYTES, shown
from siteproof.sites.site import examine
from siteproof.trend.propose import Proposal

MARK = "# calibrated: "  # the comment above an entry, which the next calibration replaces
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/%-]*")
_RESERVED = re.compile(r"(?i)true|false|yes|no|on|off|null|y|n")
Entry = Mapping[str, object]  # text, a list of texts, or a mapping of texts


@dataclass(frozen=True)
class Change:
    """What becomes of one entry. values: its keys, or those of them that change."""

    name: str
    values: Entry
    comment: str
    new: bool


def apply(path: Path, text: str, owner: str, changes: Sequence[Change]) -> str:
    """The text of a file with all changes. owner: the system that a file of baselines names.

    Raises UserError where it can only be changed by writing it anew.
    """
    root = yaml.compose(text)
    if not isinstance(root, yaml.MappingNode) or (root.flow_style and root.value):
        raise _not_editable(path, "its keys are not written one a line")
    edits: list[tuple[int, int, str]] = []
    for change in changes:
        if not change.new:
            edits += _changed(path, text, root, change)
    for begin, end, instead in sorted(edits, reverse=True):
        text = text[:begin] + instead + text[end:]
    text = _with_owner(text, root, f"system: {scalar(owner)}\n")
    added = [_block(change) for change in changes if change.new]
    return "\n".join([text.rstrip("\n") + "\n", *added]) if added else text


def _not_editable(path: Path, what: str) -> UserError:
    return UserError(shown(path), what, "one key a line, plain values")


def _with_owner(text: str, root: yaml.MappingNode, owner: str) -> str:
    """The text with the line that names the system, if it has none."""
    if root.flow_style:  # {} and comments
        rest = text[: root.start_mark.index] + text[root.end_mark.index :].lstrip(" ")
        return f"{rest.rstrip()}\n\n{owner}" if rest.strip() else owner
    if any(key.value == "system" for key, _ in root.value):
        return text
    return owner + text


def _block(change: Change) -> str:
    lines = [f"{MARK}{change.comment}", f"{change.name}:"]
    lines += [f"  {key}: {_value(value)}" for key, value in change.values.items()]
    return "\n".join(lines) + "\n"


def _changed(
    path: Path, text: str, root: yaml.MappingNode, change: Change
) -> list[tuple[int, int, str]]:
    """The edits of one existing entry. Raises UserError."""
    key, entry = next((pair for pair in root.value if pair[0].value == change.name), (None, None))
    if (
        key is None
        or not isinstance(entry, yaml.MappingNode)
        or text[entry.start_mark.index] == "&"
    ):
        raise _not_editable(path, f"{change.name} is not a mapping of its own")
    values = {k.value: v for k, v in entry.value}
    edits, missing = [], []
    for name, value in change.values.items():
        node = values.get(name)
        if node is None:
            missing.append(f"{name}: {_value(value)}")
            continue
        if not isinstance(node, yaml.ScalarNode) or text[node.start_mark.index] in "|>&*":
            raise _not_editable(path, f"{name} of {change.name} is not a plain value")
        edits.append((node.start_mark.index, node.end_mark.index, _value(value)))
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
        return above, begin, f"{MARK}{change.comment}\n"
    return begin, begin, f"{MARK}{change.comment}\n"


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
    plain = _PLAIN.fullmatch(text) and not text.endswith(" ") and not _RESERVED.fullmatch(text)
    return text if plain else json.dumps(text, ensure_ascii=False)


NAME = "baselines.yaml"
SOURCE = "siteproof calibrate"
DIGITS = 4  # of a bound: the tolerance is thousands of times coarser
SAME = 0.1  # of the tolerance: a median that moved by less is the old one
BLOCK = Decimal("0.99")  # a problem chosen by the node's memory may differ by a block
MANY = 1000  # from here on a number may be such a problem's size
_NOT_OF_IDS = re.compile(r"[^A-Z0-9._-]+")


def changes(site: Site, proposals: Iterable[Proposal]) -> list[Change]:
    """The changes of the file; a baseline whose value still holds is not changed."""
    taken = {*site.criteria, *site.baselines}
    found = []
    for one in proposals:
        old = next((name for name, b in site.baselines.items() if _is_of(site, b, one)), None)
        if old is None:
            name = _name(one, taken)
            taken.add(name)
            found.append(Change(name, _whole(site, one), one.comment, new=True))
        elif not _holds(site.baselines[old], one):
            found.append(Change(old, _values(one, site.baselines[old]), one.comment, new=False))
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
    changed = apply(path, text, site.name, made)
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


def _is_of(site: Site, baseline: Baseline, one: Proposal) -> bool:
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
    slack = float(parse_tolerance(old.tolerance or "0 %"))
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
        if site.catalogue[one.key.metric].of_gpus:
            entry |= {"scope": "every gpu"}
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
