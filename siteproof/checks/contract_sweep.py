"""What ReFrame compares of points, and what a sweep tells in a line: progress, and what failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from siteproof.checks.contract import Reference, compared, spoken_of
from siteproof.checks.contract_pairs import Rule, worst_of
from siteproof.errors import harmless
from siteproof.judge.criterion import of_system
from siteproof.record.samples import Sample
from siteproof.sites import Criterion

if TYPE_CHECKING:
    from siteproof.sites import Site

SHOWN = 3  # points that a one-line message names


def headline(
    site: Site, check: str, metric: str, mode: str, samples: Sequence[Sample]
) -> list[tuple[str, float, str, Reference]]:
    """Name, value, unit and reference of a metric: the point that breaks a promise on the system.

    The worst that answers one if none is broken, or of all if nobody promises anything. A point's
    figure is the median of its trials, as in the verdict.
    """
    name = f"{check}.{metric}"
    values = [s for s in samples if s.metric == name and s.status == "ok"]
    if not values:
        return []
    rules = [
        Rule(promise, set())
        for promise in spoken_of(site, name, mode)
        if isinstance(promise, Criterion) and promise.subject == "system" and of_system(promise)
    ]
    worst, fitting, facts = worst_of(site, name, rules, values)
    number, reference = compared(fitting, worst, facts)
    return [(metric, number, worst.unit, reference)]


def tell_failed(failed: Sequence[Sample], expected: int) -> str:
    """How many points were measured, and what became of the others."""
    told = "; ".join(f"{_point(s)}: {s.status}: {s.why}" for s in failed[:SHOWN])
    more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
    points = len({(s.trial, tuple(sorted(s.dims.items()))) for s in failed if not s.node})
    return harmless(f"{expected - points} of {expected} points measured. {told}{more}")


def _point(sample: Sample) -> str:
    if sample.node:
        return sample.node
    told = " ".join(f"{name}={value}" for name, value in sample.dims.items())
    return f"{told} trial={sample.trial}" if sample.trial else told


def tell_progress(done: int, points: int, seconds: float, failed: int = 0) -> str:
    """So many points in so many seconds, and how long the rest will take at that pace.

    done: with those that failed, which take their time, too.
    """
    left = points - done
    told = f"{done - failed} of {points} points" + (f", {failed} failed" if failed else "")
    if not left:
        return told
    minutes = seconds / done * left / 60
    about = f"{math.ceil(minutes)} min" if minutes > 1 else "a minute"
    return f"{told}, about {about} left"
