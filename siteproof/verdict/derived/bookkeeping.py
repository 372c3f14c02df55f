"""What the records themselves show: hours of sessions and services, milestones, coverage, paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from siteproof import nodesets
from siteproof.availability import overview
from siteproof.availability.overview import DOWNTIME, MONTH, WINDOW_HOURS
from siteproof.record import descriptions, pair_units
from siteproof.record.clocks import moment_of
from siteproof.record.samples import Header, Sample
from siteproof.sites import Criterion, bought, site_tables
from siteproof.sites.bought import Outcome
from siteproof.sites.promise import SCOPES, Subject
from siteproof.sites.stated import FactSection
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
        wrong = site_tables.early(found)
        why = "; ".join(wrong) or f"{len(found)} milestones are after those that they need"
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
    fits = _fitting(given, request)

    def may_be(head: Header) -> bool:
        return mode is None or mode.met_by(head.mode)

    for head, samples in given.material.past({request.metric.partition(".")[0]}, may_be):
        for unit, found in answering(wanted, samples).items():
            good = [s for s in found if s.status == "ok"]
            if good and fits(head.session, unit):
                yield unit, good[-1]


def _fitting(given: Given, request: Requested) -> Callable[[str, str], bool]:
    """Whether the nodes of a unit were, in a session, described as a request states."""
    if not request.facts:
        return lambda _session, _unit: True
    found = set()
    stated = {request.metric: FactSection(source=request.what, fields=request.facts)}
    for head, samples in given.material.past({descriptions.CHECK}, lambda _: True):
        for node, fields in descriptions.of(samples, given.material.perflogs).items():
            results = bought.compare(stated, fields, {}, node)
            if all(result.outcome is Outcome.AS_STATED for result in results):
                found.add((head.session, node))
    return lambda session, unit: {(session, node) for node in pair_units.ends(unit)} <= found


def availability(given: Given) -> Iterator[Result]:
    """One of the metrics Availability.*, over the hours that the criterion requires, until now."""
    metric, end = given.criterion.metric, given.material.now
    hours = float(MONTH if metric == DOWNTIME else DAYS * 24)
    rule = given.criterion.conditions.get(WINDOW_HOURS)
    if rule:
        hours = _hours(rule.at_least or rule.exact or "", hours)
    begin = end - timedelta(hours=hours)
    up = given.criterion.needed_of(len(given.site.members))
    found = overview.figures(given.site, given.material.perflogs, begin, end, up)
    one = found[metric]
    if one.value is None or not one.meets_conditions(given.criterion):
        raise NoValue(Lack(one.why)) if one.why else given.missing(["probes"])
    needed = one.found.period_hours
    why = f"{one.subject}, {one.measured_hours:.10g} of {needed:.10g} hours measured"
    yield given.sample(one.value, [], why)


def _hours(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise


PATHS = "Namespace.paths"
DIGEST = "Namespace.digest"
MAX_SHOWN = 5  # paths in the reason

_DEPTH = re.compile(r"[1-9][0-9]{0,2}")


def differences(given: Given) -> Iterator[Result]:
    """The paths that not all nodes of the roles have listed, in one session and below one folder.

    Where some have listed fewer levels of folders than others, deeper paths are not compared.
    """
    attempts = {node: own[0] for node, own in given.answered(PATHS).items()}
    nodes = given.units(given.input(PATHS))
    if lacking := nodesets.of(node for node in nodes if node not in attempts):
        raise given.missing([f"{PATHS} of {lacking}"])
    listed = {node: attempts[node] for node in nodes}
    if failed := [sample for sample in listed.values() if sample.status != "ok"]:
        yield given.broken(failed)
        return
    if lack := _incomparable(listed.values()):
        raise given.missing([f"{PATHS} {lack}"])
    yield _compared(given, listed)


def _incomparable(listed: Collection[Sample]) -> str:
    """What listings lack to be compared with each other; empty if nothing."""
    if len(listed) < 2:
        return "of two nodes"
    if len({sample.header.session for sample in listed}) > 1:
        return "of all nodes in one session"
    if len({sample.conditions.get("folder") for sample in listed}) > 1:
        return "of one folder"
    depths = {sample.conditions.get("depth", "") for sample in listed}
    return "" if all(map(_DEPTH.fullmatch, depths)) else "with the levels that were listed"


def _compared(given: Given, listed: Mapping[str, Sample]) -> Result:
    every = descriptions.of_samples(listed, given.material.perflogs)
    proofs = {node: own[0].value for node, own in given.answered(DIGEST).items()}
    if altered := [node for node in listed if proofs.get(node) != descriptions.digest(every[node])]:
        raise given.missing([f"{PATHS} of {nodesets.of(altered)} as they were measured"])
    depth = min(int(s.conditions["depth"]) for s in listed.values())
    found = differing(every, depth)
    shown = [f"{path} not on {nodesets.of(found[path])}" for path in list(found)[:MAX_SHOWN]]
    more = f", and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    why = f"{'; '.join(shown)}{more}" if found else f"{len(listed)} nodes have the same paths"
    return given.sample(Fraction(len(found)), list(listed.values()), why)


def differing(listings: Mapping[str, Collection[str]], depth: int) -> dict[str, list[str]]:
    """Each path that some places lack, with these places; in the order of the paths.

    depth: levels of folders that every place has listed; deeper paths are not compared.
    """
    every = {path for listed in listings.values() for path in listed if path.count("/") < depth}
    lacking = {}
    for path in sorted(every):
        without = [place for place, listed in listings.items() if path not in listed]
        if without:
            lacking[path] = without
    return lacking
