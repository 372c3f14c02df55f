"""The runner of a service's test: time limits, and nothing left behind however it ends.

The service is a folder on this machine, so that what is left is seen on disk.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import pytest
from rows import rows
from services_fixture import ends, records

from siteproof.services import runner, steps
from siteproof.services.steps import Job, StepFailed
from siteproof.sites import Service

SESSION = "20261125T120000Z-0123456"


@pytest.fixture
def job(tmp_path):
    for name in ("far", "scratch"):
        (tmp_path / name).mkdir()
    entry = Service(kind="web", address="http://127.0.0.1/", timeout="1 s")
    return Job("folder", entry, steps.mark(SESSION, "folder"), tmp_path / "scratch", "mine")


@pytest.fixture
def far(job, monkeypatch):
    """A service that is a folder; `far.test` is what its test does."""
    folder = job.scratch.parent / "far"
    found = SimpleNamespace(
        folder=folder,
        test=lambda job, steps: None,
        found=lambda job: [path.name for path in folder.iterdir()],
        remove=lambda job, name: (folder / name).unlink(),
        explain=steps.unexplained,
        make=lambda job, name="": (folder / (job.mark + name)).write_text(""),
    )
    monkeypatch.setattr(runner, "kind_of", lambda job: found)
    return found


def test_what_a_test_creates_is_removed_and_what_others_have_stays(job, far):
    other = steps.mark(SESSION, "folder-2")
    (far.folder / other).write_text("")
    (far.folder / "siteproof-notes.txt").write_text("")

    def test(job, steps):
        with steps.step("put"):
            far.make(job)
            far.make(job, ".large")

    far.test = test
    assert ends(records(job)) == {"put": ("ok", ""), "clean": ("ok", "")}
    assert {path.name for path in far.folder.iterdir()} == {other, "siteproof-notes.txt"}
    assert not job.scratch.exists()


def test_what_the_service_still_has_after_the_removal_is_a_failure(job, far):
    far.test = lambda job, steps: far.make(job)
    far.remove = lambda job, name: None
    found = ends(records(job))
    assert found["clean"] == ("generic", f"1 thing left behind: {job.mark}")


@pytest.mark.deep
def test_a_step_that_hangs_is_a_timeout_and_the_rest_is_cleaned(job, far):
    def test(job, steps):
        with steps.step("put"):
            far.make(job)
        with steps.step("get", direction="in"):
            subprocess.run(["sleep", "60"])

    far.test = test
    found = records(job)
    assert ends(found)["get"] == ("timeout", "no answer within 1 s")
    assert {"end", "seconds", "status", "why"} == set(
        next(r for r in found if r.get("end", {}).get("direction"))
    )
    assert ends(found)["clean"] == ("ok", "")
    assert list(far.folder.iterdir()) == []


def test_a_library_that_kills_its_process_is_named(job, far):
    def test(job, steps):
        with steps.step("put"):
            os.kill(os.getpid(), signal.SIGKILL)

    far.test = test
    assert ends(records(job))["put"] == ("killed", "ended by signal 9")


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended by signal 9"),
        (lambda: os._exit(0), "ended before its end"),
        (lambda: sys.exit(3), "ended before its end"),
    ],
)
def test_a_test_that_dies_between_two_steps_is_no_success(job, far, end, why):
    def test(job, steps):
        with steps.step("login"):
            pass
        end()

    far.test = test
    found = ends(records(job))
    assert found["test"] == ("killed", why)
    assert found["clean"] == ("ok", "")


def test_a_thing_that_cannot_be_removed_does_not_keep_the_others(job, far):
    def remove(job, name):
        if name.endswith(".a"):
            raise StepFailed("HTTP status 500")
        (far.folder / name).unlink()

    def test(job, steps):
        with steps.step("put"):
            far.make(job, ".a")
            far.make(job, ".b")

    far.test, far.remove = test, remove
    assert ends(records(job))["clean"] == ("generic", "HTTP status 500")
    assert [path.name for path in far.folder.iterdir()] == [f"{job.mark}.a"]


def test_an_error_outside_of_steps_is_a_failure_without_traceback(job, far, capfd):
    def test(job, steps):
        raise ValueError("what\n happened")

    far.test = test
    assert ends(records(job))["test"] == ("generic", "ValueError: what happened")
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_failure_outside_of_steps_is_no_success(job, far):
    def test(job, steps):
        with steps.step("login"):
            pass
        raise StepFailed("the key is not private", "login")

    far.test = test
    found = ends(records(job))
    assert found["test"] == ("login", "the key is not private")
    assert found["clean"] == ("ok", "")


def test_after_a_first_step_that_failed_the_service_is_not_met_again(job, far):
    def test(job, steps):
        with steps.step("login"):
            raise StepFailed("refused", "login")

    far.test = test
    assert ends(records(job)) == {"login": ("login", "refused")}


def test_a_service_that_does_not_answer_at_the_end_is_not_clean(job, far):
    def found(job):
        raise StepFailed("HTTP status 500")

    far.found = found
    assert ends(records(job))["clean"] == ("generic", "HTTP status 500")


KILLED = """
    import os, sys, time
    from pathlib import Path
    from siteproof.services import runner, steps
    from siteproof.services.steps import Job
    from siteproof.sites import Service

    top = Path(sys.argv[1])
    entry = Service(kind="web", address="http://127.0.0.1/", timeout="30 s")
    job = Job("folder", entry, steps.mark("{session}", "folder"), top / "scratch", "mine")
    far = top / "far"

    def test(job, steps):
        with steps.step("put"):
            (far / job.mark).write_text("")
            print("created", flush=True, file=sys.stderr)
            time.sleep(60)

    def remove(job, name):
        (job.scratch / "needed").write_text("")
        (far / name).unlink()

    kind = steps.Kind(test, found=lambda job: os.listdir(far), remove=remove)
    runner.kind_of = lambda job: kind
    runner.run(job, lambda record: None)
"""


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whoever_ends_the_test_what_it_created_is_removed(job, number):
    """As ReFrame does at Ctrl-C: the whole process group is ended, and killed."""
    top = job.scratch.parent
    program = textwrap.dedent(KILLED).format(session=SESSION)
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(top)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr.readline() == "created\n"
    shutil.rmtree(top / "scratch")  # as a job's own files are, when it ends
    os.killpg(process.pid, number)
    process.wait(10)
    until = time.monotonic() + 20
    while any((top / "far").iterdir()) or job.scratch.exists():
        assert time.monotonic() < until, "left behind"
        time.sleep(0.05)


def test_a_node_without_a_library_of_the_extra_lacks_the_tool(job, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "MODULES", {"web": ("json", "not_there")})
    entry = {"name": "web", "mark": job.mark, "system": "x", "service": job.service.as_written()}
    (tmp_path / "service.json").write_text(json.dumps(entry))
    with pytest.raises(SystemExit) as ended:
        runner.load(tmp_path / "service.json")
    assert ended.value.code == 127  # as of a shell: tool_missing
    told = "services of kind web need the extra 'services' (not installed: not_there): 'make venv'"
    assert capsys.readouterr().err.startswith(told)


def test_no_credential_is_in_a_record(job, far, tmp_path):
    path = tmp_path / "token"
    path.write_text("hunter2-token\n")
    path.chmod(0o600)

    def test(job, given):
        with given.step("login"):
            token = steps.secret("token", str(path))
            raise StepFailed(f"401 for Bearer {token}", "login")

    far.test = test
    found = records(job)
    assert ends(found)["login"] == ("login", "401 for Bearer ***")
    assert "hunter2" not in json.dumps(found)


@rows(
    "mode, content, why",
    [
        (0o644, "secret", "others may read {path} (mode 644): 'chmod 600 {path}'"),
        (0o600, "", "{path} is empty"),
        (None, "", "{path} cannot be read: No such file or directory"),
    ],
)
def test_a_credential_that_is_not_private_is_refused(tmp_path, mode, content, why):
    path = tmp_path / "key"
    if mode is not None:
        path.write_text(content)
        path.chmod(mode)
    with pytest.raises(StepFailed) as error:
        steps.secret("key", str(path))
    assert error.value.status == "login"
    assert str(error.value) == "key: " + why.format(path=path)


@rows(
    "name, expected",
    [
        (f"siteproof-sftp-{SESSION}", ("sftp", SESSION)),
        (f"siteproof-sftp-2-{SESSION}.large", ("sftp-2", SESSION)),
        (f"siteproof-sftp-{SESSION}/x", ("sftp", SESSION)),
        (f"siteproof-sftp-{SESSION}9", None),
        ("siteproof-sftp-2026", None),
        ("../siteproof-sftp-20261125T120000Z-0123456", None),
        ("siteproof-notes", None),
    ],
)
def test_only_names_that_a_test_makes_are_ours(name, expected):
    assert steps.marked(name) == expected
