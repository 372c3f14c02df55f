"""Runs that are far off become more frequent: a change of the scatter that no level shows."""

import numpy as np
import pytest

from siteproof.analysis import shape

RUNS = 200
TIMES = np.arange(RUNS) * 86400.0


def made(seed, loss, share=1 / 3):
    """A share of the runs of the second half lacks so much, in no order."""
    chance = np.random.default_rng(seed)
    values = 1 + 0.01 * chance.standard_normal(RUNS)
    values[(np.arange(RUNS) >= RUNS // 2) & (chance.random(RUNS) < share)] *= 1 - loss
    return values


@pytest.mark.deep
def test_runs_that_are_far_off_since_a_day_are_a_change():
    for loss in (0.1, 0.2, 0.5):
        found = [shape.explain(TIMES, made(seed, loss)) for seed in range(20)]
        assert all(one.changes or one.scatter or one.modes for one in found), loss
        assert {one.at // 20 for shape_ in found for one in shape_.scatter} <= {4, 5, 6, 7}, loss


def test_runs_that_are_far_off_now_and_then_are_none():
    for share in (0.02, 0.1, 0.3):
        chance = np.random.default_rng(1)
        found = [shape.often(chance.random(RUNS) < share, 15) for _ in range(1000)]
        assert sum(one is not None and one[1] < 0.02 for one in found) <= 5, share


def test_bursts_count_as_fewer_than_runs():
    far = np.zeros(RUNS, dtype=bool)
    far[120:140] = True
    burst, (_, alone) = shape.often(far, 15), shape.often(spread_out(), 15)
    assert burst is not None and burst[1] > 0.02 > alone


def spread_out():
    far = np.zeros(RUNS, dtype=bool)
    far[100:200:5] = True
    return far


def test_where_no_run_or_every_one_is_far_off_there_is_no_change():
    for far in (np.zeros(RUNS, dtype=bool), np.ones(RUNS, dtype=bool)):
        assert shape.often(far, 15) is None, far


def test_of_few_runs_there_is_no_cut():
    assert shape.often(np.array([True, False] * 10), 15) is None
