"""The capacity of a real OpenStack with a fake hypervisor: figures, faults, and nothing left."""

import json

import pytest
import services_fixture
from services_fixture import breaking, ends, jobs, kill_at, records, until

from siteproof.services import capacity, openstack
from siteproof.services.openstack_api import ERRORS

pytestmark = [pytest.mark.services, pytest.mark.cloud, pytest.mark.tool("OpenStack", "ReFrame")]
SWEEP = """\
description: Servers
tool: openstack
axes: {{servers: [{servers}], networks: [2]}}
fixed: {{batch: 5, rate: unlimited}}
against: servers
order: ascending
point_limit: 10m
"""
CRITERIA = """
HERE-CAPACITY:
  description: So many at a time
  metric: Cloud.instances
  subject: service
  at_least: 8 VMs
  conditions: {servers: {at_least: 8}, mode: [quick, maintenance, acceptance]}
  source: a test
"""


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "openstack", program="cloud")


@pytest.fixture
def job(bed, tmp_path):
    """Makes the test of a point; values: its axes, as texts."""
    make = jobs(bed, tmp_path, timeout="120 s")

    def made(**values):
        own = {"servers": "4", "batch": "2", "rate": "unlimited", "networks": "1", "limit": "900"}
        return capacity.job_of(make("openstack"), own | values)

    return made


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


@pytest.fixture
def swept(world, bed):
    """A site with the cloud, a criterion on it and a sweep."""
    services_fixture.site_of(world, bed, small=False)
    world.site(criteria=CRITERIA, baselines="{}\n")
    world.own = world.folder / "own"
    world.own.mkdir()
    write(world, "8, 40")
    return world


def write(world, servers):
    (world.own / "my_servers.yaml").write_text(SWEEP.format(servers=servers))


def run(world, *words):
    return world.run(*words, SITEPROOF_SWEEPS=str(world.own))


def reframe(world):
    return run(world, "reframe", "-c", "sweeps/", "-n", "^MyServers", "-r")


def samples(world):
    """Each sample: metric without its check, servers, cause, value or status and reason."""
    found = {}
    for path in world.samples():
        for line in path.read_text().splitlines()[1:]:
            one = json.loads(line)
            key = [one["metric"].partition(".")[2], one["dims"]["servers"]]
            key += [one["dims"]["cause"]] if "cause" in one["dims"] else []
            found[tuple(key)] = one.get("value") or (one["status"], one["why"])
    return found


def shown(world):
    """What `siteproof sweep` prints, without line breaks."""
    done = run(world, "siteproof", "sweep", "my_servers")
    return done.code, " ".join(done.out.split())


def nothing_left(job):
    """Whether the cloud answers in time, and has nothing of the point."""
    try:
        return openstack.KINDS["openstack"].found(job()) == []
    except ERRORS:
        return False


def figures(found):
    return {
        (one["metric"], *one["dims"].values()): float(one["value"])
        for one in found
        if "metric" in one
    }


def test_servers_run_are_counted_and_removed_and_a_fake_answers_no_contract(swept, job):
    done = reframe(swept)
    assert done.code == 0, done
    found = samples(swept)
    for servers in ("8", "40"):
        assert found["instances", servers] == servers
        assert found["instances_per_network", servers] == str(int(servers) // 2)
        assert 1 <= int(found["hosts", servers]) <= 3
        assert found["failures", servers, "none"] == "0"
        middle, p95 = (float(found[f"seconds_to_active{end}", servers]) for end in ("", "_p95"))
        assert 0 < middle <= p95
        assert float(found["cleanup_seconds", servers]) > 0
    head = json.loads(swept.samples()[0].read_text().splitlines()[0])["conditions"]
    assert (head["hypervisor"], head["emulated"]) == ("fake", "hypervisor")
    assert head["active_by"] == "launched_at"
    assert nothing_left(job)
    code, text = shown(swept)
    assert code == 0
    assert "Cloud.instances: highest 40 VMs at 40 servers" in text
    assert "Cloud.failures: no server failed, up to 40 servers" in text
    verdict = swept.siteproof("verdict")
    assert "HERE-CAPACITY" in verdict.out and "PASS" not in verdict.out
    assert "measured with emulated hypervisor" in " ".join(verdict.out.split())


def test_a_point_over_the_quota_is_refused_with_one_line_and_creates_nothing(swept, faulty):
    faulty("openstack", "quota-full")
    reframe(swept)
    status, why = samples(swept)["*", "40"]
    assert status == "interrupted"
    assert why == "quota: it needs 40 instances, 0 are left; 40 ports, 0 are left"
    code, text = shown(swept)
    assert code == 3
    assert f"interrupted: {why}" in text


def test_servers_for_which_there_is_no_host_are_failures_with_their_cause(swept, job, faulty):
    write(swept, "8")
    faulty("openstack", "no-host")
    done = reframe(swept)
    assert done.code == 0, done
    found = samples(swept)
    assert found["instances", "8"] == "0"
    assert found["failures", "8", "no valid host"] == "8"
    assert (
        "servers fail from 8 servers on, there 8 of 8; the first cause is no valid host"
        in (shown(swept)[1])
    )
    assert nothing_left(job)


def test_a_rate_spreads_requests_over_time(job):
    found = records(job(rate="12"))
    assert {status for status, _ in ends(found).values()} == {"ok"}
    took = next(float(r["seconds"]) for r in found if r.get("end", {}).get("step") == "launch")
    assert took >= 5  # two requests, five seconds apart
    assert figures(found)["instances",] == 4


@pytest.mark.parametrize("step", ["networks", "launch", "remove"])
def test_a_point_that_is_killed_leaves_nothing(job, step):
    kill_at(job(), step)
    until(lambda: nothing_left(job), "nothing of the point is left", every=1)
