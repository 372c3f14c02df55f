"""The digits of a criterion's values: as many as their noise leaves."""

from fractions import Fraction

import fleets

from siteproof.verdict.tally import Tally
from siteproof.wording import tallies

PLACES = [
    ([], 0),
    ([100, 3], 0),  # whole numbers are printed whole
    ([999_999], 0),
    ([1_000_000, 2_000_000], -3),  # but not large ones
    ([100.5, 3], 1),  # of few values, and of such without noise, four digits
    ([0, 0, 0.5], 4),
    ([100.5] * 8, 1),
    ([90.5, 100, 110, 120], 0),  # a standard deviation of 15
    ([100, 100.01, 100.02, 100.03], 2),
    ([100.5, 200.5, 300.5, 400.5], 0),  # three digits at least
    ([123_456.78, 123_456.79, 123_456.80, 123_456.81], 0),  # and six at most
]


def test_a_value_far_below_the_others_still_has_three_digits(tmp_path, monkeypatch):
    site = fleets.load(tmp_path, monkeypatch, criteria=fleets.CRITERIA)
    for low, shown in ((0.61032, "0.610"), (6.9, "6.90"), (-0.00123456, "-0.00123"), (0, "0")):
        values = dict(zip(fleets.names(8), (low, 140.5, 150.5, 160.5, 170.5), strict=False))
        (verdict,) = fleets.judged(site, fleets.run_of(values)).verdicts
        assert Tally.of(site, verdict).shown(Fraction(str(low))) == shown


def test_whole_numbers_stay_whole(tmp_path, monkeypatch):
    site = fleets.load(tmp_path, monkeypatch, criteria=fleets.CRITERIA)
    found = fleets.run_of(dict(zip(fleets.names(8), (7, 100), strict=False)))
    (verdict,) = fleets.judged(site, found).verdicts
    assert Tally.of(site, verdict).shown(Fraction(7)) == "7"


def test_values_have_the_digits_that_their_noise_leaves(tmp_path, monkeypatch):
    site = fleets.load(tmp_path, monkeypatch, criteria=fleets.CRITERIA)
    for values, places in PLACES:
        found = fleets.run_of(dict(zip(fleets.names(8), values, strict=False)))
        (verdict,) = fleets.judged(site, found).verdicts
        assert Tally.of(site, verdict).places == places, values


def test_a_margin_of_many_times_the_limit_is_told_as_so_many_times(tmp_path, monkeypatch):
    site = fleets.load(tmp_path, monkeypatch, criteria=fleets.CRITERIA)
    for value, shown in ((59.4, "-1.0 %"), (630, "+950 %"), (30660, "511 times")):
        found = fleets.run_of(dict.fromkeys(fleets.names(8), value))
        (verdict,) = fleets.judged(site, found).verdicts
        assert tallies.margin(Tally.of(site, verdict)) == shown
