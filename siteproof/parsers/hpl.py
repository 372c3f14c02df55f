"""HPL 2.x (xhpl), also as NVIDIA and AMD (rocHPL) print it: text in, readings out.

Its Gflops are 10**9 operations per second. NVIDIA's builds from 23 on add those of each GPU.
"""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "xhpl of HPL 2 with one N, one NB, one grid and a threshold of at most 16.0"

DEFAULT_THRESHOLD = Decimal("16.0")  # a file that allows more would make any answer right
FIELDS = 7  # T/V N NB P Q Time Gflops

_RESULT = re.compile(r"^W[RC][0-9].*", re.MULTILINE)
_PER_GPU = re.compile(r"\([ \t]*(\S{1,30})[ \t]*\)[ \t\r]*$")
_MIXED = re.compile(r"\bHPL[- ](?:MxP|AI)\b")
_RESIDUAL = re.compile(
    "^"
    + re.escape("||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=")
    + r"[ \t]*(\S+)[ \t]+\.+[ \t]+(PASSED|FAILED)\b",
    re.MULTILINE,
)
_TESTS = re.compile(
    r"^[ \t]*([0-9]{1,9}) tests (completed (?:and passed|and failed|without checking)|skipped)\b",
    re.MULTILINE,
)
_END = re.compile(r"^End of Tests\.", re.MULTILINE)
_PARAMETER = values.row(r"(N|NB|P|Q)[ \t]+:[ \t]+([0-9][0-9 ]{0,80})")
_THRESHOLD = re.compile(r"scaled residuals are less than[ \t]+([0-9.eE+-]{1,20})\s")


def parse(text: str) -> list[Reading]:
    """Rate (GFLOPS), time (s) and scaled residual (x) of the one problem that was solved.

    Raises OutputError: `invalid` if the solution failed HPL's own check, or HPL did not check it.
    """
    if _MIXED.search(text):
        raise OutputError("hpl: this is HPL-MxP, of mixed precision, and not HPL")
    if "HPLinpack" not in text:
        raise OutputError("hpl: no output of HPL")
    residual = _proven(text)
    _, n, *grid, time, gflops = _result(text)
    found = conditions(text)
    if [n, *grid] != [found.get(key) for key in ("n", "nb", "p", "q")]:
        raise OutputError("hpl: the result does not have the parameters that are printed")
    rate = values.positive("hpl: Gflops", gflops)
    seconds = values.positive("hpl: time", time)
    operations = Decimal(2 * int(n) ** 3) / 3 + Decimal(3 * int(n) ** 2) / 2  # HPL's own count
    values.must_agree("hpl: Gflops", rate, operations / 10**9, seconds)
    return [
        Reading("gflops", rate, "GFLOPS"),
        Reading("time", seconds, "s"),
        Reading("residual", residual, "x"),
    ]


def conditions(text: str) -> dict[str, str]:
    """Order n, block nb, process grid p and q, and the residual's threshold."""
    found = {key.lower(): " ".join(value.split()) for key, value in _PARAMETER.findall(text)}
    if match := _THRESHOLD.search(text):
        found["threshold"] = match[1]
    return found


def _proven(text: str) -> Decimal:
    """The scaled residual of the one solution, which passed HPL's own check."""
    checks = _RESIDUAL.findall(text)
    if any(answer == "FAILED" for _, answer in checks):
        raise OutputError("hpl: the residual check FAILED", "invalid")
    tests = [(kind, int(count)) for count, kind in _TESTS.findall(text)]
    for kind in ("skipped", "completed and failed", "completed without checking"):
        if bad := sum(count for name, count in tests if name == kind):
            raise OutputError(f"hpl: {bad} tests {kind}", "invalid")
    if not _END.search(text):
        raise OutputError("hpl: cut off before 'End of Tests.'")
    printed, _ = values.only("hpl", "residual checks", checks)
    wanted = [("completed and failed", 0), ("completed and passed", 1), ("skipped", 0)]
    if sorted(tests) != wanted:
        raise OutputError("hpl: the summary does not show one test that passed")
    residual = values.number("hpl: residual", printed)
    threshold = values.number("hpl: threshold", conditions(text).get("threshold", ""))
    limit = min(threshold, DEFAULT_THRESHOLD)
    if residual >= limit:
        raise OutputError(f"hpl: residual {residual} is not below {limit}", "invalid")
    return residual


def _result(text: str) -> list[str]:
    """The fields of the one result line."""
    row = values.only("hpl", "results", _RESULT.findall(text))
    each = _PER_GPU.search(row)
    fields: list[str] = row[: each.start() if each else None].split()
    if len(fields) != FIELDS:
        raise OutputError(f"hpl: a result of {len(fields)} fields, not {FIELDS}")
    if each:
        values.positive("hpl: Gflops per GPU", each[1])
    return fields
