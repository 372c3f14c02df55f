"""The system: what the site states, what the nodes report, which differ, and what has changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from siteproof.analysis import counters
from siteproof.analysis.uniformity import Uniformity, drift, vote
from siteproof.nodes import as_stated
from siteproof.record import descriptions
from siteproof.record.samples import Sample
from siteproof.report.material import Material
from siteproof.report.phrases import few, nodes, period, when
from siteproof.report.sections import Section, Table, filled, limited, limited_points
from siteproof.sites import Hardware, bought
from siteproof.sites.bought import FactResult, Outcome
from siteproof.units import count

MAX_ROWS = 60  # of a table, and points of one kind
RESTARTED = "restarted between two readings, so no counter can be compared"
BULK = ("cpu.flag.", "cpu.vulnerability.", "module.", "package.", "pci.", "sysctl.", "mount.")
LONGEST = 100  # characters of a value


@dataclass(frozen=True)
class Described:
    """Of each node the fields of its description, and those that it could not read."""

    samples: Sequence[Sample]
    fields: Mapping[str, Mapping[str, str]]
    unread: Mapping[str, Mapping[str, str]]


def chapter(material: Material) -> Section:
    """What the site file states, then a part for each role that was described."""
    found = material.once(described)
    parts = [
        _role(material, found, role)
        for role in material.site.system.nodes
        if not found.fields.keys().isdisjoint(material.site.expected(role))
    ]
    if found.fields:
        parts.append(_changed(material, found))
    return Section(
        "description",
        "The system",
        _lead(material, found),
        [_site(material)],
        points=_health(material.judged.samples),
        sections=parts,
    )


def described(material: Material) -> Described:
    """The descriptions in what is judged; without any, the newest that there are."""
    found = [s for s in material.judged.samples if s.header.check == descriptions.CHECK]
    if not descriptions.described(found):
        heads = [h for h in material.sessions.headers if h.check == descriptions.CHECK]
        newest = max((h.session for h in heads), default="")
        found = _of_session(material, newest)
    logs = material.perflogs
    return Described(found, *descriptions.with_unreadable(found, logs))


def _of_session(material: Material, session: str) -> list[Sample]:
    """The descriptions of a session."""
    return material.sessions.of(lambda h: h.check == descriptions.CHECK and h.session == session)


def _lead(material: Material, found: Described) -> str:
    what = material.site.system.description.rstrip(".")
    if not found.fields:
        return (
            f"{what}. No node was described; 'reframe -c checks/ -r -n SystemDescription' "
            "describes them."
        )
    times = period([s.header.time for s in found.samples])
    verb = "was" if len(found.fields) == 1 else "were"
    return f"{what}. {count(len(found.fields), 'node')} {verb} described ({times})."


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
    same = vote({node: found.fields[node] for node in here}, unread)
    missing = [node for node in expected if node not in found.fields]
    points = [f"Not described: {nodes(missing)}"] if missing else []
    points += [
        f"Not stated: {why['section']}: {why.message}"
        for why in as_stated.not_stated(material.site, role)
    ]
    fields = {node: found.fields[node] for node in here}
    results = bought.of_nodes(material.site, fields, unread)
    return Section(
        f"role-{role}",
        f"Role {role}",
        f"{len(here)} of {count(len(expected), 'node')} described; {_alike(same)}.",
        filled(
            _not_as_stated(results),
            _sections(results),
            _odd(same),
            _undecided(same),
            _majority(same),
        ),
        points=limited_points(points + _unread(unread), MAX_ROWS),
    )


def _alike(same: Uniformity) -> str:
    if same.differing:
        verb = "differs" if len(same.differing) == 1 else "differ"
        return f"{count(len(same.differing), 'node')} {verb} from the majority"
    if same.undecided:
        return f"{count(len(same.undecided), 'field')} without a majority"
    return "all alike"


def _majority(same: Uniformity) -> Table:
    """A row for each kind of thing, with the fields of it."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for name, most in same.majority.items():
        if most.value is not None and not name.startswith(BULK):
            kind, _, field = name.partition(".")
            share = "" if most.share == 1 else f" ({most.share:.1%} of the nodes)"
            kinds[kind].append(f"{field or kind} {_value(most.value)}{share}")
    rows = [(kind, "; ".join(fields)) for kind, fields in sorted(kinds.items())]
    rest, note = len(same.majority) - sum(map(len, kinds.values())), ""
    if rest:
        note = (
            f"{count(rest, 'more field')} (packages, kernel parameters, devices and the like) "
            "are left out; 'siteproof describe --all' has them."
        )
    return Table(("of", "what most nodes are"), rows, note)


def _not_as_stated(results: Mapping[str, Sequence[FactResult]]) -> Table:
    """The stated fields that nodes have otherwise, or not at all."""
    found: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for node, of_node in results.items():
        for r in of_node:
            if r.missed:
                found[r.section, r.field, r.found, r.expected].append(node)
    rows = [(nodes(names), *key) for key, names in found.items()]
    command = "siteproof describe --facts --all"
    columns, title = (
        ("nodes", "section", "field", "found", "stated"),
        f"Not as stated ({len(rows)})",
    )
    return limited(columns, rows, MAX_ROWS, command, title=title)


def _sections(results: Mapping[str, Sequence[FactResult]]) -> Table:
    """Of each section of what was bought, how many fields are as stated, all nodes together."""
    counts: dict[str, Counter[Outcome]] = defaultdict(Counter)
    for of_node in results.values():
        for result in of_node:
            counts[result.section][result.outcome] += 1
    rows = [
        (section, *(str(outcomes[outcome]) for outcome in Outcome))
        for section, outcomes in counts.items()
    ]
    columns = tuple(outcome.value for outcome in Outcome)
    title, note = "What was bought", f"Fields of {count(len(results), 'node')}, by section."
    return Table(("section", *columns), rows, note, columns, title)


def _odd(same: Uniformity) -> Table:
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for node, differences in same.differing.items():
        for d in differences:
            found[d.field, _value(d.value), _value(d.majority)].append(node)
    rows = [(nodes(names), *key) for key, names in sorted(found.items(), key=lambda i: i[0])]
    columns = ("nodes", "field", "found", "most nodes")
    return _cut(columns, rows, "Nodes that differ from the majority")


def _undecided(same: Uniformity) -> Table:
    rows = []
    for name, values in same.undecided.items():
        texts = [f"{_value(value)} ({nodes(names)})" for value, names in values.items()]
        rows.append((name, few(texts, 5, "; ")))
    return _cut(("field", "values"), rows, "Fields without a majority")


def _cut(columns: Sequence[str], rows: Sequence[tuple[str, ...]], title: str) -> Table:
    command = "siteproof describe --all"
    return limited(columns, rows, MAX_ROWS, command, title=f"{title} ({len(rows)})")


def _unread(unread: Mapping[str, Mapping[str, str]]) -> list[str]:
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, fields in unread.items():
        for name, why in fields.items():
            reasons[name, why].append(node)
    return [
        f"Not read: {name}: {why} ({nodes(names)})"
        for (name, why), names in sorted(reasons.items())
    ]


def _changed(material: Material, found: Described) -> Section:
    """What has changed since the nodes were described before."""
    sessions = {s.header.session for s in found.samples}
    start = min(s.header.order for s in found.samples)
    before = [
        h
        for h in material.sessions.headers
        if h.check == descriptions.CHECK and h.session not in sessions and h.order < start
    ]
    title = "Since the last description"
    if not before:
        return Section("drift", title, "There is no earlier description.")
    last = max(before, key=lambda h: h.order)
    fields = descriptions.of(_of_session(material, last.session), material.perflogs)
    changes = drift(fields, found.fields)
    rows = [(nodes(c.nodes), c.field, _value(c.before), _value(c.after)) for c in changes]
    both = len(fields.keys() & found.fields.keys())
    lead = (
        f"{count(len(changes), 'change')} since session {last.session} ({when(last.time)}), "
        f"{count(both, 'node')} compared."
    )
    table = _cut(("nodes", "field", "before", "now"), rows, "Changed")
    return Section("drift", title, lead, filled(table))


def _health(found: Sequence[Sample]) -> list[str]:
    """Which counters grew between the first and the last reading of each node."""
    lines: dict[str, list[str]] = defaultdict(list)
    for delta in counters.deltas(*counters.around(found)):
        if delta.rebooted:
            lines[RESTARTED].append(delta.node)
        for name, grown in delta.grown.items():
            lines[f"{name} grew by {grown} from the first reading to the last"].append(delta.node)
        for name, why in delta.unknown.items():
            lines[f"{name} {why}"].append(delta.node)
    return limited_points(
        [f"Health of {nodes(names)}: {line}" for line, names in lines.items()], MAX_ROWS
    )


def _value(value: str | None) -> str:
    if value is None:
        return "nothing"
    return (value if len(value) <= LONGEST else f"{value[:LONGEST]} …") or "empty"
