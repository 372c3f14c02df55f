"""Steps that asv and Apache Otava find in the series of a made site, scored as trend is.

A peer judges one series after the other and knows no page: each of its steps is an item of its own.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from made_sites import FIGURES, Floats
from measuring import Misuse, table
from score_trend import History, Item, items, judge
from scoring import Cells, Page, Told

OURS = "Siteproof"
LEAST = 0.02  # the smallest change that trend reports


class Rivals:
    """All detectors on the same pages."""

    def __init__(self, pythons: Sequence[Path]) -> None:
        self.pythons = list(pythons)
        self.cells = Cells()
        self.pages: dict[str, dict[str, tuple[Page, str]]] = {}
        self.skipped: list[str] = []

    def add(self, h: History, answer: dict[str, Any], cpu: float) -> None:
        """A page, and what the others find in its series."""
        self._judge(h, OURS, items(h, answer), cpu)
        for python in list(self.pythons):
            try:
                found, costs = steps(python, h)
            except (Misuse, OSError) as error:
                self.skipped.append(f"skipped: {error}")
                self.pythons.remove(python)
                continue
            for name, mine in found.items():
                self._judge(h, name, mine, costs[name])

    def _judge(self, h: History, name: str, said: Iterable[Item], cpu: float) -> None:
        told, cells = list(said), Cells()
        page = Page(h.site.system, h.site.series, cpu)
        judge(h, told, cells, page)
        for (row, size), count in cells.planted.items():
            mine = f"{name}, {row.split(', ')[1]}", size
            self.cells.planted[mine] += count
            self.cells.told[mine] += cells.told[row, size]
        self.pages.setdefault(page.name, {})[name] = page, _alarmed(h, told)

    def show(self) -> None:
        """Recall of all by duration, and what is false on each page."""
        print(f"## the same series, judged by others\n\n{self.cells.table()}\n")
        rows = [
            [
                *(page.name, name, str(page.told.total()), str(page.told[Told.FALSE])),
                *(page.false_share, alarmed, f"{page.cpu:.1f}"),
            ]
            for pages in self.pages.values()
            for name, (page, alarmed) in pages.items()
        ]
        head = ["page", "by", "items", "false", "share", "unchanged series with one", "CPU s"]
        print(table(head, rows) + "\n")
        print("\n".join(self.skipped))


def _alarmed(h: History, told: Iterable[Item]) -> str:
    """Share of the series without a change of which something is said, and with 2 % or more."""
    planted = {(change.metric, change.node) for change in h.planted}
    quiet = h.site.series - len(planted)
    every = {(i.metric, node) for i in told for node in i.nodes} - planted
    large = {(i.metric, node) for i in told if abs(i.relative) >= LEAST for node in i.nodes}
    return f"{len(every) / quiet:.2%} ({len(large - planted) / quiet:.2%})"


def _found(python: Path, values: Floats) -> Iterator[tuple[str, float, int, list[int]]]:
    """What the detectors of another Python find: name, CPU seconds, series, places."""
    lines = "\n".join(json.dumps(row.tolist()) for row in values)
    program = Path(__file__).with_name("peer_steps.py")
    done = subprocess.run(
        [python, program], input=lines, text=True, capture_output=True, check=False
    )
    if done.returncode or not done.stdout:
        last = done.stderr.strip().splitlines()[-1:] or ["neither asv nor Otava in it"]
        raise Misuse(f"{python}: {last[0]}")
    rows: Counter[str] = Counter()
    for line in done.stdout.splitlines():
        name, cpu, found = json.loads(line)
        yield name, cpu, rows[name], found
        rows[name] += 1


def steps(python: Path, h: History) -> tuple[dict[str, list[Item]], Counter[str]]:
    """Items and CPU seconds of each detector that a Python has."""
    names = [(metric, node) for metric in h.site.values for node in h.site.nodes]
    series = np.concatenate([of.T * FIGURES[metric].level for metric, of in h.site.values.items()])
    found: dict[str, list[Item]] = {}
    costs: Counter[str] = Counter()
    for detector, cpu, row, places in _found(python, series):
        costs[detector] += cpu  # type: ignore[assignment]
        mine = found.setdefault(detector, [])
        mine.extend(_items(*names[row], series[row], places))
    return found, costs


def _items(metric: str, node: str, values: Floats, places: Sequence[int]) -> Iterator[Item]:
    ends = [0, *places, len(values)]
    for before, at, after in zip(ends, ends[1:], ends[2:], strict=False):
        ratio = float(np.median(values[at:after]) / np.median(values[before:at]))
        yield Item(metric, frozenset([node]), at, after, ratio - 1, "step", False, "")
