"""Recorded outputs of tools, and what stands beside each: tests/unit/parsers/outputs/README.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OUTPUTS = Path(__file__).resolve().parents[1] / "unit/parsers/outputs"  # a folder a tool
KEYS = {"origin", "proof", "alone", "zero", "negative", "metrics", "holds", "parts"}
MARK = "# "


@dataclass(frozen=True)
class Output:
    """A recorded output and its expectation: keys, then the text that the parser must yield."""

    path: Path

    @property
    def tool(self) -> str:
        """The folder's name, which is that of the parser."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """As a test is named."""
        return f"{self.tool}/{self.path.stem}"

    @property
    def text(self) -> str:
        """The output, read as the collector reads what a node has left."""
        return self.path.read_bytes().decode("utf-8", errors="replace")

    @property
    def beside(self) -> Path:
        """The file with the expectation."""
        return self.path.parent / f"{self.path.stem}.expected"

    @property
    def expected(self) -> str:
        """What the parser makes of it, a line a reading or a condition, or its refusal."""
        return self._parts()[1]

    @property
    def good(self) -> bool:
        """Whether it gives readings."""
        return not self.expected.startswith("OutputError")

    def said(self, key: str) -> list[str]:
        """The values of a key, in their order. Raises ValueError for an unknown key."""
        found = []
        for line in self._parts()[0].splitlines():
            name, _, value = line.removeprefix(MARK).partition(": ")
            if name not in KEYS:
                raise ValueError(f"{self.beside}: unknown key '{name}', not of {sorted(KEYS)}")
            found += [value] if name == key else []
        return found

    def _parts(self) -> tuple[str, str]:
        """The keys, which stand first, and the rest."""
        text = self.beside.read_text(encoding="utf-8")
        head = re.match(rf"(?:{MARK}.*\n)*", text)
        end = head.end() if head else 0
        return text[:end], text[end:]


def all_of(tool: str = "*") -> list[Output]:
    """The recorded outputs of a tool, or of all."""
    return [Output(path) for path in sorted(OUTPUTS.glob(f"{tool}/*.txt"))]


@cache
def good(tool: str) -> tuple[str, ...]:
    """The outputs of a tool that give readings."""
    return tuple(output.text for output in all_of(tool) if output.good)


@cache
def words(tool: str, key: str) -> frozenset[str]:
    """The words that a tool's expectations name under a key."""
    return frozenset(
        word for output in all_of(tool) for value in output.said(key) for word in value.split()
    )


def proofs(output: Output) -> list[str]:
    """Texts of the lines without which there is no reading: the output's own, or of its layout."""
    for named in (output.said("proof"), *(o.said("proof") for o in all_of(output.tool))):
        found = [proof.strip("`") for proof in named]
        if found and all(proof in output.text for proof in found):
            return found
    return []
