"""What was updated after an answer: kernel, firmware and software lock, as far as it is recorded.

The kernel stands in a job's header where its nodes agree, the lock with the environment; firmware
and each node's own kernel are in the descriptions. Packages of a distribution are not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.record import descriptions
from siteproof.record.samples import Header

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
    """What the jobs of a system record, in their headers and in the descriptions beside them."""

    def __init__(self, headers: Iterable[Header], perflogs: Path) -> None:
        ordered = sorted(headers, key=lambda header: header.order)
        self._told: dict[tuple[str, str], list[Header]] = {}
        for header in ordered:
            for key in (KERNEL, LOCK):
                if text := header.provenance.get(key):
                    self._told.setdefault((key, text), []).append(header)
        self._describing = [h for h in ordered if h.check == descriptions.CHECK]
        self._perflogs = perflogs
        self._known: dict[tuple[str, str], Mapping[str, Mapping[str, str]]] = {}

    def after(self, job: Header, nodes: Collection[str]) -> Update | None:
        """The first change since a job on one of these nodes; None: nothing changed.

        nodes: without any, those that the job had to measure.
        """
        nodes = nodes or _nodes(job.expected)
        for update in (*self._software(job), *self._kernel(job, nodes), *self._fields(job, nodes)):
            return update
        return None

    def _kernel(self, job: Header, nodes: Collection[str]) -> Iterator[Update]:
        for old, new, header in self._other(job, KERNEL):
            if header.partition == job.partition and not _nodes(header.expected).isdisjoint(nodes):
                yield Update("kernel", old, new)

    def _software(self, job: Header) -> Iterator[Update]:
        for old, new, header in self._other(job, LOCK):
            if header.environment == job.environment:
                yield Update("software lock", old, new)

    def _other(self, job: Header, key: str) -> Iterator[tuple[str, str, Header]]:
        """Each later job that says something else."""
        old = job.provenance.get(key)
        for (name, new), headers in self._told.items() if old else ():
            if name == key and new != old:
                for header in headers:
                    if header.order > job.order and header.session != job.session:
                        yield str(old), new, header

    def _fields(self, job: Header, nodes: Collection[str]) -> Iterator[Update]:
        """What the descriptions of a node say differently since the newest not after the job."""
        later = [h for h in self._describing if _after(h, job)]
        earlier = [h for h in reversed(self._describing) if not _after(h, job)] if later else []
        for node in nodes if later else ():
            known = (self._read(header).get(node) for header in earlier)
            before = next(filter(None, known), {})
            for header in later:
                now = self._read(header).get(node, {})
                for name in sorted(now.keys() & before.keys()):
                    if now[name] != before[name]:
                        yield Update(name, before[name], now[name])
                before = {**now, **before}

    def _read(self, header: Header) -> Mapping[str, Mapping[str, str]]:
        """The fields of each node that tell an update; none where they cannot be read."""
        key = header.session, header.job
        if key not in self._known:
            try:
                found = descriptions.read(descriptions.path_of(self._perflogs, header))
            except UserError:
                found = {}  # who asks for the descriptions themselves is told
            self._known[key] = {node: _telling(fields) for node, fields in found.items()}
        return self._known[key]


def _telling(fields: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in fields.items() if any(fnmatchcase(k, name) for name in FIELDS)}


def _after(header: Header, job: Header) -> bool:
    return header.session != job.session and header.order > job.order


@cache
def _nodes(text: str) -> frozenset[str]:
    try:
        return frozenset(nodesets.parse(text)) if text else frozenset()
    except ValueError:
        return frozenset()
