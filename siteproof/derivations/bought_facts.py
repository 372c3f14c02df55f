"""Whether nodes are what was bought: the facts that a site states, counted for its criteria."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from siteproof.derivations.given import Given, Lack, Result
from siteproof.derivations.inventory import FIELDS
from siteproof.record import finding
from siteproof.record.finding import Kind
from siteproof.sites import bought
from siteproof.sites.bought import FactResult, Outcome
from siteproof.sites.hosts_csv import SECTIONS

SECTION = "section"
MAX_NAMED = 4


def all_sections(given: Given) -> Iterator[Result]:
    """The facts of a node that are not as stated, of all sections."""
    yield from _each(given, lambda results: results, "facts of system.yaml")


def one_section(given: Given) -> Iterator[Result]:
    """Those of the section that the condition names."""
    rule = given.criterion.conditions.get(SECTION)
    name = (rule.exact if rule else "") or ""
    yield from _each(given, lambda results: bought.of_section(results, name), f"facts: {name}")


def of_host_table(metric: str) -> Callable[[Given], Iterator[Result]]:
    """Those of a column of hosts.csv, by the metric's own name."""

    def derive(given: Given) -> Iterator[Result]:
        name = SECTIONS[metric]
        yield from _each(given, lambda results: bought.of_section(results, name), "hosts.csv")

    return derive


def _each(
    given: Given, chosen: Callable[[Sequence[FactResult]], Sequence[FactResult]], source: str
) -> Iterator[Result]:
    fields, results = given.material.descriptions[0], given.material.facts
    for node in given.units(given.input(FIELDS)):
        if node not in fields:
            yield given.missing([f"{FIELDS} of {node}"], node)
        elif own := chosen(results.get(node, ())):
            yield _of_node(given, node, own)
        else:
            yield given.missing([f"{source}, which states nothing of it"], node)


def _of_node(given: Given, node: str, results: Sequence[FactResult]) -> Result:
    """How many facts are not as stated; a node that is not known to be wrong must have read all."""
    described = given.material.descriptions[2][node]
    wrong = [result for result in results if result.missed]
    unread = [result for result in results if result.outcome is Outcome.NOT_READ]
    if wrong:
        texts = [f"{one.field}: expected {one.expected}, found {one.found}" for one in wrong]
        return given.sample(Fraction(len(wrong)), [described], _named(texts), node)
    if len(unread) == len(results):
        why = _named([f"{one.field}: {one.why}" for one in unread])
        return given.without_tool(described, why, node)
    if unread:
        first = unread[0]
        details = {"section": first.section, "field": first.field, "expected": first.expected}
        return Lack(finding.of(Kind.FACT_NOT_READ, details, message=first.why), node)
    return given.sample(Fraction(0), [described], f"all {len(results)} facts are as stated", node)


def _named(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return "; ".join(texts[:MAX_NAMED]) + more
