"""The acceptance: its milestones with their sources, and what was accepted by whom."""

from __future__ import annotations

from collections.abc import Sequence

from siteproof.compare.accepted import Acceptance
from siteproof.report.material import Material
from siteproof.report.sections import Section, Table, counted, few, when
from siteproof.sites import site_tables
from siteproof.sites.site_tables import Milestone
from siteproof.units import count

MAX_CRITERIA = 6  # criteria that an acceptance did not keep


def chapter(material: Material) -> Section | None:
    """Milestones of the site's file, and the records of `siteproof accept`."""
    found, accepted = material.site.milestones, material.accepted
    if not (found or accepted or material.judged.samples):
        return None
    columns = ("when", "what", "by", "why", "criteria", "despite", "suite")
    title = f"Accepted with siteproof accept ({len(accepted)})"
    tables = (
        _milestones(found),
        Table(columns, [_accepted(record) for record in accepted], title=title),
    )
    remarks = site_tables.remarks(found)
    lead = (
        f"{count(len(found), 'milestone')} in timeline.csv, {count(len(remarks), 'remark')} on "
        f"their dates; accepted with siteproof accept: {count(len(accepted), 'time')}."
    )
    return Section("timeline", "Acceptance", lead, tables, points=remarks)


def _milestones(found: Sequence[Milestone]) -> Table:
    rows = []
    for one in sorted(found, key=lambda one: (one.days is None, one.days or ())):
        days = one.date.replace("/", " to ") or "no date"
        needs = "; ".join(one.needs) or "-"
        rows.append((days, one.milestone, needs, one.source, one.note or "-"))
    title = f"Milestones ({len(rows)})"
    return Table(("when", "milestone", "needs", "source", "note"), rows, title=title)


def _accepted(record: Acceptance) -> tuple[str, ...]:
    return (
        when(record.when),
        record.name,
        record.who,
        record.why,
        counted(record.verdicts.items()) or "no criterion",
        few(record.despite, MAX_CRITERIA) or "-",
        ", ".join(record.suite) or "-",
    )
