"""The unit of a value of a criterion over links: a pair `a>b`, or the link as a whole.

A pair is sender and receiver, with the link if a criterion has several: `a>b over wan`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteproof.record.samples import JobOrder, Sample
    from siteproof.sites import Criterion

PEER, LINK = "peer", "link"  # dimensions of a sample; LINK is also the condition of a pair's


def of_pairs(sample: Sample) -> bool:
    """Whether it is a value of a pair, or the failure of one."""
    return PEER in sample.dims


def of_link(sample: Sample) -> bool:
    """Whether it is a value of a link as a whole, or the failure of one."""
    return not sample.node and LINK in sample.dims


def link_of(sample: Sample) -> str:
    """The link that it was measured over; empty if a failure has none."""
    return sample.dims.get(LINK) or sample.conditions.get(LINK, "")


def job(sample: Sample) -> JobOrder:
    """The job that measured it; later jobs are greater."""
    return sample.header.job_order


def dimensions(sample: Sample) -> str:
    """Its dimensions: only values with the same are compared."""
    return str(sorted(sample.dims.items()))


def lacks_its_own(sample: Sample, there: Container[str]) -> bool:
    """Whether it is a failure of one kind of value, such as one direction, without a value of it.

    there: dimensions with a value.
    """
    own = sample.dims.keys() - {PEER, LINK}
    return sample.status != "ok" and bool(own) and dimensions(sample) not in there


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
