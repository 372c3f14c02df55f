"""What the records themselves show: hours of sessions, dates of milestones, what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction

from siteproof.answers.attempts import why_not
from siteproof.derivations.given import Given, Result
from siteproof.published import milestones
from siteproof.record.ages import moment_of
from siteproof.record.samples import Header, Sample
from siteproof.sites import Criterion
from siteproof.sites.promise import SCOPES, Subject
from siteproof.sites.system import Requested
from siteproof.units import convert

OF = "of"


def duration(given: Given) -> Iterator[Result]:
    """The time from the begin of each session to the end of its last job, added up."""
    jobs = given.material.jobs
    spans: dict[str, list[datetime]] = {}
    for head in jobs:
        began = head.began
        begin = [datetime.fromtimestamp(began, UTC)] if began is not None else []
        spans.setdefault(head.session, []).extend([*begin, moment_of(head)])
    if not spans:
        yield given.missing(["a session"])
        return
    seconds = sum((max(span) - min(span)).total_seconds() for span in spans.values())
    why = f"{len(spans)} sessions, {', '.join(sorted(spans)[:4])}{' …' if len(spans) > 4 else ''}"
    value = Fraction(convert(Fraction(seconds), "s", given.unit))
    last = {head.session: head for head in sorted(jobs, key=lambda head: head.time)}
    yield given.sample(value, [_of_job(head) for head in last.values()], why)


def _of_job(head: Header) -> Sample:
    """A job as an input: when it ended."""
    return Sample(head, "", f"{head.check}.*", head.time, "text")


def undated(given: Given) -> Iterator[Result]:
    """The milestones without a day."""
    found = given.site.milestones if given.material.jobs else []
    if not found:  # dates alone are no acceptance
        yield given.missing(["timeline.csv" if given.material.jobs else "a session"])
        return
    names = [one.milestone for one in found if not one.date]
    why = f"{', '.join(names)} of {len(found)}" if names else f"{len(found)} milestones have a day"
    yield given.sample(Fraction(len(names)), [], why)


def out_of_order(given: Given) -> Iterator[Result]:
    """The milestones that precede one that they need."""
    found = given.site.milestones if given.material.jobs else []
    if not found:  # dates alone are no acceptance
        yield given.missing(["timeline.csv" if given.material.jobs else "a session"])
        return
    early = milestones.early(found)
    why = "; ".join(early) or f"{len(found)} milestones follow what they need"
    yield given.sample(Fraction(len(early)), [], why)


def missing(given: Given) -> Iterator[Result]:
    """Zero where all requested measurements of the list `of` have a value; else those without.

    What was not measured is no wrong value, so it is missing by name.
    """
    rule = given.criterion.conditions.get(OF)
    name = (rule.exact if rule else "") or ""
    requests = given.site.system.requested.get(name)
    if not requests:
        yield given.missing([f"requested: {name} of system.yaml"])
        return
    lacking: list[str] = []
    used: list[Sample] = []
    for request in requests:
        found, without = _answers(given, request)
        used += found
        lacking += without
    if lacking:
        yield given.missing(lacking)
        return
    yield given.sample(Fraction(0), used, f"all of {name} was measured")


def _answers(given: Given, request: Requested) -> tuple[list[Sample], list[str]]:
    """The newest sample of each unit of a request, and the units that have none."""
    subject: Subject = request.subject or ("pair" if request.links else "node")
    wanted = given.criterion.like(
        metric=request.metric,
        subject=subject,
        scope=SCOPES.get(subject, "system"),
        nodes=request.nodes,
        links=request.links,
        conditions=request.conditions,
        programs=[],
    )
    left = dict.fromkeys(given.units(wanted))
    days: dict[str, set[str]] = {}
    used: list[Sample] = []
    for unit, sample in _found(given, request, wanted):
        if unit in left:
            days.setdefault(unit, set()).add(sample.header.time[:10])
            used.append(sample)
        if len(days.get(unit, ())) >= request.days:
            left.pop(unit, None)
        if not left:
            break
    label = request.what or request.metric
    count = "" if request.days == 1 else f" on {request.days} days"
    return used, [f"{label} of {unit}{count}" for unit in left]


def _found(given: Given, request: Requested, wanted: Criterion) -> Iterator[tuple[str, Sample]]:
    """A good sample of each unit in each job that may answer a request, the newest job first."""
    mode = wanted.conditions.get("mode")

    def may_be(head: Header) -> bool:
        there = not request.environments or head.environment in request.environments
        return there and (mode is None or mode.met_by(head.mode))

    for _, samples in given.material.past({request.metric.partition(".")[0]}, may_be):
        for unit, found in given.answers(wanted, samples).items():
            good = [s for s in found if s.status == "ok" and not why_not(wanted, s)]
            if good:
                yield unit, good[-1]
