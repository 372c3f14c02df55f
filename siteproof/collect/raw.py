"""What a node leaves in its result folder, read and nothing more.

meta, facts            KEY=VALUE lines: the node's own account, and what its script noted
stdout, stderr         of the measuring script
run.1/, run.2/ …       of each command that the script gave to `run` (account.sh): dims
                       (KEY=VALUE lines), stdout, stderr, exit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from siteproof.collect import cause
from siteproof.errors import OutputError, harmless

ENDED, KILLED = 124, 137  # exit codes of coreutils' timeout; of anything killed, the second
MOST_RUNS = 10_000  # more are no measurement


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
    """What one node left: its own account (meta), the script's facts, its output, its runs."""

    meta: Mapping[str, str]
    facts: Mapping[str, str]
    stdout: str
    stderr: str
    runs: Sequence[Run] = field(default_factory=tuple)

    def number(self, key: str) -> int:
        """A whole number of the node's own account. Raises OutputError."""
        text = self.meta.get(key, "")
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise OutputError(f"the node's own account says {key} '{text[:20]}'")
        return int(text)


def read_meta(folder: Path) -> dict[str, str]:
    """The node's own account. Raises OutputError."""
    return _pairs(folder / "meta")


def read(folder: Path) -> Raw:
    """A whole result folder. Raises OutputError where a file cannot be read."""
    return Raw(
        read_meta(folder),
        _pairs(folder / "facts"),
        _text(folder / "stdout"),
        _text(folder / "stderr"),
        _runs(folder),
    )


def _runs(folder: Path) -> list[Run]:
    found = {
        int(path.suffix[1:]): path for path in folder.glob("run.*") if path.suffix[1:].isdecimal()
    }
    if len(found) > MOST_RUNS:
        raise OutputError(f"{len(found)} runs in one result, at most {MOST_RUNS} are read")
    return [_run(found[number]) for number in sorted(found)]


def _run(folder: Path) -> Run:
    written = _text(folder / "exit").strip() if (folder / "exit").exists() else ""
    code = int(written) if written.isascii() and written.isdigit() and len(written) < 4 else None
    return Run(_pairs(folder / "dims"), code, _text(folder / "stdout"), _text(folder / "stderr"))


def _pairs(path: Path) -> dict[str, str]:
    lines = (harmless(line).partition("=") for line in _text(path).split("\n"))
    return {key.strip(): value.strip() for key, found, value in lines if found}


def _text(path: Path) -> str:
    if path.is_fifo():  # it would be waited for until somebody writes
        raise OutputError(f"result cannot be read: {path.name} is no file", "generic")
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise OutputError(f"result cannot be read: {error}", "generic") from None
