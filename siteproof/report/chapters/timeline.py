"""The acceptance: its milestones with their sources, and what was accepted by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time

from siteproof.compare.accepted import Acceptance
from siteproof.figure import spans as drawn
from siteproof.figure.spans import DONE, EARLY, Times
from siteproof.figure.style import DAY
from siteproof.published import milestones
from siteproof.report.material import Material
from siteproof.report.phrases import counted, few, when
from siteproof.report.sections import Figure, Section, Table, filled
from siteproof.sites.timeline_csv import Milestone
from siteproof.units import count

NOT_ACCEPTED = "; nothing has been accepted with siteproof accept."
MAX_CRITERIA = 6  # criteria that an acceptance did not keep


def chapter(material: Material) -> Section | None:
    """Milestones of the site's file, and the records of `siteproof accept`."""
    found, accepted = material.site.milestones, material.accepted
    if not (found or accepted or material.judged.samples):
        return None
    dated = any(one.days for one in found)
    columns = ("when", "what", "by", "why", "criteria", "despite", "suite")
    title = f"Accepted with siteproof accept ({len(accepted)})"
    tables = filled(
        _milestones([] if dated else found),  # with dates it is the table of the figure
        Table(columns, [_accepted(record) for record in accepted], title=title),
    )
    remarks = milestones.remarks(found)
    lead = "The site has no file of milestones (timeline.csv)"
    if found:
        lead = f"{count(len(found), 'milestone')}, {count(len(remarks), 'remark')} on their dates"
    lead += f"; accepted {count(len(accepted), 'time')}." if accepted else NOT_ACCEPTED
    figures = [_figure(found)] if dated else []
    return Section("timeline", "Acceptance", lead, tables, figures, remarks)


def _milestones(found: Sequence[Milestone]) -> Table:
    rows = []
    for one in _by_day(found):
        days = one.date.replace("/", " to ") or "no date"
        needs = "; ".join(one.needs) or "-"
        rows.append((days, one.milestone, needs, one.source, one.note or "-"))
    title = f"Milestones ({len(rows)})"
    return Table(("when", "milestone", "needs", "source", "note"), rows, title=title)


def _by_day(found: Sequence[Milestone]) -> list[Milestone]:
    """Milestones by their days; those without one at the end."""
    return sorted(found, key=lambda one: (one.days is None, one.days or ()))


def _figure(found: Sequence[Milestone]) -> Figure:
    """The milestones in the order in which they belong, over their days."""
    steps = _in_order(found)
    days = {one.milestone: one.days for one in steps if one.days}
    early = {one.milestone for one in steps if _is_early(one, days)}
    first, last = (min(a for a, _ in days.values()), max(b for _, b in days.values()))
    caption = (
        f"{len(days)} of {count(len(found), 'milestone')} have a date, from {first} to {last}; "
        f"{len(early)} came before one that they need."
    )
    title = "Milestones of the acceptance"
    rows: dict[str, dict[str, Times]] = {one.milestone: {} for one in steps}
    for name, (begin, end) in days.items():
        rows[name] = {EARLY if name in early else DONE: [(_seconds(begin), _seconds(end) + DAY)]}
    svg = drawn.draw(title, rows)
    return Figure("acceptance", title, svg, caption, _milestones(found))


def _seconds(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()


def _is_early(one: Milestone, days: Mapping[str, tuple[date, date]]) -> bool:
    """Whether it ended before a milestone that it needs began."""
    needed = [days[need] for need in one.needs if need in days]
    return one.days is not None and any(first > one.days[1] for first, _ in needed)


def _in_order(found: Sequence[Milestone]) -> list[Milestone]:
    """Each after what it needs, otherwise by its day, so that only early ones are out of order."""
    left, done = _by_day(found), []
    while left:
        names = {one.milestone for one in left}
        ready = next((one for one in left if not names & set(one.needs)), left[0])
        left.remove(ready)
        done.append(ready)
    return done


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
