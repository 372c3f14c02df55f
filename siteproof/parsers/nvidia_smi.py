"""Tables of nvidia-smi and the kernel's Xid events, as checks/gpu/gpu_health.sh prints them.

A line `raw nvidia` each of a table, its heading first; `event` before a line of the kernel's log.
A GPU that the driver has lost has no index: its events are of its address on the PCI bus.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, count, lines

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
# NVML's reasons that are faults: hardware slowdown, thermal by software and hardware, power brake.
# Idle, the power cap and clocks that somebody has set are none.
FAULTS = 0x08 | 0x20 | 0x40 | 0x80
YES = {"Yes": 1, "No": 0, "Enabled": 1, "Disabled": 0}
# NVIDIA's list of Xids: a program's own mistake, or what ends its work after one.
OF_PROGRAMS = (13, 31, 43, 45)
ABSENT = ("N/A", "[N/A]", "[Not Supported]", "[Not Found]")  # this GPU has no such thing

_XID = re.compile(r"event .*NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]{5,20})\): ([0-9]{1,4})\b.*")
_LOST = re.compile(
    r"event .*NVRM: .*\b([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})\S* .*fallen.*"
)
SINCE = "events since the boot"


def parse(text: str) -> list[Reading]:
    """gpus, how many answer; unreadable, how many values (ERR! and the like) they lack, with a text
    `unread` each; of each `gpu` the counts of COUNTS, throttled, and xid and xid_of_programs.

    Raises OutputError: cut off, no GPU, a table with other columns than its heading.
    """
    printed = lines.whole(text, END)
    cells = list(_cells(printed))
    index = {_bus(cell): gpu for gpu, column, cell in cells if column == "pci.bus_id"}
    if not index:
        raise OutputError(f"{TOOL}: no GPU with its address")
    summed: Counter[tuple[str, str]] = Counter()
    unread = []
    for gpu, column, cell in cells:
        of = index.get(_bus(gpu), gpu)
        number = _number(column, cell)
        if number is not None:
            summed[COUNTS.get(column, "throttled"), of] += number
        elif cell not in ABSENT and column in (*COUNTS, *THROTTLING):
            unread.append(Reading("unread", cell[:60], "text", {"gpu": of, "field": column}))
    if SINCE in printed:
        summed.update({("xid", gpu): 0 for gpu in index.values()})
        summed.update((metric, index.get(bus, bus)) for metric, bus in _events(printed))
    found = [
        Reading(metric, Decimal(number), "count", {"gpu": gpu})
        for (metric, gpu), number in summed.items()
    ]
    return [count("gpus", len(index)), count("unreadable", len(unread)), *found, *unread]


def conditions(text: str) -> dict[str, str]:
    """vbios and persistence: what all GPUs have; mig: whether it is on for one."""
    named = {"vbios_version": "vbios", "persistence_mode": "persistence", "mig.mode.current": "mig"}
    found: dict[str, set[str]] = {}
    for _, column, cell in _cells(lines.harmless(text)):
        if column in named and cell not in ABSENT:
            found.setdefault(named[column], set()).add(cell)
    return {key: ", ".join(sorted(each)) for key, each in found.items()}


def _cells(printed: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """The first cell of a row, a column's name, and its cell. Raises OutputError."""
    heading: Sequence[str] = ()
    for line in (line[len(MARK) :] for line in printed if line.startswith(MARK)):
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] in ("index", "gpu_bus_id"):
            heading = [cell.partition(" [")[0] for cell in cells[1:]]
        elif len(cells) - 1 != len(heading) or not heading:
            raise OutputError(f"{TOOL}: another number of columns than the heading: '{line[:60]}'")
        else:
            yield from ((cells[0][:40], *pair) for pair in zip(heading, cells[1:], strict=True))


def _number(column: str, cell: str) -> int | None:
    """A count; None for what is none."""
    if column in THROTTLING and re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", cell):
        return (int(cell, 16) & FAULTS).bit_count()
    if column not in COUNTS:
        return None
    if cell.isdecimal() and len(cell) < 20:
        return int(cell)
    return YES.get(cell)


def _bus(address: str) -> str:
    """As the kernel writes it, without the function: 00000000:3B:00.0 is 0000:3b:00."""
    domain, _, rest = address.lower().partition(".")[0].partition(":")
    return f"{domain[-4:]}:{rest}"


def _events(printed: Iterable[str]) -> list[tuple[str, str]]:
    """Metric and bus address of each event; of a GPU that fell off the bus there may be no Xid."""
    xids = [(match[2], _bus(match[1])) for match in map(_XID.fullmatch, printed) if match]
    lost = {_bus(match[1]) for match in map(_LOST.fullmatch, printed) if match}
    found = [("xid_of_programs" if int(x) in OF_PROGRAMS else "xid", bus) for x, bus in xids]
    return found + [("xid", bus) for bus in sorted(lost - {bus for _, bus in xids})]
