"""Criteria of one system for another: what can be kept is kept, and everything else is a gap.

A bound is kept where it does not depend on the size of the hardware: a share, 0, or report_only.
Any other bound is a gap with the old one in its text, and the source always is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from siteproof import errors, units
from siteproof.errors import UserError
from siteproof.porting.new_site import in_quotes, marked
from siteproof.sites import Criterion, Expected, Site
from siteproof.sites.promise import SIGNS

_SHARES = ("share", "percentage points")
_PLAIN = (  # keys that mean the same on any system, in the order in which they are written
    *("subject", "scope", "ties", "programs", "phase", "trials", "answered_by", "max_age", "note"),
)


class Part(StrEnum):
    """Parts of a site that a criterion names."""

    ROLE = "role"
    LINK = "link"
    FILE_SYSTEM = "file system"
    SECTION = "section"
    REQUEST = "list of requests"
    EMULATION = "emulation"


_CONDITIONS = {
    "file_system": Part.FILE_SYSTEM,
    "section": Part.SECTION,
    "of": Part.REQUEST,
    "emulated": Part.EMULATION,
}
_SIDES = {"nodes": Part.ROLE, "link": Part.LINK, "file_system": Part.FILE_SYSTEM}


@dataclass(frozen=True)
class Carried:
    """One criterion. entry: its lines; none: not carried. missing: what has no counterpart.

    bound: of the old system; empty if it has none and is only reported.
    """

    id: str
    bound: str
    entry: tuple[str, ...]
    keeps_bound: bool
    missing: tuple[str, ...]


class Counterparts:
    """The parts of the new system, and which of them stands for which of the old one."""

    def __init__(
        self, source: Site, target: Site, renamed: Mapping[Part, Mapping[str, str]]
    ) -> None:
        """renamed: by part, the new name of an old one. Raises UserError for an unknown one."""
        self._known = parts(target)
        self._renamed = renamed
        for part, names in renamed.items():
            option = f"--{part.replace(' ', '-')}"
            for old, new in names.items():
                _must_be(option, old, parts(source)[part], source.name)
                _must_be(option, new, self._known[part], target.name)

    def of(self, part: Part, name: str) -> str | None:
        """The new system's part for one of the old; None: it has none."""
        new = self._renamed.get(part, {}).get(name, name)
        return new if new in self._known[part] else None


def parts(site: Site) -> dict[Part, set[str]]:
    """What criteria of a site may name."""
    system = site.system
    return {
        Part.ROLE: set(system.nodes),
        Part.LINK: set(system.links),
        Part.FILE_SYSTEM: set(system.file_systems),
        Part.SECTION: system.sections(),
        Part.REQUEST: set(system.requested),
        Part.EMULATION: system.emulations(),
    }


def _must_be(option: str, name: str, known: set[str], site: str) -> None:
    if name not in known:
        what = f"'{name[:40]}' is not in {site}{errors.hint(name, known)}"
        raise UserError(option, what, sorted(known))


def carry(source: Site, target: Site, counterparts: Counterparts) -> list[Carried]:
    """Each criterion of the old system as one of the new."""
    return [_one(key, one, source, target, counterparts) for key, one in source.criteria.items()]


@dataclass(frozen=True)
class _Names:
    """What a criterion of the old system names, as YAML of the new; missing: what that lacks."""

    counterparts: Counterparts
    source: str
    missing: list[str]

    def one(self, part: Part | None, name: str) -> str:
        """A part's name; a gap if the new system has none."""
        new = self.counterparts.of(part, name) if part else name
        return self._gap(part, [name]) if new is None else in_quotes(new)

    def several(self, part: Part, names: list[str]) -> str:
        """A list of names; a gap if the new system lacks one of them."""
        new = [self.counterparts.of(part, name) for name in names]
        absent = [name for name, one in zip(names, new, strict=True) if one is None]
        return self._gap(part, absent) if absent else f"[{', '.join(filter(None, new))}]"

    def _gap(self, part: Part | None, absent: list[str]) -> str:
        self.missing.extend(f"{part} {name}" for name in absent)
        return marked(f"what stands for {part} {', '.join(absent)} of {self.source}")


def _one(
    key: str, criterion: Criterion, source: Site, target: Site, counterparts: Counterparts
) -> Carried:
    written = getattr(criterion, criterion.kind)
    bound = "" if criterion.kind == "report_only" else f"{SIGNS[criterion.kind]} {written}"
    if key in target.criteria or key in target.baselines:
        return Carried(key, bound, (), False, (f"the id is taken in {target.name}",))
    if criterion.metric not in target.catalogue:
        return Carried(key, bound, (), False, (f"metric {criterion.metric}",))
    names = _Names(counterparts, source.name, [])
    references = list(_references(criterion, names))
    lacking = _lacking(criterion, target, counterparts)
    names.missing.extend(lacking)
    keeps = _keeps_bound(criterion) and not lacking
    stated = f"where it is stated for {target.name}; {source.name}: {criterion.source}"
    lines = [
        f"{in_quotes(key) if key.lower() == 'null' else key}:",
        f"  description: {in_quotes(criterion.description)}",
        f"  metric: {criterion.metric}",
        *references,
        _bound(criterion, source.name, keeps),
        *_plain(criterion, keeps),
        *_conditions(criterion, names),
        f"  source: {marked(stated)}",
    ]
    if criterion.not_here:
        lines.append(f"  # On {source.name} not here: {' '.join(criterion.not_here.split())}")
    return Carried(key, bound, tuple(lines), keeps, tuple(names.missing))


def _keeps_bound(criterion: Criterion) -> bool:
    if criterion.kind == "report_only":
        return True
    bound = criterion.bound
    if bound is None:
        return False
    of_any_size = units.kind(bound.quantity.unit) in _SHARES or bound.quantity.value == 0
    return bool(bound.fact) or of_any_size


def _lacking(criterion: Criterion, target: Site, counterparts: Counterparts) -> list[str]:
    """The fact that the bound is a share of, for each role of the new system that lacks it."""
    fact = criterion.bound.fact if criterion.bound else ""
    named = [counterparts.of(Part.ROLE, role) for role in criterion.nodes]
    roles = [role for role in named if role] if named and all(named) else target.system.nodes
    without = [role for role in roles if fact and fact not in target.hardware_of(role).quantities]
    return [f"{fact} of role {role}" for role in without]


def _bound(criterion: Criterion, source: str, keeps: bool) -> str:
    text = str(getattr(criterion, criterion.kind))
    if keeps:
        return f"  {criterion.kind}: {in_quotes(text)}"
    rounded = f", rounding {criterion.rounding}" if criterion.step else ""
    return f"  {criterion.kind}: {marked(f'{text}{rounded} on {source}')}"


def _references(criterion: Criterion, names: _Names) -> Iterator[str]:
    """`nodes`, `links` and `against`, each a gap where the new system lacks one of them."""
    for key, part in (("nodes", Part.ROLE), ("links", Part.LINK)):
        if given := getattr(criterion, key):
            yield f"  {key}: {names.several(part, given)}"
    sides = {side: names.one(_SIDES.get(side), name) for side, name in criterion.against.items()}
    if sides:
        yield f"  against: {_mapping(sides)}"


def _conditions(criterion: Criterion, names: _Names) -> Iterator[str]:
    if "conditions" not in criterion.model_fields_set:
        return
    found = {}
    for name, rule in criterion.conditions.items():
        part = _CONDITIONS.get(name) if rule.exact is not None else None
        found[name] = names.one(part, rule.exact or "") if part else _rule(rule)
    yield f"  conditions: {_mapping(found)}"


def _rule(rule: Expected) -> str:
    if rule.texts:
        return _value(rule.one_of or rule.exact)
    given = rule.model_dump(exclude_none=True)
    return _mapping({key: _value(one) for key, one in given.items()})


def _plain(criterion: Criterion, keeps: bool) -> Iterator[str]:
    names = (*_PLAIN, "rounding") if keeps else _PLAIN
    for name in names:
        if name in criterion.model_fields_set and getattr(criterion, name) is not None:
            yield f"  {name}: {_value(getattr(criterion, name))}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(in_quotes(str(one)) for one in value)}]"
    return in_quotes(str(value))


def _mapping(entries: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{name}: {text}' for name, text in entries.items())}}}"
