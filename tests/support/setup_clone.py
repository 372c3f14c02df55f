"""What the tests of setup/ share: programs of a line, and commands with their own environment."""

import os
import subprocess

from clone import PATIENCE


def program(path, text):
    """Make a program; where a link to one of the machine's is, it is replaced, not followed."""
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(*command, machine=None, cwd=None, **variables):
    """Run a command in an environment of its own. Returns it, with all its words in stdout."""
    env = {"PATH": os.environ["PATH"], "HOME": "/dev/null/home", **variables}
    if machine:
        env |= {"PATH": str(machine / "bin"), "SITEPROOF_ROOT": str(machine / "machine")}
    return subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env=env,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def sourced(shell, script, **variables):
    return run(shell, "-c", script, cwd="/", **variables)


def apt_calls(machine):
    calls = machine / "apt-calls"
    return calls.read_text().splitlines() if calls.exists() else []
