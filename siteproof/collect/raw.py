"""What a node leaves in its result folder, read and nothing more.

meta, facts            KEY=VALUE lines: the node's own account, and what its script noted
stdout, stderr         of the measuring script
run.1/, run.2/ …       of each command that the script gave to `run` (account.sh): dims
                       (KEY=VALUE lines), stdout, stderr, exit
origin                 munge's credential over the digest of all these (siteproof.collect.origin)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from siteproof import files
from siteproof.errors import OutputError, UserError, harmless

ENDED, KILLED = 124, 137  # exit codes of coreutils' timeout; of anything killed, the second
MAX_RUNS = 10_000  # commands of one result
MAX_FILES = MAX_RUNS + 1000  # in one result folder, with what the script itself left there
MAX_RESULTS = 300_000  # in raw/, with half-written ones
MAX_BYTES = 4 * files.OUTPUT  # of all outputs of one result
MAX_KEYS = 500  # in one file of KEY=VALUE lines
LONGEST_KEY, LONGEST_VALUE = 200, 16384  # characters; a processor has some 2,500 of flags
_RUN = re.compile(r"run\.([1-9][0-9]{0,5})")


@dataclass(frozen=True)
class Execution:
    """One command that a script ran. exit: its code; None where it never ended."""

    dims: Mapping[str, str]
    exit: int | None
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Raw:
    """What one node left: its own account (meta), the script's facts, its output, its runs.

    origin: its credential, or why it has none. digest: of what was read, as account.sh makes it.
    """

    meta: Mapping[str, str]
    facts: Mapping[str, str]
    stdout: str
    stderr: str
    runs: Sequence[Execution] = field(default_factory=tuple)
    origin: str = ""
    digest: str = ""

    def number(self, key: str) -> int:
        """A whole number of the node's own account. Raises OutputError."""
        text = self.meta.get(key, "")
        number = whole(text)
        if number is None:
            raise OutputError(f"the node's own account has {key} '{text[:20]}'")
        return number


@dataclass(frozen=True)
class Stage:
    """A job's stage directory, and the owner of the files in it."""

    path: Path
    owner: int

    @staticmethod
    def of(path: Path) -> Stage:
        """Raises UserError where it is missing, or not a folder."""
        try:
            return Stage(path, files.owner(path))
        except FileNotFoundError:
            raise UserError(path, "the stage directory is missing") from None

    def result(self, name: str) -> Result:
        """A result folder, such as a node's; it need not be there."""
        return Result(self, self.path / "raw" / name)

    def has(self, name: str) -> bool:
        """Whether there is a result, even a broken one. Raises files.Unread."""
        return files.exists(self.path / "raw" / name)

    def names(self, wanted: Collection[str]) -> set[str]:
        """Those of the wanted results that are there."""
        try:
            found = files.names(self.path / "raw", below=self.path, most=MAX_RESULTS)
        except FileNotFoundError:
            return set()
        except files.Unread:
            raise
        except UserError:  # too many files: each by its name
            return {name for name in wanted if self.has(name)}
        return set(found).intersection(wanted)


class Result:
    """One result folder, as something untrusted left it."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder = stage, folder
        self.left = MAX_BYTES  # to be read yet
        self.sums: dict[str, str] = {}  # of each file that was read, by its name
        self._meta: dict[str, str] | None = None

    def names(self) -> list[str]:
        """What is in it. Raises OutputError, and files.Unread."""
        try:
            return files.names(self.folder, below=self.stage.path, most=MAX_FILES)
        except (OSError, UserError) as error:
            raise _unreadable(self.folder.name, error) from None

    def text(self, *parts: str, limit: int = files.OUTPUT) -> str:
        """A file of it. Raises OutputError, and files.Unread."""
        try:
            data = files.read(
                self.folder.joinpath(*parts),
                below=self.stage.path,
                limit=min(limit, self.left),
                owners={self.stage.owner},
            )
        except (OSError, UserError) as error:
            raise _unreadable("/".join(parts), error) from None
        self.left -= len(data)
        self.sums["/".join(parts)] = hashlib.sha256(data).hexdigest()
        return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")

    def digest(self) -> str:
        """Of the lines that sha256sum prints of what was read, in the order of the names."""
        lines = "".join(f"{self.sums[name]}  {name}\n" for name in sorted(self.sums))
        return hashlib.sha256(lines.encode()).hexdigest()

    def meta(self) -> dict[str, str]:
        """The node's own account, read once. Raises OutputError."""
        if self._meta is None:
            self._meta = self.pairs("meta")
        return self._meta

    def pairs(self, *parts: str) -> dict[str, str]:
        """The KEY=VALUE lines of a file of it. Raises OutputError."""
        text = self.text(*parts, limit=files.ACCOUNT)
        found: dict[str, str] = {}
        for line in text.split("\n"):
            key, equals, value = line.partition("=")
            if not equals:
                continue
            key, value = harmless(key).strip(), harmless(value).strip()
            if len(key) > LONGEST_KEY or len(value) > LONGEST_VALUE:
                raise OutputError(
                    f"{'/'.join(parts)}: '{key[:40]}' is longer than {LONGEST_VALUE} characters"
                )
            found[key] = value
            if len(found) > MAX_KEYS:
                raise OutputError(f"{'/'.join(parts)}: more than {MAX_KEYS} keys")
        return found


def read(result: Result) -> Raw:
    """A whole result folder. Raises OutputError for a file that is none, and files.Unread."""
    meta, facts = result.meta(), result.pairs("facts")
    stdout, stderr = result.text("stdout"), result.text("stderr")
    found = {int(match[1]): match[0] for match in map(_RUN.fullmatch, result.names()) if match}
    if len(found) > MAX_RUNS:
        raise OutputError(f"{len(found)} runs in one result, at most {MAX_RUNS} are read")
    runs = [_run(result, found[number]) for number in sorted(found)]
    digest = result.digest()
    origin = ""
    if files.exists(result.folder / "origin"):
        origin = result.text("origin", limit=files.ACCOUNT).strip()
    return Raw(meta, facts, stdout, stderr, runs, origin, digest)


def whole(text: str) -> int | None:
    """A whole number of at most 19 digits; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _run(result: Result, name: str) -> Execution:
    written = ""
    if files.exists(result.folder / name / "exit"):
        written = result.text(name, "exit", limit=files.ACCOUNT).strip()
    dims, texts = result.pairs(name, "dims"), (result.text(name, f) for f in ("stdout", "stderr"))
    return Execution(dims, whole(written), *texts)


def _unreadable(name: str, error: OSError | UserError) -> Exception:
    if isinstance(error, files.Unread):  # not the node's fault, and not for good
        return error
    why = error.what if isinstance(error, UserError) else error.strerror
    return OutputError(f"result cannot be read: {name}: {why}", "generic")
