"""What a check has still to measure: nodes and pairs without an answer that counts.

For `-S nodes=missing` the newest answer to each criterion of the check counts, as in a verdict;
with SITEPROOF_CAMPAIGN, only answers of that campaign. For a restored session, only its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

from siteproof import sites
from siteproof.answers import checks_tried, expected, implausible, required
from siteproof.answers.age import Freshness
from siteproof.answers.attempts import MIDDLES, may_answer
from siteproof.answers.attempts import of_system as criterion_of_system
from siteproof.answers.criterion import judge, outdated, reported, units
from siteproof.answers.expected import Laid
from siteproof.checks import session
from siteproof.record import campaign, pair_units
from siteproof.record.clocks import Ages
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.record.severity import Verdict
from siteproof.record.updates import Updates
from siteproof.sites import Criterion, Site
from siteproof.sites.pairs import Pair


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
        each = units(criterion, self.found, owed, baselines, self.fresh)
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
    wanted = required.of_check(site, planned.check, deciding=True)
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
    failed = checks_tried.standing(site, own, partial(expected.samples_of, unread, sessions))
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
