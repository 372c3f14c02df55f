"""Nodes in figures of pairs: slow only where siteproof.analysis.attribution names them.

A pair's figure is that of its worse end. So it accuses neither end by itself; both show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mode

from siteproof.analysis import slow_nodes as rules
from siteproof.analysis.attribution import Culprit
from siteproof.analysis.slow_nodes import Fact, Slow, State, WrongAnswer
from siteproof.judge.gravity import WRONG, gravest_status
from siteproof.links import matrix
from siteproof.links.matrix import Matrix
from siteproof.record import series
from siteproof.record.pair_units import LINK, PEER, job, link_of, of_link, of_pairs
from siteproof.record.samples import Sample
from siteproof.sites import Site, pairs
from siteproof.verdict.judgement import Judgement

SIDE, SENDS, RECEIVES = "side", "sends", "receives"
NAMED = 5  # bad links that a warning names
Place = tuple[str, str]  # a matrix: the metric with its dimensions, and the link


@dataclass(frozen=True)
class Pairs:
    """What pairs say of nodes. notes: what a retest would decide."""

    facts: list[Fact]
    notes: list[tuple[str, str]]
    warnings: list[str]


def alone(found: Iterable[Sample]) -> list[Sample]:
    """The samples that speak of one node."""
    return [s for s in found if not of_pairs(s) and not of_link(s)]


def ends(found: Sequence[Sample]) -> list[Sample]:
    """Each figure of a pair twice: as its sender's and as its receiver's, peers left out.

    Of what has no direction it is simply a figure of both.
    """
    good = [s for s in found if of_pairs(s) and s.status == "ok"]
    seen = {(s.metric, s.node, s.dims[PEER]) for s in good}
    directed = {m for m, a, b in seen if (m, b, a) in seen}
    return [
        _at(s, node, side if s.metric in directed else "")
        for s in good
        for node, side in ((s.node, SENDS), (s.dims[PEER], RECEIVES))
    ]


def _at(sample: Sample, node: str, side: str) -> Sample:
    dims = {k: v for k, v in sample.dims.items() if k != PEER} | {LINK: link_of(sample)}
    return replace(sample, node=node, dims=dims | ({SIDE: side} if side else {}))


def judge(judged: Judgement) -> Pairs:
    """What the pairs of all metrics say of the nodes."""
    found = Pairs([], [], [])
    of_all = [s for s in judged.samples if of_pairs(s)]
    for check in sorted({s.header.check for s in of_all}):
        mine = [s for s in of_all if s.header.check == check]
        for metric in _metrics(judged.site, check, mine):
            _judge_metric(judged.site, metric, mine, found)
    found.facts.extend(_untested(judged, of_all))
    return found


def _metrics(site: Site, check: str, mine: Sequence[Sample]) -> list[str]:
    """The metrics of a check by which a pair can be bad; one at least, as a failure is one."""
    promised = {c.metric for c in site.criteria.values() if c.links}
    known = [name for name in site.catalogue if name.partition(".")[0] == check]
    measured = {s.metric for s in mine if s.status == "ok"}
    telling = [
        name
        for name in known
        if name in measured and (series.is_speed(site.catalogue[name]) or name in promised)
    ]
    return telling or known[:1]


def _judge_metric(site: Site, metric: str, of_all: Sequence[Sample], found: Pairs) -> None:
    """The retest rule on the matrices as they stood after each of the newest sessions.

    A session that measured few pairs anew, such as a retest, stands beside the others' figures.
    """
    mine = sorted(
        (s for s in of_all if s.metric == metric or s.metric == f"{metric.partition('.')[0]}.*"),
        key=job,
    )
    sessions = list(dict.fromkeys(s.header.session for s in mine))
    slow: dict[tuple[Place, str], list[bool]] = {}
    blamed: dict[tuple[Place, str], tuple[Matrix, Culprit]] = {}
    matrices: list[Matrix] = []
    for session in sessions[-rules.RETESTS :]:
        known = sessions[: sessions.index(session) + 1]
        matrices = matrix.collect(site, [s for s in mine if s.header.session in known], metric)
        nodes = {n for s in mine if s.header.session == session for n in (s.node, s.dims[PEER])}
        for one in matrices:
            guilty = {c.node: c for c in one.blame.culprits}
            for node in nodes & {n for pair in (*one.values, *one.failed) for n in pair}:
                key = ((one.name, one.link), node)
                slow.setdefault(key, []).append(node in guilty)
                blamed |= {key: (one, guilty[node])} if node in guilty else {}
    for key, (one, culprit) in blamed.items():
        _accuse(one, culprit, slow[key], found)
    for one in matrices:
        if links := one.blame.alone:
            more = f" and {len(links) - NAMED} more" if len(links) > NAMED else ""
            found.warnings.append(
                f"{one.name} over {one.link} is bad between "
                f"{', '.join(links[:NAMED])}{more}; no node is to blame"
            )


def _accuse(one: Matrix, culprit: Culprit, slow: list[bool], found: Pairs) -> None:
    """What a culprit is: FAILED without figures, SLOW by its contract or the retest rule."""
    node, mine = culprit.node, one.of(culprit)
    sides = f" as {' and '.join(culprit.sides)}" if culprit.sides else ""
    with_whom = f"with {culprit.peers} peer" + ("s" if culprit.peers > 1 else "")
    name = f"{one.name} over {one.link}{sides}"
    failed = [one.failed[pair].status for pair in mine if pair in one.failed]
    if slow[-1] and 2 * len(failed) > len(mine):
        check, status = one.name.partition(".")[0], gravest_status(failed)
        told = f"{check} over {one.link}: no value {with_whom}"
        wrong = WrongAnswer(told, check, status) if status in WRONG else None
        found.facts.append(Fact(node, State.FAILED, told, wrong))
        return
    broken = [one.broken[pair] for pair in mine if pair in one.broken]
    if slow[-1] and 2 * len(broken) > len(mine):
        found.facts.append(
            Fact(node, State.SLOW, f"{mode(broken)}: {name} breaks the contract, {with_whom}")
        )
        return
    rule = rules.retest_rule(slow, culprit.deficit, False)
    told = f"{name} is {culprit.deficit:.1%} worse than the others', {with_whom}"
    seen = f"in {sum(slow)} of {len(slow)} runs"
    if rule is Slow.UNCONFIRMED:
        found.notes.append((node, f"{told}, {seen}: retest"))
    elif rule is not Slow.NO:
        once = "seen once, retest" if rule is Slow.ONCE else seen
        found.facts.append(Fact(node, State.SLOW, f"{told}, {once}"))


def _untested(judged: Judgement, of_all: Sequence[Sample]) -> Iterator[Fact]:
    """Nodes of a link that are in no pair with a headline figure that their link should have.

    A node whose server died is one of them: it has no figure, and nobody says that it is bad.
    """
    site = judged.site
    have: dict[Place, set[str]] = {}
    why: dict[Place, str] = {}
    for sample in of_all:
        both = (sample.node, sample.dims[PEER])
        if sample.status == "ok":
            have.setdefault((sample.metric, link_of(sample)), set()).update(both)
        else:
            why |= {(sample.header.check, node): f"{sample.status}: {sample.why}" for node in both}
    for metric, link in sorted(_wanted(site, have)):
        at = site.system.links[link]
        for node in pairs.servers(site, at) | pairs.clients(site, at):
            if node not in have.get((metric, link), ()):
                reason = why.get((metric.partition(".")[0], node), "no value")
                yield Fact(node, State.UNTESTED, f"{metric} over {link}: {reason}")


def _wanted(site: Site, have: Mapping[Place, object]) -> set[Place]:
    """The headline metrics that criteria ask of links, or that other nodes of a link have."""
    asked = {
        (c.metric, link)
        for c in site.criteria.values()
        for link in c.links
        if site.catalogue[c.metric].check
        and c.subject != "system"
        and not (c.report_only or c.not_here)
    }
    return {
        (metric, link)
        for metric, link in asked | have.keys()
        if link in site.system.links
        and metric in site.catalogue
        and site.catalogue[metric].headline
    }
