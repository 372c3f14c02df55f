"""Fetch the wheels of a lock for another Python or machine. Run by setup/wheels, in .venv.

fetch_wheels.py LOCK --dest DIR [pip's options]

pip alone would go wrong twice. It evaluates a lock's markers for the Python on which it runs, not
for the one of --python-version. And it takes --platform by its name only, although wheels for an
older glibc run, too.
"""

from __future__ import annotations

import platform
import re
import runpy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pip._vendor.packaging.markers import Marker

GLIBC = 28  # 2.28 of RHEL 8; SLES 15 SP4 has 2.31
OLDEST_GLIBC = 17  # of manylinux2014


def pins(lock: str, version: str, machine: str) -> Iterator[str]:
    """The packages of a lock that this Python and machine need, with their hashes."""
    place = {
        "python_version": ".".join(version.split(".")[:2]),
        "python_full_version": version if version.count(".") > 1 else f"{version}.0",
        "platform_machine": machine,
        "sys_platform": "linux",
        "platform_python_implementation": "CPython",
    }
    for block in re.split("^(?=[a-z])", lock, flags=re.MULTILINE)[1:]:
        first, _, hashes = block.partition("\n")
        pin, _, marker = first.rstrip(" \\").partition(" ; ")
        if not marker or Marker(marker).evaluate(place):
            yield f"{pin} \\\n{hashes}"


def with_older(name: str) -> list[str]:
    """A platform, and those of which wheels run there, too: manylinux_2_28_x86_64 and before."""
    found = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", name)
    if not found:
        return [name]
    glibc, machine = int(found[1]), found[2]
    names = [f"manylinux_2_{minor}_{machine}" for minor in range(glibc, OLDEST_GLIBC - 1, -1)]
    return [*names, f"manylinux2014_{machine}"]


def values(options: list[str], name: str) -> list[str]:
    """What was given for an option, as '--name VALUE' or '--name=VALUE'."""
    words = [part for option in options for part in option.split("=", 1)]
    return [after for word, after in zip(words, words[1:], strict=False) if word == name]


def main() -> None:
    """Run pip download with a lock of its own and all platforms."""
    lock, *options = sys.argv[1:]
    version = (values(options, "--python-version") or [".".join(map(str, sys.version_info[:2]))])[0]
    asked = values(options, "--platform") or [f"manylinux_2_{GLIBC}_{platform.machine()}"]
    machine = re.sub(r"^(manylinux_2_\d+|manylinux\d+|linux)_", "", asked[0])
    platforms = [name for given in asked for name in with_older(given)]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as chosen:
        chosen.writelines(pins(Path(lock).read_text(), version, machine))
        chosen.flush()
        words = ["download", "--quiet", "--only-binary", ":all:", "--require-hashes", "--no-deps"]
        words += ["--requirement", chosen.name, *options, "--python-version", version]
        words += [word for name in platforms for word in ("--platform", name)]
        sys.argv = ["pip", *words]
        runpy.run_module("pip", run_name="__main__")


if __name__ == "__main__":
    main()
