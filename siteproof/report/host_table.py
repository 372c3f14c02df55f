"""Hosts and their parameters: a column for hosts that are alike, and a mark where one differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from siteproof.record.grouped import grouped
from siteproof.record.samples import Sample
from siteproof.report.phrases import some_nodes
from siteproof.report.sections import Marked, Table
from siteproof.sites import Site
from siteproof.units import count

STATED, PARAMETER = "Stated.parameter", "parameter"  # metric and condition of a published one
KINDS = ("sysctl.", "nic.", "bond.")  # fields of a description that are parameters
MAX_COLUMNS, MAX_ROWS = 8, 60
DIFFERS = "!"  # before a value that most hosts do not have

Fields = Mapping[str, Mapping[str, str]]  # of each host its parameters


def of_role(site: Site, role: str, fields: Fields, differing: Collection[str]) -> list[Table]:
    """What the site states of a role, and what differs in it; no table where that is nothing."""
    stated = site.system.parameters.get(role)
    names = [*(stated.by_name() if stated else ()), *sorted(differing)]
    wanted = [name for name in dict.fromkeys(names) if name.startswith(KINDS)]
    return [_table("Host parameters", fields, wanted)] if wanted else []


def as_published(stated: Iterable[Sample]) -> list[Table]:
    """The hosts of which others have published parameters."""
    of_host = grouped((s.node, s) for s in stated if s.metric == STATED and s.node)
    fields = {host: _parameters(found) for host, found in of_host.items()}
    names = dict.fromkeys(name for own in fields.values() for name in own)
    return [_table("Host parameters, as published", fields, names)] if fields else []


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
    note = f"{count(left, 'host')} in other columns not shown." if left else ""
    heads = ("parameter", *(some_nodes(hosts) for _, hosts in columns[:MAX_COLUMNS]))
    whole = f"{title} ({DIFFERS}: not as on most)"
    return Table(heads, rows, note, title=whole, most=MAX_ROWS, command="siteproof describe --all")


def _cell(value: str, most: str | None) -> str:
    if most is None or value == most:
        return value
    return Marked([(f"{DIFFERS} {value or 'not there'}", "warn")])
