"""Drift and season: each called by its name, and only where there is one."""

import tracemalloc
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from siteproof.analysis import shape, steps
from siteproof.analysis.spread import YEAR, timed

pytestmark = pytest.mark.filterwarnings("error")
MONDAY = datetime(2024, 1, 1, tzinfo=UTC)
DAY = 86400.0


def days(count, apart=DAY):
    return MONDAY.timestamp() + apart * np.arange(count)


def noise(seed, size=365):
    return np.random.default_rng(seed).normal(100, 1, size)


def weekend(times):
    return np.array([datetime.fromtimestamp(t, UTC).weekday() >= 5 for t in times])


def clearest(times, values):
    """The clearest pattern of the calendar, or None."""
    seconds, known, _ = timed(times, values)
    found = [*shape.of_groups(seconds, known), shape.annual(seconds, known)]
    return next((one for one in found if one), None)


# ---- drift


def test_noise_does_not_drift():
    for seed in range(20):
        assert not steps.slope(days(365), noise(seed)).significant, seed


def test_the_slope_is_the_slope_and_its_interval_holds_it():
    for count, apart in ((50, DAY), (365, DAY), (1500, DAY / 4)):
        times = days(count, apart)
        years = (times - times[0]) / (365.2425 * DAY)
        found = steps.slope(times, noise(1, count) - 80 * years)
        assert found.significant, (count, apart)
        assert found.low < -80 < found.high < 0, (count, apart)
        assert found.total == pytest.approx(-80 * years[-1], rel=0.15), (count, apart)
        assert found.relative == pytest.approx(
            found.total / np.median(noise(1, count) - 80 * years)
        ), count


def test_the_interval_holds_the_slope_as_often_as_it_says_also_where_neighbours_agree():
    missed = 0
    for seed in range(60):
        values = np.random.default_rng(seed).normal(0, 1, 120)
        for at in range(1, 120):
            values[at] += 0.5 * values[at - 1]
        found = steps.slope(days(120), 100 + values)
        missed += not found.low <= 0 <= found.high
    assert missed <= 1


def test_outliers_bend_no_slope():
    values = noise(3)
    values[300:330] = 20
    assert not steps.slope(days(365), values).significant


def test_unordered_runs_and_gaps_change_no_slope():
    times, values = days(365), noise(4) + np.linspace(0, 9, 365)
    order = np.random.default_rng(5).permutation(365)
    values[::9] = np.nan
    assert steps.slope(times[order], values[order]) == steps.slope(times, values)


def test_times_may_be_seconds_datetimes_or_those_of_numpy():
    moments = [MONDAY + timedelta(days=n) for n in range(60)]
    values = noise(5, 60) + np.linspace(0, 9, 60)
    naive = np.array([moment.replace(tzinfo=None) for moment in moments], "datetime64[s]")
    told = steps.slope(days(60), values)
    assert told.significant
    assert told == steps.slope(moments, values) == steps.slope(naive, values)


def test_of_too_little_or_of_equal_values_no_slope_is_told():
    for values in ([], [1.0], [1.0, 2.0], [5.0] * 100, [np.nan] * 100):
        found = steps.slope(days(len(values)), values)
        assert (found.per_year, found.significant) == (0, False), values


def test_a_small_drift_is_worth_no_alert_however_sure():
    times = days(365)
    small = steps.slope(times, 100 + (noise(6) - 100) / 10 + np.linspace(0, 1.5, 365))
    large = steps.slope(times, 100 + (noise(6) - 100) / 10 + np.linspace(0, -2.5, 365))
    assert small.significant
    assert not steps.worth_an_alert(small)
    assert steps.worth_an_alert(large)


@pytest.mark.deep
def test_a_drift_is_called_drift():
    for rise in (3, 6, 20):
        found = shape.explain(days(365), noise(7) + np.linspace(0, rise, 365))
        assert found.drift.total == pytest.approx(rise, rel=0.2), rise
        assert (found.changes, found.seasons, found.modes) == ([], [], None), rise


@pytest.mark.deep
def test_a_step_is_no_drift():
    values = noise(8)
    values[180:] += 4
    found = shape.explain(days(365), values)
    assert found.drift is None
    assert len(found.steps) == 1


def drifts(count, change):
    """In how many of 60 series with a CV of 3 % such a change is called a drift."""
    chance = np.random.default_rng(1)
    made = (100 * change * (1 + 0.03 * chance.standard_normal(count)) for _ in range(60))
    return sum(shape.explain(None, values).drift is not None for values in made)


def test_the_slope_of_a_long_series_is_the_slope_and_takes_little_memory():
    size = 6000
    tracemalloc.start()
    try:
        found = shape.explain(days(size), noise(1, size) + np.linspace(0, 4, size)).drift
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    years = size * DAY / YEAR
    assert found.total == pytest.approx(4, rel=0.1)
    assert found.low <= 4 / years <= found.high
    assert shape.explain(days(size), noise(1, size)).drift is None


def test_a_step_within_the_scatter_of_a_run_is_hardly_ever_called_a_drift():
    assert drifts(60, np.where(np.arange(60) < 30, 1, 0.96)) <= 8


def test_a_drift_within_the_scatter_is_still_one():
    assert drifts(60, np.linspace(1, 0.9, 60)) >= 48


def test_a_step_within_a_drift_is_told_beside_it():
    values = noise(9) + np.linspace(0, 6, 365)
    values[200:] += 5
    found = shape.explain(days(365), values)
    assert found.drift.total == pytest.approx(6, abs=1.5)
    assert found.steps == [pytest.approx(200, abs=2)]


# ---- season


def test_noise_has_no_season():
    for seed in range(20):
        assert clearest(days(365), noise(seed)) is None, seed


def test_a_slow_weekend_is_called_a_weekday_and_no_step():
    values = noise(2) - 4 * weekend(days(365))
    found = shape.explain(days(365), values)
    assert found.seasons[0].name == "weekday"
    assert found.seasons[0].lowest in ("Saturday", "Sunday")
    assert found.seasons[0].relative == pytest.approx(0.04, abs=0.01)
    assert found.steps == []
    assert clearest(days(365), values) == found.seasons[0]


def test_a_step_is_found_beneath_the_weekends():
    values = noise(2) - 4 * weekend(days(365))
    values[203:] += 5
    found = shape.explain(days(365), values)
    assert found.steps == [pytest.approx(203, abs=2)]
    assert found.seasons[0].name == "weekday"


def test_two_slow_weekends_are_no_pattern():
    assert clearest(days(21), noise(2, 21) - 9 * weekend(days(21))) is None


def test_slow_nights_are_called_by_their_hour():
    times = days(400, 3 * 3600)
    night = (times / 3600 % 24) < 6
    found = clearest(times, noise(3, 400) - 5 * night)
    assert found.name == "hour of day"
    assert found.lowest in ("00 h", "03 h")


def test_a_swing_of_the_day_has_its_width_and_hides_no_step():
    for a_day in (2, 3, 4, 12):
        for seed in range(5):
            times = days(100 * a_day, DAY / a_day)
            values = noise(seed, times.size) + 10 * (np.arange(times.size) % a_day == 0)
            values[45 * a_day :] -= 5
            found = shape.explain(times, values)
            assert [one.name for one in found.seasons] == ["hour of day"], a_day
            assert found.seasons[0].relative == pytest.approx(0.1, rel=0.15), a_day
            assert found.steps == [pytest.approx(45 * a_day, abs=2)], a_day


def test_a_swing_is_known_when_summer_time_moves_the_runs_by_an_hour():
    times = days(400, DAY / 2)
    values = noise(2, 400) + 10 * (np.arange(400) % 2)
    times[180:] -= 3600
    values[300:] -= 5
    found = shape.explain(times, values)
    assert found.seasons[0].relative == pytest.approx(0.1, rel=0.15)
    assert found.steps == [pytest.approx(300, abs=2)]


def test_weekends_and_nights_are_two_patterns():
    times = days(400, DAY / 2)
    values = noise(2, 400) + 10 * (np.arange(400) % 2) - 6 * weekend(times)
    assert {one.name for one in shape.explain(times, values).seasons} == {"hour of day", "weekday"}


def test_a_change_of_the_hour_at_which_runs_begin_is_no_season():
    times = days(300)
    times[150:] += 12 * 3600
    values = noise(4, 300)
    values[150:] += 6
    found = shape.explain(times, values)
    assert found.seasons == []
    assert found.steps == [150]


def test_a_pattern_of_the_year_is_called_annual_whatever_is_missing():
    for share in (0.0, 0.3):
        times = days(1000)
        values = noise(5, 1000) + 4 * np.cos(2 * np.pi * (times - times[0]) / (365.2425 * DAY))
        values[np.random.default_rng(6).random(1000) < share] = np.nan
        found = shape.explain(times, values)
        assert found.seasons[0].name == "annual", share
        assert (found.seasons[0].highest, found.seasons[0].lowest) in {
            (top, low) for top in ("December", "January") for low in ("June", "July")
        }, share
        assert found.steps == [], share
        assert (found.seasons[0].offsets[np.isnan(values)] == 0).all(), share


def test_of_one_year_no_annual_pattern_is_told():
    times = days(400)
    values = noise(5, 400) + 4 * np.cos(2 * np.pi * (times - times[0]) / (365.2425 * DAY))
    assert clearest(times, values) is None


def test_a_step_is_no_year():
    for at in (250, 500, 750):
        values = noise(7, 1000)
        values[at:] += 4
        assert clearest(days(1000), values) is None, at
        assert shape.explain(days(1000), values).steps == [pytest.approx(at, abs=2)], at


def test_the_screen_of_seasons_flags_what_has_one():
    times = days(200)
    table = np.array([noise(1, 200), noise(2, 200) - 3 * weekend(times), np.full(200, 4.0)])
    table[:, ::11] = np.nan
    assert shape.screen_seasons(np.tile(times, (3, 1)), table).tolist() == [False, True, False]
