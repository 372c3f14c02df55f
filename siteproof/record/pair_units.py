"""The unit of a value that is not of a node: a pair `a>b`, a link as a whole, a GPU `a gpu3`.

A pair is sender and receiver, with the link if a criterion has several: `a>b over wan`. Two GPUs of
a node are a unit, too: `a gpu3>gpu5`.

Things in groups: those that have something in common.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from siteproof.record.samples import JobOrder, Sample
    from siteproof.sites import Criterion

PEER, LINK = "peer", "link"  # dimensions of a sample; LINK is also the condition of a pair's
GPU, PEER_GPU = "gpu", "peer_gpu"  # its index, as the tool prints it; the one that receives
OF_GPU = (GPU, PEER_GPU)
_GPU_UNIT = re.compile(r"(\S+) gpu([^\s>]+)(?:>gpu([^\s>]+))?")
FROM, TO = "from", "to"  # dimensions of a value that a job over many nodes gave of two of them
# Conditions of a whole job that belong to the point.
OF_JOB = ("file_system", "service", "application")
Point = tuple[tuple[str, str], ...]


def of_pairs(sample: Sample) -> bool:
    """Whether it is a value of a pair, or the failure of one."""
    return PEER in sample.dims


def as_pair(sample: Sample) -> Sample:
    """A value that a job over many nodes gave of two of them, as that of a pair; others unchanged.

    Only what people look at: one node wrote the values of all, so no state of a node rests on them.
    """
    if FROM not in sample.dims or TO not in sample.dims:
        return sample
    rest = {name: text for name, text in sample.dims.items() if name not in (FROM, TO)}
    return replace(sample, node=sample.dims[FROM], dims={**rest, PEER: sample.dims[TO]})


def of_link(sample: Sample) -> bool:
    """Whether it is a value of a link as a whole, or the failure of one."""
    return not sample.node and LINK in sample.dims


def link_of(sample: Sample) -> str:
    """The link that it was measured over; empty if a failure has none."""
    return sample.dims.get(LINK) or sample.conditions.get(LINK, "")


def job(sample: Sample) -> JobOrder:
    """The job that measured it; later jobs are greater."""
    return sample.header.job_order


def point(sample: Sample, *without: str) -> Point:
    """The point of a value: values of different points are never put together.

    It is that of its dimensions, but the number of a trial, and of the file system, service or
    application that its job used. without: names of such as do not matter.
    """
    used = sample.header.conditions  # what follows from several services has none in its header
    own = {name: used[name] for name in OF_JOB if name in used}
    if sample.dims:  # few have any
        own = dict(sorted((own | dict(sample.dims)).items()))
    return tuple(one for one in own.items() if one[0] not in ("trial", *without))


def by_point(samples: Iterable[Sample], *without: str) -> dict[Point, list[Sample]]:
    """Samples in their order, by their points."""
    return grouped((point(sample, *without), sample) for sample in samples)


def lacks_its_own(sample: Sample, there: Container[Point]) -> bool:
    """Whether it is a failure at a point, such as one direction, without a value there.

    there: points with a value.
    """
    own = sample.dims.keys() - {PEER, LINK, *OF_GPU}
    return sample.status != "ok" and bool(own) and point(sample) not in there


def name(criterion: Criterion, sender: str, receiver: str, link: str) -> str:
    """The name of a pair in a criterion."""
    return f"{sender}>{receiver}" + (f" over {link}" if len(criterion.links) > 1 else "")


def ends(unit: str) -> tuple[str, ...]:
    """The nodes of a unit: sender and receiver, or the node itself, or that of a GPU."""
    if gpu := _GPU_UNIT.fullmatch(unit):
        return (gpu[1],)
    return tuple(unit.partition(" over ")[0].split(">"))


def node_of(unit: str) -> str:
    """The node of a GPU; any other unit is unchanged."""
    return ends(unit)[0] if is_gpu(unit) else unit


def is_gpu(unit: str) -> bool:
    """Whether a unit is a GPU of a node, or two of them."""
    return " gpu" in unit and _GPU_UNIT.fullmatch(unit) is not None


def gpus_of(unit: str) -> tuple[str, ...]:
    """The GPUs of a unit, by index; none of a node."""
    found = _GPU_UNIT.fullmatch(unit)
    return tuple(filter(None, found.groups()[1:])) if found else ()


def unit_of(sample: Sample) -> str:
    """The node of a sample, or the GPU of the node that it is of."""
    return gpu_name(sample.node, gpus_among(sample.dims)) if sample.dims else sample.node


def gpus_among(dims: Mapping[str, str]) -> tuple[str, ...]:
    """The GPUs that dimensions name."""
    return tuple(dims[name] for name in OF_GPU if name in dims)


def gpu_name(node: str, gpus: Sequence[str | int]) -> str:
    """The unit of a GPU of a node, or of two: `node017 gpu3`; without one, the node."""
    return f"{node} {'>'.join(f'gpu{gpu}' for gpu in gpus)}" if gpus else node


def as_unit(sample: Sample) -> Sample:
    """A value of a GPU as that of a node with the GPU's name; others unchanged."""
    if GPU not in sample.dims:
        return sample
    rest = {name: text for name, text in sample.dims.items() if name not in OF_GPU}
    return replace(sample, node=unit_of(sample), dims=rest)


def gpu_units(node: str, count: int, *, pairs: bool, directed: bool) -> Iterator[str]:
    """The GPUs of a node; pairs: each with each other one of the node."""
    for one in range(count):
        if not pairs:
            yield gpu_name(node, [one])
            continue
        for other in range(0 if directed else one + 1, count):
            if other != one:
                yield gpu_name(node, [one, other])


def of_sample(criterion: Criterion, sample: Sample) -> Iterator[str]:
    """The units of a criterion to which a sample belongs.

    A failure names client and server, and belongs to both directions.
    """
    links = [link_of(sample)] if link_of(sample) else criterion.links
    if criterion.subject == "system":
        if of_link(sample):
            yield from links
    elif of_pairs(sample):
        pair = sample.node, sample.dims[PEER]
        both = sample.status != "ok" and criterion.subject == "pair"
        for link in links:
            yield name(criterion, *pair, link)
            if both:
                yield name(criterion, *pair[::-1], link)


Key = TypeVar("Key", bound=Hashable)
One = TypeVar("One")


def grouped(pairs: Iterable[tuple[Key, One]]) -> dict[Key, list[One]]:
    """All that has a key, by that key; keys and groups in the order in which they come."""
    found: dict[Key, list[One]] = {}
    for key, one in pairs:
        found.setdefault(key, []).append(one)
    return found
