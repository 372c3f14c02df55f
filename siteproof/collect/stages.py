"""From the raw files that the nodes left to samples in perflogs. Idempotent.

Every expected node is accounted for by name: with its readings, or with the reason why not.
"""

from __future__ import annotations

import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from siteproof import files
from siteproof.collect import cause, ending, origin, outcome, pair_turns, raw, sweep_points
from siteproof.collect.cause import Cause
from siteproof.collect.outcome import Outcome
from siteproof.errors import OutputError, UserError
from siteproof.record import clocks, descriptions, manifest, samples
from siteproof.record.manifest import Manifest
from siteproof.record.samples import Header, Sample
from siteproof.slurm import client


def collect(stage: Path, perflogs: Path, *, ended: str = "") -> list[Sample]:
    """Read a job's raw files, write its samples, and mark the stage directory as collected.

    ended: how the scheduler says the job ended, such as TIMEOUT; explains missing nodes.
    Raises UserError for a broken manifest and OSError where perflogs cannot be written.
    """
    job = manifest.load(stage)
    outcomes = _reader(job)(stage, job, ended)
    found = to_samples(job, outcomes, time.time())
    if aside := {node: o.aside for node, o in outcomes if o.aside}:
        descriptions.write(perflogs, found[0].header, aside)  # first: a sample speaks of them
    samples.write(perflogs, found[0].header, found)
    (stage / manifest.DONE).touch()
    return found


def collect_so_far(stage: Path, perflogs: Path, job: Manifest, known: dict[int, Outcome]) -> int:
    """Write the samples of the points that a running sweep has measured; how many points.

    known: what earlier calls have read. Raises OSError where perflogs cannot be written.
    """
    outcomes = sweep_points.so_far(stage, job, known)
    if found := to_samples(job, outcomes, time.time()):
        samples.write(perflogs, found[0].header, found)
    return len(known)


def _reader(job: Manifest) -> Callable[[Path, Manifest, str], list[tuple[str, Outcome]]]:
    if job.points:
        return sweep_points.outcomes
    return pair_turns.outcomes if job.turns else of_nodes


def of_nodes(stage: Path, job: Manifest, ended: str) -> list[tuple[str, Outcome]]:
    """What became of every node of a job."""
    return [(node, read_node(stage, job, node, ended)) for node in expected(job)]


def expected(job: Manifest) -> list[str]:
    """The nodes that the inventory says the job had to measure."""
    return list(NodeSet(job.expected, resolver=RESOLVER_NOGROUP))


def measured(stage: Path) -> set[str]:
    """The nodes that have left their raw files."""
    folder = stage / "raw"
    return (
        {path.name for path in folder.iterdir() if not path.name.startswith(".")}
        if folder.is_dir()
        else set()
    )


def succeeded(stage: Path, name: str) -> bool:
    """Whether a result's own account says that the script ended well; nothing else is read."""
    try:
        return raw.read_meta(stage / "raw" / name).get("exit") == "0"
    except OutputError:
        return False


def read_node(stage: Path, job: Manifest, node: str, ended: str) -> Outcome:
    """What became of one node."""
    folder = stage / "raw" / node
    if not folder.is_dir():
        return _no_result(stage, job, node, ended)
    meta: Mapping[str, str] = {}
    left = None
    try:
        meta = raw.read_meta(folder)
        left = raw.read(folder)
        proof = origin.check(folder, node, left, job)
        for run in left.runs:
            outcome.must_have_ended(run, left, job)
        outcome.must_have_worked(left, job)
        conditions, readings, aside = outcome.judge(left, left.runs, job)
    except OutputError as error:
        status = outcome.status_of(error, left, job, ended, [meta.get("exit", "")])
        return Outcome(status=status, why=str(error), host=meta)
    return Outcome(readings, conditions, host=meta, aside=aside, origin=proof)


def to_samples(job: Manifest, outcomes: Sequence[tuple[str, Outcome]], now: float) -> list[Sample]:
    """The samples of a job. What all nodes have in common stands in their header."""
    common = _common([o.conditions for _, o in outcomes if o.status == "ok"])
    host = _common([o.host for _, o in outcomes if o.status == "ok"])
    shared = {key: told for key, told in host.items() if key in ("kernel", "processor")}
    proof = origin.of_all([(node, o.origin) for node, o in outcomes if o.status == "ok"])
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
        expected="" if job.points else job.expected,  # a sweep measures no node on its own
        conditions={**job.conditions, **common},
        provenance={**job.provenance, **shared, **({"origin": proof} if proof else {})},
    )
    return [sample for node, left in outcomes for sample in _node_samples(header, node, left)]


def _ended(job: Manifest, outcomes: Iterable[Outcome], now: float) -> datetime:
    """When the last node was done, whenever it is collected, by the clocks that can be right."""
    ends = [end for o in outcomes if (end := clocks.read(o.host.get("end", ""))) is not None]
    right = [end for end in ends if end <= now + clocks.BOUND]
    return datetime.fromtimestamp(min(now, max([*right, int(job.started)])), UTC)


def _node_samples(header: Header, node: str, left: Outcome) -> Iterable[Sample]:
    if left.status != "ok":
        dims = dict(left.dims)
        trial = int(dims.pop("trial", "0"))
        yield Sample(
            header,
            node,
            f"{header.check}.*",
            status=left.status,
            why=left.why,
            dims=dims,
            trial=trial,
        )
    own = {k: v for k, v in left.conditions.items() if header.conditions.get(k) != v}
    for reading in left.readings:
        dims = {**left.dims, **reading.dims}
        trial = int(dims.pop("trial", "0"))
        yield Sample(
            header,
            node,
            f"{header.check}.{reading.metric}",
            reading.value,
            reading.unit,
            dims=dims,
            trial=trial,
            own_conditions=own,
            why=left.why,
        )


def _no_result(stage: Path, job: Manifest, node: str, ended: str) -> Outcome:
    """Whether it is the node's own fault: Slurm says so, or its sisters could do what it did not.

    A job that somebody has ended (Ctrl-C, scancel, a lost session) holds nothing against a node,
    nor does one in which no node could do anything.
    """
    told = _ends(stage).get(node)
    began = any((stage / "raw").glob(f".{node}.*")) if ended.startswith("OUT_OF_ME") else False
    if own := ending.without_result(told, began, ended, job.check):
        return Outcome(status=own[0], why=own[1])
    if node in job.lost:
        return Outcome(status=job.fate(node), why=job.lost[node])
    if ended.startswith("TIMEOUT"):
        return Outcome(status="timeout", why="no result when the job reached its time limit")
    why = f"left no result (job {ended or 'ended'})"
    if ending.by_somebody(ended):
        return Outcome(status=samples.INTERRUPTED, why=why)
    if not measured(stage) and len(expected(job)) - len(job.lost) > 1:
        return Outcome(status=samples.INTERRUPTED, why=f"{why}, and neither did any other node")
    return Outcome(status="node_lost", why=why)


def _ends(stage: Path) -> Mapping[str, Cause]:
    """What srun wrote of the ends of tasks into the job's output, by node."""
    path = stage / "rfm_job.err"
    try:
        return _ends_in(path, path.lstat().st_mtime_ns)
    except OSError:
        return {}


@functools.lru_cache(maxsize=4)  # read once a job, and not once a node
def _ends_in(path: Path, _changed: int) -> Mapping[str, Cause]:
    try:
        text = files.read_text(path, below=path.parent, limit=files.OUTPUT)
    except (OSError, UserError):
        return {}
    return cause.ended_by_slurm(text)


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
    asked = [number for _, job in left if job.scheduler == "slurm" for number in job.jobs]
    queued = client.queued(asked)
    for stage, job in left:
        if not queued.intersection(job.jobs) and not manifest.still_runs(stage, job):
            yield stage, job
