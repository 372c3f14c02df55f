"""What the history costs: reading a year of samples, adding a session, and three questions to it.

    .venv/bin/python benchmarks/history.py [--nodes 320] [--runs 365] [--rounds 5]

The year is made by tests/support/years.py: 20 metrics of 7 checks, a session a day. Every
command is a process of its own, and its CPU and memory are those of the whole process,
Python's start included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from measuring import TOP, Misuse, main, ours, parser, table, temporary_folder

sys.path[:0] = [str(TOP), str(TOP / "tests" / "support")]
import years  # noqa: E402

from siteproof.history import views  # noqa: E402

SITEPROOF = TOP / ".venv" / "bin" / "siteproof"
AIM_A_MILLION = 2.0  # core-s
AIMS = {views.HISTORY: 0.2, views.TODAY: 1.0, views.CHANGED: 10.0}  # s
EXACT_SHARE = 10  # of the files, one in so many is read by samples.read alone, for comparison
EXACTLY = """
import sys; from pathlib import Path
from siteproof.record import samples
print(sum(len(samples.read(Path(name))) for name in sys.stdin.read().split()))
"""
ASK = """
import json, resource, sys, time
from pathlib import Path
from siteproof import history
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
found = []
with history.open_history(Path(sys.argv[1])) as opened:
    for query in sys.argv[3:]:
        for _ in range(int(sys.argv[2])):
            wall, used = time.perf_counter(), cpu()
            rows = len(opened.columns(query)["metric"])
            found.append([query, time.perf_counter() - wall, cpu() - used, rows])
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Cost:
    """Seconds of a process, its highest memory in MB, and what it printed."""

    wall: float
    cpu: float
    memory: float
    out: str

    @property
    def cells(self) -> list[str]:
        """Wall, CPU and memory."""
        return [f"{self.wall:.2f} s", f"{self.cpu:.2f} s", f"{self.memory:.0f} MB"]


def run(folder: Path, *words: object, given: str = "") -> Cost:
    """Run a command to its end. Raises Misuse if it fails."""
    log = folder / "log"
    with log.open("w") as out, (folder / "in").open("w+") as stdin:
        stdin.write(given)
        stdin.seek(0)
        start = time.monotonic()
        process = subprocess.Popen(
            list(map(str, words)),
            env=ours(folder, SITEPROOF_CACHE=folder / "cache", PYTHONPATH=TOP),
            cwd=TOP,
            stdin=stdin,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    told = log.read_text(errors="replace")
    if process.returncode:
        raise Misuse(f"{words[0]} ended with {process.returncode}: {told[-300:]}")
    return Cost(
        time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, told
    )


def size_of(folder: Path) -> float:
    """All files of a folder, in MB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def exactly(folder: Path, files: Sequence[Path]) -> tuple[int, float]:
    """Samples of some files, and the CPU that samples.read alone takes a million of them."""
    nothing = run(folder, sys.executable, "-c", EXACTLY)
    done = run(
        folder, sys.executable, "-c", EXACTLY, given="\n".join(map(str, files[::EXACT_SHARE]))
    )
    return int(done.out), (done.cpu - nothing.cpu) / int(done.out) * 1e6


def benchmark() -> None:
    """Measure, and print."""
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, default=320)
    options.add_argument("--runs", type=int, default=365, help="sessions, one a day (365)")
    options.add_argument("--rounds", type=int, default=5, help="of each question (5)")
    given = options.parse_args()
    if min(given.nodes, given.runs, given.rounds) < 1:
        raise Misuse("--nodes, --runs and --rounds are 1 or more")
    with temporary_folder() as folder:
        measure(folder, given.nodes, given.runs, given.rounds)


def measure(folder: Path, nodes: int, runs: int, rounds: int) -> None:
    """Fill a folder with a year, and ask."""
    slower = years.Step("Stream.triad", max(0, runs - 20), -0.1, (views.NODE,))
    perflogs, plan = (
        folder / "perflogs",
        {"nodes": nodes, "metrics": years.ALL, "steps": [slower] if nodes > 16 else []},
    )
    files = years.write(perflogs, runs=runs, **plan)
    count = nodes * runs * len(years.ALL)
    told = size_of(perflogs)
    print(
        f"{count:,} samples in {len(files):,} files of {told:.0f} MB; {os.cpu_count()} cores, "
        f"load average {os.getloadavg()[0]:.1f}\n"
    )
    rows = [["", "wall", "CPU", "memory"]]
    first = run(folder, SITEPROOF, "history", "--json")
    if json.loads(first.out)["systems"][0]["samples"] != count:
        raise Misuse(f"not {count} samples: {first.out[-300:]}")
    rows.append(["everything is read", *first.cells])
    size = size_of(folder / "cache")
    rows.append(["again: --rebuild", *run(folder, SITEPROOF, "history", "--rebuild").cells])
    rows.append(["nothing is new", *run(folder, SITEPROOF, "history", "--sql", "SELECT 1").cells])
    years.write(perflogs, runs=runs + 1, first=runs, **plan)
    rows.append(
        [
            f"a session of {nodes * len(years.ALL):,} samples is new",
            *run(folder, SITEPROOF, "history", "--sql", "SELECT 1").cells,
        ]
    )
    for question in AIMS:
        rows.append(
            [
                f"command: {question.title}"[:60],
                *run(folder, SITEPROOF, "history", "--csv", "--sql", question.sql).cells,
            ]
        )
    print(table(rows[0], rows[1:]), "\n")
    answers(folder, perflogs, rounds)
    read, slow = exactly(folder, files)
    print(
        f"a million of our own samples: {first.cpu / count * 1e6:.2f} core-s, aim "
        f"{AIM_A_MILLION}; by samples.read alone, of {read:,}: {slow:.1f} core-s"
    )
    print(f"the store: {size:.1f} MB, {told / size:.0f} times smaller than the files")


def answers(folder: Path, perflogs: Path, rounds: int) -> None:
    """The questions to an opened history, several times each."""
    done = run(
        folder, sys.executable, "-c", ASK, perflogs, rounds, *(question.sql for question in AIMS)
    )
    found = json.loads(done.out)
    rows = []
    for question, aim in AIMS.items():
        mine = [(wall, cpu, count) for sql, wall, cpu, count in found if sql == question.sql]
        rows.append(
            [
                question.title[:60],
                f"{mine[0][2]:,}",
                f"{median(m[0] for m in mine):.3f} s",
                f"{max(m[0] for m in mine):.3f} s",
                f"{median(m[1] for m in mine):.3f} s",
                f"{aim} s",
            ]
        )
    print(table(["question to an opened history", "rows", "wall", "slowest", "CPU", "aim"], rows))
    print(f"highest memory with all of them: {done.memory:.0f} MB\n")


if __name__ == "__main__":
    main(benchmark)
