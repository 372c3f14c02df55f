"""rounding: ASTM E29 in exact arithmetic, also where binary floating point errs."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from siteproof import units
from siteproof.rounding import Limit, highest_passing, lowest_passing, round_to

STEPS = st.sampled_from(
    [
        Decimal(s)
        for s in (
            "0.001",
            "0.01",
            "0.05",
            "0.1",
            "0.25",
            "0.3",
            "0.5",
            "1",
            "2",
            "3",
            "5",
            "7",
            "10",
            "1000",
        )
    ]
) | st.fractions(min_value=Fraction(1, 1000), max_value=1000)
NUMBERS = st.decimals(min_value=-(10**6), max_value=10**6, places=4) | st.fractions(
    min_value=-(10**6), max_value=10**6, max_denominator=10**6
)
TWELVE_DIGITS = st.builds(
    lambda digits, power: Decimal(digits).scaleb(power),
    st.integers(-(10**12) + 1, 10**12 - 1),
    st.integers(-12, 6),
)


def meets_lowest(value: Fraction, limit: Limit) -> bool:
    return value >= limit.value if limit.inclusive else value > limit.value


def meets_highest(value: Fraction, limit: Limit) -> bool:
    return value <= limit.value if limit.inclusive else value < limit.value


@given(value=NUMBERS, bound=NUMBERS, step=STEPS)
def test_a_raw_value_reaches_the_limit_exactly_if_its_rounding_reaches_the_bound(
    value, bound, step
):
    rounded = round_to(value, step) >= Fraction(bound)
    assert rounded == meets_lowest(Fraction(value), lowest_passing(bound, step))


@given(value=NUMBERS, bound=NUMBERS, step=STEPS)
def test_a_raw_value_stays_below_the_limit_exactly_if_its_rounding_does(value, bound, step):
    rounded = round_to(value, step) <= Fraction(bound)
    assert rounded == meets_highest(Fraction(value), highest_passing(bound, step))


@given(bound=NUMBERS, step=STEPS, nearness=st.integers(1, 10**15))
def test_at_the_lowest_limit_itself_and_a_hair_beside_it(bound, step, nearness):
    limit = lowest_passing(bound, step)
    hair = Fraction(step) / (4 * nearness)
    assert (round_to(limit.value, step) >= bound) == limit.inclusive
    assert round_to(limit.value + hair, step) >= bound
    assert round_to(limit.value - hair, step) < bound


@given(bound=NUMBERS, step=STEPS, nearness=st.integers(1, 10**15))
def test_at_the_highest_limit_itself_and_a_hair_beside_it(bound, step, nearness):
    limit = highest_passing(bound, step)
    hair = Fraction(step) / (4 * nearness)
    assert (round_to(limit.value, step) <= bound) == limit.inclusive
    assert round_to(limit.value - hair, step) <= bound
    assert round_to(limit.value + hair, step) > bound


@given(value=TWELVE_DIGITS, bound=TWELVE_DIGITS, step=STEPS.filter(lambda s: type(s) is Decimal))
def test_a_comparison_of_floats_agrees_with_the_exact_one_up_to_twelve_digits(value, bound, step):
    low, high = lowest_passing(bound, step), highest_passing(bound, step)
    exact = Fraction(value)
    for limit in (low, high):  # which may have more digits than a float or a tool
        assume(exact == limit.value or abs(exact - limit.value) > abs(exact) / 10**12)
    assert (float(value) >= low.as_float(lowest=True)) == meets_lowest(exact, low)
    assert (float(value) <= high.as_float(lowest=False)) == meets_highest(exact, high)


@given(
    digits=st.integers(-(10**11), 10**11),
    places=st.integers(0, 6),
    step_places=st.integers(0, 3),
    beside=st.integers(-3, 3),
)
def test_floats_beside_a_limit_of_a_contract_are_judged_as_decimals_are(
    digits, places, step_places, beside
):
    step = Decimal(1).scaleb(-step_places)
    bound = Decimal(digits).scaleb(-places)
    for limit, lowest, meets in (
        (lowest_passing(bound, step), True, meets_lowest),
        (highest_passing(bound, step), False, meets_highest),
    ):
        assert limit.value.denominator <= 2 * 10**9
        near = Decimal(limit.value.numerator) / Decimal(limit.value.denominator)
        value = near + beside * Decimal(1).scaleb(max(near.adjusted(), -3) - 11)
        bound_as_float = limit.as_float(lowest=lowest)
        passes = float(value) >= bound_as_float if lowest else float(value) <= bound_as_float
        assert passes == meets(Fraction(value), limit)


@given(value=NUMBERS, step=STEPS)
def test_a_rounded_value_is_a_multiple_at_most_half_a_step_away_and_stays_when_rounded_again(
    value, step
):
    rounded = round_to(value, step)
    assert (rounded / Fraction(step)).denominator == 1
    assert abs(rounded - Fraction(value)) <= Fraction(step) / 2
    assert round_to(rounded, step) == rounded


@given(value=NUMBERS, step=STEPS)
def test_rounding_is_the_same_on_both_sides_of_zero(value, step):
    assert round_to(-value, step) == -round_to(value, step)


@given(count=st.integers(0, 10**6), step=STEPS)
def test_half_way_goes_away_from_zero(count, step):
    half = (count + Fraction(1, 2)) * Fraction(step)
    assert round_to(half, step) == (count + 1) * Fraction(step)
    assert round_to(-half, step) == -(count + 1) * Fraction(step)


@given(low=NUMBERS, high=NUMBERS, step=STEPS)
def test_rounding_keeps_the_order(low, high, step):
    low, high = sorted([Fraction(low), Fraction(high)])
    assert round_to(low, step) <= round_to(high, step)


@given(bound=NUMBERS)
def test_without_a_step_the_bound_itself_is_the_limit(bound):
    assert lowest_passing(bound, None) == Limit(Fraction(bound), True)
    assert highest_passing(bound, None) == Limit(Fraction(bound), True)


@pytest.mark.parametrize(
    ("value", "step", "rounded"),
    [
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
    ],
)
def test_examples_that_bankers_or_binary_rounding_gets_wrong(value, step, rounded):
    assert round_to(Decimal(value), Decimal(step)) == Fraction(rounded)


@pytest.mark.parametrize(
    ("bound", "step", "limit"),
    [
        ("65", "1", "64.5"),
        ("80", "1", "79.5"),
        ("1.0", "0.1", "0.95"),
        ("200", "1", "199.5"),
        ("100", "1", "99.5"),
        ("95", "1", "94.5"),
        ("64.2", "1", "64.5"),
    ],
)
def test_the_limits_of_known_contracts(bound, step, limit):
    found = lowest_passing(Decimal(bound), Decimal(step))
    assert found == Limit(Fraction(limit), True)
    assert found.as_float(lowest=True) == float(limit)


@pytest.mark.parametrize(
    ("measured", "meets"),
    [
        ("641.088", True),
        ("641.0879", False),
        ("641.09", True),
        ("641.08", False),
        ("645.12", True),
        ("697", True),
        ("640", False),
    ],
)
def test_four_fifths_of_a_peak_of_806_4_to_the_nearest_percent_begin_at_641_088(measured, meets):
    share = Fraction(measured) / Fraction("806.4")
    percent = units.convert(share, "x", "%")
    assert (round_to(percent, 1) >= 80) == meets
    assert meets_lowest(percent, lowest_passing(80, 1)) == meets


@pytest.mark.parametrize(
    ("bound", "limit"),
    [
        ("0", Limit(Fraction(-1, 2), False)),
        ("-1", Limit(Fraction(-3, 2), False)),
        ("0.4", Limit(Fraction(1, 2), True)),
        ("-0.4", Limit(Fraction(-1, 2), False)),
    ],
)
def test_below_zero_the_limit_itself_rounds_away_and_fails(bound, limit):
    assert lowest_passing(Decimal(bound), 1) == limit
    assert limit.as_float(lowest=True) == (
        float(limit.value) if limit.inclusive else math.nextafter(float(limit.value), math.inf)
    )


def test_at_most_zero_allows_what_rounds_to_zero_and_no_more():
    limit = highest_passing(0, 1)
    assert limit == Limit(Fraction(1, 2), False)
    assert 0.49999 <= limit.as_float(lowest=False) < 0.5
