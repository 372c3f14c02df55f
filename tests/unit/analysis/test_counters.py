"""Deltas of counters between two looks at a node."""

from __future__ import annotations

from decimal import Decimal

from siteproof.analysis.uniformity import Delta, around, deltas
from siteproof.parsers import health
from siteproof.record.samples import Header, Sample
from siteproof.sites import catalogue


def look(boot="b", **counts):
    return {"boot": boot} | {name: Decimal(n) for name, n in counts.items()}


def between(before, after):
    return deltas({"node": before}, {"node": after})[0]


def test_what_has_not_grown_is_not_told():
    assert between(look(edac_ce=7), look(edac_ce=7)) == Delta("node", {}, {})


def test_growth_is_told_by_counter():
    delta = between(look(edac_ce=7, mce=0), look(edac_ce=9, mce=0))
    assert delta.grown == {"edac_ce": 2}


def test_after_a_reboot_no_counter_is_compared():
    assert between(look("one", edac_ce=7), look("two", edac_ce=9)) == Delta("node", {}, {}, True)


def test_without_the_boots_id_nothing_is_compared():
    assert between({"edac_ce": Decimal(1)}, {"edac_ce": Decimal(2)}).rebooted


def test_a_counter_that_wrapped_around_has_gone_on():
    for bits in (32, 64):
        assert between(look(x=2**bits - 5), look(x=3)).grown == {"x": 8}, bits


def test_a_counter_that_fell_without_wrapping_was_reset_and_has_no_delta():
    delta = between(look(kernel_errors=17), look(kernel_errors=3))
    assert delta.grown == {}
    assert delta.unknown == {"kernel_errors": "fell from 17 to 3: reset"}


def test_a_counter_that_was_read_only_once_is_said():
    assert between(look(mce=1), look()).unknown == {"mce": "read only once"}
    assert between(look(), look(mce=1)).unknown == {"mce": "read only once"}


def test_states_of_the_moment_have_no_delta():
    before, after = look(load=1, uptime=1, zombies=0), look(load=9, uptime=99, zombies=4)
    assert between(before, after) == Delta("node", {}, {})


def test_only_nodes_of_both_looks_are_compared():
    assert deltas({"a": look()}, {"b": look()}) == []


def test_the_first_and_the_last_look_are_compared_and_a_single_one_with_nothing():
    def samples(node, hour, count):
        header = Header("s", "t", "p", "e", "Health", f"{hour}", f"2026-11-21T0{hour}:00:00+00:00")
        return [
            Sample(header, node, "Health.edac_ce", Decimal(count), "count"),
            Sample(
                header, node, "Health.nic_rx_errors", Decimal(count), "count", dims={"nic": "eth0"}
            ),
            Sample(header, node, "Health.boot", "b", "text"),
            Sample(header, node, "Health.not_read", "why", "text", dims={"parameter": "mce"}),
        ]

    found = samples("a", 3, 30) + samples("a", 1, 1) + samples("a", 2, 20) + samples("b", 1, 1)
    assert deltas(*around(found)) == [Delta("a", {"edac_ce": 29, "nic_rx_errors eth0": 29}, {})]


def test_every_counter_stands_in_the_catalogue_with_its_unit():
    known = catalogue.read().metrics
    cards = {f"{kind}_{name}" for kind, names in health.CARDS.items() for name in names}
    units = (
        health.UNIT
        | dict.fromkeys(cards, "count")
        | dict.fromkeys(("unreadable", "faults"), "count")
    )
    assert {n.partition(".")[2]: m.unit for n, m in known.items() if m.check == "Health"} == units
