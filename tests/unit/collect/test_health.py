"""The faults of a node: a sum only where each of its parts was read."""

from decimal import Decimal

from siteproof.collect.derive import Measured, host
from siteproof.collect.raw import Raw
from siteproof.parsers import Reading


def derived(counts, unreadable=()):
    text = "".join(f"unreadable {name} needs root\n" for name in unreadable)
    readings = [Reading(name, Decimal(count), "count") for name, count in counts.items()]
    found, _ = host.health(Measured(readings, {}, Raw({}, {}, text, ""), {}))
    return {(r.metric, *r.dims.values()): r.value for r in found}


HEALTHY = {"mce": 0, "kernel_errors": 0, "oom_kills": 0, "read_only": 0, "edac_ce": 7, "zombies": 2}


def test_a_healthy_node_has_no_fault():
    assert derived(HEALTHY)[("faults",)] == 0


def test_each_fault_counts_and_corrected_errors_do_not():
    for name in ("mce", "kernel_errors", "oom_kills", "read_only", "edac_ue"):
        assert derived({**HEALTHY, name: 3})[("faults",)] == 3, name


def test_a_sum_with_an_unread_part_is_missing_by_name():
    counts = {name: count for name, count in HEALTHY.items() if name != "kernel_errors"}
    found = derived(counts, ["kernel_errors"])
    assert ("faults",) not in found
    assert found[("not_read", "faults")] == "kernel_errors could not be read"
    assert found[("unreadable",)] == 1


def test_where_no_driver_counts_memory_errors_the_others_are_added():
    assert derived({**HEALTHY, "mce": 1}, ["edac_ue"])[("faults",)] == 1


def test_a_parameter_that_was_not_read_has_the_reason_if_there_is_one():
    text = "unreadable sysctl.a\nunreadable sysctl.b needs root\n"
    expected = {name: {"exact": "1"} for name in ("sysctl.a", "sysctl.b")}
    given = Measured([], {}, Raw({}, {}, text, ""), {"parameters": expected})
    found = host.host_parameters(given)[0]
    assert [r.value for r in found if r.metric == "mismatch"] == [
        "expected 1, found nothing",
        "expected 1, found nothing (needs root)",
    ]
