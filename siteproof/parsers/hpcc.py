"""HPC Challenge (hpccoutf.txt): its HPL section, judged as HPL is.

HPCC is a smoke test. Its STREAM rates come from the caches at small problem sizes and are not
read. HPCC solves N = 2560 instead, and reports Success, if HPL's input file cannot be used: the
condition n is the problem that was solved, not the one that was requested.
"""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, hpl, values

NEEDS = "hpccoutf.txt of one run of HPCC 1.5"

_VERSION = re.compile(r"HPC Challenge Benchmark version ([0-9][0-9.]{0,20})")
_SUCCESS = re.compile(r"^Success=(\S+)", re.MULTILINE)


def parse(text: str) -> list[Reading]:
    """Rate, time and residual of the HPL section, as hpl.parse gives them.

    Raises OutputError: `invalid` if any of HPCC's tests failed.
    """
    values.only("hpcc", "runs of HPCC", _VERSION.findall(text))
    readings = hpl.parse(_section(text, "HPL"))
    if _SUCCESS.findall(_section(text, "Summary")) != ["1"]:
        raise OutputError("hpcc: no Success=1 in the summary: a test of HPCC failed", "invalid")
    if "\nEnd of HPC Challenge tests." not in text:
        raise OutputError("hpcc: cut off before 'End of HPC Challenge tests.'")
    return readings


def conditions(text: str) -> dict[str, str]:
    """Those of HPL, and HPCC's version."""
    return hpl.conditions(text) | values.printed({"hpcc": _VERSION}, text)


def _section(text: str, name: str) -> str:
    """The text of the one section of this name. Raises OutputError if it is not complete."""
    begin, end = f"\nBegin of {name} section.", f"\nEnd of {name} section."
    _, *parts = text.split(begin)
    body, closed, _ = values.only("hpcc", f"{name} sections", parts).partition(end)
    if not closed:
        raise OutputError(f"hpcc: cut off: no complete {name} section")
    return body
