"""Whether nodes are what was bought: the facts that a site states, counted for its criteria."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from siteproof.derivations.given import Given, Lack, Result
from siteproof.derivations.inventory import of_nodes
from siteproof.record import finding
from siteproof.record.finding import Kind
from siteproof.record.samples import TOOL_MISSING, Sample
from siteproof.sites import bought
from siteproof.sites.bought import FactResult, Outcome
from siteproof.sites.hosts_csv import SECTIONS

SECTION = "section"
MAX_NAMED = 4


def missed(given: Given) -> Iterator[Result]:
    """The facts of a node that are not as stated.

    Those of a `section` that the condition names, or of the column of `hosts.csv` that the metric
    is named after; else all of them.
    """
    name, source = given.stated(SECTION), "facts of system.yaml"
    if given.of == "section":
        source = f"facts: {name}"
    elif given.of:
        name, source = SECTIONS[given.criterion.metric.partition(".")[2]], given.of

    described, lacks = of_nodes(given)
    yield from lacks
    for node, (_, sample) in described.items():
        results = given.material.facts.get(node, [])
        if own := bought.of_section(results, name) if given.of else results:
            yield _of_node(given, node, own, sample)
        else:
            yield given.missing([f"{source}, which states nothing of it"], node)


def _of_node(given: Given, node: str, results: Sequence[FactResult], described: Sample) -> Result:
    """How many facts are not as stated; a node that is not known to be wrong must have read all."""
    wrong = [result for result in results if result.missed]
    unread = [result for result in results if result.outcome is Outcome.NOT_READ]
    if wrong:
        texts = [f"{one.field}: expected {one.expected}, found {one.found}" for one in wrong]
        return given.sample(Fraction(len(wrong)), [described], _named(texts), node)
    if len(unread) == len(results):
        why = _named([f"{one.field}: {one.why}" for one in unread])
        return given.sample(None, [described], why, node, whole=[described], status=TOOL_MISSING)
    if unread:
        first = unread[0]
        details = {"section": first.section, "field": first.field, "expected": first.expected}
        return Lack(finding.of(Kind.FACT_NOT_READ, details, message=first.why), node)
    return given.sample(Fraction(0), [described], f"all {len(results)} facts are as stated", node)


def _named(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return "; ".join(texts[:MAX_NAMED]) + more
