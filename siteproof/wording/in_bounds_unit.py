"""Values of findings in the unit and digits of their criterion, as `verdict` prints them.

Nodes in the same state for the same reason: the most severe and largest group first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor, isfinite, log10
from typing import TYPE_CHECKING

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets, units
from siteproof.analysis.slow_nodes import State
from siteproof.errors import UserError
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.pair_units import is_gpu
from siteproof.sites import Site
from siteproof.units import count, with_unit
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.tally import DEFAULT_DIGITS, MAX_DIGITS, Tally, decimal, of_all
from siteproof.wording.findings import FORMS, Fields, about, full, fulls, number
from siteproof.wording.tallies import limit

if TYPE_CHECKING:
    from siteproof.trend.alerts import Alert

OF_A_CRITERION = (Kind.MISSES_BOUND, Kind.BELOW_BASELINE)


def unit_of(site: Site, series: str, unit: str, value: float) -> str:
    """The unit of the first bound of a series' metric; where none bounds it, one to read it in."""
    metric = series.partition(" ")[0]
    for criterion in site.criteria.values():
        bound = criterion.bound
        if criterion.metric == metric and bound and not bound.fact and unit in units.UNITS:
            own = bound.quantity.unit
            if units.kind(own) == units.kind(unit):
                return own
    return units.readable(value, unit)


def shown_in(site: Site, alert: Alert) -> tuple[str, float]:
    """The unit in which a change is shown, and how many of these its own unit is."""
    unit = unit_of(site, alert.metric, alert.unit, max(alert.before, alert.after, key=abs))
    return unit, float(units.convert(1, alert.unit, unit)) if unit != alert.unit else 1.0


def levels(site: Site, series: str, before: float, after: float, unit: str) -> tuple[str, str, str]:
    """Two values of a series with the same digits after the point, and their unit."""
    if not (isfinite(before) and isfinite(after)):
        return number(before), number(after), unit
    its_unit = unit_of(site, series, unit, max(before, after, key=abs))
    factor = units.convert(1, unit, its_unit) if its_unit != unit else Fraction(1)
    values = [Fraction(value) * factor for value in (before, after)]
    for digits in (DEFAULT_DIGITS, MAX_DIGITS):
        texts = [decimal(value, places_of(values, digits)) for value in values]
        if texts[0] != texts[1]:
            break
    return texts[0], texts[1], its_unit


def places_of(values: Iterable[Fraction], digits: int) -> int:
    """After the point, where the largest value has so many digits; whole numbers have none."""
    found = list(values)
    largest = max(map(abs, found))
    if not largest or all(value.denominator == 1 for value in found):
        return 0
    return max(0, digits - 1 - floor(log10(largest)))


class Shown:
    """The tallies of a judgement, by criterion and by metric."""

    def __init__(self, judged: Judgement) -> None:
        tallies = of_all(judged.site, judged.verdicts)
        self._of = {tally.result.id: tally for tally in tallies}
        bound = [t for t in tallies if t.criterion.bound is not None and not t.shared]
        self._by_metric = {tally.criterion.metric: tally for tally in reversed(bound)}

    def tally(self, why: Finding) -> Tally | None:
        """The tally of the criterion that a finding misses."""
        return self._of.get(why.criterion) if why.kind in OF_A_CRITERION else None

    def all(self, findings: Iterable[Finding]) -> list[Finding]:
        """Each finding with its value as it is printed; it has no longer the tool's digits."""
        return [self.one(why) for why in findings]

    def one(self, why: Finding) -> Finding:
        """The same of one finding."""
        if tally := self.tally(why):
            return self._judged(tally, why)
        if why.kind is Kind.SLOW and why.value:
            return self._compared(why)
        return why

    def value(self, metric: str, value: Fraction, unit: str) -> tuple[str, str]:
        """A value of a metric, in the unit of the first criterion that bounds it, and that unit."""
        tally = self._by_metric.get(metric.partition(" ")[0])
        if tally is not None:
            try:
                return tally.shown(units.convert(value, unit, tally.unit)), tally.unit
            except UserError:  # a unit that no criterion can have
                pass
        its_unit = units.readable(float(value), unit)
        return number(float(units.convert(value, unit, its_unit))), its_unit

    def _judged(self, tally: Tally, why: Finding) -> Finding:
        node = next((n for n in tally.result.nodes if n.node == why.subject), None)
        value = tally.value(node) if node else None
        if value is None:
            return why
        return replace(why, value=tally.shown(value), unit=tally.unit)

    def _compared(self, why: Finding) -> Finding:
        value, unit = self.value(why.metric, Fraction(why.value), why.unit)
        details = why.details
        if (median := why.get("median")) is not None:
            middle, _ = self.value(why.metric, Fraction(median), why.unit)
            details = tuple((k, middle if k == "median" else v) for k, v in details)
        return replace(why, value=value, unit=unit, details=details)


MAX_SET = 30  # characters of a node set in the first line of a record
DATED = ("lasting", "acknowledged")  # details that are phrases of their own
MAX_MESSAGE = 60  # characters of what a tool wrote; 'why' has all of it
STATES = tuple(map(str, State))
COLUMNS = (
    *("node", "state", "role", "criterion", "metric", "value", "unit", "limit"),
    *("below the others", "since", "runs", "change", "why"),
)


@dataclass(frozen=True)
class NodeGroup:
    """Nodes with the same worst reason.

    units: the nodes, or those of their GPUs that the worst reason is about. worst: it, of each
    node. others: the numbers of further reasons that nodes have. also: what else is untested.
    """

    state: str
    nodes: NodeSet
    worst: Sequence[Finding]
    others: Collection[int]
    also: Sequence[str] = ()
    units: NodeSet = field(default_factory=NodeSet)


def groups(nodes: Iterable[tuple[str, str, Sequence[Finding]]]) -> list[NodeGroup]:
    """Nodes, each with its state and findings, by state and worst reason.

    Of what is untested every reason counts, as each is something that is missing.
    """
    alike: dict[object, list[tuple[str, str, Sequence[Finding]]]] = {}
    for node, state, findings in nodes:
        counted = findings if state == State.UNTESTED else findings[:1]
        key = (state, tuple(undated(brief(why)).alike for why in counted))
        alike.setdefault(key, []).append((node, state, findings))
    found = [_group(same) for same in alike.values()]
    return sorted(found, key=lambda one: (STATES.index(one.state), -len(one.nodes), one.nodes[0]))


def _group(same: Sequence[tuple[str, str, Sequence[Finding]]]) -> NodeGroup:
    (_, state, first), *_ = same
    texts = fulls(map(undated, first))[1:] if state == State.UNTESTED else []
    others = set() if texts else {max(len(fulls(found)) - 1, 0) for _, _, found in same}
    return NodeGroup(
        state,
        nodesets.of(node for node, _, _ in same),
        [brief(why) for _, _, found in same for why in _worst(state, found)],
        others,
        list(dict.fromkeys(texts)),
        nodesets.of(_unit(node, state, found) for node, _, found in same),
    )


def _worst(state: str, findings: Sequence[Finding]) -> Sequence[Finding]:
    """The worst reason of a node; where it is untested, that of each of its GPUs."""
    if state != State.UNTESTED:
        return findings[:1]
    return [why for why in findings if about(why) == about(findings[0])]


def _unit(node: str, state: str, findings: Sequence[Finding]) -> str:
    """The node, or its GPU that the worst reason is about."""
    if state == State.UNTESTED:
        return node
    return findings[0].subject if findings and is_gpu(findings[0].subject) else node


def brief(why: Finding) -> Finding:
    """Without most of what a tool wrote: as much as stands before its first colon, or nothing."""
    if len(why.message) <= MAX_MESSAGE:
        return why
    head = why.message.partition(": ")[0]
    return replace(why, message=head if len(head) <= MAX_MESSAGE else "")


def head(group: NodeGroup, shown: Shown) -> list[str]:
    """State, nodes, and of a value the metric, the value, and the limit or what it lacks."""
    names = str(group.units) if _is_short(group) else count(len(group.nodes), "node")
    parts = [group.state, names]
    if not group.worst:
        return parts
    found = shown.all(group.worst)
    first, fields = found[0], Fields(found)
    value = with_unit(str(fields["value"]), first.unit)
    if tally := shown.tally(first):
        short = first.kind is Kind.BELOW_BASELINE
        least = f"baseline {first.bound}" if short else f"limit {limit(tally)}"
        parts += [about(first), value, least]
    elif first.kind is Kind.SLOW:
        side = "below" if first.get("better") == "higher" else "above"
        parts += [about(first), value, f"{fields['deficit']:share} {side} the others"]
    return parts


def _is_short(group: NodeGroup) -> bool:
    return len(str(group.units)) <= MAX_SET


def phrases(group: NodeGroup, shown: Shown) -> list[str]:
    """What is printed below: nodes and reason that are no head, since when, which change."""
    changes = dict.fromkeys(
        f"{why.alert} (acknowledged by {who})" if (who := why.get("acknowledged")) else why.alert
        for why in group.worst
    )
    ids, most = ", ".join(filter(None, changes)), max(group.others, default=0)
    up_to = "up to " if len(group.others) > 1 else ""
    found = [
        "" if _is_short(group) else str(group.units),
        *_rest(shown.all(group.worst)),
        *group.also,
        _dated(group),
        f"change {ids}" if ids else "",
        f"{up_to}{count(most, 'other reason')}" if most else "",
    ]
    return list(filter(None, found))


def _rest(found: Sequence[Finding]) -> list[str]:
    """What the head does not have of the worst reason: a sentence, a message, an event."""
    if not found:
        return []
    fields = Fields(found)
    if found[0].kind is Kind.SLOW:
        return ["seen once, run again to confirm"] if found[0].get("rule") == "once" else []
    if found[0].kind not in OF_A_CRITERION:
        return [full(*map(undated, found))]
    event = "all nodes lost {change:size} since {began:day}" if fields["event"] else ""
    return [str(fields["message"]), event.format_map(fields)]


def undated(why: Finding) -> Finding:
    """Without since when it holds, and who has acknowledged that: phrases of their own."""
    kept = ((name, value) for name, value in why.details if name not in DATED)
    return replace(why, details=tuple(kept))


def _dated(group: NodeGroup) -> str:
    """`since 2026-05-22, 182 runs`, of several nodes from the least to the largest.

    Empty if it is unknown on all of them.
    """
    dated = [
        replace(why, details=finding.details(lasting=why.get("lasting") or 1))
        for why in group.worst
        if why.since
    ]
    runs = [why.get("lasting") for why in dated if why.get("lasting") != 1]
    text = "since {since:since}, {lasting} runs" if runs else "since {since:since}"
    return text.format_map(Fields(dated)) if dated else ""


def cells(findings: Sequence[Finding], shown: Shown) -> tuple[str, ...]:
    """The cells of COLUMNS after role: the worst finding of a node, and all as sentences."""
    if not findings:
        return ("",) * (len(COLUMNS) - 3)
    raw = brief(findings[0])
    why, tally = shown.one(raw), shown.tally(raw)
    lack = FORMS["share"](raw.number("deficit")) if raw.get("deficit") is not None else ""
    return (
        *(why.criterion, why.metric or why.check, why.value, why.unit),
        limit(tally) if tally and why.kind is Kind.MISSES_BOUND else why.bound,
        *(lack, why.since[:10], str(raw.get("lasting") or ""), raw.alert),
        "; ".join(fulls(shown.all(findings))),
    )
