"""What a job was asked to measure: written beside its raw files before it starts.

With the manifest and the raw files, samples can be collected by anybody at any time: when the
check ends, at the next start after a lost login session, or by hand. As the job can write to its
stage directory, a copy is kept in the session's folder, `<stages>/<session>/.manifests/`: the two
must agree, and the copy is there until the samples are.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pkgutil
import re
import socket
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypedDict

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from pydantic import TypeAdapter, ValidationError

from siteproof import files, nodesets
from siteproof.errors import UserError, harmless
from siteproof.record.point import Point
from siteproof.record.samples import LAST_PLACE

NAME = "siteproof-job.json"
DONE = "siteproof-collected"
KEPT = ".manifests"  # in a session's folder: the copies of what has not been collected
OTHER_HOST = 86400  # seconds until a session on another login node counts as gone
LARGEST = files.OUTPUT  # bytes: a sweep of 100,000 points
DEEPEST = 8  # folders from the session's to a stage directory; ReFrame makes four
MAX_NAMES = 100_000  # in one folder of stage/

SCHEDULERS = ("local", "slurm")
MAX_TURNS = MAX_POINTS = 1_000_000
MAX_JOBS = 10  # of one check; a second one is the most that there is
LAST_JOB = 2**32 - 1
LAST_PROCESS = 2**31 - 1
LAST_MOMENT = 7_258_118_400  # seconds since 1970: the year 2200
LONGEST_JOB = 366 * 86400  # seconds
MAX_TRIALS_OF_A_JOB = 1_000_000
MAX_TEXTS = 500  # conditions, facts, provenance
LONGEST_TEXT = 100_000  # characters: node sets, and the points that were left out
_SYSTEM = r"[A-Za-z_][A-Za-z0-9_-]{0,99}"  # ReFrame's rule for systems, partitions, environments
_FORMS = {
    "session": r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}",
    "system": _SYSTEM,
    "partition": _SYSTEM,
    "environment": _SYSTEM,
    "check": r"[A-Za-z_][A-Za-z0-9_]{0,99}",
    "mode": r"[a-z_]{0,40}",
    "id": r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,149}",
}
_METRIC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")


class OfItsKind(TypedDict, total=False):
    """The fields of a manifest that only some kinds of checks have."""

    conditions: dict[str, str]
    turns: list[tuple[int, str, str]]
    together: bool
    points: dict[int, Point]


@dataclass(frozen=True)
class Origin:
    """What a result of a job must bear, so that it is its node's.

    evidence: `munge`, `user`, or `none: ` and why; empty: of a session older than evidence.
    nonce: in every credential of the job, and of no other job. uid: whose results they are.
    login: address of the host that started the job, as munge knows it; empty where it knows none.
    hosts: by node, the names and addresses by which Slurm knows it.
    """

    evidence: str = ""
    nonce: str = ""
    uid: int = -1
    login: str = ""
    hosts: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Manifest:
    """One check on one partition in one session, and the nodes it is to measure.

    parsers: the parser's module by the program's name; derive: the module that adds readings.
    facts: the role's hardware and expected parameters, for `derive`.
    lost: expected nodes that could not be asked, each with the reason. spared: those of them of
    which Slurm says nothing bad, as they are reserved for others or outside the job.
    place: the session's number in the order of sessions; 0: older than numbers.
    limit: seconds that the job may run. pid, host: the session that watches the job.
    turns: of a job over pairs, (trial, client, server) each; a turn's place is its number.
    points: of a sweep, by number; those that this job was to measure.
    together: whether the turns of a trial ran at the same time.
    origin: what proves that a result is its node's.
    jobs: scheduler's ids, in the order of submission; empty for the local scheduler.
    over: when the scheduler says the last job ended, seconds since 1970; 0 where it is not known.
    """

    session: str
    system: str
    partition: str
    environment: str
    check: str
    mode: str
    expected: str
    metrics: list[str]
    parsers: Mapping[str, str]
    derive: str = ""
    scheduler: str = "local"
    campaign: str = ""
    place: int = 0
    limit: int = 0
    started: float = 0.0
    facts: Mapping[str, object] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    spared: list[str] = field(default_factory=list)
    conditions: dict[str, str] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)
    turns: list[tuple[int, str, str]] = field(default_factory=list)
    together: bool = False
    points: dict[int, Point] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    jobs: list[str] = field(default_factory=list)
    over: float = 0.0
    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)

    @property
    def id(self) -> str:
        """The scheduler's id of the first job; where none could be started, a name as unique."""
        if self.jobs:
            return self.jobs[0]
        over = [self.conditions[key] for key in ("file_system", "link") if key in self.conditions]
        first = NodeSet(self.expected, resolver=RESOLVER_NOGROUP)[0]
        if self.points:  # a sweep has several jobs over the same nodes
            first = f"{first}-{min(self.points)}"
        return "-".join(["none", self.environment, *over, first])

    def fate(self, node: str) -> str:
        """The status of a node that could not be asked."""
        return "interrupted" if node in self.spared else "node_lost"

    def save(self, stage: Path, stages: Path | None = None) -> None:
        """Write the manifest into the job's stage directory, whole or not at all.

        stages: the folder of all stage directories, where the copy is kept. Raises OSError and
        UserError.
        """
        text = json.dumps(asdict(self), indent=1)
        if stages and (place := _place_of_copy(stage, stages)):
            _keep(stage, place, text)  # first: then it knows this text, and the one before it
        files.write(stage / NAME, text.encode(), below=stage)

    def watched(self, stage: Path) -> bool:
        """Whether the session that started the job still lives, as far as this host can tell.

        A later process may have its number: it counts if it is of root, of who collects, or of
        the stage directory's owner. Anybody can call a process so.
        """
        if self.host != socket.gethostname():
            now = time.time()
            return now < min(self.started, now) + self.limit + OTHER_HOST and (
                self.started < now + OTHER_HOST
            )
        process = Path(f"/proc/{self.pid}")
        try:
            whose = process.stat().st_uid
            return whose in _owners(stage) and b"reframe" in (process / "cmdline").read_bytes()
        except OSError:
            return False


@dataclass(frozen=True)
class _Copy:
    """What is kept of a manifest. sha256, before: of the last text that was saved, and the last
    but one, as a session may be killed between copy and manifest; empty where there was none."""

    stage: str
    sha256: str
    before: str
    text: str


def load(stage: Path, stages: Path | None = None) -> Manifest:
    """The manifest of a stage directory. Raises UserError.

    stages: where a copy may be kept; then it is what counts, and the stage's own must be its like.
    """
    path = stage / NAME
    place = _place_of_copy(stage, stages) if stages else None
    kept = _read_copy(place) if place else None
    try:
        owner = files.owner(stage)
        data = files.read(path, below=stage, limit=LARGEST, owners={owner})
    except FileNotFoundError:
        if not kept:
            raise UserError(path, "no manifest: there is no such file") from None
        data = b""
    if kept:
        if _digest(data) not in (kept.sha256, kept.before):
            told = "is gone" if not data else "is not the one that was kept when the job began"
            raise UserError(path, f"no manifest to trust: it {told}")
        data = kept.text.encode()
    job = parse(path, data)
    if place and stages and job.session != place.parent.parent.name:
        raise UserError(path, f"no manifest: session '{job.session}' has a folder of its own")
    return job


def system_of(stage: Path, stages: Path) -> str:
    """The system of a stage directory, as the copy of its manifest says; empty: nobody knows."""
    try:
        place = _place_of_copy(stage, stages)
        kept = _read_copy(place) if place else None
        return parse(stage, kept.text.encode()).system if kept else ""
    except UserError:
        return ""


def taken(stage: Path, stages: Path) -> None:
    """Mark a stage directory as collected. Raises OSError and UserError."""
    if place := _place_of_copy(stage, stages):
        with suppress(FileNotFoundError):
            place.unlink()
        with suppress(OSError):
            place.parent.rmdir()  # where it was the last
    if not os.path.lexists(stage / DONE):
        files.write(stage / DONE, b"", below=stage)


def parse(where: object, data: bytes) -> Manifest:
    """A manifest whose every name, number and size is one that a job of ours can have.

    Raises UserError.
    """
    try:
        job = _reader().validate_python(files.loads(where, data))
        _check(job)
    except ValidationError as error:
        first = error.errors()[0]
        told = f"{'.'.join(map(str, first['loc']))[:100]}: {first['msg']}"
        raise UserError(where, f"no manifest: {told}") from None
    except UserError as error:
        raise UserError(where, f"no manifest: {error.what}", error.allowed, error.hint) from None
    except (ValueError, RecursionError) as error:
        raise UserError(where, f"no manifest: {str(error)[:200]}") from None
    return job


@functools.cache
def modules(room: str) -> frozenset[str]:
    """The modules of siteproof.parsers or siteproof.derive: nothing else is imported by name."""
    folder = Path(__file__).resolve().parents[1] / room
    return frozenset(found.name for found in pkgutil.iter_modules([str(folder)]))


@functools.cache
def _reader() -> TypeAdapter[Manifest]:
    """Made once a process: that takes longer than to read a manifest."""
    return TypeAdapter(Manifest)


def _check(job: Manifest) -> None:
    """Raises ValueError for a name, number or size that no job of ours has."""
    nodes = nodesets.parse(job.expected)
    if not nodes:
        raise ValueError("expected: no node")
    _must_be_nodes("expected", [*nodes, *job.lost, *job.spared])
    for key, form in _FORMS.items():
        _must(re.fullmatch(form, getattr(job, key)), key, getattr(job, key))
    for metric in job.metrics:
        _must(_METRIC.fullmatch(metric), "metrics", metric)
    for parser in job.parsers.values():
        _must(parser in modules("parsers"), "parsers", parser)
    _must(not job.derive or job.derive in modules("derive"), "derive", job.derive)
    _must(job.scheduler in SCHEDULERS, "scheduler", job.scheduler)
    _must(len(job.campaign) <= 200, "campaign", job.campaign)
    _must(len(job.jobs) <= MAX_JOBS, "jobs", f"{len(job.jobs)} of them")
    for number in job.jobs:
        _must(re.fullmatch(r"[0-9]{1,10}", number) and int(number) < LAST_JOB, "jobs", number)
    _must_lie("pid", job.pid, 1, LAST_PROCESS)
    _must_lie("limit", job.limit, 0, LONGEST_JOB)
    _must_lie("started", job.started, 0, LAST_MOMENT)
    _must_lie("place", job.place, 0, LAST_PLACE - 1)
    _must_lie("over", job.over, 0, LAST_MOMENT)
    _must(len(job.host) <= 255, "host", job.host)
    for key in ("metrics", "parsers", "facts", "conditions", "provenance"):
        _must_be_short(key, getattr(job, key))
    _check_work(job)


def _check_work(job: Manifest) -> None:
    _must(len(job.turns) <= MAX_TURNS, "turns", f"{len(job.turns)} of them")
    for trial, *ends in job.turns:
        _must_lie("turns", trial, 0, MAX_TRIALS_OF_A_JOB)
        _must_be_nodes("turns", ends)
    _must(len(job.points) <= MAX_POINTS, "points", f"{len(job.points)} of them")
    for number, point in job.points.items():
        _must_lie("points", number, 0, MAX_POINTS)
        _must_lie("points", point.trial, 0, MAX_TRIALS_OF_A_JOB)
        _must_be_short("points", point.values)
        for key in ("tasks", "tasks_per_node"):
            text = point.values.get(key, "")
            _must(re.fullmatch(r"[1-9][0-9]{0,8}", text), f"points.{key}", text)


def _must_be_short(key: str, held: Mapping[str, object] | Sequence[str]) -> None:
    _must(len(held) <= MAX_TEXTS, key, f"{len(held)} of them")
    for name in held:
        value = held[name] if isinstance(held, Mapping) else ""
        _must(len(name) <= 200 and len(str(value)) <= LONGEST_TEXT, key, name)


def _must_be_nodes(key: str, names: Sequence[str]) -> None:
    for name in names:
        _must(_NODE.fullmatch(name), key, name)


def _must_lie(key: str, value: float, least: float, most: float) -> None:
    _must(least <= value <= most, key, str(value))


def _must(holds: object, key: str, value: str) -> None:
    if not holds:
        raise ValueError(f"{key}: '{harmless(value[:60])}' is not one that a job can have")


def _place_of_copy(stage: Path, stages: Path) -> Path | None:
    """Where the copy of a stage directory's manifest lies; None for one that lies elsewhere."""
    try:
        inner = stage.relative_to(stages)
    except ValueError:
        return None
    if len(inner.parts) < 2:
        return None
    name = hashlib.sha256(str(inner).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return stages / inner.parts[0] / KEPT / f"{name}.json"


def _keep(stage: Path, place: Path, text: str) -> None:
    session = place.parent.parent
    if not place.parent.is_dir():
        shared = stat.S_IMODE(session.stat().st_mode) & stat.S_IWGRP
        place.parent.mkdir(mode=0o770 if shared else 0o700, exist_ok=True)
    before = _read_copy(place)
    inner = str(PurePosixPath(stage.relative_to(session)))
    new = _Copy(inner, _digest(text.encode()), before.sha256 if before else "", text)
    files.write(place, json.dumps(asdict(new)).encode(), below=session)


def _read_copy(place: Path) -> _Copy | None:
    """The copy, if there is one. Raises UserError."""
    session = place.parent.parent
    try:
        owner = files.owner(session)
        held = files.read_json(place, below=session, limit=2 * LARGEST, owners={owner})
    except FileNotFoundError:
        return None
    names = _Copy.__dataclass_fields__
    if not isinstance(held, dict) or held.keys() != names.keys():
        raise UserError(place, "no copy of a manifest")
    if not all(isinstance(value, str) for value in held.values()):
        raise UserError(place, "no copy of a manifest")
    return _Copy(**held)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""


def _owners(stage: Path) -> set[int]:
    """Whose session may have made a stage directory."""
    found = {0, os.geteuid()}
    with suppress(OSError):  # it may be gone
        found.add(stage.lstat().st_uid)
    return found


def still_runs(stage: Path, job: Manifest) -> int:
    """The process of a job without a scheduler that outlives its session; 0 if there is none.

    It is found by its script: a session may be killed before it has noted the process. Only a
    process of root or of the stage's owner counts: anybody can call a process so.
    """
    if job.scheduler != "local" or job.host != socket.gethostname():
        return 0
    script = str(stage / "rfm_job.sh").encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            if words[1:2] == [script] and words[0].endswith(b"sh"):
                whose = path.parent.stat().st_uid
                if whose in (0, stage.lstat().st_uid):
                    return int(path.parent.name)
        except OSError:
            continue  # it has ended meanwhile
    return 0


def pending(stages: Path) -> Iterator[Path]:
    """Stage directories below `stages` whose samples nobody has collected yet.

    No link is followed, and no folder of a result is looked into. One of which a copy is kept is
    pending whatever it says of itself.
    """
    for name in _folders(stages):
        session = stages / name
        found = {stage for stage in _below(session) if not os.path.lexists(stage / DONE)}
        yield from sorted(found | set(_kept(session)))


def _below(folder: Path, depth: int = 1) -> Iterator[Path]:
    """The folders with a manifest, whatever it is."""
    if os.path.lexists(folder / NAME):
        yield folder
    elif depth < DEEPEST:
        for name in _folders(folder):
            yield from _below(folder / name, depth + 1)


def _folders(folder: Path) -> list[str]:
    """The names of the folders in a folder; links are none."""
    found: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                found.append(entry.name)
            if len(found) > MAX_NAMES:
                break
    return sorted(found)


def _kept(session: Path) -> Iterator[Path]:
    """The stage directories of a session of which there is a copy; some may be gone."""
    try:
        names = files.names(session / KEPT, below=session, most=MAX_NAMES)
    except (FileNotFoundError, UserError):
        return
    for name in names:
        with suppress(UserError):
            kept = _read_copy(session / KEPT / name) if name.endswith(".json") else None
            inner = PurePosixPath(kept.stage) if kept else PurePosixPath("..")
            if not inner.is_absolute() and ".." not in inner.parts:
                yield session / inner
