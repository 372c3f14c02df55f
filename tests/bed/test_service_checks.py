"""What a user gets of real services: reframe, verdict, matrix, probe and clean, and each fault."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
import services_fixture
from clone import wait_for
from services_fixture import breaking

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
    yield from services_fixture.started(request, "sftp", "http")


@pytest.fixture
def here(world, bed):
    """A site with the services and criteria on them."""
    services_fixture.site_of(world, bed)
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


def must_not_show_secrets(here, bed, *done):
    texts = [text for one in done for text in (one.out, one.err)]
    for path in here.data.rglob("*"):
        if path.is_file():
            texts.append(path.read_text(errors="replace"))
    for secret in secrets_of(bed):
        assert not any(secret in text for text in texts)


def service(here, name, *words):
    return here.reframe("-n", f"Service%service={name}", "-r", *words)


def steps(here):
    """Each step of the newest session: its status and reason."""
    found = {}
    for path in here.samples():
        for line in path.read_text().splitlines()[1:]:
            record = json.loads(line)
            if step := record.get("dims", {}).get("step"):
                found[step] = record.get("status", "ok"), record.get("why", "")
    return found


def test_services_that_work_pass_and_leave_nothing_behind(here, bed):
    planned = here.siteproof("plan", "-n", "Service")
    assert "4 jobs" in planned.out
    run = here.reframe("-n", "Service", "-r", "--keep-stage-files")
    assert run.code == 0, run
    verdict = here.siteproof("verdict")
    assert verdict.code == 0, verdict
    assert set(here.verdicts().values()) == {"PASS"}
    matrix = here.siteproof("matrix", "Service.rate", "--daily", "--plain")
    pairs = {tuple(line.split("\t")[:2]) for line in matrix.out.splitlines()[1:]}
    far = ("sftp", "rsync", "http")
    assert pairs == {p for n in far for p in ((n, "thishost"), ("thishost", n))}
    assert files_left(bed) == []
    must_not_show_secrets(here, bed, planned, run, verdict)


ANY = ""  # a file is altered when it is there: on a busy machine after it was compared
CASES = [
    ("sftp", "sftp", ("hang",), "login", "timeout", "TIMEOUT"),
    ("sftp", "sftp", ("down",), "login", "generic", "GENERIC"),
    ("sftp", "sftp", ("wrong-host-key",), "login", "login", "LOGIN"),
    ("sftp", "sftp", ("refused-key",), "login", "login", "LOGIN"),
    ("sftp", "sftp", ("full-disk",), "quota", "generic", "GENERIC"),
    ("sftp", "sftp", ("wrong-checksum",), ANY, "checksum", "CHECKSUM"),
    ("sftp", "sftp", ("slow-line", "--value", "100000"), "put", "timeout", "TIMEOUT"),
    ("sftp", "sftp", ("killed-in-the-middle", "--value", "500000"), "put", "generic", "GENERIC"),
    ("sftp", "rsync", ("wrong-host-key",), "login", "login", "LOGIN"),
    ("sftp", "rsync", ("wrong-checksum",), ANY, "checksum", "CHECKSUM"),
    ("sftp", "rsync", ("slow-line", "--value", "100000"), "put", "timeout", "TIMEOUT"),
    ("http", "http", ("500",), "login", "generic", "GENERIC"),
    ("http", "http", ("hang",), "login", "timeout", "TIMEOUT"),
    ("http", "http", ("expired-token",), "login", "login", "LOGIN"),
    ("http", "http", ("expired-certificate",), "login", "login", "LOGIN"),
    ("http", "http", ("full-disk",), "put", "generic", "GENERIC"),
    ("http", "http", ("wrong-checksum",), ANY, "checksum", "CHECKSUM"),
    ("http", "http", ("slow-line", "--value", "100000"), "put", "timeout", "TIMEOUT"),
    ("http", "http", ("killed-in-the-middle", "--value", "500000"), "put", "generic", "GENERIC"),
    ("http", "portal", ("500",), "page", "generic", None),
    ("http", "portal", ("hang",), "page", "timeout", None),
    ("http", "portal", ("expired-certificate",), "page", "login", None),
]


@pytest.mark.parametrize(("of", "name", "fault", "step", "status", "category"), CASES)
def test_a_fault_is_named_by_its_step_and_class(
    here, bed, faulty, of, name, fault, step, status, category
):
    faulty(of, *fault)
    run = service(here, name)
    assert run.code == 1, run
    found = steps(here)
    failed = {place: end for place, end in found.items() if end[0] != "ok"}
    assert set(failed) == {step} if step else failed, found
    assert {end[0] for end in failed.values()} == {status}
    assert all(why for _, why in failed.values())
    verdicts = here.verdicts()
    assert verdicts[f"HERE-{name.upper()}"] == "FAIL"
    for other in CLASSES if category else ():
        assert verdicts[f"HERE-ERR-{other}"] == ("FAIL" if other == category else "INCOMPLETE")
    shown = here.siteproof("verdict")
    assert shown.code == 1
    assert "Traceback" not in shown.out + shown.err + run.out + run.err
    must_not_show_secrets(here, bed, run, shown)
    bed.must("mend", of)
    assert here.siteproof("services", "clean").code == 0
    assert files_left(bed) == []


def begun(here, bed):
    """A run that has created something at the service, which takes long."""
    run = here.start("reframe", "-c", "checks/", "-n", "Service%service=sftp", "-r")
    wait_for(lambda: any(p.is_file() for p in files_left(bed)))
    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_ctrl_c_nothing_is_left_behind(here, bed, faulty, number):
    here.edit("system", "size: 2 MiB", "size: 64 MiB")
    faulty("sftp", "slow-line", "--value", "3000000")
    run = begun(here, bed)
    os.kill(run.pid, number)
    out, err = run.communicate(timeout=60)
    assert "Traceback" not in out + err
    wait_for(lambda: not files_left(bed))


def test_what_a_killed_test_has_left_is_found_at_the_service_and_removed(here, bed):
    """The guardian, too, is killed, as Slurm does with a job's processes."""
    left = bed.state / "sftp/incoming/siteproof-sftp-20260101T000000Z-0123456"
    left.mkdir()
    (left / "large").write_text("x")
    other = bed.state / "sftp/incoming/notes"
    other.write_text("of somebody else")
    done = here.siteproof("services", "clean", "sftp")
    assert done.code == 0, done
    assert f"removed  {left.name}" in done.out
    assert not left.exists() and other.exists()
    other.unlink()
    again = here.siteproof("services", "clean", "sftp")
    assert again.out.splitlines()[0] == "sftp: nothing is left"


def test_a_probe_uses_the_service_and_names_the_step_that_fails(here, bed, faulty):
    path = here.site() / "system.yaml"
    text = "\nprobes:\n  files: {kind: service, target: http, timeout: 20 s}\n"
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


def test_the_process_list_shows_no_credential(here, bed, faulty):
    faulty("http", "slow-line", "--value", "300000")
    run = here.start("reframe", "-c", "checks/", "-n", "Service%service=http", "-r")
    seen = set()
    until = time.monotonic() + 60
    while run.poll() is None and time.monotonic() < until:
        for proc in Path("/proc").glob("[0-9]*"):
            for file in ("cmdline", "environ"):
                try:
                    seen.add((proc / file).read_bytes().decode(errors="replace"))
                except OSError:
                    continue
        time.sleep(0.2)
    run.communicate()
    for secret in secrets_of(bed):
        assert not any(secret in text for text in seen)
