"""What the commands say by default of made sites, of which the truth is known.

    .venv/bin/python benchmarks/score_commands.py [--only WORDS] [--rounds 10] [--seed 1]
        [--week NODES] [--runs 60] [--old COMMIT] [--misses] [--json FILE] [--peers PYTHON]…

Each plane of the grid is a site or a few of them: many fleets in one site, so that one page judges
hundreds of series, and what is false on the page is counted in the same run as what was found.
Commands are processes, run with --system and --json and nothing else. A row of a table is a cell
without its loss; `found with .9 from` is the smallest loss from which on nine of ten are told.

The planes `held-out` have kinds of noise that were written after the constants (made_held_out.py),
for seeds from 9000 on: choose no constant on them. With `--peers`, each a Python
of its own, asv and Apache Otava judge the series of `trend grid` and `trend held-out`, too.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # before numpy

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import score_matrix
import score_nodes
import score_trend
from measuring import TOP, main, parser, table, temporary_folder, worktree
from score_peers import Rivals
from scoring import WANTED, Cells, Page, Told, ask, percent


@dataclass(frozen=True)
class Case:
    """A plane, the command that is asked, and how its answer is compared with the truth."""

    plane: Callable[..., Iterator[Any]]
    words: tuple[str, ...]
    compare: Callable[[Any, dict[str, Any], Cells, Page], None]


def _cases() -> Iterator[tuple[str, Case]]:
    for name, plane in score_trend.PLANES.items():
        yield f"trend {name}", Case(plane, ("trend",), score_trend.score)
    for name, nodes in score_nodes.NODES_PLANES.items():
        yield f"nodes {name}", Case(nodes, ("nodes",), score_nodes.score_nodes)
    for name in ("grid", "share", "kinds", "clean"):
        gate = score_nodes.NODES_PLANES[name]
        yield f"gate {name}", Case(gate, ("gate",), score_nodes.score_gate)
    for name, compared in score_nodes.COMPARE_PLANES.items():
        yield f"compare {name}", Case(compared, ("compare",), score_nodes.score_compare)
    for name, links in score_matrix.PLANES.items():
        words = ("matrix", score_matrix.METRIC)
        yield f"matrix {name}", Case(links, words, score_matrix.score)


CASES = dict(_cases())
COMPARED = ("trend grid", "trend held-out")  # with asv and Otava


def chance_of(seed: int, name: str) -> np.random.Generator:
    """The same numbers for the same words."""
    return np.random.default_rng([seed, *name.encode()])


def score(
    name: str, seed: int, rounds: int, folder: Path, clone: Path, rivals: Rivals
) -> tuple[Cells, list[Page]]:
    """All pages of a plane."""
    cells, pages = Cells(), []
    case = CASES[name]
    for made in case.plane(chance_of(seed, name.partition(" ")[2]), rounds):
        here = folder / made.site.system
        made.write(here)
        page = Page(made.site.system, made.site.series)
        answer, page.cpu = ask(here, [*case.words, "--system", made.site.system], clone)
        case.compare(made, answer, cells, page)
        if rivals.pythons and name.startswith(COMPARED):
            rivals.add(made, answer, page.cpu)
        pages.append(page)
        shutil.rmtree(here)
    return cells, pages


def show(name: str, cells: Cells, pages: list[Page], misses: bool) -> None:
    """The tables of a plane."""
    print(f"## {name}\n\n{cells.table()}\n")
    head = ["page", "series", "items", "right", "misnamed", "false", "share", "CPU s"]
    rows = [
        [
            page.name,
            str(page.series),
            str(page.told.total()),
            *(str(page.told[told]) for told in Told),
            page.false_share,
            f"{page.cpu:.1f}",
        ]
        for page in pages
    ]
    print(table(head, rows) + "\n", flush=True)
    if misses:
        for line in _misses(cells, pages):
            print(line)


def _misses(cells: Cells, pages: list[Page]) -> Iterator[str]:
    for page in pages:
        yield from (f"  {page.name}: {text}" for text in page.examples)
        for (row, size), text in page.missed.items():
            share = cells.recall(row, size)
            if share is not None and share < WANTED:
                yield f"  missed ({row}, {percent(size)}, recall {share:.2f}): {text}"


def week(nodes: int, runs: int, seed: int, folder: Path, clone: Path) -> None:
    """Every day of a week the page of a fleet without a change."""
    made = score_trend.calm(chance_of(seed, "week"), nodes, runs)
    first = runs - score_trend.DAYS
    made.site.write(folder, 0, first)
    words = ["trend", "--system", made.site.system]
    answer, cpu = ask(folder, words, clone)
    before = seen = score_trend.names(made, answer)
    costs = [cpu]
    for run in range(first, runs):
        made.site.write(folder, run, run + 1)
        answer, cpu = ask(folder, words, clone)
        seen = seen | score_trend.names(made, answer)
        costs.append(cpu)
    print(
        f"## a week of {nodes} nodes x {len(score_trend.CALM)} metrics without a change, after "
        f"{first} runs\n\n{len(before)} items before the week, {len(seen - before)} new ones in "
        f"it; CPU of a page {min(costs):.1f} to {max(costs):.1f} s"
    )
    for text in sorted(seen)[:20]:
        print(f"  {text}")


def _clone(commit: str, folder: Path) -> AbstractContextManager[Path]:
    return worktree(commit, folder / "old") if commit else nullcontext(TOP)


def benchmark() -> None:
    """Print all tables."""
    options = parser(__doc__)
    options.add_argument("--only", default="", metavar="WORDS", help="planes whose name has them")
    options.add_argument("--rounds", type=int, default=10, help="trials of each cell (10)")
    options.add_argument("--seed", type=int, default=1, help="of all chance (1)")
    options.add_argument("--week", type=int, default=0, metavar="NODES", help="only a clean week")
    options.add_argument("--runs", type=int, default=60, help="of the clean week (60)")
    options.add_argument("--old", default="", metavar="COMMIT", help="the commands of a commit")
    options.add_argument("--misses", action="store_true", help="examples of what was not told")
    options.add_argument("--json", type=Path, metavar="FILE", help="all cells, for programs")
    options.add_argument(
        "--peers",
        type=Path,
        action="append",
        default=[],
        metavar="PYTHON",
        help="a Python that has asv or Otava; may be given twice",
    )
    given = options.parse_args()
    record, rivals = {}, Rivals(given.peers)
    with temporary_folder() as folder, _clone(given.old, folder) as clone:
        if given.week:
            week(given.week, given.runs, given.seed, folder / "week", clone)
        for name in CASES:
            if given.only in name and not given.week:
                begin = time.monotonic()
                cells, pages = score(name, given.seed, given.rounds, folder, clone, rivals)
                show(name, cells, pages, given.misses)
                print(f"{time.monotonic() - begin:.0f} s\n")
                record[name] = cells.record()
    if given.peers:
        rivals.show()
    if given.json:
        given.json.write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(benchmark)
