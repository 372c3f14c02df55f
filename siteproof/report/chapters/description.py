"""The system: what the site states, what the nodes report, and which differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from siteproof.analysis.uniformity import Uniformity, vote
from siteproof.nodes.described import (
    differing,
    health,
    not_as_stated,
    not_described,
    not_read,
    not_stated,
)
from siteproof.record import descriptions, finding
from siteproof.record.finding import Kind
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Sample
from siteproof.report.material import Material
from siteproof.report.sections import Marked, Section, Table, limited_points, period, some_nodes
from siteproof.sites import Hardware, Site, bought
from siteproof.sites.bought import FactResult, Outcome
from siteproof.units import count
from siteproof.wording.findings import per_cent, sentence, shorten, title

MAX_ROWS = 100  # of a table
BULK = ("cpu.flag.", "cpu.vulnerability.", "module.", "package.", "pci.", "sysctl.", "mount.")
LONGEST = 250  # characters of a finding
MAX_FIELDS = 600  # characters of all fields of a kind
STATED, PARAMETER = "Stated.parameter", "parameter"  # metric and condition of a published one
PARAMETERS = ("sysctl.", "nic.", "bond.")  # fields of a description that are parameters
MAX_COLUMNS, MAX_PARAMETERS = 8, 60
DIFFERS = "!"  # before a value that most hosts do not have

Fields = Mapping[str, Mapping[str, str]]  # of each node its fields, or of each host its parameters


@dataclass(frozen=True)
class Described:
    """Of each node the fields of its description, and those that it could not read."""

    samples: Sequence[Sample]
    fields: Fields
    unread: Fields


def chapter(material: Material) -> Section:
    """What the site file states, then a part for each role that was described."""
    found = material.once(described)
    parts = [
        _role(material, found, role)
        for role in material.site.system.nodes
        if not found.fields.keys().isdisjoint(material.site.expected(role))
    ]
    return Section(
        "description",
        "The system",
        _lead(material, found),
        [_site(material), *_published_parameters(material.published)],
        points=_health(material.judged.samples),
        sections=parts,
    )


def described(material: Material) -> Described:
    """The descriptions in what is judged; without any, the newest that there are."""
    found = [s for s in material.judged.samples if s.header.check == descriptions.CHECK]
    if not descriptions.described(found):
        heads = [h for h in material.sessions.headers if h.check == descriptions.CHECK]
        newest = max((h.session for h in heads), default="")
        found = material.sessions.of(lambda h: h in heads and h.session == newest)
    logs = material.perflogs
    return Described(found, *descriptions.with_unreadable(found, logs))


def _lead(material: Material, found: Described) -> str:
    what = material.site.system.description.rstrip(".")
    if not found.fields:
        command = "'reframe -c checks/ -r -n SystemDescription' describes them"
        return f"{what}. No node was described; {command}."
    times = period([s.header.time for s in found.samples])
    return f"{what}. Described: {count(len(found.fields), 'node')} ({times})."


def _site(material: Material) -> Table:
    site, rows = material.site, []
    for role, entry in site.system.nodes.items():
        hardware = _hardware(site.hardware_of(role)) or "not given"
        rows.append((role, str(len(entry.nodes)), str(entry.nodes), hardware))
    title, note = "What the site states", "From system.yaml."
    return Table(("role", "count", "nodes", "hardware"), rows, note, ("count",), title)


def _hardware(facts: Hardware) -> str:
    parts = [facts.description] if facts.description else []
    if facts.cores_per_socket:
        parts.append(f"{facts.sockets} x {facts.cores_per_socket} cores")
    parts += [f"{name.replace('_', ' ')} {value}" for name, value in facts.quantities.items()]
    return ", ".join(parts)


def _role(material: Material, found: Described, role: str) -> Section:
    """What most nodes of a role are, and which nodes differ."""
    expected = list(material.site.expected(role))
    here = [node for node in expected if node in found.fields]
    unread = {node: found.unread[node] for node in here}
    fields = {node: found.fields[node] for node in here}
    same, results = vote(fields, unread), bought.of_nodes(material.site, fields, unread)
    findings = [
        *(one for one in not_as_stated(results) if one[0].kind is Kind.FACT_DIFFERS),
        *differing(role, same),
        *not_described(found.samples, (node for node in expected if node not in fields)),
        *not_read(unread),
        *((why, [role]) for why in not_stated(material.site, role)),
    ]
    differ = {one.field for of_node in same.differing.values() for one in of_node}
    lead = (
        f"{len(here)} of {count(len(expected), 'node')} described; {len(same.differing)} of them "
        f"differ from the majority; {count(len(same.undecided), 'field')} without a majority."
    )
    # As `siteproof describe` has them.
    rows = [
        (title(why), why.subject, shorten(sentence(why), LONGEST))
        for why in finding.of_many(findings)
    ]
    columns, command = ("what", "nodes", "why"), "siteproof describe --facts --all"
    named = f"Findings ({len(rows)})"
    tables = [
        Table(columns, rows, title=named, most=MAX_ROWS, command=command),
        _sections(results),
        *_host_parameters(material.site, role, fields, differ),
        _majority(same),
    ]
    return Section(f"role-{role}", f"Role {role}", lead, tables)


def _majority(same: Uniformity) -> Table:
    """A row for each kind of thing, with the fields of it."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for name, most in same.majority.items():
        if most.value is not None and not name.startswith(BULK):
            kind, _, field = name.partition(".")
            value = finding.text(most.value)
            share = "" if most.share == 1 else f" ({per_cent(most.share)} of the nodes)"
            kinds[kind].append(f"{field or kind} {shorten(value, LONGEST)}{share}")
    rows = [
        (kind, shorten("; ".join(fields), MAX_FIELDS)) for kind, fields in sorted(kinds.items())
    ]
    note = (
        "Packages, kernel parameters, devices and the like are left out; 'siteproof describe "
        "--all' has them."
    )
    return Table(("of", "what most nodes are"), rows, note)


def _sections(results: Mapping[str, Sequence[FactResult]]) -> Table:
    """Of each section of what was bought, how many fields are as stated, all nodes together."""
    counts = grouped((one.section, one.outcome) for of_node in results.values() for one in of_node)
    rows = [
        (section, *(str(found.count(outcome)) for outcome in Outcome))
        for section, found in counts.items()
    ]
    columns = tuple(outcome.value for outcome in Outcome)
    title, note = "What was bought", f"Fields of {count(len(results), 'node')}, by section."
    return Table(("section", *columns), rows, note, columns, title)


def _health(found: Sequence[Sample]) -> list[str]:
    """Which counters grew between the first and the last reading of each node."""
    alone = ((replace(one, subject=""), [one.subject]) for one in health(found))
    lines = [f"Health of {one.subject}: {sentence(one)}" for one in finding.of_many(alone)]
    return limited_points(lines, MAX_ROWS)


# ---- hosts and their parameters: those that are alike share a column, and a mark where one differs


def _host_parameters(
    site: Site, role: str, fields: Fields, differing: Collection[str]
) -> list[Table]:
    """What the site states of a role, and what differs in it; no table where that is nothing."""
    stated = site.system.parameters.get(role)
    names = [*(stated.by_name() if stated else ()), *sorted(differing)]
    wanted = [name for name in dict.fromkeys(names) if name.startswith(PARAMETERS)]
    return [_of_hosts("Host parameters", fields, wanted)] if wanted else []


def _published_parameters(stated: Iterable[Sample]) -> list[Table]:
    """The hosts of which others have published parameters."""
    fields: dict[str, dict[str, str]] = {}
    for s in stated:
        if s.metric == STATED and s.node and PARAMETER in s.conditions:
            fields.setdefault(s.node, {})[s.conditions[PARAMETER]] = str(s.value)
    names = dict.fromkeys(name for own in fields.values() for name in own)
    return [_of_hosts("Host parameters, as published", fields, names)] if fields else []


def _of_hosts(title: str, fields: Fields, names: Collection[str]) -> Table:
    """A row a parameter; hosts whose parameters are all the same share a column."""
    alike = grouped((tuple(own.get(name, "") for name in names), h) for h, own in fields.items())
    columns = sorted(alike.items(), key=lambda item: -len(item[1]))
    rows = []
    for place, name in enumerate(names):
        counts = Counter(own.get(name, "") for own in fields.values())
        most, number = counts.most_common(1)[0]
        known = most if 2 * number > len(fields) else None
        rows.append((name, *(_cell(of[place], known) for of, _ in columns[:MAX_COLUMNS])))
    left = sum(len(hosts) for _, hosts in columns[MAX_COLUMNS:])
    note = f"{count(left, 'host')} in other columns not shown." if left else ""
    heads = ("parameter", *(some_nodes(hosts) for _, hosts in columns[:MAX_COLUMNS]))
    whole, command = f"{title} ({DIFFERS}: not as on most)", "siteproof describe --all"
    return Table(heads, rows, note, title=whole, most=MAX_PARAMETERS, command=command)


def _cell(value: str, most: str | None) -> str:
    if most is None or value == most:
        return value
    return Marked([(f"{DIFFERS} {value or 'not there'}", "warn")])
