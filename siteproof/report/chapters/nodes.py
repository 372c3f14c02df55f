"""The nodes: which stay out and why, and which go back with a remark; what each waiver does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from siteproof.gate import reports
from siteproof.gate.decision import STATES, Excuse, Ruling
from siteproof.nodes.states import State
from siteproof.record.finding import Finding, Kind
from siteproof.record.pair_units import grouped
from siteproof.report.material import Material
from siteproof.report.sections import NOTHING, Link, Section, Table, anchor, few, nodes, to_nodes
from siteproof.sites import Waiver
from siteproof.wording.findings import about, days, full, fulls, sentence, sentences
from siteproof.wording.in_bounds_unit import Shown
from siteproof.wording.tallies import units

MAX_REASONS = 3  # of a node
WAIVERS = "waivers"  # the section
WAIVER_COLUMNS = ("waiver", "nodes", "waives", "problem", "owner", "last day", "what it does")
MAX_CRITERIA = 4
MAX_ROWS = 150  # of a table; more would hide what matters
COMMAND = "siteproof nodes"


def chapter(material: Material) -> Section:
    """The nodes that stay out, and those that go back with a remark."""
    titles = ("Nodes that stay out", "Nodes that go back into service with a remark")
    named = zip(material.once(in_rows), titles, strict=True)
    tables = [_table(material, groups, title) for groups, title in named if groups]
    doubts = "What limits the trust in the ranking of the nodes, and what racks share."
    repairs = "The last repair of each node, as it was recorded with siteproof repaired."
    repaired = [node.repair for node in material.fleet.nodes.values() if node.repair]
    points = [f"{names}: {text}" for names, text in _together(repaired, lambda one: one.since)]
    found = (
        _waivers(material),
        _listed("doubts", "Findings on groups of nodes", doubts, fulls(material.fleet.warnings)),
        _notes(material),
        _listed("repairs", "Repairs", repairs, points),
    )
    parts = list(filter(None, found))
    return Section("nodes", "Nodes", short(material), tables, sections=parts)


def short(material: Material) -> str:
    """How many nodes stay out."""
    rulings = material.gate.rulings
    if not material.measured:
        whole = f"No node of {len(rulings)} was measured in what is judged"
        return f"{whole}, so nothing is decided about any."
    text = f"{sum(not r.back for r in rulings.values())} of {len(rulings)} nodes stay out."
    rest = material.once(not_required)
    return text + (f" Nothing is required of {nodes(rest)}." if rest else "")


def _listed(name: str, title: str, lead: str, points: Sequence[str]) -> Section | None:
    return Section(name, title, lead, points=points) if points else None


def _notes(material: Material) -> Section | None:
    """What was seen once, and the nodes to test again."""
    found = [note for node in material.fleet.nodes.values() for note in node.notes]
    rows = _together(note for note in found if note.kind is not Kind.NOT_RANKED)
    retest = material.fleet.retest
    if not rows and not retest:
        return None
    table = Table(("nodes", "seen once"), rows, most=MAX_ROWS, command=COMMAND)
    lead = f"Run again: {retest}." if retest else "Nothing has to be run again."
    return Section("retest", "Nodes to test again", lead, [table])


def _together(
    findings: Iterable[Finding], apart: Callable[[Finding], object] = lambda _one: None
) -> list[tuple[str, str]]:
    """Nodes, and the sentence on their findings that differ in numbers only. apart: and in this."""
    groups = grouped(((one.alike, apart(one)), one) for one in findings)
    return [(nodes({one.subject for one in same}), full(*same)) for same in groups.values()]


def not_required(material: Material) -> set[str]:
    """Nodes that are OK because nothing is required of them."""
    return {
        n.node
        for n in material.fleet.nodes.values()
        if n.state is State.OK and n.node not in material.measured
    }


@dataclass(frozen=True)
class AlikeNodes:
    """Nodes in the same state with findings that differ in numbers and times only.

    worst: the first reason of each.
    """

    nodes: Sequence[str]
    state: str
    reasons: Sequence[str]
    waived: str
    worst: Sequence[Finding]

    @property
    def since(self) -> str:
        """Since when the first reason holds."""
        return days(self.worst) or NOTHING

    @property
    def changes(self) -> Sequence[str]:
        """The changes of the history that explain it."""
        return list(dict.fromkeys(why.alert for why in self.worst if why.alert))

    def __str__(self) -> str:
        return nodes(self.nodes)


def alike(rulings: Iterable[Ruling]) -> list[AlikeNodes]:
    """Nodes by state, reasons and waiver, the most severe state first."""
    ordered = sorted(rulings, key=lambda r: (STATES.index(r.state), r.node))
    groups = grouped(((r.state, kinds(r.findings), r.waived), r) for r in ordered)
    return [
        AlikeNodes(
            [ruling.node for ruling in same],
            same[0].state,
            common([ruling.findings for ruling in same]),
            sentences(same[0].waived),
            [ruling.findings[0] for ruling in same if ruling.findings],
        )
        for same in groups.values()
    ]


def kinds(findings: Iterable[Finding]) -> tuple[object, ...]:
    """What the findings of nodes in one row have in common."""
    return tuple(finding.alike for finding in findings)


def common(findings: Iterable[Sequence[Finding]]) -> list[str]:
    """The sentences on alike findings of several nodes, with the range of each number."""
    return [full(*same) for same in zip(*findings, strict=True)]


def _table(material: Material, groups: Sequence[AlikeNodes], title: str) -> Table:
    """A row for the nodes that are in the same state for the same reasons."""
    system, rows = material.site.system, []
    for group in groups:
        why = "; ".join(filter(None, (few(group.reasons, MAX_REASONS, "; "), group.waived)))
        roles = ", ".join(sorted({material.site.role_of(name) or "-" for name in group.nodes}))
        racks = [one for one in system.groups if not set(group.nodes).isdisjoint(system.group(one))]
        in_racks = few(sorted(racks), MAX_REASONS)
        rows.append((to_nodes(group.nodes), group.state, roles, in_racks or "-", why or "-"))
    columns, ids = ("nodes", "state", "role", "group", "why"), list(map(_anchor, groups))
    title = f"{title} ({sum(len(group.nodes) for group in groups)})"
    return Table(columns, rows, title=title, ids=ids, most=MAX_ROWS, command=COMMAND)


def _anchor(group: AlikeNodes) -> str:
    return anchor("state", group.nodes[0])


def anchors(material: Material) -> dict[str, str]:
    """Of each node with a row in these tables, the id of the row."""
    shown = [group for groups in material.once(in_rows) for group in groups[:MAX_ROWS]]
    return {node: _anchor(group) for group in shown for node in group.nodes}


def to_reason(material: Material, node: str, text: str) -> Link:
    """A text on a node that leads to the row with its reasons."""
    return Link([(text, material.once(anchors).get(node, ""))])


def in_rows(material: Material) -> tuple[list[AlikeNodes], list[AlikeNodes]]:
    """The nodes that stay out, and those that go back with a remark, as `alike` groups them.

    Values are in the unit and digits of their criterion.
    """
    shown, every = Shown(material.judged), material.gate.rulings.values()
    rulings = [replace(r, findings=tuple(shown.all(r.findings))) for r in every]
    out = [r for r in rulings if not r.back] if material.measured else []
    return alike(out), alike(r for r in rulings if r.back and r.state != State.OK)


def in_groups(
    material: Material, names: Iterable[str]
) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """The groups of the site with the nodes that they hold, each in the first; and the others."""
    system, left = material.site.system, list(names)
    found = []
    for name in system.groups:
        own = set(system.group(name))
        if members := [node for node in left if node in own]:
            found.append((name, members))
            left = [node for node in left if node not in own]
    return found, left


# ---- waivers


def _waivers(material: Material) -> Section | None:
    """Each waiver with what it does; those that have expired, too."""
    waivers, today = material.site.waivers, material.now.date()
    if not waivers:
        return None
    rows = [
        (
            key,
            nodes(waiver.units),
            waiver.waives,
            waiver.problem,
            waiver.owner,
            waiver.expires.isoformat(),
            _effect(material, key, waiver),
        )
        for key, waiver in waivers.items()
    ]
    holding = sum(waiver.holds(today) for waiver in waivers.values())
    idle, ended = holding - len(used_waivers(material)), len(waivers) - holding
    lead = f"In waivers.yaml: {holding} in force, of which {idle} without effect; {ended} expired."
    return Section(WAIVERS, "Waivers", lead, [Table(WAIVER_COLUMNS, rows, most=MAX_ROWS)])


def used_waivers(material: Material) -> set[str]:
    """The waivers that excuse something in what is judged."""
    units = (unit for result in material.judged.verdicts for unit in result.nodes if unit.waived)
    found = [why for unit in units for why in unit.findings]
    found += [why for ruling in material.gate.rulings.values() for why in ruling.waived]
    return {why.waived_by for why in found} - {""}


def _effect(material: Material, key: str, waiver: Waiver) -> str:
    """What it excuses, and what it does not; why it excuses nothing."""
    if not waiver.holds(material.now.date()):
        return "nothing: it has expired"
    excused = grouped(
        (result.id, node.node)
        for result in material.judged.verdicts
        for node in result.nodes
        if any(why.waived_by == key for why in node.findings)
    )
    back = [
        ruling.node
        for ruling in material.gate.rulings.values()
        if any(why.waived_by == key for why in ruling.waived)
    ]
    texts = [f"{units(names)} from {name}" for name, names in excused.items()]
    parts = [f"excuses {few(texts, MAX_CRITERIA)}"] if excused else []
    parts += [f"goes back into service: {nodes(back)}"] if back else []
    parts += _refused(material, key)
    return "; ".join(parts) or "nothing: its nodes miss nothing that it waives"


def _refused(material: Material, key: str) -> Iterator[str]:
    """The wrong answers that it does not excuse, and the nodes that stay out for something else."""
    found: dict[tuple[str, str], list[str]] = {}
    for node, excuses in reports.waived(material.judged, material.now.date()).items():
        ruling = material.gate.rulings.get(node)
        for excuse in [one for one in excuses if one.waiver.waived_by == key]:
            if ruling and not ruling.back and (why := _not_excused(excuse, ruling.findings)):
                found.setdefault(why, []).append(node)
    for (status, subject), names in found.items():
        if status:
            text = f"does not excuse the wrong answer of {nodes(names)}"
            yield f"{text}: wrong_answers does not name {status}"
        else:
            yield f"stays out for {subject}: {nodes(names)}"


def _not_excused(excuse: Excuse, findings: Iterable[Finding]) -> tuple[str, str] | None:
    """The status of a wrong answer that it is about; else what another reason is about."""
    left = [why for why in findings if not excuse.excuses(why)]
    wrong = [why.status for why in left if excuse.is_about(why)]
    if wrong:
        return wrong[0], ""
    return ("", about(left[0]) or sentence(left[0])) if left else None
