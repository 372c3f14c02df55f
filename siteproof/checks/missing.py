"""What a check has still to measure: nodes and pairs without an answer that counts.

For `-S nodes=missing` the newest answer to each criterion of the check counts, as in a verdict;
with SITEPROOF_CAMPAIGN, only answers of that campaign. For a restored session, only its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial

from siteproof import sites
from siteproof.answers import checks_tried, implausible, inputs, lost
from siteproof.answers.attempts import ASKED, MIDDLES
from siteproof.answers.attempts import of_system as criterion_of_system
from siteproof.checks import session
from siteproof.judge.age import Freshness
from siteproof.judge.criterion import judge, reported, units
from siteproof.record import campaign, pair_units
from siteproof.record.ages import Ages
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.record.updates import Updates
from siteproof.severity import Verdict, most_severe_status
from siteproof.sites import Baseline, Criterion, Hardware, Site
from siteproof.sites.pairs import Pair

OfPairs = Callable[[Site, str, Collection[Pair], "Planned"], Callable[[Pair], bool]]
ANSWERED = (Verdict.PASS, Verdict.REGRESSED)


@dataclass(frozen=True)
class Planned:
    """A check as it is to run. known: conditions that it has before it begins, mode among them."""

    check: str
    known: Mapping[str, str]

    def may_answer(self, criterion: Criterion) -> bool:
        """Whether it yields the criterion's metric, under its conditions."""
        if criterion.metric.partition(".")[0] != self.check:
            return False
        for key, rule in criterion.conditions.items():
            if key in ASKED and not rule.met_by(self.known.get(key, "")):
                return False
        return True


@dataclass(frozen=True)
class Answers:
    """What was measured of a check so far, and which of it counts as an answer.

    failed: as of Judgement.
    """

    site: Site
    planned: Planned
    found: list[Sample]
    fresh: Freshness | None
    enough: Collection[Verdict]
    failed: Sequence[Sample] = ()

    def lacking(self, criterion: Criterion, expected: Mapping[str, Hardware]) -> set[str]:
        """The nodes or units without an answer; all where their median or mean misses it."""
        name = criterion.metric
        if criterion.report_only:  # an input, which has no bound
            return set(expected) - {n.node for n in reported(criterion, self.found, expected)}
        baselines: dict[str, list[Baseline]] = {}
        if Verdict.REGRESSED not in self.enough:
            of_metric = [b for b in self.site.baselines.values() if b.metric == name]
            baselines = dict.fromkeys(expected, of_metric)
        each = units(criterion, self.found, expected, baselines, self.fresh)
        if criterion.scope not in MIDDLES:
            return {one.node for one in each if one.verdict not in self.enough}
        without_value = {one.node for one in each if one.value is None}
        if without_value:
            return without_value
        whole = judge(name, criterion, self.found, expected, baselines, fresh=self.fresh)
        return set() if whole.verdict in self.enough else set(expected)

    def criteria(self) -> Iterable[Criterion]:
        """Those that the check may answer, and inputs of derived ones."""
        deciding = (c for c in self.site.criteria.values() if not c.report_only)
        return (
            one
            for criterion in deciding
            for one in inputs.answering(self.site, criterion)
            if self.planned.may_answer(one)
        )


def nodes(site: Site, roles: Collection[str], planned: Planned) -> set[str]:
    """The nodes of roles that lack an answer to some criterion that the check may answer.

    And those on which it failed, and has not ended well since.
    """
    answers = _newest(site, planned)
    failed = {attempt.node for attempt in answers.failed if attempt.header.check == planned.check}
    return _nodes(answers, roles) | failed & set(site.having(roles))


def of_system(site: Site, planned: Planned) -> bool:
    """Whether an answer of the system as a whole is missing that the check may give."""
    answers, system = _newest(site, planned), {site.system.system: Hardware()}
    whole = [c for c in answers.criteria() if criterion_of_system(c)]
    return any(answers.lacking(criterion, system) for criterion in whole)


def of_session(site: Site, roles: Collection[str], planned: Planned) -> set[str]:
    """The nodes of roles that failed in the restored session, or were not measured in it."""
    answers = _of_session(site, planned)
    if not answers.found:
        return set(site.having(roles))
    newest = _newest_statuses(answers.found)
    failed = {node for node in site.having(roles) if newest.get(node, "") != "ok"}
    return failed | _nodes(answers, roles)


def pairs(
    site: Site, link: str, laid: Collection[Pair], planned: Planned
) -> Callable[[Pair], bool]:
    """Whether a pair of a link lacks an answer, as `nodes`."""
    return _pairs(_newest(site, planned), link, laid)


def pairs_of_session(
    site: Site, link: str, laid: Collection[Pair], planned: Planned
) -> Callable[[Pair], bool]:
    """Whether a pair failed in the restored session, or was not measured in it."""
    answers = _of_session(site, planned)
    newest: dict[Pair, Sample] = {}
    for sample in answers.found:
        if pair_units.of_pairs(sample) and pair_units.link_of(sample) in ("", link):
            newest[sample.node, sample.dims[pair_units.PEER]] = sample
    lacks = _pairs(answers, link, laid)
    return lambda pair: pair not in newest or newest[pair].status != "ok" or lacks(pair)


def _nodes(answers: Answers, roles: Collection[str]) -> set[str]:
    site, found = answers.site, set[str]()
    for criterion in answers.criteria():
        covered = [] if criterion.links else site.roles_of(criterion)
        for role in (role for role in roles if role in covered):
            facts = site.hardware_of(role)
            found |= answers.lacking(criterion, dict.fromkeys(site.expected(role), facts))
    return found


def _pairs(answers: Answers, link: str, laid: Collection[Pair]) -> Callable[[Pair], bool]:
    lacking: list[tuple[Criterion, set[str]]] = []
    for criterion in answers.criteria():
        if link not in criterion.links:
            continue
        expected = {link}
        if criterion.subject != "system":
            of_pairs = [_units(answers.site, criterion, pair, link) for pair in laid]
            expected = set().union(*of_pairs)
        without = answers.lacking(criterion, dict.fromkeys(sorted(expected), Hardware()))
        lacking.append((criterion, without))

    def lacks(pair: Pair) -> bool:
        for criterion, without in lacking:
            if link in without or without & _units(answers.site, criterion, pair, link):
                return True
        return False

    return lacks


def _units(site: Site, criterion: Criterion, pair: Pair, link: str) -> set[str]:
    """The names of a pair in a criterion; both directions, if each has a value."""
    client, server = pair
    found = {pair_units.name(criterion, client, server, link)}
    if criterion.subject == "pair" and site.catalogue[criterion.metric].directed:
        found.add(pair_units.name(criterion, server, client, link))
    return found


def _newest_statuses(found: Iterable[Sample]) -> dict[str, str]:
    """The worst status of each node in its newest job."""
    newest: dict[str, object] = {}
    statuses: dict[str, list[str]] = {}
    for sample in sorted(found, key=pair_units.job):
        job = pair_units.job(sample)
        if newest.get(sample.node) != job:
            newest[sample.node] = job
            statuses[sample.node] = []
        statuses[sample.node].append(sample.status)
    return {node: most_severe_status(of_node) for node, of_node in statuses.items()}


def _newest(site: Site, planned: Planned) -> Answers:
    """All that may still answer; in a campaign that goes on, only its own."""
    sessions = _sessions(site.system.system)
    headers, name = [*sessions.headers, *sessions.unread], session.current().campaign
    ages = Ages(headers, datetime.now(UTC))
    if name:
        headers = next(reversed(campaign.parts(headers, name)), [])
        ages = ages.at_newest(headers)
    own = [header for header in headers if header.check == planned.check]
    oldest = _oldest(site, planned)
    jobs = {id(header) for header in own if oldest and _age(ages, header) <= oldest}
    fresh = Freshness(ages, Updates(headers, sessions.perflogs))
    found = sessions.of(lambda header: id(header) in jobs, needed=False)
    unread = lost.of_system(site, sessions)
    for of_job in unread.values():
        found += [sample for sample in of_job if id(sample.header) in jobs]
    failed = checks_tried.standing(site, own, partial(lost.of_job, unread, sessions))
    return Answers(site, planned, found, fresh, ANSWERED, failed)


def _oldest(site: Site, planned: Planned) -> timedelta | None:
    """The age up to which a measurement may answer; None where no criterion wants one."""
    limits = [c.oldest for c in site.criteria.values() if planned.may_answer(c)]
    known = [limit for limit in limits if limit]
    if len(known) < len(limits):
        return timedelta.max
    return max(known, default=None)


def _age(ages: Ages, header: Header) -> timedelta:
    """How long ago a job was; of an unknown time too long for any limit, but for what is lost."""
    if header.is_unread:
        return timedelta(0)
    age = ages.age(header)
    return timedelta.max if age is None else age


def _of_session(site: Site, planned: Planned) -> Answers:
    name, sessions = session.current().name, _sessions(site.system.system)
    found = sessions.of(lambda h: h.session == name and h.check == planned.check, needed=False)
    known = {key: value for key, value in planned.known.items() if key != "mode"}

    def fits(sample: Sample) -> bool:
        """Whether it contradicts no condition that is known."""
        return all(sample.conditions.get(key, value) == value for key, value in known.items())

    return Answers(site, planned, list(filter(fits, found)), None, (Verdict.PASS,))


@cache
def _sessions(system: str) -> Sessions:
    """All sessions of a system as this one begins."""
    return implausible.sessions_of(sites.load(system))
