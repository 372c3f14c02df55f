"""Services of `testbed/services` or `testbed/cloud` for tests: each is started once a process."""

import json
import os
import secrets
import signal
import subprocess
import time
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from clone import PATIENCE

from siteproof.services import runner, steps
from siteproof.services.steps import Job
from siteproof.sites import Service

PROGRAMS = Path(__file__).parents[2] / "testbed"
# The last: a registry that this machine does not reach.
_UNAVAILABLE = ("needs root", "missing Debian packages", "cannot be installed")
_beds = {}  # the bed of each program that the tests of this process share


class Services:
    """A bed of services with a state folder of its own."""

    def __init__(self, name, program="services"):
        self.program = program
        self.state = Path(f"/run/siteproof-{program}-pytest-{os.getpid()}{name}")
        self._site = None

    @property
    def environment(self):
        """What to set so that the command means this bed."""
        return os.environ | {f"SITEPROOF_{self.program.upper()}_STATE": str(self.state)}

    def command(self, *words):
        """Run `services WORDS…`, or `cloud WORDS…`."""
        argv = [PROGRAMS / self.program, *words]
        return subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, timeout=1500
        )

    def must(self, *words):
        """As command, but it has to succeed. Returns stdout."""
        done = self.command(*words)
        assert done.returncode == 0, f"{self.program} {words}: {done.stdout}{done.stderr}"
        return done.stdout

    def up(self, *names):
        """Start services, or skip the test, loudly, where they cannot be."""
        self._site = None
        done = self.command("up", *names)
        if done.returncode and any(reason in done.stderr for reason in _UNAVAILABLE):
            reason = f"NO SERVICES, NOT TESTED: {done.stderr.strip()}"
            warnings.warn(reason, stacklevel=2)
            pytest.skip(reason)
        assert done.returncode == 0, done.stderr

    @property
    def site(self):
        """The services that are up, as a site names them; asked once after each `up`."""
        if self._site is None:
            self._site = yaml.safe_load(self.must("site"))["services"]
        return self._site


def shared(request, *names, program="services"):
    """The bed that all files of this process share, with these services up; it ends with pytest."""
    if program not in _beds:
        _beds[program] = Services("", program)
        request.config.add_cleanup(lambda: _beds.pop(program).command("down"))
    _beds[program].up(*names)
    return _beds[program]


def started(request, *names, program="services"):
    """A generator for a fixture of a module: a bed of its own, until its end."""
    bed = Services(f"-{request.module.__name__}", program)
    try:
        bed.up(*names)
        yield bed
    finally:
        bed.command("down")


def own(request, program="services"):
    """A generator for a fixture: a bed that nothing is in yet, until the end of the test."""
    bed = Services(f"-{request.node.name[:40]}", program)
    yield bed
    bed.command("down")


def site_of(world, bed, *names, small=True, seconds=20):
    """Let the site thishost name services that are up: these, or all.

    small: little data, and so many seconds for each step.
    """
    lines = ["services:"]
    for line in bed.must("site").splitlines()[1:]:
        if not names or line.split(":")[0].strip() in names:
            lines.append(_small(line, seconds) if small else line)
    path = world.site() / "system.yaml"
    path.write_text("\n".join([path.read_text(), *lines]) + "\n")


def _small(line, seconds):
    """The line of a service with a time limit, and an amount if it keeps files."""
    amount = AMOUNT if "folder" in line or "dav" in line else ""
    return f"{line[:-1]}, timeout: {seconds} s{amount}}}"


AMOUNT = ", size: 2 MiB, files: 3, file_size: 4 KiB"


def jobs(bed, folder, **all_of_them):
    """Makes a test of a service by its name. all_of_them, more: keys of the service."""

    def make(name, **more):
        (folder / name).mkdir(exist_ok=True)
        service = Service.model_validate({**bed.site[name], **all_of_them, **more})
        session = f"20261125T120000Z-{secrets.token_hex(4)[:7]}"
        return Job(name, service, steps.mark(session, name), folder / name, "mine")

    return make


class Faults:
    """Makes services of a bed go wrong, and mends each once."""

    def __init__(self, bed):
        self.bed, self.broken = bed, set()

    def __call__(self, name, *fault):
        self.broken.add(name)
        self.bed.must("fault", name, *fault)

    def mend(self, *names):
        for name in names:
            self.bed.must("mend", name)
            self.broken.discard(name)


def breaking(bed):
    """A generator for a fixture: makes services go wrong, until the end of the test."""
    faults = Faults(bed)
    yield faults
    faults.mend(*faults.broken)


def until(holds, what, every=0.05):
    """The first true answer of holds(). what: in the failure, what was waited for."""
    end = time.monotonic() + PATIENCE
    while not (answer := holds()):
        assert time.monotonic() < end, f"not within {PATIENCE} s: {what}; the last look: {answer!r}"
        time.sleep(every)
    return answer


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


def link_to(address):
    """The name of the link by which this machine reaches the address of a bed."""
    argv = ["ip", "-o", "route", "get", address]
    words = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    return words[words.index("dev") + 1]


def processes_of(bed):
    """The processes that name the folder of a bed, in their command or environment."""
    name, found = str(bed.state).encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:  # it has ended
            continue
        named = any(name + end in words + b"\0" for end in (b"\0", b"/"))
        if named and int(process.name) != os.getpid():
            found.append(process)
    return found


def network_of(bed):
    """What all processes of a bed share, also those that show no path of it."""
    pid = json.loads((bed.state / "bed.json").read_text())["pid"]
    return Path(f"/proc/{pid}/ns/net").readlink()


def processes_in(network):
    """The processes, as folders of /proc, in a network of a bed."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            found += [process] * ((process / "ns/net").readlink() == network)
    return found
