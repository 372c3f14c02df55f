"""Whether a site can answer its criteria at all, what is lacking, and what criteria set."""

from dataclasses import replace

import pytest
import shipped
from rows import rows

from siteproof.answers import expected, reachable
from siteproof.answers.reachable import Sweeps, _number
from siteproof.record.samples import Header
from siteproof.sites import Criterion, Expected
from siteproof.verdict.others import asked
from siteproof.wording.findings import sentence

KNOB = "knob.lnet.credits"
LNET = {"clients": "1", "servers": "8"}
TUNED = Sweeps({"Lnet": [{**LNET, KNOB: "own"}, {**LNET, KNOB: "64"}]}, {"Lnet"})


def lacks(site, key, sweeps=TUNED, **changes):
    if changes:
        site = replace(site, criteria={key: site.criteria[key].like(**changes)})
    why = reachable.lacking(site, site.criteria[key], sweeps)
    return sentence(why) if why else ""


def with_partitions(site, **changes):
    system = site.system
    partitions = {k: one.model_copy(update=changes) for k, one in system.partitions.items()}
    return replace(site, system=system.model_copy(update={"partitions": partitions}))


@rows(
    "name, key, left_out, why",
    [
        ("extenci", "EXT-ASSESS-ACCESS", "services", "the site has no service 'mount_iu'"),
        ("extenci", "EXT-HOST-BUF", "links", "system.yaml has no links.*.round_trip"),
        ("extenci", "EXT-UIDMAP", "file_systems", "system.yaml has no file_systems.*.owners"),
        ("extenci", "EXT-APP-LOCAL", "environments", "no environment of transfer offers ior"),
        # `all` measures three pairs at once, unless one is set
        ("extenci", "EXT-IPERF-INT", "", ""),
        ("jetstream", "JS-4.1.3-UPTIME14", "probes", "system.yaml has no probes"),
        ("jetstream", "JS-4.3-GALAXY", "", "system.yaml has no services.galaxy.results"),
        ("jetstream-iu", "JS-5.2.3-PROTO", "services", "the site has no service 'sftp'"),
        ("jetstream-iu", "JS-3.2.5-SYS", "", "no field of section 3.2.5 is stated of these nodes"),
        ("jetstream-iu", "JS-3.2.4-SYS", "", ""),
        ("magellan", "MAG-SINKS", "partitions", "no partition measures lbl[1-3]"),
        ("sc11-wan", "SC11-APPMIX", "workload", "system.yaml has no workload"),
        ("sc11-wan", "SC11-SWEEP-DIRTY", "partitions", "system.yaml has no partitions.*.tuning"),
        ("extenci", "EXT-ASSESS-USABILITY", "", ""),  # a person's evidence
    ],
)
def test_what_a_criterion_waits_for_is_named(name, key, left_out, why):
    site = shipped.site(name)
    if site.members:
        site = asked(site, site.members["jetstream-iu"])
    if left_out == "environments":
        site = with_partitions(site, environments=["bare"])
    elif left_out:
        gone = {left_out: None if left_out == "workload" else {}}
        site = replace(site, system=site.system.model_copy(update=gone))
    assert lacks(site, key) == why


@rows(
    "key, conditions, why",
    [
        ("SC11-IOR30-LAN-READ", {"tasks": "30", "tasks_per_node": "1"}, ""),
        ("SC11-IOR30-LAN-READ", {"tasks": "300", "tasks_per_node": "1"}, "300 nodes of seattle"),
        ("SC11-IOR30-LAN-READ", {"tasks": "300", "tasks_per_node": "10"}, ""),
        ("SC11-LNET10-LAN-READ", {"clients": "99", "servers": "8"}, "99 nodes of seattle"),
        ("SC11-LNET10-LAN-READ", {"clients": "1", "servers": "99"}, "99 servers of seattle"),
    ],
)
def test_more_nodes_than_there_are_at_the_same_time_are_named(key, conditions, why):
    texts = {**conditions, "file_system": "seattle", "mode": "acceptance"}
    rules = {name: Expected(exact=text) for name, text in texts.items()}
    swept = Sweeps({"Lnet": [{**conditions, KNOB: "own"}]}, {"Lnet"})
    found = lacks(shipped.site("sc11-wan"), key, swept, conditions=rules)
    assert found.startswith(f"needs {why}") if why else found == ""


@rows("reachable, why", [("ssh", ""), ("", "measured with reachable no; ssh is required")])
def test_servers_that_are_counted_by_their_status_answer_no_criterion_on_ssh(reachable, why):
    whole = shipped.site("jetstream")
    site = asked(whole, whole.members["jetstream-iu"])
    services = {
        key: one.model_copy(update={"reachable": reachable})
        for key, one in site.system.services.items()
        if one.kind == "openstack"
    }
    site = replace(site, system=site.system.model_copy(update={"services": services}))
    assert lacks(site, "JS-4.2-CAP640") == why


def test_a_sweep_of_knobs_answers_where_a_partition_allows_it():
    site, key = with_partitions(shipped.site("sc11-wan"), tuning=False), "SC11-LNET1-LAN-READ"
    why = "only sweeps measure Lnet, and 'tuning: true' is missing for those that can"
    assert lacks(site, key) == lacks(site, key, Sweeps(only={"Lnet"})) == why
    tuned = with_partitions(site, tuning=True)
    assert lacks(tuned, key) == ""
    turned = Sweeps({"Lnet": [{**LNET, KNOB: "64"}]}, {"Lnet"})
    assert "credits" in lacks(tuned, key, turned)
    own = Sweeps({"Lnet": TUNED.points["Lnet"][:1]}, {"Lnet"})
    assert lacks(tuned, "SC11-LNET10-LAN-READ", own) == "measured with clients 1; 10 is required"


@rows(
    "conditions, why",
    [
        ({"at_once": "2"}, ""),
        ({"at_once": "4"}, "measured with at_once 3; 4 is required"),
        ({"duration": "90000"}, "measured with duration at least 1, at most 86400; 90000 is"),
        ({"streams": "8"}, ""),
        ({"streams": "64"}, "measured with streams at least 1, at most 16; 64 is required"),
        ({"pattern": "star"}, "measured with pattern all; star is required"),
    ],
)
def test_what_no_run_can_be_set_to_is_named(conditions, why):
    rules = {name: Expected(exact=text) for name, text in conditions.items()}
    mode = {"mode": Expected(exact="acceptance")}
    site = shipped.site("extenci")
    assert lacks(site, "EXT-IPERF-INT", conditions={**mode, **rules}).startswith(why)


# ---- what criteria set


def site_with(*conditions, **keys):
    """extenci, with criteria on its link psc alone."""
    site = shipped.site("extenci")
    given = {"description": "d", "source": "s", "subject": "pair", "links": ["psc"], **keys}
    given |= {"metric": "TcpBandwidth.throughput", "at_least": "1 Gb/s"}
    each = {f"C{n}": Criterion(**given, conditions=one) for n, one in enumerate(conditions)}
    return replace(site, criteria=each)


def job(mode="acceptance", link="psc"):
    return Header("", "", "", "", "TcpBandwidth", "", "", mode, conditions={"link": link})


def at_least(number):
    return Expected(at_least=number)


@rows(
    "rules, duration",
    [
        ([at_least("300")], "300"),
        ([at_least("10")], "15"),  # the default will do
        ([at_least("300"), Expected(at_most="600")], "300"),
        ([Expected(exact="60"), at_least("20")], "60"),
        ([Expected(about="100", tolerance="5 %")], "100"),
        ([Expected(exact="90000")], "15"),  # above what the check allows
        ([], "15"),
    ],
)
def test_one_value_is_chosen_that_all_criteria_can_be_answered_with(rules, duration):
    site = site_with(*({"duration": rule} for rule in rules))
    assert expected.one(site, job(), "duration", "15") == duration
    assert expected.one(site, job("maintenance"), "duration", "5") == "5"
    assert expected.one(site, job(link="psc-tacc"), "duration", "15") == "15"


def test_where_criteria_contradict_each_other_the_first_is_answered_and_lint_names_the_other():
    site = site_with({"duration": Expected(exact="60")}, {"duration": Expected(exact="300")})
    assert expected.one(site, job(), "duration", "15") == "60"
    assert lacks(site, "C0") == ""
    assert lacks(site, "C1") == "measured with duration 60; 300 is required"


def test_of_what_a_run_measures_several_each_value_is_added_once():
    rules = ("4", "8", "8", "1")
    site = site_with(*({"streams": Expected(exact=text)} for text in rules))
    assert expected.each(site, job(), "streams", ["1", "4"]) == ["1", "4", "8"]
    assert expected.each(site, job("quick"), "streams", ["1"]) == ["1"]


@pytest.mark.parametrize("mode", ["quick", "maintenance", "acceptance"])
def test_a_criterion_sets_the_modes_that_it_names_and_acceptance_without_any(mode):
    named = {"mode": Expected(one_of=["quick", "maintenance"]), "duration": at_least("300")}
    assert expected.one(site_with(named), job(mode), "duration", "5") == (
        "5" if mode == "acceptance" else "300"
    )
    unnamed = site_with({"duration": at_least("300")})
    assert expected.one(unnamed, job(mode), "duration", "5") == (
        "300" if mode == "acceptance" else "5"
    )


def test_trials_are_made_in_every_mode_that_may_answer():
    site = site_with({}, trials=10)
    assert expected.one(site, job("maintenance"), "trials", "1") == "10"
    assert expected.one(site, job("acceptance"), "trials", "1") == "10"
    assert expected.one(site, job("quick"), "trials", "1") == "1"


# ---- points


def points(name, check, file_system, mode="acceptance"):
    where = {"file_system": file_system}
    return expected.points(
        shipped.site(name), Header("", "", "", "", check, "", "", mode, conditions=where)
    )


@rows("where", ["seattle", "indianapolis"])
def test_criteria_require_the_points_that_they_name_each_once(where):
    thirty = {"tasks": "30", "tasks_per_node": "1", "api": "POSIX", "layout": "file_a_task"}
    found = [thirty, {"tasks": "1"}, {"tasks": "30"}]  # the last two: of the retention
    assert points("sc11-wan", "Ior", where) == found
    assert points("sc11-wan", "Ior", where, "maintenance") == []


def test_a_criterion_on_another_file_system_requires_nothing():
    assert points("sc11-wan", "Ior", "elsewhere") == []


def test_a_criterion_without_a_number_of_tasks_requires_its_other_settings():
    assert points("extenci", "Mdtest", "jwan") == [{"variant": "easy"}]


def test_a_number_that_is_none_to_python_is_no_number():
    assert [_number(text) for text in ("12", "²", "9" * 5000, "")] == [12, 0, 0, 0]
