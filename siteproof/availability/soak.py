"""A soak: what the rounds of a campaign show of a set of nodes that was kept under load.

A round is a session of the campaign. What failed is taken from its results and from the
availability log between the first and the last round; nothing else is known of a soak.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from siteproof.answers import expected
from siteproof.availability import overview
from siteproof.availability.definitions import Span, Spans, between, seconds, union
from siteproof.availability.load_speeds import Speed, speeds
from siteproof.availability.overview import HOUR, Overview
from siteproof.availability.rounds import (
    Failure,
    Result,
    Round,
    Session,
    add_below,
    is_soak,
    mix_of,
    moment,
    round_of,
    sessions_of,
    times_of,
)
from siteproof.record import campaign, session_numbers
from siteproof.record.clocks import moment_of
from siteproof.record.finding import Finding, note
from siteproof.record.grouped import grouped
from siteproof.record.samples import LAST_PLACE, PUBLISHED, Header, Sample
from siteproof.record.samples import began as began_by_name
from siteproof.record.sessions import Sessions
from siteproof.record.severity import Verdict
from siteproof.sites import Site

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
    numbers = session_numbers.known(sessions.perflogs, sessions.system)
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
