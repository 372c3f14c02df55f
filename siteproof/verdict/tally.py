"""A criterion in numbers that add up: its units by standing, and its worst value against the limit.

All values of a tally are in one unit, that of the bound: of a share of a fact (`80 % of peak`) the
fact's, where all nodes have the same, otherwise the share's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from siteproof import units
from siteproof.answers import expected
from siteproof.answers.attempts import MIDDLES
from siteproof.answers.criterion import CriterionVerdict, Limits, NodeVerdict, within
from siteproof.record.finding import Verdict
from siteproof.sites import Criterion, Hardware, Site
from siteproof.units import Limit, round_to

SIGMA = 1.349  # quartile distances of a normal distribution are so many standard deviations
DEFAULT_DIGITS = 4  # significant digits of values whose noise is not known
MIN_DIGITS, MAX_DIGITS = 3, 6
MAX_PLACES = 15  # after the point, however close a value and its limit are
WHOLE = 10**6  # below it whole numbers are printed whole


class Standing(StrEnum):
    """What became of a unit that owes a value."""

    PASSED = "passed"
    BELOW_BASELINE = "below baseline"
    FAILED = "failed"
    NO_VALUE = "without a value"

    @property
    def key(self) -> str:
        """Its key in JSON and CSV."""
        return self.name.lower()


STANDINGS = {
    Verdict.PASS: Standing.PASSED,
    Verdict.REGRESSED: Standing.BELOW_BASELINE,
    Verdict.FAIL: Standing.FAILED,
}


@dataclass(frozen=True)
class Tally:
    """One criterion. result: its verdict. unit: of all values here; `text` for a text.

    facts: the hardware, where the bound is a share of a fact that is the same on all nodes.
    shared: whether values are shares, as that fact differs between nodes.
    """

    site: Site
    result: CriterionVerdict
    unit: str
    facts: Hardware | None = None
    shared: bool = False

    @staticmethod
    def of(site: Site, result: CriterionVerdict) -> Tally:
        """The tally of a criterion of a site."""
        criterion = result.criterion
        if criterion.bound is None:
            return Tally(site, result, site.catalogue[criterion.metric].unit)
        if not criterion.bound.fact:
            return Tally(site, result, criterion.bound.quantity.unit)
        kinds = {id(facts): facts for facts in expected.nodes(site, criterion).values()}
        scales = {criterion.bound.scale(facts): facts for facts in kinds.values()}
        if len(scales) == 1:
            (((_, unit), facts),) = scales.items()
            return Tally(site, result, unit, facts)
        return Tally(site, result, criterion.bound.quantity.unit, shared=True)

    @property
    def criterion(self) -> Criterion:
        """The criterion that it counts."""
        return self.result.criterion

    @cached_property
    def standings(self) -> dict[Standing, list[NodeVerdict]]:
        """The units that owe a value by their standing, each from the worst on; waived ones, too.

        What decides nothing (`report_only`) expects nothing. Of a median or mean it is that one
        value, if some node is left that decides.
        """
        found: dict[Standing, list[NodeVerdict]] = {standing: [] for standing in Standing}
        nodes = self.result.nodes
        if self.criterion.report_only:
            return found
        if self.criterion.scope in MIDDLES and not all(n.waived for n in nodes):
            nodes = [n for n in nodes if not n.waived]
        for node in nodes:
            found[STANDINGS.get(node.unwaived or node.verdict, Standing.NO_VALUE)].append(node)
        return found

    @cached_property
    def expected(self) -> int:
        """How many units owe a value."""
        return sum(map(len, self.standings.values()))

    @cached_property
    def reported(self) -> int:
        """How many units have a value that decides nothing."""
        return self.result.units if self.criterion.report_only else 0

    def value(self, node: NodeVerdict) -> Fraction | None:
        """The value of a unit, exactly; None without a number."""
        if node.value is None or node.sample is None or self.unit == "text":
            return None
        if not self.shared:
            return units.convert(node.value, node.sample.unit, self.unit)
        assert self.criterion.bound is not None
        name = node.sample.node if self.criterion.scope in MIDDLES else node.node
        size, unit = self.criterion.bound.scale(expected.hardware(self.site, name))
        return units.convert(node.value, node.sample.unit, unit) / size

    @cached_property
    def worst(self) -> NodeVerdict | None:
        """The measured unit with the least margin that no waiver excuses."""
        if not self.shared:
            return self.result.worst
        measured = [n for n in self.result.nodes if n.value is not None and not n.waived]
        sign = -1 if self.criterion.kind == "at_most" else 1
        return min(measured, key=lambda n: sign * (self.value(n) or 0), default=None)

    @cached_property
    def worst_value(self) -> Fraction | None:
        """The value of the worst unit."""
        return None if self.worst is None else self.value(self.worst)

    @cached_property
    def bound(self) -> Fraction | None:
        """The bound as the contract has it; None for a text, and where nothing is required."""
        if self.criterion.bound is None:
            return None
        if self.shared:
            return self.criterion.exact_bound
        return Fraction(self.criterion.bound_value(self.facts).value)

    @cached_property
    def limits(self) -> Limits:
        """The lowest and the highest value that pass, before any rounding; None: open."""
        if self.shared:
            return self.criterion.limits_as_written
        return self.criterion.limits(self.unit, self.facts)

    @property
    def limit(self) -> Limit | None:
        """The one limit of `at_least` or `at_most`."""
        low, high = self.limits
        return None if low and high else low or high

    @cached_property
    def margin(self) -> Fraction | None:
        """By which share of the limit the worst value is on its right side; negative: it fails."""
        limit, value = self.limit, self.worst_value
        if limit is None or value is None or not limit.value:
            return None
        gap = value - limit.value if self.criterion.kind == "at_least" else limit.value - value
        return gap / abs(limit.value)

    def passes(self, value: Fraction) -> bool:
        """Whether a value before any rounding is within the limits."""
        return within(value, self.limits)

    @cached_property
    def places(self) -> int:
        """Digits after the point that the noise of the values leaves; negative: before it.

        The last digit is the first one of the standard deviation over the units, as quartiles
        estimate it; between MIN_DIGITS and MAX_DIGITS are significant.
        """
        values = sorted(float(v) for n in self.result.nodes if (v := self.value(n)) is not None)
        if not values or all(v.is_integer() and abs(v) < WHOLE for v in values):
            return 0
        typical = abs(values[len(values) // 2]) or max(map(abs, values)) or 1.0
        size = math.floor(math.log10(typical))
        noise = (values[3 * len(values) // 4] - values[len(values) // 4]) / SIGMA
        if noise <= 0 or len(values) < 4:
            return DEFAULT_DIGITS - 1 - size
        places = -math.floor(math.log10(noise))
        return min(max(places, MIN_DIGITS - 1 - size), MAX_DIGITS - 1 - size)

    def shown(self, value: Fraction) -> str:
        """A value in the digits that its noise leaves, and in as many more as its side needs.

        At least MIN_DIGITS are significant, also far below the others; whole numbers stay whole.
        """
        places = self.places
        if value and (places > 0 or value.denominator > 1):
            places = max(places, MIN_DIGITS - 1 - math.floor(math.log10(abs(value))))
        while places < MAX_PLACES and self.passes(rounded(value, places)) != self.passes(value):
            places += 1
        return decimal(value, places)


def rounded(value: Fraction, places: int) -> Fraction:
    """The value with so many digits after the point; negative: before it."""
    return round_to(value, Fraction(10) ** -places)


def decimal(value: Fraction, places: int) -> str:
    """The same as text, without an exponent below 10**16."""
    if abs(value) >= 10**16:
        return f"{float(value):.6g}"
    places = max(places, 0)
    digits = int(rounded(value, places) * 10**places)
    return f"{Decimal(digits).scaleb(-places):f}"


def of_all(site: Site, results: Sequence[CriterionVerdict]) -> list[Tally]:
    """The tallies of a verdict, in its order."""
    return [Tally.of(site, result) for result in results]
