"""Which pairs measure a link, and which at the same time."""

import tracemalloc
from itertools import combinations

import pytest
from clone import SITES
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st
from rows import rows

from siteproof.sites import load, pairs


def nodes(text):
    return NodeSet(text, resolver=RESOLVER_NOGROUP)


some = st.sets(st.integers(1, 12), min_size=1).map(
    lambda numbers: nodes(",".join(f"n{number}" for number in numbers))
)
patterns = st.one_of(
    st.sampled_from(["star", "all", "together"]), st.integers(1, 15).map("random:{}".format)
)


def two(turns):
    """Who measures with whom, whoever asks."""
    return [frozenset(pair) for turn in turns for pair in turn]


@given(pattern=patterns, servers=some, clients=some, seed=st.integers())
def test_each_two_nodes_once_and_nobody_with_itself(pattern, servers, clients, seed):
    met = two(pairs.rounds(pattern, servers, clients, seed))
    assert len(met) == len(set(met))
    assert all(len(both) == 2 and both <= set(servers | clients) for both in met)


@given(pattern=patterns, servers=some, clients=some, seed=st.integers())
def test_a_turn_has_each_node_once_unless_all_run_together(pattern, servers, clients, seed):
    turns = pairs.rounds(pattern, servers, clients, seed)
    assert all(turns)
    for turn in turns if pattern != "together" else ():
        busy = [node for pair in turn for node in pair]
        assert len(busy) == len(set(busy))


@given(count=st.integers(0, 30), most=st.integers(1, 20))
def test_rounds_across_are_matchings_of_the_halves_and_no_pair_is_twice(count, most):
    everyone = list(range(count))
    turns = pairs.across(everyone, most)
    half = count // 2
    assert len(turns) <= most
    for turn in turns:
        assert sorted(a for a, _ in turn) == everyone[:half]
        assert sorted(b for _, b in turn) == everyone[half : 2 * half]
    assert len(set(two(turns))) == half * len(turns)
    assert len(turns) == half or most < half


@given(servers=some, clients=some)
def test_all_are_all_pairs_in_as_few_turns_as_possible(servers, clients):
    turns, everyone = pairs.rounds("all", servers, clients, 0), sorted(servers | clients)
    assert set(two(turns)) == {frozenset(both) for both in combinations(everyone, 2)}
    count = len(everyone)
    assert len(turns) == (0 if count < 2 else count - 1 if count % 2 == 0 else count)


@given(servers=some, clients=some)
def test_a_star_has_every_client_that_has_another_node_to_ask(servers, clients):
    star = pairs.rounds("star", servers, clients, 0)
    assert all(len(turn) == 1 for turn in star)
    asking = {client for client in clients if set(servers) - {client}}
    assert asking <= {node for turn in star for pair in turn for node in pair}
    assert all(client in clients and server in servers for [(client, server)] in star)
    together = pairs.rounds("together", servers, clients, 0)
    assert together == ([[pair for turn in star for pair in turn]] if star else [])


@given(wanted=st.integers(1, 12), clients=some, seed=st.text())
def test_random_turns_leave_at_most_one_node_out_and_can_be_repeated(wanted, clients, seed):
    turns = pairs.rounds(f"random:{wanted}", clients, clients, seed)
    assert turns == pairs.rounds(f"random:{wanted}", clients, clients, seed)
    possible = len(pairs.rounds("all", clients, clients, 0))
    assert len(turns) == min(wanted, possible)
    assert all(len(turn) == len(clients) // 2 for turn in turns)


def test_another_seed_gives_other_pairs():
    everyone = nodes("n[1-40]")
    one, other = (pairs.rounds("random:1", everyone, everyone, seed) for seed in ("a", "b"))
    assert set(two(one)) != set(two(other))


@rows("pattern, pairs_in_all", [("random:3", 3_000), ("all", 1_999_000)])
def test_memory_grows_with_the_nodes_and_not_with_their_pairs(pattern, pairs_in_all):
    everyone = nodes("n[1-2000]")
    tracemalloc.start()
    try:
        turns = pairs.rounds(pattern, everyone, everyone, 1)
        assert (pairs.count(turns), pairs.ends(turns)) == (pairs_in_all, set(everyone))
        assert pairs.at_once(turns) == 1_000
        assert len(turns[-1]) == 1_000
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 4_000_000, "a pair takes some 100 bytes"


@given(pattern=patterns, servers=some, clients=some, seed=st.integers())
def test_rounds_are_counted_as_they_are_made(pattern, servers, clients, seed):
    turns = pairs.rounds(pattern, servers, clients, seed)
    made = list(turns)
    assert pairs.count(turns) == sum(map(len, made))
    assert pairs.at_once(turns) == max(map(len, made), default=0)
    assert pairs.ends(turns) == {node for turn in made for pair in turn for node in pair}


def test_who_is_only_a_client_asks():
    turns = pairs.rounds("all", nodes("a[1-2]"), nodes("b[1-2]"), 0)
    mixed = [pair for turn in turns for pair in turn if pair[0][0] != pair[1][0]]
    assert len(mixed) == 4
    assert all(client[0] == "b" and server[0] == "a" for client, server in mixed)


def test_clients_take_the_servers_in_turn():
    turns = pairs.rounds("star", nodes("s[1-2]"), nodes("c[1-3]"), 0)
    assert turns == [[("c1", "s1")], [("c2", "s2")], [("c3", "s1")]]


def test_a_server_that_asks_too_asks_the_next_one():
    turns = pairs.rounds("star", nodes("n[1-3]"), nodes("n[1-4]"), 0)
    assert turns == [[("n1", "n2")], [("n2", "n3")], [("n3", "n1")], [("n4", "n1")]]


@pytest.fixture
def example(monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(SITES))
    return load("example")


def test_a_link_has_its_pairs_in_both_directions(example):
    link = example.system.links["lan"]
    assert (str(pairs.servers(example, link)), str(pairs.clients(example, link))) == (
        "node[001-002]",
        "node[001-008]",
    )
    # node001 and node002 are servers to each other: one pair, not two
    assert pairs.planned(example, link) == [
        ("node001", "node002"),
        *((f"node00{i}", f"node00{2 - i % 2}") for i in range(3, 9)),
    ]
    assert len(pairs.directed(example, link)) == 14
    assert pairs.directed(example, link)[:2] == [("node001", "node002"), ("node002", "node001")]


def test_nobody_knows_random_pairs_in_advance(example):
    link = example.system.links["lan"].model_copy(update={"pattern": "random:3"})
    assert pairs.directed(example, link) == []


def test_a_node_is_addressed_as_the_link_says(monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(SITES))
    assert load("fullest").system.links["rack"].address_of("iu-c001") == "iu-c001-ib"


@given(servers=some, clients=some)
def test_side_by_side_each_pair_stays_and_no_node_has_two_at_a_time(servers, clients):
    star = pairs.rounds("star", servers, clients, 0)
    packed = pairs.side_by_side(star)
    assert sorted(two(packed), key=sorted) == sorted(two(star), key=sorted)
    for turn in packed:
        busy = [node for pair in turn for node in pair]
        assert turn and len(busy) == len(set(busy))


def test_a_star_of_several_servers_is_as_short_as_one_of_them_side_by_side():
    star = pairs.rounds("star", nodes("m[1-4]"), nodes("c[01-40]"), 0)
    assert (len(star), len(pairs.side_by_side(star))) == (40, 10)


@given(pattern=patterns, servers=some, clients=some, most=st.integers(1, 8))
def test_few_at_once_leaves_no_pair_out_and_keeps_their_order(pattern, servers, clients, most):
    made = pairs.rounds(pattern, servers, clients, 1)
    few = pairs.few_at_once(made, most)
    assert [pair for turn in few for pair in turn] == [pair for turn in made for pair in turn]
    assert pairs.at_once(few) <= most
    assert pairs.at_once(made) > most or few is made
