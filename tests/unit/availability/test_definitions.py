"""The four definitions, and the mean time between failures, against hand calculation."""

from fractions import Fraction
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteproof.availability.definitions import (
    Uptime,
    definitions,
    gap,
    mtbf,
    needs,
    overall,
    scheduled,
    seconds,
    union,
    uptime,
)

H = 3600
DAYS14 = ((0, 336 * H),)
SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6).map(union)
UPTIMES = st.builds(uptime, SPANS, SPANS, SPANS)


def hours(*pairs):
    return union((begin * H, end * H) for begin, end in pairs)


def two_decimals(share):
    return f"{float(100 * share):.2f}"


def test_the_four_definitions_of_one_example_are_four_numbers():
    """320 nodes and 336 h: 8 h of maintenance, 6 h of power loss, and 5 nodes lost for 50 h each.

    By hand: 336 - 14 = 322 h of 336 and of 328; (320 * 322 - 250) node-hours of 320 * 336 and of
    320 * 328.
    """
    maintenance, power_loss = (100, 108), (200, 206)
    others = uptime(DAYS14, hours(maintenance, power_loss), hours(maintenance))
    lost = uptime(DAYS14, hours(maintenance, power_loss, (20, 70)), hours(maintenance))
    nodes = [others] * 315 + [lost] * 5
    found = definitions(needs(nodes, 1), nodes)
    assert found.system_overall == Fraction(322, 336)
    assert found.system_scheduled == Fraction(322, 328)
    assert found.node_overall == Fraction(320 * 322 - 250, 320 * 336)
    assert found.node_scheduled == Fraction(320 * 322 - 250, 320 * 328)
    assert [two_decimals(share) for share in vars(found).values()] == [
        "95.83",
        "98.17",
        "95.60",
        "97.93",
    ]


def test_fourteen_days_without_a_failure_prove_146_hours():
    found = mtbf(Uptime(DAYS14))
    assert (found.failures, found.mean) == (0, None)
    assert found.bound == pytest.approx(336 / log(10))
    assert round(found.bound) == 146


def test_the_bound_with_failures_is_that_of_the_table():
    """chi2(0.90; 4) = 7.779 and chi2(0.90; 8) = 13.362, as printed in tables of the quantiles."""
    one = mtbf(uptime(hours((0, 101)), hours((50, 51)), ()))
    assert (one.failures, one.mean) == (1, 100)
    assert one.bound == pytest.approx(200 / 7.779, rel=1e-4)
    three = mtbf(uptime(hours((0, 103)), hours((10, 11), (20, 21), (30, 31)), ()))
    assert (three.failures, three.bound) == (3, pytest.approx(200 / 13.362, rel=1e-4))


def test_nothing_measured_is_no_share_and_no_bound():
    nothing = Uptime(())
    assert overall([nothing]) is scheduled([nothing]) is overall([]) is None
    assert mtbf(nothing).bound is None
    assert definitions(None, []).system_overall is None


def test_a_gap_is_neither_up_nor_down():
    part = uptime(hours((0, 10), (20, 30)), hours((20, 22)), ())
    assert overall([part]) == Fraction(18, 20)
    assert part.missing((0, 40 * H)) == hours((10, 20), (30, 40))


def test_planned_time_in_which_the_system_is_up_stays_up_time():
    part = uptime(hours((0, 100)), hours((10, 12)), hours((8, 20)))
    assert (overall([part]), scheduled([part])) == (Fraction(98, 100), 1)


def test_the_overrun_of_a_maintenance_is_unscheduled():
    part = uptime(hours((0, 100)), hours((10, 16)), hours((10, 14)))
    assert part.unscheduled == hours((14, 16))
    assert scheduled([part]) == Fraction(94, 96)


def test_a_whole_that_was_down_as_planned_only_has_nothing_scheduled_to_divide_by():
    part = uptime(hours((0, 10)), hours((0, 10)), hours((0, 10)))
    assert (overall([part]), scheduled([part])) == (0, None)


def test_outages_with_only_a_gap_between_them_are_one_failure():
    known = hours((0, 12), (20, 40))
    part = uptime(known, hours((10, 12), (20, 22), (30, 31)), ())
    assert len(part.outages) == 2


def test_a_system_with_one_service_down_is_down_and_with_one_node_is_not():
    up, down = uptime(hours((0, 10)), (), ()), uptime(hours((0, 10)), hours((2, 4)), ())
    assert overall([needs([up, down], 2)]) == Fraction(8, 10)
    assert overall([needs([up, down], 1)]) == 1
    assert overall([needs([down, down], 1)]) == Fraction(8, 10)


def test_what_is_planned_for_one_service_excuses_no_other():
    planned = uptime(hours((0, 10)), hours((2, 6)), hours((2, 6)))
    failed = uptime(hours((0, 10)), hours((4, 8)), ())
    found = needs([planned, failed], 2)
    assert (found.scheduled, found.unscheduled) == (hours((2, 4)), hours((4, 8)))


def test_a_whole_is_up_while_so_many_of_its_parts_are_as_its_contract_says():
    one, two = uptime(hours((0, 10)), hours((2, 4)), ()), uptime(hours((0, 10)), hours((3, 6)), ())
    three = uptime(hours((0, 10)), hours((8, 9)), ())
    downs = [needs([one, two, three], count).down for count in (1, 2, 3)]
    assert downs == [(), hours((3, 4)), hours((2, 6), (8, 9))]


def test_a_part_that_was_not_measured_matters_only_where_it_decides():
    up, unknown = uptime(hours((0, 10)), (), ()), Uptime(())
    assert [needs([up, unknown], count).known for count in (1, 2)] == [hours((0, 10)), ()]


def test_a_whole_is_down_as_planned_only_while_all_parts_that_are_down_are():
    planned = uptime(hours((0, 10)), hours((2, 6)), hours((2, 6)))
    failed = uptime(hours((0, 10)), hours((4, 8)), ())
    found = needs([planned, failed], 1)
    assert (found.scheduled, found.unscheduled) == ((), hours((4, 6)))


def test_a_system_is_known_to_be_up_only_while_all_services_are_measured():
    one, other = uptime(hours((0, 10)), (), ()), uptime(hours((5, 20)), hours((12, 13)), ())
    found = needs([one, other], 2)
    assert found.known == hours((5, 10), (12, 13))


def test_a_gateway_is_compared_over_the_time_in_which_both_were_measured():
    system = uptime(hours((0, 100)), hours((0, 4)), ())
    gateway = uptime(hours((0, 100)), hours((0, 6)), ())
    assert gap(system, gateway) == 2  # 96 % and 94 %, the example of the contract
    late = uptime(hours((50, 100)), hours((60, 61)), ())
    assert gap(system, late) == 2
    assert gap(system, Uptime(())) is None


@given(st.lists(UPTIMES, min_size=1, max_size=4))
def test_every_second_is_up_down_or_not_known(parts):
    for part in [*parts, needs(parts, len(parts)), needs(parts, 1)]:
        assert seconds(part.up) + seconds(part.down) == seconds(part.known)
        assert seconds(part.scheduled) + seconds(part.unscheduled) == seconds(part.down)
        shares = [share for share in (overall([part]), scheduled([part])) if share is not None]
        assert all(0 <= share <= 1 for share in shares)
        assert len(shares) < 2 or shares[0] <= shares[1]


@given(st.lists(UPTIMES, min_size=1, max_size=4))
def test_a_whole_that_needs_all_is_up_no_longer_than_any_part(parts):
    whole, any_of = needs(parts, len(parts)), needs(parts, 1)
    for part in parts:
        assert seconds(whole.up) <= seconds(part.up) <= seconds(any_of.up)
        assert seconds(any_of.down) <= seconds(part.down) <= seconds(whole.down)
