"""The manifest: what a job must measure, written to its stage directory before it starts.

With the manifest and the raw files, anybody can collect the samples at any time: when the check
ends, at the next start after a lost login session, or by hand. As the job can write to its stage
directory, a copy is kept in the session's folder, `<stages>/<session>/.manifests/`, until the
samples are collected. The two must agree.

One point of a sweep, as its job's manifest keeps it.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, TypedDict, TypeVar

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from siteproof import files, nodesets
from siteproof.errors import UserError
from siteproof.record.samples import LAST_PLACE

NAME = "siteproof-job.json"
DONE = "siteproof-collected"
KEPT = ".manifests"  # in a session's folder: copies of manifests that are not collected yet
OTHER_HOST = 86400  # seconds until a session on another login node counts as ended
LARGEST = files.OUTPUT  # bytes: a sweep of 100,000 points
DEEPEST = 8  # folders from the session's to a stage directory; ReFrame makes four
MAX_NAMES = 100_000  # in one folder of stage/

MAX_TURNS = MAX_POINTS = 1_000_000
MAX_JOBS = 10  # of one check, which submits at most two
LAST_JOB = 2**32 - 1
LAST_PROCESS = 2**31 - 1
LAST_MOMENT = 7_258_118_400  # seconds since 1970: the year 2200
LONGEST_JOB = 366 * 86400  # seconds
MAX_TRIALS_OF_A_JOB = 1_000_000
MAX_TEXTS = 500  # conditions, facts, provenance
LONGEST_CAMPAIGN = 200  # characters
LONGEST_TEXT = 100_000  # characters: node sets, and the points that were left out
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,149}")
_TASKS = re.compile(r"[1-9][0-9]{0,8}")
T = TypeVar("T")


def _only(possible: Callable[[T], object]) -> AfterValidator:
    """What a job cannot have is refused when a manifest is read."""

    def check(value: T) -> T:
        if not possible(value):
            raise ValueError
        return value

    return AfterValidator(check)


def _are_nodes(expected: str) -> bool:
    nodes = nodesets.parse(expected)
    return bool(nodes) and all(map(_NODE.fullmatch, nodes))


def _is_derivation(name: str) -> bool:
    module, _, function = name.partition(".")
    in_module = module in modules("collect/derive") and re.fullmatch("[a-z][a-z0-9_]*", function)
    return not name or bool(in_module)


def _are_short(texts: Mapping[str, object]) -> bool:
    return len(texts) <= MAX_TEXTS and all(
        len(name) <= 200 and len(str(value)) <= LONGEST_TEXT for name, value in texts.items()
    )


def _are_points(points: Mapping[int, Point]) -> bool:
    return len(points) <= MAX_POINTS and all(
        0 <= number <= MAX_POINTS
        and 0 <= point.trial <= MAX_TRIALS_OF_A_JOB
        and _are_short(point.values)
        and all(_TASKS.fullmatch(point.values.get(k, "")) for k in ("tasks", "tasks_per_node"))
        for number, point in points.items()
    )


_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_Node = Annotated[str, _only(_NODE.fullmatch)]
# ReFrame's rule for systems, partitions and environments.
_Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,99}$")]
_Metric = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
_Parser = Annotated[str, _only(lambda name: name in modules("parsers"))]
_Job = Annotated[str, Field(pattern=r"^[0-9]{1,10}$"), _only(lambda job: int(job) < LAST_JOB)]
_Trial = Annotated[int, Field(ge=0, le=MAX_TRIALS_OF_A_JOB)]
_Moment = Annotated[float, Field(ge=0, le=LAST_MOMENT)]
_SHORT = _only(_are_short)


class OfItsKind(TypedDict, total=False):
    """The fields of a manifest that only some kinds of checks have."""

    conditions: dict[str, str]
    turns: list[tuple[int, str, str]]
    together: bool
    points: dict[int, Point]
    service: str


@dataclass(frozen=True)
class Origin:
    """The evidence that a result is of its node.

    evidence: `munge`, `user`, or `none: ` and the reason; empty in a dry run.
    nonce: in every credential of the job, and of no other job. uid: the user of the job.
    login: munge's address of the host that started the job; empty if it knows none.
    hosts: by node, its names and addresses in Slurm.
    """

    evidence: str = ""
    nonce: str = ""
    uid: int = -1
    login: str = ""
    hosts: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Manifest:
    """One check on one partition in one session, and the nodes it is to measure.

    parsers: the parser's module by the program's name; derive: module.function that adds readings.
    facts: the role's hardware and expected parameters, for `derive`.
    point: by metric, what a value must have beyond its node: the point of the catalogue.
    bounds: by metric, the lowest and the highest value that miss no criterion, in the base unit.
    lost: expected nodes that are not in the job, each with the reason. spared: those of them that
    Slurm reports as healthy, but that are reserved for others or outside the job.
    place: the session's number in the order of sessions; 0: it has none.
    limit: seconds that the job may run. pid, host: the session that watches the job.
    turns: of a job over pairs, each (trial, client, server); its index is its number.
    points: of a sweep, by number; those that this job has to measure.
    together: whether the turns of a trial ran at the same time.
    service: the service that this job tests.
    origin: the evidence that a result is of its node.
    jobs: scheduler's ids, in the order of submission; empty for the local scheduler.
    over: when the last job ended, as the scheduler reports it, in seconds since 1970; 0: unknown.
    """

    session: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]
    system: _Name
    partition: _Name
    environment: _Name
    check: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
    mode: Annotated[str, Field(pattern=r"^[a-z_]{0,40}$")]
    expected: Annotated[str, _only(_are_nodes)]
    metrics: Annotated[list[_Metric], Field(max_length=MAX_TEXTS)]
    parsers: Annotated[Mapping[str, _Parser], _SHORT]
    derive: Annotated[str, _only(_is_derivation)] = ""
    scheduler: Annotated[str, Field(pattern=r"^(local|slurm)$")] = "local"
    campaign: Annotated[str, Field(max_length=LONGEST_CAMPAIGN)] = ""
    place: Annotated[int, Field(ge=0, lt=LAST_PLACE)] = 0
    limit: Annotated[int, Field(ge=0, le=LONGEST_JOB)] = 0
    started: _Moment = 0.0
    facts: Annotated[Mapping[str, object], _SHORT] = field(default_factory=dict)
    point: Annotated[dict[str, list[str]], _SHORT] = field(default_factory=dict)
    bounds: Annotated[dict[str, tuple[float | None, float | None]], _SHORT] = field(
        default_factory=dict
    )
    lost: dict[_Node, str] = field(default_factory=dict)
    spared: list[_Node] = field(default_factory=list)
    conditions: Annotated[dict[str, str], _SHORT] = field(default_factory=dict)
    provenance: Annotated[dict[str, str], _SHORT] = field(default_factory=dict)
    turns: Annotated[list[tuple[_Trial, _Node, _Node]], Field(max_length=MAX_TURNS)] = field(
        default_factory=list
    )
    together: bool = False
    points: Annotated[dict[int, Point], _only(_are_points)] = field(default_factory=dict)
    service: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_-]{0,39})?$")] = ""
    origin: Origin = field(default_factory=Origin)
    jobs: Annotated[list[_Job], Field(max_length=MAX_JOBS)] = field(default_factory=list)
    over: _Moment = 0.0
    pid: Annotated[int, Field(ge=1, le=LAST_PROCESS)] = field(default_factory=os.getpid)
    host: Annotated[str, Field(max_length=255)] = field(default_factory=socket.gethostname)

    @property
    def id(self) -> str:
        """The scheduler's id of the first job; if none was started, a name that is unique, too."""
        if self.jobs:
            return self.jobs[0]
        keys = ("file_system", "link", "service")
        over = [self.conditions[key] for key in keys if key in self.conditions]
        first = NodeSet(self.expected, resolver=RESOLVER_NOGROUP)[0]
        if self.points:  # a sweep has several jobs over the same nodes
            first = f"{first}-{min(self.points)}"
        return "-".join(["none", self.environment, *over, first])

    def fate(self, node: str) -> str:
        """The status of an expected node that is not in the job."""
        return "interrupted" if node in self.spared else "node_lost"

    def save(self, stage: Path, stages: Path | None = None) -> None:
        """Write the manifest into the job's stage directory, whole or not at all.

        stages: the folder of all stage directories, where the copy is kept. Raises OSError and
        UserError.
        """
        text = json.dumps(asdict(self), indent=1)
        if stages and (place := _place_of_copy(stage, stages)):
            _keep(stage, place, text)  # first: it knows this text and the one before
        files.write(stage / NAME, text.encode(), below=stage)

    def watched(self, stage: Path) -> bool:
        """Whether the session that started the job still runs, as far as this host can see.

        A later process may have its number. So it must be named like ReFrame, and belong to root,
        to the user who collects, or to the stage directory's owner, as anybody can choose a name.
        """
        if self.host != socket.gethostname():
            now = time.time()
            return now < min(self.started, now) + self.limit + OTHER_HOST and (
                self.started < now + OTHER_HOST
            )
        process = Path(f"/proc/{self.pid}")
        try:
            owner = process.stat().st_uid
            return owner in _owners(stage) and b"reframe" in (process / "cmdline").read_bytes()
        except OSError:
            return False


@dataclass(frozen=True)
class _Copy:
    """A copy of a manifest. text: the last that was saved. before: SHA-256 of the one before it, as
    a session may be killed between copy and manifest; empty if there was none."""

    stage: str
    before: str
    text: str


def load(stage: Path, stages: Path | None = None) -> Manifest:
    """The manifest of a stage directory. Raises UserError.

    stages: the folder where a copy may be kept. The copy is then used, and the manifest must agree.
    """
    path = stage / NAME
    place = _place_of_copy(stage, stages) if stages else None
    kept = _read_copy(place) if place else None
    try:
        owner = files.owner(stage)
        data = files.read(path, below=stage, limit=LARGEST, owners={owner})
    except FileNotFoundError:
        if not kept:
            raise UserError(path, "no manifest: the file does not exist") from None
        data = b""
    if kept:
        if _digest(data) not in (_digest(kept.text.encode()), kept.before):
            what = "differs from its copy of the job's start" if data else "was removed"
            raise UserError(path, f"the manifest {what}")
        data = kept.text.encode()
    job = parse(path, data)
    if place and stages and job.session != place.parent.parent.name:
        raise UserError(path, f"not a manifest of this session, but of '{job.session}'")
    return job


def system_of(stage: Path, stages: Path) -> str:
    """The system of a stage directory, by the copy of its manifest; empty: unknown."""
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
            place.parent.rmdir()  # if it was the last
    if not os.path.lexists(stage / DONE):
        files.write(stage / DONE, b"", below=stage)


def parse(where: object, data: bytes) -> Manifest:
    """A manifest in which every name, number and size is possible. Raises UserError."""
    try:
        job = _reader().validate_python(files.loads(where, data))
        if not _ID.fullmatch(job.id):
            raise ValueError(f"'{job.id[:60]}' is not possible as the name of a job")
    except ValidationError as error:
        first = error.errors()[0]
        key, wrong = first["loc"][:1], str(first["input"])[:60]
        missing = first["type"] == "missing"
        what = first["msg"] if missing else f"'{wrong}' is not possible in a job"
        what = ": ".join([*map(str, key), what])
        raise UserError(where, f"not a valid manifest: {what}") from None
    except UserError as error:
        what = f"not a valid manifest: {error.what}"
        raise UserError(where, what, error.allowed, error.hint) from None
    except (ValueError, RecursionError) as error:
        raise UserError(where, f"not a valid manifest: {str(error)[:200]}") from None
    return job


@functools.cache
def modules(room: str) -> frozenset[str]:
    """The modules of `parsers` or `collect/derive`; only these are imported by name."""
    folder = Path(__file__).resolve().parents[1] / room
    return frozenset(found.name for found in pkgutil.iter_modules([str(folder)]))


@functools.cache
def _reader() -> TypeAdapter[Manifest]:
    """Made once, as that takes longer than reading a manifest."""
    return TypeAdapter(Manifest)


def _place_of_copy(stage: Path, stages: Path) -> Path | None:
    """The path of the copy of a stage directory's manifest; None for one outside of `stages`."""
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
    new = _Copy(inner, _digest(before.text.encode()) if before else "", text)
    files.write(place, json.dumps(asdict(new)).encode(), below=session)


def _read_copy(place: Path) -> _Copy | None:
    """The copy, if there is one. Raises UserError."""
    session = place.parent.parent
    try:
        owner = files.owner(session)
        record = files.read_json(place, below=session, limit=2 * LARGEST, owners={owner})
    except FileNotFoundError:
        return None
    match record:
        case {"stage": str(inner), "before": str(before), "text": str(text)}:
            return _Copy(inner, before, text)
    raise UserError(place, "not a copy of a manifest")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""


def _owners(stage: Path) -> set[int]:
    """The users whose session may have made a stage directory."""
    found = {0, os.geteuid()}
    with suppress(OSError):  # it may have been removed
        found.add(stage.lstat().st_uid)
    return found


def still_runs(stage: Path, job: Manifest) -> int:
    """The process of a job without a scheduler that still runs after its session; 0 if none.

    It is found by its script, as a session may be killed before it has noted the process. Only a
    process of root or of the stage's owner counts, as anybody can choose a name.
    """
    if job.scheduler != "local" or job.host != socket.gethostname():
        return 0
    script = os.fsencode(stage / "rfm_job.sh")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[1:2] == [script] and words[0].endswith(b"sh"):
                owner = process.stat().st_uid
                if owner in (0, stage.lstat().st_uid):
                    return int(process.name)
        except OSError:
            continue  # it has ended
    return 0


def pending(stages: Path) -> Iterator[Path]:
    """Stage directories below `stages` whose samples are not collected yet.

    No link is followed, and no folder of a result is searched. One with a copy of its manifest is
    pending, even if it is marked as collected.
    """
    for name in _folders(stages):
        session = stages / name
        found = {stage for stage in _below(session) if not os.path.lexists(stage / DONE)}
        yield from sorted(found | set(_kept(session)))


def _below(folder: Path, depth: int = 1) -> Iterator[Path]:
    """The folders with a manifest, even a broken one."""
    if os.path.lexists(folder / NAME):
        yield folder
    elif depth < DEEPEST:
        for name in _folders(folder):
            yield from _below(folder / name, depth + 1)


def _folders(folder: Path) -> list[str]:
    """The names of the folders in a folder, without links."""
    found: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                found.append(entry.name)
            if len(found) > MAX_NAMES:
                break
    return sorted(found)


def _kept(session: Path) -> Iterator[Path]:
    """The stage directories of a session with a copy; some may have been removed."""
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


KNOB = "knob."  # what the name of a tuning axis begins with
OWN = "own"  # a knob that is left as the machine has it
Values = dict[str, str]


@dataclass(frozen=True)
class Point:
    """One measurement of a sweep.

    values: of all axes and of what is fixed; sizes in bytes. dims: the names of those that the
    sweep varies. trial: its repetition from 1 on; 0 where there is one only.
    """

    values: Mapping[str, str]
    dims: Sequence[str]
    trial: int = 0

    @property
    def tasks(self) -> int:
        """Ranks in all."""
        return int(self.values["tasks"])

    @property
    def tasks_per_node(self) -> int:
        """Ranks on each node, at most."""
        return int(self.values["tasks_per_node"])

    @property
    def nodes(self) -> int:
        """Nodes that it needs."""
        return -(-self.tasks // self.tasks_per_node)

    @property
    def own_dims(self) -> Values:
        """The values of its axes: a sample's dimensions."""
        return {name: self.values[name] for name in self.dims if name in self.values}

    @property
    def fixed(self) -> Values:
        """The values that all points share: a sample's conditions."""
        return {name: value for name, value in self.values.items() if name not in self.dims}

    @property
    def knobs(self) -> Values:
        """The settings of the nodes that it needs, by name with `knob.`."""
        return {
            name: value
            for name, value in self.values.items()
            if name.startswith(KNOB) and value != OWN
        }

    def line(self, number: int, limit: int, combination: int) -> str:
        """The point as sweep.sh reads it. limit: seconds. combination: of its knobs; 0: none."""
        numbers = (limit, self.nodes, self.tasks, self.tasks_per_node, self.trial, combination)
        variables = [
            f"{name.upper()}={value}"
            for name, value in self.values.items()
            if name not in ("tasks", "tasks_per_node") and not name.startswith(KNOB)
        ]
        return " ".join([folder_of(number), *map(str, numbers), *variables])

    def __str__(self) -> str:
        dims = " ".join(f"{name}={value}" for name, value in self.own_dims.items())
        return f"{dims} trial={self.trial}" if self.trial else dims


def folder_of(number: int) -> str:
    """The name of a point's result folder."""
    return f"{number:05d}"
