"""The nodes: which stay out and why, which go back, and how many are in which state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from siteproof.fleet import State
from siteproof.gate.decision import Ruling
from siteproof.report.material import Material
from siteproof.report.model import Section, Table
from siteproof.report.words import count, counted, few, nodes

SHOWN = 3  # reasons of a node
MOST = 150  # lines of a table; more would hide what matters
NAMED = 3  # groups of nodes that a sentence tells the reason of


def chapter(material: Material) -> Section:
    """Who stays out, who goes back with a remark, and the states of all."""
    out = [r for r in material.gate.rulings.values() if not r.back]
    tables = []
    if out and _measured(material):
        tables.append(_table(material, out, "Nodes that stay out"))
    if remarked := [r for r in material.gate.rulings.values() if r.back and r.state != State.OK]:
        tables.append(_table(material, remarked, "Nodes that go back with a remark"))
    tables.append(_states(material))
    points = list(dict.fromkeys(material.fleet.warnings))
    points += [f"{node.node}: {note}" for node in material.fleet.nodes.values()
               for note in node.notes][:MOST]
    if retest := material.fleet.retest:
        points.append(f"One more run would tell more of {retest}.")
    return Section("nodes", "Nodes", brief(material), tables, points=points)


def brief(material: Material) -> str:
    """Which nodes stay out, and why."""
    rulings = material.gate.rulings
    if not rulings:
        return "The inventory has no node."
    if not _measured(material):
        return (f"None of the {count(len(rulings), 'node')} was measured in what is judged, so "
                "nothing is decided about any.")
    out = [r for r in rulings.values() if not r.back]
    if not out:
        return f"No node stays out: all {len(rulings)} go back."
    told = [f"{nodes(names)} ({state}: {few(reasons, 1)})"
            for (state, reasons, _), names in _alike(out).items()]
    return (f"{len(out)} of {count(len(rulings), 'node')} stay out: "
            f"{few(told, NAMED, '; ')}.")


def _measured(material: Material) -> bool:
    """Whether some node was measured; the gate decides nothing otherwise."""
    return any(r.state != State.UNTESTED for r in material.gate.rulings.values()) and \
        bool(material.judged.samples)


def _alike(rulings: Iterable[Ruling]) -> Mapping[tuple[str, tuple[str, ...], str], Sequence[str]]:
    """Nodes by state, reasons and waiver, the gravest state first."""
    order = [str(state) for state in State]
    groups: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for ruling in sorted(rulings, key=lambda r: (order.index(r.state), r.node)):
        key = (ruling.state, ruling.reasons, ruling.waived)
        groups.setdefault(key, []).append(ruling.node)
    return groups


def _table(material: Material, rulings: Sequence[Ruling], title: str) -> Table:
    """A line for the nodes that are in the same state for the same reasons."""
    rows = []
    for (state, reasons, waived), names in _alike(rulings).items():
        why = [few(reasons, SHOWN, "; ")] if reasons else []
        rows.append((nodes(names), state, _roles(material, names), _groups(material, names),
                     "; ".join(why + ([waived] if waived else [])) or "-"))
    note = "" if len(rows) <= MOST else (
        f"{len(rows) - MOST} more lines are left out; 'siteproof nodes' has all of them.")
    return Table(("nodes", "state", "role", "group", "why"), rows[:MOST], note,
                 title=f"{title} ({len(rulings)})")


def _roles(material: Material, names: Iterable[str]) -> str:
    return ", ".join(sorted({material.site.role_of(name) or "-" for name in names}))


def _groups(material: Material, names: Sequence[str]) -> str:
    """The racks or switches that they are in."""
    told = {
        node: group for group in material.site.system.groups
        for node in material.once(_members)[group]
    }
    return few(sorted({told[name] for name in names if name in told}), SHOWN) or "-"


def _members(material: Material) -> Mapping[str, Sequence[str]]:
    system = material.site.system
    return {group: list(system.group(group)) for group in system.groups}


def _states(material: Material) -> Table:
    """How many nodes of each role are in which state, and which."""
    report = material.fleet
    rows = []
    for state in State:
        mine = [n for n in report.nodes.values() if n.state is state]
        if mine:
            roles = {n.role: sum(m.role == n.role for m in mine) for n in mine}
            rows.append((str(state), str(len(mine)), counted(roles.items()),
                         nodes(n.node for n in mine)))
    return Table(("state", "count", "by role", "nodes"), rows, numeric=("count",),
                 title=f"States of all {len(report.nodes)} nodes")
