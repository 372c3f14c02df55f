"""A system's criteria judged from its samples: what `verdict`, `why` and reports start from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property, partial
from operator import is_

from siteproof import files, sites
from siteproof.answers import attempts, expected, implausible
from siteproof.answers.attempts import Freshness, attempts_at, each_place, failure, of_unit, refusal
from siteproof.answers.criterion import (
    CriterionVerdict,
    NodeVerdict,
    judge,
    not_here,
    waiver_finding,
)
from siteproof.compare import accepted
from siteproof.curves import sweep_runs, whole_sweep
from siteproof.curves.whole_sweep import Derived
from siteproof.errors import ExitCode, UserError
from siteproof.record import campaign, evidence_records, finding, pair_units
from siteproof.record.clocks import Ages, moment_of
from siteproof.record.descriptions import Updates
from siteproof.record.evidence_records import Evidence, Repair
from siteproof.record.finding import (
    WRONG,
    Finding,
    Kind,
    Verdict,
    exit_code,
    most_severe,
    note,
    of_status,
)
from siteproof.record.pair_units import grouped
from siteproof.record.samples import LOST, PUBLISHED, SWEEP, Header, Sample
from siteproof.record.series import Settings
from siteproof.record.sessions import Sessions
from siteproof.sites import Criterion, Site, catalogue, pairs
from siteproof.sites.catalogue import MODES
from siteproof.sites.promise import CONTRACT_MODES
from siteproof.sweeps.keys import SWEEPS_ONLY
from siteproof.verdict import others
from siteproof.verdict.derived.given import MAX_SESSIONS, Basis, MayBe, Past
from siteproof.verdict.others import Missed


@dataclass(frozen=True)
class Judgement:
    """The verdicts on one system. chosen: which samples they rest on, in words.

    unjudged: headline metrics that were measured, and that no criterion covers.
    warnings: what a value was measured under and should not have been, waivers that have expired,
    and `not_here` of what was measured, with the nodes; clocks that are wrong.
    derived: the values of each criterion whose metric follows from others, by its key. fresh: how
    old each answer is.
    sessions: all of the system, where older ones are wanted. as_of: the moment at which the ages
    count. asked: --since, --campaign and --as-of as the user gave them. past: whether no new
    measurement would count. late: whether what was measured before some time is left out, which a
    run does not know of.
    failed: of checks on nodes, which no later success has cleared, whatever criteria require.
    tried: the jobs of all of these checks, of sessions that may be looked at.
    members: of a system that consists of others: these, judged by its criteria.
    """

    site: Site
    chosen: str
    verdicts: Sequence[CriterionVerdict]
    samples: Sequence[Sample]
    unjudged: Sequence[str]
    warnings: Sequence[Finding]
    sessions: Sessions | None = None
    derived: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    as_of: datetime | None = None
    asked: Mapping[str, str] = field(default_factory=dict)
    past: bool = False
    late: bool = False
    fresh: Freshness | None = None
    failed: Sequence[Sample] = ()
    tried: Sequence[Header] = ()
    members: Mapping[str, Judgement] = field(default_factory=dict)

    @property
    def campaign(self) -> str:
        """The campaign that the user named."""
        return self.asked.get("--campaign", "")

    def attempts(self, result: CriterionVerdict) -> dict[str, list[Sample]]:
        """The samples that may answer for each unit of a criterion, with what was derived for it.

        The newest first.
        """
        return attempts_at(self.samples_of(result), result.criterion)

    def samples_of(self, result: CriterionVerdict) -> Sequence[Sample]:
        """The samples from which a criterion was judged, or what was derived from them."""
        own = self.derived.get(result.id)
        return _own_attempts(result.criterion, self.samples) if own is None else own

    @property
    def all_sessions(self) -> list[Sessions]:
        """The sessions of the system, or of each of its members, where older ones are wanted."""
        found = (one.sessions for one in (self, *self.members.values()))
        return [sessions for sessions in found if sessions]

    @property
    def set_aside(self) -> list[str]:
        """The stage directories that could not be collected, each with the reason."""
        return [str(one) for sessions in self.all_sessions for one in sessions.set_aside]

    @cached_property
    def repairs(self) -> tuple[Mapping[str, Repair], Sequence[Finding]]:
        """The last repair of each node, of those that count; what is wrong with their records."""
        until = self.as_of if self.past else None
        try:
            return evidence_records.newest_repairs(
                files.perflogs(), self.site.system.system, until
            ), ()
        except UserError as error:
            return {}, [Finding(Kind.UNREADABLE, message=str(error))]

    @property
    def most_severe(self) -> Verdict | None:
        """The most severe verdict on what decides; None if nothing does."""
        return most_severe(self.deciding)

    @property
    def deciding(self) -> list[Verdict]:
        """The verdicts on the criteria that decide, and on the failed checks besides them.

        Not those that only another mode answers, and had met.
        """
        of_checks = [of_status(attempt.status) for attempt in self.failed_besides]
        others = {result.id for result in self.of_other_modes}
        each = (v for v in self.verdicts if not v.excused and v.id not in others)
        return [v.verdict for v in each] + of_checks

    @cached_property
    def of_other_modes(self) -> list[CriterionVerdict]:
        """The criteria that the mode of the newest session does not answer, and that were met.

        They name other modes; or they set other modes only, and that session has measured their
        units with other settings. What answers them is too old, or of before an update. What was
        never measured, failed, or is of replaced hardware stays INCOMPLETE.
        """
        measured = (s.header for s in self.samples if s.header.mode in MODES)
        newest = max(measured, key=lambda header: header.order, default=None)
        return [
            result
            for result in self.verdicts
            if newest
            and result.verdict is Verdict.INCOMPLETE
            and result.nodes
            and all(map(_was_met, result.nodes))
            and self._is_left_by(result, newest)
        ]

    def _is_left_by(self, result: CriterionVerdict, newest: Header) -> bool:
        """Whether a session's mode leaves a criterion to others."""
        criterion = result.criterion
        if not criterion.conditions["mode"].met_by(newest.mode):
            return True
        if criterion.sets(newest.mode):
            return False
        attempts = self.attempts(result)
        old = [of_unit(unit.node, attempts) for unit in result.nodes if unit.too_old]
        return all(any(_is_otherwise(criterion, one, newest.session) for one in own) for own in old)

    @cached_property
    def failed_besides(self) -> list[Sample]:
        """The failures of checks that no criterion has decided, and that no waiver covers.

        A wrong answer of a check decides, too, where a criterion on it has another failure.
        """
        today = datetime.now(UTC).date()
        units = [
            (unit, result.criterion.metric.partition(".")[0])
            for result in self.verdicts
            for unit in result.nodes
            if not (result.excused or unit.verdict is Verdict.PASS)
        ]
        decided = {
            (pair_units.node_of(unit.node), check, unit.sample.header.job_order, unit.sample.status)
            for unit, check in units
            if unit.sample and unit.sample.status not in ("ok", LOST) and not unit.too_old
        }
        lost = {(pair_units.node_of(unit.node), check) for unit, check in units if unit.lost}
        return [
            one
            for one in self.failed
            if (one.node, one.header.check, one.header.job_order, one.status) not in decided
            and not (one.status == LOST and (one.node, one.header.check) in lost)
            and not _is_waived(self.site, one, today)
        ]

    @property
    def exit_code(self) -> ExitCode:
        """What `siteproof verdict` ends with.

        No PASS is whole where a file was refused, or a stage directory is set aside: either could
        hold a newer failure.
        """
        code = exit_code(self.deciding)
        unread = any(one.refused or one.set_aside for one in self.all_sessions)
        return ExitCode.INCOMPLETE if unread and code is ExitCode.PASS else code


def _is_otherwise(criterion: Criterion, attempt: Sample, session: str) -> bool:
    """Whether a session has measured a criterion's metric, under other conditions."""
    if attempt.header.session != session or attempt.status != "ok":
        return False
    why = refusal(criterion, attempt)
    return why is not None and why.kind is Kind.OTHER_CONDITION


def _was_met(unit: NodeVerdict) -> bool:
    """Whether a unit meets a criterion, or did so until its answer was too old."""
    met = unit.waived or unit.verdict in (Verdict.PASS, Verdict.REGRESSED)
    ages = (Kind.TOO_OLD, Kind.UPDATED_SINCE)
    too_old = any(why.kind in ages and why.get("answer") is None for why in unit.findings)
    return met or (unit.too_old and too_old)


def judge_system(
    system: str = "",
    *,
    since: str = "",
    name: str = "",
    as_of: str = "",
    to_now: bool = False,
    whole: bool = False,
) -> Judgement:
    """Judge every criterion of a system. Raises UserError and UserErrors for bad input.

    Without a campaign's name and a start, each criterion is answered by the newest samples that
    can, and ages count from now; otherwise from the newest of the sessions. as_of: a moment that
    stands for now; what was measured later is not there. to_now: failures of checks after the
    campaign count, too. whole: a system that consists of others will do, too.
    """
    site = sites.load(system or sites.recognise(), whole=whole)
    files.must_exist()
    if not site.members:
        return _judge_site(site, since, name, as_of, to_now=to_now)
    each = {}
    for key, member in site.members.items():
        try:
            each[key] = _judge_site(others.asked(site, member), since, name, as_of, part=True)
        except UserError as error:
            where = f"{error.where} of {key}"
            raise UserError(where, error.what, error.allowed, error.hint) from None
    return _judge_together(site, each)


def _judge_together(site: Site, each: Mapping[str, Judgement]) -> Judgement:
    """Judge a system that consists of others. each: its members, judged by its criteria."""
    newest = max(each.values(), key=lambda one: one.as_of or datetime.min.replace(tzinfo=UTC))
    assert newest.fresh is not None
    now = newest.fresh.ages.now
    evidence = [
        one
        for one in evidence_records.read_all(files.perflogs(), site.name)
        if datetime.fromisoformat(one.recorded) <= now
    ]
    made: others.Made = {}
    verdicts = others.verdicts(
        site,
        {name: {one.id: one for one in judged.verdicts} for name, judged in each.items()},
        *(evidence, Basis(site, {}, files.perflogs(), now), newest.fresh, made),
    )
    for key in {key for judged in each.values() for key in judged.derived}:
        of_each = (judged.derived.get(key, ()) for judged in each.values())
        made[key] = [*made.get(key, ()), *(sample for own in of_each for sample in own)]
    return Judgement(
        site,
        "; ".join(f"{name}: {judged.chosen}" for name, judged in each.items()),
        verdicts,
        [sample for judged in each.values() for sample in judged.samples],
        (),
        [why for judged in each.values() for why in judged.warnings],
        derived=made,
        as_of=now,
        asked=newest.asked,
        past=newest.past,
        late=newest.late,
        fresh=newest.fresh,
        members=each,
    )


def _must_have_begun(
    name: str, every: Sequence[Header], then: Sequence[Header], now: datetime
) -> None:
    """Raises UserError for a campaign of which nothing was measured yet. then: of every job."""
    if not campaign.parts(then, name) and (later := campaign.parts(every, name)):
        what = f"nothing of campaign '{name}' was measured before {now:%Y-%m-%d %H:%M} UTC"
        first = min(moment_of(job) for part in later for job in part)
        raise UserError("--as-of", what, hint=f"Its first job ended {first:%Y-%m-%d %H:%M} UTC")


def _judge_site(
    site: Site, since: str, name: str, as_of: str, *, to_now: bool = False, part: bool = False
) -> Judgement:
    """Judge a system that is measured. part: for another one: its failed checks do not matter."""
    record = Record.of(site)
    now = datetime.now(UTC)
    if as_of:
        now = min(campaign.since(as_of, now, "--as-of"), now)
        every, record = record.jobs, replace(record, until=now)
        _must_have_begun(name, every, record.jobs, now)
    start = campaign.since(since, now) if since else None
    limited = bool(name or start)  # to a campaign or a period, which is judged as of its end
    wanted, chosen = _choose(site, record, name, start, now)
    found = record.samples(wanted)
    ages, headers = Ages(record.headers, now), record.headers
    if limited:
        of_samples = list({id(sample.header): sample.header for sample in found}.values())
        ages = ages.at_newest(of_samples)
        last = max((header.order for header in of_samples), default=(0, "", ""))
        headers = [header for header in headers if header.order <= last]
    known, broken = record.accepted(now)
    settings = Settings(headers, known)
    fresh = Freshness(ages, Updates(headers, files.perflogs()), settings)
    if as_of:
        chosen += f", as of {now:%Y-%m-%d %H:%M} UTC"
    background = Background.of(site, record, now, headers)
    if not part:
        background = background.with_tried(site, record, record.headers if to_now else headers)
    judged = judge_samples(site, found, chosen, record.swept, fresh, background)
    past = bool(as_of) or "@" in name
    if not past:  # the checks of today's clone say nothing about a moment of the past
        judged = _without_check(judged)
    return replace(
        judged,
        asked={"--since": since, "--campaign": name, "--as-of": as_of},
        past=past,
        late=start is not None,
        sessions=record.sessions,
        warnings=[
            *_failed(judged.failed_besides),
            *judged.warnings,
            *broken,
            *record.sessions.clock_findings,
        ],
    )


def _choose(
    site: Site, record: Record, name: str, start: datetime | None, now: datetime
) -> tuple[Callable[[Header], bool], str]:
    """Which jobs are judged, and in words which they are."""
    headers = record.headers
    if site.criteria and not name and start is None:
        return _newest_answers(site, record, Ages(headers, now))
    shown = _without_criteria(headers)
    return campaign.choose(
        headers,
        campaign=name,
        start=start,
        answers=lambda job: not site.criteria and job.session in shown,
    )


def _newest_answers(site: Site, record: Record, ages: Ages) -> tuple[Callable[[Header], bool], str]:
    """The jobs that answer the criteria, and in words which they are."""
    headers, system = record.headers, site.system
    there = {*system.file_systems, *system.services, *system.scaling}
    have = grouped((header.check, header.conditions) for header in headers)
    owed = {
        f"{name} {part} {place}": expected.Owed(
            each, {expected.ANY} if criterion.report_only else _owed_units(site, one), _checks(one)
        )
        for name, criterion in site.criteria.items()
        for part, one in enumerate(expected.answering(site, criterion))
        for place, each in enumerate(
            [one, *each_place(one, have.get(_check_of(one.metric), ()), there)]
        )
    }
    chosen = expected.choose(owed, headers, record.of_session, ages)
    if not (chosen.sessions or chosen.old_jobs):
        return campaign.choose(headers, answers=lambda _job: False)
    return chosen.wanted(headers), chosen.words(headers)


def _checks(criterion: Criterion) -> set[str]:
    """The checks whose jobs may answer it."""
    check = _check_of(criterion.metric)
    return {check, *(whole_sweep.CHECKS if check == whole_sweep.TUNING else ())}


def _owed_units(site: Site, criterion: Criterion) -> set[str]:
    """What an answer is looked for; any one where only samples know the pairs."""
    if not criterion.links:
        return set(expected.nodes(site, criterion))
    drawn = any(not pairs.planned(site, site.system.links[key]) for key in criterion.links)
    known = set(expected.units(site, criterion, ()))
    return known | ({expected.ANY} if drawn and criterion.subject != "system" else set())


def _without_criteria(jobs: Sequence[Header]) -> set[str]:
    """The sessions that are worth showing where nothing is promised: quick ones if all are."""
    own = [job for job in jobs if job.mode != PUBLISHED]
    return {job.session for job in own if job.mode in CONTRACT_MODES} or {
        job.session for job in own
    }


@dataclass(frozen=True)
class Record:
    """All that was measured on a system, with what its sweeps give as a whole.

    until: a moment after which nothing was measured, for a verdict as of that moment.
    lost: what each job may have answered whose file cannot be read.
    """

    sessions: Sessions
    swept: Derived
    until: datetime | None = None
    lost: Mapping[str, Sequence[Sample]] = field(default_factory=dict)

    @staticmethod
    def of(site: Site) -> Record:
        """The record of a site. Raises UserErrors for broken files."""
        sessions = implausible.sessions_of(site)
        swept = sessions.of(lambda h: SWEEP in h.conditions, needed=False)
        whole = whole_sweep.of_all(site, swept)
        return Record(sessions, whole, lost=expected.unread_jobs(site, sessions))

    @property
    def headers(self) -> list[Header]:
        """What the samples of each job, or of each whole sweep, share."""
        swept = (sample.header for sample in self.swept.samples)
        return [*self.jobs, *filter(self._is_there, swept)]

    @property
    def jobs(self) -> list[Header]:
        """The header of each job, also of those whose files cannot be read."""
        return list(filter(self._is_there, [*self.sessions.headers, *self.sessions.unread]))

    def accepted(self, now: datetime) -> tuple[set[str], list[Finding]]:
        """The sessions that persons had accepted by a moment; and what is wrong with a record."""
        try:
            known = accepted.read_all(self.sessions.perflogs, self.sessions.system)
        except UserError as error:
            return set(), [Finding(Kind.UNREADABLE, message=str(error))]
        by_now = (one.sessions for one in known if one.when <= now.isoformat())
        return {session for of_one in by_now for session in of_one}, []

    def samples(
        self, wanted: Callable[[Header], bool], nodes: Collection[str] | None = None
    ) -> list[Sample]:
        """The samples of some of them, the oldest session first; nodes: as of Sessions.of."""

        def there(header: Header) -> bool:
            return wanted(header) and self._is_there(header)

        whole = [sample for sample in self.swept.samples if there(sample.header)]
        unread = [s for of_job in self.lost.values() for s in of_job if there(s.header)]
        return self.sessions.of(there, nodes=nodes) + whole + unread

    def of_job(self, job: Header, nodes: Collection[str]) -> Sequence[Sample]:
        """The samples of one job, at least those of some nodes."""
        return expected.samples_of(self.lost, self.sessions, job, nodes)

    def of_session(
        self, session: str, checks: set[str], nodes: Collection[str] | None
    ) -> list[Sample]:
        """The samples of some checks in a session; nodes: as of Sessions.of."""
        return self.samples(lambda h: h.session == session and h.check in checks, nodes)

    def _is_there(self, header: Header) -> bool:
        return self.until is None or moment_of(header) <= self.until


@dataclass(frozen=True)
class Background:
    """What is judged with the chosen samples. past: as of Material. evidence: all records.

    tried, failed: as of Judgement.
    """

    past: Past = lambda _checks, _may_be: ()
    evidence: Sequence[Evidence] = ()
    tried: Sequence[Header] = ()
    failed: Sequence[Sample] = ()

    @staticmethod
    def of(site: Site, record: Record, now: datetime, headers: Sequence[Header]) -> Background:
        """What a system has. headers: of the jobs that may be looked at."""
        newest_first = sorted(headers, key=lambda header: header.job_order, reverse=True)

        def past(checks: Collection[str], may_be: MayBe) -> Iterator[tuple[Header, list[Sample]]]:
            of_checks = (h for h in newest_first if h.check in checks and h.mode in CONTRACT_MODES)
            looked: set[str] = set()
            for header in filter(may_be, of_checks):
                looked.add(header.session)
                if len(looked) > MAX_SESSIONS:
                    return
                yield header, record.samples(partial(is_, header))

        evidence = evidence_records.read_all(files.perflogs(), site.system.system)
        known = [one for one in evidence if datetime.fromisoformat(one.recorded) <= now]
        return Background(past, known)

    def with_tried(self, site: Site, record: Record, headers: Sequence[Header]) -> Background:
        """With the failures of all checks up to the last of these jobs."""
        last = max((header.order for header in headers), default=(0, "", ""))
        tried = [job for job in record.jobs if job.order <= last]
        return replace(self, tried=tried, failed=attempts.standing(site, tried, record.of_job))


def judge_samples(
    site: Site,
    found: Sequence[Sample],
    chosen: str,
    swept: Derived | None = None,
    fresh: Freshness | None = None,
    background: Background | None = None,
) -> Judgement:
    """Judge every criterion of a site from these samples. chosen: which they are, in words.

    swept: what sweeps gave, and why they gave nothing. fresh: which answers are too old; without
    it, their ages count at the newest session. background: older samples, and evidence.
    """
    today = datetime.now(UTC).date()
    if fresh is None:
        headers = list({id(sample.header): sample.header for sample in found}.values())
        fresh = Freshness(Ages(headers, datetime.now(UTC)).at_newest(headers))
    of_checks = grouped((_check_of(sample.metric), sample) for sample in found)
    background = background or _background_of(site, found)
    own = (s.header for s in found if s.header.mode != PUBLISHED)
    jobs = list({id(header): header for header in own}.values())
    material = Basis(site, of_checks, files.perflogs(), fresh.ages.now, background.past, jobs)
    made: others.Made = {}
    missed = Missed(site, of_checks.get("HostParameters", ()))
    verdicts = [
        others.by_evidence(key, criterion, site, background.evidence, made, fresh)
        if criterion.answered_by == "evidence"
        else _judge(site, key, criterion, found, material, today, fresh, made, missed)
        for key, criterion in site.criteria.items()
    ]
    if swept:
        sessions = {s.header.session for s in found}
        verdicts = [_with_reason(verdict, swept, sessions) for verdict in verdicts]
    warnings = [
        *_warnings(found),
        *_interrupted(verdicts),
        *_expired(site, today),
        *_here_after_all(verdicts),
        *(
            note("has results here, but is in no catalogue: it does not count", check=check)
            for check in attempts.gone(site, background.tried)
        ),
    ]
    unjudged = _unjudged(site, found)
    return Judgement(
        site,
        chosen,
        verdicts,
        [sample for sample in found if not sample.header.is_unread],
        unjudged,
        warnings,
        derived=made,
        as_of=fresh.ages.now,
        fresh=fresh,
        failed=background.failed,
        tried=background.tried,
    )


def _background_of(site: Site, found: Sequence[Sample]) -> Background:
    """What is known where nothing besides these samples is."""
    failed = attempts.of_samples(site, found)
    return Background(tried=[sample.header for sample in found], failed=failed)


def _failed(attempts: Iterable[Sample]) -> list[Finding]:
    """How checks failed that no criterion has decided, each with its nodes."""
    return finding.of_many((failure(one), [one.node]) for one in attempts)


def _is_waived(site: Site, attempt: Sample, today: date) -> bool:
    """Whether a waiver covers the failure of a check; a wrong answer only where it is named.

    None covers what is lost: it may have been a wrong answer.
    """
    if attempt.status == LOST:
        return False
    metrics = [name for name, m in site.catalogue.items() if m.check == attempt.header.check]
    keys = [("", name) for name in metrics]
    keys += [(key, one.metric) for key, one in site.criteria.items() if one.metric in metrics]
    return any(
        waiver.holds(today)
        and attempt.node in waiver.set
        and waiver.is_of(pair_units.unit_of(attempt))
        and any(waiver.covers(*key) for key in [("", ""), *keys])
        and (attempt.status not in WRONG or attempt.status in waiver.wrong_answers)
        for waiver in site.waivers.values()
    )


def _judge(
    site: Site,
    name: str,
    criterion: Criterion,
    found: Sequence[Sample],
    material: Basis,
    today: date,
    fresh: Freshness,
    made: others.Made,
    missed: Missed,
) -> CriterionVerdict:
    """The verdict on a criterion. material: what was found, by the check of the metric."""
    entry = site.catalogue[criterion.metric]
    if not site.can_answer(criterion) and not criterion.report_only:
        why = note("no check yields {metric} yet", metric=criterion.metric)
        return not_here(CriterionVerdict(name, criterion, Verdict.PENDING, (why,)), ())
    units, baselines, excused = expected.covered(site, name, criterion, found, today)

    def judged(
        own: Criterion, samples: Sequence[Sample], lacks: Mapping[str, Finding] | None = None
    ) -> CriterionVerdict:
        result = judge(*(name, own, samples, units, baselines, excused, fresh, lacks, missed.why))
        if own.report_only and entry.better == "lower":
            result = replace(result, nodes=list(reversed(result.nodes)))
        return result

    if entry.derived_from and not entry.check:
        return others.derived(name, criterion, material, made, judged)
    of_check = material.of_checks.get(_check_of(criterion.metric), ())
    return judged(criterion, _own_attempts(criterion, of_check))


def _own_attempts(criterion: Criterion, found: Sequence[Sample]) -> Sequence[Sample]:
    """Without failures outside of a sweep where only a whole sweep answers."""
    if criterion.metric not in whole_sweep.METRICS:
        return found
    return [s for s in found if s.metric == criterion.metric or sweep_runs.of_sweep(s)]


def _check_of(metric: str) -> str:
    return metric.partition(".")[0]


def _with_reason(
    verdict: CriterionVerdict, swept: Derived, sessions: Collection[str]
) -> CriterionVerdict:
    """Why a sweep of these sessions gave no value, where nothing else explains its lack."""
    why = swept.reason(verdict.criterion.metric, sessions)
    unexplained = verdict.verdict is Verdict.INCOMPLETE and not any(n.sample for n in verdict.nodes)
    if why is None or not unexplained:
        return verdict
    nodes = [replace(node, findings=(why,)) for node in verdict.nodes]
    return replace(verdict, findings=(why,), others=0, nodes=nodes)


def _without_check(judged: Judgement) -> Judgement:
    """With each criterion whose check is missing: why nothing answers it, or nothing newer."""
    table, named = judged.site.catalogue, [v.criterion.metric for v in judged.verdicts]
    missing = catalogue.missing({metric: table[metric] for metric in named}, SWEEPS_ONLY)
    verdicts: list[CriterionVerdict] = []
    older: list[tuple[Finding, Iterable[str]]] = []
    for verdict in judged.verdicts:
        lost = missing.get(_check_of(verdict.criterion.metric))
        if lost and not verdict.excused:
            details = {"file": lost.file, "problem": lost.what}
            if verdict.verdict is Verdict.INCOMPLETE:
                why = finding.of(Kind.CHECK_MISSING, details, check=lost.check)
                verdict = _because(verdict, why)
            else:
                why = finding.of(Kind.CHECK_MISSING, details | {"older": 1}, check=lost.check)
                older.append((why, _ends_of(unit.node for unit in verdict.nodes)))
        verdicts.append(verdict)
    warnings = [*judged.warnings, *finding.of_many(older)]
    return replace(judged, verdicts=verdicts, warnings=warnings)


def _because(verdict: CriterionVerdict, why: Finding) -> CriterionVerdict:
    """With a reason more, also of its nodes that have no answer."""
    nodes = [
        replace(node, findings=(*node.findings, why))
        if node.verdict is Verdict.INCOMPLETE
        else node
        for node in verdict.nodes
    ]
    return replace(verdict, findings=(*verdict.findings, why), nodes=nodes)


def _ends_of(units: Iterable[str]) -> list[str]:
    """The nodes among these units, and those at both ends of pairs."""
    return [end for unit in units for end in pair_units.ends(unit)]


def _interrupted(verdicts: Sequence[CriterionVerdict]) -> list[Finding]:
    """Runs that were interrupted, and replaced no older answer."""
    found = []
    for result in verdicts:
        check = _check_of(result.criterion.metric)
        for unit in result.nodes:
            if unit.interrupted:
                text = "interrupted in session {session}; the older answer counts"
                why = note(text, check=check, session=unit.interrupted)
                found.append((why, pair_units.ends(unit.node)))
    return finding.of_many(found)


def _expired(site: Site, today: date) -> list[Finding]:
    """The waivers that have expired."""
    return [
        replace(waiver_finding(key, waiver), kind=Kind.WAIVER_EXPIRED, subject=str(waiver.units))
        for key, waiver in site.waivers.items()
        if not waiver.holds(today)
    ]


def _here_after_all(verdicts: Sequence[CriterionVerdict]) -> list[Finding]:
    """Criteria with `not_here` that were measured."""
    found = []
    for verdict in verdicts:
        if verdict.criterion.not_here and not verdict.excused:
            ends = _ends_of(unit.node for unit in verdict.nodes if unit.sample)
            text = "was measured, although the criterion has not_here: {message}"
            why = note(text, criterion=verdict.id, message=verdict.criterion.not_here)
            found.append((why, ends))
    return finding.of_many(found)


def _warnings(found: Sequence[Sample]) -> list[Finding]:
    """Each condition that is a warning, such as blas_warning, with the nodes that it is about."""
    headers = {id(sample.header): sample.header for sample in found}
    warned = {at for at, header in headers.items() if any(map(_is_warning, header.conditions))}
    return finding.of_many(
        (note("{message}", message=text), [sample.node])
        for sample in found
        if sample.status == "ok" and (sample.own_conditions or id(sample.header) in warned)
        for key, text in sample.conditions.items()
        if _is_warning(key)
    )


def _is_warning(condition: str) -> bool:
    return condition.endswith("_warning")


def _unjudged(site: Site, found: Sequence[Sample]) -> list[str]:
    """Headline metrics that no criterion covers, by itself or by what follows from them."""
    promised = {criterion.metric for criterion in site.owed.values()}
    for criterion in site.owed.values():
        promised |= {one.metric for one in expected.answering(site, criterion)}
    measured = {s.metric for s in found if s.status == "ok" and s.header.mode != PUBLISHED}
    return sorted(
        name
        for name in measured - promised
        if name in site.catalogue and site.catalogue[name].headline
    )
