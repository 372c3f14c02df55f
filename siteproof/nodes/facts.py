"""What is wrong with a node apart from its speed: contract, failures, oddities, missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from siteproof import files
from siteproof.analysis import restarts, uniformity
from siteproof.analysis.slow_nodes import State
from siteproof.answers import checks_tried
from siteproof.judge.criterion import NodeVerdict, failure, of_system
from siteproof.judge.severity import most_severe_status
from siteproof.nodes import as_stated, stored
from siteproof.record import descriptions, finding, series
from siteproof.record.finding import Finding, Kind
from siteproof.record.pair_units import LINK, ends
from siteproof.record.samples import INTERRUPTED, LOST, Header, Sample, expected_nodes
from siteproof.sites import Site, bought
from siteproof.sites.bought import FactResult, Outcome
from siteproof.verdict.judgement import Judgement

Fact = tuple[State, Finding]  # what a node is, and why; the finding's subject is the node
Job = tuple[str, str, str]  # node, session, job
PARAMETER, PARAMETERS = "HostParameters.mismatch", "HostParameters.mismatches"
MAX_SHOWN = 5  # differing fields, and mismatches, of a node


def facts(judged: Judgement) -> Iterator[Fact]:
    """Each node, its state, and why; the most severe reasons of a state first."""
    parameters = _parameters(judged.samples)
    yield from _attempts(judged)
    yield from _flapping(judged)
    for _, restarted, tested in _restarts(judged):
        if not restarts.are_many(restarted, tested):
            yield from ((State.FAILED, restart) for restart in restarted)
    for result in judged.verdicts:
        for verdict in result.nodes:
            yield from _contract(verdict, parameters)
    yield from _mismatches(judged.samples, parameters)
    yield from _odd_descriptions(judged)
    yield from _odd_conditions(judged.samples)
    yield from _interrupted(judged.samples)
    yield from _untested(judged)
    yield from _too_old(judged)


def warnings(judged: Judgement) -> list[Finding]:
    """Findings on so many nodes that they count against none of them, and on clocks."""
    found = []
    for role, restarted, tested in _restarts(judged):
        if restarts.are_many(restarted, tested):
            details = {"role": role, "count": len(restarted), "of": tested}
            found.append(finding.of(Kind.MANY_RESTARTED, details))
    return [*found, *(judged.sessions.clock_findings if judged.sessions else ())]


def _restarts(judged: Judgement) -> Iterator[tuple[str, list[Finding], int]]:
    """Of each role: the nodes that restarted during the tests, and how many nodes were tested."""
    looks = restarts.looks(judged.samples)
    for role in judged.site.system.nodes:
        tested = {node: looks[node] for node in judged.site.expected(role) if node in looks}
        yield role, restarts.restarted(tested), len(tested)


def _attempts(judged: Judgement) -> Iterator[Fact]:
    """Nodes on which a check broke or gave a wrong answer, and has not ended well since."""
    for attempt in judged.failed:
        state = State.UNTESTED if attempt.status == LOST else State.FAILED
        yield state, replace(failure(attempt), subject=attempt.node)


def _flapping(judged: Judgement) -> Iterator[Fact]:
    """Nodes that fail now and then, unless a failure keeps them out now: how often, since when."""
    jobs = checks_tried.recent(judged.site, judged.tried)
    still = {attempt.node for attempt in judged.failed if attempt.status != LOST}
    for node, failed in checks_tried.flapping(_failures(judged, jobs)).items():
        if node in still:
            continue
        first = failed[0].header
        why = finding.of(
            Kind.FLAPPING,
            {"failed": len(failed), "of": _sessions_on(node, jobs), "how": _how(failed)},
            subject=node,
            check=first.check,
            status=most_severe_status(attempt.status for attempt in failed),
            since=first.time,
        )
        yield State.FLAPPING, why


def _failures(judged: Judgement, jobs: Sequence[Header]) -> Sequence[Sample]:
    """The samples without a value of these jobs."""
    wanted = {id(job) for job in jobs}
    if judged.sessions is None:
        return [s for s in judged.samples if s.status != "ok" and id(s.header) in wanted]
    return stored.failures(judged.sessions, lambda header: id(header) in wanted)


def _sessions_on(node: str, jobs: Sequence[Header]) -> int:
    """In how many sessions the checks had to measure a node."""
    on_node = (job for job in jobs if not job.expected or node in expected_nodes(job.expected))
    return len({job.session for job in on_node})


def _how(failed: Sequence[Sample]) -> str:
    """`5 timeout, 2 invalid`."""
    counts: Mapping[str, int] = Counter(attempt.status for attempt in failed)
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def _contract(node: NodeVerdict, parameters: Mapping[Job, list[Sample]]) -> Iterator[Fact]:
    """What a criterion finds of a node: a missed bound, and a failure that decides it."""
    status = node.sample.status if node.sample and not (node.waived or node.too_old) else "ok"
    if node.sample and status not in ("ok", LOST, *checks_tried.NO_OUTCOME):
        yield State.FAILED, replace(failure(node.sample), subject=node.node)
    states = {Kind.MISSES_BOUND: State.FAILED, Kind.BELOW_BASELINE: State.SLOW}
    for why in node.findings:
        if why.kind in states and node.sample is not None:
            yield states[why.kind], replace(why, message=_which(node.sample, parameters))


def _job(sample: Sample) -> Job:
    return sample.node, sample.header.session, sample.header.job


def _parameters(samples: Iterable[Sample]) -> dict[Job, list[Sample]]:
    """The host parameters that are not as expected, of each node in each job."""
    found: dict[Job, list[Sample]] = {}
    for sample in samples:
        if sample.metric == PARAMETER and "parameter" in sample.dims:
            found.setdefault(_job(sample), []).append(sample)
    return found


def _which(sample: Sample, parameters: Mapping[Job, list[Sample]]) -> str:
    """The first mismatches by name: a count alone does not help."""
    if sample.metric != PARAMETERS:
        return ""
    found = [f"{s.dims['parameter']}: {s.value}" for s in parameters.get(_job(sample), [])]
    more = [f"{len(found) - MAX_SHOWN} more"] if len(found) > MAX_SHOWN else []
    return "; ".join([*found[:MAX_SHOWN], *more])


def _mismatches(
    samples: Sequence[Sample], parameters: Mapping[Job, list[Sample]]
) -> Iterator[Fact]:
    counts = [s for s in samples if s.metric == PARAMETERS and s.status == "ok"]
    newest = {s.node: s for s in sorted(counts, key=lambda s: s.header.order)}
    for node, sample in newest.items():
        if sample.number <= 0:
            continue
        named = parameters.get(_job(sample), [])
        for one in named:
            yield (
                State.ODD,
                finding.of(
                    Kind.PARAMETER_DIFFERS,
                    {"parameter": one.dims["parameter"]},
                    subject=node,
                    check=sample.header.check,
                    metric=PARAMETERS,
                    value=str(one.value),
                ),
            )
        if not named:
            details = {"count": str(sample.value)}
            yield (
                State.ODD,
                finding.of(Kind.PARAMETERS_DIFFER, details, subject=node, metric=PARAMETERS),
            )


def _odd_descriptions(judged: Judgement) -> Iterator[Fact]:
    """The fields in which a node differs from most nodes of its role, and from what is stated."""
    perflogs = files.perflogs()
    fields, unread = descriptions.with_unreadable(judged.samples, perflogs)
    by_role: dict[str | None, dict[str, Mapping[str, str]]] = {}
    for node, described in fields.items():
        by_role.setdefault(judged.site.role_of(node), {})[node] = described
    for role, nodes in by_role.items():
        found = uniformity.vote(nodes, {n: list(unread.get(n, ())) for n in nodes})
        for node, differing in found.differing.items():
            for one in differing[:MAX_SHOWN]:
                details = {
                    "field": one.field,
                    "found": finding.text(one.value),
                    "majority": finding.text(one.majority),
                    "role": role or "no role",
                }
                yield State.ODD, finding.of(Kind.FIELD_DIFFERS, details, subject=node)
            if len(differing) > MAX_SHOWN:
                more = {"count": len(differing) - MAX_SHOWN}
                yield State.ODD, finding.of(Kind.FIELDS_DIFFER, more, subject=node)
    yield from _not_as_stated(bought.of_nodes(judged.site, fields, unread))


def _not_as_stated(results_by_node: Mapping[str, Sequence[FactResult]]) -> Iterator[Fact]:
    """The facts in which a node is not what the site states of it."""
    for node, results in results_by_node.items():
        missed = [result for result in results if result.outcome is Outcome.DIFFERENT]
        for result in missed[:MAX_SHOWN]:
            yield State.ODD, replace(as_stated.of_result(result), subject=node)
        if len(missed) > MAX_SHOWN:
            more = {"count": len(missed) - MAX_SHOWN}
            yield State.ODD, finding.of(Kind.FIELDS_DIFFER, more, subject=node)


def _odd_conditions(samples: Sequence[Sample]) -> Iterator[Fact]:
    """Nodes that one job measured under other conditions than most of its nodes.

    They are in a series of their own, where nobody compares them: a slow BLAS would hide there.
    """
    seen: set[tuple[str, str]] = set()
    for sample in sorted(samples, key=lambda s: s.header.order, reverse=True):
        check = sample.header.check
        if sample.status != "ok" or (sample.node, check) in seen:
            continue
        seen.add((sample.node, check))
        own, common = series.conditions(sample), sample.header.conditions
        for key in sorted(sample.own_conditions.keys() & common.keys() & own.keys()):
            if own[key] != common[key]:
                details = {"condition": key, "found": own[key], "majority": common[key]}
                yield (
                    State.ODD,
                    finding.of(Kind.CONDITION_DIFFERS, details, subject=sample.node, check=check),
                )


def _interrupted(samples: Sequence[Sample]) -> Iterator[Fact]:
    """Checks that were interrupted or not begun, and have no value of the node from another run."""
    measured = {(s.node, s.header.check) for s in samples if s.status == "ok"}
    for sample in samples:
        key = (sample.node, sample.header.check)
        if sample.status == INTERRUPTED and key not in measured:
            yield State.UNTESTED, replace(failure(sample), subject=sample.node)


def _untested(judged: Judgement) -> Iterator[Fact]:
    """Headline metrics that the site promises of a node, or that other nodes have, and it lacks."""
    site, measured, promised = judged.site, _measured(judged), _promised(judged.site)
    for role in site.system.nodes:
        have = measured.get(role, {})
        for name in sorted(promised.get(role, set()) | have.keys()):
            check = name.partition(".")[0]
            for node in site.expected(role):
                if node not in have.get(name, ()):
                    yield State.UNTESTED, Finding(Kind.NOT_MEASURED, node, check, name)


def _promised(site: Site) -> dict[str, set[str]]:
    """By role, the headline metrics that its nodes must have by themselves."""
    found: dict[str, set[str]] = {}
    for criterion in site.criteria.values():
        metric = site.catalogue[criterion.metric]
        of_pairs = LINK in metric.conditions  # siteproof.nodes.pair_ends looks at those
        owed = not (criterion.report_only or criterion.not_here)
        owed = owed and not of_system(criterion)
        if metric.headline and metric.check and owed and not of_pairs:
            for role in site.roles_of(criterion):
                found.setdefault(role, set()).add(criterion.metric)
    return found


def _too_old(judged: Judgement) -> Iterator[Fact]:
    """Headline metrics whose answer does not count any more; of a node's pairs the oldest."""
    catalogue = judged.site.catalogue
    headlines = [r for r in judged.verdicts if catalogue[r.criterion.metric].headline]
    units = [u for r in headlines if not r.excused for u in r.nodes if _is_no_more(u)]
    oldest: dict[object, Finding] = {}
    for unit in units:
        for node, why in product(ends(unit.node), unit.findings):
            known = oldest.setdefault((node, why.alike), replace(why, subject=node))
            if why.number("age") > known.number("age"):
                oldest[node, why.alike] = replace(why, subject=node)
    yield from ((State.UNTESTED, why) for why in oldest.values())


def _is_no_more(unit: NodeVerdict) -> bool:
    """Whether what answered does not count any more, or nobody knows what would have."""
    lost = any(why.kind is Kind.LOST for why in unit.findings)
    return lost or (unit.too_old and not unit.waived)


def _measured(judged: Judgement) -> dict[str, dict[str, set[str]]]:
    """By role and headline metric, the nodes that have a value."""
    found: dict[str, dict[str, set[str]]] = {}
    headlines = {name for name, metric in judged.site.catalogue.items() if metric.headline}
    for sample in judged.samples:
        role = judged.site.role_of(sample.node)
        if role is not None and sample.status == "ok" and sample.metric in headlines:
            found.setdefault(role, {}).setdefault(sample.metric, set()).add(sample.node)
    return found
