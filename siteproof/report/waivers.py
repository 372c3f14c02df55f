"""The waivers of a site: what each excuses in what is judged, or why it excuses nothing."""

from __future__ import annotations

from collections.abc import Iterator

from siteproof.gate import reports
from siteproof.report.material import Material
from siteproof.report.phrases import few, nodes
from siteproof.report.sections import Section, limited
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
    ended = len(waivers) - holding
    lead = f"{count(holding, 'waiver')} of waivers.yaml {'holds' if holding == 1 else 'hold'}"
    lead += f", {ended} expired." if ended else "."
    return Section(NAME, "Waivers", lead, [limited(COLUMNS, rows, MAX_ROWS)])


def _effect(material: Material, key: str, waiver: Waiver) -> str:
    """What it excuses, and what it does not; why it excuses nothing."""
    if not waiver.holds(material.now.date()):
        return "nothing: it has expired"
    parts = [*_excused(material, key), *_refused(material, key, waiver)]
    return "; ".join(parts) or "nothing: its nodes miss nothing that it waives"


def _excused(material: Material, key: str) -> Iterator[str]:
    """What its nodes may miss for it, and which of them go back into service for it."""
    missed = {}
    for result in material.judged.verdicts:
        excused = [n.node for n in result.nodes if any(f.waived_by == key for f in n.findings)]
        if excused:
            missed[result.id] = units(excused)
    if missed:
        yield f"excuses {few([f'{who} from {name}' for name, who in missed.items()], MAX_CRITERIA)}"
    rulings = material.gate.rulings.values()
    back = [r.node for r in rulings if any(f.waived_by == key for f in r.waived)]
    if back:
        goes = "goes" if len(back) == 1 else "go"
        yield f"{nodes(back)} {goes} back into service"


def _refused(material: Material, key: str, waiver: Waiver) -> Iterator[str]:
    """The wrong answers that it does not excuse, and the nodes that stay out for something else."""
    excuses = reports.waived(material.judged, material.now.date())
    wrong: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for node in waiver.set:
        ruling = material.gate.rulings.get(node)
        own = [one for one in excuses[node] if one.waiver.waived_by == key]
        if ruling is None or ruling.back:
            continue
        statuses = {
            why.status
            for why in ruling.findings
            if any(one.is_about(why) and one.refuses(why) for one in own)
        }
        for status in statuses:
            wrong.setdefault(status, []).append(node)
        left = [why for why in ruling.findings if not any(one.excuses(why) for one in own)]
        if left and not statuses:
            others.setdefault(about(left[0]) or sentence(left[0]), []).append(node)
    for status, names in sorted(wrong.items()):
        text = f"does not excuse the wrong answer of {nodes(names)}"
        yield f"{text}: wrong_answers does not name {status}"
    for subject, names in others.items():
        yield f"{nodes(names)} {'stays' if len(names) == 1 else 'stay'} out for {subject}"
