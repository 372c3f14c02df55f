"""What clients of Lustre have read answers the criteria of SC11 and ExTENCI: PASS, FAIL, missing.

A FAIL comes from another reading, and never from another bound.
"""

import json

import pytest
from campaigns import Campaign
from click.testing import CliRunner

from siteproof import cli, files, sites
from siteproof.record import descriptions

OF_CLIENT = {
    "EXT-LUSTRE": "Lustre.without_kerberos",
    "EXT-PKG": "Lustre.altered_files",
    "EXT-UIDMAP": "Lustre.wrong_owners",
}
PATHS = {"data": "", "data/run 7": ""}


@pytest.fixture
def perflogs(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    return files.perflogs()


def found(system, key):
    """The verdict on a criterion, and everything that `why` prints of it."""
    done = CliRunner().invoke(cli.group, ["verdict", "--system", system, "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    each = {one["id"]: one["verdict"] for one in json.loads(done.output)["criteria"]}
    why = CliRunner().invoke(cli.group, ["why", key, "--system", system]).output
    return each[key], " ".join(why.split())


def lustre(perflogs, system, role, name, **values):
    """Readings of each client of a file system."""
    counts = {"Lustre.osts_up": 30} | dict.fromkeys(OF_CLIENT.values(), 0) | values
    made = Campaign(sites.load(system))
    made.nodes([role], counts, file_system=name, program="lfs")
    made.write(perflogs)


def listings(perflogs, own, **changes):
    """What each client has listed. own: of some nodes other paths. changes: of single jobs."""
    site = sites.load("extenci")
    for place, (_, group) in enumerate(changes.get("sessions", {"all": None}).items(), 1):
        made = Campaign(site, place=place, name="acceptance")
        nodes = [n for n in site.expected("transfer") if group is None or n in group]
        kept = {node: dict.fromkeys(own.get(node, PATHS), "") for node in nodes}
        conditions = {"folder": ".", "depth": changes.get("depth", "8")}
        of_node = {
            "Namespace.paths": lambda node, kept=kept: len(kept.get(node, ())),
            "Namespace.digest": lambda node, kept=kept: descriptions.digest(kept.get(node, {})),
        }
        made.nodes(["transfer"], of_node, file_system="jwan", program="find", **conditions)
        made.jobs[-1] = [sample for sample in made.jobs[-1] if sample.node in kept]
        made.write(perflogs)
        header = made.jobs[-1][0].header
        descriptions.write(perflogs, header, changes.get("kept", kept))


@pytest.mark.parametrize(
    ("name", "up", "verdict"), [("seattle", 30, "PASS"), ("indianapolis", 29, "FAIL")]
)
def test_each_client_of_sc11_must_see_thirty_targets(perflogs, name, up, verdict):
    lustre(perflogs, "sc11-wan", "seattle_clients", name, **{"Lustre.osts_up": up})
    key = {"seattle": "SC11-HW-OSTS-SEA", "indianapolis": "SC11-HW-OSTS-IND"}
    assert found("sc11-wan", key[name])[0] == verdict
    (other,) = set(key.values()) - {key[name]}
    assert found("sc11-wan", other)[0] == "INCOMPLETE"


@pytest.mark.parametrize("key", OF_CLIENT)
def test_one_client_with_one_count_above_zero_fails_extenci(perflogs, key):
    lustre(perflogs, "extenci", "transfer", "jwan")
    assert found("extenci", key)[0] == "PASS"
    first = list(sites.load("extenci").expected("transfer"))[0]
    changed = {OF_CLIENT[key]: lambda node: int(node == first)}
    lustre(perflogs, "extenci", "transfer", "jwan", **changed)
    verdict, why = found("extenci", key)
    assert verdict == "FAIL"
    assert first in why


def test_paths_that_all_clients_list_do_not_differ(perflogs):
    listings(perflogs, {})
    assert found("extenci", "EXT-ASSESS-NAMESPACE")[0] == "PASS"


def test_a_path_that_one_client_lacks_fails_and_is_named(perflogs):
    listings(perflogs, {"pople": {"data": ""}})
    verdict, why = found("extenci", "EXT-ASSESS-NAMESPACE")
    assert verdict == "FAIL"
    assert "data/run 7 not on pople" in why


def test_paths_below_the_levels_that_were_listed_are_not_compared(perflogs):
    listings(perflogs, {"pople": {"data": ""}}, depth="1")
    assert found("extenci", "EXT-ASSESS-NAMESPACE")[0] == "PASS"


def test_listings_without_their_levels_are_not_compared(perflogs):
    for depth in ("", "0", "x", "-1"):
        listings(perflogs, {}, depth=depth)
        verdict, why = found("extenci", "EXT-ASSESS-NAMESPACE")
        assert (verdict, "with the levels that were listed" in why) == ("INCOMPLETE", True), depth


def test_a_client_without_a_listing_is_named(perflogs):
    every = set(sites.load("extenci").expected("transfer"))
    listings(perflogs, {}, sessions={"all": every - {"pople"}})
    verdict, why = found("extenci", "EXT-ASSESS-NAMESPACE")
    assert verdict == "INCOMPLETE"
    assert "Namespace.paths of pople" in why


def test_listings_of_two_sessions_are_not_compared(perflogs):
    every = set(sites.load("extenci").expected("transfer"))
    listings(perflogs, {}, sessions={"first": every - {"pople"}, "second": {"pople"}})
    verdict, why = found("extenci", "EXT-ASSESS-NAMESPACE")
    assert verdict == "INCOMPLETE"
    assert "in one session" in why


def test_a_listing_that_is_not_the_one_measured_is_not_compared(perflogs):
    kept = {node: PATHS for node in sites.load("extenci").expected("transfer")}
    listings(perflogs, {"pople": {"data": ""}}, kept=kept)
    verdict, why = found("extenci", "EXT-ASSESS-NAMESPACE")
    assert verdict == "INCOMPLETE"
    assert "of pople as they were measured" in why
