"""The acceptance: its milestones with what shows them, and what was accepted by whom."""

from __future__ import annotations

from siteproof import timeline
from siteproof.accepted import Acceptance
from siteproof.report.material import Material
from siteproof.report.model import Section, Table
from siteproof.report.words import count, counted, few, when

NAMED = 6  # criteria that an acceptance did not keep


def chapter(material: Material) -> Section | None:
    """Milestones of the site's file, and the records of `siteproof accept`."""
    found = timeline.read(material.site)
    remarks = timeline.remarks(found)
    if not found and not material.accepted and not material.judged.samples:
        return None
    tables = []
    if found:
        order = sorted(found, key=lambda one: (one.days is None, one.days or ()))
        rows = [(one.date or "no date", one.milestone, "; ".join(one.needs) or "-",
                 one.source, one.note or "-") for one in order]
        tables.append(Table(("when", "milestone", "needs", "source", "note"), rows,
                            title=f"Milestones ({len(rows)})"))
    if material.accepted:
        tables.append(Table(
            ("when", "what", "by", "why", "criteria", "despite", "suite"),
            [_accepted(record) for record in material.accepted],
            title=f"Accepted with siteproof accept ({len(material.accepted)})"))
    told = [f"{count(len(found), 'milestone')}, {len(remarks)} of them in question" if found
            else "The site keeps no file of milestones (timeline.csv)",
            f"accepted {count(len(material.accepted), 'time')}" if material.accepted
            else "nothing has been accepted with siteproof accept"]
    return Section("timeline", "Acceptance", f"{'; '.join(told)}.", tables, points=remarks)


def _accepted(record: Acceptance) -> tuple[str, ...]:
    return (when(record.when), record.name, record.who, record.why,
            counted(record.verdicts.items()) or "no criterion",
            few(record.despite, NAMED) or "-", ", ".join(record.suite) or "-")
