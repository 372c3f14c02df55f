"""Proposals as a change of baselines.yaml: what there is gets new values, the rest is added."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Container, Iterable, Sequence
from decimal import Decimal
from difflib import unified_diff
from math import isclose
from pathlib import Path

from siteproof import samples, units
from siteproof.analysis.pair_units import LINK
from siteproof.analysis.verdict import refusal
from siteproof.calibration import edit
from siteproof.calibration.edit import Change, NotEditable
from siteproof.calibration.propose import Proposal
from siteproof.errors import UserError, UserErrors
from siteproof.series import SYSTEM
from siteproof.sites import Baseline, Site
from siteproof.sites.site import examine
from siteproof.sites.yamlfile import shown

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
    return path, path.read_text(encoding="utf-8")


def applied(site: Site, path: Path, text: str, made: Sequence[Change]) -> str:
    """The text with all changes, which has no mistake. Raises UserError and UserErrors."""
    try:
        changed = edit.apply(text, site.name, made)
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
            [UserError(shown(path), f"would have a mistake: {e.what}", e.allowed) for e in mistakes]
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
    """The file, whole or not at all. Raises OSError."""
    samples.write_whole(path, text.encode())


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
