"""Nodes that fell against their own past, where most runs give the same figure."""

import numpy as np
import pytest

from siteproof.analysis.falls import falls

NODES, RUNS = 50, 31


def coarse(seed):
    """Two digits: most values are the same, and others are a twentieth away."""
    values = np.random.default_rng(seed).normal(1, 0.02, (NODES, RUNS))
    return np.round(values * 20) / 20


def test_figures_of_two_digits_are_no_falls():
    fell = sum(int((falls(coarse(seed), "higher").runs > 0).sum()) for seed in range(20))
    assert fell <= 1  # of 1,000 nodes


@pytest.mark.parametrize("runs, loss, least", [(3, 0.2, 19), (10, 0.1, 17)])
def test_a_fall_is_found_in_figures_of_two_digits(runs, loss, least):
    found = 0
    for seed in range(20):
        values = coarse(seed)
        values[7, -runs:] *= 1 - loss
        found += bool(falls(values, "higher").runs[7])
    assert found >= least


@pytest.mark.parametrize("runs", [1, 3, 10])
def test_a_fall_is_found_where_all_other_values_are_the_same(runs):
    values = np.ones((NODES, RUNS))
    values[7, -runs:] = 0.85
    assert falls(values, "higher").runs.tolist() == [runs * (node == 7) for node in range(NODES)]
