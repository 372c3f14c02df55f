"""`siteproof describe`: hardware and software of the nodes of each role, and which nodes differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import click

from siteproof import files, nodesets
from siteproof.analysis.uniformity import Change, Uniformity, drift, is_identity, vote
from siteproof.cli.describe_facts import answer_facts
from siteproof.cli.described import (
    COLUMNS,
    MAX_LINES,
    Described,
    finding_rows,
    print_findings,
    read,
    roles_of,
)
from siteproof.cli.records import plain_option, print_answer, print_plain, print_wrapped
from siteproof.cli.shared import by_node, json_option, which_samples
from siteproof.compare import accepted
from siteproof.errors import ExitCode, UserError
from siteproof.export import documents
from siteproof.nodes.described import differing, health, not_described, not_read
from siteproof.record import campaign as campaigns
from siteproof.record import descriptions, finding
from siteproof.record.finding import Finding, Kind
from siteproof.schema.shapes import hint
from siteproof.units import count
from siteproof.wording.findings import sentence, title

BULK = ("cpu.flag.", "cpu.vulnerability.", "module.", "package.", "pci.", "sysctl.", "mount./sys/")
# ... thousands of fields, too many to read on a terminal


@dataclass(frozen=True)
class Role:
    """One role. findings: nodes that differ, values without a majority, what is missing."""

    name: str
    expected: Sequence[str]
    same: Uniformity
    missing: Sequence[str]
    findings: Sequence[Finding]


@click.command()
@click.argument("node", required=False, shell_complete=by_node)
@which_samples
@click.option(
    "--against",
    default="",
    metavar="CAMPAIGN",
    help="Show changes since CAMPAIGN; without it, since the accepted one.",
)
@click.option("--facts", is_flag=True, help="Compare with what the site states of its nodes.")
@click.option("--all", "show_all", is_flag=True, help="Every field, and every field that differs.")
@json_option("describe")
@plain_option
def describe(
    node: str | None,
    system: str,
    since: str,
    campaign: str,
    against: str,
    facts: bool,
    show_all: bool,
    as_json: bool,
    plain: bool,
) -> None:
    """Show hardware and software of the nodes of each role, and which nodes differ.

    With NODE: everything that the node reported, and where it differs from the majority of its
    role. Exit code 1: nodes of a role differ; 3: nodes are not described. With --facts: the fields
    that are not as the `facts` of the site state them, and code 3 also for what was not read.

    \b
    siteproof describe
    siteproof describe node003
    siteproof describe --facts
    """
    found = read(system, since, campaign)
    if facts:
        most = None if show_all else MAX_LINES
        raise SystemExit(answer_facts(found, node, most, as_json=as_json, plain=plain))
    roles = [_role(found, name) for name in roles_of(found.site)]
    if node is not None:
        roles = [_role_of(found, roles, node)]
    changes, words = _changes(found, against)
    if as_json:
        click.echo(documents.dumps(_record(found, roles, changes, node)))
    elif plain:
        findings = [why for role in roles for why in role.findings] + [*changes]
        print_plain(COLUMNS, [*_fields(found, roles, node), *finding_rows(findings)])
    elif node is not None:
        _print_node(found, roles[0], node)
    else:
        _print(found, roles, changes, words, None if show_all else MAX_LINES)
    raise SystemExit(_code(roles, node))


def _role(found: Described, name: str) -> Role:
    expected = list(found.site.expected(name))
    nodes = [node for node in expected if node in found.fields]
    unread = {node: found.unread[node] for node in nodes}
    same = vote({node: found.fields[node] for node in nodes}, unread)
    missing = [node for node in expected if node not in found.fields]
    findings = [*differing(name, same), *not_read(unread), *not_described(found.samples, missing)]
    return Role(name, expected, same, missing, finding.of_many(findings))


def _role_of(found: Described, roles: Sequence[Role], node: str) -> Role:
    """The role of a node, with this node's findings only. Raises UserError."""
    for role in roles:
        if node in role.expected:
            own = [f for f in role.findings if node in nodesets.parse(f.subject)]
            findings = [replace(f, subject=node) for f in own if f.kind is not Kind.NO_MAJORITY]
            missing = [node] if node in role.missing else []
            return replace(role, missing=missing, findings=findings)
    near = hint(node, found.site.system.inventory)
    what = f"'{node}' is not a node of {found.site.system.system}{near}"
    raise UserError("describe", what, [str(nodesets.of(role.expected)) for role in roles])


def _changes(found: Described, against: str) -> tuple[list[Finding], str]:
    """What has changed since a campaign, or since the one that was accepted last before it.

    With how many nodes are compared, in words; "" where there is nothing to compare with.
    """
    if against:
        wanted, words = campaigns.choose(found.sessions.headers, campaign=against)
    else:
        newest = {s.header.session for s in found.samples}
        records = [
            record
            for record in accepted.read_all(files.perflogs(), found.site.system.system)
            if not newest.intersection(record.sessions)
        ]
        if not records:
            return [], ""
        last = records[-1]
        wanted = lambda header: header.session in last.sessions  # noqa: E731
        words = f"{last.name}, accepted by {last.who}"
    before = descriptions.of(found.sessions.of(wanted), files.perflogs())
    if not before and against:
        raise UserError("--against", f"no description of a node in {words}")
    if not before:
        return [], ""
    changes = drift(before, found.fields)
    both = len(before.keys() & found.fields)
    words = f"since {words}: {count(len(changes), 'change')}, {count(both, 'node')} compared"
    return [_changed(change) for change in changes], words


def _changed(change: Change) -> Finding:
    details = {
        "what": change.field,
        "before": finding.text(change.before),
        "after": finding.text(change.after),
    }
    return finding.of(Kind.CHANGED, details, subject=str(nodesets.of(change.nodes)))


def _code(roles: Sequence[Role], node: str | None) -> ExitCode:
    missing = any(role.missing for role in roles)
    if node is not None:
        differ = any(why.kind is Kind.FIELD_DIFFERS for why in roles[0].findings)
    else:
        differ = any(role.same.differing or role.same.undecided for role in roles)
        missing = missing or not any(role.same.nodes for role in roles)
    if differ:
        return ExitCode.FAIL
    return ExitCode.INCOMPLETE if missing else ExitCode.PASS


def _record(
    found: Described, roles: Sequence[Role], changes: Sequence[Finding], node: str | None
) -> dict[str, object]:
    """The answer for programs; with a node also all of its fields."""
    own = {"fields": dict(found.fields.get(node, {}))} if node else {}
    findings = [*(why for role in roles for why in role.findings)]
    if node is None:
        findings += [*changes, *health(found.samples)]
    return {
        **documents.head(found.site.system.system, found.chosen),
        "exit_code": int(_code(roles, node)),
        "roles": [
            {
                "role": role.name,
                "expected": len(role.expected),
                "described": len(role.same.nodes),
                "majority": {name: common.value for name, common in role.same.majority.items()},
            }
            for role in roles
        ],
        **own,
        "findings": [why.record() for why in findings],
    }


def _print(
    found: Described,
    roles: Sequence[Role],
    changes: Sequence[Finding],
    words: str,
    most: int | None,
) -> None:
    print_wrapped(f"{found.site.system.system}: {found.chosen}")
    for role in roles:
        described = len(role.same.nodes)
        print_wrapped(f"{role.name}: {described} of {len(role.expected)} nodes described")
        for name, common in role.same.majority.items():
            if common.value is not None and (most is None or not name.startswith(BULK)):
                share = "" if common.share == 1 else f"  ({common.share:.1%} of the nodes)"
                print_wrapped(f"  {name} = {common.value}{share}")
        print_findings(role.findings, most)
    if words:
        print_wrapped(words)
    print_findings(changes, most)
    print_findings(list(health(found.samples)), most)
    print_answer(_last_line(roles), _next(found, roles))


def _next(found: Described, roles: Sequence[Role]) -> str:
    """The next command: the nodes where some differ or lack, else the facts of the site."""
    differ = any(role.same.differing or role.missing for role in roles)
    words = ("nodes",) if differ else ("describe", "--facts")
    return found.following(*words)


def _fields(found: Described, roles: Sequence[Role], node: str | None) -> Iterator[Sequence[str]]:
    """A line a field: what the node has, or most nodes of each role."""
    if node is not None:
        for name, value in sorted(found.fields.get(node, {}).items()):
            yield "field", node, name, value, ""
        return
    for role in roles:
        for name, common in role.same.majority.items():
            if common.value is not None:
                yield "majority", role.name, name, common.value, f"{common.share:.1%}"


def _print_node(found: Described, role: Role, node: str) -> None:
    """Everything that one node reported, and where it differs."""
    if role.missing:
        print_wrapped(f"{found.site.system.system}: {found.chosen}")
    differing = {why["field"]: why for why in role.findings if why.kind is Kind.FIELD_DIFFERS}
    for name, value in sorted(found.fields.get(node, {}).items()):
        remark = "  [its own]" if is_identity(name) else ""
        if name in differing:
            remark = f"  [odd: majority {differing[name]['majority']}]"
        print_wrapped(f"{name} = {value}{remark}")
    absent = [why for why in role.findings if why.get("field") not in found.fields.get(node, {})]
    for why in absent:
        print_wrapped(f"{title(why)}: {sentence(why)}")
    answer = f"{node} does not differ from the majority"
    if differing:
        answer = f"{node} is odd in {count(len(differing), 'field')}"
    if role.missing:
        answer = f"{node} is not described"
    print_answer(answer, found.following("why", node))


def _last_line(roles: Sequence[Role]) -> str:
    differing = Counter(
        {node: len(fields) for role in roles for node, fields in role.same.differing.items()}
    )
    split = sum(len(role.same.undecided) for role in roles)
    missing = [node for role in roles for node in role.missing]
    alike = sum(len(role.same.nodes) - len(role.same.differing) for role in roles)
    parts = []
    if differing:
        verb = "is" if len(differing) == 1 else "are"
        parts.append(f"{nodesets.of(differing)} {verb} odd in {_odd_in(differing.values())}")
    if split:
        parts.append(f"no majority in {count(split, 'field')}")
    if missing:
        parts.append(f"{nodesets.of(missing)} not described")
    if alike or not parts:
        parts.append(f"{alike} nodes alike" if alike != 1 else "1 node described")
    return ", ".join(parts)


def _odd_in(counts: Collection[int]) -> str:
    few, many = min(counts), max(counts)
    return count(many, "field") if few == many else f"{few} to {count(many, 'field')}"
