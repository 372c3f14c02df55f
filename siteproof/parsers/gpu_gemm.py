"""siteproof/checks/on_node/gpu_gemm.py: text in, readings out.

A title, a line `gpu INDEX PRECISION ...` for each GPU and precision, and a last line. In place of
the figures: `unsupported`, `wrong N of M`, of which the program has compared each number with what
is known, or `failed` with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, failure, values

NEEDS = "gpu_gemm.py of Siteproof, up to its last line"

_TITLE = re.compile(r"^# gpu_gemm (\w{1,20}), ([0-9]{1,3}) gpus, ([0-9]{1,2}) precisions$", re.M)
_END = re.compile(r"^# end of gpu_gemm$", re.M)
_LINE = re.compile(r"^gpu ([0-9]{1,3}) (fp64|fp32|tf32|fp16|bf16|int8) ([ -~]{1,200})$", re.M)
_FIGURES = re.compile(r"n=([0-9]{1,7}) repeats=([0-9]{1,9}) seconds=(\S{1,20}) gflops=(\S{1,30})")
UNSUPPORTED = "unsupported "
FAILURES = (("wrong ", " numbers of the result", "invalid"), ("failed ", "", "generic"))


def parse(text: str) -> list[Reading]:
    """The rate of each precision that a GPU has, by `gpu`: GFLOPS, of int8 GOPS.

    Of a GPU with a wrong result (`invalid`) or a failure (`generic`) no rate counts.
    Raises OutputError where that leaves none.
    """
    _, gpus, precisions = values.one("gpu_gemm: titles", _TITLE, text)
    values.one("gpu_gemm: last lines", _END, text)
    lines = {(gpu, precision): said for gpu, precision, said in _LINE.findall(text)}
    if not len(lines) == len(_LINE.findall(text)) == int(gpus) * int(precisions):
        raise OutputError(f"gpu_gemm: {len(lines)} lines of {gpus} GPUs by {precisions} precisions")
    failed = _failures(lines)
    found = [
        _reading(gpu, precision, said)
        for (gpu, precision), said in lines.items()
        if gpu not in failed and not said.startswith(UNSUPPORTED)
    ]
    if not found:
        none = OutputError("gpu_gemm: no GPU has any of the precisions", "generic")
        raise next(iter(failed.values()), none)
    return found + [failure(error, gpu=gpu) for gpu, error in failed.items()]


def conditions(text: str) -> dict[str, str]:
    """library: cublas or rocblas; n, the order of the matrices; and that the result is compared."""
    sizes = {match[1] for match in _FIGURES.finditer(text)}
    found = {"library": _TITLE.findall(text)[0][0], "validated": "yes"}
    return {**found, "n": sizes.pop()} if len(sizes) == 1 else found


def _failures(lines: Mapping[tuple[str, str], str]) -> dict[str, OutputError]:
    """Why the rates of a GPU do not count, of those that have a reason; wrong results first."""
    found: dict[str, OutputError] = {}
    for begins, of_what, status in FAILURES:
        for (gpu, precision), said in lines.items():
            if said.startswith(begins):
                why = f"gpu_gemm: {precision} of GPU {gpu}: {said}{of_what}"
                found.setdefault(gpu, OutputError(why, status))
    return found


def _reading(gpu: str, precision: str, said: str) -> Reading:
    what = f"gpu_gemm: {precision} of GPU {gpu}"
    match = _FIGURES.fullmatch(said)
    if not match:
        raise OutputError(f"{what}: no figures in '{said[:60]}'")
    seconds, rate = values.positive(what, match[3]), values.positive(what, match[4])
    work = Decimal(2 * int(match[1]) ** 3 * int(match[2])).scaleb(-9)
    values.must_agree(what, rate, work, seconds)
    return Reading(precision, rate, "GOPS" if precision == "int8" else "GFLOPS", {"gpu": gpu})
