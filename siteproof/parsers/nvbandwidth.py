"""nvbandwidth 0.5 to 0.9 with -j: text in, readings out. Its GB/s are 10**9 bytes per second.

It verifies what it has copied unless -s is given, and prints a line without JSON where that is
wrong. In `device_to_device_memcpy_write_ce` the GPU of the row copies to that of the column; the
arrow of its heading points the other way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import cast

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "nvbandwidth 0.5 or later with -j, which verifies"

TOOL = "nvbandwidth"
TESTS = {  # test: metric
    "host_to_device_memcpy_ce": "to_device",
    "device_to_host_memcpy_ce": "from_device",
    "device_to_device_memcpy_write_ce": "between",
    "device_local_copy": "local",
}
WAIVED = "Waived"  # on a node with one GPU there is none to copy to
NONE = "N/A"  # the GPU itself, or one that cannot be reached
SLACK = Decimal("0.0001")  # of a sum: each value is printed with six digits
QUOTE = 160  # characters of an error

_DEVICE = re.compile(r"([0-9]{1,3}): (.{1,100}?)(?: \([0-9A-Fa-f:.]{5,20}\))?(?:: \(.{0,80}\))?")
_WRONG = re.compile(r"Invalid value when checking the pattern.{0,40}")


def parse(text: str) -> list[Reading]:
    """to_device, from_device and local by `gpu`, between by `gpu` and `peer_gpu`, in GB/s.

    Raises OutputError: `invalid` if nvbandwidth found wrong data, or for an instance of MIG.
    """
    if wrong := _WRONG.search(text):
        raise OutputError(f"{TOOL}: {wrong[0]}", "invalid")
    whole = _whole(text)
    if "error" in whole:
        error = " ".join(str(whole["error"]).split())
        raise OutputError(f"{TOOL}: {error[:QUOTE]}", "generic")
    gpus = _gpus(whole)
    if parts := [name for name in gpus.values() if " MIG " in name]:
        raise OutputError(f"{TOOL}: '{parts[0]}' is an instance of MIG, not a GPU", "invalid")
    found: list[Reading] = []
    for case in values.rows(TOOL, whole, "testcases"):
        name, status = str(case.get("name")), case.get("status")
        if name in TESTS and status != WAIVED:
            found += _readings(name, case, list(gpus))
    if len({(r.metric, *r.dims.values()) for r in found}) < len(found):
        raise OutputError(f"{TOOL}: a test twice in one output")
    return found


def conditions(text: str) -> dict[str, str]:
    """The versions of nvbandwidth and of CUDA (12040: 12.4)."""
    whole = _whole(text)
    return values.words(
        {"version": whole.get("version"), "cuda": whole.get("CUDA Runtime Version")}
    )


def _whole(text: str) -> values.Object:
    """What one run has printed. Raises OutputError."""
    printed, rest = values.load(TOOL, text.strip())
    if rest:
        raise OutputError(f"{TOOL}: more than one output, or other text after its JSON")
    return values.part(TOOL, printed, TOOL)


def _gpus(whole: values.Object) -> dict[str, str]:
    """The GPUs' models, by their indices: 0, 1, 2 ... Raises OutputError."""
    listed = whole.get("GPU Device list") or ()
    matches = [_DEVICE.fullmatch(str(line)) for line in listed]
    found = {match[1]: match[2] for match in matches if match}
    if not found or list(found) != [str(n) for n in range(len(listed))]:
        raise OutputError(f"{TOOL}: no list of GPUs from 0 on")
    return found


def _readings(name: str, case: values.Object, gpus: list[str]) -> list[Reading]:
    """A test's values, which must add up to its sum. Raises OutputError."""
    if case.get("status") != "Passed":
        why = f"{TOOL}: {name}: {case.get('status')} {case.get('error', '')}"
        raise OutputError(why[:QUOTE].strip(), "generic")
    if not str(case.get("bandwidth_description", "")).endswith("bandwidth (GB/s)"):
        raise OutputError(f"{TOOL}: {name} is not in GB/s")
    what = f"{TOOL}: a value of {name}"
    found = [
        Reading(TESTS[name], values.positive(what, cell), "GB/s", dims)
        for dims, cell in _cells(name, case.get("bandwidth_matrix"), gpus)
        if cell != NONE
    ]
    total = sum(Decimal(reading.value) for reading in found)
    stated = values.number(f"{TOOL}: sum of {name}", str(case.get("sum")))
    if abs(stated - total) > SLACK * total:
        raise OutputError(f"{TOOL}: {name} adds up to {total}, and not to {stated}")
    return found


def _cells(name: str, matrix: object, gpus: list[str]) -> Iterator[tuple[dict[str, str], str]]:
    """Dimensions and cells. Raises OutputError."""
    rows = gpus if TESTS[name] == "between" else [""]
    shape = [len(row) for row in matrix] if isinstance(matrix, list) else []
    if shape != [len(gpus)] * len(rows):
        raise OutputError(f"{TOOL}: {name} is not a table of {len(gpus)} GPUs")
    for row, cells in zip(rows, cast("list[list[object]]", matrix), strict=True):
        for column, cell in zip(gpus, cells, strict=True):
            if row != column:
                dims = {"gpu": row, "peer_gpu": column} if row else {"gpu": column}
                yield dims, str(cell)
