"""A workflow on a real Galaxy, and each of its faults."""

import json
import re
import secrets
from pathlib import Path

import pytest
import services_fixture
from services_fixture import breaking, ends, jobs, kill_at, records, until

from siteproof.services import galaxy
from siteproof.services.galaxy import Galaxy, id_of

pytestmark = [pytest.mark.services, pytest.mark.cloud, pytest.mark.tool("Galaxy")]
STEPS = ["login", "upload", "workflow", "run", "results", "clean"]
TIME = 60  # seconds for each step, on a machine that is busy
SILENT = "no answer within 5 s"
CUT_OFF = "closed|reset|in the middle"
FAULTS = [  # fault, seconds for each step, the step that fails, its status and its reason
    (("500",), 5, "login", "generic", r"HTTP status 500 \(version\)"),
    (("hang",), 5, "login", "timeout", SILENT),
    (("down",), 5, "login", "generic", CUT_OFF),
    (("slow-line", "--value", "10"), 5, "login", "timeout", SILENT),
    (("killed-in-the-middle", "--value", "100"), 5, "login", "generic", CUT_OFF),
    (("expired-token",), 5, "login", "login", r"HTTP status 40[13] \(users/current\)"),
    (("job-fails",), TIME, "run", "generic", "the job of count: error, exit code 1: count: there"),
    (("queue-hangs",), 15, "run", "timeout", "the job of .+ is new after 13.5 s"),
    (("tool-hangs",), 15, "run", "timeout", "the job of count is running after 13.5 s"),
    (("wrong-result",), TIME, "results", "checksum", "figures: SHA-256 .{16}…, of the reference"),
]

CRITERIA = """
HERE-GALAXY:
  description: The results of the reference
  metric: Service.differing_results
  subject: service
  equals: 0 count
  conditions: {service: galaxy, mode: [quick, maintenance, acceptance]}
  source: a test
HERE-GALAXYTIME:
  description: At most a quarter longer
  metric: Service.time_of_reference
  subject: service
  at_most: 1.25 x
  conditions: {service: galaxy, mode: [quick, maintenance, acceptance]}
  source: a test
"""


@pytest.fixture(scope="module")
def bed(request):
    yield from services_fixture.started(request, "galaxy", program="cloud")


@pytest.fixture
def job(bed, tmp_path):
    return jobs(bed, tmp_path, timeout=f"{TIME} s")


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


def values(found):
    return {r["metric"]: (float(r["value"]), r["unit"]) for r in found if "metric" in r}


def active(given):
    """The jobs of the user that wait or run."""
    listed = Galaxy(given).jobs.get_jobs()
    return [one for one in listed if one["state"] not in (*galaxy._GOOD, *galaxy._BAD)]


def nothing_is_left(given):
    """Asked of Galaxy: no history with a file, no workflow, no job that waits or runs."""
    assert galaxy.found(given) == []
    until(lambda: active(given) == [], "no job waits or runs", every=0.5)
    api = Galaxy(given)
    rules = {"q": ["name-contains", "deleted"], "qv": [given.mark, "True"], "view": "detailed"}

    def purged():
        listed = api.make_get_request(f"{api.url}/histories", params=rules).json()
        return all(one["purged"] and one["size"] == 0 for one in listed)

    until(purged, "Galaxy's worker has removed the files", every=0.5)


def test_a_workflow_gives_the_results_of_the_reference_in_a_share_of_its_time(bed, job):
    given = job("galaxy", reference_time="200 s")
    found = records(given)
    assert ends(found) == dict.fromkeys(STEPS, ("ok", ""))
    nothing_is_left(given)
    figures = values(found)
    assert figures["differing_results"] == (0, "count")
    seconds, share = figures["run_time"][0], figures["time_of_reference"][0]
    assert 0 < seconds < TIME and share == pytest.approx(seconds / 200, abs=0.001)
    assert (bed.state / "galaxy/token").read_text().strip() not in json.dumps(found)


@pytest.mark.parametrize(
    ("fault", "seconds", "step", "status", "why"), FAULTS, ids=[one[0][0] for one in FAULTS]
)
def test_a_fault_has_its_step_its_status_and_its_reason_and_nothing_is_left(
    bed, job, faulty, fault, seconds, step, status, why
):
    faulty("galaxy", *fault)
    given = job("galaxy", timeout=f"{seconds} s")
    found = records(given)
    failed = {s: end for s, end in ends(found).items() if end[0] != "ok"}
    assert list(failed) == [step]  # what was made until then is removed while the fault lasts
    assert failed[step][0] == status
    assert re.search(why, failed[step][1])
    assert "Traceback" not in json.dumps(found)
    wrong = values(found).get("differing_results")
    assert wrong == ((1, "count") if fault == ("wrong-result",) else None)
    faulty.mend("galaxy")
    nothing_is_left(given)


@pytest.mark.parametrize("step", ["upload", "run"])
def test_a_test_of_galaxy_that_is_killed_leaves_nothing_behind(job, step):
    given = job("galaxy")
    kill_at(given, step)
    until(lambda: galaxy.found(given) == [], "nothing of the test is found", every=0.5)
    nothing_is_left(given)


def test_what_is_not_ours_stays_and_what_was_deleted_but_not_purged_is_ours(job):
    given = job("galaxy")
    api = Galaxy(given)
    other = id_of(api.histories.create_history(f"siteproof-{secrets.token_hex(4)}"))
    own = id_of(api.histories.create_history(given.mark))
    api.histories.delete_history(own)
    workflow = id_of(api.workflows.import_workflow_dict(galaxy.named(given)))
    try:
        assert galaxy.found(given) == [f"{given.mark} (history)", f"{given.mark} (workflow)"]
        for name in galaxy.found(given):
            galaxy.remove(given, name)
            galaxy.remove(given, name)  # gone is no error
        assert galaxy.found(given) == []
        assert api.histories.show_history(own)["purged"]
        assert api.workflows.show_workflow(workflow)["deleted"]
        assert not api.histories.show_history(other)["deleted"]
    finally:
        api.histories.delete_history(other, purge=True)


def test_a_tool_that_galaxy_does_not_have_is_named(job, tmp_path):
    given = job("galaxy")
    workflow = json.loads(Path(given.service.workflow).read_text())
    workflow["steps"]["1"]["tool_id"] = "no_such_tool"
    (tmp_path / "other.ga").write_text(json.dumps(workflow))
    given = job("galaxy", workflow=f"{tmp_path}/other.ga")
    failed = {s: end for s, end in ends(records(given)).items() if end[0] != "ok"}
    assert list(failed) == ["run"]
    assert failed["run"][0] == "generic" and "no_such_tool" in failed["run"][1]
    nothing_is_left(given)


@pytest.mark.parametrize(
    ("fault", "reference", "verdict"),
    [("", "10 min", "PASS"), ("wrong-result", "100 ms", "FAIL")],
    ids=["works", "another result, and late"],
)
def test_the_criteria_on_results_and_time_have_a_verdict(
    world, bed, faulty, fault, reference, verdict
):
    services_fixture.site_of(world, bed, small=False)
    path = world.site() / "system.yaml"
    path.write_text(path.read_text().replace("results:", f"reference_time: {reference}, results:"))
    world.site(criteria=CRITERIA, baselines="{}\n")
    if fault:
        faulty("galaxy", fault)
    run = world.reframe("-n", "Service", "-r")
    assert (run.code == 0) == (not fault), run
    assert world.siteproof("verdict").code == (1 if fault else 0)
    assert world.verdicts() == {"HERE-GALAXY": verdict, "HERE-GALAXYTIME": verdict}
