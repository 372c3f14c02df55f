"""How many servers run at one instant, how long they took, and why others do not run."""

from siteproof.services import capacity
from siteproof.services.capacity import Instance, Listing, Request, Seen

NO_HOST = "No valid host was found. There are not enough hosts available."


def listing(at, *found, whole=True):
    """Servers by number: (status, request) or an Instance."""
    made = {
        f"id{number}": one if isinstance(one, Instance) else Instance(one[1], one[0])
        for number, one in enumerate(found)
    }
    return Listing(at, made, whole)


def seen(*listings):
    found = Seen()
    for one in listings:
        found.take(one)
    return found


def active(request=1, created=100.0, launched=None, host=""):
    return Instance(request, "ACTIVE", host, created, launched)


def test_requests_have_a_batch_each_and_the_networks_in_turn():
    assert capacity.requests(10, 4, 2) == [
        Request(1, 1, 4),
        Request(2, 2, 4),
        Request(3, 1, 1),
        Request(4, 2, 1),
    ]


def test_fewer_servers_than_networks_need_no_empty_request():
    assert capacity.requests(2, 4, 3) == [Request(1, 1, 1), Request(2, 2, 1)]


def test_all_servers_are_requested_and_spread_evenly():
    for servers, batch, networks in ((640, 4, 4), (7, 3, 5), (1, 9, 9)):
        found = capacity.requests(servers, batch, networks)
        assert sum(one.count for one in found) == servers, (servers, batch, networks)
        assert max(one.count for one in found) <= batch, (servers, batch, networks)
        on = [sum(o.count for o in found if o.network == n + 1) for n in range(networks)]
        assert max(on) - min(on) <= 1, (servers, batch, networks)
        assert [one.number for one in found] == list(range(1, len(found) + 1)), servers


def test_servers_that_ran_one_after_the_other_did_not_run_at_one_instant():
    found = seen(listing(1, active(), ("BUILD", 1)), listing(2, ("ERROR", 1), active()))
    assert capacity.figures(found, [Request(1, 1, 2)], {1: 0.0}, {}).instances == 1


def test_the_most_at_one_instant_counts_though_some_have_ended_since():
    found = seen(listing(1, active(), active()), listing(2, active(), ("ERROR", 1)))
    made = capacity.figures(found, [Request(1, 1, 2)], {1: 0.0}, {})
    assert made.instances == 2
    assert made.failures == {"other": 1}


def test_a_listing_in_several_answers_counts_only_what_ran_in_the_one_before_it():
    first = listing(1, active(), ("BUILD", 1), whole=False)
    second = listing(2, active(), active(), whole=False)
    third = listing(3, active(), active(), whole=False)
    assert len(seen(first).running) == 0
    assert len(seen(first, second).running) == 1
    assert len(seen(first, second, third).running) == 2


def test_the_largest_network_and_the_hosts_are_those_of_servers_that_run():
    planned = [Request(1, 1, 2), Request(2, 2, 2)]
    found = seen(
        listing(
            1,
            active(1, host="a"),
            active(2, host="a"),
            active(2, host="b"),
            Instance(1, "ERROR", "c"),
        )
    )
    made = capacity.figures(found, planned, {1: 0.0, 2: 0.0}, {})
    assert (made.instances, made.per_network, made.hosts) == (3, 2, 2)


def test_hosts_that_the_cloud_does_not_show_are_unknown_and_not_none():
    assert (
        capacity.figures(seen(listing(1, active())), [Request(1, 1, 1)], {1: 0}, {}).hosts is None
    )


def test_times_are_the_clouds_own_where_it_shows_all_of_them():
    found = seen(listing(9, active(launched=104.0), active(launched=106.0)))
    made = capacity.figures(found, [Request(1, 1, 2)], {1: 0.0}, {})
    assert sorted(made.seconds) == [4.0, 6.0]
    assert (made.clock, made.middle, made.p95) == ("launched_at", 5.0, 6.0)


def test_times_are_those_of_the_listings_where_one_is_not_shown_or_cannot_be():
    for launched in (None, 99.0):
        found = seen(
            listing(2, active(launched=104.0), ("BUILD", 2)),
            listing(7, active(launched=104.0), active(2, launched=launched)),
        )
        made = capacity.figures(found, [Request(1, 1, 1), Request(2, 1, 1)], {1: 1.0, 2: 1.5}, {})
        assert (made.seconds, made.clock) == ([1.0, 5.5], "poll"), launched


def test_p95_is_a_measured_time():
    each = [active(launched=100.0 + number) for number in range(1, 21)]
    made = capacity.figures(seen(listing(1, *each)), [Request(1, 1, 20)], {1: 0.0}, {})
    assert made.p95 == 19.0


def test_nothing_that_runs_has_no_times():
    made = capacity.figures(Seen(), [Request(1, 1, 3)], {}, {})
    assert (made.instances, made.per_network, made.seconds) == (0, 0, [])
    assert made.failures == {"timeout": 3}


def test_every_server_that_does_not_run_has_one_cause():
    planned = [Request(1, 1, 4), Request(2, 1, 2), Request(3, 1, 2)]
    found = listing(
        1,
        active(),
        Instance(1, "ERROR", fault=NO_HOST),
        Instance(1, "ERROR", fault="Failed to allocate the network(s), not rescheduling."),
        Instance(1, "BUILD"),
    )
    refused = {2: "Quota exceeded for instances: Requested 2, but already used 10 of 10 instances"}
    assert capacity.failures(found, planned, refused) == {
        "no valid host": 1,
        "quota": 2,
        "network": 1,
        "timeout": 3,
    }


def test_what_was_refused_and_is_there_all_the_same_is_no_second_failure():
    found = listing(1, active(), active())
    assert capacity.failures(found, [Request(1, 1, 2)], {1: "timed out"}) == {}


def test_a_message_has_one_cause_of_a_short_list():
    for message, cause in (
        (NO_HOST, "no valid host"),
        ("Exceeded maximum number of retries. Exhausted all hosts available", "no valid host"),
        ("Quota exceeded for resources: ['port'].", "quota"),
        ("No more IP addresses available on network 1b2c.", "network"),
        ("Virtual Interface creation failed", "network"),
        ("Image 1b2c is not active.", "image"),
        ("Flavor's disk is too small for requested image.", "image"),
        ("Timed out waiting for a reply to message ID 5d", "timeout"),
        ("HTTP status 500: an unexpected error", "other"),
        ("supported reports", "other"),
        ("", "other"),
    ):
        assert capacity.cause(message) == cause, (message, cause)
        assert cause in capacity.CAUSES, (message, cause)


def test_a_quota_that_does_not_suffice_is_named_with_what_is_left():
    needed = {"instances": 320, "cores": 320, "networks": 4}
    left = {"instances": 118, "cores": None, "networks": -1}
    assert capacity.lacking(needed, left) == "320 instances, 118 are left; 4 networks, 0 are left"
    assert capacity.lacking(needed, {"instances": 320}) == ""


def test_only_what_has_answered_counts_where_servers_are_asked():
    found = Seen(answered=set())
    shown = listing(1, active(), active(), active(2))
    found.take(shown)
    assert (len(found.running), len(found.silent)) == (0, 3)
    found.answered.update(sorted(found.silent)[:2])
    found.take(listing(2, active(), active(), active(2)))
    planned = [Request(1, 1, 2), Request(2, 2, 1)]
    made = capacity.figures(found, planned, {1: 0.0, 2: 0.0}, {})
    assert (made.instances, made.failures) == (2, {"not reachable": 1})
