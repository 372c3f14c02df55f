"""The first screen of a report, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from siteproof.errors import UserError, UserErrors
from siteproof.record.samples import PUBLISHED
from siteproof.report import waivers
from siteproof.report.chapters import changes, nodes
from siteproof.report.material import Material
from siteproof.report.phrases import period
from siteproof.report.summary import (
    NONE,
    OK,
    REMARK,
    SLOW,
    Card,
    Cause,
    Summary,
    Year,
    contract_lines,
    explanations,
    fleet,
    next_steps,
    years,
)
from siteproof.trend import Alert
from siteproof.wording.trends import TOO_SHORT
from siteproof.wording.verdicts import awaited, numbers, published_only

T = TypeVar("T")
NO_ALERTS: Sequence[Alert] = ()
NO_CAUSES: tuple[Sequence[Cause], int] = ([], 0)
NO_YEARS: tuple[str, Sequence[Year]] = ("", [])
IGNORED = "decide_nothing"  # of siteproof.wording.verdicts.AWAITED
ONLY_PUBLISHED = "PUBLISHED"
UNDECIDED = "UNDECIDED"  # no criterion at all, or none that decides anything
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

    alerts = part(lambda found: found.open_changes, NO_ALERTS)
    shown, note = contract_lines.lines(material)
    only_published = published_only(judged)
    cells_of, cells = ("", []) if only_published else fleet.cells(material)
    found, more = NO_CAUSES if only_published else explanations.causes(material, alerts)
    period_of, drawn = part(lambda found: years.years(found, alerts), NO_YEARS)
    times = [s.header.time for s in judged.samples if s.header.mode != PUBLISHED]
    measured, counts = period(times) if times else NOT_MEASURED, _counts(material)
    if only_published:  # first that they are, and then what they show
        measured, counts = counts, measured
    return Summary(
        judged.chosen,
        measured,
        f"{len(material.measured)} of {len(material.fleet.nodes)} nodes",
        part(_compared, ""),
        mark(material),
        counts,
        list(_cards(material, alerts)),
        shown,
        note,
        found,
        more,
        next_steps.steps(material, alerts),
        cells,
        cells_of,
        [] if only_published else fleet.keys(material),
        period_of,
        drawn,
        list(dict.fromkeys(problems)),
        part(nodes.anchors, {}),
    )


def _cards(material: Material, alerts: Sequence[Alert]) -> Iterator[Card]:
    """The nodes; of published values alone, what they are; then changes and waivers."""
    if published_only(material.judged):
        yield from _published_cards(material)
    else:
        yield from (*fleet.cards(material), *_changes(material, alerts), _waivers(material))


def _published_cards(material: Material) -> Iterator[Card]:
    stated = material.judged.samples
    yield Card(len(stated), "published values and texts", NONE)
    yield Card(0, "nodes measured here", NONE, f"of {len(material.fleet.nodes)}")
    of_criteria = awaited(material.judged)
    yield Card(of_criteria["answered"], "criteria answered by them", NONE)
    waiting = sum(n for name, n in of_criteria.items() if name not in ("answered", IGNORED))
    yield Card(waiting, "criteria without an answer", NONE)


def _changes(material: Material, alerts: Sequence[Alert]) -> Iterator[Card]:
    """As the last line of `siteproof trend` counts them; none where they cannot be read."""
    try:
        seen = material.survey
    except (UserError, UserErrors):
        return  # the begin has the reason
    if not seen.long_enough and not alerts:
        yield Card(0, "series with a history", NONE, f"of {seen.series}: {TOO_SHORT}")
        return
    proven = sum(not alert.provisional for alert in alerts)
    note = f"and {len(alerts) - proven} provisional" if len(alerts) > proven else ""
    label = "change for the worse, open" if proven == 1 else "changes for the worse, open"
    yield Card(proven, label, SLOW if proven else OK, note)


def _waivers(material: Material) -> Card:
    """The waivers that hold, when the first of them ends, and how many have ended."""
    today, known = material.now.date(), material.site.waivers.values()
    holding = [waiver for waiver in known if waiver.holds(today)]
    notes = [f"the first ends {min(w.expires for w in holding)}"] if holding else []
    notes += [f"{len(known) - len(holding)} expired"] if len(known) > len(holding) else []
    label = "waiver" if len(holding) == 1 else "waivers"
    look = REMARK if holding else OK
    return Card(len(holding), label, look, ", ".join(notes), section=waivers.NAME)


def _compared(material: Material) -> str:
    since = material.once(changes.last_time)
    return since.words if since else ""


def _counts(material: Material) -> str:
    counts = numbers(material.judged.verdicts)
    by = "by published values: " if published_only(material.judged) else ""
    return f"{by}{counts} of {len(material.judged.verdicts)}" if counts else ""


def mark(material: Material) -> str:
    """The most severe verdict on any criterion that decides something, if anything was measured."""
    if published_only(material.judged):
        return ONLY_PUBLISHED
    return str(material.judged.most_severe or UNDECIDED)
