"""From the raw files that the nodes left to samples in perflogs. Idempotent.

Every expected node is accounted for by name: with its readings, or with the reason why not.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from siteproof import descriptions, manifest, raw, samples
from siteproof.errors import OutputError, UserError
from siteproof.manifest import Manifest
from siteproof.parsers import Reading
from siteproof.raw import Raw, Run
from siteproof.samples import Header, Sample

NOT_FOUND = 127
BY_ITSELF = ("COMPLETED", "FAILED", "OUT_OF_ME")  # words of Slurm for jobs that nobody ended


@dataclass(frozen=True)
class Outcome:
    """What became of one node: readings and their conditions, or a status and the reason.

    aside: texts that are too many for samples, kept beside them (siteproof.descriptions).
    """

    readings: list[Reading] = field(default_factory=list)
    conditions: Mapping[str, str] = field(default_factory=dict)
    status: str = "ok"
    why: str = ""
    host: Mapping[str, str] = field(default_factory=dict)
    aside: Mapping[str, str] = field(default_factory=dict)


def collect(stage: Path, perflogs: Path, *, ended: str = "") -> list[Sample]:
    """Read a job's raw files, write its samples, and mark the stage directory as collected.

    ended: how the scheduler says the job ended, such as TIMEOUT; explains missing nodes.
    Raises UserError for a broken manifest and OSError where perflogs cannot be written.
    """
    job = manifest.load(stage)
    outcomes = {node: read_node(stage, job, node, ended) for node in expected(job)}
    found = to_samples(job, outcomes, time.time())
    if aside := {node: o.aside for node, o in outcomes.items() if o.aside}:
        descriptions.write(perflogs, found[0].header, aside)  # first: a sample speaks of them
    samples.write(perflogs, found[0].header, found)
    (stage / manifest.DONE).touch()
    return found


def expected(job: Manifest) -> list[str]:
    """The nodes that the inventory says the job had to measure."""
    return list(NodeSet(job.expected, resolver=RESOLVER_NOGROUP))


def measured(stage: Path) -> set[str]:
    """The nodes that have left their raw files."""
    folder = stage / "raw"
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} \
        if folder.is_dir() else set()


def read_node(stage: Path, job: Manifest, node: str, ended: str) -> Outcome:
    """What became of one node."""
    folder = stage / "raw" / node
    if not folder.is_dir():
        return _no_result(stage, job, node, ended)
    meta: Mapping[str, str] = {}
    try:
        meta = raw.read_meta(folder)
        conditions, readings, aside = _judge(raw.read(folder), job)
    except OutputError as error:
        return Outcome(status=error.status, why=str(error), host=meta)
    return Outcome(readings, conditions, host=meta, aside=aside)


def to_samples(job: Manifest, outcomes: Mapping[str, Outcome], now: float) -> list[Sample]:
    """The samples of a job. What all nodes have in common stands in their header."""
    common = _common([o.conditions for o in outcomes.values() if o.status == "ok"])
    host = _common([o.host for o in outcomes.values() if o.status == "ok"])
    shared = {key: host[key] for key in ("kernel", "processor") if key in host}
    header = Header(
        session=job.session, system=job.system, partition=job.partition,
        environment=job.environment, check=job.check, job=job.id,
        time=_ended(job, outcomes.values(), now).isoformat(timespec="seconds"), mode=job.mode,
        campaign=job.campaign, expected=job.expected, conditions={**job.conditions, **common},
        provenance={**job.provenance, **shared},
    )
    return [
        sample for node, outcome in outcomes.items()
        for sample in _node_samples(header, node, outcome)
    ]


def _ended(job: Manifest, outcomes: Iterable[Outcome], now: float) -> datetime:
    """When the last node was done, whenever it is collected; no node's clock runs ahead of ours."""
    ends = [int(end) for o in outcomes if (end := o.host.get("end", "")).isdecimal()]
    return datetime.fromtimestamp(min(now, max([*ends, int(job.started)])), UTC)


def _node_samples(header: Header, node: str, outcome: Outcome) -> Iterable[Sample]:
    if outcome.status != "ok":
        yield Sample(header, node, f"{header.check}.*", status=outcome.status, why=outcome.why)
    own = {k: v for k, v in outcome.conditions.items() if header.conditions.get(k) != v}
    for reading in outcome.readings:
        dims = dict(reading.dims)
        trial = dims.pop("trial", "0")
        yield Sample(
            header, node, f"{header.check}.{reading.metric}", reading.value, reading.unit,
            dims=dims, trial=int(trial), own_conditions=own, why=outcome.why,
        )


def _judge(left: Raw, job: Manifest) -> tuple[dict[str, str], list[Reading], Mapping[str, str]]:
    """Conditions, readings and texts aside of one node. Raises OutputError where there is none."""
    for run in left.runs:
        must_have_ended(run, left, job)
    _must_have_worked(left, job)
    runs = left.runs or [Run({}, 0, left.stdout, left.stderr)]
    conditions, readings = dict(left.facts), []
    for run in runs:
        own, found = parse(run, left, job)
        readings += found
        conditions |= own
    aside: Mapping[str, str] = {}
    if job.derive:
        derive = import_module(f"siteproof.derive.{job.derive}")
        aside = derive.aside(readings, left) if hasattr(derive, "aside") else {}
        readings, conditions = derive.derive(readings, conditions, left, job.facts)
    complete(job, readings)
    return conditions, readings, aside


def _must_have_worked(left: Raw, job: Manifest) -> None:
    """Raises OutputError unless the node's script ended with 0."""
    code = left.number("exit")
    program = left.facts.get("program", "") or job.check
    if left.timed_out(code):
        raise OutputError(f"{program} hung: ended after its time limit", "timeout")
    if code == NOT_FOUND:
        raise OutputError(left.last_words, "tool_missing")
    if code != 0:
        raise OutputError(f"{program} exited with {code}: {left.last_words}", "generic")


def must_have_ended(run: Run, left: Raw, job: Manifest) -> None:
    """Raises OutputError unless one command of a script ended with 0."""
    told = " ".join(run.dims.values())
    what = f"{program_of(run, left) or job.check}{' ' if told else ''}{told}"
    if run.exit is None or run.exit == raw.ENDED:
        raise OutputError(f"{what} hung: ended after its time limit", "timeout")
    if run.exit == NOT_FOUND:
        raise OutputError(run.last_words, "tool_missing")
    if run.exit != 0:
        raise OutputError(f"{what} exited with {run.exit}: {run.last_words}", "generic")


def program_of(run: Run, left: Raw) -> str:
    """The program that a run's output is of: its own word goes before the script's."""
    return run.dims.get("program", left.facts.get("program", ""))


def parse(run: Run, left: Raw, job: Manifest) -> tuple[dict[str, str], list[Reading]]:
    """Conditions and readings of one run, with its dimensions. Raises OutputError."""
    program = program_of(run, left)
    if program not in job.parsers:
        raise OutputError(f"measured by '{program}', which no parser of {job.check} reads")
    parser = import_module(f"siteproof.parsers.{job.parsers[program]}")
    text = run.stderr if getattr(parser, "STREAM", "stdout") == "stderr" else run.stdout
    dims = {key: value for key, value in run.dims.items() if key != "program"}
    if not dims.get("trial", "0").isdecimal():
        raise OutputError(f"{program}: trial '{dims['trial']}' is no whole number")
    found: list[Reading] = parser.parse(text)
    return parser.conditions(text), [replace(r, dims={**dims, **r.dims}) for r in found]


def complete(job: Manifest, readings: list[Reading]) -> None:
    """Raises OutputError unless every promised metric is there, and finite."""
    names = {reading.metric for reading in readings}
    if missing := sorted(set(job.metrics) - names):
        raise OutputError(f"the catalogue promises {', '.join(missing)}, the output has none")
    for reading in readings:
        if isinstance(reading.value, Decimal) and not reading.value.is_finite():
            raise OutputError(f"{reading.metric} is {reading.value}", "invalid")


def _no_result(stage: Path, job: Manifest, node: str, ended: str) -> Outcome:
    """Whether it is the node's own fault: Slurm says so, or its sisters could do what it did not.

    A job that somebody has ended (Ctrl-C, scancel, a lost session) holds nothing against a node,
    nor does one in which no node could do anything.
    """
    if node in job.lost:
        return Outcome(status="node_lost", why=job.lost[node])
    if ended.startswith("TIMEOUT"):
        return Outcome(status="timeout", why="no result when the job reached its time limit")
    why = f"left no result (job {ended or 'ended'})"
    if ended and not ended.startswith(BY_ITSELF):
        return Outcome(status=samples.INTERRUPTED, why=why)
    if not measured(stage) and len(expected(job)) - len(job.lost) > 1:
        return Outcome(status=samples.INTERRUPTED, why=f"{why}, and neither did any other node")
    return Outcome(status="node_lost", why=why)


def _common(records: list[Mapping[str, str]]) -> dict[str, str]:
    """The commonest value of each key that every record has."""
    if not records:
        return {}
    keys = set(records[0]).intersection(*records)
    return {key: Counter(r[key] for r in records).most_common(1)[0][0] for key in sorted(keys)}


def collect_lost(stages: Path, perflogs: Path) -> Iterator[tuple[Path, int | UserError]]:
    """Collect every lost session: how many samples each stage directory gave, or why none."""
    for stage, job in orphans(stages):
        if isinstance(job, UserError):
            yield stage, job
        elif not os.access(stage, os.W_OK):
            yield stage, UserError(stage, f"left to {stage.owner()}, whose lost session it is")
        else:
            try:
                yield stage, len(collect(stage, perflogs, ended="lost with its session"))
            except UserError as error:
                yield stage, error
            except OSError as error:
                told = f"samples cannot be written: {error.strerror}"
                yield stage, UserError(perflogs, told)


def orphans(stages: Path) -> Iterator[tuple[Path, Manifest | UserError]]:
    """Uncollected stage directories whose session is gone and whose jobs have ended.

    Instead of a manifest that cannot be read, the error.
    """
    left = []
    for stage in manifest.pending(stages):
        try:
            job = manifest.load(stage)
        except UserError as error:
            yield stage, error
            continue
        if not job.watched():
            left.append((stage, job))
    queued = _queued([job_id for _, job in left if job.scheduler == "slurm" for job_id in job.jobs])
    for stage, job in left:
        if not queued.intersection(job.jobs) and not manifest.still_runs(stage, job):
            yield stage, job


def _queued(jobs: list[str]) -> set[str]:
    """Those of the jobs that Slurm still holds or runs; all of them if Slurm does not answer."""
    if not jobs:
        return set()
    command = ["squeue", "-h", "-o", "%A", "-j", ",".join(jobs)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return set(jobs)
    if answer.returncode and "Invalid job id" not in answer.stderr:
        return set(jobs)
    return set(answer.stdout.split())
