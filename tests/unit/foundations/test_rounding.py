"""rounding: by each rule, in exact arithmetic, also where binary floating point errs."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from siteproof import units
from siteproof.units import RULES, Limit, highest_passing, lowest_passing, round_to

STEPS = st.sampled_from(
    [
        Decimal(s)
        for s in (
            *("0.001", "0.01", "0.05", "0.1", "0.25", "0.3", "0.5", "1", "2", "3", "5", "7"),
            *("10", "1000"),
        )
    ]
) | st.fractions(min_value=Fraction(1, 1000), max_value=1000)
NUMBERS = st.decimals(min_value=-(10**6), max_value=10**6, places=4) | st.fractions(
    min_value=-(10**6), max_value=10**6, max_denominator=10**6
)
RULE = st.sampled_from(list(RULES))
PRINTED = st.builds(  # whatever a tool prints: up to 15 digits, of any size
    lambda digits, power: Decimal(digits).scaleb(power),
    st.integers(-(10**15) + 1, 10**15 - 1),
    st.integers(-60, 45),
)


def meets_lowest(value: Fraction, limit: Limit) -> bool:
    return value >= limit.value if limit.inclusive else value > limit.value


def meets_highest(value: Fraction, limit: Limit) -> bool:
    return value <= limit.value if limit.inclusive else value < limit.value


@given(value=NUMBERS, bound=NUMBERS, step=STEPS, rule=RULE)
def test_a_raw_value_reaches_the_limit_exactly_if_its_rounding_reaches_the_bound(
    value, bound, step, rule
):
    rounded = round_to(value, step, rule) >= Fraction(bound)
    assert rounded == meets_lowest(Fraction(value), lowest_passing(bound, step, rule))


@given(value=NUMBERS, bound=NUMBERS, step=STEPS, rule=RULE)
def test_a_raw_value_stays_below_the_limit_exactly_if_its_rounding_does(value, bound, step, rule):
    rounded = round_to(value, step, rule) <= Fraction(bound)
    assert rounded == meets_highest(Fraction(value), highest_passing(bound, step, rule))


@given(bound=NUMBERS, step=STEPS, nearness=st.integers(1, 10**15), rule=RULE)
def test_at_the_lowest_limit_itself_and_a_hair_beside_it(bound, step, nearness, rule):
    limit = lowest_passing(bound, step, rule)
    hair = Fraction(step) / (4 * nearness)
    assert (round_to(limit.value, step, rule) >= bound) == limit.inclusive
    assert round_to(limit.value + hair, step, rule) >= bound
    assert round_to(limit.value - hair, step, rule) < bound


@given(bound=NUMBERS, step=STEPS, nearness=st.integers(1, 10**15), rule=RULE)
def test_at_the_highest_limit_itself_and_a_hair_beside_it(bound, step, nearness, rule):
    limit = highest_passing(bound, step, rule)
    hair = Fraction(step) / (4 * nearness)
    assert (round_to(limit.value, step, rule) <= bound) == limit.inclusive
    assert round_to(limit.value - hair, step, rule) <= bound
    assert round_to(limit.value + hair, step, rule) > bound


@given(
    limit=st.builds(Limit, NUMBERS.map(Fraction) | PRINTED.map(Fraction), st.booleans()),
    hair=st.integers(-5, 5),
    digits=st.integers(14, 40),
    value=PRINTED,
)
def test_what_a_tool_prints_is_on_the_same_side_of_a_limit_and_of_its_float(
    limit, hair, digits, value
):
    # The limit is moved by less than a float can show, so that it lies beside printed decimals.
    size = Decimal(limit.value.numerator) / Decimal(limit.value.denominator)
    moved = limit.value + hair * Fraction(Decimal(1).scaleb(size.adjusted() - digits))
    limit = Limit(moved, limit.inclusive)
    for printed in (value, *printed_beside(moved)):
        exact = Fraction(printed)
        assert (float(printed) >= limit.as_float(lowest=True)) == meets_lowest(exact, limit)
        assert (float(printed) <= limit.as_float(lowest=False)) == meets_highest(exact, limit)


@given(
    digits=st.integers(-(10**15) + 1, 10**15 - 1),
    places=st.integers(0, 20),
    step_places=st.integers(0, 3),
    rule=RULE,
    factor=st.sampled_from([Fraction(1), Fraction(1000, 1024), Fraction(8), Fraction(1, 3)]),
)
def test_what_a_tool_prints_beside_a_limit_of_a_contract_is_judged_as_its_float(
    digits, places, step_places, rule, factor
):
    step, bound = Decimal(1).scaleb(-step_places), Decimal(digits).scaleb(-places)
    for find, lowest, meets in (
        (lowest_passing, True, meets_lowest),
        (highest_passing, False, meets_highest),
    ):
        limit = find(bound, step, rule)
        limit = Limit(limit.value * factor, limit.inclusive)  # in another unit
        threshold = limit.as_float(lowest=lowest)
        for printed in printed_beside(limit.value):
            passes = float(printed) >= threshold if lowest else float(printed) <= threshold
            assert passes == meets(Fraction(printed), limit)


def printed_beside(limit: Fraction) -> list[Decimal]:
    """The decimals of 15 digits next to a limit."""
    down, up = (Context(prec=15, rounding=how) for how in (ROUND_FLOOR, ROUND_CEILING))
    parts = Decimal(limit.numerator), Decimal(limit.denominator)
    below, above = down.divide(*parts), up.divide(*parts)
    if not limit:
        return [below, Decimal("1e-290"), Decimal("-1e-290")]
    return [down.next_minus(below), below, above, up.next_plus(above)]


def test_known_limits_beside_which_a_float_cannot_tell():
    limits = (
        *("0", "0.1", "-0.1", "1.00000000000000001", "0.99999999999999999"),
        *("-1.00000000000000001", "4.99999999999999999999", "1e-30", "-1e30"),
        *("123456789012345.0000001", "9007199254740993"),
    )
    for case in product(limits, (True, False)):
        found = Limit(Fraction(case[0]), inclusive=case[1])
        lowest, highest = found.as_float(lowest=True), found.as_float(lowest=False)
        for printed in printed_beside(found.value):
            exact = Fraction(printed)
            assert (float(printed) >= lowest) == meets_lowest(exact, found), case
            assert (float(printed) <= highest) == meets_highest(exact, found), case


@given(value=NUMBERS, step=STEPS, rule=RULE)
def test_a_rounded_value_is_a_multiple_less_than_a_step_away_and_stays_when_rounded_again(
    value, step, rule
):
    rounded = round_to(value, step, rule)
    assert (rounded / Fraction(step)).denominator == 1
    assert abs(rounded - Fraction(value)) < Fraction(step)
    assert round_to(rounded, step, rule) == rounded


@given(value=NUMBERS, step=STEPS, rule=RULE)
def test_rounding_is_the_same_on_both_sides_of_zero(value, step, rule):
    assert round_to(-value, step, rule) == -round_to(value, step, rule)


@given(count=st.integers(0, 10**6), step=STEPS)
def test_half_way_goes_away_from_zero(count, step):
    half = (count + Fraction(1, 2)) * Fraction(step)
    assert round_to(half, step) == (count + 1) * Fraction(step)
    assert round_to(-half, step) == -(count + 1) * Fraction(step)


@given(count=st.integers(-(10**6), 10**6), step=STEPS)
def test_half_way_goes_to_the_even_multiple_where_the_contract_says_so(count, step):
    half = (count + Fraction(1, 2)) * Fraction(step)
    even = count + count % 2
    assert round_to(half, step, "even") == even * Fraction(step)


@given(places=st.integers(0, 6), digits=st.integers(-(10**9), 10**9))
def test_ties_to_even_are_those_of_the_decimal_arithmetic_standard(places, digits):
    value, step = Decimal(digits).scaleb(-places - 1), Decimal(1).scaleb(-places)
    assert round_to(value, step, "even") == Fraction(value.quantize(step, ROUND_HALF_EVEN))


@given(low=NUMBERS, high=NUMBERS, step=STEPS, rule=RULE)
def test_rounding_keeps_the_order(low, high, step, rule):
    low, high = sorted([Fraction(low), Fraction(high)])
    assert round_to(low, step, rule) <= round_to(high, step, rule)


@given(bound=NUMBERS)
def test_without_a_step_the_bound_itself_is_the_limit(bound):
    assert lowest_passing(bound, None) == Limit(Fraction(bound), True)
    assert highest_passing(bound, None) == Limit(Fraction(bound), True)


def test_examples_that_bankers_or_binary_rounding_gets_wrong():
    for value, step, rounded in (
        ("64.5", "1", "65"),
        ("94.5", "1", "95"),
        ("0.95", "0.1", "1.0"),
        ("64.4999999", "1", "64"),
        ("65.5", "1", "66"),
        ("0.5", "1", "1"),
        ("-0.5", "1", "-1"),
        ("2.675", "0.01", "2.68"),
        ("77500", "1000", "78000"),
        ("77499.9", "1000", "77000"),
        ("0", "1", "0"),
        ("1.15", "0.1", "1.2"),
    ):
        assert round_to(Decimal(value), Decimal(step)) == Fraction(rounded), (value, step, rounded)


def test_examples_of_ties_to_even():
    for value, step, rounded in (
        ("64.5", "1", "64"),
        ("65.5", "1", "66"),
        ("-0.5", "1", "0"),
        ("-1.5", "1", "-2"),
        ("2.675", "0.01", "2.68"),
        ("2.665", "0.01", "2.66"),
        ("77500", "1000", "78000"),
        ("64.50000000001", "1", "65"),
        ("12.5", "5", "10"),  # ASTM E29: twice the value to the nearest 10 is 20, half of it 10
        ("7.5", "5", "10"),
    ):
        assert round_to(Decimal(value), Decimal(step), "even") == Fraction(rounded), value


def test_a_tie_to_even_passes_where_the_bound_is_the_even_one():
    for bound, find, limit, inclusive in (
        ("65", lowest_passing, "64.5", False),
        ("66", lowest_passing, "65.5", True),
        ("65", highest_passing, "65.5", False),
        ("66", highest_passing, "66.5", True),
        ("0", highest_passing, "0.5", True),
        ("-1", lowest_passing, "-1.5", False),
    ):
        assert find(Decimal(bound), 1, "even") == Limit(Fraction(limit), inclusive), bound


def test_the_limits_of_known_contracts():
    for bound, step, limit in (
        ("65", "1", "64.5"),
        ("80", "1", "79.5"),
        ("1.0", "0.1", "0.95"),
        ("200", "1", "199.5"),
        ("100", "1", "99.5"),
        ("95", "1", "94.5"),
        ("64.2", "1", "64.5"),
    ):
        found = lowest_passing(Decimal(bound), Decimal(step))
        assert found == Limit(Fraction(limit), True), (bound, step, limit)
        assert found.as_float(lowest=True) == float(limit), (bound, step, limit)


def test_four_fifths_of_a_peak_of_806_4_to_the_nearest_percent_begin_at_641_088():
    for measured, meets in (
        ("641.088", True),
        ("641.0879", False),
        ("641.09", True),
        ("641.08", False),
        ("645.12", True),
        ("697", True),
        ("640", False),
    ):
        share = Fraction(measured) / Fraction("806.4")
        percent = units.convert(share, "x", "%")
        assert (round_to(percent, 1) >= 80) == meets, (measured, meets)
        assert meets_lowest(percent, lowest_passing(80, 1)) == meets, (measured, meets)


def test_below_zero_the_limit_itself_rounds_away_and_fails():
    for bound, limit in (
        ("0", Limit(Fraction(-1, 2), False)),
        ("-1", Limit(Fraction(-3, 2), False)),
        ("0.4", Limit(Fraction(1, 2), True)),
        ("-0.4", Limit(Fraction(-1, 2), False)),
    ):
        assert lowest_passing(Decimal(bound), 1) == limit, (bound, limit)
        assert limit.as_float(lowest=True) == (
            float(limit.value) if limit.inclusive else math.nextafter(float(limit.value), math.inf)
        ), bound


def test_at_most_zero_allows_what_rounds_to_zero_and_no_more():
    limit = highest_passing(0, 1)
    assert limit == Limit(Fraction(1, 2), False)
    assert 0.49999 <= limit.as_float(lowest=False) < 0.5
