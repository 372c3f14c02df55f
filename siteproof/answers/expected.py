"""What a criterion covers: every node, pair or link that owes a value, and what counts for it.

Also what jobs may have answered whose files cannot be read: nobody knows how they ended.

What criteria require of a run: the metrics that answer them, the settings of its check, points.

A derived metric is answered by its inputs, whose samples a criterion selects as its own. A
criterion sets the runs of the modes that it names, or of acceptance where it names none. Of trials
it sets all runs that may answer it: one with fewer trials would replace its answer.

Which sessions answer a system's criteria: for each of its nodes, pairs and links the newest.

Sessions are looked through from the newest on, until everything that is promised has an answer. A
run that was interrupted gives no answer: the older one stands. An answer that is older than its
criterion allows is searched for too, so that its age can be shown, but not for long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain

from siteproof.answers.attempts import (
    ALL_UNITS,
    attempts_at,
    may_answer,
    of_system,
    place,
    refusal,
    why_not,
)
from siteproof.record import campaign, pair_units
from siteproof.record.clocks import Ages
from siteproof.record.pair_units import LINK, grouped, is_gpu, node_of
from siteproof.record.samples import (
    EMULATED,
    LOST,
    TOOL_MISSING,
    UNREAD,
    Header,
    Sample,
    expected_nodes,
)
from siteproof.record.sessions import Sessions
from siteproof.sites import Baseline, Criterion, Expected, Hardware, Site, Waiver, pairs
from siteproof.sites.catalogue import Setting
from siteproof.sites.pairs import Pair
from siteproof.sites.promise import SCOPES, Subject

Laid = Mapping[str, Collection[Pair]]  # the pairs (client, server) of a run, by their link
Excuses = Sequence[tuple[str, Waiver]]  # waivers with their keys in the site


def covered(
    site: Site,
    name: str,
    criterion: Criterion,
    found: Sequence[Sample],
    today: date,
    laid: Laid | None = None,
) -> tuple[dict[str, Hardware], Mapping[str, Sequence[Baseline]], Mapping[str, Excuses]]:
    """The units that a criterion covers, with their baselines and waivers.

    name: the criterion's key; found, laid: as of `units`.
    """
    own = [b for b in site.baselines.values() if b.metric == criterion.metric]
    excused = waived(site, name, criterion.metric, today)
    if criterion.links:
        of_links = units(site, criterion, found, laid)
        baselines = dict.fromkeys(of_links, [b for b in own if b.links])
        return of_links, baselines, _excused_units(of_links, excused)
    by_node = grouped((node, baseline) for baseline in own for node in site.promised(baseline))
    owed = nodes(site, criterion)
    typical = {unit: by_node.get(pair_units.node_of(unit), ()) for unit in owed}
    return owed, typical, _excused_units(owed, excused)


def waived(site: Site, name: str, metric: str, today: date) -> dict[str, list[tuple[str, Waiver]]]:
    """The nodes that may miss a criterion today, each with its waivers and their keys."""
    return grouped(
        (node, (key, waiver))
        for key, waiver in site.waivers.items()
        if waiver.holds(today) and waiver.covers(name, metric)
        for node in waiver.set
    )


def _excused_units(units: Iterable[str], excused: Mapping[str, Excuses]) -> dict[str, Excuses]:
    """The waivers of each unit: of its nodes, or of a GPU itself."""
    found: dict[str, Excuses] = {}
    for unit in units if excused else ():
        of_ends = (one for node in pair_units.ends(unit) for one in excused.get(node, ()))
        found[unit] = [(key, waiver) for key, waiver in of_ends if waiver.is_of(unit)]
    return found


def nodes(site: Site, criterion: Criterion) -> dict[str, Hardware]:
    """Every node or GPU that a criterion covers, with its hardware; or the system as a whole."""
    if of_system(criterion):
        return {site.system.system: Hardware()}
    found: dict[str, Hardware] = {}
    for role in site.roles_of(criterion):
        hardware = site.hardware_of(role)
        for unit in of_role(site, criterion.metric, role):
            found.setdefault(unit, hardware)  # of several roles the first counts, as in `role_of`
    return found


def of_role(site: Site, name: str, role: str) -> Iterable[str]:
    """The nodes of a role, or their GPUs, of which a metric has a value each.

    `devices` of the hardware state how many GPUs a node has.
    """
    every, metric = list(site.expected(role)), site.catalogue.get(name)
    if metric is None or not metric.of_gpus:
        return every
    pairs, count = pair_units.PEER_GPU in metric.point, site.hardware_of(role).gpus
    of_each = (
        pair_units.gpu_units(node, count, pairs=pairs, directed=metric.directed) for node in every
    )
    return chain.from_iterable(of_each)


def units(
    site: Site, criterion: Criterion, found: Sequence[Sample], laid: Laid | None = None
) -> dict[str, Hardware]:
    """Every pair or link that a criterion over links covers, with the sender's hardware.

    found: samples; they alone know the pairs of a random pattern. A node of such a link that was
    in no pair stands alone: it should have been in one. laid: the pairs of a run, instead of all.
    """
    if criterion.subject == "system":
        return {link: Hardware() for link in criterion.links}
    covered = set(site.promised(criterion))  # a look into a NodeSet parses the name each time
    units: dict[str, Hardware] = {}
    for key in criterion.links:
        if laid is None:
            of_link = _units_of_link(site, criterion, key, found)
        else:
            of_link = of_pairs(site, criterion, key, laid.get(key, ()))
        for unit in of_link:
            if not covered.isdisjoint(pair_units.ends(unit)):
                units[unit] = hardware(site, unit)
    return units


def of_pairs(site: Site, criterion: Criterion, link: str, laid: Iterable[Pair]) -> list[str]:
    """What pairs (client, server) owe: both directions, if each has a value."""
    both = criterion.subject == "pair" and site.catalogue[criterion.metric].directed
    turns = (turn for a, b in laid for turn in ([(a, b), (b, a)] if both else [(a, b)]))
    return list(dict.fromkeys(pair_units.name(criterion, *turn, link) for turn in turns))


def _units_of_link(
    site: Site, criterion: Criterion, key: str, found: Sequence[Sample]
) -> list[str]:
    """The pairs that a link's pattern fixes in advance, else those that samples show.

    Of a random pattern also the nodes that were in no pair.
    """
    link = site.system.links[key]
    if fixed := of_pairs(site, criterion, key, pairs.planned(site, link)):
        return fixed
    seen = _seen_pairs(criterion, key, found)
    if not seen:
        return []
    drawn = {node for pair in seen for node in pair}
    everybody = pairs.servers(site, link) | pairs.clients(site, link)
    left = [node for node in everybody if node not in drawn]
    return of_pairs(site, criterion, key, seen) + left


def _seen_pairs(criterion: Criterion, key: str, found: Sequence[Sample]) -> list[tuple[str, str]]:
    """The pairs of a link that the samples of the criterion's check are of."""
    check = criterion.metric.partition(".")[0]
    return [
        (sample.node, sample.dims[pair_units.PEER])
        for sample in found
        if sample.header.check == check
        and pair_units.of_pairs(sample)
        and pair_units.link_of(sample) in ("", key)
    ]


def hardware(site: Site, unit: str) -> Hardware:
    """The hardware of a node, or of the sender of a pair."""
    role = site.role_of(pair_units.ends(unit)[0])
    return site.hardware_of(role) if role else Hardware()


def unread_jobs(site: Site, sessions: Sessions) -> dict[str, list[Sample]]:
    """For each such job, by `file_of`: a sample of each node, and one of all else."""
    return {file_of(header): _of_job(site, header) for header in sessions.unread}


def samples_of(
    unread: Mapping[str, Sequence[Sample]], sessions: Sessions, job: Header, nodes: Collection[str]
) -> Sequence[Sample]:
    """The samples of one job, at least those of some nodes. unread: as of `unread_jobs`."""
    return unread[file_of(job)] if job.is_unread else sessions.of_job(job, nodes)


def file_of(header: Header) -> str:
    """The file of such a job, below the system's folder."""
    return f"{header.partition}/{header.provenance[UNREAD]}"


def _of_job(site: Site, header: Header) -> list[Sample]:
    partition = site.system.partitions.get(header.partition)
    nodes = site.having(partition.roles) if partition else site.system.inventory
    why = f"{header.provenance[UNREAD]} cannot be read"
    return [
        Sample(header, node, f"{header.check}.*", status=LOST, why=why)
        for node in ("", *(expected_nodes(header.expected) or nodes))
    ]


CAMPAIGN, ROLE = "campaign", "nodes"  # keys of `against` that are no conditions
BOUNDS = ("at_least", "at_most", "equals")


def of_check(site: Site, check: str, *, deciding: bool = False) -> list[Criterion]:
    """The criteria that a check answers, and inputs of derived ones.

    deciding: without those that are reported only.
    """
    wanted = (c for c in site.owed.values() if not (deciding and c.report_only))
    answered = (one for criterion in wanted for one in answering(site, criterion))
    return [one for one in answered if one.metric.partition(".")[0] == check]


def answering(site: Site, criterion: Criterion) -> list[Criterion]:
    """What answers a criterion: itself; of a derived metric the inputs, of both sides.

    None of what a person's evidence answers.
    """
    if criterion.answered_by == "evidence":
        return []
    entry = site.catalogue[criterion.metric]
    if entry.check or not entry.derived_from:
        return [criterion]
    return [
        select(site, criterion, name, against=against)
        for name in entry.derived_from
        if name in site.catalogue
        for against in ([False, True] if criterion.against else [False])
    ]


def select(site: Site, criterion: Criterion, metric: str, *, against: bool = False) -> Criterion:
    """A criterion without a bound that selects an input's samples as this one selects its own.

    against: those of the other side.
    """
    known = site.catalogue.get(metric)  # None: a value that no criterion may name
    names = ("mode", EMULATED, *(known.conditions if known else ()))
    rules = {name: rule for name, rule in criterion.conditions.items() if name in names}
    changes: dict[str, object] = {}
    for name, text in criterion.against.items() if against else ():
        if name == LINK:
            changes["links"] = [text]
        elif name == ROLE:
            changes["nodes"] = [text]
        elif name in names:
            rules[name] = Expected(exact=text)
    subject: Subject = known.subject if known else "node"
    return criterion.like(
        metric=metric,
        subject=subject,
        scope=SCOPES.get(subject, "system"),
        conditions=rules,
        programs=[p for p in criterion.programs if known and p in known.programs],
        **dict.fromkeys(BOUNDS),
        report_only=f"an input of {criterion.metric}",
        **changes,
    )


WHOLE = "sweep"  # condition of what only a whole sweep has
TRIALS = "trials"  # a setting that is a key of the criterion, too


def settings(site: Site, check: str) -> dict[str, Setting]:
    """What criteria may set of a check, by the name of the condition."""
    own = (metric.settings for metric in site.catalogue.values() if metric.check == check)
    return {name: setting for each in own for name, setting in each.items()}


def one(site: Site, job: Header, name: str, default: str = "") -> str:
    """The value of a setting that all units of a run share; the default one where that will do.

    Where no value meets all criteria, one that most of them can be answered with. job: what its
    attempts share, as far as that is known.
    """
    setting = settings(site, job.check).get(name)
    if setting is None:
        return default
    rules = [rule for criterion in _criteria(site, job) for rule in _rules(criterion, job, name)]
    able = dict.fromkeys([default, *(text for rule in rules for text in setting.able(rule))])
    return max(able, key=lambda text: sum(rule.met_by(text) for rule in rules))


def each(site: Site, job: Header, name: str, default: Sequence[str]) -> list[str]:
    """The values of a setting of which a run measures each: the default, and those"""
    found = list(default)
    setting = settings(site, job.check)[name]
    for criterion in _criteria(site, job):
        for rule in _rules(criterion, job, name):
            if not any(map(rule.met_by, found)):
                found += setting.able(rule)[:1]
    return found


def points(site: Site, job: Header) -> list[dict[str, str]]:
    """The values of settings that criteria require together, each combination once."""
    found = [point for _, point in set_by(site, job)]
    return [point for number, point in enumerate(found) if point not in found[:number]]


def set_by(site: Site, job: Header) -> list[tuple[str, dict[str, str]]]:
    """Each criterion that sets a job, by its key, with the values that it requires."""
    known = settings(site, job.check)
    found = [
        (key, _point(known, one, job))
        for key, criterion in site.owed.items()
        for one in answering(site, criterion)
        if one.metric.partition(".")[0] == job.check
        and may_answer(one, job)
        and WHOLE not in site.catalogue[one.metric].conditions
    ]
    return [(key, point) for key, point in found if point]


def _point(known: Mapping[str, Setting], criterion: Criterion, job: Header) -> dict[str, str]:
    """The values that a criterion requires of the settings; none where one of them cannot be."""
    point: dict[str, str] = {}
    for name, setting in known.items():
        for rule in _rules(criterion, job, name):
            able = setting.able(rule)
            if not able:
                return {}
            point[name] = able[0]
    return point


def _criteria(site: Site, job: Header) -> Iterator[Criterion]:
    """The criteria, and inputs of derived ones, that a job of the check may answer."""
    return (one for one in of_check(site, job.check) if may_answer(one, job))


def _rules(criterion: Criterion, job: Header, name: str) -> Iterable[Expected]:
    """What a criterion requires of a setting in the mode of a job."""
    if name == TRIALS and criterion.trials:
        yield Expected(at_least=str(criterion.trials))
    if name in criterion.conditions and criterion.sets(job.mode):
        yield criterion.conditions[name]


BEYOND = 20  # sessions that are looked through for an answer that is too old
MAX_SOURCES_NAMED = 3
ANY = "*"  # a unit that only samples know, such as a pair that was drawn
FEW = 0.25  # of the nodes: reading these alone, and all of a session that answers, is cheaper
# The samples of some checks in a session, at least those of the nodes, if there are any.
Read = Callable[[str, set[str], "set[str] | None"], list[Sample]]


@dataclass
class Owed:
    """A criterion, those of its units that have no answer yet, and the checks that may answer it.

    looked: how many sessions were looked through that are too old for it. without: the units for
    which the newest answer is a missing program, with the partitions and environments that lack it;
    what was measured in another one, of `places`, still answers.
    """

    criterion: Criterion
    units: set[str]
    checks: set[str]
    looked: int = field(default=0)
    all: int = field(init=False)
    without: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    places: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.all = len(self.units)

    @property
    def few(self) -> set[str] | None:
        """The nodes that are left, if they are few; None where only all samples will do."""
        by_node = not (self.criterion.links or of_system(self.criterion) or ANY in self.units)
        left = self.left
        if not by_node or len(left) > FEW * self.all:
            return None
        return set(map(node_of, left))

    @property
    def left(self) -> set[str]:
        """The units for which older sessions are looked through."""
        return self.units | self.without.keys()

    def may_be_answered_by(self, header: Header) -> bool:
        """Whether a job could answer it, as far as its header shows."""
        return header.check in self.checks and may_answer(self.criterion, header)

    def find_places(self, headers: Iterable[Header]) -> None:
        """Note the partitions and environments of the jobs that could answer it."""
        may = filter(self.may_be_answered_by, headers)
        self.places = {(header.partition, header.environment) for header in may}

    def take(self, found: Sequence[Sample]) -> bool:
        """Note the units that these samples answer; whether one could have answered any."""
        units = attempts_at(found, self.criterion)
        spoke = self._had_to_measure(found, self.left - units.keys())
        for unit, attempts in units.items():
            may = self._left_of(unit)
            if not may:
                continue
            could = [s for s in attempts if not refusal(self.criterion, s)]
            spoke = spoke or bool(could)
            if answers := [s for s in could if not why_not(self.criterion, s)]:
                self.units -= may
                self._look_elsewhere(unit, may, answers)
        return spoke

    def _had_to_measure(self, found: Sequence[Sample], without: set[str]) -> bool:
        """Whether a job that could answer it was on the node of a unit that has no answer there."""
        nodes = set(map(node_of, without))
        own = (s for s in found if nodes and self.may_be_answered_by(s.header))
        return any(sample.node in nodes for sample in own)

    def _left_of(self, unit: str) -> set[str]:
        """Those that are left of the units that an attempt at this unit answers."""
        if unit == ALL_UNITS:
            return self.left
        of_node = self.criterion.subject == "gpu" and not is_gpu(unit)
        some = [one for one in self.left if node_of(one) == unit] if of_node else [unit, ANY]
        return {one for one in some if one in self.units or one in self.without}

    def _look_elsewhere(self, unit: str, may: set[str], answers: Sequence[Sample]) -> None:
        """Go on with a unit while all of its answers are missing programs, and others may be."""
        for one in may if self.criterion.subject == "gpu" else {unit}:
            lack = self.without.pop(one, set()) | {place(sample) for sample in answers}
            if all(sample.status == TOOL_MISSING for sample in answers) and self.places - lack:
                self.without[one] = lack


@dataclass
class Chosen:
    """The sessions that answer, the newest first; and jobs that answered when it was still time."""

    sessions: list[str] = field(default_factory=list)
    old_jobs: list[tuple[str, str]] = field(default_factory=list)

    def wanted(self, headers: Sequence[Header]) -> Callable[[Header], bool]:
        """Whether a job is one of them, or of the campaign of one; of the newest if all are old."""
        newest = self.sessions or [session for session, _ in self.old_jobs[:1]]
        sessions = campaign.with_campaign(headers, newest)
        jobs = set(self.old_jobs)
        return lambda h: h.session in sessions or (h.session, h.check) in jobs

    def words(self, headers: Sequence[Header]) -> str:
        """Which they are."""
        names = {h.session: h.campaign for h in headers}
        sources: dict[str, None] = {}
        for session in [*self.sessions, *(session for session, _ in self.old_jobs)]:
            name = names.get(session, "")
            sources[f"campaign {name}" if name else f"session {session}"] = None
        if len(sources) == 1:
            return next(iter(sources))
        *others, last = sources
        if (rest := len(sources) - MAX_SOURCES_NAMED) > 0:
            others, last = others[:MAX_SOURCES_NAMED], f"{rest} more"
        return f"the newest answers, of {', '.join(others)} and {last}"


def choose(owed: Mapping[str, Owed], headers: Sequence[Header], read: Read, ages: Ages) -> Chosen:
    """The sessions that answer the criteria. read: gives their samples."""
    chosen = Chosen()
    for one in owed.values():
        one.find_places(headers)
    newest_first = sorted(headers, key=lambda header: header.order, reverse=True)
    for session, jobs in grouped((header.session, header) for header in newest_first).items():
        in_time, late = _who_may(owed.values(), jobs, ages)
        checks = {check for one in (*in_time, *late) for check in one.checks}
        if not checks:
            continue
        found = read(session, checks, _few_of([*in_time, *late]))
        # Each takes what it can, even where one before has made the session count.
        taken = [one.take(found) for one in in_time]
        if any(taken):
            chosen.sessions.append(session)
        too_late = set[str]().union(*(one.checks for one in late if one.take(found)))
        chosen.old_jobs += [(session, check) for check in sorted(too_late)]
    return chosen


def _few_of(owed: Iterable[Owed]) -> set[str] | None:
    """The nodes that are left of all of these; None where one of them needs all samples."""
    left = [one.few for one in owed]
    return None if None in left else set().union(*filter(None, left))


def _who_may(
    owed: Iterable[Owed], jobs: Sequence[Header], ages: Ages
) -> tuple[list[Owed], list[Owed]]:
    """Those that these jobs may answer, in time or too late."""
    in_time, late = [], []
    for one in owed:
        may = [header for header in jobs if one.may_be_answered_by(header)]
        if not one.left or not may:
            continue
        if _in_time(one, may, ages):
            in_time.append(one)
        elif one.looked < BEYOND:
            one.looked += 1
            late.append(one)
    return in_time, late


def _in_time(owed: Owed, jobs: Sequence[Header], ages: Ages) -> bool:
    """Whether one of these jobs is young enough, or cannot be read."""
    limit = owed.criterion.oldest
    if limit is None or any(header.is_unread for header in jobs):
        return True
    return any((age := ages.age(header)) is not None and age <= limit for header in jobs)
