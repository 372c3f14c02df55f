"""A file system that is mounted on this machine: one byte of a file in it is read."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

from siteproof.services.steps import SHARE, Job, Kind, StepFailed, Steps

# An automounter mounts on access, so statvfs comes first. It hangs where the server is dead.
MOUNTED = """
import os, sys
os.statvfs(sys.argv[1])
sys.exit(0 if os.path.ismount(sys.argv[1]) else 3)
"""
_READ = """
import os, sys
for found in os.scandir(sys.argv[1]):
    if found.is_file(follow_symlinks=False) and found.stat().st_size:
        sys.exit(0 if open(found.path, "rb").read(1) else 1)
sys.exit(4)
"""
_REASONS = {3: "nothing is mounted there", 4: "no file that is not empty is there to be read"}


def test(job: Job, steps: Steps) -> None:
    """It is mounted; a byte of the first file of its top folder is read."""
    for name, program in (("mounted", MOUNTED), ("read", _READ)):
        with steps.step(name):
            look(program, job.service.address, SHARE * job.seconds)


def look(program: str, path: str, seconds: float) -> None:
    """A process of its own looks, as nothing ends a system call on a dead file system.

    Raises StepFailed, and TimeoutError.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program, path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            process.kill()  # and no wait: it ends when the file system answers, or never
        raise TimeoutError from None
    if code:
        raise StepFailed(_REASONS.get(code, "cannot be read"))


KINDS = {"mount": Kind(test)}
