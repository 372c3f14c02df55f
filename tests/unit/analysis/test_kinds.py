"""Two kinds of nodes in one role, by their levels alone."""

from itertools import product

import numpy as np
import pytest

from siteproof.analysis.ranks import kinds

SD = 0.005


def levels(count, seed, share=0.0, gap=0.0):
    """Levels of healthy nodes; the first share of them is of the slower kind."""
    found = np.random.default_rng(seed).normal(0, SD, count)
    found[: round(share * count)] -= gap
    return found


def test_another_kind_is_found_whatever_single_nodes_lost():
    for case in product([(), (0.2,), (0.5,), (0.5, 0.2)], [0.15, 0.3, 0.5], [1, 2, 3]):
        lost, share, seed = case
        found = levels(40, seed, share, gap=0.05)
        bad = list(range(39, 39 - len(lost), -1))
        found[bad] += np.log1p(-np.array(lost))
        healthy = np.delete(kinds(found), bad)
        other = round(share * 40)
        assert len(set(healthy[:other])) == len(set(healthy[other:])) == 1, case
        assert healthy[0] != healthy[-1], case


def test_a_bad_node_of_the_slower_kind_does_not_hide_it():
    for lost in (0.1, 0.2, 0.3):
        found = 0
        for seed in range(20):
            made = levels(40, seed, 0.3, gap=0.128)
            made[3] += np.log1p(-lost)
            healthy = np.delete(kinds(made), 3)
            found += len(set(healthy[:11])) == len(set(healthy[11:])) == 1 != len(set(healthy))
        assert found == 20, lost


@pytest.mark.deep
def test_nodes_of_one_kind_are_not_parted_by_those_that_are_bad():
    for count in (6, 10, 40, 400):
        for lost in ((), (0.5,), (0.5, 0.2)):
            parted = 0
            for seed in range(20):
                found = levels(count, seed)
                found[: len(lost)] += np.log1p(-np.array(lost))
                parted += bool(kinds(found).any())
            assert parted == 0, (count, lost)
