"""What a user gets of real services: reframe, verdict, matrix, probe and clean, and each fault."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
import services_fixture
from services_fixture import breaking, until

pytestmark = [pytest.mark.services, pytest.mark.tool("OpenSSH", "rsync", "nginx")]
CRITERION = """
HERE-{name}:
  description: It works
  metric: Service.failures
  subject: service
  equals: 0 count
  conditions: {{service: {service}, mode: [quick, maintenance, acceptance]}}
  source: a test
"""
PROTOCOLS = """
HERE-PROTOCOLS:
  description: All protocols work
  metric: Transfer.failed_services
  subject: service
  equals: 0 count
  conditions: {service: [sftp, rsync, http], mode: [quick, maintenance, acceptance]}
  source: a test
"""
FAILURES = """
HERE-ERR-{name}:
  description: No transfer fails
  metric: Transfer.{metric}
  subject: service
  equals: 0 count
  conditions: {{mode: [quick, maintenance, acceptance]}}
  source: a test
"""
CLASSES = {
    "LOGIN": "login_failures",
    "TIMEOUT": "timeouts",
    "CHECKSUM": "checksum_failures",
    "GENERIC": "generic_errors",
}


@pytest.fixture(scope="module")
def bed(request):
    return services_fixture.shared(request, "sftp", "http")


@pytest.fixture
def here(world, bed):
    """A site with the services and criteria on them."""
    services_fixture.site_of(world, bed, "sftp", "rsync", "http", "portal")
    names = {"SFTP": "sftp", "RSYNC": "rsync", "HTTP": "http", "PORTAL": "portal"}
    text = "".join(CRITERION.format(name=n, service=s) for n, s in names.items())
    text += PROTOCOLS + "".join(FAILURES.format(name=n, metric=m) for n, m in CLASSES.items())
    world.site(criteria=text, baselines="{}\n")
    return world


@pytest.fixture
def faulty(bed):
    yield from breaking(bed)


def files_left(bed):
    """What is in the folders of the services."""
    folders = ("sftp/incoming", "http/data/dav")
    return [p for f in folders for p in (bed.state / f).rglob("*") if p.name != "filler"]


def secrets_of(bed):
    """What must be nowhere: the token, and the key without its frame."""
    key = (bed.state / "sftp/user").read_text().splitlines()
    return [(bed.state / "http/token").read_text().strip(), key[2]]


def must_not_show_secrets(here, bed, *texts):
    """In none of these texts, and in none of the files of the run."""
    files = [path for path in here.data.rglob("*") if path.is_file()]
    shown = [*texts, *(path.read_text(errors="replace") for path in files)]
    for secret in secrets_of(bed):
        assert not any(secret in text for text in shown)


def service(here, name, *words):
    return here.reframe("-n", f"Service%service={name}", "-r", *words)


def failed(here):
    """Each step of the newest session that failed, by its service: its status."""
    found = {}
    for path in here.samples():
        head, *lines = map(json.loads, path.read_text().splitlines())
        for record in lines:
            step = record.get("dims", {}).get("step")
            if step and record.get("status", "ok") != "ok":
                assert record["why"], record
                found[head["conditions"]["service"], step] = record["status"]
    return found


def seen_of_processes(run):
    """What any user could read of the arguments and environments of processes, until a run ends."""
    seen = set()
    while run.poll() is None:
        time.sleep(0.1)
        for process in Path("/proc").glob("[0-9]*"):
            for file in ("cmdline", "environ"):
                try:
                    seen.add((process / file).read_bytes().decode(errors="replace"))
                except OSError:  # it has ended
                    continue
    return seen


def test_services_that_work_pass_and_leave_nothing(here, bed):
    planned = here.siteproof("plan", "-n", "Service")
    assert "4 jobs" in planned.out
    run = here.start("reframe", "-c", "checks/", "-n", "Service", "-r", "--keep-stage-files")
    seen = seen_of_processes(run)
    said = run.communicate()
    assert run.returncode == 0, said
    verdict = here.siteproof("verdict")
    assert verdict.code == 0, verdict
    assert set(here.verdicts().values()) == {"PASS"}
    matrix = here.siteproof("matrix", "Service.rate", "--daily", "--plain")
    pairs = {tuple(line.split("\t")[:2]) for line in matrix.out.splitlines()[1:]}
    far = ("sftp", "rsync", "http")
    assert pairs == {p for n in far for p in ((n, "thishost"), ("thishost", n))}
    assert files_left(bed) == []
    assert sum("siteproof.services" in text for text in seen) >= 4  # each job was seen
    must_not_show_secrets(here, bed, planned.out, planned.err, *said, verdict.out, *seen)


ANY = {"put", "get"}  # a file is altered when it is there: on a busy machine after it was compared
RUNS = {  # the fault of the sftp server and of the web server; the step of each service that fails
    "login": (
        ("wrong-host-key", "expired-certificate"),
        {"sftp": {"login"}, "rsync": {"login"}, "http": {"login"}, "portal": {"page"}},
    ),
    "timeout": (
        ("hang", "hang"),
        {"sftp": {"login"}, "rsync": {"login"}, "http": {"login"}, "portal": {"page"}},
    ),
    "checksum": (("wrong-checksum", "wrong-checksum"), {"sftp": ANY, "rsync": ANY, "http": ANY}),
    "generic": (
        ("full-disk", "500"),
        {"sftp": {"quota"}, "rsync": {"quota"}, "http": {"login"}, "portal": {"page"}},
    ),
}


@pytest.mark.parametrize("status", RUNS)
def test_faults_of_a_class_are_named_by_service_step_and_class(here, bed, faulty, status):
    """What else each kind of service says of each of its faults: test_service_transfers."""
    (of_sftp, of_http), steps = RUNS[status]
    faulty("sftp", of_sftp)
    faulty("http", of_http)
    if status == "timeout":
        here.edit("system", "timeout: 20 s", "timeout: 2 s")
    run = here.reframe("-n", "Service", "-r")
    assert run.code == 1, run
    found = failed(here)
    assert {name for name, _ in found} == set(steps), found
    assert all(step in steps[name] for name, step in found), found
    assert set(found.values()) == {status}, found
    verdicts = here.verdicts()
    for name in ("sftp", "rsync", "http", "portal"):
        assert verdicts[f"HERE-{name.upper()}"] == ("FAIL" if name in steps else "PASS")
    for other in CLASSES:
        expected = "FAIL" if other.lower() == status else "PASS"
        assert verdicts[f"HERE-ERR-{other}"] == expected, other
    shown = here.siteproof("verdict")
    assert shown.code == 1
    assert "Traceback" not in shown.out + shown.err + run.out + run.err
    must_not_show_secrets(here, bed, run.out, run.err, shown.out, shown.err)
    faulty.mend("sftp", "http")
    if status == "timeout":
        here.edit("system", "timeout: 2 s", "timeout: 20 s")
    cleaned = here.siteproof("services", "clean", "--apply")
    assert cleaned.code == 0, cleaned.out + cleaned.err
    assert files_left(bed) == []


def begun(here, bed):
    """A run that has created something at the service, which takes long."""
    run = here.start("reframe", "-c", "checks/", "-n", "Service%service=sftp", "-r")
    until(lambda: any(p.is_file() for p in files_left(bed)), "a file at the service")
    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_ctrl_c_nothing_is_left_behind(here, bed, faulty, number):
    here.edit("system", "size: 2 MiB", "size: 64 MiB")
    faulty("sftp", "slow-line", "--value", "3000000")
    run = begun(here, bed)
    os.kill(run.pid, number)
    out, err = run.communicate(timeout=60)
    assert "Traceback" not in out + err
    until(lambda: not files_left(bed), "no file at the service")


def test_what_a_killed_test_has_left_is_found_at_the_service_and_removed(here, bed):
    """The guardian, too, is killed, as Slurm does with a job's processes."""
    left = bed.state / "sftp/incoming/siteproof-sftp-20260101T000000Z-0123456"
    left.mkdir()
    (left / "large").write_text("x")
    other = bed.state / "sftp/incoming/notes"
    other.write_text("of somebody else")
    done = here.siteproof("services", "clean", "sftp", "--apply")
    assert done.code == 0, done
    assert f"removed  {left.name}" in done.out
    assert not left.exists() and other.exists()
    other.unlink()
    again = here.siteproof("services", "clean", "sftp", "--apply")
    assert again.out.splitlines()[0] == "sftp: nothing is left"


def test_a_probe_uses_the_service_and_names_the_step_that_fails(here, bed, faulty):
    path = here.site() / "system.yaml"
    text = "\nprobes:\n  files: {kind: service, target: http, timeout: 60 s}\n"
    path.write_text(path.read_text() + text)
    here.data.mkdir()
    done = here.siteproof("probe", "files")
    assert done.code == 0, done.out + done.err
    faulty("http", "expired-token")
    done = here.siteproof("probe", "files")
    assert done.code == 1
    assert "DOWN: login: " in done.out and "(login)" in done.out
    assert files_left(bed) == []


def test_a_test_beyond_its_limits_does_not_begin(here, bed):
    here.edit("system", "size: 2 MiB", "most_written: 1 MiB, size: 2 MiB")
    planned = here.siteproof("plan", "-n", "Service%service=sftp")
    why = "it would write 2.012 MiB, most_written is 1 MiB"
    assert why in " ".join(planned.out.split())
    run = service(here, "sftp")
    assert why in " ".join(run.out.split())
    assert here.samples() == []


def test_a_credential_that_others_may_read_is_refused(here, bed, tmp_path):
    key = tmp_path / "key"
    key.write_text((bed.state / "sftp/user").read_text())
    key.chmod(0o644)
    here.edit("system", str(bed.state / "sftp/user"), str(key))
    run = service(here, "sftp")
    assert run.code == 1
    assert f"others may read {key}" in " ".join(run.out.split())
    verdicts = here.verdicts()  # of the other services nothing is known
    assert verdicts["HERE-ERR-LOGIN"] == "FAIL"
    assert {verdicts[f"HERE-ERR-{one}"] for one in CLASSES if one != "LOGIN"} == {"INCOMPLETE"}
