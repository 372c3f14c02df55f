"""Hosts and their parameters: a column for hosts that are alike, and a mark where one differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from siteproof.analysis.uniformity import vote
from siteproof.record.grouped import grouped
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.report.chapters.description import described
from siteproof.report.material import Material
from siteproof.report.phrases import some_nodes
from siteproof.report.sections import Marked, Section, Table
from siteproof.units import count

STATED, PARAMETER = "Stated.parameter", "parameter"  # metric and condition of a published one
KINDS = ("sysctl.", "nic.", "bond.")  # fields of a description that are parameters
MAX_COLUMNS, MAX_ROWS = 8, 60
DIFFERS = "!"  # before a value that most hosts do not have

Fields = Mapping[str, Mapping[str, str]]  # of each host its parameters


def chapter(material: Material) -> Section | None:
    """A table for each role that was described, and one of what others have published."""
    tables = [*_measured(material), *_published(material)]
    if not tables:
        return None
    differ = sum(isinstance(cell, Marked) for one in tables for row in one.rows for cell in row)
    lead = f"{count(differ, 'value')} of hosts that differ from most of their table."
    return Section("hosts", "Hosts and parameters", lead, tables)


def _measured(material: Material) -> Iterator[Table]:
    """What the site states of a role, and what differs in it."""
    found = material.once(described)
    for role, entry in material.site.system.nodes.items():
        fields = {node: found.fields[node] for node in entry.nodes if node in found.fields}
        stated = material.site.system.parameters.get(role)
        differing = {one.field for of_node in vote(fields).differing.values() for one in of_node}
        names = [*(stated.by_name() if stated else ()), *sorted(differing)]
        wanted = [name for name in dict.fromkeys(names) if name.startswith(KINDS)]
        if fields and wanted:
            yield _table(f"Role {role}", fields, wanted)


def _published(material: Material) -> Iterator[Table]:
    stated = material.sessions.of(lambda head: head.mode == PUBLISHED)
    of_host = grouped((s.node, s) for s in stated if s.metric == STATED and s.node)
    fields = {host: _parameters(found) for host, found in of_host.items()}
    if fields:
        names = dict.fromkeys(name for own in fields.values() for name in own)
        yield _table("As published", fields, names)


def _parameters(found: Iterable[Sample]) -> dict[str, str]:
    return {s.conditions[PARAMETER]: str(s.value) for s in found if PARAMETER in s.conditions}


def _table(title: str, fields: Fields, names: Collection[str]) -> Table:
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
    note = f"{DIFFERS} is before a value that most of the hosts do not have."
    note += f" {count(left, 'host')} in other columns not shown." if left else ""
    heads = ("parameter", *(some_nodes(hosts) for _, hosts in columns[:MAX_COLUMNS]))
    return Table(heads, rows, note, title=title, most=MAX_ROWS, command="siteproof describe --all")


def _cell(value: str, most: str | None) -> str:
    if most is None or value == most:
        return value
    return Marked([(f"{DIFFERS} {value or 'not there'}", "warn")])
