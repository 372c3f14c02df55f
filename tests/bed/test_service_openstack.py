"""Virtual machines on a real OpenStack with a fake hypervisor, and each of its faults."""

import json
import re
from contextlib import suppress

import pytest
import services_fixture
from services_fixture import breaking, ends, jobs, kill_at, records, until

from siteproof.services.openstack import KINDS
from siteproof.services.openstack_api import ERRORS, Cloud

CLOUD = KINDS["openstack"]
pytestmark = [pytest.mark.services, pytest.mark.cloud, pytest.mark.tool("OpenStack")]
LIFE = [
    *("login", "image_up", "image_down", "image_delete", "network", "launch", "launch_other"),
    *("network_ports", "console", "suspend", "resume", "stop", "start", "snapshot"),
    *("snapshot_boot", "snapshot_delete", "volume_create", "volume_attach", "volume_attach_end"),
    *("volume_elsewhere", "volume_elsewhere_end", "volume_snapshot", "volume_delete", "shelve"),
    *("unshelve", "resize", "resize_confirm", "delete", "clean"),
]
SILENT = "no answer within (5|20) s"
# For each step where no answer comes in time; those before it need a part of that.
SECONDS, AMPLE = {"hang": 5, "volume-stuck": 20}, 120
FAULTS = [  # fault, scenarios, the step that fails, its status and its reason
    (("500",), [], "login", "generic", "HTTP status 500"),
    (("hang",), [], "login", "timeout", SILENT),
    (("down",), [], "login", "generic", "closed|reset|aborted|refused"),
    (("expired-token",), [], "login", "login", "HTTP status 401"),
    (
        ("quota-full",),
        ["launch"],
        "launch",
        "generic",
        "HTTP status 403: (Quota|Maximum number of ports) exceeded",
    ),
    (("server-error",), ["launch"], "launch", "generic", "server is ERROR: .+"),
    (("no-host",), ["launch"], "launch", "generic", "server is ERROR: No valid host"),
    (("volume-stuck",), ["volume"], "volume_create", "timeout", SILENT),
]


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "openstack", program="cloud")


@pytest.fixture
def job(bed, tmp_path):
    return jobs(bed, tmp_path, size="1 MiB", timeout=f"{AMPLE} s")


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


def test_a_virtual_machine_is_launched_moved_kept_resized_and_removed(bed, job):
    given = job("openstack")
    found = records(given)
    assert ends(found) == dict.fromkeys(LIFE, ("ok", ""))
    assert CLOUD.found(given) == []
    conditions = {k: v for r in found for k, v in r.get("conditions", {}).items()}
    assert (conditions["hypervisor"], conditions["emulated"]) == ("fake", "hypervisor")
    assert conditions["guest"] == "no"
    password = (bed.state / "openstack/credentials").read_text().split("password=")[1].split()[0]
    assert password not in json.dumps(found)


def test_trials_have_a_median_and_a_worst_of_each_step(job):
    found = records(job("openstack", trials=2, scenarios=["image"]))
    figures = {
        (r["metric"], r["dims"]["step"]): (float(r["value"]), r["dims"]["trials"])
        for r in found
        if "metric" in r
    }
    median, worst = (figures[f"seconds_{name}", "image_up"] for name in ("median", "worst"))
    assert median[0] <= worst[0] and median[1] == worst[1] == "2"
    trials = [r["end"]["trial"] for r in found if r.get("end", {}).get("step") == "image_up"]
    assert trials == ["1", "2"]


@pytest.mark.parametrize(
    ("fault", "scenarios", "step", "status", "why"), FAULTS, ids=[one[0][0] for one in FAULTS]
)
def test_a_fault_has_its_step_its_status_and_its_reason_and_nothing_is_left(
    bed, job, faulty, fault, scenarios, step, status, why
):
    faulty("openstack", *fault)
    seconds = SECONDS.get(fault[0], AMPLE)
    given = job("openstack", timeout=f"{seconds} s", scenarios=scenarios)
    found = records(given)
    failed = {s: end for s, end in ends(found).items() if end[0] != "ok" and s != "clean"}
    assert list(failed) == [step]
    assert failed[step][0] == status
    assert re.search(why, failed[step][1])
    assert "Traceback" not in json.dumps(found)
    faulty.mend("openstack")
    given = job("openstack")
    until(lambda: knows_us(given), "a login is accepted again", every=1)
    for name in CLOUD.found(given):  # of a fault that also keeps us from removing
        CLOUD.remove(given, name)
    assert CLOUD.found(given) == []


def knows_us(given):
    """Whether a login is accepted again: the cloud's services remember a refusal for a while."""
    with suppress(*ERRORS):
        return CLOUD.found(given) is not None
    return False


@pytest.mark.parametrize("step", ["image_up", "launch", "volume_attach"])
def test_a_test_of_a_cloud_that_is_killed_leaves_nothing_behind(bed, job, step):
    given = job("openstack", scenarios=["image", "launch", "volume"])
    kill_at(given, step)
    until(lambda: CLOUD.found(given) == [], "nothing of the test is left", every=1)


def test_what_is_not_ours_in_the_project_stays(bed, job):
    given = job("openstack")
    api = Cloud(given).api
    other = api.network.create_network(name="siteproof-of-somebody")
    try:
        assert CLOUD.found(given) == []
    finally:
        api.network.delete_network(other)


def test_a_flavor_that_the_cloud_does_not_have_is_named(job):
    found = ends(records(job("openstack", flavor="none-such", scenarios=["launch"])))
    assert found["launch"][0] == "generic"
    assert "none-such" in found["launch"][1]


def test_a_password_that_is_wrong_is_a_login(bed, job, tmp_path):
    text = (bed.state / "openstack/credentials").read_text()
    wrong = tmp_path / "credentials"
    wrong.touch(mode=0o600)
    wrong.write_text(re.sub("password=.*", "password=wrong-one", text))
    status, why = ends(records(job("openstack", credentials=f"{wrong}")))["login"]
    assert status == "login" and "HTTP status 401" in why
