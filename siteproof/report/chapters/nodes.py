"""The nodes: which stay out and why, which go back, and how many are in which state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from siteproof.gate.decision import Ruling
from siteproof.nodes.states import NodeReport, State
from siteproof.record.finding import Finding
from siteproof.report.material import Material
from siteproof.report.phrases import counted, few, nodes
from siteproof.report.sections import Section, Table, limited
from siteproof.units import count
from siteproof.wording.findings import about, full, fulls, sentence, sentences

NOT_REQUIRED = "nothing required"  # and nothing measured: neither good nor bad
MAX_REASONS = 3  # of a node
MAX_ROWS = 150  # of a table; more would hide what matters
MAX_GROUPS = 3  # of nodes in a sentence, each with its reason


def chapter(material: Material) -> Section:
    """Who stays out, who goes back with a remark, and the states of all."""
    out = [r for r in material.gate.rulings.values() if not r.back]
    tables = []
    if out and material.measured:
        tables.append(_table(material, out, "Nodes that stay out"))
    if remarked := [r for r in material.gate.rulings.values() if r.back and r.state != State.OK]:
        tables.append(_table(material, remarked, "Nodes that go back with a remark"))
    tables.append(_states(material))
    parts = [part for part in (_doubts(material), _notes(material)) if part]
    return Section("nodes", "Nodes", brief(material), tables, sections=parts)


def brief(material: Material) -> str:
    """Which nodes stay out, and why."""
    told, out = short(material), [r for r in material.gate.rulings.values() if not r.back]
    if not out or not material.measured:
        return told
    groups = _alike(out)
    if len(groups) <= MAX_GROUPS:
        why = [
            f"{nodes(names)} ({state}: {_worst(reasons)})" for (state, reasons, _), names in groups
        ]
    else:  # too many groups: by what is wrong, without the values
        why = [
            f"{len(names)} {state} by {what} ({nodes(names)})"
            for (state, what), names in _subjects(out).items()
        ]
    first, dot, rest = told.partition(".")
    return f"{first}: {few(why, MAX_GROUPS, '; ')}{dot}{rest}"


def _worst(reasons: Sequence[str]) -> str:
    more = f", and {count(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return f"{(reasons or ('no reason known',))[0]}{more}"


def short(material: Material) -> str:
    """How many nodes stay out."""
    rulings = material.gate.rulings
    if not rulings:
        return "The inventory has no node."
    if not material.measured:
        return (
            f"No node of {len(rulings)} was measured in what is judged, so nothing is decided "
            "about any."
        )
    out = sum(not r.back for r in rulings.values())
    rest = material.once(_not_required)
    not_required = (
        f" Nothing is required of {nodes(rest)}, and nothing was measured." if rest else ""
    )
    if not out:
        who = "the only node goes back" if len(rulings) == 1 else f"all {len(rulings)} go back"
        return f"No node stays out: {who}.{not_required}"
    verb = "stays" if out == 1 else "stay"
    return f"{out} of {count(len(rulings), 'node')} {verb} out.{not_required}"


def _doubts(material: Material) -> Section | None:
    """What limits the trust in all of this."""
    found = fulls(material.fleet.warnings)
    lead = "What limits the trust in the ranking of the nodes, and what racks share."
    return Section("doubts", "What is true of many nodes", lead, points=found) if found else None


def _notes(material: Material) -> Section | None:
    """What proves nothing yet."""
    alike: dict[object, list[Finding]] = {}
    for node in material.fleet.nodes.values():
        for note in node.notes:
            alike.setdefault(note.alike, []).append(note)
    rows = []
    for notes in alike.values():
        names = {note.subject for note in notes}
        rows.append((nodes(names), full(*notes), _over_the_years(material, names)))
    retest = material.fleet.retest
    if not rows and not retest:
        return None
    columns = ("nodes", "seen once", "over the years")
    table = limited(columns, rows, MAX_ROWS, "siteproof nodes")
    return Section(
        "retest",
        "What one more run would decide",
        f"Run again: {retest}." if retest else "Nothing has to be run again.",
        [table] if rows else [],
    )


def _over_the_years(material: Material, names: Collection[str]) -> str:
    """Since when the history has them worse: then what was seen once is nothing new."""
    told = [
        f"{a.metric} of {nodes(there)} worse since {a.first_after.time:%Y-%m-%d}"
        for a in material.survey.alerts
        if a.open and not a.of_fleet and (there := [n for n in a.nodes if n in names])
    ]
    return few(told, MAX_REASONS, "; ") or "-"


def _subjects(rulings: Iterable[Ruling]) -> Mapping[tuple[str, str], Sequence[str]]:
    """Nodes by state and by the subject of their worst reason, the most severe state first."""
    order = [str(state) for state in State]
    found: dict[tuple[str, str], list[str]] = {}
    for ruling in rulings:
        first = ruling.findings[0] if ruling.findings else None
        what = about(first) or sentence(first) if first else "no reason known"
        found.setdefault((ruling.state, what), []).append(ruling.node)
    return dict(sorted(found.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]))))


def _not_required(material: Material) -> set[str]:
    """Nodes that are OK because nothing is required of them."""
    return {
        n.node
        for n in material.fleet.nodes.values()
        if n.state is State.OK and n.node not in material.measured
    }


def _alike(rulings: Iterable[Ruling]) -> list[tuple[tuple[str, list[str], str], list[str]]]:
    """Nodes by state, reasons and waiver, the most severe state first.

    Reasons that differ only in their numbers are one, each number from the least to the largest.
    """
    order = [str(state) for state in State]
    groups: dict[object, list[Ruling]] = {}
    for ruling in sorted(rulings, key=lambda r: (order.index(r.state), r.node)):
        kinds = tuple(why.alike for why in ruling.findings)
        groups.setdefault((ruling.state, kinds, ruling.waived), []).append(ruling)
    found = []
    for alike in groups.values():
        reasons = [full(*same) for same in zip(*(r.findings for r in alike), strict=True)]
        waived = sentences(alike[0].waived)
        found.append(((alike[0].state, reasons, waived), [r.node for r in alike]))
    return found


def _table(material: Material, rulings: Sequence[Ruling], title: str) -> Table:
    """A line for the nodes that are in the same state for the same reasons."""
    rows = []
    for (state, reasons, waived), names in _alike(rulings):
        why = few(reasons, MAX_REASONS, "; ")
        why = "; ".join(part for part in (why, waived) if part)
        rows.append(
            (nodes(names), state, _roles(material, names), _groups(material, names), why or "-")
        )
    columns = ("nodes", "state", "role", "group", "why")
    title = f"{title} ({len(rulings)})"
    return limited(columns, rows, MAX_ROWS, "siteproof nodes", title=title)


def _roles(material: Material, names: Iterable[str]) -> str:
    return ", ".join(sorted({material.site.role_of(name) or "-" for name in names}))


def _groups(material: Material, names: Sequence[str]) -> str:
    """The racks or switches that they are in."""
    held = set(names)
    found = [group for group, members in material.once(_members).items() if members & held]
    return few(sorted(found), MAX_REASONS) or "-"


def _members(material: Material) -> Mapping[str, set[str]]:
    system = material.site.system
    return {group: set(system.group(group)) for group in system.groups}


def _states(material: Material) -> Table:
    """How many nodes of each role are in which state, and which."""
    not_required = material.once(_not_required)
    groups: dict[str, list[NodeReport]] = {word: [] for word in (*map(str, State), NOT_REQUIRED)}
    for node in material.fleet.nodes.values():
        groups[NOT_REQUIRED if node.node in not_required else str(node.state)].append(node)
    rows = [_state_row(word, found) for word, found in groups.items() if found]
    title = f"States of {count(len(material.fleet.nodes), 'node')}"
    return Table(("state", "count", "by role", "nodes"), rows, numeric=("count",), title=title)


def _state_row(word: str, found: Sequence[NodeReport]) -> tuple[str, ...]:
    roles = Counter(node.role for node in found)
    return word, str(len(found)), counted(roles.items()), nodes(node.node for node in found)
