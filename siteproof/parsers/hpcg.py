"""HPCG 3.x: its report HPCG-Benchmark_*.txt in, readings out."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "HPCG-Benchmark_*.txt of HPCG 3"

CHECKS = (
    "Spectral Convergence Tests::Result",
    "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon::Result",
    "Iteration Count Information::Result",
    "Reproducibility Information::Result",
)
RATE = "GFLOP/s Summary::Total with convergence overhead"
WORK = "Floating Point Operations Summary::Total with convergence overhead"
TIME = "Benchmark Time Summary::Total"
_CONDITIONS = {
    "version": "version",
    "tasks": "Machine Summary::Distributed Processes",
    "threads": "Machine Summary::Threads per processes",
    "nx": "Local Domain Dimensions::nx",
    "ny": "Local Domain Dimensions::ny",
    "nz": "Local Domain Dimensions::nz",
    "equations": "Linear System Information::Number of Equations",
}
_TITLE = values.row(r"HPCG-Benchmark")
_LINE = values.row(r"([!-<>-~][ -<>-~]{0,120})=([ -~]{0,200}?)")
_RATING = re.compile(
    r"^Final Summary::HPCG result is (VALID|INVALID)\b"
    r"(?: with a GFLOP/s rat(?:ing|e) of=(\S{1,30}))?",
    re.MULTILINE,
)
_LAST = re.compile(
    r"^Final Summary::(?:Results are valid but execution time \(sec\) is|Please upload results.*?)"
    r"=.*\n",
    re.MULTILINE,
)


def parse(text: str) -> list[Reading]:
    """gflops, HPCG's rating (GFLOPS), and the time (s) of all sets.

    Raises OutputError: `invalid` where HPCG found its own answers wrong.
    """
    values.one("hpcg: title", _TITLE, text)
    found = _lines(text)
    for check in CHECKS:
        if found.get(check) != "PASSED":
            what, status = check.removesuffix("::Result"), found.get(check, "missing")
            raise OutputError(f"hpcg: {what}: {status}", "invalid" if check in found else "parse")
    valid, printed = values.one("hpcg: final summary", _RATING, text)
    if valid != "VALID":
        raise OutputError("hpcg: the result is INVALID", "invalid")
    values.one("hpcg: last line", _LAST, text)
    rating = values.positive("hpcg: rating", printed or "")
    time = values.positive("hpcg: time", found.get(TIME, ""))
    whole = values.positive("hpcg: rate", found.get(RATE, ""))
    work = values.positive("hpcg: operations", found.get(WORK, "")) / 10**9
    values.must_agree("hpcg: rate", whole, work, time)
    if not whole * Decimal("0.5") <= rating <= whole * (1 + values.TOLERANCE):
        raise OutputError(f"hpcg: a rating of {rating} from a rate of {whole}")
    return [Reading("gflops", rating, "GFLOPS"), Reading("time", time, "s")]


def conditions(text: str) -> dict[str, str]:
    """Version, tasks, threads of a task, a task's grid (nx, ny, nz) and all equations."""
    found = dict(_LINE.findall(text))
    return {name: found[key] for name, key in _CONDITIONS.items() if found.get(key)}


def _lines(text: str) -> dict[str, str]:
    """KEY=VALUE lines; of a key that is there more than once, as of each grid level, none."""
    found = _LINE.findall(text)
    times = Counter(key for key, _ in found)
    return {key: value for key, value in found if times[key] == 1}
