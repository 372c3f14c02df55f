"""Values of findings in the unit and digits of their criterion, as `verdict` prints them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import floor, isfinite, log10
from typing import TYPE_CHECKING

from siteproof import units
from siteproof.errors import UserError
from siteproof.record.finding import Finding, Kind
from siteproof.sites import Site
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.tally import DEFAULT_DIGITS, MAX_DIGITS, Tally, decimal, of_all
from siteproof.wording.amounts import number

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
