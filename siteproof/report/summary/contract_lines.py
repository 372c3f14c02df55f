"""The criteria of the first screen: limit, worst value, margin, spread and counts of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from siteproof.record.severity import RANKS, Verdict
from siteproof.report import promised, summary
from siteproof.report.figure import small
from siteproof.report.figure.marks import Mark
from siteproof.report.material import Material
from siteproof.report.phrases import few
from siteproof.report.sections import to_rows
from siteproof.report.summary import Count, Line
from siteproof.units import count, with_unit
from siteproof.verdict.tally import Standing, Tally, of_all
from siteproof.wording import tallies
from siteproof.wording.verdicts import numbers

Lead = Callable[[str], str]
MAX_LINES = 24
LONGEST = 60  # characters of the nodes of a count; the chapter on the criteria has all of them
MAX_REASONS, MAX_SOURCES = 2, 2
LOOKS = {
    Standing.PASSED: summary.OK,
    Standing.BELOW: summary.SLOW,
    Standing.FAILED: summary.BAD,
    Standing.NO_VALUE: summary.NONE,
}


def lines(material: Material, lead: Lead = str) -> tuple[list[Line], str]:
    """The criteria, the most severe first, and how many are left out.

    lead: makes of a node what leads to its reasons.
    """
    site, verdicts = material.site, material.judged.verdicts
    ordered = sorted(of_all(site, verdicts), key=lambda t: (t.result.excused, _rank(t)))
    groups = tallies.alike(ordered)
    left = [tally.result for group in groups[MAX_LINES:] for tally in group]
    note = f"{count(len(left), 'criterion', 'criteria')} more: {numbers(left)}" if left else ""
    return [_line(material, group, lead) for group in groups[:MAX_LINES]], note


def _rank(tally: Tally) -> tuple[int, float]:
    """The most severe first, of these the one with the least margin."""
    return RANKS[tally.result.verdict], float(tally.margin if tally.margin is not None else 1e9)


def _line(material: Material, group: Sequence[Tally], lead: Lead) -> Line:
    tally, result = group[0], group[0].result
    sources = dict.fromkeys(one.criterion.source for one in group)
    verdict, source = str(result.verdict), few(list(sources), MAX_SOURCES, "; ")
    ids = [to_rows("criterion", one.result.id) for one in group]
    counts = list(_counts(tally))
    if len(group) > 1:
        why = few(tallies.lack(tally)[len(counts) :], MAX_REASONS, "; ")
        return Line(verdict, ids, counts=counts, why=why, source=source)
    number = tally.worst_value
    with_reason = number is None or result.verdict is not Verdict.PASS
    why = few(tallies.reasons(tally), MAX_REASONS, "; ") if with_reason else ""
    return Line(
        verdict,
        ids,
        tally.criterion.description,
        tallies.stated_limit(tally),
        tallies.passes_from(tally),
        "" if number is None else tallies.value(tally),
        lead(tally.worst.node) if tally.worst and len(result.nodes) > 1 else "",
        "" if tally.margin is None else tallies.margin(tally),
        tally.margin is not None and tally.margin < 0,
        _spread(material, tally),
        counts,
        why,
        source,
    )


def _counts(tally: Tally) -> Iterator[Count]:
    """The four counts; a set of nodes that is long is in the chapter only."""
    if tally.reported:
        yield Count(tally.reported, f"{tally.reported} reported", summary.NONE)
    for standing, found in tally.standings.items():
        if not found:
            continue
        text = tallies.standing_of(tally, standing)
        if len(text) > LONGEST and standing is not Standing.PASSED:
            text = f"{len(found)} {standing}"
        yield Count(len(found), text, LOOKS[standing])


def _spread(material: Material, tally: Tally) -> str:
    """The values of all units with a value, in the bound's unit; empty for a single one."""
    values: dict[str, list[float]] = {look: [] for look in LOOKS.values()}
    known = 0
    for standing, found in tally.standings.items():
        for unit in found:
            if (value := tally.value(unit)) is not None:
                values[LOOKS[standing]].append(float(value))
                known += 1
    if known < 2:
        return ""
    title = f"{tally.result.id}: {known} values in {tally.unit}"
    return small.spread(title, tally.unit, values, list(_marks(material, tally)))


def _marks(material: Material, tally: Tally) -> Iterator[Mark]:
    """The limits where a value passes, and the baselines of the same metric."""
    sides = ("from", "up to") if tally.limit is None else ("limit", "limit")
    for side, limit in zip(sides, tally.limits, strict=True):
        if limit is not None:
            text = f"{side} {with_unit(f'{float(limit.value):.6g}', tally.unit)}"
            yield Mark("bound", float(limit.value), text)
    if tally.shared or tally.unit == "text":
        return
    site, own = material.site, tally.criterion
    found = {
        mark
        for role in site.roles_of(own)
        for mark in promised.baselines(site, own.metric, role, tally.unit, own.links)
    }
    yield from sorted(found, key=lambda mark: (mark.value, mark.text))
