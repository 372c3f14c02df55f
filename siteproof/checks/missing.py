"""What a check has still to measure: nodes and pairs without an answer that counts.

Of `-S nodes=missing` it is the newest answer to each criterion of the check, as a verdict takes it;
with SITEPROOF_CAMPAIGN, that campaign's own. Of a session that is restored, its own alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from siteproof import files
from siteproof.checks import session
from siteproof.judge.age import Freshness
from siteproof.judge.criterion import ASKED, MIDDLES, judge, units
from siteproof.judge.criterion import of_system as criterion_of_system
from siteproof.judge.severity import Verdict, most_severe_status
from siteproof.record import campaign, pair_units
from siteproof.record.ages import Ages
from siteproof.record.samples import Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.record.updates import Updates
from siteproof.sites import Criterion, Hardware, Site
from siteproof.sites.pairs import Pair

OfPairs = Callable[[Site, str, Collection[Pair], "Owed"], Callable[[Pair], bool]]
ANSWERED = (Verdict.PASS, Verdict.REGRESSED)


@dataclass(frozen=True)
class Owed:
    """A check as it is to run. known: conditions that it has before it begins, mode among them."""

    check: str
    known: Mapping[str, str]

    def may_answer(self, criterion: Criterion) -> bool:
        """Whether it yields the criterion's metric, under the conditions that it asks for."""
        rules = {key: rule for key, rule in criterion.conditions.items() if key in ASKED}
        return (
            criterion.metric.partition(".")[0] == self.check
            and not criterion.report_only
            and all(rule.met_by(self.known.get(key, "")) for key, rule in rules.items())
        )


@dataclass(frozen=True)
class Answers:
    """What was measured of a check so far, and which of it counts as an answer."""

    site: Site
    asked: Owed
    found: list[Sample]
    fresh: Freshness | None
    enough: Collection[Verdict]

    def lacking(self, criterion: Criterion, expected: Mapping[str, Hardware]) -> set[str]:
        """The nodes or units without an answer; all where their median or mean misses it."""
        name = criterion.metric
        usual = [b for b in self.site.baselines.values() if b.metric == name]
        baselines = dict.fromkeys(expected, usual) if Verdict.REGRESSED not in self.enough else {}
        each = units(criterion, self.found, expected, baselines, self.fresh)
        bad = {one.node for one in each if one.verdict not in self.enough}
        if criterion.scope in MIDDLES:
            bad = {one.node for one in each if one.value is None}
            whole = judge(name, criterion, self.found, expected, baselines, fresh=self.fresh)
            return bad if bad or whole.verdict in self.enough else set(expected)
        return bad

    def criteria(self) -> Iterable[Criterion]:
        """Those that the check may answer."""
        return (c for c in self.site.criteria.values() if self.asked.may_answer(c))


def nodes(site: Site, role: str, asked: Owed) -> set[str]:
    """The nodes of a role that lack an answer to some criterion that the check may answer."""
    return _nodes(_newest(site, asked), role)


def of_system(site: Site, asked: Owed) -> bool:
    """Whether an answer of the system as a whole is missing that the check may give."""
    answers, system = _newest(site, asked), {site.system.system: Hardware()}
    whole = [c for c in answers.criteria() if criterion_of_system(c)]
    return any(answers.lacking(criterion, system) for criterion in whole)


def of_session(site: Site, role: str, asked: Owed) -> set[str]:
    """The nodes of a role that failed in the restored session, or were not measured in it."""
    answers = _of_session(site, asked)
    if not answers.found:
        return set(site.expected(role))
    newest = _newest_statuses(answers.found)
    failed = {node for node in site.expected(role) if newest.get(node, "") != "ok"}
    return failed | _nodes(answers, role)


def pairs(site: Site, link: str, laid: Collection[Pair], asked: Owed) -> Callable[[Pair], bool]:
    """Whether a pair of a link lacks an answer, as `nodes`."""
    return _pairs(_newest(site, asked), link, laid)


def pairs_of_session(
    site: Site, link: str, laid: Collection[Pair], asked: Owed
) -> Callable[[Pair], bool]:
    """Whether a pair failed in the restored session, or was not measured in it."""
    answers = _of_session(site, asked)
    newest: dict[Pair, Sample] = {}
    for sample in answers.found:
        if pair_units.of_pairs(sample) and pair_units.link_of(sample) in ("", link):
            newest[sample.node, sample.dims[pair_units.PEER]] = sample
    lacks = _pairs(answers, link, laid)
    return lambda pair: pair not in newest or newest[pair].status != "ok" or lacks(pair)


def _nodes(answers: Answers, role: str) -> set[str]:
    site, found = answers.site, set[str]()
    for criterion in answers.criteria():
        if role in site.roles_of(criterion) and not criterion.links:
            facts = site.hardware_of(role)
            found |= answers.lacking(criterion, dict.fromkeys(site.expected(role), facts))
    return found


def _pairs(answers: Answers, link: str, laid: Collection[Pair]) -> Callable[[Pair], bool]:
    lacking: list[tuple[Criterion, set[str]]] = []
    for criterion in answers.criteria():
        if link not in criterion.links:
            continue
        expected = {link: Hardware()}
        if criterion.subject != "system":
            names = (unit for pair in laid for unit in _units(answers.site, criterion, pair, link))
            expected = dict.fromkeys(names, Hardware())
        lacking.append((criterion, answers.lacking(criterion, expected)))

    def lacks(pair: Pair) -> bool:
        return any(
            link in units or not units.isdisjoint(_units(answers.site, criterion, pair, link))
            for criterion, units in lacking
        )

    return lacks


def _units(site: Site, criterion: Criterion, pair: Pair, link: str) -> list[str]:
    """What a criterion calls a pair; both directions, where each has a figure."""
    both = criterion.subject == "pair" and site.catalogue[criterion.metric].directed
    ways = [pair, pair[::-1]] if both else [pair]
    return [pair_units.name(criterion, *way, link) for way in ways]


def _newest_statuses(found: Iterable[Sample]) -> dict[str, str]:
    """What became of each node in its newest job."""
    statuses: dict[str, tuple[object, list[str]]] = {}
    for sample in sorted(found, key=pair_units.job):
        job = pair_units.job(sample)
        if sample.node not in statuses or statuses[sample.node][0] != job:
            statuses[sample.node] = job, []
        statuses[sample.node][1].append(sample.status)
    return {node: most_severe_status(told) for node, (_, told) in statuses.items()}


def _newest(site: Site, asked: Owed) -> Answers:
    """All that may still answer; of a campaign that goes on, its own."""
    sessions, now = _sessions(site.system.system), datetime.now(UTC)
    headers, name = sessions.headers, session.current().campaign
    ages = Ages(headers, now)
    if name:
        mine = campaign.parts(headers, name)
        headers = mine[-1] if mine else []
        ages = ages.at_newest(headers)
    limits = [c.oldest for c in site.criteria.values() if asked.may_answer(c)]
    longest = None if None in limits else max(filter(None, limits), default=None)
    jobs = {id(h) for h in headers if h.check == asked.check}

    def wanted(header: Header) -> bool:
        if id(header) not in jobs or not limits:
            return False
        age = ages.age(header)
        return longest is None or age is not None and age <= longest

    fresh = Freshness(ages, Updates(headers, sessions.perflogs))
    return Answers(site, asked, sessions.of(wanted, needed=False), fresh, ANSWERED)


def _of_session(site: Site, asked: Owed) -> Answers:
    name, sessions = session.current().name, _sessions(site.system.system)
    found = sessions.of(lambda h: h.session == name and h.check == asked.check, needed=False)
    known = {key: value for key, value in asked.known.items() if key != "mode"}
    mine = [s for s in found if all(s.conditions.get(k, v) == v for k, v in known.items())]
    return Answers(site, asked, mine, None, (Verdict.PASS,))


@cache
def _sessions(system: str) -> Sessions:
    """All sessions of a system as this one begins."""
    return Sessions(files.perflogs(), system)
