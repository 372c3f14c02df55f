"""The acceptance: its milestones with what shows them, and what was accepted by whom."""

from __future__ import annotations

from collections.abc import Sequence

from siteproof.compare.accepted import Acceptance
from siteproof.figure import dates as drawn
from siteproof.figure.dates import Timeline
from siteproof.published import milestones
from siteproof.published.milestones import Milestone
from siteproof.report.material import Material
from siteproof.report.phrases import counted, few, when
from siteproof.report.sections import Figure, Section, Table
from siteproof.units import count

MAX_CRITERIA = 6  # criteria that an acceptance did not keep


def chapter(material: Material) -> Section | None:
    """Milestones of the site's file, and the records of `siteproof accept`."""
    found = milestones.read(material.site)
    remarks = milestones.remarks(found)
    if not found and not material.accepted and not material.judged.samples:
        return None
    tables = []
    if found and not any(one.days for one in found):
        tables.append(_milestones(found))  # nothing that a figure could show
    if material.accepted:
        tables.append(
            Table(
                ("when", "what", "by", "why", "criteria", "despite", "suite"),
                [_accepted(record) for record in material.accepted],
                title=f"Accepted with siteproof accept ({len(material.accepted)})",
            )
        )
    told = [
        f"{count(len(found), 'milestone')}, {count(len(remarks), 'remark')} on their dates"
        if found
        else "The site keeps no file of milestones (timeline.csv)",
        f"accepted {count(len(material.accepted), 'time')}"
        if material.accepted
        else "nothing has been accepted with siteproof accept",
    ]
    figures = [_figure(found)] if any(one.days for one in found) else []
    return Section("timeline", "Acceptance", f"{'; '.join(told)}.", tables, figures, remarks)


def _milestones(found: Sequence[Milestone]) -> Table:
    order = sorted(found, key=lambda one: (one.days is None, one.days or ()))
    rows = [
        (
            one.date.replace("/", " to ") or "no date",
            one.milestone,
            "; ".join(one.needs) or "-",
            one.source,
            one.note or "-",
        )
        for one in order
    ]
    return Table(
        ("when", "milestone", "needs", "source", "note"), rows, title=f"Milestones ({len(rows)})"
    )


def _figure(found: Sequence[Milestone]) -> Figure:
    """The milestones in the order in which they belong, over the days on which they came."""
    ordered = _in_order(found)
    days = {one.milestone: one.days for one in ordered if one.days}
    early = set()
    for one in ordered:
        needed = [days[need] for need in one.needs if need in days]
        if one.days and any(first > one.days[1] for first, _ in needed):
            early.add(one.milestone)
    first, last = (min(a for a, _ in days.values()), max(b for _, b in days.values()))
    caption = (
        f"{len(days)} of {count(len(found), 'milestone')} have a date, from {first} to {last}; "
        f"{len(early)} came before one that they need."
    )
    title = "Milestones of the acceptance"
    steps = [one.milestone for one in ordered]
    svg = drawn.draw("acceptance", caption, Timeline(title, steps, days, frozenset(early)))
    return Figure("acceptance", title, svg, caption, _milestones(found))


def _in_order(found: Sequence[Milestone]) -> list[Milestone]:
    """Each after what it needs, otherwise by its day: so only what came early turns back."""
    left, done = sorted(found, key=lambda one: (one.days is None, one.days or ())), []
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
