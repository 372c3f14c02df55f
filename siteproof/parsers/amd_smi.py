"""amd-smi metric --ecc --pcie --json of ROCm 6 and 7, and the kernel's events of amdgpu.

Lines `raw amd` and `event`, as checks/gpu/gpu_health.sh prints them. Newer versions have the list
of GPUs below "gpu_data", and some values as {"value": 16, "unit": ""}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, count, values

NEEDS = "the output of gpu_health.sh of Siteproof, up to its last line"

END, TOOL = "gpu_health", "amd_smi"
COUNTS = {
    ("ecc", "total_correctable_count"): "ecc_corrected",
    ("ecc", "total_uncorrectable_count"): "ecc_uncorrected",
    ("pcie", "width"): "link_width",
}
ABSENT, MISSING = "N/A", "no such key"
COUNT = re.compile("[0-9]{1,19}")
SINCE = "events since the boot"
_EVENT = re.compile(r"event .*amdgpu [0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]: .*")


def parse(text: str) -> list[Reading]:
    """gpus; unreadable, with a text `unread` each; of each `gpu` ecc_corrected, ecc_uncorrected and
    link_width; events of the node's GPUs together: amd-smi's table has no address.

    A key that is not there, as a version may name it otherwise, is unread. Raises OutputError: cut
    off, no GPU, or one without an index or twice.
    """
    printed = values.whole(text, END)
    body = "\n".join(line[8:] for line in printed if line.startswith("raw amd "))
    listed, rest = values.load(TOOL, '{"gpu_data": ' + body + "}" if body[:1] == "[" else body)
    gpus = values.rows(TOOL, listed, "gpu_data")
    if rest or not gpus:
        raise OutputError(f"{TOOL}: not one list of GPUs")
    each = [reading for gpu in gpus for reading in _of_gpu(gpu)]
    if len({(r.metric, *r.dims.values()) for r in each}) < len(each):
        raise OutputError(f"{TOOL}: a GPU twice")
    unread = sum(r.metric == "unread" for r in each)
    found = [count("gpus", len(gpus)), count("unreadable", unread), *each]
    if SINCE in printed:
        found.append(count("events", sum(bool(_EVENT.fullmatch(line)) for line in printed)))
    return found


def _of_gpu(gpu: values.Object) -> Iterator[Reading]:
    dims = {"gpu": str(gpu.get("gpu"))}
    if not COUNT.fullmatch(dims["gpu"]):
        raise OutputError(f"{TOOL}: '{dims['gpu'][:60]}' is not the index of a GPU")
    for (part, key), metric in COUNTS.items():
        cell = _plain(gpu, part, key)
        if COUNT.fullmatch(cell):
            yield Reading(metric, Decimal(cell), "count", dims)
        elif cell != ABSENT:
            yield Reading("unread", cell[:60], "text", {**dims, "field": f"{part}.{key}"})


def _plain(gpu: values.Object, part: str, key: str) -> str:
    """A value with or without a unit."""
    own = gpu.get(part, MISSING)
    cell = own.get(key, MISSING) if isinstance(own, dict) else own
    return str(cell.get("value") if isinstance(cell, dict) else cell)
