"""The rules for slow nodes, and fleets of which the bad nodes are known."""

from itertools import product

import numpy as np
import pytest
from fleets import Fleet, names, run_of
from test_node_states import even, report, site, slow

from siteproof.analysis import ranks
from siteproof.analysis import slow_nodes as rules
from siteproof.analysis.slow_nodes import Slow
from siteproof.record.finding import Kind
from siteproof.wording.findings import sentence

__all__ = ["site"]


# ---- the rules alone


def slow_of(values, better="higher"):
    """Which of these nodes are slow in a run that measured them."""
    found = ranks.ranks(np.array(values)[:, None], better)
    return [value for value, is_slow in zip(values, found.slow[:, 0], strict=True) if is_slow]


def test_no_node_is_slow_when_there_is_nothing_to_compare():
    for values in ([5.0], [5.0, 5.0], [5.0] * 8, [0.0] * 8, [0.0, 0.0, 5.0], [10.0], [100.0, 10.0]):
        assert slow_of(values) == [], values


def test_a_mad_of_zero_leaves_the_deficit_to_decide():
    assert slow_of([100.0] * 7 + [97.0]) == [97.0]
    assert slow_of([100.0] * 7 + [98.1]) == []


def test_what_is_far_off_and_small_is_no_reason_for_a_repair():
    values = [100.0, 100.01, 99.99, 100.02, 99.98, 100.0, 100.0, 98.5]
    assert ranks.ranks(np.array(values)[:, None], "higher").z[-1] < rules.Z_LIMIT
    assert slow_of(values) == []


def test_where_low_is_good_the_high_one_is_slow():
    values = [10.0, 10.1, 9.9, 10.0, 10.05]
    assert slow_of([*values, 14.0], "lower") == [14.0]
    assert slow_of([*values, 7.0], "lower") == []


RETESTS = [
    ("", 0.3, Slow.NO),
    ("0", 0.3, Slow.NO),
    ("1", 0.1, Slow.UNCONFIRMED),
    ("1", 0.2, Slow.ONCE),
    ("11", 0.1, Slow.CONFIRMED),
    ("101", 0.1, Slow.CONFIRMED),
    ("110", 0.0, Slow.CONFIRMED),
    ("1100", 0.0, Slow.UNCONFIRMED),
    ("11000", 0.0, Slow.NO),
    ("010", 0.0, Slow.UNCONFIRMED),
    ("001", 0.2, Slow.ONCE),
]


def test_two_of_the_last_three_runs_decide_or_one_clear_one():
    for runs, deficit, said in RETESTS:
        found = rules.retest_rule([r == "1" for r in runs], deficit)
        assert found is said, (runs, deficit)


BY_CHANCE = [
    ("001", 0.01, 0.001, Slow.ONCE),
    ("001", 0.01, 0.01, Slow.UNCONFIRMED),
    ("011", 0.02, 0.02, Slow.CONFIRMED),
    ("011", 0.1, 0.1, Slow.UNCONFIRMED),
    ("111", 0.1, 0.1, Slow.CONFIRMED),
    ("111", 0.2, 0.1, Slow.UNCONFIRMED),
    ("111111", 0.2, 0.1, Slow.CONFIRMED),
]


def test_where_healthy_nodes_have_slow_runs_more_of_them_are_needed():
    for runs, some, clear, said in BY_CHANCE:
        by_chance = rules.ByChance(some, clear)
        found = rules.retest_rule([r == "1" for r in runs], 0.3, by_chance)
        assert found is said, (runs, some, clear)


# ---- racks

RACKS = "groups: {rack1: 'n[001-008]', rack2: 'n[009-032]'}"


def test_a_rack_that_is_slow_as_a_whole_is_named(site):
    made = Fleet(32, 0.02, 1)
    lost = {n: 0.955 if n in names(8) else 1.0 for n in names(32)}
    now = run_of({n: made.level[n] * lost[n] for n in made.names})
    warnings = report(site(32, more=RACKS), now).warnings
    (why,) = [w for w in warnings if w.get("group")]
    assert (why.kind, why["group"], why.metric) == (Kind.NOTE, "rack1", "Stream.triad")
    assert 0.04 <= why["deficit"] < 0.05


def test_a_rack_full_of_bad_nodes_is_named(site):
    now = run_of(even(32, **dict.fromkeys(names(5), 50)))
    why = [w for w in report(site(32, more=RACKS), now).warnings if w.get("group")][-1]
    assert why.kind is Kind.NOTE
    assert dict(why.details) == {"group": "rack1", "count": 5, "of": 8}


# ---- fleets of which the bad nodes are known


def tally(place, count, cv, seeds, bad, deficit, runs, history=0):
    """Of all bad nodes the share found, how many good ones were accused, and the last report."""
    hits = accused = total = 0
    for seed in range(seeds):
        made = Fleet(count, cv, seed, bad, deficit, since=history + 1)
        before = made.runs(1, history)
        found = report(place, made.runs(history + 1, history + runs), before)
        hits += len(slow(found) & made.bad)
        accused += len(slow(found) - made.bad)
        total += len(made.bad)
    return hits / max(1, total), accused, found


FEW = {8: 6, 16: 5, 320: 1}
MANY = {8: 60, 16: 40, 320: 3}
seeds_of_size = pytest.mark.parametrize(
    "seeds", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"]
)


@pytest.mark.deep
@seeds_of_size
def test_a_healthy_fleet_is_not_accused(site, seeds):
    for count in seeds:
        place = site(count)
        for cv, runs, history in product((0.01, 0.02, 0.04), (1, 3), (0, 10)):
            _, accused, _ = tally(place, count, cv, seeds[count], 0, 0, runs, history)
            assert accused <= 0.005 * count * seeds[count], (count, cv, runs, history)


@seeds_of_size
@pytest.mark.deep
def test_thirty_per_cent_are_found_in_one_run(site, seeds):
    for count, cv, bad in product(seeds, (0.01, 0.02), (0.125, 0.1875)):
        recall, accused, found = tally(site(count), count, cv, seeds[count], bad, 0.3, 1)
        assert recall >= 0.99, (count, cv, bad)
        assert accused == 0, (count, cv, bad)
        assert found.suspect_share <= 0.25, (count, cv, bad)


@pytest.mark.deep
@seeds_of_size
def test_ten_per_cent_are_found_from_ten_paired_repetitions(site, seeds):
    for count, cv, bad in product((16, 320), (0.01, 0.02, 0.04), (0.1, 0.2, 0.35)):
        some = min(10, seeds[count])
        recall, accused, _ = tally(site(count), count, cv, some, bad, 0.1, 10, 10)
        assert recall >= (0.99 if cv < 0.04 else 0.7), (count, cv, bad)
        assert accused <= 1, (count, cv, bad)


@seeds_of_size
@pytest.mark.deep
def test_recall_of_three_runs_in_a_large_fleet(site, seeds):
    place = site(320)
    for bad, deficit in product((0.1, 0.2, 0.35), (0.05, 0.1, 0.3)):
        recall, accused, found = tally(place, 320, 0.01, seeds[320], bad, deficit, 3)
        assert accused == 0, (bad, deficit)
        # A fifth that always was a tenth slower may be of another kind: told, and not accused.
        found_all = deficit == 0.3 or deficit == 0.1 and bad < ranks.LEAST_SHARE
        assert recall >= (0.99 if found_all else 0), (bad, deficit)
        kind = [why for why in found.warnings if "ranked apart" in why.text]
        assert bool(kind) == (deficit < 0.2 and bad >= ranks.LEAST_SHARE), (bad, deficit)


def test_when_a_third_is_bad_it_says_so_and_the_past_still_finds_them(site):
    recall, accused, found = tally(site(320), 320, 0.04, 1, 0.35, 0.3, 1, 10)
    why = found.warnings[0]
    assert (why.kind, why["role"]) == (Kind.NOTE, "compute")
    suspects = sum(node.suspect for node in found.nodes.values())
    assert f"{suspects} of 320 measured nodes of compute" in sentence(why)
    assert why["share"] == pytest.approx(0.35, abs=0.01)
    assert recall > 0.9
    assert accused == 0


def test_when_most_are_bad_the_good_ones_give_it_away(site):
    found = report(site(16), run_of(even(16, **dict.fromkeys(names(16)[:10], 70.0))))
    assert slow(found) == set()
    (why,) = [w for w in found.warnings if "far better" in w.text]
    assert (why.metric, why["role"], why["share"]) == ("Stream.triad", "compute", 6 / 16)


def test_a_node_that_is_ranked_in_no_metric_says_so_once(site):
    one = {"n001": 100.0}
    found = report(site(), [*run_of(one), *run_of(one, metric="Stream.copy")])
    (why,) = found.nodes["n001"].notes
    assert (why.kind, why["count"], why["more"]) == (Kind.NOT_RANKED, 1, 1)
    assert sentence(why) == "not ranked: 1 node, without enough history (and 1 more metric)"
