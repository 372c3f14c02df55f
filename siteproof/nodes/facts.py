"""What is wrong with a node beside its speed: the contract, failures, oddities, missing figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from siteproof import files
from siteproof.analysis import restarts, uniformity
from siteproof.analysis.slow_nodes import RETESTS, Fact, State, WrongAnswer
from siteproof.judge.criterion import CriterionVerdict, NodeVerdict
from siteproof.judge.gravity import WRONG, Verdict, gravest_status, of_status
from siteproof.record import descriptions, series
from siteproof.record.pair_units import LINK, ends
from siteproof.record.samples import INTERRUPTED, JobOrder, Sample
from siteproof.verdict.judgement import Judgement

Run = tuple[str, str, str]  # node, session, job
SHOWN = 5  # odd fields, and mismatches, that are told of a node


def facts(judged: Judgement) -> Iterator[Fact]:
    """Each node, what it is, and why; the gravest reasons of a state first."""
    texts = _parameters(judged.samples)
    yield from _attempts(judged)
    for _, told, _ in _restarts(judged):
        for node, sentence in told.items():
            yield Fact(node, State.FAILED, sentence)
    for result in judged.verdicts:
        for verdict in result.nodes:
            yield from _contract(result, verdict, texts)
    yield from _mismatches(judged.samples, texts)
    yield from _odd_descriptions(judged)
    yield from _odd_conditions(judged.samples)
    yield from _interrupted(judged.samples)
    yield from _untested(judged)
    yield from _too_old(judged)


def warnings(judged: Judgement) -> list[str]:
    """What is wrong with so many nodes that it is the fault of none, and with clocks."""
    told = [f"{role}: {warning}" for role, _, warning in _restarts(judged) if warning]
    return [*told, *(judged.sessions.odd_clocks if judged.sessions else ())]


def _restarts(judged: Judgement) -> Iterator[tuple[str, dict[str, str], str]]:
    """Of each role: the nodes that alone restarted while they were tested, or a warning."""
    looks = restarts.looks(judged.samples)
    for role in judged.site.system.nodes:
        mine = {node: looks[node] for node in judged.site.expected(role) if node in looks}
        yield role, *restarts.restarted(mine)


def _attempts(judged: Judgement) -> Iterator[Fact]:
    """Nodes on which the newest run of a check broke, or any run gave a wrong answer.

    One right answer does not take a wrong one back: as many must follow as the retest rule asks,
    and a run without an answer is none. A run that somebody has interrupted is no attempt.
    """
    attempted = [s for s in judged.samples if s.status != INTERRUPTED]
    for (node, check, *_), attempts in _by_check(attempted).items():
        statuses = [gravest_status(s.status for s in attempt) for attempt in attempts]
        newest = statuses[-1]
        if newest != "ok" and of_status(newest) is not Verdict.SKIP:
            sample = next(s for s in attempts[-1] if s.status == newest)
            yield _fact(node, check, _failure(check, sample), newest)
        answers = [status for status in statuses if status == "ok" or status in WRONG]
        last = gravest_status(answers[-RETESTS:])
        if last in WRONG and newest not in WRONG:
            wrong = sum(status in WRONG for status in statuses)
            told = (
                f"{check}: wrong answer in {wrong} of {len(statuses)} runs; "
                f"{RETESTS} right ones in a row would take it back"
            )
            yield _fact(node, check, told, last)


def _fact(node: str, check: str, reason: str, status: str) -> Fact:
    wrong = WrongAnswer(reason, check, status) if status in WRONG else None
    return Fact(node, State.FAILED, reason, wrong)


def _by_check(samples: Sequence[Sample]) -> dict[tuple[str, ...], list[list[Sample]]]:
    """The samples of each run of a node and check, oldest run first.

    A check that runs in two modes or environments is two: no quick run takes a failure back.
    """
    runs: dict[tuple[str, ...], dict[JobOrder, list[Sample]]] = {}
    for sample in samples:
        head = sample.header
        key = (sample.node, head.check, head.mode, head.environment)
        runs.setdefault(key, {}).setdefault(head.job_order, []).append(sample)
    return {key: [jobs[run] for run in sorted(jobs)] for key, jobs in runs.items()}


def _failure(check: str, sample: Sample) -> str:
    if sample.status == "node_lost":
        return f"{check}: did not answer: {sample.why or 'no reason known'}"
    word = "wrong answer" if sample.status in WRONG else "no value"
    return f"{check}: {word}: {sample.status}: {sample.why}".removesuffix(": ")


def _contract(
    result: CriterionVerdict, node: NodeVerdict, texts: Mapping[Run, list[str]]
) -> Iterator[Fact]:
    if node.sample is None or node.sample.status != "ok":
        return  # told by its status
    criterion = result.criterion
    told = f"{node.sample.value} {node.sample.unit}".removesuffix(" text")
    if node.verdict is Verdict.FAIL:
        asked = str(criterion.bound or criterion.equals)
        how = criterion.kind.replace("_", " ")
        yield Fact(
            node.node,
            State.FAILED,
            f"{result.id}: {criterion.metric} is {told}, "
            f"the contract asks for {how} {asked}{_which(node.sample, texts)}",
        )
    elif node.verdict is Verdict.REGRESSED:
        yield Fact(
            node.node,
            State.SLOW,
            f"{result.id}: {criterion.metric} is {told}, "
            f"which keeps the contract, but is {node.why}",
        )


def _run(sample: Sample) -> Run:
    return sample.node, sample.header.session, sample.header.job


def _parameters(samples: Iterable[Sample]) -> dict[Run, list[str]]:
    """The host parameters that are not as expected, by name, of each node in each run."""
    texts: dict[Run, list[str]] = {}
    for sample in samples:
        if sample.metric == "HostParameters.mismatch" and "parameter" in sample.dims:
            texts.setdefault(_run(sample), []).append(f"{sample.dims['parameter']}: {sample.value}")
    return texts


def _which(sample: Sample, texts: Mapping[Run, list[str]]) -> str:
    """A count of mismatches alone helps nobody: which ones, as far as they fit."""
    found = texts.get(_run(sample), []) if sample.metric == "HostParameters.mismatches" else []
    more = [f"{len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return f" ({'; '.join([*found[:SHOWN], *more])})" if found else ""


def _mismatches(samples: Sequence[Sample], texts: Mapping[Run, list[str]]) -> Iterator[Fact]:
    counts = [s for s in samples if s.metric == "HostParameters.mismatches" and s.status == "ok"]
    newest = {s.node: s for s in sorted(counts, key=lambda s: s.header.order)}
    for node, sample in newest.items():
        if sample.number > 0:
            unnamed = [f"{sample.value} host parameters are not as expected"]
            for text in texts.get(_run(sample)) or unnamed:
                yield Fact(node, State.ODD, text)


def _odd_descriptions(judged: Judgement) -> Iterator[Fact]:
    """The fields in which a node differs from most nodes of its role."""
    perflogs = files.perflogs()
    fields = descriptions.of(judged.samples, perflogs)
    unread = descriptions.unreadable(judged.samples, perflogs)
    by_role: dict[str | None, dict[str, Mapping[str, str]]] = {}
    for node, held in fields.items():
        by_role.setdefault(judged.site.role_of(node), {})[node] = held
    for role, nodes in by_role.items():
        found = uniformity.vote(nodes, {n: list(unread.get(n, ())) for n in nodes})
        for node, odd in found.odd.items():
            for one in odd[:SHOWN]:
                yield Fact(
                    node,
                    State.ODD,
                    f"{one.field} is {_value(one.value)}, on most nodes of "
                    f"{role} {_value(one.majority)}",
                )
            if len(odd) > SHOWN:
                yield Fact(node, State.ODD, f"{len(odd) - SHOWN} more fields differ")


def _value(value: str | None) -> str:
    return "missing" if value is None else value or "empty"


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
        mine, common = series.conditions(sample), sample.header.conditions
        for key in sorted(sample.own_conditions.keys() & common.keys() & mine.keys()):
            if mine[key] != common[key]:
                yield Fact(
                    sample.node,
                    State.ODD,
                    f"{check} ran with {key} {mine[key]}, on most "
                    f"nodes with {common[key]}: not compared with them",
                )


def _interrupted(samples: Sequence[Sample]) -> Iterator[Fact]:
    """Checks that were interrupted or not begun, and have no value of the node from another run."""
    measured = {(s.node, s.header.check) for s in samples if s.status == "ok"}
    for sample in samples:
        check = sample.header.check
        if sample.status == INTERRUPTED and (sample.node, check) not in measured:
            yield Fact(sample.node, State.UNTESTED, f"{check}: not measured: {sample.why}")


def _untested(judged: Judgement) -> Iterator[Fact]:
    """Headline metrics that the site promises of a node, or that its sisters have, and it lacks."""
    site, measured = judged.site, _measured(judged)
    asked: dict[str, set[str]] = {}
    for criterion in site.criteria.values():
        metric = site.catalogue[criterion.metric]
        of_pairs = LINK in metric.conditions  # those are siteproof.nodes.pair_ends' matter
        owed = not (criterion.report_only or criterion.not_here)
        if metric.headline and metric.check and owed and not of_pairs:
            for role in site.roles_of(criterion):
                asked.setdefault(role, set()).add(criterion.metric)
    for role in site.system.nodes:
        wanted = sorted(asked.get(role, set()) | measured.get(role, {}).keys())
        for name in wanted:
            have = measured.get(role, {}).get(name, set())
            for node in site.expected(role):
                if node not in have:
                    yield Fact(node, State.UNTESTED, f"{name}: no value")


def _too_old(judged: Judgement) -> Iterator[Fact]:
    """Headline metrics whose answer does not count any more."""
    for result in judged.verdicts:
        name = result.criterion.metric
        if judged.site.catalogue[name].headline and not result.excused:
            for unit in result.nodes:
                for node in ends(unit.node) if unit.too_old and not unit.waived else ():
                    yield Fact(node, State.UNTESTED, f"{name}: {unit.why}")


def _measured(judged: Judgement) -> dict[str, dict[str, set[str]]]:
    """By role and headline metric, the nodes that have a value."""
    found: dict[str, dict[str, set[str]]] = {}
    headlines = {name for name, metric in judged.site.catalogue.items() if metric.headline}
    for sample in judged.samples:
        role = judged.site.role_of(sample.node)
        if role is not None and sample.status == "ok" and sample.metric in headlines:
            found.setdefault(role, {}).setdefault(sample.metric, set()).add(sample.node)
    return found
