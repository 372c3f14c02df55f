"""Slurm of another Debian suite: its programs, laid over /usr of this machine in the room alone.

They are unpacked, not installed: no script of a package runs. Of a library that both have, that of
the suite is seen, so its C library must not be older than this machine's.
"""

import fcntl
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import kernel
import node
from errors import TestbedError, UsageError
from guestboot import cache_folder
from state import LOGIN, State

# nuttcp: what it prints differs between releases, and the checks read it.
_PACKAGES = ("slurm-wlm", "slurmdbd", "munge", "mariadb-server", "nuttcp")
COMMAND = {"mmdebstrap": "mmdebstrap"}  # and the package that has it
_ORIGIN = "Debian/Debian "
_FORMAT = "$(ORIGIN)/$(LABEL) $(REPO_URI)"
_RELEASE = re.compile(rb"GNU C Library .* release version 2\.(\d+)")
_PROGRAMS = {"Slurm": "slurmctld -V", "munge": "munged --version", "MariaDB": "mariadbd --version"}
# Folders of plugins, which must not be those of two releases.
_WHOLE = ("lib/*/slurm-wlm", "lib/*/pmix2", "lib/mysql/plugin")
_OPAQUE = "trusted.overlay.opaque"


def root(name: str) -> Path:
    """Its folder in the cache, fetched once a day. Raises UsageError where it cannot be had."""
    cache = cache_folder()
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another bed may fetch it
        wanted = cache / f"suite-{name}-{time.strftime('%Y-%m-%d', time.gmtime())}"
        for other in cache.glob(f"suite-{name}-*"):
            if other != wanted and not _in_use(other):
                shutil.rmtree(other)
        if not wanted.exists():
            _fetch(name, wanted)
    return wanted


def _in_use(folder: Path) -> bool:
    """Whether a room has laid it over its /usr."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _fetch(name: str, folder: Path) -> None:
    part = folder.with_name(f"suite-{name}-part")
    shutil.rmtree(part, ignore_errors=True)  # of one that was interrupted
    settings = "".join(_lines(["apt-config", "dump"], "Acquire::"))
    found = _lines(["apt-get", "indextargets", "--format", _FORMAT], _ORIGIN)
    if not found:
        raise UsageError("--slurm-from: apt-get has no archive of Debian (/etc/apt)")
    source = f"deb {found[0].removeprefix(_ORIGIN).strip()} {name} main"
    options = folder.with_suffix(".apt")
    options.write_text(settings)
    words = ["mmdebstrap", "--mode=root", "--variant=extract", "--format=directory"]
    words += [f"--aptopt={options}", f"--include={','.join(_PACKAGES)}", name, str(part), source]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    options.unlink()
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        said = [line for line in done.stderr.splitlines() if line.startswith("E: ")]
        raise UsageError(
            f"--slurm-from {name}: {(said or ['E: no message'])[0].removeprefix('E: ')}"
        )
    _check_age(name, part)
    for whole in _WHOLE:
        for plugins in (part / "usr").glob(whole):
            os.setxattr(plugins, _OPAQUE, b"y")
    part.rename(folder)


def _lines(words: list[str], beginning: str) -> list[str]:
    """Those of a command's output that begin so."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines(True) if line.startswith(beginning)]


def _check_age(name: str, folder: Path) -> None:
    """This machine's programs run on the suite's C library, if that is not older."""
    libraries = b"".join(path.read_bytes() for path in folder.glob("usr/lib/*/libc.so.6"))
    match = _RELEASE.search(libraries)  # none in a suite without merged /usr, which is older
    ours = (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(".")[2]
    if match is None or int(match[1]) < int(ours):
        shutil.rmtree(folder)
        raise UsageError(f"--slurm-from {name}: its C library is older than this machine's")


def lay(folder: Path) -> None:
    """Show its programs first, from here on. For the room, which keeps the folder from removal."""
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH)
    kernel.mount("overlay", "/usr", "overlay", kernel.MS_RDONLY, f"lowerdir={folder}/usr:/usr")


def versions(state: State) -> str:
    """Of what the bed runs, as each program prints it."""
    found = []
    for program, words in _PROGRAMS.items():
        said = node.must_run(state, LOGIN, words.split())
        match = re.search(r"\d+\.\d+\.[\w.]*\w", said)
        if match is None:
            raise TestbedError(f"{words} prints no version: {said.strip()}")
        found.append(f"{program} {match[0]}")
    suite = Path(state.settings.slurm_from).name
    return ", ".join(found) + (f" ({suite.removeprefix('suite-')})" if suite else "")
