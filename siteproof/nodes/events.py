"""Nodes that miss a bound only because their whole role moved: a step of all, or a drift."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np

from siteproof.analysis import falls
from siteproof.analysis.ranks import COVERS
from siteproof.analysis.slow_nodes import MIN_DEFICIT, RETESTS
from siteproof.nodes.speeds import InSeries
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import Header
from siteproof.sites import Site

ERRORS = 5  # of the slope, for a drift
CAUSES = ("kernel", "software_lock")  # of a header's provenance


@dataclass(frozen=True)
class Event:
    """What all nodes of a series did. change: as a share, below 0. what: step or drift."""

    what: str
    change: float
    since: str
    cause: str


def explained(
    site: Site, of_nodes: Mapping[str, Sequence[InSeries]], headers: Iterable[Header]
) -> Callable[[Finding], Finding]:
    """What gives a finding on a node back; a missed bound that the fleet's loss explains names it.

    of_nodes: the series by metric.
    """
    sessions = {head.session: head for head in headers}

    @cache
    def events(metric: str) -> list[tuple[InSeries, Event | None]]:
        return [(one, _event(one, sessions)) for one in of_nodes.get(metric, ())]

    def named(why: Finding) -> Finding:
        if why.kind is Kind.MISSES_BOUND and why.criterion in site.criteria:
            for one, event in events(why.metric):
                if why.subject in one.course.nodes:
                    why = _named(site, why, one, event)
        return why

    return named


def _event(one: InSeries, sessions: Mapping[str, Header]) -> Event | None:
    """The loss of the whole fleet, if it is certain and large enough."""
    measured = ~np.isnan(one.course.values)
    whole = np.flatnonzero(measured.sum(axis=0) >= COVERS * len(one.runs))
    if len(one.runs) < falls.OTHERS or whole.size < 2 * RETESTS:
        return None
    level = 1 + one.falls.moved[whole]
    length = int(falls.falls(level[None, :], "higher").runs[0])
    runs = np.arange(level.size)
    (slope, start), covariance = np.polyfit(runs, level, 1, cov=True)
    is_certain = slope < -ERRORS * np.sqrt(covariance[0, 0])
    stepped = np.where(runs < level.size - length, *_levels(level, length)) if length else level
    misfit = np.abs(level - start - slope * runs).sum()
    is_drift = is_certain and (not length or misfit < np.abs(level - stepped).sum())
    if not (length or is_drift):
        return None
    before, now = (start, start + slope * runs[-1]) if is_drift else _levels(level, length)
    first = 0 if is_drift else level.size - length
    change = float(now / before - 1)
    if change > -MIN_DEFICIT:
        return None
    names = [one.course.sessions[at] for at in whole.tolist()]
    cause = "" if is_drift else _cause(sessions.get(names[first - 1]), sessions.get(names[first]))
    what = "drift" if is_drift else "step"
    return Event(what, change, one.course.times[int(whole[first])], cause)


def _levels(level: falls.Floats, length: int) -> tuple[float, float]:
    return float(np.median(level[:-length])), float(np.median(level[-length:]))


def _cause(before: Header | None, after: Header | None) -> str:
    """What the headers show to have changed."""
    if before is None or after is None:
        return ""
    one, other = before.provenance, after.provenance
    changed = [key for key in CAUSES if one.get(key) and other.get(key) not in (None, one[key])]
    return ", ".join(f"{key} {one[key]} -> {other[key]}" for key in changed)


def _named(site: Site, why: Finding, one: InSeries, event: Event | None) -> Finding:
    """A missed bound with its event, where the node would meet the bound without it."""
    row = one.course.nodes[why.subject]
    if event is None or one.falls.runs[row] or one.is_slow(why.subject):
        return why
    criterion, unit = site.criteria[why.criterion], site.catalogue[why.metric].unit
    value, _ = one.course.of(why.subject)
    lost = 1 + event.change
    without = value[-1] / lost if one.better == "higher" else value[-1] * lost
    facts = site.hardware_of(site.role_of(why.subject) or "")
    if not criterion.met(Fraction(float(without)), unit, facts):
        return why
    details = finding.details(
        event=event.what, change=event.change, began=event.since, cause=event.cause or None
    )
    return replace(why, details=why.details + details)
