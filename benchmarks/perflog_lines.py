"""What reading ReFrame's perflogs costs: ours compared with pandas, on generated lines.

    .venv/bin/python benchmarks/perflog_lines.py [--lines 1000000] [--pandas PYTHON] [--rounds 3]

The lines have ReFrame 4.10's default format, about 325 bytes each, with one performance variable,
320 nodes and 24 tests. Each reader is a process of its own on one thread: its CPU seconds are those
of the reading, without the start of Python and the import of libraries, its memory is the highest
of the whole process. pandas is no part of Siteproof. It needs an environment of its own:

    python3 -m venv /tmp/pandas && /tmp/pandas/bin/pip install pandas
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from measuring import TOP, Misuse, main, parser, table, temporary_folder

AIM = 4.0  # times pandas with expansion
DEFAULT, NODES, TESTS, START = 1_000_000, 320, 24, 1_700_000_000
NAMES = (
    "result|job_completion_time|descr|env_vars|environ|exclusive_access|extra_resources|"
    "job_completion_time_unix|job_exitcode|job_nodelist|job_submit_time|jobid|modules|name|"
    "num_cpus_per_task|num_gpus_per_node|num_tasks|num_tasks_per_core|num_tasks_per_node|"
    "num_tasks_per_socket|partition|{v}_value|{v}_unit|{v}_ref|{v}_lower_thres|{v}_upper_thres|"
    "short_name|system|unique_name|use_multithreading"
)
LINE = (
    "{result}|{local}|Memory bandwidth of every node, best of ten repetitions|"
    '{{"OMP_NUM_THREADS": "{threads}", "OMP_PLACES": "cores"}}|gnu-13|false|{{}}|{ended}|0|{node}|'
    "{begun}|{job}||StreamTest %threads={threads} %size={size}|{threads}|null|1|null|1|null|"
    "compute|{value}|MB/s|250000.0|-0.05|None|StreamTest_{code:08x}|oldsys|StreamTest_{test}|null"
)
CLOCK = """
import resource, sys
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def end(before, rows, total):
    used = cpu() - before
    top = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(used, top, rows, total)
"""
OURS = (
    CLOCK
    + """
from pathlib import Path
from siteproof import history
from siteproof.history import tables
from siteproof.history.foreign import figures, formats
connection = history.connect()
connection.execute("SET threads = 1")
tables.clear(connection)
start = cpu()
reader = formats.Reader(connection)
reader.add(figures.File(Path(sys.argv[1]), site="oldsys"))
reader.flush()
found = connection.execute("SELECT count(*), sum(value) FROM new_samples").fetchone()
end(start, *found)
"""
)
PLAIN = (
    CLOCK
    + """
import pandas
start = cpu()
held = pandas.read_csv(sys.argv[1], sep="|")
end(start, len(held), held["triad_value"].sum())
"""
)
# What the post-processing of ExCALIBUR's tests does to a perflog: the test's name is split into the
# test and its parameters, and each object of key and value becomes columns, Python object by
# Python object; then one row a variable.
EXPANDED = (
    CLOCK
    + """
import json
import pandas
def parameters(name):
    test, *pairs = name.split(" %")
    return {"test_name": test, **dict(pair.split("=") for pair in pairs)}
start = cpu()
held = pandas.read_csv(sys.argv[1], sep="|")
for column, expand in (("name", parameters), ("extra_resources", json.loads),
                       ("env_vars", json.loads)):
    found = held[column].map(expand)
    for key in dict.fromkeys(key for row in found for key in row):
        held[key] = [row.get(key) for row in found]
    held = held.drop(columns=column)
names = [c.removesuffix("_value") for c in held.columns if c.endswith("_value")]
own = [c for c in held.columns if c.startswith(tuple(f"{n}_" for n in names))]
held = pandas.concat([
    held.drop(columns=own).assign(variable=n, value=held[f"{n}_value"], unit=held[f"{n}_unit"])
    for n in names], ignore_index=True)
held["job_completion_time"] = pandas.to_datetime(held["job_completion_time"])
end(start, len(held), held["value"].sum())
"""
)


def write(path: Path, lines: int) -> None:
    """A perflog of so many lines, always the same ones."""
    draw = random.Random(1)
    with path.open("w", encoding="ascii") as stream:
        stream.write(NAMES.format(v="triad") + "\n")
        for i in range(lines):
            test = i // NODES % TESTS
            threads, size = 1 << test % 8, 10**7 * (1 + test // 8)
            ended = START + 31.25 * i + draw.random()
            value = round(250_000 * draw.gauss(1, 0.01), 1)
            local = datetime.fromtimestamp(ended, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            stream.write(
                LINE.format(
                    result="pass" if value > 237_500 else "fail",
                    local=local,
                    threads=threads,
                    size=size,
                    ended=ended,
                    node=f"node{i % NODES:03d}",
                    begun=ended - 31.5,
                    job=100_000 + i,
                    value=value,
                    code=test * 2654435761 % 2**32,
                    test=test,
                )
                + "\n"
            )


def run(python: Path, script: str, path: Path) -> tuple[float, float, int, float]:
    """CPU seconds, memory in MB, rows, and the sum of all values."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(TOP)}
    done = subprocess.run([python, "-c", script, path], env=env, capture_output=True, text=True)
    if done.returncode:
        raise Misuse(f"{python}: {done.stderr.strip().splitlines()[-1:]}")
    used, top, rows, total = done.stdout.split()
    return float(used), float(top), int(rows), float(total)


def benchmark(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    options = parser(__doc__)
    options.add_argument("--lines", type=int, default=DEFAULT)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--pandas", type=Path, help="the Python of an environment with pandas")
    given = options.parse_args(arguments)
    if given.lines < 1 or given.rounds < 1:
        raise Misuse("--lines and --rounds: a number from 1")
    mine = TOP / ".venv" / "bin" / "python"
    readers = [("Siteproof, lines into the store's tables", mine, OURS)]
    if given.pandas:
        readers += [
            ("pandas, read_csv", given.pandas, PLAIN),
            ("pandas, expanded as by ExCALIBUR", given.pandas, EXPANDED),
        ]
    with temporary_folder() as folder:
        path = folder / "StreamTest.log"
        write(path, given.lines)
        print(
            f"{given.lines} lines, {path.stat().st_size / 1e6:.0f} MB; "
            f"median of {given.rounds} rounds, one after the other"
        )
        found: dict[str, list[tuple[float, float, int, float]]] = {}
        for _ in range(given.rounds):
            for name, python, script in readers:
                found.setdefault(name, []).append(run(python, script, path))
    _same(found)
    _print(found, given.lines)


def _same(found: dict[str, list[tuple[float, float, int, float]]]) -> None:
    """All readers must have read the same."""
    rows = {(r[2], f"{r[3]:.9g}") for runs in found.values() for r in runs}
    if len(rows) != 1:
        raise Misuse(f"the readers differ: {json.dumps(sorted(map(str, rows)))}")


def _print(found: dict[str, list[tuple[float, float, int, float]]], lines: int) -> None:
    cpu = {name: median(r[0] for r in runs) for name, runs in found.items()}
    last = list(cpu)[-1]
    told = [
        [
            name,
            f"{used:.2f}",
            f"{lines / used / 1e6:.2f}",
            f"{max(r[1] for r in found[name]):.0f}",
            f"{cpu[last] / used:.1f}",
        ]
        for name, used in cpu.items()
    ]
    print(table(["reader", "CPU s", "M lines a core-s", "memory MB", f"times {last}"], told))
    print(f"aim: {AIM:g} times pandas with expansion")


if __name__ == "__main__":
    main(benchmark)
