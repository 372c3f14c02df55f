"""What the daily commands cost on a large fleet: CPU seconds and memory, before and today.

    .venv/bin/python benchmarks/commands.py [--nodes 10000] [--runs 30] [--old COMMIT]
        [--only WORDS] [--trend DAYS]

The fleet is made by tests/support/years.py: 6 metrics, a session a day, the newest of a few hours
ago. Of its nodes 5 % are missing, failed or waived in the newest session, and some are slow. Each
command is a process of its own, with Python's start, once without a store of the history (it may
then make one) and once with the store that this has left. With --old the commands of that commit
run beside those of today, on the same data with a cache of their own, and the outputs of both must
be the same byte for byte, but for the moment when they were made and the ages that count from it.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from measuring import TOP, Cost, Misuse, main, measure, ours, parser, table, temporary_folder

PYTHON = TOP / ".venv" / "bin" / "python"
START = "import sys; from siteproof.cli import main; sys.argv[0] = 'siteproof'; main()"
ENDINGS = (0, 1, 3)  # exit codes of a verdict
CRITERIA = """\
C-TRIAD: {description: Triad, metric: Stream.triad, scope: every node, nodes: [compute],
  at_least: 172 GB/s, programs: [stream], source: made up}
C-COPY: {description: Copy, metric: Stream.copy, scope: median, nodes: [compute],
  at_least: 170 GB/s, programs: [stream], source: made up}
C-HPL: {description: HPL, metric: Hpl.gflops, scope: every node, nodes: [compute],
  at_least: 2.3 TFLOPS, rounding: nearest 0.1 TFLOPS, programs: [xhpl], source: made up}
C-READ: {description: Reads, metric: RandomIo.read, scope: every node, nodes: [compute],
  at_least: 100 MB/s, programs: [fio], source: made up}
"""
WAIVERS = """\
W-ALL: {{nodes: '{all}', waives: all, problem: waits for a board, owner: ops, expires: 2199-01-01}}
W-HPL: {{nodes: '{one}', waives: C-HPL, problem: slow memory, owner: ops, expires: 2199-01-01}}
"""
# What differs between two runs of the same: when it was made, and ages that count from then.
MOMENTS = re.compile(
    r'("(?:made|as_of)": )"[^"]*"|("age": )[0-9.]+|(siteproof_export_timestamp_seconds\S* )[0-9.]+'
)


@dataclass(frozen=True)
class Command:
    """A command, and what is aimed at: CPU seconds and MB."""

    words: str
    cpu: float
    memory: float

    @property
    def is_compared(self) -> bool:
        """Whether two runs of it print the same."""
        return not self.words.startswith(("report", "trend"))


DAILY = (
    Command("verdict", 2, 400),
    Command("verdict --json", 3, 400),
    Command("why NODE", 1, 400),
    Command("why NODE --json", 1, 400),
    Command("nodes", 5, 400),
    Command("nodes --json", 5, 400),
    Command("nodes --metric Stream.triad", 5, 400),
    Command("gate", 6, 400),
    Command("gate --json", 6, 400),
    Command("export json", 6, 400),
    Command("export openmetrics", 6, 400),
    Command("export junit", 6, 400),
    Command("report --output FILE", 12, 600),
)
TREND = (Command("history", 25, 1000), Command("trend", 10, 1000))


def benchmark() -> None:
    """Measure, and print."""
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, default=10_000)
    options.add_argument("--runs", type=int, default=30, help="sessions, one a day (30)")
    options.add_argument("--old", default="", metavar="COMMIT", help="compare with this commit")
    options.add_argument("--only", default="", metavar="WORDS", help="commands that begin so")
    options.add_argument("--trend", type=int, default=0, metavar="DAYS", help="'trend' of so many")
    given = options.parse_args()
    if given.nodes < 100 or given.runs < 1 or given.trend < 0:
        raise Misuse("--nodes is 100 or more, --runs 1 or more")
    with temporary_folder() as folder, _clones(folder, given.old) as clones:
        commands = TREND if given.trend else DAILY
        days = given.trend or given.runs
        making = multiprocessing.get_context("spawn").Process(
            target=make, args=(folder, given.nodes, days)
        )
        making.start()
        making.join()
        if making.exitcode:
            raise Misuse("the fleet could not be made")
        print(
            f"{given.nodes:,} nodes, {days} sessions, 6 metrics; {os.cpu_count()} cores, load "
            f"average {os.getloadavg()[0]:.1f}\n"
        )
        wanted = [c for c in commands if c.words.startswith(given.only)]
        rows = [row for command in wanted for row in compare(folder, clones, command, given.nodes)]
        head = ["", "commit", "no store: CPU", "memory", "store: CPU", "memory", "aim", "output"]
        print(table(head, rows))


@contextmanager
def _clones(folder: Path, old: str) -> Iterator[dict[str, Path]]:
    """Today's clone and, by its name, a work tree of an older commit."""
    if not old:
        yield {"today": TOP}
        return
    tree = folder / "old"
    _git("worktree", "add", "--detach", tree, old)
    try:
        yield {old: tree, "today": TOP}
    finally:
        _git("worktree", "remove", "--force", tree)


def _git(*words: object) -> None:
    done = subprocess.run(
        ["git", "-C", TOP, *map(str, words)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Misuse(done.stderr.strip().splitlines()[-1])


def make(folder: Path, nodes: int, runs: int) -> None:
    """The site and the sessions. A process of its own, as it holds all values of the fleet."""
    sys.path[:0] = [str(TOP), str(TOP / "tests/support")]
    import fleets
    import years

    from siteproof import nodesets

    names = years.names(nodes)
    lost, broken, waived, short = (
        names[part :: nodes // (nodes // 50)] for part in (3, 13, 23, 33)
    )
    fleets.write_site(folder / "sites", count=nodes, criteria=CRITERIA)
    waivers = WAIVERS.format(all=nodesets.of(waived[::2]), one=nodesets.of(waived[1::2]))
    (folder / "sites" / "here" / "waivers.yaml").write_text(waivers)
    last, half = runs - 1, len(broken) // 2
    years.BEGIN = datetime.now(UTC).replace(microsecond=0) - timedelta(days=last, hours=3)
    years.write(
        folder / "perflogs",
        nodes=nodes,
        runs=runs,
        steps=[
            years.Step("Stream.triad", runs // 2, -0.12, tuple(names[5::500])),
            years.Step("Hpl.gflops", last, -0.3, tuple(waived)),
            years.Step("Hpl.gflops", 2 * runs // 3, -0.03),
        ],
        gaps=[
            years.Gap(last, last, tuple(lost[::2])),
            years.Gap(last, last, tuple(lost[1::2]), "RandomIo.read"),
            years.Gap(last, last, tuple(broken[:half]), "Stream.triad", "timeout"),
            years.Gap(last, last, tuple(broken[half:]), "Hpl.gflops", "invalid"),
            years.Gap(runs // 3, runs // 2, tuple(short), "Stream.copy", "generic"),
        ],
    )


def compare(folder: Path, clones: dict[str, Path], command: Command, nodes: int) -> list[list[str]]:
    """A row for each clone; whether their outputs are the same stands in the last."""
    rows, outputs = [], []
    for name, clone in clones.items():
        cache = folder / f"cache-{name}"
        shutil.rmtree(cache, ignore_errors=True)
        cold, first = run(folder, clone, cache, command, nodes)
        warm, again = run(folder, clone, cache, command, nodes)
        outputs += [first, again] if command.is_compared else []
        rows.append([command.words, name, *_cells(cold), *_cells(warm), "", ""])
    rows[-1][-2] = f"{command.cpu:g} s, {command.memory:g} MB"
    if outputs:
        rows[-1][-1] = "same" if len(set(outputs)) == 1 else "DIFFERENT"
    return rows


def _cells(cost: Cost) -> list[str]:
    return [f"{cost.cpu:.2f} s", f"{cost.memory:.0f} MB"]


def run(folder: Path, clone: Path, cache: Path, command: Command, nodes: int) -> tuple[Cost, str]:
    """What a command costs, and what it prints. Raises Misuse where it fails."""
    log, page = folder / "log", folder / "page.html"
    node = f"n{nodes // 2 + 3:0{max(3, len(str(nodes)))}}"
    words = [{"NODE": node, "FILE": str(page)}.get(word, word) for word in command.words.split()]
    env = ours(folder, clone, SITEPROOF_CACHE=cache, PYTHONPATH=clone) | {
        "SITEPROOF_SITES": str(folder / "sites")
    }
    cost = measure([PYTHON, "-c", START, *words], env, log)
    told = log.read_text(errors="replace")
    if cost.code not in ENDINGS or "Traceback" in told:
        raise Misuse(f"{command.words} ended with {cost.code}: {told[-300:]}")
    return cost, MOMENTS.sub(r"\1\2\3", told)


if __name__ == "__main__":
    main(benchmark)
