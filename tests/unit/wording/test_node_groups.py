"""Groups of nodes: what is printed of a group holds of each of its nodes."""

from dataclasses import replace

from siteproof.analysis.slow_nodes import State
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.wording import in_bounds_unit
from siteproof.wording.findings import sentence


class Plain:
    """Findings as they are, without a criterion's unit."""

    def all(self, findings):
        return list(findings)


def missed(node, day, runs):
    """A criterion missed since a day; runs: for how many, 0 where it is new."""
    return finding.of(
        Kind.MISSES_BOUND,
        {"lasting": runs} if runs else {},
        subject=node,
        criterion="C-TRIAD",
        metric="Stream.triad",
        value="1",
        since=f"2026-11-{day:02}T02:15:00+00:00",
    )


def printed(*nodes):
    """What is printed below the head of the only group of these nodes."""
    (group,) = in_bounds_unit.groups((found[0].subject, State.FAILED, found) for found in nodes)
    return in_bounds_unit.phrases(group, Plain())


def test_since_when_nodes_of_a_group_fail_is_a_range_that_has_each():
    for swapped in (False, True):
        for first, second, dated in (
            ((15, 6), (20, 0), "since 2026-11-15, the last since 2026-11-20, 1 to 6 runs"),
            ((15, 6), (16, 5), "since 2026-11-15, the last since 2026-11-16, 5 to 6 runs"),
            ((15, 6), (15, 6), "since 2026-11-15, 6 runs"),
            ((20, 0), (20, 0), "since 2026-11-20"),
        ):
            nodes = [[missed("n002", *first)], [missed("n007", *second)]]
            assert printed(*nodes[:: -1 if swapped else 1]) == [dated], swapped


def test_the_number_of_further_reasons_is_that_of_each_node_or_at_most_so_many():
    more = [
        Finding(Kind.NOT_MEASURED, "n002", metric=metric) for metric in ("Hpl.gflops", "Ior.read")
    ]
    one, two = [missed("n002", 20, 0), *more], [missed("n007", 20, 0)]
    assert printed(one, two) == ["since 2026-11-20", "up to 2 other reasons"]
    alike = [two[0], *(replace(why, subject="n007") for why in more)]
    assert printed(one, alike) == ["since 2026-11-20", "2 other reasons"]


def test_a_change_that_somebody_has_acknowledged_is_called_so():
    why = missed("n007", 15, 6)
    known = finding.details(acknowledged="ops")
    why = replace(why, alert="mrjkie", details=why.details + known)
    assert printed([why]) == ["since 2026-11-15, 6 runs", "change mrjkie (acknowledged by ops)"]
    assert sentence(why).endswith(", since 2026-11-15 (6 runs), acknowledged by ops")
