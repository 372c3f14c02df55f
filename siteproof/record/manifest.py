"""What a job was asked to measure: written beside its raw files before it starts.

With the manifest and the raw files, samples can be collected by anybody at any time: when the
check ends, at the next start after a lost login session, or by hand.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypedDict

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from pydantic import TypeAdapter, ValidationError

from siteproof.errors import UserError
from siteproof.record.point import Point

NAME = "siteproof-job.json"
DONE = "siteproof-collected"
OTHER_HOST = 86400  # seconds until a session on another login node counts as gone


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

    def save(self, stage: Path) -> None:
        """Write the manifest into the job's stage directory, whole or not at all."""
        part = stage / f".{NAME}.{os.getpid()}"
        part.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        part.replace(stage / NAME)

    def watched(self) -> bool:
        """Whether the session that started the job still lives, as far as this host can tell."""
        if self.host != socket.gethostname():
            return time.time() < self.started + self.limit + OTHER_HOST
        try:
            command = Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return False
        return b"reframe" in command


@functools.cache
def _reader() -> TypeAdapter[Manifest]:
    """Made once a process: that takes longer than to read a manifest."""
    return TypeAdapter(Manifest)


def load(stage: Path) -> Manifest:
    """The manifest in a stage directory. Raises UserError."""
    path = stage / NAME
    try:
        job = _reader().validate_json(path.read_bytes())
        NodeSet(job.expected, resolver=RESOLVER_NOGROUP)
        return job
    except ValidationError as error:
        first = error.errors()[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise UserError(path, f"no manifest: {what}") from None
    except (OSError, NodeSetException) as error:
        raise UserError(path, f"no manifest: {error}") from None


def still_runs(stage: Path, job: Manifest) -> int:
    """The process of a job without a scheduler that outlives its session; 0 if there is none.

    It is found by its script: a session may be killed before it has noted the process.
    """
    if job.scheduler != "local" or job.host != socket.gethostname():
        return 0
    script = str(stage / "rfm_job.sh").encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended meanwhile
        if words[1:2] == [script] and words[0].endswith(b"sh"):
            return int(path.parent.name)
    return 0


def pending(stages: Path) -> Iterator[Path]:
    """Stage directories below `stages` whose samples nobody has collected yet."""
    for path in sorted(stages.glob(f"*/**/{NAME}")):
        if not (path.parent / DONE).exists():
            yield path.parent
