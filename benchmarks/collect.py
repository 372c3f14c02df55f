"""CPU and memory of collecting a job's raw files: they must grow with the number of nodes only.

python3 benchmarks/collect.py [--nodes 1000,10000]
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from measuring import TOP, Misuse, main, parser, table, temporary_folder

sys.path[:0] = [str(TOP), str(TOP / "tests" / "support")]

import stages_made  # noqa: E402  # a test's own raw files, from a recorded output

from siteproof.collect import stages  # noqa: E402
from siteproof.record import manifest  # noqa: E402

AIMS = "10 s, 200 MB of 10000"
AIM = 1.3  # times the CPU a node, from the smallest to the largest number of nodes


def benchmark() -> None:
    """Collect each kind of job once for each number of nodes, and print CPU a node."""
    options = parser(__doc__)
    options.add_argument("--nodes", default="1000,10000", help="numbers of nodes (1000,10000)")
    try:
        counts = sorted(int(number) for number in options.parse_args().nodes.split(","))
    except ValueError:
        raise Misuse("--nodes: whole numbers with commas between") from None
    rows = []
    with temporary_folder() as folder:
        for name, how in KINDS.items():
            first = 0.0
            for count in counts:
                cpu, memory = apart(how, folder / f"{name}-{count}", count)
                a_node = cpu / count
                first = first or a_node
                rows.append(
                    [name, str(count), f"{cpu:.2f} s", f"{memory:.0f} MB"]
                    + [f"{1000 * a_node:.2f} ms", f"{a_node / first:.2f} x", f"{AIM} x; {AIMS}"]
                )
    head = ["collecting", "nodes", "CPU", "memory", "a node", "of the fewest", "aim"]
    print(table(head, rows))


def apart(how: Callable[[Path, int], float], folder: Path, count: int) -> tuple[float, float]:
    """CPU seconds and highest memory in MB, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        cpu = pool.submit(how, folder, count).result()
        return cpu, pool.submit(highest_memory).result()


def highest_memory() -> float:
    """Of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def cpu_of(what: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    start = time.process_time()
    what()
    return time.process_time() - start


def all_there(folder: Path, count: int) -> float:
    """Every node has left its figures."""
    made = stages_made.of_nodes(folder, nodes=count)
    return cpu_of(lambda: stages.collect(made.stage, made.perflogs))


def none_there(folder: Path, count: int) -> float:
    """Only one of them has."""
    made = stages_made.of_nodes(folder, nodes=1)
    made.job.expected = f"n[1-{count}]"
    return cpu_of(lambda: stages.collect(made.stage, made.perflogs, ended="FAILED", job=made.job))


def all_refused(folder: Path, count: int) -> float:
    """Every node has left a link instead of its output."""
    made = stages_made.of_nodes(folder, nodes=count)
    for output in made.stage.glob("raw/*/stdout"):
        output.unlink()
        output.symlink_to("/dev/zero")
    return cpu_of(lambda: stages.collect(made.stage, made.perflogs))


def in_turns(folder: Path, count: int) -> float:
    """As many turns of two nodes as there are nodes, the second half missing."""
    made = stages_made.of_pairs(folder)
    made.job.turns = [(n, f"n{n % 50}", "s1") for n in range(count)]
    made.job.expected = "n[0-49],s1"
    for number in range(4, count // 2):
        client = made.result(f"{number:05d}", f"n{number % 50}", program="iperf3")
        made.run(client, 1, stages_made.recorded("iperf3/3.12-tcp"), direction="out")
        made.result(f"{number:05d}.server", "s1", program="iperf3")
    return cpu_of(lambda: stages.collect(made.stage, made.perflogs, job=made.job))


def lost_sessions(folder: Path, count: int) -> float:
    """As many lost sessions of one node, found and collected at a start."""
    for number in range(count // 10):
        stages_made.of_nodes(folder, f"Stream{number}", nodes=1)
    made = folder / "stage", folder / "perflogs"
    cpu = cpu_of(lambda: list(stages.collect_lost(*made)))
    assert not list(manifest.pending(made[0]))
    return cpu


KINDS = {
    "all there": all_there,
    "one there": none_there,
    "all refused": all_refused,
    "turns": in_turns,
    "lost sessions, a tenth": lost_sessions,
}

if __name__ == "__main__":
    main(benchmark)
