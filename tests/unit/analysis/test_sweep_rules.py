"""Tasks on a node, fairness between ranks, and the bounds of a model."""

from fractions import Fraction

import pytest

from siteproof.analysis.plateau import (
    SAME_NODES,
    SAME_TASKS,
    Facts,
    bandwidth_delay,
    bounds,
    fairness,
    packing,
    points,
)

GB = 10**9 // 8  # bytes a second of 1 Gb/s


def lines(**rates):
    """By tasks a node (k1, k2 …) the rates by number of tasks."""
    return {
        int(name[1:]): points({x: [rate] for x, rate in held.items()})
        for name, held in rates.items()
    }


def test_nothing_is_compared_without_one_task_a_node():
    assert packing({}) is None
    assert packing(lines(k2={4: 1})) is None
    assert packing(lines(k1={4: 1})) is None
    assert packing(lines(k1={4: 1}, k2={6: 1})) is None


def test_a_rate_of_zero_compares_with_nothing():
    assert packing(lines(k1={4: 0}, k2={4: 1})) is None


def test_the_same_tasks_go_before_the_same_nodes():
    found = packing(lines(k1={2: 10, 4: 20}, k2={4: 15}))
    assert (found.most, found.compared_at) == (1, SAME_TASKS)
    assert found.losses[0].typical == pytest.approx(0.25)


def test_the_same_nodes_with_more_tasks_must_not_be_slower():
    found = packing(lines(k1={166: 100}, k2={332: 99}, k3={498: 94}))
    assert (found.most, found.compared_at) == (2, SAME_NODES)
    assert [loss.worst_at for loss in found.losses] == [332, 498]


def test_three_do_not_pass_where_two_already_lose():
    assert packing(lines(k1={4: 100}, k2={4: 90}, k3={4: 99})).most == 1


def test_of_several_places_the_median_decides_and_the_worst_is_told():
    found = packing(lines(k1={4: 100, 8: 100, 16: 100}, k2={4: 100, 8: 97, 16: 80}))
    loss = found.losses[0]
    assert (found.most, loss.places, loss.worst_at) == (2, 3, 16)
    assert (loss.typical, loss.worst) == (pytest.approx(0.03), pytest.approx(0.2))


def test_fairness_is_the_median_of_the_repetitions():
    assert fairness([1, 5, 10], [10, 10, 10]) == 0.5
    assert fairness([], []) is None
    assert fairness([0.0], [0.0]) is None
    with pytest.raises(ValueError):
        fairness([1], [])


def test_nothing_known_bounds_nothing():
    assert bounds(Facts()) == []
    assert bounds(Facts(servers=4)) == []
    assert bounds(Facts(window=Fraction(2**20))) == []


def test_the_tightest_bound_comes_first():
    few = bounds(Facts(nodes=2, client=Fraction(10 * GB), servers=1, server=Fraction(40 * GB)))
    many = bounds(Facts(nodes=8, client=Fraction(10 * GB), servers=1, server=Fraction(40 * GB)))
    assert [(b.part, b.count) for b in few] == [("clients", 2), ("servers", 1)]
    assert [(b.part, b.count, b.rate) for b in many] == [
        ("servers", 1, 40 * GB),
        ("clients", 8, 80 * GB),
    ]


def test_a_window_a_round_trip_bounds_each_stream():
    path = Facts(link=Fraction(10 * GB), round_trip=Fraction(50, 1000), window=Fraction(2**22))
    assert [(b.part, b.count) for b in bounds(path)] == [("windows", 1), ("link", 1)]
    assert bounds(path)[0].rate == 2**22 * 20
    wide = Facts(
        link=Fraction(10 * GB), round_trip=Fraction(50, 1000), window=Fraction(2**22), streams=32
    )
    assert [(b.part, b.count) for b in bounds(wide)] == [("link", 1), ("windows", 32)]


def test_10_gigabits_over_50_ms_hold_62_and_a_half_megabytes():
    assert bandwidth_delay(Fraction(10 * GB), Fraction(50, 1000)) == 62_500_000
