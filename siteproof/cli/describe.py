"""siteproof describe: Show hardware and software of each role, and which nodes differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import click

from siteproof import files, nodesets
from siteproof.analysis.uniformity import Uniformity, drift, is_identity, vote
from siteproof.cli.shared import (
    by_node,
    flag,
    forms,
    print_answer,
    print_plain,
    print_some,
    print_wrapped,
    site_of,
    text_option,
    which_samples,
)
from siteproof.compare import accepted
from siteproof.errors import ExitCode, UserError, hint
from siteproof.export.documents import Answer, dumps
from siteproof.nodes import described
from siteproof.record import campaign as campaigns
from siteproof.record import descriptions, finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.sites import Site, bought
from siteproof.sites.bought import FactResult
from siteproof.units import count
from siteproof.wording.findings import sentence, title
from siteproof.wording.verdicts import own

BULK = ("cpu.flag.", "cpu.vulnerability.", "module.", "package.", "pci.", "sysctl.", "mount./sys/")
# ... thousands of fields, too many to read on a terminal


MAX_LINES = 20  # of one kind; --all shows all of them
COLUMNS = ("kind", "role or nodes", "field", "value", "share of the nodes")
DIFFERENT = {Kind.FIELD_DIFFERS, Kind.NO_MAJORITY, Kind.FACT_DIFFERS}
ALIKE = Uniformity((), {}, {}, {})  # of nodes that are not compared with each other


@dataclass(frozen=True)
class Described:
    """The nodes of a system: which samples, the fields of each node, and what it could not read."""

    site: Site
    campaign: str
    since: str
    chosen: str
    sessions: Sessions
    samples: Sequence[Sample]
    fields: Mapping[str, Mapping[str, str]]
    unread: Mapping[str, Mapping[str, str]]

    def following(self, *words: str) -> str:
        """A command of ours on the same system, campaign and time."""
        asked = {"--since": self.since, "--campaign": self.campaign}
        return own(self.site.system.system, *words, **asked)


@dataclass(frozen=True)
class Role:
    """One role. findings: what is not as it is on most nodes, or as stated, and what is missing.

    described: how many nodes are. same: how they differ. results: of each, by what the site states.
    """

    name: str
    expected: Sequence[str]
    described: int
    missing: Sequence[str]
    findings: Sequence[Finding]
    same: Uniformity = ALIKE
    results: Mapping[str, Sequence[FactResult]] = field(default_factory=dict)


@dataclass(frozen=True)
class RoleAnswer:
    """A role.

    role: Its name in system.yaml.
    expected: How many nodes it has.
    described: How many of them were described.
    majority: The value that most nodes have, by field; null where most have no such field; empty
        with --facts.
    """

    role: str
    expected: int
    described: int
    majority: Mapping[str, str | None]


@dataclass(frozen=True)
class Description(Answer):
    """Hardware and software of the nodes: 'siteproof describe --json'.

    exit_code: 0 the nodes of each role are alike, with --facts as the site states; 1 some differ; 3
        some have not been described, or a stated field was not read.
    roles: Each role; with NODE the role of that node.
    findings: Which nodes differ or are missing, and what has changed since the accepted campaign.
    fields: With NODE: everything that this node reported.
    """

    roles: Sequence[RoleAnswer]
    findings: Sequence[Finding]
    fields: Mapping[str, str] | None = None


@click.command()
@click.argument("node", required=False, shell_complete=by_node)
@which_samples
@text_option(
    "--against", "CAMPAIGN", "Show changes since CAMPAIGN; without it, since the accepted one."
)
@flag("--facts", "Compare with what the site states of its nodes.")
@flag("--all show_all", "Every field, and every field that differs.")
@forms(Description)
def describe(
    node: str | None,
    system: str,
    since: str,
    campaign: str,
    against: str,
    facts: bool,
    show_all: bool,
    form: str,
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
    found = _read(system, since, campaign)
    roles, more, words = _compared(found, node, against, facts=facts)
    alone, code = "" if facts else node or "", _code(roles)
    findings = [*(why for role in roles for why in role.findings), *more]
    if form == "json":
        head = (found.site.name, found.chosen, code)
        fields = found.fields.get(alone, {}) if alone else None
        click.echo(dumps(Description(*head, list(map(_role_answer, roles)), findings, fields)))
    elif form:
        print_plain(COLUMNS, [*_fields(found, roles, alone), *map(_finding_row, findings)])
    elif alone:
        _print_node(found, roles[0], alone)
    else:
        _print(found, roles, more, words, whole=show_all)
        answer, following = _answer(roles, facts=facts, whole=show_all)
        print_answer(answer, found.following(*following))
    raise SystemExit(code)


def _answer(roles: Sequence[Role], *, facts: bool, whole: bool) -> tuple[str, Sequence[str]]:
    """The answer and the next command: nodes where some differ or lack, else the facts."""
    if facts:
        return _facts_line(roles), ("nodes",) if whole else ("describe", "--facts", "--all")
    differ = any(role.same.differing or role.missing for role in roles)
    return _last_line(roles), ("nodes",) if differ else ("describe", "--facts")


def _finding_row(why: Finding) -> Sequence[str]:
    return title(why), why.subject, str(why.get("field") or ""), sentence(why), ""


def _read(system: str, since: str, name: str) -> Described:
    """The newest description of each node, of a time or campaign. Raises UserError."""
    site = site_of(system)
    sessions = Sessions(files.perflogs(), site.system.system)
    start = campaigns.since(since, datetime.now(UTC)) if since else None

    def answers(job: Header) -> bool:
        return job.check == descriptions.CHECK and any(
            sample.metric == descriptions.COUNT for sample in sessions.of_job(job)
        )

    wanted, words = campaigns.choose(sessions.headers, campaign=name, start=start, answers=answers)
    chosen = sessions.of(wanted)
    if not descriptions.described(chosen):
        words = "no description yet; 'reframe -c checks/ -r -n SystemDescription' makes one"
    logs = files.perflogs()
    return Described(
        site, name, since, words, sessions, chosen, *descriptions.with_unreadable(chosen, logs)
    )


def _print_findings(findings: Iterable[Finding], *, whole: bool) -> None:
    """A line each, under their titles; of each title the first ones, unless all are wanted."""
    by_title = grouped((title(why), why) for why in findings)
    for begin, whys in by_title.items():
        texts = [f"{why.subject}: {sentence(replace(why, subject=''))}" for why in whys]
        most = len(texts) if whole else MAX_LINES
        print_some(f"  {begin}: ", texts, most, "--all", show=print_wrapped)


def _compared(
    found: Described, node: str | None, against: str, *, facts: bool
) -> tuple[list[Role], list[Finding], str]:
    """The roles, or that of the node; what has changed since a campaign, and which, in words."""
    # The roles of nodes on which checks run.
    names = sorted({role for one in found.site.system.partitions.values() for role in one.roles})
    if facts:
        return _facts(found, names, node), [], ""
    roles = [_role(found, name) for name in names]
    if node is not None:
        return [_role_of(found, roles, node)], [], ""
    changes, words = _changes(found, against)
    return roles, [*changes, *described.health(found.samples)], words


def _role(found: Described, name: str) -> Role:
    expected = list(found.site.expected(name))
    nodes = [node for node in expected if node in found.fields]
    unread = {node: found.unread[node] for node in nodes}
    same = vote({node: found.fields[node] for node in nodes}, unread)
    missing = [node for node in expected if node not in found.fields]
    findings = [
        *described.differing(name, same),
        *described.not_read(unread),
        *described.not_described(found.samples, missing),
    ]
    return Role(name, expected, len(nodes), missing, finding.of_many(findings), same)


def _facts(found: Described, names: Sequence[str], node: str | None) -> list[Role]:
    """Each role, or that of the node, by what the site states. Raises UserError."""
    known = bought.of_nodes(found.site, found.fields, found.unread)
    roles = [role for name in names if (role := _facts_of(found, name, known, node)).expected]
    if not roles and node is not None:
        raise UserError("describe", f"'{node}' is not a node of {found.site.system.system}")
    return roles


def _facts_of(
    found: Described, name: str, known: Mapping[str, Sequence[FactResult]], node: str | None
) -> Role:
    """The facts of a role, or of one node of it; nothing is expected of a role without the node."""
    site = found.site
    expected = [n for n in site.expected(name) if site.role_of(n) == name and node in (None, n)]
    stated = site.system.nodes[name].facts or site.hardware_of(name).stated
    missing = [n for n in expected if n not in found.fields] if stated else []
    results = {n: known[n] for n in expected if n in known}
    absent = described.not_described(found.samples, missing)
    findings = finding.of_many([*described.not_as_stated(results), *absent])
    if expected:
        findings += described.not_stated(site, name)
    number = sum(n in found.fields for n in expected)
    return Role(name, expected, number, missing, findings, results=results)


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
        samples = found.sessions.of(wanted)
    else:
        newest = {s.header.session for s in found.samples}
        records = accepted.read_all(files.perflogs(), found.site.name)
        last = next((r for r in reversed(records) if not newest.intersection(r.sessions)), None)
        if last is None:
            return [], ""
        samples = found.sessions.of(lambda header: header.session in last.sessions)
        words = f"{last.name}, accepted by {last.who}"
    before = descriptions.of(samples, files.perflogs())
    if not before and against:
        raise UserError("--against", f"no description of a node in {words}")
    if not before:
        return [], ""
    changes = drift(before, found.fields)
    both = len(before.keys() & found.fields)
    words = f"since {words}: {count(len(changes), 'change')}, {count(both, 'node')} compared"
    findings = []
    for change in changes:
        values = {"before": finding.text(change.before), "after": finding.text(change.after)}
        details = {"what": change.field, **values}
        nodes = str(nodesets.of(change.nodes))
        findings.append(finding.of(Kind.CHANGED, details, subject=nodes))
    return findings, words


def _code(roles: Sequence[Role]) -> ExitCode:
    kinds = {why.kind for role in roles for why in role.findings}
    if kinds & DIFFERENT:
        return ExitCode.FAIL
    unknown = Kind.FACT_NOT_READ in kinds or any(role.missing for role in roles)
    compared = any(role.same.nodes or role.results for role in roles)
    return ExitCode.INCOMPLETE if unknown or not compared else ExitCode.PASS


def _role_answer(role: Role) -> RoleAnswer:
    majority = {name: common.value for name, common in role.same.majority.items()}
    return RoleAnswer(role.name, len(role.expected), role.described, majority)


def _print(
    found: Described, roles: Sequence[Role], more: Sequence[Finding], words: str, *, whole: bool
) -> None:
    """Each role, what its nodes have, and what differs; then what has changed."""
    print_wrapped(f"{found.site.system.system}: {found.chosen}")
    for role in roles:
        print_wrapped(f"{role.name}: {role.described} of {len(role.expected)} nodes described")
        for name, common in role.same.majority.items():
            if common.value is not None and (whole or not name.startswith(BULK)):
                share = "" if common.share == 1 else f"  ({common.share:.1%} of the nodes)"
                print_wrapped(f"  {name} = {common.value}{share}")
        print_wrapped(*_sections(role.results), title="  ")
        _print_findings(role.findings, whole=whole)
    if words:
        print_wrapped(words)
    _print_findings(more, whole=whole)


def _sections(results: Mapping[str, Sequence[FactResult]]) -> Iterator[str]:
    """A line for each section: how many facts are as stated on how many nodes."""
    by_section = grouped((one.section, one.outcome) for of in results.values() for one in of)
    for section, outcomes in by_section.items():
        counts = [f"{number} {outcome}" for outcome, number in Counter(outcomes).items()]
        yield f"{section}: {', '.join(counts)}"


def _fields(found: Described, roles: Sequence[Role], node: str) -> Iterator[Sequence[str]]:
    """A line a field: what the node has, or most nodes of each role."""
    if node:
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
    of_fields = {why["field"]: why for why in role.findings if why.kind is Kind.FIELD_DIFFERS}
    for name, value in sorted(found.fields.get(node, {}).items()):
        remark = "  [its own]" if is_identity(name) else ""
        if name in of_fields:
            remark = f"  [odd: majority {of_fields[name]['majority']}]"
        print_wrapped(f"{name} = {value}{remark}")
    absent = [why for why in role.findings if why.get("field") not in found.fields.get(node, {})]
    print_wrapped(*(f"{title(why)}: {sentence(why)}" for why in absent))
    answer = f"{node} does not differ from the majority"
    if of_fields:
        answer = f"{node} is odd in {count(len(of_fields), 'field')}"
    if role.missing:
        answer = f"{node} is not described"
    print_answer(answer, found.following("why", node))


def _last_line(roles: Sequence[Role]) -> str:
    differing = {
        node: len(fields) for role in roles for node, fields in role.same.differing.items()
    }
    split = sum(len(role.same.undecided) for role in roles)
    missing = [node for role in roles for node in role.missing]
    alike = sum(len(role.same.nodes) - len(role.same.differing) for role in roles)
    parts = []
    if differing:
        most = count(max(differing.values()), "field")
        parts.append(f"{nodesets.of(differing)} odd in up to {most}")
    if split:
        parts.append(f"no majority in {count(split, 'field')}")
    if missing:
        parts.append(f"{nodesets.of(missing)} not described")
    if alike or not parts:
        parts.append(f"{alike} nodes alike" if alike != 1 else "1 node described")
    return ", ".join(parts)


def _facts_line(roles: Sequence[Role]) -> str:
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
