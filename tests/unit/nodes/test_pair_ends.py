"""`siteproof nodes` and pairs: nobody is accused for the node at the other end."""

import random
import time
from decimal import Decimal

import pytest
from fleets import past_of, run_of
from nets import METRIC, failed, head, load, ok
from nets import star as exact_star

from siteproof.nodes import states
from siteproof.nodes.states import State
from siteproof.record.finding import Kind
from siteproof.record.samples import Sample
from siteproof.verdict import judgement

SENDS = f"{METRIC} [link lan, side sends]"
RECEIVES = f"{METRIC} [link lan, side receives]"


def star(run=1, count=12, noise=0.01, **keys):
    """A star with a little noise, the same in every test."""
    chance = random.Random(run)
    return [
        ok(f"{s.node}>{s.dims['peer']}", f"{float(s.value) * chance.gauss(1, noise):.4f}", run)
        for s in exact_star(count=count, **keys)
    ]


@pytest.fixture
def report(tmp_path, monkeypatch):
    def _report(found, history=(), criteria="{}\n", count=12, **keys):
        site = load(tmp_path, monkeypatch, criteria=criteria, count=count, **keys)
        monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
        told = judgement.judge_samples(site, list(found), "all of it")
        return states.report(told, past_of(site, [*history, *found]))

    return _report


def bad(report):
    return {
        n.node: str(n.state)
        for n in report.nodes.values()
        if n.state not in (State.OK, State.UNTESTED)
    }


def grid(run=1, slow=(), count=8, only=()):
    chance = random.Random(run)
    nodes = [f"n{number}" for number in range(1, count + 1)]
    return [
        ok(f"{a}>{b}", f"{9.4 * chance.gauss(1, 0.01) * _share(a, b, slow, only):.4f}", run)
        for a in nodes
        for b in nodes
        if a != b
    ]


def _share(a, b, slow, only):
    return 0.5 if {a, b} & set(slow) or (a, b) in only else 1


# ---- who is accused


def test_a_healthy_star_accuses_nobody(report):
    assert not bad(report(star()))


def test_a_bad_client_is_slow_and_its_server_is_not(report):
    found = report(star(slow={"n4": 4}))
    assert bad(found) == {"n4": "SLOW"}
    (why,) = found.nodes["n4"].findings
    assert (why.kind, why.subject, why.metric) == (Kind.PAIRS_SLOW, "n4", METRIC)
    assert (why["link"], why["sides"], why["peers"]) == ("lan", "sender and receiver", 1)
    assert (why["rule"], why["slow"], why["runs"]) == ("once", 1, 1)
    assert 0.58 <= why["deficit"] < 0.59
    assert "n4" in str(found.retest)


def test_the_clients_of_a_bad_server_are_not_slow(report):
    found = []
    for server, clients in (("s1", range(1, 5)), ("s2", range(5, 9)), ("s3", range(9, 13))):
        found += [
            ok(pair, f"{9.4 + n / 200 - (5 if server == 's2' else 0):.3f}")
            for n in clients
            for pair in (f"n{n}>{server}", f"{server}>n{n}")
        ]
    assert bad(report(found, servers="s[1-3]")) == {"s2": "SLOW"}


def test_in_a_grid_the_bad_node_is_slow_and_none_of_its_peers(report):
    assert bad(report(grid(slow=["n3"]), pattern="all", servers="n[1-8]")) == {"n3": "SLOW"}


def test_a_bad_link_is_a_warning_and_accuses_nobody(report):
    found = report(grid(only=[("n2", "n5"), ("n5", "n2")]), pattern="all", servers="n[1-8]")
    assert not bad(found)
    (why,) = found.warnings
    assert (why.kind, why.metric, why["link"]) == (Kind.NOTE, METRIC, "lan")
    assert (why["pairs"], why["more"]) == ("n2<>n5", 0)


def test_a_small_loss_is_a_note_until_a_second_run_confirms_it(report):
    once = star(1, slow={"n4": 8.0})
    found = report(once)
    assert not bad(found)
    note = found.nodes["n4"].notes[0]
    assert (note.kind, note["rule"]) == (Kind.PAIRS_SLOW, "unconfirmed")
    assert (note["slow"], note["runs"]) == (1, 1)
    assert bad(report([*once, *star(2, slow={"n4": 8.0})])) == {"n4": "SLOW"}


def test_a_retest_of_one_pair_stands_beside_the_others_figures(report):
    first = star(1, slow={"n4": 4})
    again = [s for s in star(2, slow={"n4": 4}) if "n4" in (s.node, s.dims["peer"])]
    good = [s for s in star(2) if "n4" in (s.node, s.dims["peer"])]
    why = report([*first, *again]).nodes["n4"].findings[0]
    assert (why["rule"], why["slow"], why["runs"]) == ("confirmed", 2, 2)
    assert not bad(report([*first, *good]))


def test_a_server_below_the_contract_with_all_its_clients_is_slow(report):
    criterion = (
        "C: {description: d, metric: TcpBandwidth.throughput, subject: pair, "
        "links: [lan], at_least: 9 Gb/s, source: s}\n"
    )
    found = report(star(value=5), criteria=criterion)
    assert bad(found) == {"s1": "SLOW"}
    (why,) = found.nodes["s1"].findings
    assert (why.kind, why.criterion, why.metric) == (Kind.PAIRS_MISS_BOUND, "C", METRIC)
    assert dict(why.details) == {"link": "lan", "sides": "sender and receiver", "peers": 12}


# ---- failures


def test_a_client_without_a_value_while_its_server_is_good_is_failed(report):
    found = [s for s in star() if "n3" not in (s.node, s.dims["peer"])]
    told = report([*found, failed("n3>s1", why="no answer")])
    assert bad(told) == {"n3": "FAILED"}
    why = told.nodes["n3"].findings[0]
    assert (why.kind, why.check, why.metric) == (Kind.PAIRS_WITHOUT_VALUE, "TcpBandwidth", "")
    assert (why.status, why["link"], why["peers"]) == ("timeout", "lan", 1)


def test_a_wrong_answer_of_a_pair_is_one_of_the_node_that_explains_it_only(report):
    criterion = (
        "C: {description: d, metric: TcpBandwidth.throughput, subject: pair, "
        "links: [lan], at_least: 9 Gb/s, source: s}\n"
    )
    found = [failed(f"n{n}>s1", "invalid") for n in range(1, 13)]
    told = report(found, criteria=criterion)
    assert bad(told) == {"s1": "FAILED"}
    (of_server, *_), (of_client, *_) = told.nodes["s1"].findings, told.nodes["n1"].findings
    assert (of_server.kind, of_server.status) == (Kind.PAIRS_WITHOUT_VALUE, "invalid")
    assert (of_client.kind, of_client.status) == (Kind.NO_VALUE, "invalid")
    assert (of_server.is_wrong_answer, of_client.is_wrong_answer) == (True, False)


def test_a_pair_whose_server_died_accuses_nobody_and_is_untested(report):
    criterion = (
        "C: {description: d, metric: TcpBandwidth.throughput, subject: pair, "
        "links: [lan], at_least: 9 Gb/s, source: s}\n"
    )
    clients = [f"n{n}" for n in range(1, 13)]
    found = [failed(f"{c}>s1", "interrupted", why="s1 went") for c in clients]
    dead = Sample(head(), "s1", "TcpBandwidth.*", status="node_lost", why="s1 went")
    told = report([*found, dead], criteria=criterion)
    assert bad(told) == {"s1": "FAILED"}
    assert {str(told.nodes[c].state) for c in clients} == {"UNTESTED"}
    (why,) = told.nodes["n1"].findings
    assert (why.kind, why.status, why.message) == (Kind.INTERRUPTED, "interrupted", "s1 went")
    assert (why.metric, why["link"]) == (METRIC, "lan")


def test_all_pairs_in_vain_in_a_star_is_the_server(report):
    found = [failed(f"n{n}>s1") for n in range(1, 13)]
    assert bad(report(found)) == {"s1": "FAILED"}


# ---- what is shown


def test_a_client_shows_its_pair_with_the_server_as_other_figures(report):
    shown = report(star(slow={"n4": 4})).nodes["n4"].metrics
    assert {SENDS, RECEIVES} <= shown.keys()
    assert shown[SENDS].deficit == pytest.approx(0.57, abs=0.03)
    assert shown[SENDS].unit == "Gb/s"


def test_a_figure_is_shown_beside_its_own_past(report):
    past = [s for run in range(1, 5) for s in star(run)]
    shown = report(star(9, slow={"n4": 4.7}), history=past).nodes["n4"].metrics
    assert shown[SENDS].change == pytest.approx(-0.5, abs=0.03)


def test_figures_of_single_nodes_are_judged_as_ever(report):
    values = {f"n{n}": 100 + n / 100 for n in range(1, 13)}
    found = report([*star(), *run_of({**values, "n7": 60})])
    assert bad(found) == {"n7": "SLOW"}


def test_a_node_that_its_link_left_out_is_untested(report):
    found = [s for s in star() if "n3" not in (s.node, s.dims["peer"])]
    told = report(found)
    assert str(told.nodes["n3"].state) == "UNTESTED"
    (why,) = told.nodes["n3"].findings
    assert (why.kind, why.metric, why["link"]) == (Kind.NOT_MEASURED, METRIC, "lan")
    (why,) = told.nodes["s3"].findings  # it is no node of this link: nothing of it was measured
    assert (why.kind, why.metric) == (Kind.NOT_MEASURED, "")


def test_the_aggregate_of_a_link_accuses_nobody(report):
    whole = Sample(head(), "", METRIC, Decimal("1"), "Gb/s", dims={"link": "lan"})
    assert not bad(report([*star(), whole]))


def test_320_clients_cost_seconds(report):
    found = star(count=320, slow={"n7": 4.7})
    start = time.process_time()
    assert bad(report(found, count=320)) == {"n7": "SLOW"}
    assert time.process_time() - start < 20
