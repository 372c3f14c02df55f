"""An evening after maintenance on a large fleet, end to end: what each step costs, and its answer.

    .venv/bin/python benchmarks/evening.py [--nodes 10000] [--days 29] [--dead DAYS] [--links]
        [--clone FOLDER]

HostParameters, SystemDescription, Stream, Hpl and RandomIo run once on this machine, in quick mode;
what they leave is the pattern of what every node leaves (made_evening.py): each with values of its
own, 5 % of them dead, failed or cut off, 2 % slow. Before the evening there are sessions of so many
days. Then the commands of sbatch/evening run as processes, with Python's start, in their order:
collect, verdict, nodes, gate, gate --apply, report, trend. The gate asks and changes a model of
Slurm (tests/support/slurm_model.py), in a process of its own, by small programs named as Slurm's.
The jobs themselves, ReFrame and munge are not in these figures.

--dead: 5 % of the nodes were never measured in so many of the days before. --links: instead, a job
over pairs, random:3 and star, is collected and shown by `siteproof matrix`. --clone: the commands
of another clone, such as a work tree of an older commit.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socketserver
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from measuring import (
    REFRAME,
    TOP,
    Cost,
    Misuse,
    main,
    measure,
    must,
    ours,
    parser,
    table,
    temporary_folder,
)

PYTHON = TOP / ".venv" / "bin" / "python"
START = "import sys; from siteproof.cli import main; sys.argv[0] = 'siteproof'; main()"
ENDINGS = (0, 1, 3)  # exit codes of an answer
LIMIT = 3600  # seconds of a step
STEPS = (
    "collect",
    "verdict",
    "nodes",
    "gate",
    "gate --apply",
    "gate",
    "report --output FILE",
    "trend",
)
LINKS = ("random:3", "star")
# Sends its arguments to the model, and prints what that says.
CLIENT = """#!/usr/bin/python3 -SE
import json, socket, sys
with socket.socket(socket.AF_UNIX) as model:
    model.connect({where!r})
    model.sendall(json.dumps([{name!r}, *sys.argv[1:]]).encode())
    model.shutdown(socket.SHUT_WR)
    code, out, error = json.load(model.makefile())
sys.stdout.write(out)
sys.stderr.write(error)
sys.exit(code)
"""


def benchmark() -> None:
    """Make the evening, run its steps, and print a row for each."""
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, default=10_000)
    options.add_argument("--days", type=int, default=29, help="sessions before, one a day (29)")
    options.add_argument("--dead", type=int, default=0, metavar="DAYS", help="5 %% for so long")
    options.add_argument("--links", action="store_true", help="a job over pairs instead")
    options.add_argument("--clone", type=Path, default=TOP, help="whose commands run")
    given = options.parse_args()
    if given.nodes < 200 or given.days < 1:
        raise Misuse("--nodes is 200 or more, --days 1 or more")
    with temporary_folder() as folder:
        if given.links:
            for pattern in LINKS:
                of_links(folder / pattern.partition(":")[0], given.clone, given.nodes, pattern)
            return
        record(folder)
        apart(_make, folder, given.nodes, given.days, given.dead)
        print(
            f"{given.nodes:,} nodes, {given.days} days before; {os.cpu_count()} cores, load "
            f"average {os.getloadavg()[0]:.1f}\n"
        )
        with slurm(folder, given.nodes):
            show(folder, given.clone, ("history",), "once, as the evenings before have done it")
            show(folder, given.clone, STEPS, "the evening")


def show(folder: Path, clone: Path, steps: Sequence[str], what: str) -> None:
    """Run the steps, and print a row for each and for all of them."""
    costs, rows = [], []
    for words in steps:
        cost, last = run(folder, clone, words)
        costs.append(cost)
        rows.append([words.replace(" --output FILE", ""), *_cells(cost), last])
    total = Cost(
        sum(c.wall for c in costs),
        sum(c.cpu for c in costs),
        0.0,
        0,
        memory=max(c.memory for c in costs),
    )
    print(table([what, "wall", "CPU", "memory", "last line"], [*rows, ["all", *_cells(total), ""]]))
    print(flush=True)


def _cells(cost: Cost) -> list[str]:
    return [f"{cost.wall / 60:.1f} min", f"{cost.cpu:.1f} s", f"{cost.memory:.0f} MB"]


def run(folder: Path, clone: Path, words: str) -> tuple[Cost, str]:
    """What a command costs, and the last line of its answer. Raises Misuse where it fails."""
    log = folder / "log"
    argv = [str(folder / "page.html") if word == "FILE" else word for word in words.split()]
    env = ours(folder, clone, SITEPROOF_CACHE=folder / "cache", PYTHONPATH=clone) | {
        "SITEPROOF_SITES": str(folder / "sites"),
        "PATH": f"{folder / 'bin'}:{REFRAME.parent}:/usr/bin:/bin",
    }
    cost = measure([PYTHON, "-c", START, *argv], env, log, LIMIT)
    told = log.read_text(errors="replace")
    if cost.code not in ENDINGS or "Traceback" in told:
        raise Misuse(f"{words} ended with {cost.code}: {told[-300:]}")
    return cost, (told.strip().splitlines() or ["nothing"])[-1][:110]


def record(folder: Path) -> None:
    """Run the checks once on this machine; what they leave stays in `recorded/stage`."""
    import made_evening

    (folder / "recorded").mkdir()
    names = "|".join(made_evening.CHECKS)
    words = ["-c", TOP / "checks", "-r", "--mode", "quick", "--keep-stage-files"]
    env = ours(folder / "recorded", TOP)
    log = folder / "recorded" / "log"
    argv = [REFRAME, *words, "--system=thishost:node", "-p", "system", "-n", f"^({names})( |$)"]
    must(measure(argv, env, log), log, "reframe on this machine")


def _make(folder: Path, nodes: int, days: int, dead: int) -> None:
    """The site, the sessions before, and the stage directories of the evening."""
    import made_evening

    stages = (folder / "recorded" / "stage").glob("*/*/*/*/*/siteproof-job.json")
    recorded = [made_evening.Result.of(found.parent) for found in sorted(stages)]
    now = made_evening.now()
    measured = made_evening.write_past(folder, recorded, nodes, days, now, dead)
    made_evening.write_site(folder / "sites", nodes, measured)
    made_evening.write_stages(folder, recorded, nodes, now)


def apart(what: Callable[..., object], *given: object) -> None:
    """Call it in a process of its own, as it holds all values of the fleet."""
    process = multiprocessing.get_context("spawn").Process(target=what, args=given)
    process.start()
    process.join()
    if process.exitcode:
        raise Misuse("the fleet could not be made")


@contextmanager
def slurm(folder: Path, nodes: int) -> Iterator[None]:
    """The model of Slurm, and its clients in folder/bin."""
    (folder / "bin").mkdir()
    where = folder / "slurm"
    for name in ("scontrol", "squeue", "sinfo"):
        client = folder / "bin" / name
        client.write_text(CLIENT.format(where=str(where), name=name))
        client.chmod(0o755)
    model = multiprocessing.get_context("spawn").Process(target=_serve, args=(where, nodes))
    model.start()
    while not where.exists() and model.is_alive():
        time.sleep(0.05)
    try:
        if not model.is_alive():
            raise Misuse("the model of Slurm did not start")
        yield
    finally:
        model.terminate()
        model.join()


def _serve(where: Path, nodes: int) -> None:
    """Answer as Slurm does; of the nodes that left nothing every second one is down."""
    import made_evening
    import slurm_model

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fleet = made_evening.Fleet(made_evening.fleets.names(nodes))
    model = slurm_model.Slurm(fleet.names, time.time)
    for node in sorted(fleet.lost)[::2]:
        model.power_off(node)

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            argv = json.load(self.rfile)
            self.wfile.write(json.dumps(model.run(argv, "root")).encode())

    with socketserver.UnixStreamServer(str(where), Answer) as server:
        server.serve_forever()


def of_links(folder: Path, clone: Path, nodes: int, pattern: str) -> None:
    """Collect a job over the pairs of a pattern, and show its matrix."""
    folder.mkdir()
    apart(_make_links, folder, nodes, pattern)
    with slurm(folder, nodes):
        steps = ("collect", "verdict", "matrix TcpBandwidth.throughput")
        show(folder, clone, steps, f"{nodes:,} nodes, {pattern}")


def _make_links(folder: Path, nodes: int, pattern: str) -> None:
    import made_evening

    made_evening.write_pairs(folder, nodes, pattern, made_evening.now())


if __name__ == "__main__":
    main(benchmark)
