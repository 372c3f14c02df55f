"""The busiest core of either end of a link."""

from decimal import Decimal

from siteproof.collect.pair_turns import busiest
from siteproof.collect.raw import Execution


def ran(text, **dims):
    return Execution(dims, 0, text, "")


def looks(begin, shares, seconds=4):
    """What a node of these shares of busy time has seen each second."""
    lines = []
    for second in range(seconds + 1):
        ticks = [f"{int(share * second) + 50}/{100 * second + 70}" for share in shares]
        lines.append(f"cores {begin + second} {' '.join(ticks)}\n")
    return "".join(lines)


def client(begin, *shares, **dims):
    text = looks(begin, shares) + "end cores\n"
    return ran(text, program="cores", **{"direction": "out", "streams": "1", **dims})


def test_the_busiest_core_of_both_ends_counts():
    server = [ran(looks(1000, [90, 20]), program="cores")]
    (found,) = busiest([client(1000, 10, 40)], server, "out")
    assert (found.value, found.unit, found.dims) == (Decimal("90.0"), "%", {"streams": "1"})
    server = [ran(looks(1000, [5, 6]), program="cores")]
    assert busiest([client(1000, 10, 40)], server, "out")[0].value == Decimal("40.0")


def test_each_run_has_its_own_time_at_the_server():
    text = looks(1000, [80]) + looks(1010, [30])  # its counters start again: only within a run
    server = [ran(text, program="cores")]
    found = busiest([client(1000, 1), client(1010, 2, streams="4")], server, "out")
    assert [(r.value, r.dims["streams"]) for r in found] == [
        (Decimal("80.0"), "1"),
        (Decimal("30.0"), "4"),
    ]


def test_the_other_direction_and_the_measurement_itself_are_left_out():
    server = [ran(looks(1000, [80]), program="cores")]
    runs = [ran("{}", direction="out", streams="1"), client(1000, 1, direction="in")]
    assert busiest(runs, server, "out") == []
    assert len(busiest(runs, server, "in")) == 1


def test_a_line_that_the_server_had_only_begun_is_left_out():
    server = [ran(looks(1000, [80]) + "cores 1004 51", program="cores")]
    assert busiest([client(1000, 1)], server, "out")[0].value == Decimal("80.0")


def test_without_the_server_there_is_no_value_but_a_reason():
    for server in ([], [ran(looks(2000, [80]), program="cores")], [ran("x\n", program="cores")]):
        (found,) = busiest([client(1000, 1)], server, "out")
        assert (found.metric, found.unit) == ("not_read", "text")
        assert found.value.startswith("cores: ")
        assert found.dims == {"parameter": "busiest_core", "streams": "1"}
