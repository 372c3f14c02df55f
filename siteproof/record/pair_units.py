"""The unit of a value of a criterion over links: a pair `a>b`, or the link as a whole.

A pair is sender and receiver, with the link if a criterion has several: `a>b over wan`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from siteproof.record.grouped import grouped

if TYPE_CHECKING:
    from siteproof.record.samples import JobOrder, Sample
    from siteproof.sites import Criterion

PEER, LINK = "peer", "link"  # dimensions of a sample; LINK is also the condition of a pair's
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
    own = sample.dims.keys() - {PEER, LINK}
    return sample.status != "ok" and bool(own) and point(sample) not in there


def name(criterion: Criterion, sender: str, receiver: str, link: str) -> str:
    """The name of a pair in a criterion."""
    return f"{sender}>{receiver}" + (f" over {link}" if len(criterion.links) > 1 else "")


def ends(unit: str) -> tuple[str, ...]:
    """The nodes of a unit: sender and receiver, or the node itself."""
    return tuple(unit.partition(" over ")[0].split(">"))


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
