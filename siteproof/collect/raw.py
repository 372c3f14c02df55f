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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from siteproof.collect import cause
from siteproof.errors import OutputError, harmless

ENDED, KILLED = 124, 137  # exit codes of coreutils' timeout; of anything killed, the second
MOST_RUNS = 10_000  # more are no measurement
_CODE = re.compile(r"[0-9]{1,3}")


@dataclass(frozen=True)
class Run:
    """One command of a script. exit: its code; None where it never ended."""

    dims: Mapping[str, str]
    exit: int | None
    stdout: str
    stderr: str

    @property
    def last_words(self) -> str:
        """The first cause that it told; otherwise the end of what it printed, errors first."""
        return cause.told(self.stdout, self.stderr)


@dataclass(frozen=True)
class Raw:
    """What one node left: its own account (meta), the script's facts, its output, its runs.

    origin: its credential, or why it has none. digest: of what was read, as account.sh makes it.
    """

    meta: Mapping[str, str]
    facts: Mapping[str, str]
    stdout: str
    stderr: str
    runs: Sequence[Run] = field(default_factory=tuple)
    origin: str = ""
    digest: str = ""

    def number(self, key: str) -> int:
        """A whole number of the node's own account. Raises OutputError."""
        text = self.meta.get(key, "")
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise OutputError(f"the node's own account says {key} '{text[:20]}'")
        return int(text)


def read_meta(folder: Path) -> dict[str, str]:
    """The node's own account. Raises OutputError."""
    return _Folder(folder).pairs("meta")


def read(folder: Path) -> Raw:
    """A whole result folder. Raises OutputError where a file cannot be read."""
    held = _Folder(folder)
    meta, facts = held.pairs("meta"), held.pairs("facts")
    stdout, stderr = held.text("stdout"), held.text("stderr")
    runs, digest = held.runs(), held.digest()
    origin = held.text("origin") if (folder / "origin").exists() else ""
    return Raw(meta, facts, stdout, stderr, runs, origin.strip(), digest)


class _Folder:
    """The files of a result as they are read, each once, with its checksum."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sums: dict[str, str] = {}

    def text(self, name: str) -> str:
        path = self.folder / name
        if path.is_fifo():  # it would be waited for until somebody writes
            raise OutputError(f"result cannot be read: {path.name} is no file", "generic")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise OutputError(f"result cannot be read: {error}", "generic") from None
        self.sums[name] = hashlib.sha256(data).hexdigest()
        return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")

    def pairs(self, name: str) -> dict[str, str]:
        lines = (harmless(line).partition("=") for line in self.text(name).split("\n"))
        return {key.strip(): value.strip() for key, found, value in lines if found}

    def runs(self) -> list[Run]:
        found = {
            int(path.suffix[1:]): path.name
            for path in self.folder.glob("run.*")
            if path.suffix[1:].isdecimal()
        }
        if len(found) > MOST_RUNS:
            raise OutputError(f"{len(found)} runs in one result, at most {MOST_RUNS} are read")
        return [self.run(found[number]) for number in sorted(found)]

    def run(self, name: str) -> Run:
        written = (self.folder / name / "exit").exists() and self.text(f"{name}/exit").strip()
        code = int(written) if written and _CODE.fullmatch(written) else None
        dims = self.pairs(f"{name}/dims")
        return Run(dims, code, self.text(f"{name}/stdout"), self.text(f"{name}/stderr"))

    def digest(self) -> str:
        """Of the lines that sha256sum prints of what was read, in the order of the names."""
        lines = "".join(f"{self.sums[name]}  {name}\n" for name in sorted(self.sums))
        return hashlib.sha256(lines.encode()).hexdigest()
