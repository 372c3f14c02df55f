"""The milestones of a site's acceptance, and what is wrong with their order."""

from __future__ import annotations

from collections.abc import Sequence

from siteproof.sites.calendar_csv import Milestone
from siteproof.units import count


def remarks(milestones: Sequence[Milestone]) -> list[str]:
    """One sentence for each milestone without a day, and each that precedes one that it needs."""
    undated = [f"{one.milestone} has no date" for one in milestones if not one.date]
    return undated + early(milestones)


def early(milestones: Sequence[Milestone]) -> list[str]:
    """One sentence for each milestone that precedes one that it needs."""
    by_name = {one.milestone: one for one in milestones}
    found = []
    for one in milestones:
        for needed in filter(None, map(by_name.get, one.needs)):
            if not one.days or not needed.days or one.days[1] >= needed.days[0]:
                continue
            days = (needed.days[0] - one.days[1]).days
            found.append(
                f"{one.milestone} ({one.date}) precedes {needed.milestone} ({needed.date}), "
                f"which it needs, by {count(days, 'day')}"
            )
    return found
