"""Tables of nvidia-smi and the kernel's Xid events, as checks/gpu/gpu_health.sh prints them.

A line `raw nvidia` each of a table, its heading first; `event` before a line of the kernel's log.
A GPU that the driver has lost has no index: its events are of its address on the PCI bus.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product

from siteproof.errors import OutputError
from siteproof.parsers import Reading, count, values

NEEDS = "the output of gpu_health.sh of Siteproof, up to its last line"

END, MARK = "gpu_health", "raw nvidia "
TOOL = "nvidia_smi"
COUNTS = {  # column, under each of its names: metric; those of one metric are added
    "ecc.errors.corrected.volatile.total": "ecc_corrected",
    "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected",
    "ecc.errors.corrected.aggregate.total": "ecc_corrected_ever",
    "ecc.errors.uncorrected.aggregate.total": "ecc_uncorrected_ever",
    "retired_pages.sbe": "retired_pages",
    "retired_pages.single_bit_ecc.count": "retired_pages",
    "retired_pages.dbe": "retired_pages",
    "retired_pages.double_bit.count": "retired_pages",
    "retired_pages.pending": "pending",
    "remapped_rows.correctable": "remapped_rows",
    "remapped_rows.uncorrectable": "remapped_rows",
    "remapped_rows.pending": "pending",
    "remapped_rows.failure": "remap_failures",
    "pcie.link.gen.max": "link_generation",
    "pcie.link.width.current": "link_width",
}
THROTTLING = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
COUNTED = COUNTS | dict.fromkeys(THROTTLING, "throttled")
# NVML's reasons that are faults: hardware slowdown, thermal by software and hardware, power brake.
# Idle, the power cap and clocks that somebody has set are none.
FAULTS = 0x08 | 0x20 | 0x40 | 0x80
YES = {"Yes": 1, "No": 0, "Enabled": 1, "Disabled": 0}
# NVIDIA's list of Xids: a program's own mistake, or what ends its work after one.
OF_PROGRAMS = (13, 31, 43, 45)
ABSENT = ("N/A", "[N/A]", "[Not Supported]", "[Not Found]")  # this GPU has no such thing

XID = "NVRM: Xid"
# Of an instance of MIG, "GPU-I:05" or more follows the address.
_XID = re.compile(
    rf"event .*?{XID} "
    r"\((?:PCI:)?([0-9A-Fa-f:.]{5,20})(?: GPU-[^)]{1,40})?\): ([0-9]{1,4})\b.*"
)
_LOST = re.compile(
    r"event .*NVRM: .*\b([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})\S* .*fallen.*"
)
SINCE = "events since the boot"
# Why a table may be missing: the driver does not know a field or an option.
_UNKNOWN = re.compile(r"\b(?:[Ii]n)?valid\b|recognized|supported|needs root")


def parse(text: str) -> list[Reading]:
    """gpus, how many answer; unreadable, how many values (ERR! and the like) they lack, with a text
    `unread` each; of each `gpu` the counts of COUNTS, throttled, and xid and xid_of_programs.

    A row that a table lacks, or a table that failed although the driver knows it, is unread, too.
    Raises OutputError: cut off, no GPU, a row twice, a table with other columns than its heading.
    """
    printed = values.whole(text, END)
    rows = list(cells(_rows(printed)))
    index = {_bus(cell): gpu for gpu, column, cell in rows if column == "pci.bus_id"}
    if not index:
        raise OutputError(f"{TOOL}: no GPU with its address")
    known = {(index.get(_bus(gpu), gpu), column): cell for gpu, column, cell in rows}
    if len(known) < len(rows):
        raise OutputError(f"{TOOL}: a row of a GPU twice")
    summed: Counter[tuple[str, str]] = Counter()
    for (gpu, column), cell in known.items():
        if (number := _number(column, cell)) is not None:
            summed[COUNTED[column], gpu] += number
    if SINCE in printed:
        summed.update(dict.fromkeys((("xid", gpu) for gpu in index.values()), 0))
        summed.update((metric, index.get(bus, bus)) for metric, bus in _events(printed))
    found = [
        Reading(metric, Decimal(number), "count", {"gpu": gpu})
        for (metric, gpu), number in summed.items()
    ]
    unread = list(_unread(known, text))
    return [count("gpus", len(index)), count("unreadable", len(unread)), *found, *unread]


def conditions(text: str) -> dict[str, str]:
    """vbios and persistence: what all GPUs have; mig: whether it is on for one."""
    named = {"vbios_version": "vbios", "persistence_mode": "persistence", "mig.mode.current": "mig"}
    found: dict[str, set[str]] = {}
    for _, column, cell in cells(_rows(values.harmless(text))):
        if column in named and cell not in ABSENT:
            found.setdefault(named[column], set()).add(cell)
    return {key: ", ".join(sorted(each)) for key, each in found.items()}


def _rows(printed: Iterable[str]) -> Iterator[str]:
    return (line.removeprefix(MARK) for line in printed if line.startswith(MARK))


def cells(rows: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """The first cell of a row, a column's name, and its cell. Raises OutputError."""
    heading: Sequence[str] = ()
    for line in rows:
        first, *rest = (cell.strip() for cell in line.split(","))
        if first in ("index", "gpu_bus_id"):
            heading = [cell.partition(" [")[0] for cell in rest]
        elif len(rest) != len(heading) or not heading:
            raise OutputError(f"{TOOL}: another number of columns than the heading: '{line[:60]}'")
        else:
            yield from ((first[:40], *pair) for pair in zip(heading, rest, strict=True))


def _number(column: str, cell: str) -> int | None:
    """A count; None for what is none."""
    if column in THROTTLING and re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", cell):
        return (int(cell, 16) & FAULTS).bit_count()
    if column not in COUNTS:
        return None
    if re.fullmatch("[0-9]{1,19}", cell):
        return int(cell)
    return YES.get(cell)


def _unread(cells: Mapping[tuple[str, str], str], text: str) -> Iterator[Reading]:
    """What of each GPU is no count or in no row, and the tables that failed."""
    tables = values.unreadable(text).items()
    lost = {table: why for table, why in tables if not _UNKNOWN.search(why)}
    lost |= {column: "no row" for _, column in cells if column in COUNTED}
    gpus = dict.fromkeys(gpu for gpu, _ in cells)
    for gpu, (column, why) in product(gpus, lost.items()):
        cell = cells.get((gpu, column), why)
        if cell not in ABSENT and _number(column, cell) is None:
            yield Reading("unread", cell[:60], "text", {"gpu": gpu, "field": column})


def _bus(address: str) -> str:
    """As the kernel writes it, without the function: 00000000:3B:00.0 is 0000:3b:00."""
    domain, _, rest = address.lower().partition(".")[0].partition(":")
    return f"{domain[-4:]}:{rest}"


def _events(printed: Iterable[str]) -> list[tuple[str, str]]:
    """Metric and bus address of each event; of a GPU that fell off the bus there may be no Xid."""
    printed = [line for line in printed if line.startswith("event ")]
    xids = [(match[2], _bus(match[1])) for match in map(_XID.fullmatch, printed) if match]
    lost = {_bus(match[1]) for match in map(_LOST.fullmatch, printed) if match}
    found = [("xid_of_programs" if int(x) in OF_PROGRAMS else "xid", bus) for x, bus in xids]
    found += [("xid", bus) for bus in sorted(lost - {bus for _, bus in xids})]
    # One in a form of another driver is an event all the same.
    return found + [("xid", "unknown")] * (sum(XID in line for line in printed) - len(xids))
