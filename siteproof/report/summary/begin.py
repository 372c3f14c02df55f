"""The first screen of a report, put together."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from siteproof.errors import UserError, UserErrors
from siteproof.gate.decision import OK as FINE
from siteproof.gate.decision import STATES, Ruling
from siteproof.record.severity import Verdict
from siteproof.report import brief
from siteproof.report.chapters import changes, conditions, nodes
from siteproof.report.material import Material
from siteproof.report.sections import Link, period, some_nodes
from siteproof.report.sections import nodes as node_set
from siteproof.report.summary import BAD, NONE, OK, REMARK, SLOW, Count, Step, Summary, first_tables
from siteproof.trend import Survey
from siteproof.units import count
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
SIZES = (4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 100, 128, 160, 200)  # nodes of such a cell
LOOKS = {"FAILED": BAD, "UNTESTED": NONE}  # of the states that are not slow
ALWAYS = ("FAILED", "SLOW", "UNTESTED")  # have a card without any node, too


class Class(NamedTuple):
    """What a node counts as. always: its card is there without any node, too."""

    label: str
    look: str
    always: bool = False


BACK = Class("go back into service", OK, always=True)
REMARKED = Class("go back into service with a remark", REMARK)
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
        part(first_tables.tables, []),
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
        yield from _published_cards(material)
    else:
        yield from node_cards(material)
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
    idle = len(holding) - len(used)
    notes += [f"{idle} {'excuses' if idle == 1 else 'excuse'} nothing"] if idle else []
    notes += [f"{len(known) - len(holding)} expired"] if len(known) > len(holding) else []
    label = f"{'waiver' if len(used) == 1 else 'waivers'} in use"
    look, lead = REMARK if used else OK, Link([(label, f"section-{nodes.WAIVERS}")])
    return Count(len(used), lead, look, ", ".join(notes))


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
    rest, rulings = material.once(nodes.not_required), material.gate.rulings
    return {node: _class(rulings[node], rest) for node in material.fleet.nodes}


def _class(ruling: Ruling, rest: set[str]) -> Class:
    if not ruling.back:
        return OUT[ruling.state]
    if ruling.node in rest:
        return NOT_REQUIRED
    return BACK if ruling.state == FINE else REMARKED


def node_cards(material: Material) -> Iterator[Count]:
    """How many nodes stay out for what, and which; how many go back. Their sum is all nodes."""
    for one, names in _members(material).items():
        if names or one.always:
            which = "" if one is BACK else some_nodes(names, LONGEST)
            label = "goes back into service" if one is BACK and len(names) == 1 else one.label
            yield Count(len(names), label, one.look, which, of_nodes=True)


def _members(material: Material) -> dict[Class, list[str]]:
    found: dict[Class, list[str]] = {one: [] for one in CLASSES}
    for node, one in material.once(classes).items():
        found[one].append(node)
    return found


def _cells(material: Material) -> tuple[str, list[Count]]:
    """What a cell is, and a cell for each node; of many nodes, for each rack, switch or block."""
    found = material.once(classes)
    if len(found) <= MAX_CELLS:
        return "", [Count(0, _title(material, node), one.look) for node, one in found.items()]
    what, parts = _parts(material, list(found))
    return what, [_folded(material, name, members) for name, members in parts]


def _title(material: Material, node: str) -> Link:
    state = material.gate.rulings[node].state
    one = material.once(classes)[node]
    more = {
        REMARKED: ", goes back into service with a remark",
        NOT_REQUIRED: f", {NOT_REQUIRED.label}",
    }
    return nodes.to_reason(material, node, f"{node}: {state}{more.get(one, '')}")


def _parts(material: Material, names: Sequence[str]) -> tuple[str, list[tuple[str, list[str]]]]:
    """The groups of the site, if each node is in one; else blocks of nodes in their order."""
    groups, left = nodes.in_groups(material, names)
    if groups and not left and len(groups) <= MAX_CELLS:
        return "a group of the site, such as a rack", groups
    size = next((n for n in SIZES if len(names) <= n * MAX_FOLDED), -(-len(names) // MAX_FOLDED))
    blocks = [names[start : start + size] for start in range(0, len(names), size)]
    return count(size, "node"), [(node_set(block), list(block)) for block in blocks]


def _folded(material: Material, name: str, members: Sequence[str]) -> Count:
    """Some nodes as one cell of the most severe class among them."""
    found = material.once(classes)
    numbers = {one: sum(found[node] == one for node in members) for one in CLASSES}
    worst = next(one for one in CLASSES if numbers[one])
    counts = ", ".join(f"{number} {one.label}" for one, number in numbers.items() if number)
    node = next(node for node in members if found[node] == worst)
    return Count(numbers[worst], nodes.to_reason(material, node, f"{name}: {counts}"), worst.look)


# ---- the next commands, ready to copy


def _steps(material: Material) -> list[Step]:
    """What to call next; nothing that acts where a moment of the past is shown."""
    judged = material.judged
    found = list(_gate(material)) if not (judged.past or judged.late) else []
    if rerun(judged):
        found.append(Step(rerun(judged), "measures what failed or is missing"))
    found += _why(material)
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
    checks = sorted({check for node in out for check in _checks(material, node)})
    if checks:
        again = f"{gate} --retest --apply -- -n {shlex.quote('|'.join(checks))}"
        yield Step(again, f"after repair: tests {node_set(out)} again")


def _checks(material: Material, node: str) -> Iterable[str]:
    """The checks for which a node stays out."""
    found = material.gate.rulings[node].findings
    return {why.check or why.metric.partition(".")[0] for why in found} - {""}


def _why(material: Material) -> Iterator[Step]:
    """Ask about the first node that failed."""
    judged = material.judged
    bad = [n for n, one in material.once(classes).items() if one.look == BAD]
    if bad and not published_only(judged):
        yield Step(own_command(judged, "why", bad[0]), "all that is known of it")
