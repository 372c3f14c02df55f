"""The waivers of a site: what each excuses in what is judged, or why it excuses nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from siteproof.gate import reports
from siteproof.gate.decision import Excuse
from siteproof.record.finding import Finding
from siteproof.report.material import Material
from siteproof.report.phrases import few, nodes
from siteproof.report.sections import Section, Table
from siteproof.sites import Waiver
from siteproof.units import count
from siteproof.wording.findings import about, sentence
from siteproof.wording.tallies import units

NAME = "waivers"  # of the section
COLUMNS = ("waiver", "nodes", "waives", "problem", "owner", "last day", "what it does")
MAX_CRITERIA = 4
MAX_ROWS = 100


def section(material: Material) -> Section | None:
    """Each waiver with what it does; those that have expired, too."""
    waivers, today = material.site.waivers, material.now.date()
    if not waivers:
        return None
    rows = [
        (
            key,
            nodes(waiver.set),
            waiver.waives,
            waiver.problem,
            waiver.owner,
            waiver.expires.isoformat(),
            _effect(material, key, waiver),
        )
        for key, waiver in waivers.items()
    ]
    holding = sum(waiver.holds(today) for waiver in waivers.values())
    ended, idle = len(waivers) - holding, holding - len(used(material))
    lead = f"{count(holding, 'waiver')} of waivers.yaml {'holds' if holding == 1 else 'hold'}"
    lead += f", of which {idle} {'excuses' if idle == 1 else 'excuse'} nothing" if idle else ""
    lead += f", {ended} expired." if ended else "."
    return Section(NAME, "Waivers", lead, [Table(COLUMNS, rows, most=MAX_ROWS)])


def used(material: Material) -> set[str]:
    """The waivers that excuse something in what is judged."""
    units = (unit for result in material.judged.verdicts for unit in result.nodes if unit.waived)
    found = [why for unit in units for why in unit.findings]
    found += [why for ruling in material.gate.rulings.values() for why in ruling.waived]
    return {why.waived_by for why in found} - {""}


def _effect(material: Material, key: str, waiver: Waiver) -> str:
    """What it excuses, and what it does not; why it excuses nothing."""
    if not waiver.holds(material.now.date()):
        return "nothing: it has expired"
    parts = [*_excused(material, key), *_back(material, key), *_refused(material, key)]
    return "; ".join(parts) or "nothing: its nodes miss nothing that it waives"


def _excused(material: Material, key: str) -> Iterator[str]:
    """The criteria that its nodes may miss for it."""
    parts = []
    for result in material.judged.verdicts:
        names = [node.node for node in result.nodes if _names(key, node.findings)]
        if names:
            parts.append(f"{units(names)} from {result.id}")
    if parts:
        yield f"excuses {few(parts, MAX_CRITERIA)}"


def _back(material: Material, key: str) -> Iterator[str]:
    """The nodes that go back into service for it."""
    back = [r.node for r in material.gate.rulings.values() if _names(key, r.waived)]
    if back:
        yield f"{nodes(back)} {'goes' if len(back) == 1 else 'go'} back into service"


def _names(key: str, findings: Iterable[Finding]) -> bool:
    return any(found.waived_by == key for found in findings)


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
            yield f"{nodes(names)} {'stays' if len(names) == 1 else 'stay'} out for {subject}"


def _not_excused(excuse: Excuse, findings: Iterable[Finding]) -> tuple[str, str] | None:
    """The status of a wrong answer that it is about; else what another reason is about."""
    left = [why for why in findings if not excuse.excuses(why)]
    wrong = [why.status for why in left if excuse.is_about(why)]
    if wrong:
        return wrong[0], ""
    return ("", about(left[0]) or sentence(left[0])) if left else None
