"""Whether the newest attempt of each check ended well on each node, whatever criteria require.

Each check of the catalogue, in each environment, must have ended well on every node on which it has
run, on whichever partition. A failure stands until the same check has ended well on the node, in
the same environment and in the same mode or a stricter one. A run that somebody interrupted, and a
program that is not installed, take nothing back.

An attempt is the sample that decides how a check ended on a node in one job: that of the most
severe status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from siteproof.record.evidence_records import Repair
from siteproof.record.grouped import grouped
from siteproof.record.pair_units import of_pairs
from siteproof.record.samples import (
    INTERRUPTED,
    LOST,
    PUBLISHED,
    SWEEP,
    TOOL_MISSING,
    Header,
    Sample,
    expected_nodes,
)
from siteproof.record.severity import WRONG, most_severe_status
from siteproof.sites import Site

STRICTNESS = ("", "quick", "maintenance", "acceptance")  # of a mode, the least strict first
NO_OUTCOME = (INTERRUPTED, TOOL_MISSING)
RECENT = 10  # sessions of a check in which failures are counted …
FLAPPING = 2  # … and with so many of its own, a node cannot be relied on
SHARED = 3  # nodes of a job that all fail alike accuse the check, or what they share
Tried = tuple[str, str]  # check, environment
# The samples of a job, at least of some nodes.
Read = Callable[[Header, Collection[str]], Sequence[Sample]]


@dataclass(frozen=True)
class SharedFailure(Sample):
    """A failure that all nodes of its job share: no node is condemned by it."""


def standing(site: Site, headers: Iterable[Header], read: Read) -> list[Sample]:
    """The failures that no later success has cleared, the newest first of each check and node."""
    return [
        attempt
        for jobs in _tried(site, headers).values()
        for attempt in _standing(site, jobs, read)
    ]


def gone(site: Site, headers: Iterable[Header]) -> list[str]:
    """The checks with results that are in no catalogue any more: they count for nothing."""
    found = {header.check for header in headers if not (header.is_plain or _is_no_check(header))}
    return sorted(found - {metric.check for metric in site.catalogue.values() if metric.check})


def of_site(site: Site, headers: Iterable[Header]) -> list[Header]:
    """The jobs of the checks that this site still runs, in environments that it still has."""
    return [job for jobs in _tried(site, headers).values() for job in jobs]


def _is_no_check(header: Header) -> bool:
    """Whether it is no attempt on nodes: what others have published, and a sweep."""
    return header.mode == PUBLISHED or SWEEP in header.conditions


def _tried(site: Site, headers: Iterable[Header]) -> Mapping[Tried, list[Header]]:
    """The jobs of each check that this site still runs, the newest first."""
    newest_first = sorted(headers, key=lambda header: header.job_order, reverse=True)
    not_here = set(gone(site, newest_first))
    found: dict[Tried, list[Header]] = {}
    unknown: list[Header] = []  # in which environment
    for header in newest_first:
        partition = site.system.partitions.get(header.partition)
        if partition is None or header.check in not_here or _is_no_check(header):
            continue
        if header.environment in partition.environments:
            found.setdefault((header.check, header.environment), []).append(header)
        elif header.is_unread and not header.environment:
            unknown.append(header)
    for header in unknown:
        _add_unknown(found, header)
    return found


def _add_unknown(found: dict[Tried, list[Header]], header: Header) -> None:
    """Add it to each environment in which its check has run, in the strictest mode there."""
    same = [key for key in found if key[0] == header.check]
    for key in same or [(header.check, "")]:
        jobs = found.setdefault(key, [])
        strictest = max((job.mode for job in jobs), key=_strictness, default="")
        jobs.append(replace(header, mode=strictest))
        jobs.sort(key=lambda job: job.job_order, reverse=True)


def _strictness(mode: str) -> int:
    return STRICTNESS.index(mode)


def _standing(site: Site, jobs: Sequence[Header], read: Read) -> Iterator[Sample]:
    """Those of one check in one environment. A node is looked for in each mode until it is known.

    After an attempt that ended well only stricter modes can have a failure that stands.
    """
    nodes = set(site.system.inventory)
    left = {mode: set(nodes) for mode in {header.mode for header in jobs}}
    for header in jobs:
        own, weaker = left[header.mode], _up_to(left, header.mode)
        wanted = weaker & (expected_nodes(header.expected) or weaker)
        if wanted:
            ended = [a for a in attempts(read(header, wanted)) if a.status not in NO_OUTCOME]
            if failed := [a for a in ended if a.status != "ok" and a.node in own]:
                yield from _marked(failed, read(header, expected_nodes(header.expected) or nodes))
            _strike_off(left, header.mode, ended)


def _up_to(left: Mapping[str, set[str]], mode: str) -> set[str]:
    """The nodes of which an attempt in this mode still matters: a success clears weaker ones."""
    known = (nodes for other, nodes in left.items() if _strictness(other) <= _strictness(mode))
    return set().union(*known)


def _marked(failed: Iterable[Sample], of_job: Iterable[Sample]) -> Iterator[Sample]:
    """The failures of a job, those apart that all of its nodes share."""
    own = {attempt.node for attempt in _of_its_own(attempts(of_job))}
    for one in failed:
        shared = one.status != LOST and one.node not in own
        yield SharedFailure(**vars(one)) if shared else one


def _strike_off(left: Mapping[str, set[str]], mode: str, ended: Iterable[Sample]) -> None:
    """The nodes of which no older attempt matters: in this mode, or also in less strict ones.

    What is lost may have been a failure, too, and clears none.
    """
    known = {attempt.node for attempt in ended if attempt.status != LOST}
    good = {attempt.node for attempt in ended if attempt.status == "ok"}
    for other, nodes in left.items():
        if other == mode:
            nodes -= known
        elif _strictness(other) < _strictness(mode):
            nodes -= good


def of_samples(site: Site, samples: Iterable[Sample]) -> list[Sample]:
    """The failures that stand among the samples of whole jobs."""
    own = {id(of_job[0].header): of_job for of_job in _by_job(samples)}
    headers = [of_job[0].header for of_job in own.values()]
    return standing(site, headers, lambda job, _: own[id(job)])


def _by_job(samples: Iterable[Sample]) -> list[list[Sample]]:
    return list(grouped((_job_of(sample.header), sample) for sample in samples).values())


def _job_of(head: Header) -> tuple[object, ...]:
    return head.check, head.partition, head.environment, head.job_order


def shared(samples: Collection[Sample]) -> set[tuple[object, ...]]:
    """The failures of whole jobs that all of their nodes share: node, check, `job_order`."""
    failed = {_job_of(sample.header) for sample in samples if sample.status != "ok"}
    of_failed = (sample for sample in samples if _job_of(sample.header) in failed)
    jobs = [attempts(of_job) for of_job in _by_job(of_failed)]
    own = {id(one) for tried in jobs for one in _of_its_own(tried)}
    each = (one for tried in jobs for one in tried if one.status != "ok" and id(one) not in own)
    return {(one.node, one.header.check, one.header.job_order) for one in each}


def recent(site: Site, headers: Iterable[Header]) -> list[Header]:
    """The jobs of each check's last sessions."""
    found: list[Header] = []
    for jobs in _tried(site, headers).values():
        sessions = list(dict.fromkeys(job.session for job in jobs))[:RECENT]
        found += [job for job in jobs if job.session in sessions]
    return found


def flapping(samples: Iterable[Sample], repaired: Mapping[str, Repair]) -> dict[str, list[Sample]]:
    """The failures of each node that failed now and then, the oldest first.

    Of each check in each session one of each status.

    samples: of the jobs of `recent`, at least those without a value. repaired: the last repair of
    a node, before which nothing counts.
    """
    of_node: dict[str, dict[tuple[str, str, str], Sample]] = {}
    for of_job in _by_job(samples):
        for attempt in _of_its_own(attempts(of_job)):
            repair = repaired.get(attempt.node)
            if repair is None or repair.is_before(attempt.header):
                key = attempt.header.session, attempt.header.check, attempt.status
                of_node.setdefault(attempt.node, {}).setdefault(key, attempt)
    return {
        node: sorted(failed.values(), key=lambda attempt: attempt.header.job_order)
        for node, failed in of_node.items()
        if len({session for session, *_ in failed}) >= FLAPPING
    }


def _of_its_own(attempts_: Sequence[Sample]) -> Iterator[Sample]:
    """The failures of a job that not all of its nodes share; a wrong answer is always a node's."""
    alike = Counter(attempt.status for attempt in attempts_)
    for attempt in attempts_:
        if attempt.status in ("ok", LOST, *NO_OUTCOME):
            continue
        everybody = max(SHARED, len(expected_nodes(attempt.header.expected)), len(attempts_))
        if attempt.status in WRONG or alike[attempt.status] < everybody:
            yield attempt


def attempts(samples: Iterable[Sample]) -> list[Sample]:
    """The attempts on nodes that the samples of one job are; what concerns a pair is not one."""
    found: dict[str, Sample] = {}
    for sample in samples:
        if sample.node and not of_pairs(sample):
            known = found.setdefault(sample.node, sample)
            if sample.status != known.status:
                worst = most_severe_status([known.status, sample.status])
                found[sample.node] = known if worst == known.status else sample
    return list(found.values())
