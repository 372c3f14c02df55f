"""A tally in words: value, limit, margin and counts, the same in every command and page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from siteproof import nodesets
from siteproof.answers.attempts import MIDDLES
from siteproof.answers.criterion import CriterionVerdict, NodeVerdict
from siteproof.record.finding import RANKS, Finding, Kind, Verdict
from siteproof.record.pair_units import ends, grouped
from siteproof.sites import Criterion
from siteproof.sites.promise import SIGNS
from siteproof.units import count, with_unit
from siteproof.verdict.tally import MAX_PLACES, Standing, Tally, decimal
from siteproof.wording.findings import LIMIT_DIGITS, MANY_TIMES, sentence, times
from siteproof.wording.verdicts import why

NOTHING = "-"
MISSED = "the limit is missed"  # a reason only where other units have another one
MAX_REASONS = 5  # of a criterion, the most severe and frequent first
MAX_POINTS = 4  # of the system's one value that do not pass
MAX_PAIRS_TEXT = 160  # characters of a list of pairs; of the others the nodes are named
PROC = "proc"  # the program of values that the node's kernel counts: it is not printed


def value(tally: Tally) -> str:
    """The worst value in the bound's unit; `-` without a number."""
    number = tally.worst_value
    return NOTHING if number is None else with_unit(tally.shown(number), tally.unit)


def worst(tally: Tally) -> str:
    """`worst n002, at block 4096, by hpcc`: where that value is from; empty if it has one place."""
    if tally.worst is None or tally.worst.sample is None:
        return ""
    several = len(tally.result.nodes) > 1
    program = tally.worst.sample.conditions.get("program", PROC)
    by = "" if program == PROC or tally.criterion.programs else f"by {program}"
    at = f"at {tally.worst.point}" if tally.worst.point else ""
    return ", ".join(filter(None, (f"worst {tally.worst.node}" if several else "", at, by)))


def is_of_the_verdict(tally: Tally) -> bool:
    """Whether the worst value is of a unit for which the verdict is what it is."""
    worst, verdict = tally.worst, tally.result.verdict
    of_all = bool(tally.criterion.report_only) or tally.criterion.scope in MIDDLES
    return of_all or worst is None or verdict in (worst.verdict, Verdict.PASS)


def worst_of_others(tally: Tally) -> str:
    """`others 5617 MB/s, 56.2 times, worst node007`: a value for which the verdict is not so."""
    shown = margin(tally)
    apart = "" if shown == NOTHING else shown
    return ", ".join(filter(None, (f"others {value(tally)}", apart, worst(tally))))


def members(tally: Tally) -> list[str]:
    """`jetstream-iu 500 VMs`, `jetstream-tacc INCOMPLETE, not measured`: each member's answer."""
    return [
        f"{one.node} {_answer(tally, one)}"
        for unit in tally.result.nodes
        for one in (unit.members if tally.criterion.over else ())
        if one.value is not None or not tally.result.excused
    ]


def _answer(tally: Tally, unit: NodeVerdict) -> str:
    number = tally.value(unit)
    if number is not None:
        return with_unit(tally.shown(number), tally.unit)
    return ", ".join(filter(None, (str(unit.verdict), sentence(*_causes(unit)))))


def limit(tally: Tally) -> str:
    """The bound, and from or up to which value before rounding it passes: `>= 65 (from 64.5)`."""
    text, passes = stated_limit(tally), passes_from(tally)
    return f"{text} ({passes})" if passes else text


def stated_limit(tally: Tally) -> str:
    """The bound alone: `>= 65 GB/s`."""
    criterion = tally.criterion
    if criterion.report_only:
        return "reported only"
    sign = SIGNS[criterion.kind]
    if tally.bound is None or criterion.bound is None:
        return f"{sign} {criterion.equals}"
    text = f"{sign} {with_unit(_limit_digits(tally, tally.bound), tally.unit)}"
    if tally.unit != criterion.bound.quantity.unit or tally.shared:
        text += f", {criterion.bound}"
    return text


def passes_from(tally: Tally) -> str:
    """`from 64.5`, `up to 5.5`: the limits before any rounding; empty where nothing is rounded."""
    if tally.criterion.step is None:
        return ""
    sides = zip((("from", "above"), ("up to", "below")), tally.limits, strict=True)
    return " ".join(
        f"{good if one.inclusive else other} {_limit_digits(tally, one.value)}"
        for (good, other), one in sides
        if one
    )


def _limit_digits(tally: Tally, number: Fraction) -> str:
    """A limit whole, where it is a short decimal; else in digits that keep the worst's side."""
    worst = tally.worst_value
    for places in range(MAX_PLACES + 1):
        text = decimal(number, places)
        near = Fraction(text)
        if near == number:
            return text
        kept = worst is None or (worst >= near) == (worst >= number)
        if kept and len(text.replace("-", "").replace(".", "").lstrip("0")) >= LIMIT_DIGITS:
            return text
    return text


def margin(tally: Tally) -> str:
    """By how much the worst value is on the right side of its limit: `+1.3 %`, `-10.4 %`.

    From ten times the limit on, how many times that it is: `56.2 times`.
    """
    share, limit = tally.margin, tally.limit
    if share is None:
        return NOTHING
    if abs(share) >= MANY_TIMES and limit and limit.value > 0:
        return times(float(1 + abs(share)))
    size = abs(100 * share)
    places = 0 if size >= 100 else 1
    while size and places < MAX_PLACES and size * 10**places < 1:
        places += 1
    return f"{'-' if share < 0 else '+'}{decimal(size, places)} %"


def counts(tally: Tally) -> list[str]:
    """`6 passed`, `2 failed n[002,007]`: each standing with its nodes; the sum is the expected."""
    if tally.criterion.report_only:
        return [f"{tally.reported} reported"] if tally.reported else []
    found = [standing_of(tally, standing) for standing, nodes in tally.standings.items() if nodes]
    if found:
        found[0] = kind_of_units(tally.criterion) + found[0]
    return found


def kind_of_units(criterion: Criterion) -> str:
    """`pairs: `, `links: `, `GPUs: `: what is counted; empty of nodes."""
    if criterion.links:
        return "links: " if criterion.subject == "system" else "pairs: "
    return "GPUs: " if criterion.scope == "every gpu" else ""


def standing_of(tally: Tally, standing: Standing) -> str:
    """`2 failed n[002,007]`: how many units have a standing, and which."""
    nodes = tally.standings[standing]
    text = f"{len(nodes)} {standing}"
    if standing is not Standing.PASSED and named_units(tally, nodes):
        text += f" {named_units(tally, nodes)}"
    if waived := [node for node in nodes if node.waived]:
        same = len(waived) == len(nodes)
        text += " (waived)" if same else f" ({len(waived)} waived: {named_units(tally, waived)})"
    return text


def named_units(tally: Tally, nodes: Sequence[NodeVerdict]) -> str:
    """The units as a set; of a criterion that has only one its points; empty of all pairs."""
    if tally.expected < 2 and tally.criterion.scope in (*MIDDLES, "system"):
        return _points(nodes[0])
    if tally.criterion.links and len(nodes) == tally.expected:
        return ""
    return units([node.node for node in nodes])


def _points(unit: NodeVerdict) -> str:
    """`(2 of 56 points: n2>n7, n3>n5)`: the points that do not pass, the worst first."""
    bad = [one for one in unit.points if one.verdict is not Verdict.PASS]
    if not bad:
        return ""
    shown = [unit.point_of(one) for one in bad[:MAX_POINTS]]
    shown += [f"{len(bad) - MAX_POINTS} more"] if len(bad) > MAX_POINTS else []
    of = f"{len(bad)} of " if len(unit.points) > len(bad) else ""
    return f"({of}{count(len(unit.points), 'point')}: {', '.join(shown)})"


def units(names: Iterable[str]) -> str:
    """Nodes as a set, folded; pairs as sets of senders and receivers, `n1>n[2-4]`.

    Where those are many, the first of them, and the nodes of the others.
    """
    names = list(names)
    alone = [name for name in names if len(ends(name)) < 2]
    shown: list[str] = []
    rest: list[str] = []
    for text, pairs in _pair_sets([name for name in names if len(ends(name)) > 1]):
        room = MAX_PAIRS_TEXT - sum(map(len, shown))
        if rest or len(text) > room:
            rest += pairs
        else:
            shown.append(text)
    if alone:
        shown.append(str(nodesets.of(alone)))
    if rest:
        of = nodesets.of(node for name in rest for node in ends(name))
        shown.append(f"{count(len(rest), 'pair')} of {of}")
    return ", ".join(shown)


def _pair_sets(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Pairs in sets: those of one sender, and of senders with the same receivers; and the pairs."""
    parts = [(ends(name)[0], *name.partition(" over ")[::2]) for name in names]
    of_sender = grouped(((node, link), pair.partition(">")[2]) for node, pair, link in parts)
    alike = grouped(
        ((tuple(sorted(receivers)), link), sender)
        for (sender, link), receivers in of_sender.items()
    )
    return [
        (
            f"{nodesets.of(senders)}>{nodesets.of(receivers)}" + (f" over {link}" if link else ""),
            [f"{a}>{b}" for a in senders for b in receivers],
        )
        for (receivers, link), senders in alike.items()
    ]


def reasons(tally: Tally) -> list[str]:
    """Why units did not pass: each reason with its nodes, the most severe and frequent first."""
    result = tally.result
    bad = [n for n in result.nodes if n.verdict is not Verdict.PASS]
    if result.excused or result.verdict not in {n.verdict for n in bad}:
        return list(filter(None, [why(result)]))
    groups = sorted(_by_reason(bad).items(), key=lambda one: (RANKS[one[0][0]], -len(one[1])))
    if len(groups) == 1:
        return [text for (_, text), _ in groups if text]
    found = [
        f"{named_units(tally, nodes)}: {text or MISSED}"
        for (_, text), nodes in groups[:MAX_REASONS]
    ]
    if rest := [node for _, nodes in groups[MAX_REASONS:] for node in nodes]:
        found.append(f"{named_units(tally, rest)}: other reasons")
    return found


def _by_reason(bad: Iterable[NodeVerdict]) -> dict[tuple[Verdict, str], list[NodeVerdict]]:
    """The units by verdict and reason; those of findings that differ in numbers are together."""
    alike = grouped(((one.verdict, tuple(f.alike for f in _causes(one))), one) for one in bad)
    groups: dict[tuple[Verdict, str], list[NodeVerdict]] = {}
    for nodes in alike.values():
        same = zip(*map(_causes, nodes), strict=True)
        text = "; ".join(dict.fromkeys(sentence(*found) for found in same))
        groups.setdefault((nodes[0].verdict, text), []).extend(nodes)
    return groups


def _causes(node: NodeVerdict) -> list[Finding]:
    """Its findings without the bound that it misses, which the limit shows."""
    return [found for found in node.findings if found.kind is not Kind.MISSES_BOUND]


def without_names(result: CriterionVerdict) -> CriterionVerdict:
    """The same without its metric's name in the findings, for a row of several criteria."""

    def nameless(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(
            replace(one, criterion="", metric="the metric" if one.metric else "")
            for one in findings
        )

    nodes = [replace(node, findings=nameless(node.findings)) for node in result.nodes]
    return replace(result, findings=nameless(result.findings), nodes=nodes)


def alike(tallies: Sequence[Tally]) -> list[list[Tally]]:
    """The tallies by themselves; those without any value that lack it for one reason together."""

    def key(tally: Tally) -> tuple[str, ...]:
        if tally.worst is None and not (tally.reported or tally.standings[Standing.PASSED]):
            return (tally.result.verdict, *lack(tally))
        return (tally.result.id,)

    return list(grouped((key(tally), tally) for tally in tallies).values())


def lack(tally: Tally) -> list[str]:
    """Why a criterion has no value, and where; why it decides nothing is a matter of `why`."""
    if tally.criterion.report_only:
        return ["it decides nothing here"]
    plain = replace(tally, result=without_names(tally.result))
    return [*counts(plain), *reasons(plain)]
