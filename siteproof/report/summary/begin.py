"""The first screen of a report, put together.

Build a report: its first screen and every chapter in its order.

What the first screen answers: which nodes stay out, what is not met, worse, or not measured.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from math import ceil
from typing import NamedTuple, TypeVar

from siteproof.analysis.before_after import Effect
from siteproof.errors import UserError, UserErrors
from siteproof.gate.decision import OK as FINE
from siteproof.gate.decision import STATES
from siteproof.record.finding import NOT_KEPT, Verdict
from siteproof.record.pair_units import grouped
from siteproof.report import CHAPTERS, OF_MEMBERS, brief, value_tables
from siteproof.report.chapters import changes, conditions, criteria, nodes, untested
from siteproof.report.material import Material
from siteproof.report.sections import (
    NOTHING,
    Link,
    Report,
    Section,
    Table,
    counted,
    day,
    few,
    period,
    some_nodes,
    to_rows,
)
from siteproof.report.sections import nodes as node_set
from siteproof.report.summary import BAD, NONE, OK, REMARK, SLOW, Count, Step, Summary
from siteproof.trend import Alert, Survey
from siteproof.units import count
from siteproof.verdict.tally import of_all
from siteproof.wording import tallies
from siteproof.wording.findings import change, fulls
from siteproof.wording.trends import TOO_SHORT
from siteproof.wording.verdicts import (
    awaited,
    besides,
    next_command,
    numbers,
    own,
    own_command,
    published_only,
    rerun,
)

T = TypeVar("T")
IGNORED = "decide_nothing"  # of siteproof.wording.verdicts.AWAITED
NOT_MEASURED = "nothing was measured here"
LONGEST = 60  # characters of the nodes of a class
MAX_CELLS = 600  # nodes; of more, a cell is a group of them
MAX_FOLDED = 250  # cells of groups
LOOKS = {"FAILED": BAD, "UNTESTED": NONE}  # of the states that are not slow
ALWAYS = ("FAILED", "SLOW", "UNTESTED")  # have a card without any node, too


class Class(NamedTuple):
    """What a node counts as. always: its card is there without any node, too."""

    label: str
    look: str
    always: bool = False


BACK = Class("back into service", OK, always=True)
REMARKED = Class("back into service with a remark", REMARK)
NOT_REQUIRED = Class("nothing required", NONE)
OUT = {  # by the state for which they stay out, the most severe first
    state: Class(state.lower(), LOOKS.get(state, SLOW), state in ALWAYS)
    for state in STATES
    if state != FINE
}
CLASSES = (*OUT.values(), REMARKED, NOT_REQUIRED, BACK)  # the most severe first


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
    cells_of, cells = ("", []) if only_published else _cells(material)
    times = [sample.header.time for sample in material.own]
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
        part(tables, []),
        "" if whole else part(conditions.brief, ""),
        _steps(material),
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
        yield Count(len(material.judged.samples), "published values and texts", NONE)
        yield Count(0, "nodes measured here", NONE, f"of {len(material.fleet.nodes)}")
        of_criteria = awaited(material.judged)
        yield Count(of_criteria["answered"], "criteria answered by them", NONE)
        waiting = sum(n for name, n in of_criteria.items() if name not in ("answered", IGNORED))
        yield Count(waiting, "criteria without an answer", NONE)
    else:
        yield from node_cards(material)
        if seen:
            yield _changes(material, seen)
        yield _waivers(material)


def _changes(material: Material, seen: Survey) -> Count:
    """As the last line of `siteproof trend` counts them."""
    alerts = material.open_changes
    if not seen.long_enough and not alerts:
        return Count(0, "series with a history", NONE, f"of {seen.series}; {TOO_SHORT}")
    proven = sum(not alert.provisional for alert in alerts)
    note = f"and {len(alerts) - proven} provisional" if len(alerts) > proven else ""
    label = "change for the worse, open" if proven == 1 else "changes for the worse, open"
    return Count(proven, label, SLOW if proven else OK, note)


def _waivers(material: Material) -> Count:
    """The waivers that excuse something, when the first of them ends, and how many others are."""
    today, known = material.now.date(), material.site.waivers.values()
    holding = [waiver for waiver in known if waiver.holds(today)]
    used = [material.site.waivers[key] for key in nodes.used_waivers(material)]
    notes = [f"the first ends {min(w.expires for w in used)}"] if used else []
    idle, expired = len(holding) - len(used), len(known) - len(holding)
    notes += [counted((("without effect", idle), ("expired", expired)))]
    label = "waiver in use" if len(used) == 1 else "waivers in use"
    lead = Link([(label, f"section-{nodes.WAIVERS}")])
    return Count(len(used), lead, REMARK if used else OK, ", ".join(filter(None, notes)))


def _compared(material: Material) -> str:
    since = material.once(changes.last_time)
    return since.words if since else ""


def _counts(material: Material) -> str:
    counts = numbers(material.judged.verdicts)
    by = "by published values: " if published_only(material.judged) else ""
    of = f"{by}{counts} of {len(material.judged.verdicts)}" if counts else ""
    return f"{of}{besides(material.judged)}".removeprefix("; ")


# ---- every node in one class each: the classes with their nodes, and the grid of all nodes


def classes(material: Material) -> dict[str, Class]:
    """What each node of the inventory counts as; in the order of the inventory."""
    rest, found = material.once(nodes.not_required), {}
    for node in material.fleet.nodes:
        ruling = material.gate.rulings[node]
        if not ruling.back:
            found[node] = OUT[ruling.state]
        elif node in rest:
            found[node] = NOT_REQUIRED
        else:
            found[node] = BACK if ruling.state == FINE else REMARKED
    return found


def node_cards(material: Material) -> Iterator[Count]:
    """How many nodes stay out for what, and which; how many go back. Their sum is all nodes."""
    members = grouped((one, node) for node, one in material.once(classes).items())
    for one in CLASSES:
        names = members.get(one, [])
        if names or one.always:
            which = "" if one is BACK else some_nodes(names, LONGEST)
            yield Count(len(names), one.label, one.look, which, of_nodes=True)


def _cells(material: Material) -> tuple[str, list[Count]]:
    """What a cell is, and a cell for each node; of many nodes, for each rack, switch or block."""
    found, cells = material.once(classes), []
    if len(found) > MAX_CELLS:
        what, parts = _parts(material, list(found))
        return what, [_folded(material, name, members) for name, members in parts]
    for node, one in found.items():
        label = f", {one.label}" if one in (REMARKED, NOT_REQUIRED) else ""
        text = f"{node}: {material.gate.rulings[node].state}{label}"
        cells.append(Count(0, nodes.to_reason(material, node, text), one.look))
    return "", cells


def _parts(material: Material, names: Sequence[str]) -> tuple[str, list[tuple[str, list[str]]]]:
    """The groups of the site, if each node is in one; else blocks of nodes in their order."""
    groups, left = nodes.in_groups(material, names)
    if groups and not left and len(groups) <= MAX_CELLS:
        return "a group of the site, such as a rack", groups
    size = ceil(len(names) / MAX_FOLDED)
    blocks = [names[start : start + size] for start in range(0, len(names), size)]
    return count(size, "node"), [(node_set(block), list(block)) for block in blocks]


def _folded(material: Material, name: str, members: Sequence[str]) -> Count:
    """Some nodes as one cell of the most severe class among them."""
    found = material.once(classes)
    of_class = grouped((found[node], node) for node in members)
    shown = [one for one in CLASSES if one in of_class]
    worst = shown[0]
    counts = counted((one.label, len(of_class[one])) for one in shown)
    lead = nodes.to_reason(material, of_class[worst][0], f"{name}: {counts}")
    return Count(len(of_class[worst]), lead, worst.look)


# ---- the next commands, ready to copy


def _steps(material: Material) -> list[Step]:
    """What to call next; nothing that acts where a moment of the past is shown."""
    judged = material.judged
    found = list(_gate(material)) if not (judged.past or judged.late) else []
    if rerun(judged):
        found.append(Step(rerun(judged), "measures what failed or is missing"))
    bad = [n for n, one in material.once(classes).items() if one.look == BAD]
    if bad and not published_only(judged):
        found.append(Step(own_command(judged, "why", bad[0]), "all that is known of it"))
    proven = [alert for alert in material.open_changes if not alert.provisional]
    if proven and not judged.past:
        command = own(material.system, "trend", "ack", proven[0].id)
        found.append(Step(f'{command} --why "..."', "if the change is to stay"))
    if judged.most_severe is Verdict.PASS and judged.campaign:
        command = own(material.system, "accept", judged.campaign)
        found.append(Step(f'{command} --why "..."', "later ones are compared with it"))
    return found or [Step(next_command(judged), "")] * bool(next_command(judged))


def _gate(material: Material) -> Iterator[Step]:
    """Keep the bad nodes out, and test them again, where Slurm can do so."""
    out = material.gate.out
    partitions = material.site.system.partitions.values()
    if not (out and material.measured and any(p.scheduler == "slurm" for p in partitions)):
        return
    gate = own_command(material.judged, "gate")
    what = f"shows how {count(len(out), 'node')} would be kept out; with --apply it is done"
    yield Step(gate, what)
    reasons = [why for node in out for why in material.gate.rulings[node].findings]
    checks = {why.check or why.metric.partition(".")[0] for why in reasons} - {""}
    if checks:
        again = f"{gate} --retest --apply -- -n {shlex.quote('|'.join(sorted(checks)))}"
        yield Step(again, f"after repair: tests {node_set(out)} again")


LAST = ("nodes", "changes", "trend")  # made last, as they need the search for steps


def assemble(material: Material) -> Report:
    """The report on a system. Raises UserErrors where samples cannot be read at all."""
    material.begin()
    names = OF_MEMBERS if material.site.members else CHAPTERS
    ordered = sorted(names, key=lambda name: name in LAST)
    made = {name: _chapter(name, material) for name in ordered}
    sections = [section for name in names if (section := made[name])]
    return Report(material.system, build(material), sections, material.once(value_tables.attached))


def _chapter(name: str, material: Material) -> Section | None:
    """A chapter; the error where a file that it needs is broken, so that the others are made."""
    material.progress(f"chapter {name}")
    made = import_module(f"siteproof.report.chapters.{name}")
    try:
        return made.chapter(material)  # type: ignore[no-any-return]
    except (UserError, UserErrors) as error:
        return Section(name, name.capitalize(), f"This chapter could not be made: {error}")


MAX_ROWS = 8  # of a table; the chapters have the rest
MAX_CHANGES, MAX_REASONS = 2, 1
OUT_COLUMNS = ("nodes", "state", "why", "since", "change")
NOT_MET = ("not met", "verdict", "why", "worst value", "limit", "margin")  # recompute.py compares
WORSE = ("worse", "where", "change", "since", "details", "id")
MISSING = ("not measured", "which")
HISTORY = ("Over the whole history", "section-history")  # the part of the page


def tables(material: Material) -> list[Table]:
    """A table for each question that has an answer; none where nothing was measured here."""
    if published_only(material.judged):
        return []
    found = (_out(material), not_met(material), _worse(material), _missing(material))
    return [table for table in found if table.rows]


def _out(material: Material) -> Table:
    """The nodes that stay out, those with alike reasons together, why, and since when."""
    groups, _ = material.once(nodes.in_rows)
    rows = [
        (
            nodes.to_reason(material, group.nodes[0], str(group)),
            group.state,
            few(group.reasons, MAX_REASONS, "; ") or "no reason known",
            group.since,
            to_rows("change", *group.changes),
        )
        for group in groups
    ]
    out = sum(len(group.nodes) for group in groups)
    title = f"Nodes that stay out ({out} of {len(material.gate.rulings)})"
    return Table(OUT_COLUMNS, rows, title=title, most=MAX_ROWS)


def not_met(material: Material) -> Table:
    """The criteria that failed, with value and limit."""
    found = criteria.by_severity(material.judged.verdicts)
    rows = [
        (
            to_rows("criterion", tally.result.id),
            str(tally.result.verdict),
            few(tallies.reasons(tally), MAX_REASONS, "; ") or NOTHING,
            ", ".join(filter(None, (tallies.value(tally), tallies.worst(tally)))),
            tallies.limit(tally),
            tallies.margin(tally),
        )
        for tally in of_all(material.site, found)
        if tally.result.verdict in NOT_KEPT
    ]
    return Table(NOT_MET, rows, title="Criteria that are not met", most=MAX_ROWS)


def _worse(material: Material) -> Table:
    """What fell since the last time, each metric of a unit once; then how much fell before.

    Where there is no last time, what fell in the whole history and is still open.
    """
    since = material.once(changes.last_time) if material.judged.samples else None
    if since is None:
        rows = list(map(_open, material.open_changes))
        return Table(WORSE, rows, title="Worse over all runs", most=MAX_ROWS)
    newer = [one for one in material.open_changes if one.begin.time > since.until]
    rows = list(_compared_nodes(material, since, newer))
    shown = {str(row[-1]) for row in rows}
    rows += [_open(one) for one in newer if one.id not in shown]
    rows += _older([one for one in material.open_changes if one.begin.time <= since.until])
    return Table(WORSE, rows, title=f"Worse since {since.words}", most=MAX_ROWS)


def _older(alerts: Sequence[Alert]) -> Iterator[tuple[str, ...]]:
    """How many changes are older than what is compared with, and which."""
    if alerts:
        named = [f"{one.series_name} of {changes.where(one)}" for one in alerts]
        what = f"{count(len(alerts), 'change')} before that, not acknowledged"
        yield what, few(named, MAX_CHANGES, "; "), "", "", "", Link([HISTORY])


def _compared_nodes(
    material: Material, since: changes.Since, alerts: Sequence[Alert]
) -> Iterator[tuple[str, ...]]:
    """Rows of the comparison, each with day, cause and id of its change in the history, if known.

    Nodes that a change of the history names have its row, and none here.
    """
    for row in since.result.rows:
        of_row = [one for one in alerts if (one.series_name, one.role) == (row.name, row.role)]
        if row.change.effect is Effect.WORSE:
            levels = " -> ".join(changes.levels_of(material.site, row))
            known = (_open(one)[3:] for one in of_row if one.of_fleet)
            begin, causes, name = next(known, ("", "", ""))
            details = "; ".join(filter(None, (levels, causes)))
            yield (row.name, row.role, change(row.change.change), begin, details, name)
        elif names := changes.worst(row, {node for one in of_row for node in one.nodes}):
            yield (row.name, names, "", "", "", "")


def _open(alert: Alert) -> tuple[str, ...]:
    since = f"{day(alert.begin.time)}{', provisional' if alert.provisional else ''}"
    since += f", meets its bound on {alert.meets}" if alert.meets else ""
    by = f"{change(alert.relative)}{' drift' if alert.kind == 'drift' else ''}"
    what = few(fulls(alert.changed), MAX_CHANGES, "; ")
    return alert.series_name, changes.where(alert), by, since, what, to_rows("change", alert.id)


def _missing(material: Material) -> Table:
    """What was not measured, and which."""
    rows = [(what, few(names, untested.MAX_NAMES)) for what, names in untested.missing(material)]
    return Table(MISSING, rows, title="Not measured")
