"""What the records themselves show: hours of sessions and of services, milestones, coverage."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from siteproof.availability import window_figures
from siteproof.availability.window_figures import DOWNTIME, MONTH, WINDOW_HOURS
from siteproof.compare.published import milestones
from siteproof.record.ages import moment_of
from siteproof.record.samples import Header, Sample
from siteproof.sites import Criterion
from siteproof.sites.promise import SCOPES, Subject
from siteproof.sites.system import Requested
from siteproof.units import convert
from siteproof.verdict.derived.given import Given, Lack, NoValue, Result, answering

OF = "of"
DAYS = 14  # of a criterion without the condition window_hours


def duration(given: Given) -> Iterator[Result]:
    """The time from the begin of each session to the end of its last job, added up."""
    jobs = given.material.jobs
    spans: dict[str, list[datetime]] = {}
    for head in jobs:
        began = head.began
        begin = [datetime.fromtimestamp(began, UTC)] if began is not None else []
        spans.setdefault(head.session, []).extend([*begin, moment_of(head)])
    if not spans:
        raise given.missing(["a session"])
    seconds = sum((max(span) - min(span)).total_seconds() for span in spans.values())
    why = f"{len(spans)} sessions, {', '.join(sorted(spans)[:4])}{' …' if len(spans) > 4 else ''}"
    value = convert(Fraction(seconds), "s", given.unit)
    last = {head.session: head for head in sorted(jobs, key=lambda head: head.time)}
    yield given.sample(value, [_of_job(head) for head in last.values()], why)


def _of_job(head: Header) -> Sample:
    """A job as an input: when it ended."""
    return Sample(head, "", f"{head.check}.*", head.time, "text")


def ledger(given: Given) -> Iterator[Result]:
    """The milestones without a day; or those `out of order`, which precede one that they need."""
    found = given.site.milestones if given.material.jobs else []
    if not found:  # dates alone are no acceptance
        raise given.missing(["timeline.csv" if given.material.jobs else "a session"])
    if given.of == "order":
        wrong = milestones.early(found)
        why = "; ".join(wrong) or f"{len(found)} milestones follow what they need"
    else:
        wrong = [one.milestone for one in found if not one.date]
        many = f"{len(found)} milestones have a day"
        why = f"{', '.join(wrong)} of {len(found)}" if wrong else many
    yield given.sample(Fraction(len(wrong)), [], why)


def missing(given: Given) -> Iterator[Result]:
    """Zero where all requested measurements of the list `of` have a value; else those without.

    What was not measured is no wrong value, so it is missing by name.
    """
    name = given.stated(OF)
    requests = given.site.system.requested.get(name)
    if not requests:
        raise given.missing([f"requested: {name} of system.yaml"])
    lacking: list[str] = []
    used: list[Sample] = []
    for request in requests:
        found, without = _answers(given, request)
        used += found
        lacking += without
    if lacking:
        raise given.missing(lacking)
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
        for unit, found in answering(wanted, samples).items():
            if good := [s for s in found if s.status == "ok"]:
                yield unit, good[-1]


def availability(given: Given) -> Iterator[Result]:
    """One of the metrics Availability.*, over the hours that the criterion requires, until now."""
    metric, end = given.criterion.metric, given.material.now
    hours = float(MONTH if metric == DOWNTIME else DAYS * 24)
    rule = given.criterion.conditions.get(WINDOW_HOURS)
    if rule:
        hours = _hours(rule.at_least or rule.exact or "", hours)
    begin = end - timedelta(hours=hours)
    found = window_figures.figures(given.site, given.material.perflogs, begin, end, now=end)
    one = found[metric]
    if one.value is None or not one.meets_conditions(given.criterion):
        raise NoValue(Lack(one.why)) if one.why else given.missing(["probes"])
    why = f"{one.subject}, {one.measured_hours:.10g} of {one.period_hours:.10g} hours measured"
    yield given.sample(one.value, [], why)


def _hours(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise
