"""The outcomes of what belongs to the system and to no node: points of a sweep, steps of a service.

Points are read from the folders raw/NUMBER/ of checks/on_node/sweep.sh; a point's axes are the
dimensions of its samples. Steps are read from the records of siteproof.services, whichever node
used it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import cast

from siteproof import nodesets
from siteproof.collect import cause, outcome, raw
from siteproof.collect.outcome import Outcome
from siteproof.collect.raw import Raw, Stage
from siteproof.errors import OutputError, UserError, harmless
from siteproof.parsers import ALL, Reading, count, service
from siteproof.parsers.service import Report, Step
from siteproof.record import samples
from siteproof.record.manifest import Manifest, Point, folder_of
from siteproof.slurm import client
from siteproof.sweeps import keys

NO_NODE = ""
WITHOUT = "without"  # a fact: metrics that a job cannot measure, and why
ENERGY = "energy"  # a metric, and the fact of a job that wants it: joules by number of nodes
MAX_NODES = 10  # lost nodes in the reason of each point


def of_sweep(stage: Path, job: Manifest, ended: str) -> list[tuple[str, Outcome]]:
    """Each point's outcome, in the order of their numbers."""
    raw_files = Stage.of(stage)
    nodes = nodesets.parse(job.expected)
    able = len(nodes) - len(job.lost)
    left = {node: why for node, why in keys.not_restored(stage).items() if node in nodes}
    # First, as the next user of these nodes needs it most.
    found = [(node, Outcome(status="invalid", why=why)) for node, why in left.items()]
    for number, point in job.points.items():
        if raw_files.has(folder_of(number)):
            found.append((NO_NODE, of_point(raw_files, job, number, ended)))
        else:
            found.append((NO_NODE, no_point(job, point, ended, able)))
    return found


def with_energy(job: Manifest) -> Manifest:
    """The job with the energy of each point, where Slurm accounts that of its steps; else why not.

    Of a job that wants it, as of a session that was killed.
    """
    if ENERGY not in job.facts:
        return job
    on_slurm, joules = job.scheduler == "slurm", dict[str, int]()
    reason = "Slurm accounts none" if on_slurm else "without Slurm none is accounted"
    for number in job.jobs if on_slurm else ():
        try:
            steps = client.energy(number, job.started)
        except UserError as error:
            reason = str(error)
            continue
        for at, point in job.points.items():
            if of_step := steps.get(f"siteproof-{folder_of(at)}"):
                joules[str(point.nodes)] = of_step
    facts = {**job.facts, ENERGY: joules, WITHOUT: {ENERGY: f"no energy: {reason}"}}
    known = {} if joules else {ENERGY: f"none: {reason}"}
    return replace(job, facts=facts, provenance={**job.provenance, **known})


def so_far(stage: Path, job: Manifest, known: dict[int, Outcome]) -> list[tuple[str, Outcome]]:
    """The outcomes of points that are done while the job runs. known: those read before."""
    there = measured(stage, job.points)
    for number in job.points:
        if number not in known and folder_of(number) in there:
            known[number] = of_point(Stage.of(stage), job, number, "")
    return [(NO_NODE, known[number]) for number in sorted(known)]


def measured(stage: Path, points: Iterable[int]) -> set[str]:
    """The points with raw files, by the names of their folders."""
    return Stage.of(stage).names([folder_of(number) for number in points])


def of_point(stage: Stage, job: Manifest, number: int, ended: str) -> Outcome:
    """The outcome of a point with raw files."""
    point = job.points[number]
    dims = _dims(point)
    left = None
    try:
        result = stage.result(folder_of(number))
        left = raw.read(result)
        proof = raw.check_origin(result.folder, raw.walker(left, job), left, job)
        outcome.must_have_worked(left, job)
        if lacking := sorted(point.knobs.keys() - left.facts.keys()):  # a full disk, for example
            raise OutputError(f"{lacking[0]} was not read back", "invalid")
        with_point = replace(job, facts={**job.facts, **point.values})  # what `derive` needs
        conditions, readings, _ = outcome.judge(left, left.runs, with_point)
        known = cast("Mapping[str, str]", job.facts.get(WITHOUT, {}))  # what the job may lack
    except Exception as error:  # an error in one result must not stop the others
        found = outcome.failed(error, left, job, ended)
        if end := left.facts.get(outcome.CRASHED, "") if left else "":
            before = f"the first attempt crashed ({harmless(end)[: cause.TAIL]})"
            found = replace(found, why=f"{found.why}; {before}")
        return replace(found, dims=dims)
    there = {reading.metric for reading in readings}
    return Outcome(
        readings,
        {**point.fixed, **conditions},
        host=left.meta,
        # A run that measures all values of an axis has them as dimensions of its readings.
        dims={k: v for k, v in dims.items() if k not in keys.OF_ONE_RUN.get(job.check, ())},
        origin=proof,
        lacks={harmless(name): why for name, why in known.items() if name not in there},
    )


def no_point(job: Manifest, point: Point, ended: str, able: int) -> Outcome:
    """The outcome of a point without raw files. A node is the cause only if Slurm reports that.

    able: the number of nodes that could be used.
    """
    dims = _dims(point)
    lost = "; ".join(f"{node}: {why}" for node, why in islice(job.lost.items(), MAX_NODES))
    if lost and (point.nodes > able or ended.startswith("NODE_FAIL")):
        fates = {job.fate(node) for node in job.lost}
        status = "node_lost" if "node_lost" in fates else samples.INTERRUPTED
        return Outcome(status=status, why=f"needs {point.nodes} nodes; {lost}", dims=dims)
    if cause.at_time_limit(ended):
        why = "the job reached its time limit before this point"
    elif ended == "COMPLETED":
        why = "the walk ended before this point"
    else:
        why = f"left no result (job {ended or 'ended'})"
    return Outcome(status=samples.INTERRUPTED, why=why, dims=dims)


def _dims(point: Point) -> dict[str, str]:
    return {**point.own_dims, **({"trial": str(point.trial)} if point.trial else {})}


MAX_NAMED = 3  # failed steps in a reason


def of_service(stage: Path, job: Manifest, ended: str) -> list[tuple[str, Outcome]]:
    """How many steps failed, then each step: its seconds, or why it failed; then other figures."""
    return [(NO_NODE, found) for found in _outcomes(Stage.of(stage), job, ended)]


def _outcomes(stage: Stage, job: Manifest, ended: str) -> list[Outcome]:
    node = nodesets.parse(job.expected)[0]
    if not stage.has(node):
        return [outcome.without_result(job, node, ended)]
    left = None
    try:
        result = stage.result(node)
        left = raw.read(result)
        proof = raw.check_origin(result.folder, node, left, job)
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
    except Exception as error:  # an error in one result must not stop the others
        return [replace(outcome.failed(error, left, job, ended), conditions={})]
    known = {"ok": found.conditions}
    return [
        replace(one, conditions=known.get(one.status, {}), host=left.meta, origin=proof)
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
    failed = [step for step in found.steps if step.failed]
    return [
        Outcome([count("failures", len(failed))], why=_named(failed)),
        *(_of_step(step) for step in found.steps),
        *([Outcome(found.readings)] if found.readings else []),
    ]


def _of_step(step: Step) -> Outcome:
    if step.status != "ok":
        status = samples.TOOL_MISSING if step.status == service.ABSENT else step.status
        metric = "seconds" if step.alone else ALL
        return Outcome(status=status, why=step.why, dims=step.place, metric=metric)
    return Outcome([Reading("seconds", step.seconds, "s")], dims=step.place)


def _named(failed: list[Step]) -> str:
    """The first steps that failed, each with its reason; empty if none did."""
    named = [f"{step.name}: {step.why} ({step.status})" for step in failed[:MAX_NAMED]]
    more = len(failed) - len(named)
    return "; ".join(named) + (f"; {more} more" if more > 0 else "")
