"""Descriptions of nodes: thousands of texts for each node, most of them the same.

`<session>.<check>.<job>.fields.json.gz`, in the folder of the job's samples, has the fields of most
nodes of the job once, and for each node only the fields that differ. It is written before the
samples, whole or not at all, so a sample that counts fields always has its file.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.record import samples as perflog
from siteproof.record.samples import Header, Sample

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
