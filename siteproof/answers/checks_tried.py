"""Whether the newest attempt of each check ended well on each node, whatever criteria require.

Each check of the catalogue, in each environment of a partition, must have ended well on every node
on which it has run. A failure stands until the same check has ended well on the node, in the same
environment and in the same mode or a stricter one. A run that somebody interrupted, and a program
that is not installed, take nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from siteproof.judge.severity import WRONG, most_severe_status
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
from siteproof.sites import Site

STRICTNESS = ("", "quick", "maintenance", "acceptance")  # of a mode, the least strict first
SAYS_NOTHING = (INTERRUPTED, TOOL_MISSING)
RECENT = 10  # sessions of a check in which failures are counted …
FLAPPING = 2  # … and with so many of its own, a node cannot be relied on
SHARED = 3  # nodes of a job that all fail alike accuse the check, or what they share
Tried = tuple[str, str, str]  # check, partition, environment
# The samples of a job, at least of some nodes.
Read = Callable[[Header, Collection[str]], Sequence[Sample]]


@dataclass(frozen=True)
class Attempt:
    """What became of a check on a node in one job. status: the most severe one of its samples."""

    node: str
    header: Header
    status: str
    samples: Sequence[Sample]

    @property
    def failed(self) -> bool:
        """Whether the check was tried on the node, and did not end well."""
        return self.status not in ("ok", *SAYS_NOTHING)

    @property
    def sample(self) -> Sample:
        """The sample with its status."""
        return next(sample for sample in self.samples if sample.status == self.status)


def standing(site: Site, headers: Iterable[Header], read: Read) -> list[Attempt]:
    """The failures that no later success has cleared, the newest first of each check and node."""
    return [
        attempt
        for jobs in _tried(site, headers).values()
        for attempt in _standing(site, jobs, read)
    ]


def _tried(site: Site, headers: Iterable[Header]) -> Mapping[Tried, list[Header]]:
    """The jobs of each check that this site still runs, the newest first."""
    checks = {metric.check for metric in site.catalogue.values()}
    found: dict[Tried, list[Header]] = {}
    for header in sorted(headers, key=lambda header: header.job_order, reverse=True):
        partition = site.system.partitions.get(header.partition)
        runs_here = partition is not None and header.environment in partition.environments
        known = header.check in checks or header.is_plain
        if runs_here and known and header.mode != PUBLISHED and SWEEP not in header.conditions:
            key = header.check, header.partition, header.environment
            found.setdefault(key, []).append(header)
    return found


def _strictness(mode: str) -> int:
    return STRICTNESS.index(mode)


def _standing(site: Site, jobs: Sequence[Header], read: Read) -> Iterator[Attempt]:
    """Those of one check in one environment. A node is looked for in each mode until it is known.

    After an attempt that ended well only stricter modes can have a failure that stands.
    """
    nodes = set(site.system.inventory)
    left = {mode: set(nodes) for mode in {header.mode for header in jobs}}
    for header in jobs:
        own = left[header.mode]
        wanted = own & (expected_nodes(header.expected) or own)
        if wanted:
            ended = [a for a in attempts(read(header, wanted)) if a.status not in SAYS_NOTHING]
            yield from (a for a in ended if a.failed and a.node in own)
            _strike_off(left, header.mode, ended)


def _strike_off(left: Mapping[str, set[str]], mode: str, ended: Iterable[Attempt]) -> None:
    """The nodes of which no older attempt matters: in this mode, or also in less strict ones."""
    for attempt in ended:
        for other, nodes in left.items():
            weaker = _strictness(other) < _strictness(mode)
            if other == mode or (weaker and not attempt.failed):
                nodes.discard(attempt.node)


def of_samples(site: Site, samples: Iterable[Sample]) -> list[Attempt]:
    """The failures that stand among the samples of whole jobs."""
    own = {id(of_job[0].header): of_job for of_job in _by_job(samples)}
    headers = [of_job[0].header for of_job in own.values()]
    return standing(site, headers, lambda job, _: own[id(job)])


def _by_job(samples: Iterable[Sample]) -> list[list[Sample]]:
    found: dict[object, list[Sample]] = {}
    for sample in samples:
        head = sample.header
        job = head.check, head.partition, head.environment, head.job_order
        found.setdefault(job, []).append(sample)
    return list(found.values())


def recent(site: Site, headers: Iterable[Header]) -> list[Header]:
    """The jobs of each check's last sessions."""
    found: list[Header] = []
    for jobs in _tried(site, headers).values():
        sessions = list(dict.fromkeys(job.session for job in jobs))[:RECENT]
        found += [job for job in jobs if job.session in sessions]
    return found


def flapping(samples: Iterable[Sample]) -> dict[str, list[Attempt]]:
    """The failures of each node that failed now and then, the oldest first, one a session.

    samples: of the jobs of `recent`, at least those without a value.
    """
    of_node: dict[str, dict[str, Attempt]] = {}
    for of_job in _by_job(samples):
        for attempt in _of_its_own(attempts(of_job)):
            of_node.setdefault(attempt.node, {}).setdefault(attempt.header.session, attempt)
    return {
        node: sorted(failed.values(), key=lambda attempt: attempt.header.job_order)
        for node, failed in of_node.items()
        if len(failed) >= FLAPPING
    }


def _of_its_own(attempts_: Sequence[Attempt]) -> Iterator[Attempt]:
    """The failures of a job that not all of its nodes share; a wrong answer is always a node's."""
    failed = [attempt for attempt in attempts_ if attempt.failed and attempt.status != LOST]
    expected = expected_nodes(failed[0].header.expected) if failed else ()
    for attempt in failed:
        alike = sum(other.status == attempt.status for other in failed)
        shared = alike >= max(SHARED, len(expected), len(attempts_))
        if attempt.status in WRONG or not shared:
            yield attempt


def attempts(samples: Iterable[Sample]) -> list[Attempt]:
    """The attempts on nodes that the samples of one job are; what concerns a pair is not one."""
    of_node: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.node and not of_pairs(sample):
            of_node.setdefault(sample.node, []).append(sample)
    return [
        Attempt(node, own[0].header, most_severe_status(s.status for s in own), own)
        for node, own in of_node.items()
    ]
