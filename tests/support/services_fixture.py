"""Real services of `testbed/services` or `testbed/cloud` for the tests of a module, in a site."""

import os
import secrets
import signal
import subprocess
import warnings
from pathlib import Path

import pytest
import yaml

from siteproof.services import runner, steps
from siteproof.services.steps import Job
from siteproof.sites import Service

PROGRAMS = Path(__file__).parents[2] / "testbed"
# The last: a registry that this machine does not reach.
_UNAVAILABLE = ("needs root", "missing Debian packages", "cannot be installed")


class Services:
    """A bed of services with a state folder of its own."""

    def __init__(self, name, program="services"):
        self.program = program
        self.state = Path(f"/run/siteproof-{program}-pytest-{os.getpid()}{name}")

    def command(self, *words):
        """Run `services WORDS…`, or `cloud WORDS…`."""
        env = os.environ | {f"SITEPROOF_{self.program.upper()}_STATE": str(self.state)}
        argv = [PROGRAMS / self.program, *words]
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=1500)

    def must(self, *words):
        """As command, but it has to succeed. Returns stdout."""
        done = self.command(*words)
        assert done.returncode == 0, f"{self.program} {words}: {done.stdout}{done.stderr}"
        return done.stdout

    def up(self, *names):
        """Start services, or skip the test, loudly, where they cannot be."""
        done = self.command("up", *names)
        if done.returncode and any(reason in done.stderr for reason in _UNAVAILABLE):
            reason = f"NO SERVICES, NOT TESTED: {done.stderr.strip()}"
            warnings.warn(reason, stacklevel=2)
            pytest.skip(reason)
        assert done.returncode == 0, done.stderr


def started(request, *names, program="services"):
    """A generator for a fixture of a module: these services, until its end."""
    bed = Services(f"-{request.module.__name__}", program)
    try:
        bed.up(*names)
        yield bed
    finally:
        bed.command("down")


def site_of(world, bed, *, small=True):
    """Let the site thishost name the services that are up; small: little data, short limits."""
    text = bed.must("site")
    if small:
        lines = [
            line[:-1] + ", timeout: 5 s" + AMOUNT * ("folder" in line or "dav" in line) + "}"
            if line.endswith("}")
            else line
            for line in text.splitlines()
        ]
        text = "\n".join(lines) + "\n"
    path = world.site() / "system.yaml"
    path.write_text(path.read_text() + "\n" + text)


AMOUNT = ", size: 2 MiB, files: 3, file_size: 4 KiB"


def jobs(bed, folder, **all_of_them):
    """Makes a test of a service by its name. all_of_them, more: keys of the service."""

    def make(name, **more):
        entry = yaml.safe_load(bed.must("site"))["services"][name]
        (folder / name).mkdir(exist_ok=True)
        service = Service.model_validate({**entry, **all_of_them, **more})
        session = f"20261125T120000Z-{secrets.token_hex(4)[:7]}"
        return Job(name, service, steps.mark(session, name), folder / name, "mine")

    return make


def breaking(bed):
    """A generator for a fixture: makes a service go wrong, until the end of the test."""
    broken = []

    def make(name, *fault):
        broken.append(name)
        bed.must("fault", name, *fault)

    yield make
    for name in broken:
        bed.must("mend", name)


def records(job):
    """All that the test of a service reports."""
    found = []
    runner.run(job, found.append)
    return found


def ends(found):
    """Each step: its status and reason."""
    return {r["end"]["step"]: (r["status"], r["why"]) for r in found if "end" in r}


def kill_at(job, step):
    """Test a service in a process that is killed when a step has begun."""
    child = os.fork()
    if child == 0:

        def stop(record):
            if record.get("begin", {}).get("step") == step:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            runner.run(job, stop)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
