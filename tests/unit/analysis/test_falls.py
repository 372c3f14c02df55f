"""Falls against the own past: nodes that move together, what scatter hides, coarse figures."""

import numpy as np
import pytest

from siteproof.analysis import ranks

RUNS = 2 * ranks.PAIRED
NODES, MANY_RUNS = 50, 31


def made(seed, own, common, nodes=5, loss=0.0):
    """(nodes, runs): own scatter, a common one, and the first node's loss in the newest half."""
    chance = np.random.default_rng(seed)
    level = own * chance.standard_normal((nodes, RUNS)) + common * chance.standard_normal(RUNS)
    level[0, ranks.PAIRED :] += np.log(1 - loss)
    return 100 * np.exp(level)


def test_what_all_nodes_do_hides_no_loss_of_one():
    found = [ranks.falls(made(seed, 0.02, 0.06, loss=0.1), "higher").runs for seed in range(50)]
    assert sum(bool(runs[0]) for runs in found) >= 45
    assert not any(runs[1:].any() for runs in found)


def test_what_all_nodes_do_is_no_loss():
    for seed in range(200):
        assert not ranks.falls(made(seed, 0.02, 0.06), "higher").runs.any()


def test_the_smallest_loss_that_ten_runs_show_follows_the_own_scatter():
    for own, shown in ((0.02, True), (0.03, True), (0.06, False)):
        found = [ranks.falls(made(seed, own, 0.06), "higher") for seed in range(20)]
        assert np.median([one.scatter for one in found]) == pytest.approx(own, rel=0.2), own
        assert (np.median([one.shown for one in found]) < 0.1) == shown, (own, shown)


def test_a_loss_that_is_said_to_be_hidden_is_mostly_not_found_and_the_others_mostly_are():
    hidden, visible = [], []
    for seed in range(300):
        one = ranks.falls(made(seed, 0.02 + 0.01 * (seed % 6), 0.0, loss=0.1), "higher")
        (hidden if one.shown > 0.1 else visible).append(bool(one.runs[0]))
    assert min(len(hidden), len(visible)) > 50
    assert np.mean(hidden) < 0.5 < np.mean(visible)


def test_nothing_is_said_of_a_few_runs():
    assert ranks.falls(made(1, 0.2, 0.0)[:, :3], "higher").shown == 0


def coarse(seed):
    """Two digits: most values are the same, and others are a twentieth away."""
    values = np.random.default_rng(seed).normal(1, 0.02, (NODES, MANY_RUNS))
    return np.round(values * 20) / 20


def test_figures_of_two_digits_are_no_falls():
    fell = sum(int((ranks.falls(coarse(seed), "higher").runs > 0).sum()) for seed in range(20))
    assert fell <= 1  # of 1,000 nodes


def test_a_fall_is_found_in_figures_of_two_digits():
    for runs, loss, least in ((3, 0.2, 19), (10, 0.1, 17)):
        found = 0
        for seed in range(20):
            values = coarse(seed)
            values[7, -runs:] *= 1 - loss
            found += bool(ranks.falls(values, "higher").runs[7])
        assert found >= least, (runs, loss, least)


def test_a_fall_is_found_where_all_other_values_are_the_same():
    for runs in (1, 3, 10):
        values = np.ones((NODES, MANY_RUNS))
        values[7, -runs:] = 0.85
        assert ranks.falls(values, "higher").runs.tolist() == [
            runs * (node == 7) for node in range(NODES)
        ], runs
