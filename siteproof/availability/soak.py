"""A soak: what the rounds of a campaign show of a set of nodes that was kept under load.

A round is a session of the campaign. What failed is taken from its results and from the
availability log between the first and the last round; nothing else is known of a soak.

The rounds of a soak: sessions of a campaign, what each asked of which nodes, and what it got.

A node is under load in a round from the begin of the round to the end of the last job in which it
answered: the wait in the queue counts, and nothing counts in which it did not answer.

Speed under load: each headline metric over the rounds of a soak, first against last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from statistics import median

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets, units
from siteproof.analysis import steps
from siteproof.analysis.before_after import Change, compare
from siteproof.answers import expected
from siteproof.answers.criterion import judge
from siteproof.availability import overview
from siteproof.availability.definitions import Span, Spans, between, seconds, union
from siteproof.availability.overview import HOUR, Overview
from siteproof.record import campaign, clocks, series
from siteproof.record.clocks import moment_of
from siteproof.record.finding import NOT_TRIED, WRONG, Finding, Verdict, note
from siteproof.record.pair_units import PEER, ends, grouped
from siteproof.record.samples import (
    INTERRUPTED,
    LAST_PLACE,
    PUBLISHED,
    Header,
    Sample,
    expected_nodes,
    file_name,
)
from siteproof.record.samples import began as began_by_name
from siteproof.record.series import JobValue
from siteproof.record.sessions import Sessions
from siteproof.sites import Criterion, Metric, Site

ROUNDS, WITHIN = 6, timedelta(days=1)  # of the same checks, from which on a campaign is a soak


class Failure(StrEnum):
    """The classes of failures."""

    NODE_DOWN = "node down"
    WRONG = "wrong answer"
    BROKE = "job or tool failed"
    BELOW = "below its bound"
    MISSING = "no answer"
    CONTROL = "control daemon lost"
    ROUND = "round without record"


@dataclass(frozen=True)
class Round:
    """A session of the campaign.

    session: Its name.
    begin: When it began.
    end: When its last job ended.
    asked: The nodes that it had to measure.
    answered: Those of them that answered each check that asked them.
    lacking: Checks that most rounds have, and of which this one has no record.
    """

    session: str
    begin: datetime
    end: datetime
    asked: NodeSet
    answered: NodeSet
    lacking: Sequence[str]


@dataclass
class Session:
    """A session while its jobs are read. results: what each check gave on each subject."""

    name: str
    begin: int
    end: int
    checks: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    load: dict[str, int] = field(default_factory=dict)
    results: dict[tuple[str, str], list[Result]] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """kind: the class of the failure; None of a value. at: when the job ended."""

    kind: Failure | None
    at: int
    why: str = ""


def is_soak(jobs: Sequence[Header]) -> bool:
    """Whether ROUNDS sessions of the same checks began within a day, with a node in common."""
    alike: dict[frozenset[str], list[tuple[datetime, frozenset[str]]]] = {}
    for own in grouped((job.session, job) for job in jobs).values():
        nodes = frozenset[str]().union(*(expected_nodes(job.expected) for job in own))
        checks = frozenset(job.check for job in own)
        alike.setdefault(checks, []).append((moment(min(map(began, own))), nodes))
    for rounds in alike.values():
        rounds.sort(key=lambda one: one[0])
        for at in range(len(rounds) - ROUNDS + 1):
            some = rounds[at : at + ROUNDS]
            common = frozenset.intersection(*(nodes for _, nodes in some))
            if common and some[-1][0] - some[0][0] <= WITHIN:
                return True
    return False


def times_of(jobs: Sequence[Header]) -> dict[str, Span]:
    """Begin and end of each session, in their order, whatever the clocks say.

    None begins before the one before it, so that a clock that was set back makes no time longer.
    """
    found: dict[str, Span] = {}
    latest = 0
    in_order = sorted(jobs, key=lambda job: job.job_order)
    for name, own in grouped((job.session, job) for job in in_order).items():
        end = max(map(ended, own))
        latest = max(min(map(began, own)), min(latest, end))
        found[name] = latest, end
    return found


def began(job: Header) -> int:
    """When the session began, by its name, but not after its job; without a time, as the job."""
    return ended(job) if job.began is None else min(int(job.began), ended(job))


def ended(job: Header) -> int:
    """When it ended, in seconds since 1970."""
    return int(moment_of(job).timestamp())


def sessions_of(jobs: Sequence[Header], found: Sequence[Sample]) -> list[Session]:
    """The rounds in their order, with the results of their jobs."""
    of_job = grouped((_file(sample.header), sample) for sample in found)
    times = times_of(jobs)
    rounds: dict[str, Session] = {}
    for job in sorted(jobs, key=lambda job: job.job_order):
        one = rounds.setdefault(job.session, Session(job.session, *times[job.session]))
        one.checks.add(job.check)
        _add_job(one, job, of_job.get(_file(job), ()))
    return list(rounds.values())


def _file(job: Header) -> tuple[str, str]:
    return job.partition, file_name(job)


def _add_job(one: Session, job: Header, found: Sequence[Sample]) -> None:
    """What a job asked and got. A value of no single node is an answer of all its nodes."""
    asked = set(expected_nodes(job.expected))
    answered, missing, at = set[str](), set[str](), ended(job)
    for sample in found:
        own = {sample.node, sample.dims.get(PEER, "")} - {""}
        asked |= own
        (missing if sample.status in NOT_TRIED else answered).update(own or asked)
        if sample.status != INTERRUPTED:
            result = Result(_class(sample.status), at, sample.why)
            subject = sample.node or sample.header.system
            one.results.setdefault((subject, job.check), []).append(result)
    one.asked |= asked
    one.missing |= missing | (asked - answered)
    one.load |= {node: max(at, one.load.get(node, at)) for node in answered}


def _class(status: str) -> Failure | None:
    classes = dict.fromkeys(WRONG, Failure.WRONG) | dict.fromkeys(NOT_TRIED, Failure.MISSING)
    return None if status == "ok" else classes.get(status, Failure.BROKE)


def add_below(site: Site, one: Session, found: Sequence[Sample], today: date) -> int:
    """Add the values that miss a criterion in this round alone; how many values were judged."""
    judged = 0
    for name, criterion, own in _asked(site, found):
        check = own[0].header.check
        units, baselines, excused = expected.covered(site, name, criterion, own, today)
        for unit in judge(name, criterion, own, units, baselines, excused).nodes:
            if unit.value is None or unit.sample is None:
                continue
            judged += 1
            if unit.verdict is Verdict.FAIL:
                value = _in_unit(unit.value, unit.sample.unit, criterion)
                why = f"{name}: {value}, {criterion.required} required"
                result = Result(Failure.BELOW, ended(unit.sample.header), why)
                one.results.setdefault((ends(unit.node)[0], check), []).append(result)
    return judged


def _in_unit(value: Fraction, unit: str, criterion: Criterion) -> str:
    """A value in the unit of the bound; of a share of a fact, in its own."""
    bound = criterion.bound
    own = bound.quantity.unit if bound and not bound.fact else unit
    return units.with_unit(f"{float(units.convert(value, unit, own)):.6g}", own)


def _asked(
    site: Site, found: Sequence[Sample]
) -> Iterator[tuple[str, Criterion, Sequence[Sample]]]:
    """The criteria that a check answers by itself, each with the samples of its check, if any."""
    of_check = grouped((sample.header.check, sample) for sample in found)
    for name, criterion in site.criteria.items():
        own = of_check.get(site.catalogue[criterion.metric].check or "")
        if own and not criterion.report_only and criterion.answered_by != "evidence":
            yield name, criterion, own


def mix_of(rounds: Sequence[Session]) -> set[str]:
    """The checks that more than half of the rounds have."""
    counts = Counter(check for one in rounds for check in one.checks)
    return {check for check, count in counts.items() if 2 * count > len(rounds)}


def round_of(one: Session, mix: set[str]) -> Round:
    """The round as it is shown. mix: the checks that it should have."""
    asked, answered = nodesets.of(one.asked), nodesets.of(one.asked - one.missing)
    lacking = sorted(mix - one.checks)
    return Round(one.name, moment(one.begin), moment(one.end), asked, answered, lacking)


def moment(at: int) -> datetime:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(at, UTC)


SHARE, FEWEST = 4, 3  # the first and last quarter of the rounds are compared, of three at least


@dataclass(frozen=True)
class AtRound:
    """A metric in a round.

    begin: When the round began.
    share: Median over the nodes of each value as a share of the node's own median.
    """

    begin: datetime
    share: float


@dataclass(frozen=True)
class Speed:
    """A headline metric over the rounds.

    metric: The metric, with its dimensions.
    unit: The unit of first and last.
    nodes: How many nodes have values.
    rounds: How many rounds have values.
    first: Median in the first rounds that are compared; null with fewer than 6 rounds.
    last: Median in the last rounds that are compared.
    compared: How many rounds are compared at each end.
    change: From first to last, as a share.
    effect: Better, worse, the same, or undecidable, by the rule of 'siteproof compare'.
    drift: Change over all rounds by the slope, as a share; null with fewer than 30 rounds.
    drifts: Whether that slope is proven and large enough, by the rule of 'siteproof trend'.
    shares: The metric in each round with values.
    """

    metric: str
    unit: str
    nodes: int
    rounds: int
    first: float | None
    last: float | None
    compared: int
    change: float | None
    effect: str
    drift: float | None
    drifts: bool
    shares: Sequence[AtRound]


def speeds(site: Site, rounds: Sequence[Session], found: Sequence[Sample]) -> list[Speed]:
    """Each headline speed of nodes, links and the system, in the order of the catalogue."""
    begins = {one.name: one.begin for one in rounds}
    places = {name: place for place, name in enumerate(site.catalogue)}
    values = series.collect(site, found, series.is_headline, of_system=True)
    ordered = sorted(values, key=lambda key: (places[key.metric], key.name, key.role))
    return [_speed(site.catalogue[key.metric], key.name, values[key], begins) for key in ordered]


def _speed(
    metric: Metric, name: str, nodes: Mapping[str, Sequence[JobValue]], begins: Mapping[str, int]
) -> Speed:
    own = {node: median(value.value for value in values) for node, values in nodes.items()}
    shares = _shares(nodes, own, begins)
    size = max(FEWEST, len(shares) // SHARE)
    change: Change | None = None
    if len(shares) >= 2 * size:
        values = [median(own.values()) * share for share in shares.values()]
        change = compare(values[:size], values[-size:], metric.better)
    slope = None
    if len(shares) >= steps.LONG_ENOUGH:
        slope = steps.slope(list(shares), list(shares.values()))
    return Speed(
        *(name, metric.unit, len(nodes), len(shares)),
        first=change.before if change else None,
        last=change.after if change else None,
        compared=size if change else 0,
        change=change.change if change else None,
        effect=change.text if change else "too few rounds",
        drift=slope.relative if slope else None,
        drifts=slope is not None and steps.worth_an_alert(slope),
        shares=[AtRound(moment(begin), share) for begin, share in shares.items()],
    )


def _shares(
    nodes: Mapping[str, Sequence[JobValue]], own: Mapping[str, float], begins: Mapping[str, int]
) -> dict[int, float]:
    """By the begin of each round: the median over the nodes of a value as a share of its node's.

    So a round without a fast or a slow node is not slower or faster.
    """
    found = grouped(
        (begins[value.session], value.value / own[node])
        for node, values in nodes.items()
        for value in values
        if own[node]
    )
    return {begin: median(found[begin]) for begin in sorted(found)}


VERDICTS = {  # what a class is worth
    Failure.NODE_DOWN: Verdict.FAIL,
    Failure.WRONG: Verdict.FAIL,
    Failure.BROKE: Verdict.ERROR,
    Failure.BELOW: Verdict.FAIL,
    Failure.MISSING: Verdict.INCOMPLETE,
    Failure.CONTROL: Verdict.FAIL,
    Failure.ROUND: Verdict.INCOMPLETE,
}
FROM_LOG: tuple[Failure, ...] = (Failure.NODE_DOWN, Failure.CONTROL)  # not without Slurm's events


@dataclass(frozen=True)
class Event:
    """A failure: of one class, subject and check, without a good answer in between.

    kind: Its class.
    subject: The node; or the system, or the session, where it is of no single node.
    check: The check that failed; empty if it is of none.
    begin: When it began: an outage, or the end of the first job that showed it.
    end: When it ended, or the end of the last job that showed it.
    results: How many results show it; 0 of an outage.
    why: The reason that the record gives.
    """

    kind: Failure
    subject: str
    check: str
    begin: datetime
    end: datetime
    results: int
    why: str = ""


@dataclass(frozen=True)
class Tally:
    """The failures of one class.

    kind: The class.
    failures: How many there were; null if nothing recorded could show one.
    subjects: How many nodes, systems or sessions they are of.
    hours: The hours in which one would have been seen: hours of all nodes together, up or under
        load; of the control daemon and of rounds, hours of the period.
    mtbf_hours: Mean time between two of them; null without a failure.
    mtbf_bound_hours: Its lower bound at a confidence of 90 %; null without such hours.
    """

    kind: Failure
    failures: int | None
    subjects: int
    hours: float
    mtbf_hours: float | None
    mtbf_bound_hours: float | None


@dataclass(frozen=True)
class Soak:
    """What is known of a campaign as a soak. name: of the campaign.

    load: of each node that was asked, when it was under load.
    known: the availability in that time, with these nodes only.
    """

    name: str
    rounds: Sequence[Round]
    load: Mapping[str, Spans]
    events: Sequence[Event]
    tallies: Sequence[Tally]
    speeds: Sequence[Speed]
    known: Overview
    findings: Sequence[Finding] = ()

    @property
    def node_hours(self) -> float:
        """Hours under load of all nodes together."""
        return sum(map(seconds, self.load.values())) / HOUR

    @property
    def whole_rounds(self) -> int:
        """The rounds in which every node answered every check."""
        return sum(not one.lacking and one.asked == one.answered for one in self.rounds)

    @property
    def verdicts(self) -> list[Verdict]:
        """What the classes with failures are worth; INCOMPLETE where a round is not whole."""
        found = [VERDICTS[one.kind] for one in self.tallies if one.failures]
        whole = self.whole_rounds == len(self.rounds)
        return found if whole else [*found, Verdict.INCOMPLETE]


# ---- which campaign


def read(site: Site, sessions: Sessions, jobs: Sequence[Header], now: datetime) -> Soak:
    """The soak of a campaign's jobs, one or more. Raises UserErrors for broken files."""
    names = {job.session for job in jobs}
    found = sessions.of(lambda header: header.session in names)
    lost = expected.unread_jobs(site, sessions)
    found += [one for own in lost.values() for one in own if one.header.session in names]
    known = overview.read(site, sessions.perflogs, period(jobs), int(now.timestamp()))
    made = of(site, jobs, found, known, _unrecorded(sessions, jobs, now), now.date())
    return replace(made, findings=[*made.findings, *sessions.clock_findings])


def jobs_of(sessions: Sessions, name: str, now: datetime) -> list[Header]:
    """The jobs of a campaign's sessions. Raises UserError if the campaign is not known.

    One that ended later than now, by its clock, counts as one that ends now.
    """
    headers = [*sessions.headers, *sessions.unread]
    wanted, _ = campaign.choose(headers, campaign=name)
    jobs = _with_unread(headers, {header.session for header in headers if wanted(header)})
    return [replace(job, time=min(moment_of(job), now).isoformat()) for job in jobs]


def newest(headers: Sequence[Header]) -> list[Header]:
    """The jobs of the newest campaign that is a soak."""
    soaks = filter(is_soak, reversed(campaign.all_parts(headers)))
    return _with_unread(headers, {header.session for header in next(soaks, [])})


def _with_unread(headers: Iterable[Header], sessions: Collection[str]) -> list[Header]:
    """The jobs of these sessions; one that cannot be read does not say its campaign."""
    return [h for h in headers if h.session in sessions and h.mode != PUBLISHED]


def period(jobs: Sequence[Header]) -> Span:
    """From the begin of the first round to the end of the last one."""
    times = list(times_of(jobs).values())
    return times[0][0], max(times[0][0] + 1, *(end for _, end in times))


def _unrecorded(sessions: Sessions, jobs: Sequence[Header], now: datetime) -> list[str]:
    """The sessions with a number and without any record, from the first round to the next session.

    Of those after the last round not one that may still run: for as long as the longest round.
    """
    numbers = clocks.known(sessions.perflogs, sessions.system)
    headers = [*sessions.headers, *sessions.unread]
    there = {header.session for header in headers}
    places = [job.place for job in jobs if job.place] or [0]
    first, last = min(places), max(places)
    following = min((h.place for h in headers if h.place > last), default=LAST_PLACE)
    longest = max(end - begin for begin, end in times_of(jobs).values())
    return [
        name
        for name, number in sorted(numbers.items(), key=lambda one: one[1])
        if first < number < following
        and name not in there
        and (number < last or (began_by_name(name) or 0) + longest < now.timestamp())
    ]


def of(
    site: Site,
    jobs: Sequence[Header],
    found: Sequence[Sample],
    known: Overview,
    unrecorded: Sequence[str],
    today: date,
) -> Soak:
    """The soak of a campaign's jobs and their samples.

    known: the availability from the first to the last round. today: for the waivers.
    """
    rounds = sessions_of(jobs, found)
    of_session = grouped((sample.header.session, sample) for sample in found)
    judged = 0
    for one in rounds:
        judged += add_below(site, one, of_session.get(one.name, ()), today)
    mix = mix_of(rounds)
    nodes = sorted({node for one in rounds for node in one.asked})
    load = {
        node: union((r.begin, r.load[node]) for r in rounds if node in r.load) for node in nodes
    }
    known = replace(known, nodes={node: known.nodes[node] for node in nodes if node in known.nodes})
    events = sorted(
        [
            *_of_results(_explained(rounds, known)),
            *_of_log(site, known),
            *_of_records(site, rounds, mix, unrecorded),
        ],
        key=lambda one: (one.begin, one.subject, one.check),
    )
    findings = list(known.findings)
    if known.disconnected is None:
        findings.append(note("no node event is recorded: outages are not known"))
    if not judged:
        findings.append(note("no round has a value that a criterion judges"))
    made = Soak(
        next(job.campaign for job in jobs if job.campaign),
        [round_of(one, mix) for one in rounds],
        load,
        events,
        (),
        speeds(site, rounds, found),
        known,
        findings,
    )
    return replace(made, tallies=list(_tallies(made, judged)))


def _explained(rounds: Sequence[Session], known: Overview) -> Iterator[Session]:
    """The rounds without the missing answers of nodes that Slurm shows as down in them."""
    for one in rounds:
        span = union([(one.begin, max(one.end, one.begin + 1))])
        down = {node for node, part in known.nodes.items() if part.within(span).down}
        results = {
            key: [r for r in own if r.kind is not Failure.MISSING or key[0] not in down]
            for key, own in one.results.items()
        }
        yield replace(one, results=results)


def _of_results(rounds: Iterable[Session]) -> Iterator[Event]:
    """One event for each class, subject and check until there is a round with good results only."""
    of_each = grouped((key, own) for one in rounds for key, own in one.results.items() if own)
    for (subject, check), results in of_each.items():
        for kind in Failure:
            for own in filter(None, _until_good(results, kind)):
                first, last = moment(own[0].at), moment(own[-1].at)
                yield Event(kind, subject, check, first, last, len(own), own[0].why)


def _until_good(rounds: Iterable[Sequence[Result]], kind: Failure) -> Iterator[list[Result]]:
    """The results of a class, apart where a round between two has good results only."""
    found: list[Result] = []
    for results in rounds:
        if not any(one.kind for one in results):
            yield found
            found = []
        found += [one for one in results if one.kind is kind]
    yield found


def _of_log(site: Site, known: Overview) -> Iterator[Event]:
    """The outages of nodes, and of the control daemon."""
    outages = [(Failure.NODE_DOWN, node, part.outages) for node, part in known.nodes.items()]
    outages.append((Failure.CONTROL, site.name, known.disconnected or ()))
    for kind, subject, spans in outages:
        for begin, end in spans:
            yield Event(kind, subject, "", moment(begin), moment(end), 0)


def _of_records(
    site: Site, rounds: Sequence[Session], mix: set[str], unrecorded: Sequence[str]
) -> Iterator[Event]:
    """Checks that a round has no record of, and sessions without any record."""
    for one in rounds:
        begin, end = moment(one.begin), moment(one.end)
        for check in sorted(mix - one.checks):
            why = f"no record of it in session {one.name}"
            yield Event(Failure.MISSING, site.name, check, begin, end, 1, why)
    for session in unrecorded:
        at = moment(int(began_by_name(session) or rounds[0].begin))
        why = "it has a number and no record; its campaign is not known"
        yield Event(Failure.ROUND, session, "", at, at, 0, why)


def _tallies(soak: Soak, judged: int) -> Iterator[Tally]:
    """Each class with its failures, and the hours in which one would have been seen."""
    nodes = list(soak.known.nodes.values())
    hours = dict.fromkeys(Failure, soak.node_hours)
    hours[Failure.NODE_DOWN] = sum(seconds(part.up) for part in nodes) / HOUR
    hours[Failure.CONTROL] = seconds(union(*(part.known for part in nodes))) / HOUR
    hours[Failure.ROUND] = soak.known.period_hours
    unknown = FROM_LOG if soak.known.disconnected is None else ()
    unknown += () if judged else (Failure.BELOW,)
    own = grouped((event.kind, event.subject) for event in soak.events)
    for kind, of_class in hours.items():
        subjects = own.get(kind, [])
        if kind in unknown or not (of_class or subjects):
            yield Tally(kind, None, 0, 0.0, None, None)
        else:
            made = between(of_class, len(subjects))
            yield Tally(kind, len(subjects), len(set(subjects)), of_class, made.mean, made.bound)
