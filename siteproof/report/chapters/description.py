"""What the system is: as the site says, as its nodes say, who is odd, and what has changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from siteproof.analysis import counters
from siteproof.analysis.uniformity import Uniformity, drift, vote
from siteproof.record import descriptions
from siteproof.record.samples import Sample
from siteproof.report.material import Material
from siteproof.report.phrases import few, nodes, period, when
from siteproof.report.sections import Section, Table, limited, limited_points
from siteproof.sites import Hardware
from siteproof.units import count

MAX_ROWS = 60  # of a table, and points of one kind
BULK = ("cpu.flag.", "cpu.vulnerability.", "module.", "package.", "pci.", "sysctl.", "mount.")
LONGEST = 100  # characters of a value


@dataclass(frozen=True)
class Described:
    """What each node said, and could not read, and when it was asked."""

    samples: Sequence[Sample]
    fields: Mapping[str, Mapping[str, str]]
    unread: Mapping[str, Mapping[str, str]]


def chapter(material: Material) -> Section:
    """The site's own words, then a part for each role that was described."""
    told = material.once(described)
    parts = [
        _role(material, told, role)
        for role in material.site.system.nodes
        if any(node in told.fields for node in material.site.expected(role))
    ]
    if told.fields:
        parts.append(_changed(material, told))
    return Section(
        "description",
        "The system",
        _lead(material, told),
        [_site(material)],
        points=_health(material.judged.samples),
        sections=parts,
    )


def described(material: Material) -> Described:
    """What is judged describes the nodes, else the newest description that there is."""
    found = [s for s in material.judged.samples if s.header.check == descriptions.CHECK]
    if not descriptions.described(found):
        names = [h.session for h in material.sessions.headers if h.check == descriptions.CHECK]
        found = (
            material.sessions.of(
                lambda h: h.check == descriptions.CHECK and h.session == max(names)
            )
            if names
            else []
        )
    logs = material.perflogs
    return Described(found, descriptions.of(found, logs), descriptions.unreadable(found, logs))


def _lead(material: Material, told: Described) -> str:
    what = material.site.system.description.rstrip(".")
    if not told.fields:
        return (
            f"{what}. No node has described itself; 'reframe -c checks/ -r -n "
            "SystemDescription' asks them."
        )
    own = "itself" if len(told.fields) == 1 else "themselves"
    return (
        f"{what}. {count(len(told.fields), 'node')} described {own} "
        f"({period([s.header.time for s in told.samples])})."
    )


def _site(material: Material) -> Table:
    site, rows = material.site, []
    for role, held in site.system.nodes.items():
        rows.append(
            (
                role,
                str(len(held.nodes)),
                str(held.nodes),
                _hardware(site.hardware_of(role)) or "not given",
            )
        )
    return Table(
        ("role", "count", "nodes", "hardware"),
        rows,
        "As system.yaml has it.",
        ("count",),
        "What the site file says",
    )


def _hardware(facts: Hardware) -> str:
    told = [facts.description] if facts.description else []
    told += [f"{facts.sockets} x {facts.cores_per_socket} cores"] if facts.cores_per_socket else []
    told += [f"{name.replace('_', ' ')} {value}" for name, value in facts.facts.items()]
    return ", ".join(told)


def _role(material: Material, told: Described, role: str) -> Section:
    """What most nodes of a role are, and which are not so."""
    expected = list(material.site.expected(role))
    mine = [node for node in expected if node in told.fields]
    same = vote({n: told.fields[n] for n in mine}, {n: list(told.unread[n]) for n in mine})
    missing = [node for node in expected if node not in told.fields]
    lead = f"{len(mine)} of {count(len(expected), 'node')} described; "
    lead += (
        f"{len(same.odd)} unlike the others."
        if same.odd
        else "all alike."
        if same.alike
        else f"{count(len(same.undecided), 'field')} without a majority."
    )
    points = [f"Not described: {nodes(missing)}"] if missing else []
    tables = [_odd(same), _undecided(same), _majority(same)]
    return Section(
        f"role-{role}",
        f"Role {role}",
        lead,
        [t for t in tables if t.rows],
        points=limited_points(points + _unread({n: told.unread[n] for n in mine}), MAX_ROWS),
    )


def _majority(same: Uniformity) -> Table:
    """A line for each kind of thing, with the fields of it."""
    held: dict[str, list[str]] = defaultdict(list)
    for name, most in same.majority.items():
        if most.value is not None and not name.startswith(BULK):
            kind, _, field = name.partition(".")
            share = "" if most.share == 1 else f" ({most.share:.1%} of the nodes)"
            held[kind].append(f"{field or kind} {_value(most.value)}{share}")
    rows = [(kind, "; ".join(fields)) for kind, fields in sorted(held.items())]
    rest = len(same.majority) - sum(map(len, held.values()))
    return Table(
        ("of", "what most nodes are"),
        rows,
        f"{count(rest, 'more field')} (packages, kernel parameters, devices and the like) "
        "are left out; 'siteproof describe --all' has them."
        if rest
        else "",
    )


def _odd(same: Uniformity) -> Table:
    odd: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for node, differences in same.odd.items():
        for d in differences:
            odd[d.field, _value(d.value), _value(d.majority)].append(node)
    rows = [(nodes(names), *key) for key, names in sorted(odd.items(), key=lambda i: i[0])]
    return _cut(("nodes", "field", "found", "most nodes"), rows, "Nodes unlike the others")


def _undecided(same: Uniformity) -> Table:
    rows = [
        (name, few([f"{_value(v)} ({nodes(names)})" for v, names in values.items()], 5, "; "))
        for name, values in same.undecided.items()
    ]
    return _cut(("field", "values"), rows, "Fields without a majority")


def _cut(columns: Sequence[str], rows: Sequence[tuple[str, ...]], title: str) -> Table:
    command = "siteproof describe --all"
    return limited(columns, rows, MAX_ROWS, command, title=f"{title} ({len(rows)})")


def _unread(unread: Mapping[str, Mapping[str, str]]) -> list[str]:
    told: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, names in unread.items():
        for name, why in names.items():
            told[name, why].append(node)
    return [
        f"Not read: {name}: {why} ({nodes(names)})" for (name, why), names in sorted(told.items())
    ]


def _changed(material: Material, told: Described) -> Section:
    """What is not what it was when the nodes were described before."""
    mine = {s.header.session for s in told.samples}
    start = min(s.header.order for s in told.samples)
    before = [
        h
        for h in material.sessions.headers
        if h.check == descriptions.CHECK and h.session not in mine and h.order < start
    ]
    if not before:
        return Section("drift", "Since the last description", "There is no earlier description.")
    last = max(before, key=lambda h: h.order)
    fields = descriptions.of(
        material.sessions.of(lambda h: h.check == descriptions.CHECK and h.session == last.session),
        material.perflogs,
    )
    changes = drift(fields, told.fields)
    rows = [(nodes(c.nodes), c.field, _value(c.before), _value(c.after)) for c in changes]
    both = len(fields.keys() & told.fields.keys())
    lead = (
        f"{count(len(changes), 'change')} since session {last.session} ({when(last.time)}), "
        f"{count(both, 'node')} compared."
    )
    table = _cut(("nodes", "field", "before", "now"), rows, "Changed")
    return Section("drift", "Since the last description", lead, [table] if rows else [])


def _health(found: Sequence[Sample]) -> list[str]:
    """What has grown between the first and the last look at each node."""
    lines: dict[str, list[str]] = defaultdict(list)
    for delta in counters.deltas(*counters.around(found)):
        if delta.rebooted:
            lines["rebooted between two looks, so no counter can be compared"].append(delta.node)
        for name, grown in delta.grown.items():
            lines[f"{name} grew by {grown} from the first look to the last"].append(delta.node)
        for name, why in delta.unknown.items():
            lines[f"{name} {why}"].append(delta.node)
    return limited_points(
        [f"Health of {nodes(names)}: {line}" for line, names in lines.items()], MAX_ROWS
    )


def _value(value: str | None) -> str:
    if value is None:
        return "nothing"
    return (value if len(value) <= LONGEST else f"{value[:LONGEST]} …") or "empty"
