"""What a plain ReFrame test has measured: a test of the centre's own, without Siteproof's classes.

Its samples are written where it runs with our settings, and its perflogs can be imported. Both have
the same names: `Test %n=4` is the check `Test` with the dimension n, and a unit has its name here.
"""

from __future__ import annotations

import re
from functools import cache

from siteproof import units
from siteproof.errors import harmless
from siteproof.units import COUNTED, UNITS

_SECOND = r"(?:s|sec|secs|second|seconds)"
_RATE = re.compile(rf"([kKMGTP]?i?)(B|[Bb]ytes?|b|[Bb]its?)(?:/{_SECOND}|ps)")
_FLOPS = re.compile(rf"([kKMGTP]?)(?:(?:flops?|FLOPs?|FLOPS?|Flops?)/{_SECOND}|flops|FLOPS|Flops)")
_PER_SECOND = re.compile(rf"(\w+/){_SECOND}")
_WORDS = {name: unit for name, unit in units.SPELLINGS.items() if len(name) > 2} | {
    "\u00b5s": "us",
    "\u03bcs": "us",
    "KB": "kB",
    "bytes": "B",
    "ns/d": "ns/day",
    "day/ns": "days/ns",
    "it/s": "iterations/s",
    "timesteps/s": "steps/s",
    "step/s": "steps/s",
}


@cache
def known_unit(text: str) -> str:
    """The name of a unit in siteproof.units; empty if it is unknown there."""
    if text in UNITS and text != "text":
        return text
    name = _WORDS.get(text, "")
    if match := _RATE.fullmatch(text):
        prefix = match[1] if match[1] == "Ki" else match[1].replace("K", "k")
        name = prefix + ("b/s" if match[2] in ("b", "bit", "bits") else "B/s")
    elif match := _FLOPS.fullmatch(text):
        name = match[1].replace("K", "k") + "FLOPS"
    elif (match := _PER_SECOND.fullmatch(text)) and f"{match[1]}s" in COUNTED.values():
        name = f"{match[1]}s"
    return name if name in UNITS else ""


TEST = "plain_test"  # provenance: the test's file; no other samples have it
REFERENCE = "reference "  # provenance: its beginning, before the variable


def named(display_name: str) -> tuple[str, dict[str, str]]:
    """The test's class and its parameters, from `Stream %threads=4`, as ReFrame displays it."""
    check, *parameters = display_name.split(" %")
    pairs = [parameter.partition("=") for parameter in parameters]
    return check, {harmless(key): harmless(value) for key, _, value in pairs}


def reference(value: object, lower: object, upper: object, unit: str) -> str:
    """ReFrame's reference as its 3.x perflogs print it; empty where there is none.

    lower, upper: shares by which a value may differ; None: no limit.
    """
    if lower is None and upper is None:
        return ""
    shown = ["null" if limit is None else f"{limit}" for limit in (lower, upper)]
    return harmless(f"{value} (l={shown[0]}, u={shown[1]}) {unit}".strip())
