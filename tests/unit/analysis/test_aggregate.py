"""What a link carries while all of its pairs run: only that time counts, and all of it."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from siteproof.collect.derive.network import UNKNOWN, jain, together
from siteproof.errors import OutputError
from siteproof.parsers.iperf3 import Interval

G = 10**9


def run(begin, bits, seconds=1):
    """A run from a second on: the bits of each of its intervals."""
    return [
        Interval(Decimal(begin) + number * Decimal(seconds), Decimal(seconds), Decimal(each))
        for number, each in enumerate(bits)
    ]


def test_pairs_that_run_at_the_same_time_are_their_sum():
    found = together({f"c{n}>s": run(100, [3 * G] * 10) for n in range(30)})
    assert (found.aggregate, found.peak_second, found.fairness) == (90 * G, 90 * G, 1)
    assert found.seconds == 10 - 2 * UNKNOWN


def test_what_one_carries_before_the_other_comes_does_not_count():
    early, late = [9 * G] * 3 + [4 * G] * 7, [5 * G] * 7 + [9 * G] * 3
    found = together({"a>s": run(100, early), "b>s": run(103, late)})
    assert (found.aggregate, found.seconds) == (9 * G, 5)
    assert found.fairness == Fraction(81, 2 * 41)


def test_a_start_in_whole_seconds_is_up_to_one_second_early_and_its_ends_do_not_count():
    """b says 100 and began at 100.9: all of what is counted of either was moved while both ran."""
    found = together({"a>s": run(100, [1 * G, *[2 * G] * 8, 7 * G]), "b>s": run(100, [2 * G] * 10)})
    assert (found.aggregate, found.peak_second) == (4 * G, 4 * G)


def test_the_peak_is_the_best_second_of_the_sum_and_not_the_sum_of_the_best():
    one, other = [1, 1, 9, 1, 1, 1, 1, 1], [1, 1, 1, 1, 5, 1, 1, 1]
    found = together({"a>s": run(0, one), "b>s": run(0, other)})
    assert (found.peak_second, found.aggregate) == (10, 4)


def test_intervals_need_not_be_seconds():
    found = together({"a>s": run(0, [5] * 20, "0.5"), "b>s": run("0.25", [40] * 5, 2)})
    assert (found.aggregate, found.peak_second) == (30, 30)


def test_no_figure_where_they_did_not_run_together():
    for moved, why in (
        (
            {"a>s": run(0, [1] * 10), "b>s": run(6, [1] * 10)},
            "all 2 pairs ran together for 2.0 s of 10.0 s only; the last to begin was b>s",
        ),
        (
            {"a>s": run(0, [1] * 10), "b>s": run(60, [1] * 10)},
            "all 2 pairs ran together for 0.0 s of 10.0 s only; the last to begin was b>s",
        ),
        (
            {"a>s": run(0, [1] * 2)},
            "all 1 pairs ran together for 0.0 s of 2.0 s only; the last to begin was a>s",
        ),
        ({"a>s": run(0, [1] * 9), "b>s": []}, "b>s: no interval counts"),
        (
            {"a>s": [*run(0, [1] * 3), *run(9, [1] * 3)]},
            "a>s: its intervals do not follow each other",
        ),
        ({"a>s": run(9, [1] * 3) + run(0, [1] * 3)}, "a>s: its intervals do not follow each other"),
        ({"a>s": run(0, [1, 1], "1e9")}, "a>s: its intervals do not follow each other"),
        ({"a>s": run(0, [1] * 5, 0)}, "a>s: its intervals do not follow each other"),
        ({"a>s": run(0, [0] * 9)}, "nothing was moved while all pairs ran"),
    ):
        assert refusal(together, moved, error=OutputError) == why


def test_fairness_is_jains():
    """The examples of DEC-TR-301: of n that share, k that have all alike are k/n."""
    assert jain([Fraction(1)] * 7) == 1
    assert jain([Fraction(1), Fraction(0), Fraction(0), Fraction(0)]) == Fraction(1, 4)
    assert jain([Fraction(5)] * 20 + [Fraction(0)] * 80) == Fraction(1, 5)


@given(st.data())
def test_within_the_pairs_own_rates_whatever_their_starts(data):
    """The sum lies between that of all the lowest and of all the highest; all in exact numbers."""
    count = data.draw(st.integers(1, 6))
    moved = {}
    for pair in range(count):
        begin = 1000 + data.draw(st.integers(0, 3))
        moved[f"n{pair}>s"] = run(
            begin, data.draw(st.lists(st.integers(1, 10**12), min_size=12, max_size=20))
        )
    try:
        found = together(moved)
    except OutputError as error:
        assert "ran together" in str(error)
        return
    low, high = (
        sum(pick(row.bits for row in rows) for rows in moved.values()) for pick in (min, max)
    )
    assert low <= found.aggregate <= high
    assert low <= found.peak_second <= high
    assert Fraction(1, count) <= found.fairness <= 1
    assert (
        found.seconds
        == min(int(r[-1].start) + 1 for r in moved.values())
        - max(int(r[0].start) for r in moved.values())
        - 2
    )


def test_the_peak_is_no_less_than_the_mean_of_whole_seconds():
    found = together({"a>s": run(0, [3, 8, 2, 9, 4, 7, 1, 6])})
    assert found.peak_second == 9
    assert found.aggregate == Fraction(8 + 2 + 9 + 4 + 7 + 1, 6)
