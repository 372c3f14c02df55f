"""A campaign in one paragraph of plain text, for mail and chat: verdict, nodes, changes, next step.

Each sentence has its room, so that the paragraph stays short for any fleet. Words are left out at
the end of a sentence, never a part of a node set, a number or a command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from siteproof.analysis.before_after import Effect
from siteproof.errors import harmless
from siteproof.record.finding import UNDECIDED as WITHOUT_ANSWER
from siteproof.record.finding import Kind
from siteproof.report.chapters import changes, nodes, untested
from siteproof.report.material import Material
from siteproof.report.sections import few, some_nodes
from siteproof.units import count
from siteproof.wording.findings import change, days, full, shorten
from siteproof.wording.in_bounds_unit import undated
from siteproof.wording.verdicts import (
    besides,
    heading,
    next_command,
    numbers,
    own_command,
    published_only,
)

ONLY_PUBLISHED = "PUBLISHED"
UNDECIDED = "UNDECIDED"  # no criterion at all, or none that decides anything
MAX_CHARACTERS = 700  # characters of the paragraph
HEADING, LAST, REASON, CHANGES, COMMAND = 80, 60, 100, 80, 110  # of its parts


def text(material: Material) -> str:
    """The paragraph, in one line."""
    return " ".join(map(harmless, filter(None, _sentences(material))))


def _sentences(material: Material) -> Iterator[str]:
    judged = material.judged
    yield f"{shorten(heading(judged), HEADING)}: {mark(material)}."
    counts = numbers(judged.verdicts) or "none"
    yield f"{count(len(judged.verdicts), 'criterion', 'criteria')}: {counts}{besides(judged)}."
    yield answers(material)
    command = next_command(judged)
    fits = command and len(command) <= COMMAND  # else the command that prints it
    yield f"Next: {command if fits else own_command(judged, 'verdict')}"


def answers(material: Material) -> str:
    """Its sentences after the verdict, which the page has, too; none where nothing was measured."""
    if published_only(material.judged):
        return ""
    own = [] if material.site.members else [_nodes_out(material), *_worse(material)]
    return " ".join([*own, *_not_tested(material)])


def mark(material: Material) -> str:
    """The most severe verdict on any criterion that decides something, if anything was measured."""
    if published_only(material.judged):
        return ONLY_PUBLISHED
    return str(material.judged.most_severe or UNDECIDED)


def _nodes_out(material: Material) -> str:
    """The nodes that stay out, and the first reason of the most severe of them."""
    groups, _ = material.once(nodes.in_rows)
    short = nodes.short(material).partition(".")[0]
    if not groups:
        return f"{shorten(short, REASON)}."
    worst, out = groups[0], [node for group in groups for node in group.nodes]
    reason = shorten(full(*map(undated, worst.worst)), REASON) if worst.worst else "no reason known"
    reason += f", since {worst.since}" if days(worst.worst) else ""
    by = {str(why.get("acknowledged")) for why in worst.worst if why.get("acknowledged")}
    reason += f", acknowledged by {', '.join(sorted(by))}" if by else ""
    who = "" if len(worst.nodes) == len(out) else f"{some_nodes(worst.nodes)} "
    return f"{short}, {some_nodes(out)}; {who}{worst.state}: {reason}."


def _worse(material: Material) -> Iterator[str]:
    """What became worse since the last time; nothing where there was none."""
    since = material.once(changes.last_time) if material.judged.samples else None
    if since is None:
        return
    rows = since.result.rows
    of_all = [row for row in rows if row.change.effect is Effect.WORSE]
    worse = [f"{row.name} {change(row.change.change)}" for row in of_all]
    worse += [f"{row.name} of {row.worst[0][0]}" for row in rows if row.worst and row not in of_all]
    last = shorten(since.words.partition(" (")[0].partition(", accepted")[0], LAST)
    others = (why for why in material.fleet.warnings if why.kind is Kind.OTHER_SETTING)
    apart = "; ".join(map(full, (*since.result.not_comparable, *others)))
    none = f"not known, {shorten(apart, CHANGES)}" if apart else "nothing"
    yield f"Worse since {last}: {_whole(worse, CHANGES) if worse else none}."


def _not_tested(material: Material) -> Iterator[str]:
    """The criteria that nothing decides, and the nodes that lack some value."""
    undecided = [
        r.id for r in material.judged.verdicts if r.verdict in WITHOUT_ANSWER and not r.excused
    ]
    if undecided:
        yield f"Not tested: {count(len(undecided), 'criterion', 'criteria')}."
    if lacking := untested.lacking(material):
        yield f"{untested.lack_some_value(lacking)}, {some_nodes(lacking)}."


def _whole(texts: Sequence[str], room: int) -> str:
    """The first of them that have room, and how many more there are."""
    ends = accumulate(len(text) + 2 for text in texts)
    shown = sum(end - 2 <= room for end in ends)
    return few(texts, shown) if shown else count(len(texts), "metric")
