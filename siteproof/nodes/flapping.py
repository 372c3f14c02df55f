"""Nodes that fail now and then: two failures of their own in the last sessions of the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from siteproof.analysis.slow_nodes import State
from siteproof.answers import checks_tried
from siteproof.answers.checks_tried import Attempt
from siteproof.judge.severity import most_severe_status
from siteproof.nodes import stored
from siteproof.nodes.facts import Fact
from siteproof.record import finding
from siteproof.record.finding import Kind
from siteproof.record.samples import Header, Sample, expected_nodes
from siteproof.verdict.judgement import Judgement


def facts(judged: Judgement) -> Iterator[Fact]:
    """Each of them that no failure keeps out, with how often it failed, and since when."""
    jobs = checks_tried.recent(judged.site, judged.tried)
    still = {attempt.node for attempt in judged.failed}
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


def _how(failed: Sequence[Attempt]) -> str:
    """`5 timeout, 2 invalid`."""
    counts: Mapping[str, int] = Counter(attempt.status for attempt in failed)
    return ", ".join(f"{count} {status}" for status, count in counts.items())
