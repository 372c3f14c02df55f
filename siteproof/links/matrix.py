"""Samples of pairs: which nodes explain the bad ones, and the days of a link.

A pair is answered by its newest job. A job that was interrupted, whose node was lost or whose tool
was missing gives no information on a pair; any other failure is a bad pair, and so is a wrong
answer even if other trials were good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from statistics import median

from siteproof import files, nodesets, units
from siteproof.analysis import attribution as rules
from siteproof.analysis.attribution import Blame, Culprit, Pair, blame, over_groups
from siteproof.answers.attempts import failure, why_not
from siteproof.errors import UserError, hint
from siteproof.links import transfers
from siteproof.links.transfers import Attempt, Cell, Grade, Grades, daily
from siteproof.record import campaign, finding, series
from siteproof.record.finding import WRONG, Detail, Finding, Kind, broke
from siteproof.record.pair_units import PEER, as_pair, by_point, grouped, job, link_of, of_pairs
from siteproof.record.samples import SWITCHES, Header, Sample
from siteproof.record.sessions import Sessions
from siteproof.sites import Criterion, Metric, Site, pairs

LINK = "link"  # the condition of every metric of pairs
STARS = ("star", "together")  # patterns whose clients have a server and no other peer
OF_A_JOB = ("at_once", "pattern", LINK)  # conditions that make no pair another quantity
# Of a pair: too few are judged by a gross difference only, and by a criterion.
GOOD, WARNED, BAD, FAILED, MISSING, TOO_FEW = STATES = (
    "good",
    "worth a look",
    "bad",
    "failed",
    "missing",
    "too few to judge",
)
DAYS = 7  # of a daily matrix without --since

Key = tuple[str, tuple[tuple[str, str], ...], str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Matrix:
    """One quantity of a link's pairs, all in the catalogue's unit. values: the medians of trials.

    failed: pairs that were tried and gave no value. missing: pairs that should have a value, and
    why they have none. decided: whether a bad value can be recognised; a count alone is not bad.
    broken: pairs whose value misses a criterion, and which. hubs: the servers of a star.
    bounded: whether a criterion or a threshold of the link decides, however few pairs there are.
    grades: the thresholds of the link. between: the values between groups of the site, where there
    are three or more; of_groups: which of them explain bad ones.
    """

    name: str
    link: str
    unit: str
    better: str
    values: Mapping[Pair, float]
    failed: Mapping[Pair, Sample]
    missing: Mapping[Pair, Finding]
    blame: Blame
    decided: bool
    broken: Mapping[Pair, Finding]
    hubs: frozenset[str]
    bounded: bool = False
    grades: Grades = Grades()
    between: Mapping[Pair, float] = field(default_factory=dict)
    of_groups: Blame | None = None

    @property
    def title(self) -> str:
        """The quantity, and the link where it has one."""
        return f"{self.name} over {self.link}" if self.link else self.name

    @property
    def groups(self) -> list[str]:
        """The groups of nodes, and the pairs of groups, that explain bad pairs."""
        if self.of_groups is None or not self.blame.bad:
            return []
        return [*map(str, self.of_groups.culprits), *self.of_groups.alone]

    def state(self, pair: Pair) -> str:
        """What is known of a pair: one of STATES."""
        if pair in self.failed:
            return FAILED
        if pair not in self.values:
            return MISSING
        if pair in self.blame.bad:
            return BAD
        if self.grades.grade(self.values[pair]) is Grade.WARN:
            return WARNED
        return GOOD if self.decided and (self.blame.judged or self.bounded) else TOO_FEW

    def of(self, culprit: Culprit) -> list[Pair]:
        """The pairs that were tried, of a culprit's bad side or sides."""
        return [pair for pair in (*self.values, *self.failed) if culprit.has(pair)]


@dataclass
class _Tried:
    """The pairs of one quantity so far: values, failures, and jobs that decide nothing."""

    values: dict[Pair, list[float]] = field(default_factory=dict)
    failed: dict[Pair, Sample] = field(default_factory=dict)
    untried: dict[Pair, Finding] = field(default_factory=dict)
    newest: Sample | None = None

    def take(self, samples: Sequence[Sample], both: bool, unit: str) -> None:
        """One job, which is newer than those before. both: whether values have a direction."""
        good: dict[Pair, list[float]] = {}
        for sample in samples:
            if sample.status == "ok":
                value = float(units.convert(sample.number, sample.unit, unit))
                good.setdefault((sample.node, sample.dims[PEER]), []).append(value)
                self.newest = sample
        self.values |= good
        for pair in good:
            self.failed.pop(pair, None)
        for sample in samples:
            for pair in _pairs_of(sample, both) if sample.status != "ok" else ():
                # A failed trial with good ones is a missing trial, unless its answer was wrong.
                if pair not in good or sample.status in WRONG:
                    self._fail(pair, sample)

    def _fail(self, pair: Pair, sample: Sample) -> None:
        if broke(sample.status):
            self.failed[pair] = sample
            self.values.pop(pair, None)
        else:
            self.untried[pair] = failure(sample)


def metric_of(site: Site, name: str, *, days: bool = False) -> Metric:
    """A metric of pairs from the catalogue. Raises UserError.

    days: of transfers between the ends of services, too, of which there is only a daily matrix.
    """
    if name == transfers.RATE:
        if days:
            return site.catalogue[name]
        what = f"{name} is shown day by day only"
        raise UserError("METRIC", what, hint=f"'siteproof matrix {name} --daily' shows it")
    of_links = [key for key, metric in site.catalogue.items() if metric.of_pairs]
    if name not in site.catalogue:
        raise UserError("METRIC", f"unknown metric '{name}'{hint(name, of_links)}", of_links)
    if name not in of_links:
        raise UserError("METRIC", f"'{name}' is not a metric of pairs of nodes", of_links)
    return site.catalogue[name]


def select(
    site: Site,
    sessions: Sessions,
    metric: str,
    link: str = "",
    *,
    since: str = "",
    name: str = "",
    days: bool = False,
) -> tuple[list[Sample], str]:
    """The samples of a metric's pairs, and in words which sessions they are of.

    Sessions are chosen as for a verdict: a campaign, a period, or the newest session that has
    such a sample, with its campaign; for the daily matrix the last days. Raises UserError.
    """
    metric_of(site, metric, days=days)
    if link and link not in site.system.links:
        known = site.system.links
        raise UserError("--link", f"no link '{link}'{hint(link, known)}", known)
    files.must_exist()
    check = metric.partition(".")[0]
    jobs = [header for header in sessions.headers if header.check == check]

    def is_wanted(sample: Sample) -> bool:
        return _is_of(sample, metric) and (not link or link_of(sample) in ("", link))

    def answers(job: Header) -> bool:
        return any(map(is_wanted, map(as_pair, sessions.of_job(job))))

    start = campaign.since(since, datetime.now(UTC)) if since else None
    if days and not since and not name:
        start = _first_day(jobs, answers)
    headers = sessions.headers if name else jobs
    wanted, words = campaign.choose(headers, campaign=name, start=start, answers=answers)
    found = map(as_pair, sessions.of(lambda header: header.check == check and wanted(header)))
    return [sample for sample in found if is_wanted(sample)], words


def is_lost(sessions: Sessions, metric: str, found: Iterable[Sample]) -> bool:
    """Whether a job that cannot be read may have measured pairs after one of these samples."""
    unread = (job for job in sessions.unread if job.check == metric.partition(".")[0])
    newest = max((job.order for job in unread), default=None)
    return newest is not None and any(sample.header.order < newest for sample in found)


def _first_day(jobs: Sequence[Header], answers: Callable[[Header], bool]) -> datetime | None:
    """The beginning of the first day that the daily matrix shows."""
    for newest in sorted(jobs, key=lambda job: job.order, reverse=True):
        if answers(newest):
            start = datetime.fromisoformat(newest.time) - timedelta(days=DAYS - 1)
            return start.replace(hour=0, minute=0, second=0, microsecond=0)
    return None


def collect(site: Site, found: Iterable[Sample], metric: str) -> list[Matrix]:
    """A matrix for each link and set of conditions under which a metric was measured."""
    of_metric = sorted((s for s in found if _is_of(s, metric)), key=job)
    groups = grouped((_key(sample), sample) for sample in of_metric if sample.status == "ok")
    failures = [sample for sample in of_metric if sample.status != "ok"]
    for sample in failures:
        if not any(_fits(sample, key) for key in groups):
            groups.setdefault((link_of(sample), (), sample.header.environment, ()), [])
    return [
        _matrix(site, metric, key, [*good, *(s for s in failures if _fits(s, key))])
        for key, good in sorted(groups.items())
    ]


def by_day(site: Site, found: Iterable[Sample], metric: str) -> dict[Pair, dict[date, Cell]]:
    """High, low and average of each pair's days, rates in MB/s, other units as in the catalogue."""
    of_links = metric != transfers.RATE
    attempts = _attempts(site, found, metric) if of_links else transfers.attempts(site, found)
    return dict(sorted(daily(attempts).items()))


def _attempts(site: Site, found: Iterable[Sample], metric: str) -> Iterator[Attempt]:
    """Each trial of each pair of a link, unless it failed next to good ones in its job.

    At each of several points it is a pair of its own: `s1 at streams 4`.
    """
    samples = [s for s in found if _is_of(s, metric)]
    both = _directed(s for s in samples if s.status == "ok")
    unit = day_unit(site.catalogue[metric])
    grades = {link: grades_of(site, metric, link, unit) for link in {link_of(s) for s in samples}}
    points = by_point((s for s in samples if s.status == "ok"), PEER, LINK) or {(): []}
    failed = [s for s in samples if s.status != "ok"]  # at no point, and so at each
    for of, good in points.items():
        at = f" at {', '.join(map(' '.join, of))}" if len(points) > 1 else ""
        yield from _attempts_at(at, [*good, *failed], both, grades)


def grades_of(site: Site, metric: str, link: str, unit: str) -> Grades:
    """The thresholds of a link for a metric, in a unit; none where a higher value is not better."""
    entry = site.catalogue[metric]
    if entry.better != "higher":
        return Grades(unit=unit)
    return Grades.of(site.system.graded(site.system.links.get(link)), unit)


def _attempts_at(
    at: str, samples: Sequence[Sample], both: bool, grades: Mapping[str, Grades]
) -> Iterator[Attempt]:
    """grades: of each link, in the unit of the values."""
    measured = {(job(s), s.node, s.dims[PEER]) for s in samples if s.status == "ok"}
    for sample in samples:
        value, own = None, grades[link_of(sample)]
        if sample.status == "ok":
            value = units.convert(sample.number, sample.unit, own.unit)
        for sender, receiver in _pairs_of(sample, both):
            if value is not None or (job(sample), sender, receiver) not in measured:
                yield Attempt((sender, receiver + at), _time(sample), value, sample.status, own)


def day_unit(metric: Metric) -> str:
    """The unit of the daily matrix: that of the ExTENCI slides for a rate."""
    return "MB/s" if units.kind(metric.unit) == "rate" else metric.unit


def limits(site: Site, metric: str, link: str, sample: Sample) -> dict[str, Criterion]:
    """The criteria over a link that a sample could answer, with a bound of their own, by id."""
    return {
        key: c
        for key, c in site.criteria.items()
        if c.metric == metric
        and link in c.links
        and c.subject != "system"
        and c.bound is not None
        and not c.bound.fact
        and not why_not(c, sample)
    }


def _is_of(sample: Sample, metric: str) -> bool:
    is_of_pairs = of_pairs(sample) or metric == transfers.RATE
    return is_of_pairs and sample.metric in (metric, metric.partition(".")[0] + ".*")


def _time(sample: Sample) -> datetime:
    return datetime.fromisoformat(sample.header.time).astimezone(UTC)


def _key(sample: Sample) -> Key:
    """What values must share to be in one matrix; a pair that alone differs stays in it."""
    dims = tuple(sorted((k, v) for k, v in sample.dims.items() if k != PEER))
    head = sample.header
    common = {
        k: v
        for k, v in head.conditions.items()
        if k not in OF_A_JOB and not k.endswith(series.NOISE)
    } | {"mode": head.mode}
    return link_of(sample), dims, head.environment, tuple(sorted(common.items()))


def _fits(sample: Sample, key: Key) -> bool:
    """Whether a failure, which has few conditions, may be one of this quantity."""
    mode = dict(key[3]).get("mode", sample.header.mode)
    return (
        link_of(sample) in ("", key[0])
        and sample.header.environment == key[2]
        and sample.header.mode == mode
    )


def _directed(good: Iterable[Sample]) -> bool:
    seen = {(s.node, s.dims[PEER]) for s in good}
    return any((b, a) in seen for a, b in seen)


def _pairs_of(sample: Sample, both: bool) -> Iterator[Pair]:
    """The pair of a value; of a failure, both directions if values have a direction."""
    pair = sample.node, sample.dims[PEER]
    yield pair
    if both and sample.status != "ok":
        yield pair[::-1]


def _matrix(site: Site, metric: str, key: Key, samples: Sequence[Sample]) -> Matrix:
    entry, link = site.catalogue[metric], key[0]
    both = _directed(s for s in samples if s.status == "ok")
    tried = _newest(samples, both, entry.unit)
    values = {pair: median(trials) for pair, trials in tried.values.items()}
    not_measured = Finding(Kind.NOT_MEASURED, check=metric.partition(".")[0], metric=metric)
    missing = dict.fromkeys(_expected(site, link, both), not_measured) | tried.untried
    missing = {p: why for p, why in missing.items() if p not in values and p not in tried.failed}
    limiting = limits(site, metric, link, tried.newest) if tried.newest else {}
    conditions = ", ".join(f"{k} {v}" for k, v in key[1])
    groups = groups_of(site, samples)
    at, grades = site.system.links.get(link), grades_of(site, metric, link, entry.unit)
    broken = _broken(metric, values, grades, limiting)
    hubs = frozenset(pairs.servers(site, at)) if at and at.pattern in STARS else frozenset()
    return Matrix(
        f"{metric} [{conditions}]" if conditions else metric,
        link,
        entry.unit,
        entry.better,
        values,
        tried.failed,
        missing,
        _blame(entry, hubs, values, tried.failed, broken, groups.values()),
        series.is_speed(entry) or bool(limiting) or bool(tried.failed),
        broken,
        hubs,
        bool(limiting) or grades.critical is not None,
        grades,
        *_between(entry, values, groups),
    )


def groups_of(site: Site, samples: Iterable[Sample]) -> dict[str, frozenset[str]]:
    """The groups that the site names, or else the switches that Slurm named for the newest job."""
    if site.system.groups:
        return {name: frozenset(site.system.group(name)) for name in site.system.groups}
    newest = max(samples, key=_time, default=None)
    each = newest.header.provenance.get(SWITCHES, "").split() if newest else []
    found = {}
    for name, _, nodes in (one.partition("=") for one in each):
        with suppress(ValueError):
            found[name] = frozenset(nodesets.parse(nodes))
    return found


def _between(
    entry: Metric, values: Mapping[Pair, float], groups: Mapping[str, frozenset[str]]
) -> tuple[dict[Pair, float], Blame | None]:
    """The values between three groups or more, and which of them explain bad ones."""
    found = over_groups(values, entry.better, groups) if series.is_speed(entry) else {}
    return (found, blame(found, entry.better)) if len(found) > 1 else ({}, None)


def _broken(
    metric: str, values: Mapping[Pair, float], grades: Grades, limiting: Mapping[str, Criterion]
) -> dict[Pair, Finding]:
    """The pairs below the critical rate of their link, and those that miss a bound."""
    unit, found = grades.unit, {}
    for pair, value in values.items():
        why = Finding(
            Kind.BELOW_THRESHOLD, _arrow(pair), metric=metric, value=f"{value:.6g}", unit=unit
        )
        if grades.grade(value) is Grade.CRITICAL:
            found[pair] = replace(why, bound=f"{float(grades.critical or 0):g} {unit}")
        for key, criterion in limiting.items():
            if not criterion.met(Fraction(value), unit):
                found[pair] = replace(
                    why, kind=Kind.MISSES_BOUND, criterion=key, bound=criterion.required
                )
    return found


def _newest(samples: Sequence[Sample], both: bool, unit: str) -> _Tried:
    """Each pair as its newest job leaves it."""
    tried = _Tried()
    for _, of_job in sorted(grouped((job(sample), sample) for sample in samples).items()):
        tried.take(of_job, both, unit)
    return tried


def _expected(site: Site, name: str, both: bool) -> list[Pair]:
    """The pairs that the link's pattern fixes in advance; none of a link that was removed."""
    link = site.system.links.get(name)
    if link is None:
        return []
    return pairs.directed(site, link) if both else pairs.planned(site, link)


def _blame(
    entry: Metric,
    hubs: frozenset[str],
    values: Mapping[Pair, float],
    failed: Mapping[Pair, Sample],
    broken: Mapping[Pair, Finding],
    groups: Iterable[frozenset[str]],
) -> Blame:
    """Speeds are compared with each other; of other values only those are bad that break a rule.

    There a pair counts as 1, and as nothing where it is bad.
    """
    vain = dict.fromkeys(failed)
    if series.is_speed(entry):
        return blame({**values, **vain}, entry.better, hubs=hubs, broken=broken, groups=[*groups])
    marks = {pair: None if pair in broken else 1.0 for pair in values}
    return blame(marks | vain, "higher", hubs=hubs)


def findings(one: Matrix) -> list[Finding]:
    """Why pairs are bad or have no value, and which nodes explain them; the nodes first."""
    check = one.name.partition(".")[0]

    def of(kind: Kind, subject: str, deficit: float, **samples: Detail) -> Finding:
        share = {"deficit": deficit} if deficit > 0 else {}
        return finding.of(
            kind,
            {"link": one.link, **samples, **share},
            subject=subject,
            check=check,
            metric=one.name,
        )

    found = blocks(one)
    for culprit in one.blame.culprits:
        bad = sum(culprit.node in pair for pair in one.blame.bad)
        sides = " and ".join(culprit.sides)
        found.append(of(Kind.EXPLAINS_PAIRS, culprit.node, culprit.deficit, sides=sides, bad=bad))
    for pair, sample in sorted(one.failed.items()):
        found.append(replace(failure(sample), subject=_arrow(pair), metric=one.name))
    found += [one.broken[pair] for pair in sorted(one.broken)]
    for pair, deficit in one.blame.links.items():
        if pair not in one.failed and pair not in one.broken:
            found.append(of(Kind.PAIR_SLOW, _arrow(pair), deficit))
    for better, share in rules.asymmetries(one.values, one.better).items():
        if share > rules.ASYMMETRIC:
            found.append(of(Kind.DIRECTIONS_DIFFER, _arrow(better[::-1]), share))
    for pair, why in sorted(one.missing.items()):
        found.append(replace(why, subject=_arrow(pair), metric=one.name))
    return found


def _arrow(pair: Pair) -> str:
    return f"{pair[0]}>{pair[1]}"


def blocks(one: Matrix) -> list[Finding]:
    """The trunks and leaves that are slow: the nodes on the far side, and those on the near one."""
    return [
        finding.of(
            Kind.BLOCK_SLOW,
            {
                "link": one.link,
                "deficit": block.share,
                "bad": len(block.pairs),
                "peers": str(nodesets.of(block.outside)),
            },
            subject=str(nodesets.of(block.inside)),
            check=one.name.partition(".")[0],
            metric=one.name,
        )
        for block in one.blame.blocks
    ]
