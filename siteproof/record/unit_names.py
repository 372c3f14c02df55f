"""Units as tests of ReFrame print them, and their names here."""

from __future__ import annotations

import re
from functools import cache

from siteproof.units import COUNTED, UNITS

_SECOND = r"(?:s|sec|secs|second|seconds)"
_RATE = re.compile(rf"([kKMGTP]?i?)(B|[Bb]ytes?|b|[Bb]its?)(?:/{_SECOND}|ps)")
_FLOPS = re.compile(rf"([kKMGTP]?)(?:(?:flops?|FLOPs?|FLOPS?|Flops?)/{_SECOND}|flops|FLOPS|Flops)")
_PER_SECOND = re.compile(rf"(\w+/){_SECOND}")
_WORDS = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "nsec": "ns",
    "nanoseconds": "ns",
    "usec": "us",
    "usecs": "us",
    "microseconds": "us",
    "msec": "ms",
    "milliseconds": "ms",
    "\u00b5s": "us",
    "\u03bcs": "us",
    "minutes": "min",
    "hours": "h",
    "percent": "%",
    "KB": "kB",
    "bytes": "B",
    "ns/d": "ns/day",
    "day/ns": "days/ns",
    "it/s": "iterations/s",
    "timesteps/s": "steps/s",
    "step/s": "steps/s",
}


@cache
def known(text: str) -> str:
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
