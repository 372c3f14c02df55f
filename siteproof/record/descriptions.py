"""Descriptions of nodes: thousands of texts for each node, most of them the same.

`<session>.<check>.<job>.fields.json.gz`, in the folder of the job's samples, has the fields of most
nodes of the job once, and for each node only the fields that differ. It is written before the
samples, whole or not at all, so a sample that counts fields always has its file.

What has changed on nodes after an answer, as far as it is recorded: updates, and other hardware.

A job's header has kernel and processor if its nodes agree, and the lock of the environment.
Firmware, kernel and hardware of each node are in the descriptions. Packages of a distribution are
not compared.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.record import samples as perflog
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Header, Order, Sample, expected_nodes

DIGEST = "SystemDescription.digest"  # proves that the fields are those of the sample
CHECK = "SystemDescription"
COUNT = "SystemDescription.fields"  # a node with this sample has its fields in the file
FORMAT = 1
UNREADABLE = "unreadable "  # before the name of a field that could not be read; names have no blank
LARGEST = 256 * 2**20  # bytes unpacked: more than any job needs, and less than the memory

Fields = dict[str, str]


def of(samples: Sequence[Sample], perflogs: Path) -> dict[str, Fields]:
    """The fields of each node that was described, from its newest sample.

    Raises UserError where the fields of a sample are missing, broken or those of another sample.
    """
    return with_unreadable(samples, perflogs)[0]


def with_unreadable(
    samples: Sequence[Sample], perflogs: Path
) -> tuple[dict[str, Fields], dict[str, Fields]]:
    """What `of` gives, and the fields that each described node could not read, and why."""
    newest = described(samples)
    proofs = {
        (s.header.session, s.header.job, s.node): s.value for s in samples if s.metric == DIGEST
    }
    found = of_samples(newest, perflogs)
    unreadable: dict[str, Fields] = {}
    for node, kept in found.items():
        names = [name for name in kept if name.startswith(UNREADABLE)]
        unreadable[node] = {name.removeprefix(UNREADABLE): kept.pop(name) for name in names}
        header = newest[node].header
        proof = proofs.get((header.session, header.job, node))
        if proof is not None and proof != digest(kept):
            raise UserError(path_of(perflogs, header), f"fields of {node} are not those measured")
    return found, unreadable


def digest(fields: Mapping[str, str]) -> str:
    """A short proof of a node's fields, kept among its samples."""
    text = "\n".join(sorted(f"{name} = {value}" for name, value in fields.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def described(samples: Iterable[Sample]) -> dict[str, Sample]:
    """The newest sample of each node that counts the fields of its description."""
    found: dict[str, Sample] = {}
    for sample in samples:
        if sample.metric == COUNT and sample.status == "ok":
            other = found.get(sample.node)
            if other is None or other.header.job_order < sample.header.job_order:
                found[sample.node] = sample
    return found


def path_of(perflogs: Path, header: Header) -> Path:
    """The file with the fields of a job."""
    name = perflog.file_name(header).removesuffix(".jsonl")
    return perflogs / header.system / header.partition / f"{name}.fields.json.gz"


def too_large(kept: Mapping[str, Mapping[str, str]]) -> set[str]:
    """The nodes that differ so much from the others that a file with all would be too large."""
    room = LARGEST // 2 // len(kept)
    common = _common(kept.values())
    return {
        node
        for node, own in kept.items()
        if len(json.dumps(_difference(common, own), separators=(",", ":"))) > room
    }


def write(
    perflogs: Path,
    header: Header,
    kept: Mapping[str, Mapping[str, str]],
    *,
    owner: int | None = None,
) -> Path:
    """Write the fields of the nodes of a job, whole or not at all.

    owner, errors: as of samples.write.
    """
    target = path_of(perflogs, header)
    common = _common(kept.values())
    record = {
        "siteproof": FORMAT,
        "common": common,
        "nodes": {node: _difference(common, kept[node]) for node in sorted(kept)},
    }
    text = json.dumps(record, separators=(",", ":"), sort_keys=True)
    data = gzip.compress(text.encode(), mtime=0)
    perflog.write_result(perflogs, target, data, owner)
    return target


def read(path: Path, wanted: Callable[[str], bool] = lambda _name: True) -> dict[str, Fields]:
    """The fields of each node of a job whose names are wanted. Raises UserError."""
    try:
        packed = files.read(path, below=path.parents[2], limit=files.OUTPUT)
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            text = files.rest(stream.read, LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(path, f"the nodes' fields cannot be read: {error}") from None
    if len(text) > LARGEST:
        raise UserError(path, "the nodes' fields are too large", f"{LARGEST >> 20} MiB unpacked")
    record = files.loads(path, text)
    if not isinstance(record, dict) or record.get("siteproof") != FORMAT:
        raise UserError(path, "not fields of nodes, or of another version of the format")
    common, nodes = record.get("common"), record.get("nodes")
    if not (_texts(common) and isinstance(nodes, dict) and all(map(_texts, nodes.values()))):
        raise UserError(path, "not an object of texts")
    assert isinstance(common, dict)
    shared = _printable(common, wanted)  # once, and not for each node
    return {node: _present(shared | _printable(own, wanted)) for node, own in nodes.items()}


def _present(fields: dict[str, str | None]) -> Fields:
    """Without those that the node does not have; in place, as there are thousands."""
    for name in [name for name, value in fields.items() if value is None]:
        del fields[name]
    return cast(Fields, fields)


def _printable(
    record: Mapping[str, str | None], wanted: Callable[[str], bool]
) -> dict[str, str | None]:
    return {name: v and harmless(v) for k, v in record.items() if wanted(name := harmless(k))}


def of_samples(newest: Mapping[str, Sample], perflogs: Path) -> dict[str, Fields]:
    """What was kept next to the sample of each node. Raises UserError."""
    files: dict[Path, dict[str, Fields]] = {}
    found: dict[str, Fields] = {}
    for node, sample in sorted(newest.items()):
        path = path_of(perflogs, sample.header)
        if path not in files:
            files[path] = read(path)
        if node not in files[path]:
            raise UserError(path, f"no fields of {node}")
        found[node] = files[path][node]
    return found


def _common(descriptions: Iterable[Mapping[str, str]]) -> Fields:
    """The commonest value of each field that at least half of the nodes have."""
    every = list(descriptions)
    counts = Counter(item for fields in every for item in fields.items())
    totals: Counter[str] = Counter()
    best: dict[str, tuple[int, str]] = {}
    for (name, value), count in counts.items():
        totals[name] += count
        if count > best.get(name, (0, ""))[0]:
            best[name] = count, value
    return {name: value for name, (_, value) in best.items() if 2 * totals[name] >= len(every)}


def _difference(common: Fields, own: Mapping[str, str]) -> dict[str, str | None]:
    """What differs; None for a common field that the node does not have."""
    other: dict[str, str | None] = dict(own.items() - common.items())
    return other | dict.fromkeys(common.keys() - own.keys())


def _texts(record: object) -> bool:
    return isinstance(record, dict) and all(
        v is None or isinstance(v, str) for v in record.values()
    )


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
        self._describing = [h for h in ordered if h.check == CHECK]
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
                path = path_of(self._perflogs, header)
                self._known[key] = read(path, _shows_change)
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
