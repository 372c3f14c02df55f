"""The algebra of intervals, against sets of seconds."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from siteproof.availability.definitions import (
    complement,
    in_at_least,
    intersect,
    seconds,
    subtract,
    union,
)

LAST = 40
SPAN = st.tuples(st.integers(0, LAST), st.integers(0, LAST))  # also empty ones and backward ones
MANY = st.lists(SPAN, max_size=8)


def instants(spans):
    return {second for begin, end in spans for second in range(begin, end)}


def is_tidy(spans):
    ends = [at for span in spans for at in span]
    return ends == sorted(set(ends))


@given(MANY, MANY)
def test_a_union_has_the_seconds_of_both(one, other):
    found = union(one, other)
    assert instants(found) == instants(one) | instants(other)
    assert is_tidy(found)
    assert seconds(found) == len(instants(found))


@given(MANY, MANY)
def test_an_intersection_has_the_seconds_that_both_have(one, other):
    found = intersect(union(one), union(other))
    assert instants(found) == instants(one) & instants(other)
    assert is_tidy(found)


@given(MANY, MANY)
def test_what_is_subtracted_is_left_out(one, other):
    found = subtract(union(one), union(other))
    assert instants(found) == instants(one) - instants(other)
    assert is_tidy(found)


@given(MANY, SPAN)
def test_a_complement_has_all_other_seconds_of_the_period(spans, period):
    found = complement(union(spans), period)
    assert instants(found) == instants([period]) - instants(spans)
    assert is_tidy(found)


@given(st.lists(MANY, min_size=1, max_size=5), st.integers(1, 5))
def test_what_is_in_at_least_so_many_parts_is_in_no_fewer(parts, count):
    found = in_at_least([union(part) for part in parts], count)
    inside = Counter(second for part in parts for second in instants(part))
    assert instants(found) == {second for second, many in inside.items() if many >= count}
    assert is_tidy(found)


@given(MANY, MANY)
def test_order_and_repetition_change_nothing(one, other):
    assert union(one, other) == union(other, one, one)
    assert union(union(one)) == union(one)


def test_intervals_that_touch_become_one():
    assert union([(1, 2), (2, 3)]) == ((1, 3),)


def test_nothing_is_in_one_of_no_parts():
    assert in_at_least([], 1) == in_at_least([], 0) == ()
