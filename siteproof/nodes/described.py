"""What nodes report of themselves, as findings: what differs, is not as stated, or not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from siteproof.analysis import counters
from siteproof.analysis.uniformity import Odd, Uniformity
from siteproof.answers.attempts import failure
from siteproof.record import descriptions, finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import Sample
from siteproof.sites import Site, bought
from siteproof.sites.bought import FactResult, Outcome

OnNodes = tuple[Finding, Iterable[str]]


def differing(role: str, same: Uniformity) -> Iterator[OnNodes]:
    """Each field in which a node differs; each value of a field that has no majority."""
    for node, fields in same.differing.items():
        yield from ((of_field(role, one), [node]) for one in fields)
    for name, values in same.undecided.items():
        for value, nodes in values.items():
            details = {"field": name, "found": finding.text(value), "role": role}
            yield finding.of(Kind.NO_MAJORITY, details), nodes


def of_field(role: str, one: Odd) -> Finding:
    """A field in which a node of a role differs."""
    details = {
        "field": one.field,
        "found": finding.text(one.value),
        "majority": finding.text(one.majority),
        "role": role,
    }
    return finding.of(Kind.FIELD_DIFFERS, details)


def not_read(unread: Mapping[str, Mapping[str, str]]) -> Iterator[OnNodes]:
    """Each field that a node could not read, with the reason."""
    for node, names in unread.items():
        for name, why in names.items():
            yield finding.of(Kind.FIELD_NOT_READ, {"field": name}, message=why), [node]


def not_as_stated(results: Mapping[str, Sequence[FactResult]]) -> Iterator[OnNodes]:
    """What is not as stated or was not read, section by section, each with its node."""
    for node, of_node in results.items():
        for result in of_node:
            if result.outcome is not Outcome.AS_STATED:
                yield of_fact(result), [node]


def of_fact(result: FactResult) -> Finding:
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


def not_described(samples: Iterable[Sample], missing: Iterable[str]) -> Iterator[OnNodes]:
    """Why each of these nodes is not described."""
    failed = {
        sample.node: sample
        for sample in samples
        if sample.status != "ok" and sample.metric.partition(".")[0] == descriptions.CHECK
    }
    for node in missing:
        why = Finding(Kind.NOT_MEASURED, check=descriptions.CHECK)
        if node in failed:
            why = replace(failure(failed[node]), since="")
        yield why, [node]


def health(samples: Sequence[Sample]) -> Iterator[Finding]:
    """What has grown between the first and the last look at each node."""
    for delta in counters.deltas(*counters.around(samples)):
        if delta.rebooted:
            yield Finding(Kind.RESTARTED_BETWEEN, delta.node)
        for name, grown in delta.grown.items():
            yield finding.of(
                Kind.COUNTER_GREW, {"counter": name, "by": str(grown)}, subject=delta.node
            )
        for name, why in delta.unknown.items():
            yield finding.of(
                Kind.COUNTER_UNKNOWN, {"counter": name}, subject=delta.node, message=why
            )
