"""Real services of `testbed/services` or `testbed/cloud` for the tests of a module, in a site."""

import os
import subprocess
import warnings
from pathlib import Path

import pytest

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
