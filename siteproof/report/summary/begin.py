"""The first screen of a report, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from siteproof.errors import UserError, UserErrors
from siteproof.record.samples import PUBLISHED
from siteproof.report import brief, waivers
from siteproof.report.chapters import changes, conditions
from siteproof.report.material import Material
from siteproof.report.phrases import period
from siteproof.report.sections import Link
from siteproof.report.summary import (
    NONE,
    OK,
    REMARK,
    SLOW,
    Count,
    Summary,
    first_tables,
    fleet,
    next_steps,
)
from siteproof.trend import Survey
from siteproof.wording.trends import TOO_SHORT
from siteproof.wording.verdicts import awaited, besides, numbers, published_only

T = TypeVar("T")
IGNORED = "decide_nothing"  # of siteproof.wording.verdicts.AWAITED
NOT_MEASURED = "nothing was measured here"


def build(material: Material) -> Summary:
    """The first screen; a part that a broken file hides is named in its place."""
    judged, problems = material.judged, list[str]()

    def part(make: Callable[[Material], T], otherwise: T) -> T:
        try:
            return make(material)
        except (UserError, UserErrors) as error:
            problems.append(str(error))
            return otherwise

    whole = material.site.members
    seen: Survey | None = None if whole else part(lambda found: found.survey, None)
    only_published = published_only(judged)
    cells_of, cells = ("", []) if only_published else fleet.cells(material)
    times = [s.header.time for s in judged.samples if s.header.mode != PUBLISHED]
    measured, counts = period(times) if times else NOT_MEASURED, _counts(material)
    if only_published:  # first that they are, and then what they show
        measured, counts = counts, measured
    return Summary(
        judged.chosen,
        measured,
        ", ".join(whole) or f"{len(material.measured)} of {len(material.fleet.nodes)} nodes",
        "" if whole else part(_compared, ""),
        brief.mark(material),
        counts,
        part(brief.answers, ""),
        list(_cards(material, seen)),
        part(first_tables.tables, []),
        "" if whole else part(conditions.brief, ""),
        next_steps.steps(material),
        cells,
        cells_of,
        list(dict.fromkeys(problems)),
    )


def _cards(material: Material, seen: Survey | None) -> Iterator[Count]:
    """The nodes; of published values alone, what they are; then changes and waivers.

    Of a system that consists of others, these.
    """
    if material.site.members:
        for name, judged in material.judged.members.items():
            of = f"of {len(judged.verdicts)}"
            yield Count(awaited(judged)["answered"], f"criteria answered by {name}", NONE, of)
    elif published_only(material.judged):
        yield from _published_cards(material)
    else:
        yield from fleet.cards(material)
        if seen:
            yield _changes(material, seen)
        yield _waivers(material)


def _published_cards(material: Material) -> Iterator[Count]:
    stated = material.judged.samples
    yield Count(len(stated), "published values and texts", NONE)
    yield Count(0, "nodes measured here", NONE, f"of {len(material.fleet.nodes)}")
    of_criteria = awaited(material.judged)
    yield Count(of_criteria["answered"], "criteria answered by them", NONE)
    waiting = sum(n for name, n in of_criteria.items() if name not in ("answered", IGNORED))
    yield Count(waiting, "criteria without an answer", NONE)


def _changes(material: Material, seen: Survey) -> Count:
    """As the last line of `siteproof trend` counts them."""
    alerts = material.open_changes
    if not seen.long_enough and not alerts:
        return Count(0, "series with a history", NONE, f"of {seen.series}: {TOO_SHORT}")
    proven = sum(not alert.provisional for alert in alerts)
    note = f"and {len(alerts) - proven} provisional" if len(alerts) > proven else ""
    label = "change for the worse, open" if proven == 1 else "changes for the worse, open"
    return Count(proven, label, SLOW if proven else OK, note)


def _waivers(material: Material) -> Count:
    """The waivers that excuse something, when the first of them ends, and how many others are."""
    today, known = material.now.date(), material.site.waivers.values()
    holding = [waiver for waiver in known if waiver.holds(today)]
    used = [material.site.waivers[key] for key in waivers.used(material)]
    notes = [f"the first ends {min(w.expires for w in used)}"] if used else []
    idle = len(holding) - len(used)
    notes += [f"{idle} {'excuses' if idle == 1 else 'excuse'} nothing"] if idle else []
    notes += [f"{len(known) - len(holding)} expired"] if len(known) > len(holding) else []
    label = "waiver" if len(used) == 1 else "waivers"
    look, lead = REMARK if used else OK, Link([(label, f"section-{waivers.NAME}")])
    return Count(len(used), lead, look, ", ".join(notes))


def _compared(material: Material) -> str:
    since = material.once(changes.last_time)
    return since.words if since else ""


def _counts(material: Material) -> str:
    counts = numbers(material.judged.verdicts)
    by = "by published values: " if published_only(material.judged) else ""
    of = f"{by}{counts} of {len(material.judged.verdicts)}" if counts else ""
    return f"{of}{besides(material.judged)}".removeprefix("; ")
