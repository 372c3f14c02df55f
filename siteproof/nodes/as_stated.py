"""Facts that the site states and a node does not meet, as findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.sites import Site, bought
from siteproof.sites.bought import FactResult, Outcome


def findings(
    results: Mapping[str, Sequence[FactResult]],
) -> Iterator[tuple[Finding, Iterable[str]]]:
    """What is not as stated or was not read, section by section, each with its node."""
    for node, of_node in results.items():
        for result in of_node:
            if result.outcome is not Outcome.AS_STATED:
                yield of_result(result), [node]


def of_result(result: FactResult) -> Finding:
    """The finding of a fact that is not as stated, or that was not read."""
    details = {"section": result.section, "field": result.field, "expected": result.expected}
    if result.missed:
        return finding.of(Kind.FACT_DIFFERS, {**details, "found": result.found})
    return finding.of(Kind.FACT_NOT_READ, details, message=result.why)


def not_stated(site: Site, role: str) -> list[Finding]:
    """The sections of which the site gives no field for a role, each with the reason."""
    found = {}
    for node in site.expected(role):
        for name, section in bought.sections_of(site, node).items():
            if not section.fields:
                found[name] = finding.of(
                    Kind.NOT_STATED, {"section": name}, subject=role, message=section.not_stated
                )
    return list(found.values())
