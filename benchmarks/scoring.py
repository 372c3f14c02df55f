"""What the scores of all commands share: cells, pages, and the asking of a command."""

from __future__ import annotations

import json
import resource
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from measuring import TOP, Misuse, ours, table

CVS = (0.005, 0.01, 0.02, 0.05, 0.1)
LOSSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
WANTED = 0.9  # recall
PYTHON = TOP / ".venv" / "bin" / "python"
START = "import sys; from siteproof.cli import main; sys.argv[0] = 'siteproof'; main()"
EXAMPLES = 8  # of false items on a page


class Told(StrEnum):
    """What an item of a page is worth."""

    RIGHT = "right"
    MISNAMED = "misnamed"  # something was planted there, but not this
    FALSE = "false"


@dataclass
class Page:
    """One answer of a command. series: judged. cpu: seconds."""

    name: str
    series: int
    cpu: float = 0.0
    told: Counter[Told] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    missed: dict[tuple[str, float], str] = field(default_factory=dict)

    def add(self, told: Told, text: str) -> None:
        """One item."""
        self.told[told] += 1
        if told is not Told.RIGHT and sum(told in e for e in self.examples) < EXAMPLES:
            self.examples.append(f"{told}: {text}")

    def miss(self, row: str, size: float, text: str) -> None:
        """Something planted that was not told: an example of each cell is kept."""
        self.missed.setdefault((row, size), text)

    @property
    def false_share(self) -> str:
        """Share of the items for which nothing was planted."""
        items = self.told.total()
        return f"{self.told[Told.FALSE] / items:.1%}" if items else "-"


@dataclass
class Cells:
    """Recall by row of a table and size of what was planted."""

    told: Counter[tuple[str, float]] = field(default_factory=Counter)
    planted: Counter[tuple[str, float]] = field(default_factory=Counter)

    def add(self, row: str, size: float, told: bool) -> None:
        """One planted change."""
        self.planted[row, size] += 1
        self.told[row, size] += told

    def recall(self, row: str, size: float) -> float | None:
        """Share of what was planted that was told."""
        count = self.planted[row, size]
        return self.told[row, size] / count if count else None

    def rows(self) -> list[str]:
        """In the order in which they were planted."""
        return list(dict.fromkeys(row for row, _ in self.planted))

    def sizes(self) -> list[float]:
        """Ascending."""
        return sorted({size for _, size in self.planted})

    def smallest(self, row: str) -> str:
        """The smallest size from which on .9 are told."""
        found = ""
        for size in reversed(self.sizes()):
            share = self.recall(row, size)
            if share is None:
                continue
            if share < WANTED:
                break
            found = percent(size) if size else "all"
        return found or "none"

    def table(self) -> str:
        """A row a row."""
        sizes = self.sizes()
        lines = []
        for row in self.rows():
            shares = [self.recall(row, size) for size in sizes]
            cells = ["" if share is None else _share(share) for share in shares]
            most = max(self.planted[row, size] for size in sizes)
            lines.append([row, *cells, self.smallest(row), str(most)])
        return table(
            [
                "",
                *(percent(size) if size else "-" for size in sizes),
                f"found with {WANTED:g} from",
                "of each",
            ],
            lines,
        )

    def record(self) -> list[dict[str, Any]]:
        """For programs."""
        return [
            {"row": row, "size": size, "told": self.told[row, size], "planted": count}
            for (row, size), count in self.planted.items()
        ]


def _share(share: float) -> str:
    return f"{share:.4f}" if 0 < share < 0.01 else f"{share:.2f}"


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.4g} %"


def ask(folder: Path, words: Sequence[str], clone: Path = TOP) -> tuple[dict[str, Any], float]:
    """The answer of a clone's command as a user has it, and its CPU seconds."""
    env = ours(folder, clone, PYTHONPATH=clone)
    env["SITEPROOF_SITES"] = str(folder / "sites")
    before = _children()
    done = subprocess.run(
        [PYTHON, "-c", START, *words, "--json"],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 3):
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        raise Misuse(f"siteproof {' '.join(words)} ended with {done.returncode}: {last[0]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer, _children() - before


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
