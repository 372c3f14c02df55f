"""Clean matrices accuse nobody; slow trunks and leaves are told as such; any count of pairs."""

from itertools import permutations, product

import numpy as np
import pytest

from siteproof.analysis.attribution import blame


def matrix(chance, count, cv=0.05, alike=0.0):
    """A rate of each directed pair. alike: the share of the variance that nodes have in common."""
    nodes = [f"n{number:02}" for number in range(count)]
    ends = chance.standard_normal((2, count)) * np.sqrt(alike / 2)
    noise = np.sqrt(1 - alike) * chance.standard_normal((count, count))
    return nodes, {
        (nodes[a], nodes[b]): 9.4 * max(0.01, 1 + cv * (ends[0, a] + ends[1, b] + noise[a, b]))
        for a, b in permutations(range(count), 2)
    }


def asked(values, **keys):
    return blame(values, "higher", **keys)


def few_or(many, few):
    """A few random cases in each run of the tests, many in the nightly one."""
    return pytest.mark.parametrize("runs", [few, pytest.param(many, marks=pytest.mark.long)])


@pytest.mark.deep
@few_or(400, 100)
def test_a_clean_matrix_accuses_nobody(runs):
    accused = {}
    for count, alike in product((3, 4, 6, 8, 16), (0.0, 0.5, 0.9)):
        chance = np.random.default_rng([count, round(10 * alike)])
        for number in range(runs if count < 16 else runs // 4):
            found = asked(matrix(chance, count, (0.02, 0.1)[number % 2], alike)[1])
            wrong = bool(found.bad or found.culprits or found.blocks)
            accused[count, alike] = accused.get((count, alike), 0) + wrong
    # Of .5 % wanted, with the chance of so few runs.
    assert max(accused.values()) <= 0.015 * runs, accused
    assert sum(accused.values()) <= 0.008 * 12.75 * runs, accused


@few_or(20, 6)
def test_a_pair_at_a_fraction_of_the_others_is_bad_however_few_there_are(runs):
    cases = product((2, 3, 4, 6, 8, 16), (0.01, 0.05, 0.1), (0.02, 0.1), range(runs))
    for count, cv, left, seed in cases:
        nodes, values = matrix(np.random.default_rng(seed), count, cv)
        slow = (nodes[0], nodes[1])
        values[slow] *= left
        found = asked(values)
        assert found.bad == {slow}, (count, cv, left, seed)
        assert not found.culprits, (count, cv, left, seed)


@pytest.mark.deep
@few_or(20, 6)
def test_a_slow_trunk_is_told_and_accuses_no_node(runs):
    sizes = [(2, 6), (4, 4), (4, 12), (8, 8)]
    for case in product(sizes, (True, False), ("both", "one"), (0.02, 0.5, 0.7, 0.8)):
        (small, large), grouped, ways, left = case
        told = 0
        for seed in range(runs):
            nodes, values = matrix(np.random.default_rng(seed), small + large, 0.02)
            leaf = set(nodes[:small])
            slow = {p for p in values if p[0] in leaf and p[1] not in leaf}
            if ways == "both":
                slow |= {(b, a) for a, b in slow}
            for pair in slow:
                values[pair] *= left
            groups = [frozenset(leaf), frozenset(nodes[small:])] if grouped else []
            found = asked(values, groups=groups)
            assert not found.culprits, (case, seed)
            told += [block.pairs for block in found.blocks] == [frozenset(slow)]
        assert told >= 0.95 * runs, (case, told)


def test_a_bad_node_beside_a_slow_trunk_is_accused_and_no_other():
    nodes, values = matrix(np.random.default_rng(5), 16, 0.02)
    leaf = set(nodes[:4])
    for a, b in values:
        if (a in leaf) != (b in leaf):
            values[a, b] *= 0.6
        if nodes[9] in (a, b):
            values[a, b] *= 0.5
    found = asked(values)
    assert [culprit.node for culprit in found.culprits] == [nodes[9]]
    assert [block.inside for block in found.blocks] == [frozenset(leaf)]


def test_two_leaves_are_two_blocks():
    nodes, values = matrix(np.random.default_rng(5), 16, 0.02)
    leaves = [set(nodes[:4]), set(nodes[4:8])]
    for a, b in values:
        if any((a in leaf) != (b in leaf) for leaf in leaves):
            values[a, b] *= 0.6
    found = asked(values)
    assert not found.culprits
    assert {block.inside for block in found.blocks} == set(map(frozenset, leaves))


def test_bad_nodes_are_no_block():
    for bad in (2, 3):
        nodes, values = matrix(np.random.default_rng(5), 12, 0.02)
        for a, b in values:
            if {a, b} & set(nodes[:bad]):
                values[a, b] *= 0.6
        found = asked(values)
        assert {culprit.node for culprit in found.culprits} == set(nodes[:bad]), bad
        assert not found.blocks, bad
