"""Files that services move between two ends: each attempt, with its rate or its failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from siteproof import units
from siteproof.analysis.daily import Attempt, Pair
from siteproof.answers.attempts import SERVICE
from siteproof.record.samples import INTERRUPTED, TOOL_MISSING, Sample
from siteproof.sites import Site

CHECK, RATE = "Service", "Service.rate"
UNIT = "MB/s"
SENDER, RECEIVER, STEP = "sender", "receiver", "step"  # dimensions
FILES, LARGE = "files", "1"  # dimension: rates of many small files have no grades
UNTRIED = (INTERRUPTED, TOOL_MISSING)  # statuses of what is neither a transfer nor its failure
OUT, IN = ("put", "put_many"), ("get", "get_many")  # steps that move files
NO_TRANSFER = ("clean",)  # a step that fails when all files have been moved


class Moved(NamedTuple):
    """A sample of an attempt, and the pairs of ends to which it belongs."""

    sample: Sample
    pairs: tuple[Pair, ...]

    def attempts(self) -> Iterator[Attempt]:
        """The attempt of each pair, in MB/s."""
        one, value = self.sample, None
        if one.status == "ok":
            value = units.convert(one.number, one.unit, UNIT)
        when = datetime.fromisoformat(one.header.time)
        for pair in self.pairs:
            yield Attempt(pair, when, value, one.status)


def attempts(site: Site, samples: Iterable[Sample]) -> Iterator[Attempt]:
    """Each attempt of each pair, in MB/s."""
    for one in moved(site, samples):
        yield from one.attempts()


def moved(site: Site, samples: Iterable[Sample]) -> Iterator[Moved]:
    """The attempts among the samples of the check Service, of services that move files.

    A failure before any file was moved, such as of the login, belongs to both directions.
    """
    for sample in samples:
        entry = site.system.services.get(sample.conditions.get(SERVICE, ""))
        if not entry or not entry.transfers or sample.status in UNTRIED:
            continue
        here, there = entry.here or site.name, entry.there or sample.conditions[SERVICE]
        if sample.status == "ok":
            if sample.metric == RATE and sample.dims.get(FILES) == LARGE:
                ends = sample.dims.get(SENDER, here), sample.dims.get(RECEIVER, there)
                yield Moved(sample, (ends,))
        elif (step := sample.dims.get(STEP, "")) not in NO_TRANSFER:
            out, back = ((here, there),), ((there, here),)
            yield Moved(sample, out if step in OUT else back if step in IN else out + back)
