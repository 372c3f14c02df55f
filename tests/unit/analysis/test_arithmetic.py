"""Values of two values: exact, and none where nothing can be compared."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from siteproof.analysis import arithmetic

RATES = st.fractions(min_value=0, max_value=10**15, max_denominator=1000)
POSITIVE = st.fractions(min_value=Fraction(1, 1000), max_value=10**15, max_denominator=1000)


@given(RATES, POSITIVE)
def test_a_share_of_the_whole_gives_the_value_back(value, whole):
    assert arithmetic.share(value, whole) * whole == value


@given(RATES, POSITIVE)
def test_a_change_is_the_share_without_the_whole(after, before):
    assert arithmetic.change(after, before) == arithmetic.share(after, before) - 1


def test_nothing_is_compared_with_zero():
    zero, one = Fraction(0), Fraction(1)
    assert arithmetic.share(one, zero) is arithmetic.change(one, zero) is None
    assert arithmetic.asymmetry(zero, zero) is None


@given(RATES, POSITIVE)
def test_asymmetry_does_not_depend_on_the_direction_and_is_at_most_one(one, other):
    found = arithmetic.asymmetry(one, other)
    assert found == arithmetic.asymmetry(other, one)
    assert 0 <= found <= 1


@given(POSITIVE, POSITIVE, RATES)
def test_a_buffer_that_holds_the_path_lacks_nothing(rate, time, buffer):
    lacks = arithmetic.shortage(rate, time, buffer)
    assert lacks >= 0
    assert (lacks == 0) is (buffer >= arithmetic.under_way(rate, time))


def test_ten_gigabits_over_fifty_milliseconds_need_62_5_megabytes():
    rate, time = Fraction(10 * 10**9), Fraction(50, 1000)
    assert arithmetic.under_way(rate, time) == 62_500_000
    assert arithmetic.shortage(rate, time, Fraction(32 * 2**20)) == 62_500_000 - 33_554_432
