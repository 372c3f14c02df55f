"""Whether nodes are what the site states of them, field by field: descriptions in, results out.

A section without a stated field has no result, so nobody can take it for a pass.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from siteproof.errors import harmless
from siteproof.sites.site import Site
from siteproof.sites.stated import Fact, FactSection, why_not_read
from siteproof.units import count

Fields = Mapping[str, str]
MAX_SHOWN = 3  # values of a glob's fields
MAX_CHARACTERS = 200  # of a value that is shown
OF_A_PART = (".serial", ".uuid", ".asset_tag")  # a DIMM's own, and no DIMM, in memory.dimm.*
WILD = frozenset("*?[")


class Outcome(StrEnum):
    """What became of one fact on one node."""

    AS_STATED = "as stated"
    DIFFERENT = "different"
    MISSING = "missing"  # the node could have read the field, and has none
    NOT_READ = "not read"  # needs root, a tool that is not installed, or a tool that failed


@dataclass(frozen=True)
class FactResult:
    """One fact on one node. expected, found: in words, for a person. why: of what was not read."""

    section: str
    field: str
    expected: str
    outcome: Outcome
    found: str = ""
    why: str = ""

    @property
    def missed(self) -> bool:
        """Whether the node is not what was stated: other values, or a field that it lacks."""
        return self.outcome in (Outcome.DIFFERENT, Outcome.MISSING)


def of_nodes(
    site: Site, descriptions: Mapping[str, Fields], unreadable: Mapping[str, Fields]
) -> dict[str, list[FactResult]]:
    """The results of each described node for which the site states facts.

    unreadable: by node, what it could not read, with the reason.
    """
    found = {}
    for node, fields in descriptions.items():
        facts = sections_of(site, node)
        if any(section.fields for section in facts.values()):
            found[node] = compare(facts, fields, unreadable.get(node, {}), node)
    return found


def sections_of(site: Site, node: str) -> dict[str, FactSection]:
    """What the site states of a node: by its hardware, its role and its row of hosts.csv."""
    role = site.role_of(node)
    if role is None:
        return {}
    return _with(sections_of_role(site, role), site.hosts.get(node, {}))


def sections_of_role(site: Site, role: str) -> dict[str, FactSection]:
    """The same of every node of a role, without hosts.csv."""
    return _with(site.hardware_of(role).stated, site.system.nodes[role].facts)


def _with(
    sections: Mapping[str, FactSection], more: Mapping[str, FactSection]
) -> dict[str, FactSection]:
    found = dict(sections)
    for name, section in more.items():
        fields = {**(found[name].fields if name in found else {}), **section.fields}
        merged = section.model_copy(update={"fields": fields})
        found[name] = merged if section.fields or name not in found else found[name]
    return found


def compare(
    facts: Mapping[str, FactSection], fields: Fields, unreadable: Fields, node: str = ""
) -> list[FactResult]:
    """Each stated field of a node, section by section in the site's order.

    fields: as described; unreadable: what could not be read, with the reason; node: for {node}.
    """
    names = sorted(fields)
    return [
        _result(name, field, fact, _Node(node, fields, names, unreadable))
        for name, section in facts.items()
        for field, fact in section.fields.items()
    ]


def of_section(results: Iterable[FactResult], section: str) -> list[FactResult]:
    """The results of one section; empty: nothing is stated."""
    return [result for result in results if result.section == section]


def missed(results: Iterable[FactResult]) -> int:
    """How many facts are not as stated."""
    return sum(result.missed for result in results)


def not_read(results: Iterable[FactResult]) -> dict[str, str]:
    """The facts that could not be read, by field, each with its reason."""
    return {r.field: r.why for r in results if r.outcome is Outcome.NOT_READ}


@dataclass(frozen=True)
class _Node:
    """A node's description. names: of its fields, sorted."""

    name: str
    fields: Fields
    names: Sequence[str]
    unreadable: Fields

    def matching(self, glob: str) -> dict[str, str]:
        """The fields that a name, or a glob of names, means."""
        if glob in self.fields:
            return {glob: self.fields[glob]}
        at = next((i for i, c in enumerate(glob) if c in WILD), None)
        if at is None:
            return {}
        first = bisect_left(self.names, glob[:at])
        found = {}
        for name in self.names[first:]:
            if not name.startswith(glob[:at]):
                break
            if fnmatchcase(name, glob) and not (glob.endswith("*") and name.endswith(OF_A_PART)):
                found[name] = self.fields[name]
        return found


def _result(section: str, field: str, fact: Fact, node: _Node) -> FactResult:
    there = node.matching(field)
    good = [name for name, value in there.items() if fact.met_by(value, name, node.name)]
    needed = max(len(there), 1) if fact.count is None else fact.count
    wrong = len(good) > needed if fact.count is not None else len(good) < len(there)
    expected = fact.shown(node.name)
    is_whole = field in there or 0 < needed == fact.count == len(good)
    why = "" if wrong or is_whole else why_not_read(field, node.unreadable.items())
    if why:
        return FactResult(section, field, expected, Outcome.NOT_READ, why=why)
    outcome = Outcome.AS_STATED
    if len(good) != needed:
        outcome = Outcome.DIFFERENT if there else Outcome.MISSING
    return FactResult(section, field, expected, outcome, _found(fact, there, good))


def _found(fact: Fact, there: Mapping[str, str], good: Sequence[str]) -> str:
    """What the node has, in words: the values that are not as stated, or how many are."""
    if not there:
        return "missing"
    others = {name: value for name, value in there.items() if name not in good}
    if fact.count is None:
        return _listed(others or there)
    times = count(len(good), "time")
    return f"{times}, and {_listed(others)}" if others else times


def _listed(fields: Mapping[str, str]) -> str:
    """Values with their names, the first ones; one alone without its name."""
    pairs = [f"{harmless(name)} {_shown(value)}" for name, value in fields.items()]
    if len(pairs) == 1:
        return _shown(*fields.values())
    more = f"; and {len(pairs) - MAX_SHOWN} more" if len(pairs) > MAX_SHOWN else ""
    return "; ".join(pairs[:MAX_SHOWN]) + more


def _shown(value: str) -> str:
    text = harmless(value[:MAX_CHARACTERS])
    return (f"{text}..." if len(value) > MAX_CHARACTERS else text) or "empty"
