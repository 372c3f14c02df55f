"""Drift and season: each called by its name, and only where there is one."""

import numpy as np
import pytest

from siteproof.analysis import drift

DAYS = np.arange(365) * 86400.0 + 1_700_000_000


def noise(seed, size=365):
    return np.random.default_rng(seed).normal(100, 1, size)


def test_the_slope_is_the_slope_and_its_interval_holds_it():
    found = drift.slope(DAYS, noise(1) + 0.02 * np.arange(365))
    assert found.significant
    assert found.low < 0.02 * 365.2425 < found.high


@pytest.mark.parametrize("seed", range(20))
def test_noise_does_not_drift(seed):
    assert not drift.slope(DAYS, noise(seed)).significant


def test_a_slow_weekend_is_called_a_weekday():
    weekend = np.isin((DAYS // 86400 + 3) % 7, [5, 6])
    found = drift.season(DAYS, noise(2) - 4 * weekend)
    assert found.name == "weekday"
    assert found.lowest in ("Saturday", "Sunday")


@pytest.mark.parametrize("seed", range(20))
def test_noise_has_no_season(seed):
    assert drift.season(DAYS, noise(seed)) is None
