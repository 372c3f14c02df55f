"""The capacity of a cloud as a sweep: the plan, mistakes, and a cloud that is not there."""

import json

import pytest

SWEEP = """\
description: Servers
tool: openstack
axes: {{servers: [{servers}], networks: [{networks}]}}
fixed: {{batch: 4, rate: {rate}}}
against: servers
order: ascending
point_limit: 60s
"""
CLOUD = """
services:
  cloud:
    kind: openstack
    address: http://127.0.0.1:9/v3
    credentials: {credentials}
    image: tiny
    flavor: small
    scenarios: []
    timeout: 10 s
  same_cloud:
    kind: openstack
    address: http://127.0.0.1:9/v3
    credentials: {credentials}
    image: tiny
    flavor: large
    timeout: 10 s
"""


@pytest.fixture
def swept(world):
    world.own = world.folder / "own"
    world.own.mkdir()
    write(world)
    credentials = world.folder / "credentials"
    credentials.touch(mode=0o600)
    credentials.write_text("username=someone\npassword=correct-horse\nproject=mine\n")
    path = world.site() / "system.yaml"
    path.write_text(path.read_text() + CLOUD.format(credentials=credentials))
    return world


def write(world, servers="2, 40", networks="1", rate="unlimited"):
    text = SWEEP.format(servers=servers, networks=networks, rate=rate)
    (world.own / "my_servers.yaml").write_text(text)


def sweep(world, *words):
    words = ("reframe", "-c", "sweeps/", "-n", "^MyServers", *words)
    return world.run(*words, SITEPROOF_SWEEPS=str(world.own))


def plan(world, *words):
    words = ("plan", "-c", "sweeps/", "-n", "^MyServers", "--plain", *words)
    return world.siteproof(*words, SITEPROOF_SWEEPS=str(world.own)).out


def test_the_plan_shows_the_servers_of_the_largest_point_and_each_cloud_once(swept):
    rows = [line for line in plan(swept).splitlines() if "MyServers" in line]
    assert len(rows) == 1
    assert "2 points, up to 40 servers" in rows[0]
    assert "1 point, up to 2 servers, 1 above the caps of -S" in plan(swept, "-S", "servers=10")


def test_a_cloud_that_is_not_there_is_the_reason_of_each_point(swept):
    done = sweep(swept, "-r")
    assert done.code == 1, done
    assert "servers=2 networks=1: login: Unable to establish connection" in done.out
    points = [
        json.loads(line) for path in swept.samples() for line in path.read_text().splitlines()[1:]
    ]
    assert {(p["dims"]["servers"], p["status"]) for p in points} == {
        ("2", "generic"),
        ("40", "generic"),
    }
    head = json.loads(swept.samples()[0].read_text().splitlines()[0])
    assert head["check"] == "Cloud"
    assert head["conditions"]["service"] == "cloud"
    shown = swept.siteproof("sweep", "my_servers", SITEPROOF_SWEEPS=str(swept.own))
    assert shown.code == 1
    assert "servers=40 networks=1: generic: login:" in " ".join(shown.out.split())
    for path in swept.data.rglob("*"):
        assert not path.is_file() or "correct-horse" not in path.read_text(errors="replace")


def test_a_rate_and_a_number_of_networks_that_cannot_be_are_refused(swept):
    write(swept, rate="fast")
    told = sweep(swept, "-r").refused()
    assert "rate fast. Allowed: requests a minute, or unlimited" in told
    write(swept, networks="101")
    assert "101 networks. Allowed: at most 100" in sweep(swept, "-r").refused()


def test_a_site_without_a_cloud_skips_with_the_reason(swept):
    path = swept.site() / "system.yaml"
    path.write_text(path.read_text().partition("\nservices:")[0] + "\n")
    done = sweep(swept, "-r")
    assert "the site names no services of kind openstack" in done.out
