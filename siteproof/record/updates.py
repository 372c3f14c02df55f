"""What has changed on nodes after an answer, as far as it is recorded: updates, and other hardware.

A job's header has kernel and processor if its nodes agree, and the lock of the environment.
Firmware, kernel and hardware of each node are in the descriptions. Packages of a distribution are
not compared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from siteproof.errors import UserError
from siteproof.record import descriptions
from siteproof.record.grouped import grouped
from siteproof.record.samples import Header, Order, expected_nodes

KERNEL, LOCK, PROCESSOR = "kernel", "software_lock", "processor"  # of the provenance
FIELDS = (  # of a description
    "kernel.release",
    "kernel.version",
    "bios.version",
    "bios.date",
    "bios.release",
    "bios.ec_firmware_release",
    "cpu.microcode",
    "nic.*.firmware",
    "disk.*.firmware_rev",
)
HARDWARE = (  # the parts of a node, and how much of them is in use
    PROCESSOR,
    "system.board*",
    "system.product*",
    "memory.dimm.*",
    "memory.numa.*",
    "memory.total",
    "cpu.model",
    "cpu.family",
    "cpu.sockets",
    "cpu.cores",
    "cpu.threads*",
    "cpu.online",
    "nic.*.mac",
    "ib.*.address",
    "gpu.*.serial",
    "gpu.*.uuid",
)
VIRTUAL = "nic.*.function_of"  # of an interface whose address may differ after each boot
GUID = len("00:11:22:33:44:55:66:77")  # at the end of InfiniBand's MAC; that of Ethernet is shorter
_KB = re.compile(r"(\d+) kB")  # of memory.total and memory.numa.*
TAKEN = 0.02  # of the memory, at most, by kernel and firmware: less than any DIMM


class Update(NamedTuple):
    """What has changed: kernel, software lock or a field of a description."""

    what: str
    before: str
    after: str


class Updates:
    """What the jobs of a system record, in their headers and in the descriptions of nodes."""

    def __init__(self, headers: Iterable[Header], perflogs: Path) -> None:
        ordered = sorted(headers, key=lambda header: header.order)
        self._by_text = grouped(
            ((key, header.provenance[key]), header)
            for header in ordered
            for key in (KERNEL, LOCK, PROCESSOR)
            if header.provenance.get(key)
        )
        self._describing = [h for h in ordered if h.check == descriptions.CHECK]
        self._perflogs = perflogs
        self._known: dict[tuple[str, str], Mapping[str, Mapping[str, str]]] = {}
        self._changes: dict[tuple[Order, str], list[Update]] = {}
        self._last: dict[int, tuple[Header, bool]] = {}  # keeps each header, so also its id

    def replaced(self, job: Header, nodes: Collection[str]) -> Update | None:
        """The first hardware that is another since a job on one of these nodes; nodes: as below."""
        if self._is_last(job):
            return None
        fields = self._fields(job, nodes or expected_nodes(job.expected))
        return next((u for u in fields if _matches(u.what, HARDWARE)), None)

    def after(self, job: Header, nodes: Collection[str]) -> Update | None:
        """The first update since a job on one of these nodes; None: there was none.

        nodes: if empty, those that the job had to measure.
        """
        if self._is_last(job):
            return None
        nodes = nodes or expected_nodes(job.expected)
        fields = (u for u in self._fields(job, nodes) if _matches(u.what, FIELDS))
        kernel = self._of_nodes(job, nodes, KERNEL)
        return next(chain(self._software(job), kernel, fields), None)

    def _is_last(self, job: Header) -> bool:
        """Whether nothing can have changed after a job: as nearly always, of thousands of nodes."""
        if id(job) not in self._last:
            others = chain.from_iterable(self._other(job, key) for key in (KERNEL, LOCK, PROCESSOR))
            changed = any(True for _ in others) or any(_after(h, job) for h in self._describing)
            self._last[id(job)] = job, not changed
        return self._last[id(job)][1]

    def _of_nodes(self, job: Header, nodes: Collection[str], key: str) -> Iterator[Update]:
        # Whose it is; a derived value has other nodes, too.
        own = expected_nodes(job.expected) or set(nodes)
        for old, new, header in self._other(job, key):
            if expected_nodes(header.expected) & own & set(nodes):
                yield Update(key, old, new)

    def _software(self, job: Header) -> Iterator[Update]:
        for old, new, header in self._other(job, LOCK):
            if header.environment == job.environment:
                yield Update("software lock", old, new)

    def _other(self, job: Header, key: str) -> Iterator[tuple[str, str, Header]]:
        """Each later job with another text under a key of the provenance: both texts, and it."""
        old = job.provenance.get(key)
        if not old:
            return
        for (name, new), headers in self._by_text.items():
            if name != key or new == old:
                continue
            for header in headers:
                if _after(header, job):
                    yield old, new, header

    def _fields(self, job: Header, nodes: Collection[str]) -> Iterator[Update]:
        """What is known of each single node, and has changed since the job."""
        for node in sorted(nodes):
            key = job.order, node
            if key not in self._changes:
                self._changes[key] = list(self._changes_of(node, job))
            yield from self._changes[key]

    def _changes_of(self, node: str, job: Header) -> Iterator[Update]:
        yield from self._of_nodes(job, [node], PROCESSOR)
        own = self._by_node.get(node, ())
        later = [header for header in own if _after(header, job)]
        if not later:
            return
        earlier = (self._read(h).get(node) for h in reversed(own) if not _after(h, job))
        before = next(filter(None, earlier), {})
        for header in later:
            now = self._read(header).get(node, {})
            yield from _changed(before, now)
            before = {**now, **before}

    @cached_property
    def _by_node(self) -> dict[str, list[Header]]:
        """The jobs that have described each node, the oldest first."""
        return grouped(
            (node, header)
            for header in self._describing
            for node in expected_nodes(header.expected) or self._read(header)
        )

    def _read(self, header: Header) -> Mapping[str, Mapping[str, str]]:
        """The fields of each node that show a change; none if they cannot be read."""
        key = header.session, header.job
        if key not in self._known:
            try:
                path = descriptions.path_of(self._perflogs, header)
                self._known[key] = descriptions.read(path, _shows_change)
            except UserError:
                self._known[key] = {}  # reported by whatever needs the descriptions themselves
        return self._known[key]


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Update]:
    """The fields of both that differ, but for the addresses of virtual interfaces."""
    for name in sorted(now.keys() & before.keys()):
        virtual = f"{name.removesuffix('.mac')}.function_of" in now
        if now[name] != before[name] and not virtual and not _nearly(name, before[name], now[name]):
            yield Update(name, before[name], now[name])


def _nearly(name: str, before: str, now: str) -> bool:
    """Whether only a little of the memory differs, or the queue in front of InfiniBand's GUID."""
    if name.endswith(".mac"):
        return before[-GUID:] == now[-GUID:]
    pairs = zip(map(int, _KB.findall(before)), map(int, _KB.findall(now)), strict=False)
    near = all(abs(one - other) <= TAKEN * max(one, other) for one, other in pairs)
    return near and _KB.sub("kB", before) == _KB.sub("kB", now)


@lru_cache(2**16)
def _matches(field: str, names: tuple[str, ...]) -> bool:
    return any(fnmatchcase(field, name) for name in names)


def _shows_change(field: str) -> bool:
    return _matches(field, (*FIELDS, *HARDWARE, VIRTUAL))


def _after(header: Header, job: Header) -> bool:
    return header.session != job.session and header.order > job.order
