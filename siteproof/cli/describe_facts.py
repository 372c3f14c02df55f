"""`siteproof describe --facts`: which fields of the nodes are not as the site states them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import click

from siteproof import nodesets
from siteproof.cli.described import COLUMNS, Described, finding_rows, print_findings, roles_of
from siteproof.cli.records import print_answer, print_plain, print_wrapped
from siteproof.errors import ExitCode, UserError
from siteproof.export import documents
from siteproof.nodes import as_stated
from siteproof.nodes.described import not_described
from siteproof.record import finding
from siteproof.record.finding import Finding
from siteproof.sites import bought
from siteproof.sites.bought import FactResult
from siteproof.units import count


@dataclass(frozen=True)
class Facts:
    """The facts of one role. results: by node; findings: what is not as stated, or not known."""

    role: str
    expected: Sequence[str]
    missing: Sequence[str]
    results: Mapping[str, Sequence[FactResult]]
    findings: Sequence[Finding]


def answer_facts(
    found: Described, node: str | None, most: int | None, *, as_json: bool, plain: bool
) -> ExitCode:
    """Compare with what the site states, print it, and return the exit code."""
    known = bought.of_nodes(found.site, found.fields, found.unread)
    roles = [_facts_of(found, name, known, node) for name in roles_of(found.site)]
    roles = [role for role in roles if role.expected]
    if not roles and node is not None:
        raise UserError("describe", f"'{node}' is not a node of {found.site.system.system}")
    code = _facts_code(roles)
    findings = [why for role in roles for why in role.findings]
    if as_json:
        document = {
            **documents.head(found.site.system.system, found.chosen),
            "exit_code": int(code),
            "roles": list(map(_facts_record, roles)),
            "findings": [why.record() for why in findings],
        }
        click.echo(documents.dumps(document))
    elif plain:
        print_plain(COLUMNS, finding_rows(findings))
    else:
        _print_facts(found, roles, most)
    return code


def _print_facts(found: Described, roles: Sequence[Facts], most: int | None) -> None:
    print_wrapped(f"{found.site.system.system}: {found.chosen}")
    for role in roles:
        described = len(role.expected) - len(role.missing)
        print_wrapped(f"{role.role}: {described} of {len(role.expected)} nodes described")
        for line in _sections(role.results):
            print_wrapped(f"  {line}")
        print_findings(role.findings, most)
    more = ("describe", "--facts", "--all") if most is not None else ("nodes",)
    print_answer(_facts_line(roles), found.following(*more))


def _facts_of(
    found: Described, name: str, known: Mapping[str, Sequence[FactResult]], node: str | None
) -> Facts:
    """The facts of a role, or of one node of it; nothing is expected of a role without the node."""
    first = {member for member in found.site.expected(name) if found.site.role_of(member) == name}
    expected = [n for n in found.site.expected(name) if n in first and node in (None, n)]
    missing = [n for n in expected if n not in found.fields]
    results = {n: known[n] for n in expected if n in known}
    stated = found.site.system.nodes[name].facts or found.site.hardware_of(name).stated
    findings = finding.of_many(
        [*as_stated.findings(results), *(not_described(found.samples, missing) if stated else ())]
    )
    if expected:
        findings += as_stated.not_stated(found.site, name)
    return Facts(name, expected, missing if stated else [], results, findings)


def _sections(results: Mapping[str, Sequence[FactResult]]) -> Iterator[str]:
    """A line for each section: how many facts are as stated on how many nodes."""
    by_section: dict[str, Counter[str]] = {}
    for of_node in results.values():
        for result in of_node:
            by_section.setdefault(result.section, Counter())[result.outcome] += 1
    for section, outcomes in by_section.items():
        counts = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())
        yield f"{section}: {counts}"


def _facts_record(role: Facts) -> dict[str, object]:
    return {
        "role": role.role,
        "expected": len(role.expected),
        "described": len(role.expected) - len(role.missing),
        "majority": {},
    }


def _facts_code(roles: Sequence[Facts]) -> ExitCode:
    results = [r for role in roles for of_node in role.results.values() for r in of_node]
    if bought.missed(results):
        return ExitCode.FAIL
    unknown = bought.not_read(results) or any(role.missing for role in roles)
    return ExitCode.INCOMPLETE if unknown or not results else ExitCode.PASS


def _facts_line(roles: Sequence[Facts]) -> str:
    """The answer: which nodes are not as stated, and of which too little is known."""
    answers: dict[str, list[str]] = {"not as stated": [], "not read": [], "not described": []}
    good = 0
    for role in roles:
        answers["not described"] += role.missing
        for node, results in role.results.items():
            if bought.missed(results):
                answers["not as stated"].append(node)
            elif bought.not_read(results):
                answers["not read"].append(node)
            else:
                good += 1
    parts = [f"{nodesets.of(nodes)} {what}" for what, nodes in answers.items() if nodes]
    parts += [f"{count(good, 'node')} as stated"] if good else []
    return ", ".join(parts) or "the site states no facts of a described node"
