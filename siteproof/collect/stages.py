"""Raw files of nodes to samples in perflogs. Idempotent.

Every expected node has samples: its readings, or the reason why it has none.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from siteproof import files, nodesets
from siteproof.collect import cause, of_system, outcome, pair_turns, raw
from siteproof.collect.cause import Cause
from siteproof.collect.outcome import Outcome
from siteproof.collect.raw import Stage
from siteproof.errors import OutputError, UserError, harmless
from siteproof.record import clocks, descriptions, manifest, samples, sessions
from siteproof.record.manifest import Manifest
from siteproof.record.samples import Header, Sample
from siteproof.slurm import client

ATTEMPTS = (1, 2)  # jobs of one check
LONGEST_WHY = 1_000  # characters
MAX_OF_ONE = 4 * files.MIB  # bytes of one result's samples
OF_HOST = ("kernel", "processor", "modules")  # of a node's account, in the provenance
LINE = 300  # bytes of a sample's line without its conditions


def collect(
    stage: Path, perflogs: Path, *, ended: str = "", job: Manifest | None = None
) -> list[Sample]:
    """Read a job's raw files, write its samples, and mark the stage directory as collected.

    ended: the job's state in Slurm, such as TIMEOUT; explains missing nodes.
    job: the manifest, where the session that made it lives; then no file is read for it.
    Raises UserError for a broken manifest, files.Unread where the stage cannot be read now, and
    OSError where perflogs cannot be written.
    """
    stages = perflogs.with_name("stage")
    # The samples of a running session belong to its user, even if the file system maps owners.
    owner = None if job else Stage.of(stage).owner
    job = of_system.with_energy(job or manifest.load(stage, stages))
    outcomes = _that_can_be_kept(_reader(job)(stage, job, ended))
    found = to_samples(job, outcomes, time.time())
    header = found[0].header
    if aside := {node: o.aside for node, o in outcomes if o.aside}:
        # First, as samples refer to them.
        descriptions.write(perflogs, header, aside, owner=owner)
    samples.write(perflogs, header, found, owner=owner)
    manifest.taken(stage, stages)
    return found


def collect_so_far(stage: Path, perflogs: Path, job: Manifest, known: dict[int, Outcome]) -> int:
    """Write the samples of the points that a running sweep has measured; how many points.

    known: what earlier calls have read. Raises OSError where perflogs cannot be written.
    """
    outcomes = of_system.so_far(stage, job, known)
    if found := to_samples(job, outcomes, time.time()):
        samples.write(perflogs, found[0].header, found)
    return len(known)


def _reader(job: Manifest) -> Callable[[Path, Manifest, str], list[tuple[str, Outcome]]]:
    if job.points:
        return of_system.of_sweep
    if job.service:
        return of_system.of_service
    return pair_turns.outcomes if job.turns else of_nodes


def of_nodes(stage: Path, job: Manifest, ended: str) -> list[tuple[str, Outcome]]:
    """The outcome of every node of a job."""
    raw_files, nodes = Stage.of(stage), expected(job)
    there = {node for node in nodes if raw_files.has(node)}
    others = bool(there) or len(nodes) - len(job.lost) <= 1
    reported = _ends(raw_files) if len(there) < len(nodes) else {}
    found = []
    for node in nodes:
        if node in there:
            found.append((node, read_node(raw_files, job, node, ended)))
        else:
            began = any(raw_files.has(f".{node}.{attempt}") for attempt in ATTEMPTS)
            died = cause.without_result(reported.get(node), began, ended, job.check)
            found.append((node, _no_result(job, node, ended, died, others=others)))
    return found


def expected(job: Manifest) -> list[str]:
    """The nodes that the job had to measure."""
    return list(nodesets.parse(job.expected))


def measured(stage: Path, results: Collection[str]) -> set[str]:
    """Those of the results (nodes, turns, points) that have raw files."""
    return Stage.of(stage).names(results)


def succeeded(stage: Path, name: str) -> bool:
    """Whether a result reports that its script ended with 0; nothing else is read."""
    try:
        return Stage.of(stage).result(name).meta().get("exit") == "0"
    except (OutputError, UserError):
        return False


def read_node(stage: Stage, job: Manifest, node: str, ended: str) -> Outcome:
    """The outcome of one node with a result."""
    meta: Mapping[str, str] = {}
    left = None
    try:
        result = stage.result(node)
        meta = result.meta()
        left = raw.read(result)
        proof = raw.check_origin(result.folder, node, left, job)
        outcome.must_have_worked(left, job)
        conditions, readings, aside = outcome.judge(left, left.runs, job)
    except Exception as error:  # an error in one result must not stop the others
        return outcome.failed(error, left, job, ended, meta)
    return Outcome(readings, conditions, host=meta, aside=aside, origin=proof)


def _that_can_be_kept(outcomes: Sequence[tuple[str, Outcome]]) -> list[tuple[str, Outcome]]:
    """A node whose texts would make the file of all nodes too large has an error instead."""
    asides = {node: one.aside for node, one in outcomes if one.aside}
    large = descriptions.too_large(asides) if asides else set()
    why = "its description has too little in common with those of the other nodes to be kept"
    return [
        (node, Outcome(status="invalid", why=why, host=one.host) if node in large else one)
        for node, one in outcomes
    ]


def to_samples(job: Manifest, outcomes: Sequence[tuple[str, Outcome]], now: float) -> list[Sample]:
    """The samples of a job. What all nodes have in common is in their header."""
    common = _common([o.conditions for _, o in outcomes if o.status == "ok"])
    host = _common([o.host for _, o in outcomes if o.status == "ok"])
    shared = {key: text for key, text in host.items() if key in OF_HOST}
    proof = raw.of_all([(node, o.origin) for node, o in outcomes if o.status == "ok"])
    when = _ended(job, [o for _, o in outcomes], now).isoformat(timespec="seconds")
    if off := clocks.of_nodes(((n, o.host) for n, o in outcomes), job.started, now):
        shared[clocks.NODES] = off
    header = Header(
        session=job.session,
        system=job.system,
        partition=job.partition,
        environment=job.environment,
        check=job.check,
        job=job.id,
        time=when,
        place=job.place,
        mode=job.mode,
        campaign=job.campaign,
        # A sweep measures no node on its own, nor does the test of a service.
        expected="" if job.points or job.service else job.expected,
        conditions={**job.conditions, **common},
        provenance={**job.provenance, **shared, **({"origin": proof} if proof else {})},
    )
    room = min(MAX_OF_ONE, files.SAMPLES // 2 // max(1, len(outcomes)))
    return [
        sample
        for node, left in outcomes
        for sample in _node_samples(header, node, _at_its_points(job, header, left), room)
    ]


def _at_its_points(job: Manifest, header: Header, left: Outcome) -> Outcome:
    """The outcome, unless a value lacks what belongs to its point."""
    known = {*header.conditions, *left.conditions, *left.dims}
    for reading in left.readings:
        needed = job.point.get(reading.metric, ())
        if lacking := [key for key in needed if key not in known and key not in reading.dims]:
            why = f"{reading.metric} without {', '.join(lacking)}, its point in the catalogue"
            return Outcome(status="parse", why=why, host=left.host, dims=left.dims)
    return left


def _ended(job: Manifest, outcomes: Iterable[Outcome], now: float) -> datetime:
    """When the last node was done, by the nodes' clocks.

    A clock counts only if it is possible: between the job's start and now, or the time that the
    job can have taken with a day's wait.
    """
    began = min(job.started, now)
    # A lost session may be collected weeks later; a node's clock must not make it younger.
    latest = min(now, max(job.over, began + job.limit + manifest.OTHER_HOST))
    ends = [clocks.read(o.host.get("end", "")) for o in outcomes]
    likely = [min(end, now) for end in ends if end and began <= end <= latest + clocks.BOUND]
    return datetime.fromtimestamp(int(max([*likely, began])), UTC)


def _node_samples(header: Header, node: str, left: Outcome, room: int) -> Iterable[Sample]:
    """room: bytes that this result may take in a file that has to be read again."""
    own = {k: v for k, v in left.conditions.items() if header.conditions.get(k) != v}
    takes = len(left.readings) * (LINE + len(json.dumps(own)))
    if takes > room:
        why = f"{len(left.readings)} values with {len(own)} conditions of their own: too many"
        left = Outcome(status="invalid", why=why, dims=left.dims)
    make = partial(Sample, header, node, own_conditions=own)
    if left.status != "ok":
        why, place = harmless(left.why)[:LONGEST_WHY], _place(left.dims)
        yield make(f"{header.check}.{left.metric}", status=left.status, why=why, **place)
    for reading in left.readings:
        # Peer and point are those of the job, even if a script has noted others.
        place = _place({**reading.dims, **left.dims})
        metric = f"{header.check}.{reading.metric}"
        if reading.status != "ok":
            why = str(reading.value)[:LONGEST_WHY]
            yield make(metric, status=reading.status, why=why, **place)
            continue
        yield make(metric, reading.value, reading.unit, why=left.why, line=reading.line, **place)
    for name, why in left.lacks.items():
        status, why = samples.TOOL_MISSING, harmless(why)[:LONGEST_WHY]
        yield make(f"{header.check}.{name}", status=status, why=why, **_place(left.dims))


def _place(dims: Mapping[str, str]) -> dict[str, Any]:
    """The dimensions of a sample and its trial, which is none of them."""
    rest = dict(dims)
    return {"trial": int(rest.pop("trial", "0")), "dims": rest}


def _no_result(
    job: Manifest, node: str, ended: str, died: OutputError | None, *, others: bool
) -> Outcome:
    """The outcome of a node without a result.

    It is the node's fault if Slurm reports that, or if other nodes have a result. It is not if
    somebody has ended the job (Ctrl-C, scancel, a lost session), or if no node has a result.
    others: others have one, or the job has no other node.
    """
    if died:
        return Outcome(status=died.status, why=str(died))
    found = outcome.without_result(job, node, ended)
    if node in job.lost or cause.at_time_limit(ended) or cause.by_somebody(ended):
        return found
    if not others:
        return replace(found, why=f"{found.why}, and neither did any other node")
    return replace(found, status="node_lost")


def _ends(stage: Stage) -> Mapping[str, Cause]:
    """srun's report of the ends of tasks in the job's output, by node."""
    path = stage.path / "rfm_job.err"
    try:
        text = files.read_text(path, below=stage.path, limit=files.OUTPUT, owners={stage.owner})
    except files.Unread:
        raise
    except (OSError, UserError):
        return {}
    return cause.ended_by_slurm(text)


def _common(records: list[Mapping[str, str]]) -> dict[str, str]:
    """The most common value of each key that every record has."""
    if not records:
        return {}
    keys = set(records[0]).intersection(*records)
    return {key: Counter(r[key] for r in records).most_common(1)[0][0] for key in sorted(keys)}


def collect_lost(stages: Path, perflogs: Path) -> Iterator[tuple[Path, int | UserError]]:
    """Collect every lost session: the number of samples of each stage directory, or an error.

    A broken one is set aside, and verdicts name it; the others are still collected.
    """
    for stage, job in orphans(stages):
        if isinstance(job, UserError):
            sessions.note(perflogs, stage, job, manifest.system_of(stage, stages))
            yield stage, job
        elif owner := _other_owner(stage, perflogs):
            yield (
                stage,
                UserError(stage, f"belongs to {owner}", hint=f"{owner} runs 'siteproof collect'"),
            )
        else:
            yield stage, _collect_one(stage, perflogs, job)


def _collect_one(stage: Path, perflogs: Path, job: Manifest) -> int | UserError:
    try:
        count = len(collect(stage, perflogs, ended="lost with its session"))
    except OSError as error:
        return UserError(perflogs, f"samples cannot be written: {error.strerror}")
    except Exception as error:  # an error in one stage must not stop the others
        broken = _broken(stage, error)
        sessions.note(perflogs, stage, broken, job.system)
        return broken
    sessions.clear(perflogs, stage)
    return count


def _other_owner(stage: Path, perflogs: Path) -> str | None:
    """The name of the owner of a stage that only the owner can collect; None: it can be here."""
    try:
        owner = files.owner(stage)
    except (OSError, UserError):
        return None  # collecting it raises the reason
    if os.access(stage, os.W_OK) and files.trusts_below(perflogs, owner):
        return None
    return files.name_of(owner)


def _broken(stage: Path, error: Exception) -> UserError:
    if isinstance(error, UserError):
        return error
    return UserError(stage, f"cannot be collected: {outcome.reason(error)}")


def orphans(stages: Path) -> Iterator[tuple[Path, Manifest | UserError]]:
    """Uncollected stage directories whose session and jobs have ended.

    Each with its manifest, or the error if that cannot be read. Discarded ones are left out.
    """
    left = []
    perflogs = stages.with_name("perflogs")
    discarded = sessions.discarded(perflogs)
    for stage in manifest.pending(stages):
        if sessions.key(stage, perflogs) in discarded:
            continue
        try:
            job = manifest.load(stage, stages)
            if not job.watched(stage):
                left.append((stage, job))
        except Exception as error:  # an error in one stage must not stop the others
            yield stage, _broken(stage, error)
    jobs = [number for _, job in left if job.scheduler == "slurm" for number in job.jobs]
    queued = client.queued(jobs)
    for stage, job in left:
        if not queued.intersection(job.jobs) and not manifest.still_runs(stage, job):
            yield stage, job
