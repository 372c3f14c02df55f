"""Which fields `siteproof describe` reads of a node, what covers them, and the numbers in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction

from siteproof import units

# As checks/system/description.sh and parsers/tool_output.py name them; a test compares.
FIELDS = (
    "address.*",
    "bios.*",
    "cpu.*",
    "disk.*.*",
    "dns.*",
    "fc.*.*",
    "gpu.*",
    "host.name",
    "ib.*.*",
    "kernel.*",
    "limit.*",
    "lldp.*.*",
    "memory.*",
    "module.*",
    "mount.*",
    "nic.*.*",
    "os.*",
    "package.*",
    "packages.*",
    "pci.*",
    "raid.*",
    "server.*",
    "sysctl.*",
    "system.*",
    "tool.*",
)
# What is not read under one name is missing under these; any other name covers what begins with it.
ALSO_COVERS = {
    "nic.ethtool": (
        "nic.*.driver",
        "nic.*.driver_version",
        "nic.*.firmware",
        "nic.*.offload.*",
        "nic.*.flow_control",
        "nic.*.rings",
        "nic.*.coalescing",
        "nic.*.channels",
    ),
    "bios": ("bios.*", "system.*"),
    "disk.smart": ("disk.*.smart_*",),
    "package": ("package.*", "packages.*"),
}
# In these fields kB, MB and GB are powers of 1024, as the kernel, DIMMs and caches count.
_BINARY = ("memory.", "cpu.cache.")
_SPELLED = {"K": "KiB", "M": "MiB", "G": "GiB", "T": "TiB"}

# A number that is not the beginning of another word, such as a version.
_NUMBER = re.compile(
    r"([+-]?[0-9]{1,40}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?)"
    r" ?([A-Za-z%][A-Za-z/]{0,11})?(?=[\s,;]|$) ?"
)
_WILD = re.compile(r"\*|\?|\[[^\]]*\]")


@dataclass(frozen=True)
class Number:
    """A number and what it measures: in the base unit of a known kind, else in `unit` itself."""

    value: Fraction
    unit: str


def is_read(name: str) -> bool:
    """Whether a field, or any field that a glob may match, is one that `describe` reads."""
    sample = _WILD.sub("x", name)
    return any(
        fnmatchcase(sample, known) or fnmatchcase(known.replace("*", "x"), name) for known in FIELDS
    )


def numbers_of(text: str, field: str = "") -> list[Number]:
    """The numbers with which a text begins, each with its unit. field: where it was read."""
    found, end = [], 0
    while match := _NUMBER.match(text, end):
        value, unit, end = Fraction(match[1]), match[2] or "", match.end()
        if field.startswith(_BINARY):
            unit = _SPELLED.get(unit.upper().removesuffix("B"), unit)
        kind, size = units.UNITS.get(unit, (unit, 1))
        found.append(Number(value * size, kind))
    return found


def number_of(text: str, field: str = "") -> Number | None:
    """The first of them; None if there is none."""
    return next(iter(numbers_of(text, field)), None)


def why_not_read(name: str, unreadable: Iterable[tuple[str, str]]) -> str:
    """The reasons why a field, or a field that a glob may match, was not read; "" where it was.

    unreadable: names of fields, or of what covers several, each with its reason.
    """
    reasons = {f"{part}: {why}": None for part, why in unreadable if _covers(part, name)}
    return "; ".join(reasons)


def _covers(part: str, name: str) -> bool:
    sample = _WILD.sub("x", name)
    if any(fnmatchcase(sample, glob) for glob in ALSO_COVERS.get(part, ())):
        return True
    begins = name.startswith(part) and (name[len(part) :] or ".")[0] in ".0123456789"
    return begins or fnmatchcase(part, name)
