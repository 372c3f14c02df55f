"""A query over all history: ReFrame's results database compared with Siteproof's store.

    .venv/bin/python benchmarks/reframe_query.py [--cases 36500,200000] [--rounds 3]

Sessions of 100 test cases (20 nodes, 5 tests with two performance variables) have the form of
ReFrame 4.10's run report. ReFrame's own code puts them into its sqlite database, and the same
reports lie below perflogs as imported ones. Both are queried for the median of every variable of
every test over all time: `reframe --list-stored-testcases` and `siteproof history --sql`, whole
commands with their start. Siteproof's store is up to date, as the database is; what bringing it up
to date has cost stands apart, as does the filling of the database.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

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

AIM = 20.0
SYSTEM, NODES, TESTS, A_SESSION = "thishost", 20, 5, 100
VARIABLES = (("copy", 24_000.0), ("triad", 25_000.0))
START, DAY = 1_600_000_000.0, 86_400.0
CONFIGURATION = """
site_configuration = {{
    "systems": [{{"name": "thishost", "hostnames": [".*"], "partitions": [{{
        "name": "compute", "scheduler": "local", "launcher": "local", "environs": ["gnu"]}}]}}],
    "environments": [{{"name": "gnu"}}],
    "storage": [{{"enable": True, "sqlite_db_file": {database!r}}}],
    "general": [{{"remote_detect": False}}],
}}
"""
FILL = """
import json, sys
from pathlib import Path
from reframe.core import config, runtime
from reframe.frontend.reporting.storage import StorageBackend
runtime.init_runtime(config.load_config(sys.argv[1]))
backend = StorageBackend.default()
for path in sorted(Path(sys.argv[2]).glob("*.json")):
    backend.store(json.loads(path.read_text()), str(path))
"""
ALL_TIME = "20000101T0000+0000:now/median:/"
QUERY = """
SELECT check_name || ' %size=' || (dims ->> 'size') AS name, split_part(metric, '.', 2) AS pvar,
       median(value) AS pval FROM samples WHERE status = 'ok' GROUP BY ALL ORDER BY ALL"""


def sessions(cases: int) -> Iterator[dict[str, object]]:
    """Run reports with so many cases, always the same ones."""
    draw = random.Random(1)
    for number in range(-(-cases // A_SESSION)):
        start = START + DAY * number / 8
        uuid = f"00000000-0000-4000-8000-{number:012d}"
        yield {
            "session_info": {
                "data_version": "4.2",
                "hostname": "login1",
                "uuid": uuid,
                "version": "4.10.4",
                "time_start": f"{datetime.fromtimestamp(start, UTC):%Y%m%dT%H%M%S+0000}",
                "time_start_unix": start,
                "time_end_unix": start + 600,
                "time_elapsed": 600.0,
                "time_end": f"{datetime.fromtimestamp(start + 600, UTC):%Y%m%dT%H%M%S+0000}",
                "config_files": ["<builtin>"],
                "num_cases": A_SESSION,
                "num_failures": 0,
            },
            "runs": [
                {
                    "num_cases": A_SESSION,
                    "num_failures": 0,
                    "num_aborted": 0,
                    "num_skipped": 0,
                    "run_index": 0,
                    "testcases": [_case(draw, number, i, start, uuid) for i in range(A_SESSION)],
                }
            ],
            "restored_cases": [],
        }


def _case(draw: random.Random, number: int, i: int, start: float, uuid: str) -> dict[str, object]:
    test, node = i % TESTS, f"node{i // TESTS:03d}"
    name, ended = f"StreamTest %size={test}", start + 5.0 * i + 5
    values = {
        f"{SYSTEM}:compute:{var}": [
            round(level * draw.gauss(1 + test / 10, 0.01), 1),
            level,
            -0.2,
            None,
            "MB/s",
            "pass",
        ]
        for var, level in VARIABLES
    }
    # Further keys of a case of ReFrame 4.10: their size is part of what both have to read.
    filling = {
        key: None
        for key in (
            "build_jobid",
            "build_stderr",
            "build_stdout",
            "fail_phase",
            "fail_reason",
            "sourcesdir",
            "build_time_limit",
            "max_pending_time",
            "num_gpus_per_node",
            "num_tasks_per_core",
            "num_tasks_per_node",
            "num_tasks_per_socket",
            "time_limit",
            "use_multithreading",
        )
    }
    lists = {
        key: []
        for key in (
            "dependencies_actual",
            "dependencies_conceptual",
            "keep_files",
            "maintainers",
            "modules",
            "postbuild_cmds",
            "postrun_cmds",
            "prebuild_cmds",
            "prerun_cmds",
            "readonly_files",
            "tags",
        )
    }
    return (
        filling
        | lists
        | {
            "environ": "gnu",
            "filename": "/home/user/checks/stream.py",
            "fixture": False,
            "job_completion_time": f"{datetime.fromtimestamp(ended, UTC):%Y-%m-%dT%H:%M:%S+00:00}",
            "job_completion_time_unix": ended,
            "job_stderr": "rfm_job.err",
            "job_exitcode": 0,
            "job_stdout": "rfm_job.out",
            "partition": "compute",
            "result": "pass",
            "run_index": 0,
            "scheduler": "local",
            "session_uuid": uuid,
            "time_compile": 0.01,
            "time_run": 4.0,
            "time_performance": 0.01,
            "time_sanity": 0.01,
            "time_setup": 0.02,
            "time_total": 5.0,
            "uuid": f"{uuid}:0:{i}",
            "outputdir": "/home/user/output/thishost/compute/gnu/StreamTest",
            "job_nodelist": [node],
            "job_submit_time": start,
            "jobid": str(100 * number + i),
            "system": SYSTEM,
            "build_locally": True,
            "descr": "Bandwidth of every node",
            "display_name": name,
            "env_vars": {},
            "exclusive_access": False,
            "executable": "stream",
            "executable_opts": [],
            "extra_resources": {},
            "hashcode": f"a414{test:04d}",
            "local": False,
            "name": name,
            "num_cpus_per_task": 4,
            "num_tasks": 1,
            "perfvalues": values,
            "prefix": "/home/user/checks",
            "size": test,
            "sourcepath": "",
            "short_name": f"StreamTest_a414{test:04d}",
            "unique_name": f"StreamTest_{test}",
            "stagedir": "/home/user/stage/thishost/compute/gnu/StreamTest",
            "strict_check": True,
            "valid_prog_environs": ["*"],
            "valid_systems": ["*"],
            "variables": {},
        }
    )


def one(folder: Path, cases: int, rounds: int) -> list[list[str]]:
    """Rows of the table for a number of cases."""
    reports = folder / "perflogs" / SYSTEM / "imported"
    reports.mkdir(parents=True)
    for number, report in enumerate(sessions(cases)):
        (reports / f"{number:06d}.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    settings = folder / "settings.py"
    settings.write_text(CONFIGURATION.format(database=str(folder / "results.db")))
    env = ours(folder, SITEPROOF_CACHE=folder / "cache", PYTHONPATH=TOP)
    del env["RFM_CONFIG_FILES"]
    filled = _run([REFRAME.parent / "python", "-c", FILL, settings, reports], env, folder / "fill")
    theirs = [REFRAME, "-C", settings, f"--list-stored-testcases={ALL_TIME}"]
    mine = [REFRAME.parent / "siteproof", "history", "--csv", "--sql", QUERY]
    first = _run(mine, env, folder / "mine")
    cost: dict[str, list[float]] = {"theirs": [], "mine": []}
    for _ in range(rounds):
        cost["theirs"].append(_run(theirs, env, folder / "theirs").cpu)
        cost["mine"].append(_run(mine, env, folder / "mine").cpu)
    _same(folder)
    his, my = median(cost["theirs"]), median(cost["mine"])
    return [
        [
            str(cases),
            f"{his:.2f}",
            f"{my:.2f}",
            f"{his / my:.1f}",
            f"{filled.cpu:.1f}",
            f"{first.cpu - my:.1f}",
        ]
    ]


def _run(command: Sequence[object], env: dict[str, str], log: Path) -> Cost:
    return must(measure(command, env, log), log, Path(str(command[0])).name)


def _same(folder: Path) -> None:
    """Both must have answered the same."""
    lines = re.findall(
        r"^[│|]\s*(StreamTest %size=\d+)\s*[│|].*?[│|]\s*(\w+)\s*[│|]\s*MB/s\s*[│|]"
        r"\s*([0-9.]+)",
        (folder / "theirs").read_text(encoding="utf-8"),
        re.M,
    )
    text = (folder / "mine").read_text(encoding="utf-8")
    rows = [(r["name"], r["pvar"], r["pval"]) for r in csv.DictReader(io.StringIO(text))]
    wanted, found = ({(n, p, f"{float(v):.4g}") for n, p, v in held} for held in (lines, rows))
    if wanted != found or len(found) != TESTS * len(VARIABLES):
        raise Misuse(f"the answers differ: {sorted(wanted)} and {sorted(found)}")


def benchmark(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    options = parser(__doc__)
    options.add_argument("--cases", default="36500,200000")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args(arguments)
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", given.cases) or given.rounds < 1:
        raise Misuse("--cases: numbers with commas between; --rounds: a number from 1")
    rows = []
    for cases in map(int, given.cases.split(",")):
        with temporary_folder() as folder:
            rows += one(folder, cases, given.rounds)
            print(f"{cases} cases measured", file=sys.stderr)
    print(
        table(
            [
                "cases",
                "ReFrame CPU s",
                "Siteproof CPU s",
                "ratio",
                "filling its database",
                "bringing ours up to date",
            ],
            rows,
        )
    )
    print(f"aim: {AIM:g} times; median of {given.rounds}, whole commands")


if __name__ == "__main__":
    main(benchmark)
