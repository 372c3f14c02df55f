"""The begin of a report: the first screen, and what was judged, when and by whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from siteproof.errors import UserError, UserErrors
from siteproof.published import table_cells
from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.report import waivers
from siteproof.report.chapters import changes, criteria, nodes
from siteproof.report.material import Material
from siteproof.report.phrases import few, period, when
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
from siteproof.severity import Verdict
from siteproof.trend import Alert
from siteproof.units import count
from siteproof.wording.trends import TOO_SHORT
from siteproof.wording.verdicts import awaited, published_only

T = TypeVar("T")
NO_ALERTS: Sequence[Alert] = ()
NO_CAUSES: tuple[Sequence[Cause], int] = ([], 0)
NO_YEARS: tuple[str, Sequence[Year]] = ("", [])
IGNORED = "decide_nothing"  # of siteproof.wording.verdicts.AWAITED
ONLY_PUBLISHED = "PUBLISHED"
UNDECIDED = "UNDECIDED"  # no criterion at all, or none that decides anything
MEANING = {
    Verdict.FAIL: "It did not pass: a criterion is not met",
    Verdict.ERROR: "It did not pass: a measurement broke",
    Verdict.REGRESSED: "Every criterion is met, and a value is worse than its baseline",
    Verdict.INCOMPLETE: "Nothing failed, and something that a criterion requires is not measured",
    Verdict.PENDING: "Nothing failed, and something waits for a person or for a check",
    Verdict.SKIP: "Nothing failed, and something could not be measured here",
    Verdict.PASS: "It passed: every criterion that can be decided is met",
}
NOT_MEASURED = "nothing was measured here"
MAX_NAMES = 4


def build(material: Material) -> Summary:
    """The first screen; a part that a broken file hides is named in its place."""
    judged, problems = material.judged, list[str]()

    def part(make: Callable[[Material], T], otherwise: T) -> T:
        try:
            return make(material)
        except (UserError, UserErrors) as error:
            problems.append(str(error))
            return otherwise

    alerts = part(_alerts, NO_ALERTS)
    shown, note = contract_lines.lines(material)
    only_published = published_only(judged)
    cells_of, cells = ("", []) if only_published else fleet.cells(material)
    found, more = NO_CAUSES if only_published else explanations.causes(material, alerts)
    period_of, drawn = part(lambda found: years.years(found, alerts), NO_YEARS)
    own, counts = _own(material), _counts(material)
    measured = period([h.time for h in own]) if own else NOT_MEASURED
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


def _alerts(material: Material) -> Sequence[Alert]:
    """The changes for the worse that are open, the worst first."""
    return [alert for alert in material.survey.all if alert.open]


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


def _own(material: Material) -> list[Header]:
    """The jobs that are judged, without what others have published."""
    heads = {id(s.header): s.header for s in material.judged.samples}.values()
    return [h for h in heads if h.mode != PUBLISHED]


def _counts(material: Material) -> str:
    counts = criteria.counts(material)
    by = "by published values: " if published_only(material.judged) else ""
    return f"{by}{counts} of {len(material.judged.verdicts)}" if counts else ""


def mark(material: Material) -> str:
    """The most severe verdict on any criterion that decides something, if anything was measured."""
    if published_only(material.judged):
        return ONLY_PUBLISHED
    return str(material.judged.most_severe or UNDECIDED)


def headline(material: Material) -> str:
    """The result in a sentence, and how many nodes stay out."""
    text = _meaning(material)
    if published_only(material.judged):
        return f"{text}."
    return f"{text}. {_answer(nodes.short, material)}"


def _answer(brief: Callable[[Material], str], material: Material) -> str:
    """The answer; the error where a file that it needs is broken."""
    try:
        return brief(material)
    except (UserError, UserErrors) as error:
        return f"This cannot be answered: {error}"


def facts(material: Material) -> list[tuple[str, str]]:
    """What is judged, with which suite, and by whom; what is not on the first screen."""
    judged = material.judged
    modes = sorted({s.header.mode or "none" for s in judged.samples})
    own = _own(material)
    sessions = count(len({h.session for h in own}), "session")
    rows = [
        ("System", material.site.system.description),
        (
            "Judged",
            f"{judged.chosen} ({sessions}, {count(len(own), 'job')})" if own else judged.chosen,
        ),
        ("Mode", few(modes, MAX_NAMES) or "-"),
        ("Suite", few(_provenance(own, "suite"), MAX_NAMES)),
        ("Measured by", few(_provenance(own, "user"), MAX_NAMES)),
        ("Published", _stated([s for s in judged.samples if s.header.mode == PUBLISHED])),
        ("Accepted", _answer(_accepted, material)),
        ("Made", when(material.now)),
    ]
    return [(name, text) for name, text in rows if text]


def _provenance(heads: Sequence[Header], name: str) -> list[str]:
    return sorted({h.provenance[name] for h in heads if h.provenance.get(name)})


def _stated(found: Sequence[Sample]) -> str:
    """How many values others have published, of which days, and in which documents."""
    if not found:
        return ""
    order = sorted(found, key=lambda s: s.header.time)
    first, last = table_cells.when(order[0]), table_cells.when(order[-1])
    days = dict.fromkeys((first.partition("/")[0], last.rpartition("/")[2]))
    sources = {
        source.partition(", ")[0]
        for s in found
        for source in s.header.provenance.get("source", "").split("; ")
    } - {""}
    number = count(len(found), "value or text", "values and texts")
    by = few(sorted(sources), MAX_NAMES, "; ") or "no source given"
    return f"{number} of {' to '.join(days)}, by {by}"


def _accepted(material: Material) -> str:
    if not material.accepted:
        return "nothing yet"
    last = material.accepted[-1]
    return f"{last.name} on {when(last.when)}"


def _meaning(material: Material) -> str:
    verdict = mark(material)
    if verdict == ONLY_PUBLISHED:
        return "Nothing was measured here; these are values that others have published"
    if verdict != UNDECIDED:
        return MEANING[Verdict(verdict)]
    if material.judged.verdicts:
        return "Nothing is decided: no criterion could be"
    return "Nothing is decided: the site has no criteria"
