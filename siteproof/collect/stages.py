"""From the raw files that the nodes left to samples in perflogs. Idempotent.

Every expected node is accounted for by name: with its readings, or with the reason why not.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from siteproof import files, nodesets
from siteproof.collect import cause, ending, origin, outcome, pair_turns, raw, sweep_points
from siteproof.collect.cause import Cause
from siteproof.collect.outcome import Outcome
from siteproof.collect.raw import Stage
from siteproof.errors import OutputError, UserError, harmless
from siteproof.record import clocks, descriptions, manifest, samples, set_aside
from siteproof.record.manifest import Manifest
from siteproof.record.samples import Header, Sample
from siteproof.slurm import client

ATTEMPTS = (1, 2)  # jobs of one check
LONGEST_WHY = 1_000  # characters
MOST_OF_ONE = 4 * files.MIB  # bytes of one result's samples
LINE = 300  # bytes of a sample's line without its conditions


def collect(
    stage: Path, perflogs: Path, *, ended: str = "", job: Manifest | None = None
) -> list[Sample]:
    """Read a job's raw files, write its samples, and mark the stage directory as collected.

    ended: how the scheduler says the job ended, such as TIMEOUT; explains missing nodes.
    job: the manifest, where the session that made it lives; no file is asked for it, then.
    Raises UserError for a broken manifest and OSError where perflogs cannot be written.
    """
    stages = stages_of(perflogs)
    # Of a session that lives the samples are its own, whatever owner its file system shows.
    owner = None if job else Stage.of(stage).owner
    job = job or manifest.load(stage, stages)
    outcomes = _that_can_be_kept(_reader(job)(stage, job, ended))
    found = to_samples(job, outcomes, time.time())
    header = found[0].header
    if aside := {node: o.aside for node, o in outcomes if o.aside}:
        # First: a sample speaks of them.
        descriptions.write(perflogs, header, aside, owner=owner)
    samples.write(perflogs, header, found, owner=owner)
    manifest.taken(stage, stages)
    return found


def stages_of(perflogs: Path) -> Path:
    """The folder of all stage directories beside the folder of all samples."""
    return perflogs.with_name("stage")


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
    raw_files, nodes = Stage.of(stage), expected(job)
    there = {node for node in nodes if raw_files.has(node)}
    alone = len(nodes) - len(job.lost) <= 1
    return [
        (
            node,
            read_node(raw_files, job, node, ended)
            if node in there
            else _no_result(raw_files, job, node, ended, others=bool(there) or alone),
        )
        for node in nodes
    ]


def expected(job: Manifest) -> list[str]:
    """The nodes that the inventory says the job had to measure."""
    return list(nodesets.parse(job.expected))


def measured(stage: Path, results: Collection[str]) -> set[str]:
    """Those of the results, such as nodes, that have left their raw files."""
    return Stage.of(stage).names(results)


def succeeded(stage: Path, name: str) -> bool:
    """Whether a result's own account says that the script ended well; nothing else is read."""
    try:
        return raw.read_meta(Stage.of(stage).result(name)).get("exit") == "0"
    except (OutputError, UserError):
        return False


def read_node(stage: Stage, job: Manifest, node: str, ended: str) -> Outcome:
    """What became of one node that has left something."""
    meta: Mapping[str, str] = {}
    left = None
    try:
        result = stage.result(node)
        meta = raw.read_meta(result)
        left = raw.read(result)
        proof = origin.check(result.folder, node, left, job)
        for run in left.runs:
            outcome.must_have_ended(run, left, job)
        outcome.must_have_worked(left, job)
        conditions, readings, aside = outcome.judge(left, left.runs, job)
    except Exception as error:  # whatever is wrong with a result is its own
        told = outcome.reason(error)
        status = outcome.status_of(told, left, job, ended, [meta.get("exit", "")])
        return Outcome(status=status, why=str(told), host=meta)
    return Outcome(readings, conditions, host=meta, aside=aside, origin=proof)


def _that_can_be_kept(outcomes: Sequence[tuple[str, Outcome]]) -> list[tuple[str, Outcome]]:
    """A node whose texts would make the file of all too large to be read has an error instead."""
    asides = {node: one.aside for node, one in outcomes if one.aside}
    large = descriptions.too_large(asides) if asides else set()
    told = "its description has too little in common with those of the other nodes to be kept"
    return [
        (node, Outcome(status="invalid", why=told, host=one.host) if node in large else one)
        for node, one in outcomes
    ]


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
    room = min(MOST_OF_ONE, files.SAMPLES // 2 // max(1, len(outcomes)))
    return [sample for node, left in outcomes for sample in _node_samples(header, node, left, room)]


def _ended(job: Manifest, outcomes: Iterable[Outcome], now: float) -> datetime:
    """When the last node was done, whenever it is collected.

    What a node's clock says counts only where it can be true: between the job's start and now, or
    the time that the job can have taken with a day's wait.
    """
    began = min(job.started, now)
    # A lost session may be collected weeks later, and no node's clock shall make it younger.
    latest = min(now, max(job.over, began + job.limit + manifest.OTHER_HOST))
    ends = [clocks.read(o.host.get("end", "")) for o in outcomes]
    likely = [min(end, now) for end in ends if end and began <= end <= latest + clocks.BOUND]
    return datetime.fromtimestamp(int(max([*likely, began])), UTC)


def _node_samples(header: Header, node: str, left: Outcome, room: int) -> Iterable[Sample]:
    """room: bytes that this result may take in a file that has to be read again."""
    own = {k: v for k, v in left.conditions.items() if header.conditions.get(k) != v}
    takes = len(left.readings) * (LINE + len(json.dumps(own)))
    if takes > room:
        why = f"{len(left.readings)} figures with {len(own)} conditions of their own: too much"
        left = Outcome(status="invalid", why=why, dims=left.dims)
    if left.status != "ok":
        dims = dict(left.dims)
        trial = int(dims.pop("trial", "0"))
        yield Sample(
            header,
            node,
            f"{header.check}.*",
            status=left.status,
            why=harmless(left.why)[:LONGEST_WHY],
            dims=dims,
            trial=trial,
        )
    for reading in left.readings:
        dims = {**reading.dims, **left.dims}  # a script does not say which peer or point it was
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


def _no_result(stage: Stage, job: Manifest, node: str, ended: str, *, others: bool) -> Outcome:
    """Whether it is the node's own fault: Slurm says so, or its sisters could do what it did not.

    A job that somebody has ended (Ctrl-C, scancel, a lost session) holds nothing against a node,
    nor does one in which no node could do anything. others: some could, or there is no other.
    """
    told = _ends(stage).get(node)
    began = any(stage.has(f".{node}.{attempt}") for attempt in ATTEMPTS)
    if own := ending.without_result(told, began, ended, job.check):
        return Outcome(status=own[0], why=own[1])
    if node in job.lost:
        return Outcome(status=job.fate(node), why=job.lost[node])
    if ended.startswith("TIMEOUT"):
        return Outcome(status="timeout", why="no result when the job reached its time limit")
    why = f"left no result (job {ended or 'ended'})"
    if outcome.by_somebody(ended):
        return Outcome(status=samples.INTERRUPTED, why=why)
    if not others:
        return Outcome(status=samples.INTERRUPTED, why=f"{why}, and neither did any other node")
    return Outcome(status="node_lost", why=why)


def _ends(stage: Stage) -> Mapping[str, Cause]:
    """What srun wrote of the ends of tasks into the job's output, by node."""
    path = stage.path / "rfm_job.err"
    try:
        return _ends_in(path, path.lstat().st_mtime_ns, stage.owner)
    except OSError:
        return {}


@functools.lru_cache(maxsize=4)  # read once a job, and not once a node
def _ends_in(path: Path, _changed: int, owner: int) -> Mapping[str, Cause]:
    try:
        text = files.read_text(path, below=path.parent, limit=files.OUTPUT, owners={owner})
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
    """Collect every lost session: how many samples each stage directory gave, or why none.

    One that is broken is set aside: it stops no other, and verdicts name it from then on.
    """
    for stage, job in orphans(stages):
        if isinstance(job, UserError):
            set_aside.note(perflogs, stage, job, manifest.system_of(stage, stages))
            yield stage, job
        elif why := _not_ours(stage, perflogs):
            yield stage, why
        else:
            yield stage, _collect_one(stage, perflogs, job)


def _collect_one(stage: Path, perflogs: Path, job: Manifest) -> int | UserError:
    try:
        count = len(collect(stage, perflogs, ended="lost with its session"))
    except OSError as error:
        return UserError(perflogs, f"samples cannot be written: {error.strerror}")
    except Exception as error:  # whatever is wrong with a stage is its own
        broken = _told(stage, error)
        set_aside.note(perflogs, stage, broken, job.system)
        return broken
    set_aside.clear(perflogs, stage)
    return count


def _not_ours(stage: Path, perflogs: Path) -> UserError | None:
    """Why nobody here may collect it: its owner has to, or nobody trusts what he writes."""
    try:
        owner = files.owner(stage)
    except (OSError, UserError):
        return None  # collecting it says what is wrong
    if os.access(stage, os.W_OK) and files.trusts_below(perflogs, owner):
        return None
    return UserError(stage, f"left to {files.name_of(owner)}, whose lost session it is")


def _told(stage: Path, error: Exception) -> UserError:
    if isinstance(error, UserError):
        return error
    return UserError(stage, f"cannot be collected: {outcome.reason(error)}")


def orphans(stages: Path) -> Iterator[tuple[Path, Manifest | UserError]]:
    """Uncollected stage directories whose session is gone and whose jobs have ended.

    Instead of a manifest that cannot be read, the error. What somebody has discarded is left out.
    """
    left = []
    perflogs = stages.with_name("perflogs")
    discarded = set_aside.discarded(perflogs)
    for stage in manifest.pending(stages):
        if set_aside.key(stage, perflogs) in discarded:
            continue
        try:
            job = manifest.load(stage, stages)
            if not job.watched(stage):
                left.append((stage, job))
        except Exception as error:  # whatever is wrong with a stage is its own
            yield stage, _told(stage, error)
    asked = [number for _, job in left if job.scheduler == "slurm" for number in job.jobs]
    queued = client.queued(asked)
    for stage, job in left:
        if not queued.intersection(job.jobs) and not manifest.still_runs(stage, job):
            yield stage, job
