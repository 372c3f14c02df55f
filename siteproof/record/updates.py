"""Updates of kernel, firmware and software lock after an answer, as far as they are recorded.

A job's header has the kernel if its nodes agree, and the lock of the environment. Firmware and the
kernel of each node are in the descriptions. Packages of a distribution are not compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from siteproof.errors import UserError
from siteproof.record import descriptions
from siteproof.record.samples import Header, expected_nodes

KERNEL, LOCK = "kernel", "software_lock"  # of the provenance
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


class Update(NamedTuple):
    """What was updated: kernel, software lock or a field of a description."""

    what: str
    before: str
    after: str


class Updates:
    """What the jobs of a system record, in their headers and in the descriptions of nodes."""

    def __init__(self, headers: Iterable[Header], perflogs: Path) -> None:
        ordered = sorted(headers, key=lambda header: header.order)
        self._by_text: dict[tuple[str, str], list[Header]] = {}
        for header in ordered:
            for key in (KERNEL, LOCK):
                if text := header.provenance.get(key):
                    self._by_text.setdefault((key, text), []).append(header)
        self._describing = [h for h in ordered if h.check == descriptions.CHECK]
        self._perflogs = perflogs
        self._known: dict[tuple[str, str], Mapping[str, Mapping[str, str]]] = {}
        self._last: dict[int, tuple[Header, bool]] = {}  # keeps each header, so also its id

    def after(self, job: Header, nodes: Collection[str]) -> Update | None:
        """The first change since a job on one of these nodes; None: nothing changed.

        nodes: if empty, those that the job had to measure.
        """
        if id(job) not in self._last:
            self._last[id(job)] = job, not self._changed_after(job)
        if self._last[id(job)][1]:  # as nearly always, and thousands of nodes have the same job
            return None
        nodes = nodes or expected_nodes(job.expected)
        updates = chain(self._software(job), self._kernel(job, nodes), self._fields(job, nodes))
        return next(updates, None)

    def _changed_after(self, job: Header) -> bool:
        """Whether anything changed after a job on some node, or may have."""
        others = chain(self._other(job, LOCK), self._other(job, KERNEL))
        return any(True for _ in others) or any(_after(h, job) for h in self._describing)

    def _kernel(self, job: Header, nodes: Collection[str]) -> Iterator[Update]:
        own = expected_nodes(
            job.expected
        )  # whose kernel it is; a derived value has other nodes, too
        for old, new, header in self._other(job, KERNEL):
            if expected_nodes(header.expected) & set(nodes) & (own or set(nodes)):
                yield Update("kernel", old, new)

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
        """Fields of the nodes' descriptions that have changed since the job."""
        later = [header for header in self._describing if _after(header, job)]
        if not later:
            return
        earlier = [header for header in self._describing if not _after(header, job)]
        for node in nodes:
            before = self._newest(earlier, node)
            for header in later:
                now = self._read(header).get(node, {})
                yield from _changed(before, now)
                before = {**now, **before}

    def _newest(self, headers: Sequence[Header], node: str) -> Mapping[str, str]:
        """The newest fields of a node in some descriptions."""
        for header in reversed(headers):
            if fields := self._read(header).get(node):
                return fields
        return {}

    def _read(self, header: Header) -> Mapping[str, Mapping[str, str]]:
        """The fields of each node that show an update; none if they cannot be read."""
        key = header.session, header.job
        if key not in self._known:
            try:
                path = descriptions.path_of(self._perflogs, header)
                self._known[key] = descriptions.read(path, _shows_update)
            except UserError:
                self._known[key] = {}  # reported by whatever needs the descriptions themselves
        return self._known[key]


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Update]:
    for name in sorted(now.keys() & before.keys()):
        if now[name] != before[name]:
            yield Update(name, before[name], now[name])


def _shows_update(field: str) -> bool:
    return any(fnmatchcase(field, name) for name in FIELDS)


def _after(header: Header, job: Header) -> bool:
    return header.session != job.session and header.order > job.order
