"""What has grown on a node between two looks at its counters, such as around a campaign.

A counter starts again at zero when its node boots, so deltas are of one boot only. Within one, a
counter that fell has wrapped around, or was reset; the two are distinguished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from siteproof.record.samples import JobOrder, Sample

CHECK = "Health"
BOOT = "boot"
STATES = frozenset(
    {  # of the moment: no counters
        "clock_lowest",
        "clock_most",
        "load",
        "slurmd_age",
        "swap_used",
        "time",
        "time_offset",
        "unreadable",
        "uptime",
        "zombies",
        "read_only",
    }
)
WIDTHS = (32, 64)  # bits of the counters of kernels and cards

Look = Mapping[str, Decimal | str]


@dataclass(frozen=True)
class Delta:
    """What became of one node between two looks.

    grown: by counter, `edac_ce` or `nic_rx_errors eth0`, only what is not zero.
    unknown: by counter, why there is no delta. rebooted: no counter can be compared.
    """

    node: str
    grown: Mapping[str, Decimal]
    unknown: Mapping[str, str]
    rebooted: bool = False


def deltas(before: Mapping[str, Look], after: Mapping[str, Look]) -> list[Delta]:
    """Each node of both looks, by name."""
    return [_delta(node, before[node], after[node]) for node in sorted(before.keys() & after)]


def looks(samples: Iterable[Sample]) -> dict[str, dict[JobOrder, dict[str, Decimal | str]]]:
    """What each node said of itself, by job, the oldest first."""
    found: dict[str, dict[JobOrder, dict[str, Decimal | str]]] = {}
    for sample in sorted(samples, key=lambda s: s.header.job_order):
        check, _, metric = sample.metric.partition(".")
        if check == CHECK and sample.status == "ok" and sample.value is not None:
            name = " ".join([metric, *sample.dims.values()])
            of_node = found.setdefault(sample.node, {})
            of_node.setdefault(sample.header.job_order, {})[name] = sample.value
    return found


def around(samples: Iterable[Sample]) -> tuple[dict[str, Look], dict[str, Look]]:
    """The first and the last look at each node that was looked at twice."""
    read = (s for s in samples if s.metric != f"{CHECK}.not_read")
    twice = {node: list(jobs.values()) for node, jobs in looks(read).items() if len(jobs) > 1}
    return (
        {node: in_order[0] for node, in_order in twice.items()},
        {node: in_order[-1] for node, in_order in twice.items()},
    )


def _delta(node: str, before: Look, after: Look) -> Delta:
    if before.get(BOOT) != after.get(BOOT) or BOOT not in before:
        return Delta(node, {}, {}, rebooted=True)
    grown: dict[str, Decimal] = {}
    unknown: dict[str, str] = {}
    for name in _counters([*before, *after]):
        old, new = before.get(name), after.get(name)
        if not (isinstance(old, Decimal) and isinstance(new, Decimal)):
            unknown[name] = "read only once"
        elif new >= old:
            grown |= {name: new - old} if new > old else {}
        elif bits := _wrapped(old, new):
            grown[name] = new - old + 2**bits
        else:
            unknown[name] = f"fell from {old} to {new}: reset"
    return Delta(node, grown, unknown)


def _counters(names: Iterable[str]) -> list[str]:
    return sorted({n for n in names if n.partition(" ")[0] not in STATES and n != BOOT})


def _wrapped(old: Decimal, new: Decimal) -> int:
    """The width of a counter that has wrapped around: it was near its end, and is near zero."""
    return next((bits for bits in WIDTHS if 2**bits * 3 // 4 <= old < 2**bits > 4 * new), 0)
