"""The outcome of each step of a service's test, from the records of siteproof.services.

The samples belong to the system, and not to the node from which the service was used.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from siteproof import files, nodesets
from siteproof.collect import ending, origin, outcome, raw
from siteproof.collect.outcome import Outcome
from siteproof.collect.raw import Raw, Stage
from siteproof.errors import OutputError
from siteproof.parsers import Reading, service
from siteproof.parsers.service import Report, Step
from siteproof.record import samples
from siteproof.record.manifest import Manifest

NO_NODE = ""
MAX_NAMED = 3  # failed steps in a reason


def outcomes(stage: Path, job: Manifest, ended: str) -> list[tuple[str, Outcome]]:
    """How many steps failed, then each step: its seconds, or why it failed; then other figures."""
    return [(NO_NODE, found) for found in _outcomes(Stage.of(stage), job, ended)]


def _outcomes(stage: Stage, job: Manifest, ended: str) -> list[Outcome]:
    node = nodesets.parse(job.expected)[0]
    if not stage.has(node):
        return [_no_result(job, node, ended)]
    left = None
    try:
        result = stage.result(node)
        left = raw.read(result)
        proof = origin.check(result.folder, node, left, job)
        found = _report(left, job)
        _must_be_whole(found, left, job)
        outcome.must_not_set_what_the_job_sets(
            job,
            found.conditions,
            *(s.place for s in found.steps),
            *(r.dims for r in found.readings),
        )
        each = _of_report(found)
        for one in each:
            outcome.must_be_short(one.readings, found.conditions)
    except files.Unread:  # the collecting side failed, and not the node
        raise
    except Exception as error:  # an error in one result must not stop the others
        failed = outcome.reason(error)
        status = outcome.status_of(failed, left, job, ended)
        return [Outcome(status=status, why=str(failed), host=dict(left.meta) if left else {})]
    return [
        Outcome(
            one.readings,
            found.conditions if one.status == "ok" else {},
            one.status,
            one.why,
            left.meta,
            dims=one.dims,
            origin=proof,
        )
        for one in each
    ]


def _report(left: Raw, job: Manifest) -> Report:
    """What the only command of the script has reported. Raises OutputError."""
    outcome.must_not_deny(left)
    if not left.runs:
        outcome.must_have_worked(left, job)
        raise OutputError("no service was used")
    return service.report(left.runs[0].stdout)


def _must_be_whole(found: Report, left: Raw, job: Manifest) -> None:
    """Raises OutputError where the test has not come to its end, or could not be made."""
    for run in left.runs if not found.done else ():
        outcome.must_have_ended(run, left, job)
    if not found.done or not found.steps:
        raise OutputError(f"the test ended after {len(found.steps)} steps", "killed")
    if lacking := [step for step in found.steps if step.status == samples.TOOL_MISSING]:
        raise OutputError(lacking[0].why, samples.TOOL_MISSING)


def _of_report(found: Report) -> list[Outcome]:
    failed = [step for step in found.steps if step.status != "ok"]
    number = Reading("failures", Decimal(len(failed)), "count")
    return [
        Outcome([number], why=_named(failed)),
        *(_of_step(step) for step in found.steps),
        *([Outcome(found.readings)] if found.readings else []),
    ]


def _of_step(step: Step) -> Outcome:
    if step.status != "ok":
        return Outcome(status=step.status, why=step.why, dims=step.place)
    return Outcome([Reading("seconds", step.seconds, "s")], dims=step.place)


def _named(failed: list[Step]) -> str:
    """The first steps that failed, each with its reason; empty if none did."""
    named = [f"{step.name}: {step.why} ({step.status})" for step in failed[:MAX_NAMED]]
    more = len(failed) - len(named)
    return "; ".join(named) + (f"; {more} more" if more > 0 else "")


def _no_result(job: Manifest, node: str, ended: str) -> Outcome:
    """Nothing was left: the node could not take the job, or the job was ended."""
    if node in job.lost:
        return Outcome(status=job.fate(node), why=job.lost[node])
    if ending.at_time_limit(ended):
        return Outcome(status="timeout", why="no result when the job reached its time limit")
    return Outcome(status=samples.INTERRUPTED, why=f"left no result (job {ended or 'ended'})")
