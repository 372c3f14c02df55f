"""Nodes in values of pairs: slow only where siteproof.analysis.attribution names them.

A pair's value is that of its worse end. So it accuses neither end by itself; both show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mode as most_common

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.analysis import slow_nodes as rules
from siteproof.analysis.attribution import Culprit
from siteproof.analysis.slow_nodes import Slow, State
from siteproof.answers.attempts import failure
from siteproof.links import matrix
from siteproof.links.matrix import Matrix
from siteproof.nodes.described import Fact
from siteproof.nodes.speeds import RECEIVES, SENDS, at_end
from siteproof.record import finding, series
from siteproof.record.finding import Detail, Finding, Kind, most_severe_status, note
from siteproof.record.pair_units import PEER, job, link_of, of_link, of_pairs
from siteproof.record.samples import Sample
from siteproof.sites import Site, pairs
from siteproof.verdict.judgement import Judgement

MAX_LINKS_NAMED = 5  # in a warning
Place = tuple[str, str]  # a matrix: the metric with its dimensions, and the link


@dataclass(frozen=True)
class Pairs:
    """What pairs show of nodes. notes: what another run would decide."""

    facts: list[Fact]
    notes: list[Finding]
    warnings: list[Finding]


def alone(found: Iterable[Sample]) -> list[Sample]:
    """The samples of one node each."""
    return [s for s in found if not of_pairs(s) and not of_link(s)]


def ends(found: Sequence[Sample]) -> list[Sample]:
    """Each value of a pair twice: as its sender's and as its receiver's, peers left out.

    Of what has no direction it is simply a value of both.
    """
    good = [s for s in found if of_pairs(s) and s.status == "ok"]
    seen = {(s.metric, s.node, s.dims[PEER]) for s in good}
    directed = {m for m, a, b in seen if (m, b, a) in seen}
    return [
        replace(at_end(s, side if s.metric in directed else ""), node=node)
        for s in good
        for node, side in ((s.node, SENDS), (s.dims[PEER], RECEIVES))
    ]


def judge(judged: Judgement) -> Pairs:
    """What the pairs of all metrics show of the nodes."""
    found = Pairs([], [], [])
    of_all = [s for s in judged.samples if of_pairs(s)]
    for check in sorted({s.header.check for s in of_all}):
        samples = [s for s in of_all if s.header.check == check]
        for metric in _metrics(judged.site, check, samples):
            _judge_metric(judged.site, metric, samples, found)
    found.facts.extend(_untested(judged, of_all))
    return found


def _metrics(site: Site, check: str, samples: Sequence[Sample]) -> list[str]:
    """The metrics of a check by which a pair can be bad; one at least, as a failure is one."""
    promised = {c.metric for c in site.criteria.values() if c.links}
    known = [name for name in site.catalogue if name.partition(".")[0] == check]
    measured = {s.metric for s in samples if s.status == "ok"}
    telling = [
        name
        for name in known
        if name in measured and (series.is_speed(site.catalogue[name]) or name in promised)
    ]
    return telling or known[:1]


def _judge_metric(site: Site, metric: str, of_all: Sequence[Sample], found: Pairs) -> None:
    """The retest rule on the matrices as they stood after each of the newest sessions.

    A session that measured few pairs, such as a retest, is judged together with the others' values.
    """
    check = metric.partition(".")[0]
    samples = sorted((s for s in of_all if s.metric in (metric, f"{check}.*")), key=job)
    sessions = list(dict.fromkeys(s.header.session for s in samples))
    accused = _Accused()
    matrices: list[Matrix] = []
    for end in range(max(0, len(sessions) - rules.RETESTS), len(sessions)):
        later = set(sessions[end + 1 :])
        known = [s for s in samples if s.header.session not in later]
        matrices = matrix.collect(site, known, metric)
        newest = [s for s in known if s.header.session == sessions[end]]
        accused.add(matrices, _nodes_of(newest), newest[-1].header.time)
    for key, (one, culprit, time) in accused.blamed.items():
        _accuse(one, culprit, accused.slow[key], time, found)
    found.warnings.extend(block for one in matrices for block in matrix.blocks(one))
    found.warnings.extend(_bad_links(one, check) for one in matrices if one.blame.alone)


def _nodes_of(pairs_of: Iterable[Sample]) -> set[str]:
    return {node for s in pairs_of for node in (s.node, s.dims[PEER])}


@dataclass
class _Accused:
    """Of each node in each matrix: whether it explains bad pairs in each session, how, and when."""

    slow: dict[tuple[Place, str], list[bool]] = field(default_factory=dict)
    blamed: dict[tuple[Place, str], tuple[Matrix, Culprit, str]] = field(default_factory=dict)

    def add(self, matrices: Iterable[Matrix], tested: set[str], time: str) -> None:
        """A session's matrices. tested: the nodes that the session measured."""
        for one in matrices:
            guilty = {culprit.node: culprit for culprit in one.blame.culprits}
            in_matrix = {node for pair in (*one.values, *one.failed) for node in pair}
            for node in tested & in_matrix:
                key = ((one.name, one.link), node)
                self.slow.setdefault(key, []).append(node in guilty)
                if node in guilty:
                    self.blamed[key] = (one, guilty[node], time)


def _bad_links(one: Matrix, check: str) -> Finding:
    links = one.blame.alone
    return note(
        "bad between {pairs}{more: and %s more}; no node explains it",
        check=check,
        metric=one.name,
        link=one.link,
        pairs=", ".join(links[:MAX_LINKS_NAMED]),
        more=max(0, len(links) - MAX_LINKS_NAMED),
    )


def _accuse(one: Matrix, culprit: Culprit, slow: list[bool], time: str, found: Pairs) -> None:
    """What a culprit is: FAILED without values, SLOW by its contract or the retest rule.

    time: of the last session in which it is one; since then, if that is the only one.
    """
    node, pairs_of = culprit.node, one.of(culprit)
    since = time if sum(slow) == 1 else ""
    check = one.name.partition(".")[0]
    details: dict[str, Detail | None] = {
        "link": one.link,
        "sides": " and ".join(culprit.sides) or None,
        "peers": culprit.peers,
    }
    failed = [one.failed[pair].status for pair in pairs_of if pair in one.failed]
    if slow[-1] and 2 * len(failed) > len(pairs_of):
        why = finding.of(
            Kind.PAIRS_WITHOUT_VALUE,
            {"link": one.link, "peers": culprit.peers},
            subject=node,
            check=check,
            status=most_severe_status(failed),
            since=since,
        )
        found.facts.append((State.FAILED, why))
        return
    about = {"subject": node, "check": check, "metric": one.name, "since": since}
    base = finding.of(Kind.PAIRS_SLOW, details, **about)
    broken = [one.broken[pair].criterion for pair in pairs_of if pair in one.broken]
    if slow[-1] and 2 * len(broken) > len(pairs_of):
        why = replace(base, kind=Kind.PAIRS_MISS_BOUND, criterion=most_common(broken))
        found.facts.append((State.SLOW, why))
        return
    rule = rules.retest_rule(slow, culprit.deficit)
    seen = finding.details(deficit=culprit.deficit, slow=sum(slow), runs=len(slow), rule=str(rule))
    why = replace(base, details=base.details + seen)
    if rule is Slow.UNCONFIRMED:
        found.notes.append(why)
    elif rule is not Slow.NO:
        found.facts.append((State.SLOW, why))


def _untested(judged: Judgement, of_all: Sequence[Sample]) -> Iterator[Fact]:
    """Nodes of a link that are in no pair with a headline value that their link should have.

    A node whose server died is one of them: it has no value, and is not bad for that.
    """
    site = judged.site
    have: dict[Place, set[str]] = {}
    failures: dict[tuple[str, str], Finding] = {}
    for sample in of_all:
        both = (sample.node, sample.dims[PEER])
        if sample.status == "ok":
            have.setdefault((sample.metric, link_of(sample)), set()).update(both)
        else:
            why = failure(sample)
            if why.kind is Kind.WRONG_ANSWER:  # of the pair: it counts against neither end
                why = replace(why, kind=Kind.NO_VALUE)
            failures |= {(sample.header.check, node): why for node in both}
    for metric, link in sorted(_wanted(site, have)):
        check = metric.partition(".")[0]
        for node in _ends_of(site, link) - nodesets.of(have.get((metric, link), ())):
            why = failures.get((check, node), Finding(Kind.NOT_MEASURED, check=check))
            at_link = finding.details(link=link)
            yield State.UNTESTED, replace(why, subject=node, metric=metric, details=at_link)


def _ends_of(site: Site, link: str) -> NodeSet:
    at = site.system.links[link]
    return pairs.servers(site, at) | pairs.clients(site, at)


def _wanted(site: Site, have: Mapping[Place, object]) -> set[Place]:
    """The headline metrics that criteria ask of links, or that other nodes of a link have."""
    promised = {
        (c.metric, link)
        for c in site.criteria.values()
        for link in c.links
        if site.catalogue[c.metric].check
        and c.subject != "system"
        and not (c.report_only or c.not_here)
    }
    return {
        (metric, link)
        for metric, link in promised | have.keys()
        if link in site.system.links
        and metric in site.catalogue
        and site.catalogue[metric].headline
    }
