"""Plateau, fit and decline of a curve: edges first, then curves whose truth is known."""

import math
import random

import pytest

from siteproof.analysis import plateau
from siteproof.analysis.plateau import At, Beyond, Nowhere, Point, Unknown, Why, fit

GRID = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def curve(function, grid=GRID, repetitions=1, cv=0.0, seed=1):
    chance = random.Random(seed)
    return plateau.points(
        {x: [function(x) * chance.gauss(1, cv) for _ in range(repetitions)] for x in grid}
    )


def flat_from(k, rate=100.0):
    return lambda x: min(x, k) * rate


def test_a_value_that_is_no_finite_number_is_refused():
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError):
            Point(1, (1.0, bad))
    with pytest.raises(ValueError):
        Point(1, ())


def test_one_point_has_a_peak_and_no_plateau():
    found = plateau.find(curve(flat_from(8), [4]))
    assert found.peak.x == 4
    assert isinstance(found.plateau, Unknown)
    assert (found.fit, found.decline, found.noise, found.gain) == (None, Nowhere(), None, None)


def test_equal_values_are_flat_from_the_first_point():
    found = plateau.find(curve(lambda x: 7.0, repetitions=3))
    assert found.plateau == At(1)
    assert (found.peak.x, found.fit, found.decline) == (1, None, Nowhere())


def test_of_zeros_nothing_is_said():
    found = plateau.find(curve(lambda x: 0.0, repetitions=3))
    assert found.plateau == Unknown(Why.NOTHING_CARRIED)
    assert (found.fit, found.decline, found.noise) == (None, Nowhere(), None)


def test_a_zero_at_the_half_of_the_last_point_is_a_gain_without_end():
    found = plateau.find(plateau.points({1: [0.0], 2: [5.0]}))
    assert (found.gain, found.plateau) == (math.inf, Beyond(2))


def test_points_are_put_in_order_and_medians_take_what_repetitions_there_are():
    found = plateau.points({8: [3, 1, 2], 2: [5], 4: [4, 6]})
    assert [(p.x, p.median, p.low, p.high) for p in found] == [
        (2, 5, 5, 5),
        (4, 5, 4, 6),
        (8, 2, 1, 3),
    ]


def test_within_5_percent_is_inclusive():
    assert plateau.plateau(plateau.points({1: [94.99], 2: [95.0], 4: [100.0], 8: [99.0]})) == At(2)


def test_beyond_is_no_number_and_says_so():
    place = plateau.plateau(curve(flat_from(1000)))
    assert place == Beyond(256)
    assert str(place) == ">256"
    for use in (float, int):
        with pytest.raises(TypeError):
            use(place)
    with pytest.raises(TypeError):
        place < 300  # noqa: B015
    assert place != 256


def test_the_last_point_may_be_the_peak_of_a_plateau():
    assert plateau.plateau(plateau.points({8: [100], 16: [101], 32: [104]})) == At(8)


def test_the_last_doubling_decides():
    for half, place in ((95.3, At(83)), (95.2, Beyond(166))):
        assert plateau.plateau(plateau.points({1: [1], 83: [half], 166: [100]})) == place, half


def test_the_half_of_the_last_point_is_read_between_its_neighbours():
    rising = curve(lambda x: x**0.5, [1, 64, 96, 128, 166])
    assert plateau.last_gain(rising) == pytest.approx(2**0.5 - 1)


def test_points_within_a_doubling_do_not_tell_whether_a_rising_curve_goes_on():
    place = plateau.plateau(plateau.points({100: [1.0], 150: [1.4]}))
    assert place == Unknown(Why.NO_DOUBLING)


def test_a_zero_on_a_log_axis_is_no_doubling():
    assert plateau.last_gain(plateau.points({0: [1.0], 64: [2.0]})) is None


def test_one_repetition_tells_no_fall_from_noise_but_that_there_is_none():
    falling = plateau.points({1: [50], 2: [100], 4: [80], 8: [70]})
    assert isinstance(plateau.decline(falling), Unknown)
    level = plateau.points({1: [50], 2: [100], 4: [96], 8: [97]})
    assert plateau.decline(level) == Nowhere()


def test_a_fall_begins_where_no_later_median_is_back():
    def threefold(values):
        return plateau.points({x: [v - 0.5, v, v + 0.5] for x, v in values.items()})

    assert plateau.decline(threefold({1: 50, 2: 100, 4: 80, 8: 97, 16: 90, 32: 70})) == At(16)
    assert plateau.decline(threefold({1: 50, 2: 100, 4: 80, 8: 97})) == Nowhere()


def test_a_fall_within_the_noise_is_none():
    noisy = plateau.points({1: [90, 100, 110], 2: [80, 90, 100]})
    assert plateau.noise(noisy) == pytest.approx(0.106, abs=0.001)
    assert plateau.decline(noisy) == Nowhere()


def test_the_noise_comes_from_the_points_that_were_repeated():
    assert plateau.noise(plateau.points({1: [1.0], 2: [1.0, 3.0], 4: [5.0]})) == pytest.approx(
        math.sqrt(0.5)
    )
    assert plateau.noise(plateau.points({1: [1.0], 2: [2.0]})) is None


def test_the_fit_finds_a_join_between_two_points():
    assert fit(GRID, [min(x, 23) for x in GRID]) == pytest.approx(23)


def test_the_fit_is_silent_about_straight_lines_and_few_points():
    assert fit(GRID, [3 * x for x in GRID]) is None
    assert fit(GRID, [x**0.3 for x in GRID]) is None
    assert fit(GRID, [5.0] * len(GRID)) is None
    assert fit(GRID, [100 / x for x in GRID]) is None
    assert fit([1, 2, 4], [1, 2, 2]) is None


def test_the_fit_leaves_out_zeros():
    assert fit([0, *GRID], [0, *(min(x, 8) for x in GRID)]) == pytest.approx(8)


def test_the_fit_is_not_drawn_down_by_a_fall():
    found = plateau.find(
        curve(lambda x: min(x, 8) * (1 if x <= 64 else 0.3), repetitions=3, cv=0.01)
    )
    assert found.decline == At(128)
    assert found.fit == pytest.approx(8, rel=0.03)


def test_at_1_percent_of_noise_rule_and_fit_find_the_plateau():
    for k in (8, 32, 128):
        grid = [*GRID, 512]
        for seed in range(40):
            found = plateau.find(curve(flat_from(k), grid, 3, 0.01, seed))
            assert found.plateau == At(k), k
            assert min(grid, key=lambda x: abs(math.log2(x / found.fit))) == k, k


def test_a_curve_that_never_flattens_is_never_given_a_plateau():
    for rises in (lambda x: x, lambda x: x**0.5, lambda x: x / (1 + x / 256)):
        for seed in range(40):
            assert plateau.find(curve(rises, GRID, 3, 0.03, seed)).plateau == Beyond(256), rises


def test_a_curve_that_gains_3_percent_a_doubling_has_no_plateau():
    creeping = [lambda x, gain=gain: 100 * x ** math.log2(gain) for gain in (1.03, 1.04)]
    for rises in creeping:
        found = plateau.find(curve(rises))
        assert (found.plateau, found.fit) == (Beyond(256), None)
        noisy = [plateau.find(curve(rises, GRID, 3, 0.01, seed)).plateau for seed in range(40)]
        assert noisy.count(Beyond(256)) >= 35


def test_a_curve_that_is_level_or_becomes_so_slowly_keeps_its_plateau():
    assert plateau.plateau(curve(lambda x: 100 * x ** math.log2(1.005))) == At(1)
    assert plateau.plateau(curve(lambda x: x / (1 + x / 2))) == At(64)
    assert plateau.plateau(curve(lambda x: min(100 * x**0.03, 112))) == At(8)
    for seed in range(40):
        assert isinstance(plateau.plateau(curve(lambda x: 100, GRID, 3, 0.02, seed)), At), seed


def test_noise_above_what_decides_is_told():
    assert plateau.find(curve(flat_from(8), repetitions=3, cv=0.08)).doubtful
    assert not plateau.find(curve(flat_from(8), repetitions=3, cv=0.005)).doubtful
    assert not plateau.find(curve(flat_from(8))).doubtful
