"""Files there and back: the steps that all kinds of transfer share, and what a client of one is.

Each file is random data, so that no compression on the way makes a rate better. Its SHA-256 is
compared with what the far end computes itself; where it computes none ("read back"), with that of
the copy that comes back, and no rate counts before.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from siteproof import units
from siteproof.services.steps import PREFIX, Job, Kind, StepFailed, Steps, unexplained

MEBI = 1 << 20
LARGE = "large"  # the name of the large file at the far end
ANSWER = 4 * MEBI  # bytes of a tool's output that are kept; the names of 10,000 files are 1 MiB
_OURS = re.compile(rf"{PREFIX}[A-Za-z0-9_.-]{{1,200}}")


class Client(Protocol):
    """A service that keeps files. All methods raise StepFailed.

    protocol, tool: conditions of what it measures.
    """

    protocol: str
    tool: str

    def login(self) -> None:
        """Connect, show who we are, and look at the folder."""

    def free(self) -> int | None:
        """Bytes that may be written; None: the service does not report it."""
        return None

    def make(self) -> None:
        """Make the folder, named job.mark, of what is put; again is no error."""

    def put(self, files: Sequence[Path]) -> None:
        """Write files of this machine into that folder, under their names."""

    def get(self, names: Sequence[str], into: Path) -> None:
        """Read files of that folder into a folder of this machine."""

    def differing(self, files: Sequence[File]) -> list[str] | None:
        """The names of those that the far end has with another checksum; None: it has none."""
        return None

    def names(self) -> list[str]:
        """What is ours in the service's folder, also before a login."""

    def remove(self, name: str) -> None:
        """Remove one of these, also before a login; what is gone is no error."""

    def close(self) -> None:
        """End the connection, if there is one."""


@dataclass(frozen=True)
class File:
    """A file of random data, as it was made here."""

    path: Path
    size: int
    sha256: str


@dataclass(frozen=True)
class Ended:
    """How a tool has ended, and at most ANSWER bytes of what it has printed."""

    code: int
    out: str
    errors: str


def transfer(job: Job, steps: Steps, client: Client) -> None:
    """All steps of a transfer: login, free room, a large file, and many small ones."""
    service = job.service
    size, small = int(service.size.to("B")), int(service.file_size.to("B"))
    steps.condition(
        protocol=client.protocol, tool=client.tool, size=f"{size}", file_size=f"{small}"
    )
    with steps.step("login"):
        client.login()
    with steps.step("quota"):
        _fits("the service", client.free(), service.bytes_written)
        _fits(f"{job.scratch}", shutil.disk_usage(job.scratch).free, 2 * service.bytes_written)
    _there_and_back(job, steps, client, {LARGE: size}, "")
    if service.files:
        sizes = {f"small-{number:05}": small for number in range(1, service.files + 1)}
        _there_and_back(job, steps, client, sizes, "_many")


def kind(
    client: Callable[[Job], Client], explain: Callable[[Exception], Exception] = unexplained
) -> Kind:
    """A kind whose services keep files. client: makes the one of a job."""

    def test(job: Job, steps: Steps) -> None:
        with closing(client(job)) as far:
            transfer(job, steps, far)

    def found(job: Job) -> list[str]:
        with closing(client(job)) as far:
            return far.names()

    def remove(job: Job, name: str) -> None:
        with closing(client(job)) as far:
            far.remove(name)

    return Kind(test, found, remove, explain)


def _fits(where: str, free: int | None, needed: int) -> None:
    if free is not None and free < needed:
        why = f"{where} has {units.size(free)} free, {units.size(needed)} are needed"
        raise StepFailed(why)


def _there_and_back(
    job: Job, steps: Steps, client: Client, sizes: Mapping[str, int], suffix: str
) -> None:
    """Put files and get them back. Their rate counts when their checksums have agreed."""
    files = [random_file(job.scratch / name, size) for name, size in sizes.items()]
    back = job.scratch / "back"
    back.mkdir(exist_ok=True)
    with steps.step(f"put{suffix}", direction="out"):
        client.make()
        begun = time.monotonic()
        client.put([file.path for file in files])
        put = time.monotonic() - begun
        differing = client.differing(files)
        _agree(differing, "the far end has another checksum")
    steps.condition(checksum="read back" if differing is None else "far end")
    for file in files:
        file.path.unlink()
    if differing is not None:
        _rate(steps, files, put, job.here, job.there)
    with steps.step(f"get{suffix}", direction="in"):
        begun = time.monotonic()
        with files_of_at_most(largest(job)):
            client.get(list(sizes), back)
        got = time.monotonic() - begun
        changed = [f.path.name for f in files if checksum(back / f.path.name) != f.sha256]
        _agree(changed, "what came back has another checksum")
    if differing is None:
        _rate(steps, files, put, job.here, job.there)
    _rate(steps, files, got, job.there, job.here)
    shutil.rmtree(back)


def random_file(path: Path, size: int) -> File:
    """Make a file of random data: MiB by MiB, with its SHA-256."""
    digest = hashlib.sha256()
    with path.open("wb") as out:
        for start in range(0, size, MEBI):
            data = os.urandom(min(MEBI, size - start))
            digest.update(data)
            out.write(data)
    return File(path, size, digest.hexdigest())


def checksum(path: Path, kind: str = "sha256") -> str | None:
    """The checksum of a file; None: there is no such file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, kind).hexdigest()
    except FileNotFoundError:
        return None


def _agree(differing: Sequence[str] | None, what: str) -> None:
    if differing:
        raise StepFailed(f"{what}: {units.count(len(differing), 'file')}", "checksum")


def _rate(steps: Steps, files: Sequence[File], seconds: float, sender: str, receiver: str) -> None:
    total = sum(file.size for file in files)
    rate = total / max(seconds, 1e-6) / 10**6
    dims = {"sender": sender, "receiver": receiver, "files": f"{len(files)}"}
    steps.value("rate", Decimal(f"{rate:.6f}"), "MB/s", **dims)


def ours(names: Sequence[str]) -> list[str]:
    """Those that begin as ours do, and that are safe in a command and a path."""
    return sorted(name for name in names if _OURS.fullmatch(name))


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file that this process or one that it starts meanwhile writes becomes larger."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    soft = size if old[1] == resource.RLIM_INFINITY else min(size, old[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def largest(job: Job) -> int:
    """Bytes of the largest file that may come back, and some."""
    return int(max(job.service.size.to("B"), job.service.file_size.to("B"))) + ANSWER


def run(
    job: Job,
    argv: Sequence[str],
    *,
    text: str = "",
    env: Mapping[str, str] | None = None,
    most: int = ANSWER,
) -> Ended:
    """Run a tool with a text as its input. most: bytes of each file that it may write.

    Raises StepFailed if it is missing or takes too long.
    """
    out, errors = job.scratch / "out", job.scratch / "errors"
    with out.open("wb") as stdout, errors.open("wb") as stderr, files_of_at_most(most):
        try:
            ended = subprocess.run(
                argv,
                input=text.encode(),
                stdout=stdout,
                stderr=stderr,
                env=env,
                timeout=job.seconds,
                check=False,
            )
        except FileNotFoundError:
            raise StepFailed(f"'{argv[0]}' is not installed", "tool_missing") from None
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
    return Ended(ended.returncode, beginning(out), beginning(errors))


def version(argv: Sequence[str]) -> str:
    """What a tool prints about its version; empty if it is not installed, which its use reports."""
    try:
        ended = subprocess.run(argv, capture_output=True, check=False)
    except FileNotFoundError:
        return ""
    return (ended.stdout + ended.stderr)[:ANSWER].decode(errors="replace")


def beginning(path: Path, start: int = 0) -> str:
    """The first ANSWER bytes, from a place on, of what a tool has printed."""
    with path.open("rb") as file:
        file.seek(start)
        return file.read(ANSWER).decode(errors="replace")
