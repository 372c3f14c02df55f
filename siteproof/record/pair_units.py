"""What one figure of a criterion over links belongs to: a pair `a>b`, or the link as a whole.

A pair is sender and receiver, told with the link where a criterion names several: `a>b over wan`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteproof.record.samples import JobOrder, Sample
    from siteproof.sites import Criterion

PEER, LINK = "peer", "link"  # dimensions of a sample; LINK is also the condition of a pair's


def of_pairs(sample: Sample) -> bool:
    """Whether it is a figure of a pair, or why a pair has none."""
    return PEER in sample.dims


def of_link(sample: Sample) -> bool:
    """Whether it is a figure of a link as a whole, or why there is none."""
    return not sample.node and LINK in sample.dims


def link_of(sample: Sample) -> str:
    """The link that it was measured over; empty where a failure does not say."""
    return sample.dims.get(LINK) or sample.conditions.get(LINK, "")


def job(sample: Sample) -> JobOrder:
    """The job that measured it; later jobs are greater."""
    return sample.header.job_order


def dimensions(sample: Sample) -> str:
    """All that it belongs to beyond its node, so that only the like is compared."""
    return str(sorted(sample.dims.items()))


def lacks_its_own(sample: Sample, there: Container[str]) -> bool:
    """Whether it says that a kind of figure is missing, such as one direction, and none is there.

    there: dimensions of which there is a figure.
    """
    own = sample.dims.keys() - {PEER, LINK}
    return sample.status != "ok" and bool(own) and dimensions(sample) not in there


def name(criterion: Criterion, sender: str, receiver: str, link: str) -> str:
    """A pair as a criterion tells it."""
    return f"{sender}>{receiver}" + (f" over {link}" if len(criterion.links) > 1 else "")


def ends(unit: str) -> tuple[str, ...]:
    """The nodes that take part: sender and receiver, or the node itself; none of a link."""
    return tuple(unit.partition(" over ")[0].split(">"))


def of_sample(criterion: Criterion, sample: Sample) -> Iterator[str]:
    """The units of a criterion that a sample may speak of.

    A failure names client and server: neither direction has a figure, unless it has one of its own.
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
