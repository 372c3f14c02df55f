"""What the page and the trend cost after a year of a fleet: seconds, and the size of the page.

    .venv/bin/python benchmarks/report.py [--nodes 320] [--runs 365] [--rounds 3]

The year is made by tests/support/years.py: planted steps, a session a day, of 6 metrics and of 20.
Each command is a process with its start; the history's store is up to date, as it is after the
first.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from statistics import median

from measuring import TOP, Cost, Misuse, main, measure, ours, parser, table, temporary_folder

sys.path[:0] = [str(TOP), str(TOP / "tests/support")]
import fleets  # noqa: E402
import years  # noqa: E402

SITEPROOF = TOP / ".venv" / "bin" / "siteproof"
CRITERION = """\
C-{number}: {{description: {metric}, metric: {metric}, scope: every node, nodes: [compute],
  {bound} {unit}, max_age: none, source: made up}}
"""
COMMANDS = {"verdict": 0.0, "nodes": 0.0, "trend": 10.0, "report": 5.0}  # aims, s; 0: none
ENDINGS = (0, 1, 3)  # exit codes of a verdict


def benchmark() -> None:
    """Measure, and print."""
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, default=320)
    options.add_argument("--runs", type=int, default=365, help="sessions, one a day (365)")
    options.add_argument("--rounds", type=int, default=3, help="of each command (3)")
    given = options.parse_args()
    if min(given.rounds, given.runs) < 1 or given.nodes < 20:
        raise Misuse("--runs and --rounds are 1 or more, --nodes 20 or more")
    for metrics in (years.ORDINARY, years.ALL):
        with temporary_folder() as folder:
            a_year(folder, given.nodes, given.runs, given.rounds, metrics)


def criteria(metrics: tuple[str, ...]) -> str:
    """A criterion on every node for each metric, that all of them meet."""
    texts = []
    for number, one in enumerate((f for f in years.FIGURES if f.metric in metrics), 1):
        bound = f"at_least: {one.level / 2:g}"
        if one.unit == "s":
            bound = f"at_most: {one.level * 2:g}"
        texts.append(CRITERION.format(number=number, metric=one.metric, bound=bound, unit=one.unit))
    return "".join(texts)


def a_year(folder: Path, nodes: int, runs: int, rounds: int, metrics: tuple[str, ...]) -> None:
    """Fill a folder with a year, and run every command."""
    names = years.names(nodes)
    fleets.write_site(folder / "sites", count=nodes, criteria=criteria(metrics))
    years.write(
        folder / "perflogs",
        nodes=nodes,
        runs=runs,
        metrics=metrics,
        steps=[
            years.Step("Stream.triad", runs // 2, -0.08, tuple(names[8:16])),
            years.Step("Hpl.gflops", 2 * runs // 3, -0.03),
        ],
    )
    env = ours(folder, SITEPROOF_CACHE=folder / "cache") | {
        "SITEPROOF_SITES": str(folder / "sites")
    }
    page = folder / "page.html"
    more = {"report": ["--output", page]}
    run(folder, env, "history")
    rows = []
    for name, aim in COMMANDS.items():
        costs = [run(folder, env, name, *more.get(name, ())) for _ in range(rounds)]
        rows.append(
            [
                name,
                f"{median(c.wall for c in costs):.2f} s",
                f"{max(c.wall for c in costs):.2f} s",
                f"{median(c.cpu for c in costs):.2f} s",
                f"{aim:g} s" if aim else "",
            ]
        )
    print(
        f"{nodes} nodes, {runs} runs, {len(metrics)} metrics: "
        f"{nodes * runs * len(metrics):,} samples; {os.cpu_count()} cores, load average "
        f"{os.getloadavg()[0]:.1f}"
    )
    print(table(["command", "wall", "slowest", "CPU", "aim, wall"], rows))
    size = page.stat().st_size / 1e6
    print(f"the page, with {len(metrics)} criteria: {size:.2f} MB, aim 5\n")


def run(folder: Path, env: dict[str, str], *words: object) -> Cost:
    """A command of ours, with its children. Raises Misuse where it fails."""
    log = folder / "log"
    cost = measure([SITEPROOF, *words], env, log)
    if cost.code not in ENDINGS:
        raise Misuse(f"{words[0]} ended with {cost.code}: {log.read_text()[-300:]}")
    return cost


if __name__ == "__main__":
    main(benchmark)
