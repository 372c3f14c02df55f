"""`siteproof describe`: hardware and software of the nodes of each role, and which nodes differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import click

from siteproof import files, nodesets, sites
from siteproof.analysis import counters
from siteproof.analysis.uniformity import Change, Uniformity, drift, is_identity, vote
from siteproof.cli.records import plain_option, print_answer, print_plain, print_wrapped
from siteproof.cli.shared import by_node, json_option, which_samples
from siteproof.compare import accepted
from siteproof.errors import ExitCode, UserError
from siteproof.export import documents
from siteproof.judge.criterion import failure
from siteproof.nodes import as_stated
from siteproof.record import campaign as campaigns
from siteproof.record import descriptions, finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.schema.shapes import hint
from siteproof.sites import Site, bought
from siteproof.sites.bought import FactResult
from siteproof.units import count
from siteproof.wording.findings import sentence
from siteproof.wording.verdicts import own

MAX_LINES = 20  # of one kind; --all shows all of them
BULK = ("cpu.flag.", "cpu.vulnerability.", "module.", "package.", "pci.", "sysctl.", "mount./sys/")
# ... thousands of fields, too many to read on a terminal
TITLES = {  # how a line on a finding begins
    Kind.FIELD_DIFFERS: "odd",
    Kind.NO_MAJORITY: "no majority",
    Kind.FIELD_NOT_READ: "not read",
    Kind.FACT_DIFFERS: "not as stated",
    Kind.FACT_NOT_READ: "not read",
    Kind.NOT_STATED: "not stated",
    Kind.CHANGED: "changed",
    Kind.RESTARTED_BETWEEN: "health, first to last look",
    Kind.COUNTER_GREW: "health, first to last look",
    Kind.COUNTER_UNKNOWN: "health, first to last look",
}
NOT_DESCRIBED = "not described"
OnNodes = tuple[Finding, Iterable[str]]


@dataclass(frozen=True)
class Described:
    """The nodes of a system: which samples, the fields of each node, and what it could not read."""

    site: Site
    campaign: str
    chosen: str
    sessions: Sessions
    samples: Sequence[Sample]
    fields: Mapping[str, Mapping[str, str]]
    unread: Mapping[str, Mapping[str, str]]


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
    found = _read(system, since, campaign)
    if facts:
        most = None if show_all else MAX_LINES
        raise SystemExit(_facts(found, node, most, as_json=as_json, plain=plain))
    roles = [_role(found, name) for name in _roles(found.site)]
    if node is not None:
        roles = [_role_of(found, roles, node)]
    changes, words = _changes(found, against)
    if as_json:
        click.echo(documents.dumps(_record(found, roles, changes, node)))
    elif plain:
        findings = [why for role in roles for why in role.findings] + [*changes]
        print_plain(COLUMNS, [*_fields(found, roles, node), *_finding_rows(findings)])
    elif node is not None:
        _print_node(found, roles[0], node)
    else:
        _print(found, roles, changes, words, None if show_all else MAX_LINES)
    raise SystemExit(_code(roles, node))


def _read(system: str, since: str, name: str) -> Described:
    site = sites.load(system or sites.recognise())
    files.must_exist()
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
        site, name, words, sessions, chosen, *descriptions.with_unreadable(chosen, logs)
    )


def _roles(site: Site) -> list[str]:
    return sorted({role for one in site.system.partitions.values() for role in one.roles})


def _role(found: Described, name: str) -> Role:
    expected = list(found.site.expected(name))
    nodes = [node for node in expected if node in found.fields]
    unread = {node: found.unread[node] for node in nodes}
    same = vote({node: found.fields[node] for node in nodes}, unread)
    missing = [node for node in expected if node not in found.fields]
    findings = [*_differing(name, same), *_not_read(unread), *_not_described(found, missing)]
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


@dataclass(frozen=True)
class Facts:
    """The facts of one role. results: by node; findings: what is not as stated, or not known."""

    role: str
    expected: Sequence[str]
    missing: Sequence[str]
    results: Mapping[str, Sequence[FactResult]]
    findings: Sequence[Finding]


def _facts(
    found: Described, node: str | None, most: int | None, *, as_json: bool, plain: bool
) -> ExitCode:
    """Compare with what the site states, print it, and return the exit code."""
    known = bought.of_nodes(found.site, found.fields, found.unread)
    roles = [_facts_of(found, name, known, node) for name in _roles(found.site)]
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
        print_plain(COLUMNS, _finding_rows(findings))
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
        _print_findings(role.findings, most)
    print_answer(
        _facts_line(roles), own(found.site.system.system, found.campaign, "describe", "--all")
    )


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
        [*as_stated.findings(results), *(_not_described(found, missing) if stated else ())]
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


def _differing(role: str, same: Uniformity) -> Iterator[OnNodes]:
    """Each field in which a node differs; each value of a field that has no majority."""
    for node, fields in same.differing.items():
        for one in fields:
            details = {
                "field": one.field,
                "found": finding.text(one.value),
                "majority": finding.text(one.majority),
                "role": role,
            }
            yield finding.of(Kind.FIELD_DIFFERS, details), [node]
    for name, values in same.undecided.items():
        for value, nodes in values.items():
            details = {"field": name, "found": finding.text(value), "role": role}
            yield finding.of(Kind.NO_MAJORITY, details), nodes


def _not_read(unread: Mapping[str, Mapping[str, str]]) -> Iterator[OnNodes]:
    for node, names in unread.items():
        for name, why in names.items():
            yield finding.of(Kind.FIELD_NOT_READ, {"field": name}, message=why), [node]


def _not_described(found: Described, missing: Iterable[str]) -> Iterator[OnNodes]:
    failed = {
        sample.node: sample
        for sample in found.samples
        if sample.status != "ok" and sample.metric.partition(".")[0] == descriptions.CHECK
    }
    for node in missing:
        why = Finding(Kind.NOT_MEASURED, check=descriptions.CHECK)
        if node in failed:
            why = replace(failure(failed[node]), since="")
        yield why, [node]


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


def _health(samples: Sequence[Sample]) -> Iterator[Finding]:
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
        findings += [*changes, *_health(found.samples)]
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
        _print_findings(role.findings, most)
    if words:
        print_wrapped(words)
    _print_findings(changes, most)
    _print_findings(list(_health(found.samples)), most)
    print_answer(_last_line(roles), _next(found, roles))


def _next(found: Described, roles: Sequence[Role]) -> str:
    """The next command: the nodes where some differ or lack, else the facts of the site."""
    odd = any(role.same.differing or role.missing for role in roles)
    words = ("nodes",) if odd else ("describe", "--facts")
    return own(found.site.system.system, found.campaign, *words)


COLUMNS = ("kind", "role or nodes", "field", "value", "share of the nodes")


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


def _finding_rows(findings: Iterable[Finding]) -> Iterator[Sequence[str]]:
    """A line a finding."""
    for why in findings:
        title = TITLES.get(why.kind, NOT_DESCRIBED)
        yield title, why.subject, str(why.get("field") or ""), sentence(why), ""


def _print_findings(findings: Iterable[Finding], most: int | None) -> None:
    """A line each, under their titles; of each title the first ones."""
    lines: dict[str, list[str]] = {}
    for why in findings:
        line = f"{why.subject}: {sentence(replace(why, subject=''))}"
        lines.setdefault(TITLES.get(why.kind, NOT_DESCRIBED), []).append(line)
    for title, texts in lines.items():
        for line in texts[:most]:
            print_wrapped(f"  {title}: {line}")
        if most is not None and len(texts) > most:
            print_wrapped(f"  {title}: and {len(texts) - most} more; --all shows them")


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
        print_wrapped(f"{TITLES.get(why.kind, NOT_DESCRIBED)}: {sentence(why)}")
    if not role.missing:
        print_wrapped(
            f"{node} is odd in {count(len(differing), 'field')}"
            if differing
            else f"{node} does not differ from the majority"
        )


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
