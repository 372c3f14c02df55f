"""What nodes report of themselves, as findings: what differs, is not as stated, or not known.

What is wrong with a node apart from its speed: contract, failures, oddities, missing values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from siteproof import files, nodesets
from siteproof.analysis import uniformity
from siteproof.analysis.slow_nodes import State
from siteproof.analysis.uniformity import Odd, Uniformity
from siteproof.answers import attempts
from siteproof.answers.attempts import failure, of_system
from siteproof.answers.criterion import CriterionVerdict, NodeVerdict
from siteproof.nodes import speeds
from siteproof.record import descriptions, finding, series
from siteproof.record.finding import WRONG, Finding, Kind, most_severe_status, note
from siteproof.record.pair_units import LINK, PEER, ends, is_gpu, node_of, unit_of
from siteproof.record.samples import INTERRUPTED, LOST, TOOL_MISSING, Header, Sample, expected_nodes
from siteproof.record.series import Settings
from siteproof.sites import Criterion, Metric, Site, bought
from siteproof.sites.bought import FactResult, Outcome
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.others import MAX_SHOWN, PARAMETERS, Missed, job_of, unlike

OnNodes = tuple[Finding, Iterable[str]]


def differing(role: str, same: Uniformity) -> Iterator[OnNodes]:
    """Each field in which a node differs; each value of a field that has no majority."""
    for node, fields in same.differing.items():
        yield from ((of_field(role, one), [node]) for one in fields)
    for name, values in same.undecided.items():
        for value, nodes in values.items():
            details = {"field": name, "found": finding.text(value), "role": role}
            yield finding.of(Kind.NO_MAJORITY, details), nodes


def of_field(role: str, one: Odd) -> Finding:
    """A field in which a node of a role differs."""
    details = {
        "field": one.field,
        "found": finding.text(one.value),
        "majority": finding.text(one.majority),
        "role": role,
    }
    return finding.of(Kind.FIELD_DIFFERS, details)


def not_read(unread: Mapping[str, Mapping[str, str]]) -> Iterator[OnNodes]:
    """Each field that a node could not read, with the reason."""
    for node, names in unread.items():
        for name, why in names.items():
            yield finding.of(Kind.FIELD_NOT_READ, {"field": name}, message=why), [node]


def not_as_stated(results: Mapping[str, Sequence[FactResult]]) -> Iterator[OnNodes]:
    """What is not as stated or was not read, section by section, each with its node."""
    for node, of_node in results.items():
        for result in of_node:
            if result.outcome is not Outcome.AS_STATED:
                yield of_fact(result), [node]


def of_fact(result: FactResult) -> Finding:
    """The finding of a fact that is not as stated, or that was not read."""
    details = {"section": result.section, "field": result.field, "expected": result.expected}
    if result.missed:
        return finding.of(Kind.FACT_DIFFERS, {**details, "found": result.found})
    return finding.of(Kind.FACT_NOT_READ, details, message=result.why)


def not_stated(site: Site, role: str) -> list[Finding]:
    """The sections of which the site gives no field for a role, each with the reason."""
    found = {}
    for node in site.expected(role):
        for name, section in bought.sections_of(site, node).items():
            if not section.fields:
                found[name] = finding.of(
                    Kind.NOT_STATED, {"section": name}, subject=role, message=section.not_stated
                )
    return list(found.values())


def not_described(samples: Iterable[Sample], missing: Iterable[str]) -> Iterator[OnNodes]:
    """Why each of these nodes is not described."""
    failed = {
        sample.node: sample
        for sample in samples
        if sample.status != "ok" and sample.metric.partition(".")[0] == descriptions.CHECK
    }
    for node in missing:
        why = Finding(Kind.NOT_MEASURED, check=descriptions.CHECK)
        if node in failed:
            why = replace(failure(failed[node]), since="")
        yield why, [node]


def health(samples: Sequence[Sample]) -> Iterator[Finding]:
    """What has grown between the first and the last look at each node."""
    for delta in uniformity.deltas(*uniformity.around(samples)):
        if delta.rebooted:
            yield Finding(Kind.RESTARTED_BETWEEN, delta.node)
        for name, grown in delta.grown.items():
            yield finding.of(
                Kind.COUNTER_GREW, {"counter": name, "by": str(grown)}, subject=delta.node
            )
        for name, why in delta.unknown.items():
            yield finding.of(
                Kind.COUNTER_UNKNOWN, {"counter": name}, subject=delta.node, message=why
            )


Fact = tuple[State, Finding]  # what a node is, and why; the finding's subject is the node
SHARED = 3  # nodes whose settings changed alike are an event, and not odd


@dataclass(frozen=True)
class Recent:
    """The jobs of each check's last sessions, and their samples without a value."""

    jobs: Sequence[Header]
    failed: Sequence[Sample]

    @staticmethod
    def of(judged: Judgement) -> Recent:
        """Those of the checks that a site still runs, whatever is judged."""
        jobs = attempts.recent(judged.site, judged.tried)
        wanted = {id(job) for job in jobs}
        if judged.sessions:
            failed = speeds.failures(judged.site, judged.sessions, lambda job: id(job) in wanted)
        else:
            failed = [s for s in judged.samples if s.status != "ok" and id(s.header) in wanted]
        return Recent(jobs, failed)


def facts(judged: Judgement, recent: Recent) -> Iterator[Fact]:
    """Each node, its state, and why; the most severe reasons of a state first.

    OK: so many nodes changed alike that it is an event; the finding has all of them.
    """
    yield from _attempts(judged.failed)
    yield from _flapping(judged, recent)
    for _, restarted, tested in _restarts(judged):
        if not uniformity.are_many(restarted, tested):
            yield from ((State.FAILED, restart) for restart in restarted)
    shared = attempts.shared(judged.samples)
    for result in judged.verdicts:
        for verdict in result.nodes:
            yield from _broke(verdict, shared)
            yield from _contract(verdict)
    yield from _mismatches(judged)
    yield from _odd_descriptions(judged)
    yield from _other_settings(judged)
    yield from _odd_conditions(judged)
    yield from _interrupted(judged.samples)
    yield from _untested(judged)
    yield from _too_old(judged)


def warnings(judged: Judgement, of_nodes: Iterable[Fact]) -> list[Finding]:
    """Findings on so many nodes that they count against none of them, and on clocks."""
    found = [why for state, why in of_nodes if state is State.OK]
    for role, restarted, tested in _restarts(judged):
        if uniformity.are_many(restarted, tested):
            text = (
                "{role}: {count} of {of} nodes, or their slurmd, restarted during the tests: the "
                "maintenance probably goes on, so this counts against no node"
            )
            why = note(text, role=role, count=len(restarted), of=tested)
            found.append(why)
    found += judged.repairs[1]
    return [*found, *(judged.sessions.clock_findings if judged.sessions else ())]


def _restarts(judged: Judgement) -> Iterator[tuple[str, list[Finding], int]]:
    """Of each role: the nodes that restarted during the tests, and how many nodes were tested."""
    looks = uniformity.ages(judged.samples)
    for role in judged.site.system.nodes:
        tested = {node: looks[node] for node in judged.site.expected(role) if node in looks}
        yield role, uniformity.restarted(tested), len(tested)


def _attempts(failed: Iterable[Sample]) -> Iterator[Fact]:
    """Nodes on which a check broke or gave a wrong answer, and has not ended well since."""
    for attempt in failed:
        state = State.UNTESTED if _condemns_none(attempt) else State.FAILED
        yield state, replace(failure(attempt), subject=unit_of(attempt))


def _condemns_none(attempt: Sample) -> bool:
    """Whether it is lost, or a failure of all nodes of its job."""
    return attempt.status == LOST or isinstance(attempt, attempts.SharedFailure)


def _flapping(judged: Judgement, recent: Recent) -> Iterator[Fact]:
    """Nodes that fail now and then, unless a failure keeps them out now: how often, since when."""
    still = {attempt.node for attempt in judged.failed if not _condemns_none(attempt)}
    for node, failed in attempts.flapping(recent.failed, judged.repairs[0]).items():
        if node in still:
            continue
        sessions = {attempt.header.session for attempt in failed}
        for check, status in _to_waive(failed):
            why = note(
                "failed in {failed} of its last {of} sessions: {how}",
                subject=node,
                check=check,
                status=status,
                since=failed[0].header.time,
                failed=len(sessions),
                of=_sessions_on(node, recent.jobs),
                how=_how(failed),
            )
            yield State.FLAPPING, why


def _to_waive(failed: Sequence[Sample]) -> Iterator[tuple[str, str]]:
    """Each check that failed, and how: what a waiver must cover. Wrong answers are named apart."""
    for check in dict.fromkeys(attempt.header.check for attempt in failed):
        statuses = {a.status for a in failed if a.header.check == check}
        for status in sorted(statuses & {*WRONG}) or [most_severe_status(statuses)]:
            yield check, status


def _sessions_on(node: str, jobs: Sequence[Header]) -> int:
    """In how many sessions the checks had to measure a node."""
    on_node = (job for job in jobs if not job.expected or node in expected_nodes(job.expected))
    return len({job.session for job in on_node})


def _how(failed: Sequence[Sample]) -> str:
    """`5 timeout, 2 invalid`."""
    return ", ".join(f"{n} {status}" for status, n in Counter(a.status for a in failed).items())


def _broke(node: NodeVerdict, shared: Collection[tuple[object, ...]]) -> Iterator[Fact]:
    """A failure that decides a criterion. shared: those of all nodes of a job condemn none."""
    sample = node.sample
    if sample is None or node.waived or node.too_old:
        return
    if sample.status in ("ok", LOST, *attempts.NO_OUTCOME):
        return
    is_shared = (sample.node, sample.header.check, sample.header.job_order) in shared
    state = State.UNTESTED if is_shared else State.FAILED
    # A failure of the whole node is one reason, not one for each of its GPUs.
    subject = unit_of(sample) if is_gpu(node.node) else node.node
    yield state, replace(failure(sample), subject=subject)


def _contract(node: NodeVerdict) -> Iterator[Fact]:
    states = {Kind.MISSES_BOUND: State.FAILED, Kind.BELOW_BASELINE: State.SLOW}
    differing = [why for why in node.findings if why.kind is Kind.PARAMETER_DIFFERS]
    which = "; ".join(f"{why['parameter']}: {why.value}" for why in differing)
    for why in node.findings:
        if why.kind in states and node.sample is not None:
            yield states[why.kind], replace(why, message=which)


def _mismatches(judged: Judgement) -> Iterator[Fact]:
    counts = [s for s in judged.samples if s.metric == PARAMETERS and s.status == "ok"]
    newest = {s.node: s for s in sorted(counts, key=lambda s: s.header.order)}
    missed = Missed(judged.site, judged.samples)
    for node, sample in newest.items():
        if sample.number <= 0:
            continue
        count = {"count": str(sample.value)}
        named = missed.parameters(sample)
        named = named or [finding.of(Kind.PARAMETERS_DIFFER, count, metric=PARAMETERS)]
        yield from ((State.ODD, replace(why, subject=node)) for why in named)


def _odd_descriptions(judged: Judgement) -> Iterator[Fact]:
    """The fields in which a node differs from most nodes of its role, and from what is stated."""
    perflogs = files.perflogs()
    fields, unread = descriptions.with_unreadable(judged.samples, perflogs)
    by_role: dict[str | None, dict[str, Mapping[str, str]]] = {}
    for node, own in fields.items():
        by_role.setdefault(judged.site.role_of(node), {})[node] = own
    for role, nodes in by_role.items():
        found = uniformity.vote(nodes, {n: list(unread.get(n, ())) for n in nodes})
        for node, differing in found.differing.items():
            yield from _odd(node, [of_field(role or "no role", one) for one in differing])
    for node, results in bought.of_nodes(judged.site, fields, unread).items():
        missed = (result for result in results if result.outcome is Outcome.DIFFERENT)
        yield from _odd(node, list(map(of_fact, missed)))


def _odd(node: str, findings: Sequence[Finding]) -> Iterator[Fact]:
    """The first of them, and how many more there are."""
    for why in findings[:MAX_SHOWN]:
        yield State.ODD, replace(why, subject=node)
    if len(findings) > MAX_SHOWN:
        more = {"count": len(findings) - MAX_SHOWN}
        yield State.ODD, finding.of(Kind.FIELDS_DIFFER, more, subject=node)


def _other_settings(judged: Judgement) -> Iterator[Fact]:
    """Nodes whose newest job has other settings than their past, or than most of their sisters."""
    if judged.fresh is None or judged.fresh.settings is None:
        return
    settings = judged.fresh.settings
    of_site = {id(job) for job in attempts.of_site(judged.site, judged.tried)}
    good = (s for s in judged.samples if s.own_conditions and s.status == "ok")
    measured = {(s.header.check, *job_of(s)): s for s in good}
    alone = {check for check, *_ in measured}
    for role in judged.site.system.nodes:
        nodes = judged.site.expected(role)
        for jobs in settings.newest(nodes, lambda job: id(job) in of_site, alone):
            newest = [
                measured.get((job.check, node, job.session, job.job), Sample(job, node, job.check))
                for node, job in jobs.items()
            ]
            yield from _in_one_place(settings, newest)


def _in_one_place(settings: Settings, newest: Sequence[Sample]) -> Iterator[Fact]:
    """newest: what each node of a role was measured with."""
    changes = {s.node: settings.changed(s, [s.node]) for s in newest}
    groups = _alike(newest)
    for group in groups:
        yield from _changed(group, changes)
    most = max(groups, key=len, default=[])
    if 2 * len(most) <= len(newest):
        return
    moved = [s.header.job_order for s in most if changes[s.node]]
    # What is older than a change of most nodes is only not yet measured.
    began = min(moved) if len(moved) >= SHARED else ()
    for group in groups:
        known = [s for s in group if changes[s.node] or settings.is_accepted(s, [s.node])]
        if len(known) < SHARED:
            yield from _unlike(most[0], (s for s in group if s.header.job_order >= began))


def _changed(group: Sequence[Sample], changes: Mapping[str, Mapping[str, str]]) -> Iterator[Fact]:
    """Those of a group of nodes with the same settings that had others before."""
    whys = [
        finding.other_setting(changes[s.node], subject=s.node, check=s.header.check)
        for s in group
        if changes[s.node]
    ]
    if len(whys) < SHARED:
        yield from ((State.ODD, why) for why in whys)
    else:
        nodes = str(nodesets.of(why.subject for why in whys))
        details = whys[0].details + finding.details(nodes=nodes)
        yield State.OK, replace(whys[0], subject=nodes, details=details)


def _alike(newest: Iterable[Sample]) -> list[list[Sample]]:
    """Those with the same settings together; a problem size may differ by a block."""
    groups: list[tuple[Mapping[str, str], list[Sample]]] = []
    for sample in newest:
        own = series.settings(sample.conditions)
        same = (group for first, group in groups if not series.differences(first, own))
        if group := next(same, None):
            group.append(sample)
        else:
            groups.append((own, [sample]))
    return [group for _, group in groups]


def _unlike(common: Sample, others: Iterable[Sample]) -> Iterator[Fact]:
    for sample in others:
        own, most = series.settings(sample.conditions), common.conditions
        for key in series.differences(most, own):
            details = {"condition": key, "found": own[key], "majority": most[key]}
            of = {"subject": sample.node, "check": sample.header.check}
            yield State.ODD, finding.of(Kind.CONDITION_DIFFERS, details, **of)


def _odd_conditions(judged: Judgement) -> Iterator[Fact]:
    """Nodes that one job measured under other conditions than most of its nodes.

    They are in a series of their own, where nobody compares them: a slow BLAS would hide there.
    """
    all_jobs = judged.fresh is not None and judged.fresh.settings is not None
    seen: set[tuple[str, str]] = set()
    own = {sample.header.check for sample in judged.samples if sample.own_conditions}
    may = [sample for sample in judged.samples if sample.header.check in own]
    for sample in sorted(may, key=lambda s: s.header.order, reverse=True):
        check = sample.header.check
        if sample.status != "ok" or (sample.node, check) in seen:
            continue
        seen.add((sample.node, check))
        for why in unlike(sample):
            if not (all_jobs and series.is_setting(str(why["condition"]))):
                yield State.ODD, replace(why, subject=sample.node, check=check)


def _interrupted(samples: Sequence[Sample]) -> Iterator[Fact]:
    """Checks that were interrupted or not begun, and of which no other run on the node is known.

    It takes nothing back: neither a value, nor that the node has no program that could measure it.
    """
    known = {(s.node, s.header.check) for s in samples if s.status in ("ok", TOOL_MISSING)}
    for sample in samples:
        key = (sample.node, sample.header.check)
        if sample.status == INTERRUPTED and key not in known:
            yield State.UNTESTED, replace(failure(sample), subject=sample.node)


def _untested(judged: Judgement) -> Iterator[Fact]:
    """Headline metrics that the site promises of a node, or that other nodes have, and it lacks.

    Not those that can be measured nowhere, as their tool is missing on all nodes.
    """
    nowhere = {result.criterion.metric for result in judged.verdicts if _is_nowhere(result)}
    by_role = _measured(judged)
    for result in judged.verdicts:
        if _is_owed(judged.site, result.criterion) and not _is_nowhere(result):
            have = [measured.get(result.criterion.metric, ()) for measured in by_role.values()]
            yield from _unanswered(result, set().union(*have))
    for role, measured in by_role.items():
        for name in sorted(measured.keys() - nowhere):
            for node in sorted({*judged.site.expected(role)} - measured[name]):
                yield _lacks(Finding(Kind.NOT_MEASURED, node), name)


def _is_nowhere(result: CriterionVerdict) -> bool:
    return {unit.sample and unit.sample.status for unit in result.nodes} == {TOOL_MISSING}


def _is_owed(site: Site, criterion: Criterion) -> bool:
    """Whether it decides, on a headline metric that a node has by itself.

    siteproof.nodes.pair_ends looks at those of pairs.
    """
    metric = site.catalogue[criterion.metric]
    decides = not (criterion.report_only or criterion.not_here or of_system(criterion))
    return bool(decides and metric.headline and metric.check and LINK not in metric.conditions)


def _unanswered(result: CriterionVerdict, have: Collection[str]) -> Iterator[Fact]:
    """The nodes without a value that answers a criterion, each with the reason.

    have: nodes with a value of its metric, which may answer something else.
    """
    for one in result.nodes:
        for unit in one.members or (one,):
            if why := _why_unanswered(unit, node_of(unit.node) in have):
                yield _lacks(replace(why, subject=unit.node), result.criterion.metric)


def _why_unanswered(unit: NodeVerdict, has_value: bool) -> Finding | None:
    few = any(why.kind is Kind.TRIALS_MISSING for why in unit.findings)
    status = unit.sample.status if unit.sample and not few else ""
    status = "" if status in attempts.NO_OUTCOME else status
    if unit.never_waived or status == "ok" or (status and has_value and not unit.waived):
        return None
    is_other = has_value and not (status or unit.waived or unit.findings[0].status)
    return unit.findings[0] if is_other else Finding(Kind.NOT_MEASURED)


def _lacks(why: Finding, metric: str) -> Fact:
    return State.UNTESTED, replace(why, check=metric.partition(".")[0], metric=metric)


def never_measured(judged: Judgement) -> Iterator[Fact]:
    """Nodes on which checks run, and of which nothing is known but that tools are missing."""
    site = judged.site
    roles = {role for one in site.system.partitions.values() for role in one.measured}
    jobs = {id(s.header): s.header for s in judged.samples}
    counting = {key for key, header in jobs.items() if _counts(site, header)}
    measured = _tried(s for s in judged.samples if id(s.header) in counting)
    left = set(site.having(roles)) - measured
    for job in attempts.recent(site, judged.tried) if judged.sessions else ():
        if left.isdisjoint(expected_nodes(job.expected) or left) or job.is_unread:
            continue
        left -= _tried(judged.sessions.of_job(job, left)) if judged.sessions else set()
    for node in sorted(left):
        yield State.UNTESTED, Finding(Kind.NOT_MEASURED, node)


def _counts(site: Site, header: Header) -> bool:
    """Whether the site still has its environment, or a criterion may be answered by it."""
    partition = site.system.partitions.get(header.partition)
    is_there = partition is not None and header.environment in partition.environments
    return is_there or any(
        c.metric.partition(".")[0] == header.check for c in site.criteria.values()
    )


def _tried(found: Iterable[Sample]) -> set[str]:
    """The nodes of which they have more than a missing tool, or a file without a line."""
    known = (sample for sample in found if sample.status not in (TOOL_MISSING, LOST))
    return {node for s in known for node in (s.node, s.dims.get(PEER, ""))}


def _too_old(judged: Judgement) -> Iterator[Fact]:
    """What nobody knows, and headline metrics that are too old; of a node's pairs the oldest."""
    units = [
        unit
        for result in judged.verdicts
        for unit in result.nodes
        if not result.excused and _is_no_more(unit, judged.site.catalogue[result.criterion.metric])
    ]
    oldest: dict[object, Finding] = {}
    for unit in units:
        for node, why in product(ends(unit.node), unit.findings):
            known = oldest.setdefault((node, why.alike), replace(why, subject=node))
            if why.number("age") > known.number("age"):
                oldest[node, why.alike] = replace(why, subject=node)
    yield from ((State.UNTESTED, why) for why in oldest.values())


def _is_no_more(unit: NodeVerdict, metric: Metric) -> bool:
    return unit.never_waived or (unit.too_old and not unit.waived and metric.headline)


def _measured(judged: Judgement) -> dict[str, dict[str, set[str]]]:
    """By role and headline metric, the nodes that have a value."""
    found: dict[str, dict[str, set[str]]] = {}
    headlines = {name for name, metric in judged.site.catalogue.items() if metric.headline}
    for sample in judged.samples:
        role = judged.site.role_of(sample.node)
        if role is not None and sample.status == "ok" and sample.metric in headlines:
            found.setdefault(role, {}).setdefault(sample.metric, set()).add(sample.node)
    return found
