"""What a check has still to measure: nodes and pairs without an answer that counts.

For `-S nodes=missing` the newest answer to each criterion of the check counts, as in a verdict;
with SITEPROOF_CAMPAIGN, only answers of that campaign. For a restored session, only its own.

What ReFrame compares of a headline metric, and with which bound: the one judge's answers.

acceptance: the contract. maintenance: the tighter of contract and baseline. quick: only criteria
that a quick run may answer. Where no criterion can be answered by what was measured there is no
bound, and `siteproof verdict` reports it.

ReFrame takes one value of a name: the worst of those that break a promise, or the worst of all if
none does. So it fails if the verdict on this run does, also where promises differ, for example for
one stream and for several. Its unit is that of the criterion, whatever the tool prints, and the
catalogue's where no criterion decides.

A reference of ReFrame is (value, lower, upper), of floats, where lower and upper are shares of the
value that ReFrame adds to it. The value itself is an exact bound if the share is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache, partial
from typing import Any

from siteproof import sites, units
from siteproof.answers import attempts, expected, implausible
from siteproof.answers.attempts import MIDDLES, Freshness, attempts_at, may_answer, of_unit
from siteproof.answers.attempts import of_system as criterion_of_system
from siteproof.answers.criterion import judge, middle_trial, outdated, reported
from siteproof.answers.criterion import units as units_of
from siteproof.answers.expected import Laid
from siteproof.checks import session
from siteproof.errors import UserError
from siteproof.record import campaign, pair_units
from siteproof.record.clocks import Ages
from siteproof.record.descriptions import Updates
from siteproof.record.finding import Verdict
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.sites import Baseline, Criterion, Hardware, Site
from siteproof.sites.pairs import Pair
from siteproof.sites.promise import Subject
from siteproof.units import Limit


@dataclass(frozen=True)
class Planned:
    """A check as it is to run.

    conditions: those of the whole job; known: others that its samples will have, of its settings.
    """

    check: str
    mode: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)

    @property
    def job(self) -> Header:
        """What its attempts are to share, as far as that is known."""
        return Header("", "", "", "", self.check, "", "", self.mode, conditions=self.conditions)


@dataclass(frozen=True)
class Answers:
    """What was measured of a check so far, and which of it counts as an answer.

    fresh: None of a restored session, in which no age matters, and what is REGRESSED is measured
    again. again: of nodes or pairs those that are measured whatever criteria require.
    """

    site: Site
    found: Sequence[Sample]
    fresh: Freshness | None
    again: Callable[[set[Any]], set[Any]]

    def lacking(self, criterion: Criterion, laid: Laid | None = None) -> set[str]:
        """The nodes or units without an answer; all where their median or mean misses it."""
        today = datetime.now(UTC).date()
        owed, baselines, _ = expected.covered(self.site, "", criterion, self.found, today, laid)
        if criterion.report_only:  # an input, which has no bound
            there = reported(criterion, self.found, owed)
            return owed.keys() - {n.node for n in there if not outdated(criterion, n, self.fresh)}
        enough = (Verdict.PASS, Verdict.REGRESSED) if self.fresh else (Verdict.PASS,)
        each = units_of(criterion, self.found, owed, baselines, self.fresh)
        if criterion.scope not in MIDDLES:
            return {one.node for one in each if one.verdict not in enough}
        if without_value := {one.node for one in each if one.value is None}:
            return without_value
        whole = judge("", criterion, self.found, owed, baselines, fresh=self.fresh)
        return set() if whole.verdict in enough else set(owed)


def nodes(
    site: Site, roles: Collection[str], planned: Planned, *, restored: bool = False
) -> set[str]:
    """The nodes of roles that lack an answer to some criterion that the check may answer.

    And those on which it failed, and has not ended well since. restored: or which have no value,
    and all of it in the restored session.
    """
    own = set(site.having(roles))
    answers = _of_session(site, planned) if restored else _newest(site, planned)
    found = answers.again(own)
    for criterion in _criteria(site, planned):
        if not criterion.links:
            found |= own & set(map(pair_units.node_of, answers.lacking(criterion)))
    return found


def of_system(site: Site, planned: Planned) -> bool:
    """Whether an answer of the system as a whole is missing that the check may give."""
    answers = _newest(site, planned)
    return any(
        answers.lacking(criterion)
        for criterion in _criteria(site, planned)
        if criterion_of_system(criterion)
    )


def pairs(
    site: Site, link: str, laid: Collection[Pair], planned: Planned, *, restored: bool = False
) -> set[Pair]:
    """The pairs of a link, of these, that lack an answer; restored: as of `nodes`."""
    answers = _of_session(site, planned) if restored else _newest(site, planned)
    found = answers.again(set(laid))
    for criterion in _criteria(site, planned):
        if link in criterion.links:
            lacks = answers.lacking(criterion, {link: laid})
            for pair in laid:
                if link in lacks or lacks & {*expected.of_pairs(site, criterion, link, [pair])}:
                    found.add(pair)
    return found


def _criteria(site: Site, planned: Planned) -> list[Criterion]:
    """Those that the check may answer, and inputs of derived ones."""
    wanted = expected.of_check(site, planned.check, deciding=True)
    return [one for one in wanted if may_answer(one, planned.job, planned.known)]


def _newest(site: Site, planned: Planned) -> Answers:
    """All that may still answer; in a campaign that goes on, only its own."""
    sessions, name = _sessions(site.system.system), session.current().campaign
    headers = [*sessions.headers, *sessions.unread]
    ages = Ages(headers, datetime.now(UTC))
    if name:
        headers = next(reversed(campaign.parts(headers, name)), [])
        ages = ages.at_newest(headers)
    own = [header for header in headers if header.check == planned.check]
    limits = [one.oldest or timedelta.max for one in _criteria(site, planned)]
    oldest = max(limits, default=timedelta(0))
    jobs = {id(header) for header in own if (ages.age(header) or timedelta(0)) <= oldest}
    unread = expected.unread_jobs(site, sessions)
    found = sessions.of(lambda header: id(header) in jobs, needed=False)
    found += [s for of_job in unread.values() for s in of_job if id(s.header) in jobs]
    failed = attempts.standing(site, own, partial(expected.samples_of, unread, sessions))
    fresh = Freshness(ages, Updates(headers, sessions.perflogs))
    return Answers(site, found, fresh, {one.node for one in failed}.intersection)


def _of_session(site: Site, planned: Planned) -> Answers:
    """What the restored session has, under no other condition than those that are known."""
    name, sessions = session.current().name, _sessions(site.system.system)
    known = planned.conditions.items()
    found = [
        sample
        for sample in sessions.of(
            lambda h: h.session == name and h.check == planned.check, needed=False
        )
        if all(sample.conditions.get(key, value) == value for key, value in known)
    ]
    ended_well = _ended_well(found)
    return Answers(site, found, None, lambda every: every - ended_well)


def _ended_well(found: Iterable[Sample]) -> set[object]:
    """The nodes and pairs of which nothing failed in their newest job."""
    in_order = sorted(found, key=pair_units.job)
    newest = {_unit(sample): pair_units.job(sample) for sample in in_order}
    failed = {
        _unit(sample)
        for sample in in_order
        if sample.status != "ok" and pair_units.job(sample) == newest[_unit(sample)]
    }
    return newest.keys() - failed


def _unit(sample: Sample) -> object:
    peer = sample.dims.get(pair_units.PEER)
    return (sample.node, peer) if peer else sample.node


@cache
def _sessions(system: str) -> Sessions:
    """All sessions of a system as this one begins."""
    return implausible.sessions_of(sites.load(system))


Reference = tuple[float, float | None, float | None]
UNBOUNDED: Reference = (0.0, None, None)
Compared = tuple[str, float, str, Reference]  # name, value, unit, reference


class Typical(Baseline, Criterion):
    """A baseline as a criterion: met where a value reaches it, within its tolerance."""


@dataclass(frozen=True)
class Answer:
    """A value in the sample's unit, and the criterion that it meets or not; None: it answers none.

    facts: the hardware to which the criterion's bound may refer.
    """

    value: Fraction
    sample: Sample
    criterion: Criterion | None = None
    facts: Hardware | None = None
    met: bool = True

    def value_in(self, unit: str) -> Fraction:
        """The exact value in a unit."""
        return Fraction(units.convert(self.value, self.sample.unit, unit))


def check_catalogue(site: Site, check: str, metrics: Iterable[str]) -> None:
    """Refuse a check that yields other metrics than the catalogue lists. Raises UserError."""
    listed = {
        name.partition(".")[2] for name, entry in site.catalogue.items() if entry.check == check
    }
    if not listed:
        raise UserError("checks/*/catalogue.yaml", f"no metric of {check}")
    if unknown := sorted(set(metrics) - listed):
        what = f"{check} yields {', '.join(unknown)}"
        raise UserError("checks/*/catalogue.yaml", what, sorted(listed))


def bounds(site: Site, check: str, role: str) -> dict[str, tuple[float | None, float | None]]:
    """Of each metric the lowest and highest value that miss no criterion, in the base unit."""
    sides: dict[str, tuple[list[float], list[float]]] = {}
    for one in site.criteria.values():
        of, _, name = one.metric.partition(".")
        if of != check or role not in site.roles_of(one):
            continue
        unit = site.catalogue[one.metric].unit
        limits = one.limits(unit, site.hardware_of(role))
        for side, limit in zip(sides.setdefault(name, ([], [])), limits, strict=True):
            side += [float(limit.value * units.UNITS[unit][1])] if limit else []
    return {
        name: (max(lows, default=None), min(highs, default=None))
        for name, (lows, highs) in sides.items()
    }


def compared(
    site: Site,
    check: str,
    metric: str,
    mode: str,
    samples: Sequence[Sample],
    shows: Callable[[Sample], bool] = lambda _: True,
) -> list[Compared]:
    """The worst value of a metric, and of its median and mean where a criterion is on them.

    shows: which samples are the headline; others are shown where they break a promise.
    """
    name = f"{check}.{metric}"
    measured = [s for s in samples if s.metric == name and s.status == "ok"]
    found: dict[str, list[Answer]] = {metric: []}
    for answer in _answers(site, name, mode, measured):
        scope = answer.criterion.scope if answer.criterion else ""
        shown = f"{metric}_{scope}" if scope in MIDDLES else metric
        found.setdefault(shown, []).append(answer)
    found[metric] = found[metric] or _values(filter(shows, measured))
    return [
        _worst(site, name, shown, [a for a in answers if shows(a.sample) or not a.met] or answers)
        for shown, answers in found.items()
        if answers
    ]


def of_each_node(
    site: Site,
    check: str,
    metric: str,
    samples: Sequence[Sample],
    shows: Callable[[Sample], bool] = lambda _: True,
) -> list[Compared]:
    """The value of each node as `metric@node`, without a bound; none where it has more than one."""
    name = f"{check}.{metric}"
    measured = (s for s in samples if s.metric == name and s.status == "ok" and shows(s))
    found = _values(measured)
    nodes = {answer.sample.node for answer in found} - {""}
    if len(nodes) < len(found):
        return []
    unit = site.catalogue[name].unit
    return [
        (f"{metric}@{answer.sample.node}", float(answer.value_in(unit)), unit, UNBOUNDED)
        for answer in found
    ]


def _answers(site: Site, name: str, mode: str, measured: Sequence[Sample]) -> Iterator[Answer]:
    """What the samples of a run answer: criteria on a metric, and in a maintenance its baselines.

    Nobody is excused from a baseline but who is from all criteria.
    """
    criteria = {
        key: one for key, one in site.criteria.items() if one.metric == name and not one.report_only
    }
    for key, criterion in criteria.items():
        yield from _judged(site, [key], criterion, measured)
    if mode == "maintenance":
        for baseline in (one for one in site.baselines.values() if one.metric == name):
            typical = _as_criterion(site, baseline, measured)
            yield from _judged(site, list(criteria) or [""], typical, measured)


def _as_criterion(site: Site, baseline: Baseline, measured: Iterable[Sample]) -> Criterion:
    own = {key: getattr(baseline, key) for key in Baseline.model_fields}
    subject: Subject = "pair" if baseline.links else "node"
    if any(map(pair_units.of_link, measured)):
        subject = "system"
    elif site.catalogue[baseline.metric].of_gpus:
        subject = "gpu"
    return Typical.model_construct(**own, subject=subject)


def _judged(
    site: Site, keys: Sequence[str], criterion: Criterion, measured: Sequence[Sample]
) -> Iterator[Answer]:
    """The answers to a criterion. keys: only who is excused from all of these is."""
    today = datetime.now(UTC).date()
    each = [expected.covered(site, key, criterion, measured, today) for key in keys]
    covered, _, first = each[0]
    from_all = set.intersection(*(set(filter(own.get, own)) for _, _, own in each))
    excused = {unit: first[unit] for unit in from_all}
    if criterion.scope not in MIDDLES:  # other jobs measure the rest
        there = attempts_at(measured, criterion)
        covered = {unit: facts for unit, facts in covered.items() if of_unit(unit, there)}
    result = judge(keys[0], criterion, measured, covered, waived=excused)
    deciding = (unit for unit in result.nodes if not unit.waived)
    for one in (one for unit in deciding for one in unit.points or (unit,)):
        if one.value is not None and one.sample:
            facts = covered[(one.members or (one,))[0].node]
            yield Answer(one.value, one.sample, criterion, facts, one.verdict is Verdict.PASS)


def _values(measured: Iterable[Sample]) -> list[Answer]:
    """The median of the trials of each unit at each point."""
    found = grouped(((sample.node, pair_units.point(sample)), sample) for sample in measured)
    return [Answer(*middle_trial(trials)) for trials in found.values()]


def _worst(site: Site, name: str, shown: str, answers: Sequence[Answer]) -> Compared:
    """The worst answer that misses its bound, or of all; with the bounds on it."""
    entry = site.catalogue[name]
    deciding = [one for one in answers if not one.met] or answers
    pick = max if entry.better == "lower" else min
    worst = pick(deciding, key=lambda one: one.value_in(entry.unit))
    bounds = [
        (one.criterion, one.facts)
        for one in deciding
        if one.criterion and (one.value, one.sample) == (worst.value, worst.sample)
    ]
    unit = next((own.bound_value(facts).unit for own, facts in bounds), entry.unit)
    limits = [own.limits(unit, facts) for own, facts in bounds]
    number, bound = compare(worst.value_in(unit), limits, met=worst.met)
    return shown, number, unit, bound


def compare(
    exact: Fraction, limits: Sequence[tuple[Limit | None, Limit | None]], *, met: bool
) -> tuple[float, Reference]:
    """A value as a float, and the tightest of its limits, each a lower and an upper one.

    Of both sides the one that the value misses, or is nearer to: ReFrame multiplies shares, which
    rounds, so a reference with two sides is not exact. met: whether the value keeps them; a median
    may have more digits than a float, and just below 5 it must not become 5.
    """
    number = float(exact)
    lows = [low.as_float(lowest=True) for low, _ in limits if low]
    highs = [high.as_float(lowest=False) for _, high in limits if high]
    low, high = max(lows, default=-math.inf), min(highs, default=math.inf)
    if not (lows or highs):
        return number, UNBOUNDED
    if number - low < high - number:
        number = max(number, low) if met else min(number, math.nextafter(low, -math.inf))
        return number, (low, 0.0, None)
    number = min(number, high) if met else max(number, math.nextafter(high, math.inf))
    return number, (high, None, 0.0)
