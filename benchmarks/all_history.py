"""One question to all that was ever measured: ReFrame's own results database, and our history.

    .venv/bin/python benchmarks/all_history.py [--cases 36500,200000]

ReFrame runs one test with its storage switched on; its report is then stored once a day of a year,
with as many cases of ten tests on other nodes, at other times and with other values. The same
reports lie in a folder of imported files, which `siteproof history` reads. Both are then asked for
the mean of each test over all of its history, and must give the same answer.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import re
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from history import SITEPROOF, run
from measuring import HERE, REFRAME, Misuse, main, parser, table, temporary_folder

AIM = 20  # times
DAYS, TESTS, DAY = 365, 10, 86_400
QUESTION = "19700101T000000+0000:now/mean:/"
SQL = """
SELECT check_name, partition, environment, metric, unit, avg(value) AS mean FROM samples
WHERE source = 'reframe' GROUP BY ALL ORDER BY metric"""
_SETTINGS = "site_configuration = {{'storage': [{{'enable': True, 'sqlite_db_file': {!r}}}]}}\n"


def sessions(first: Mapping[str, Any], cases: int) -> Iterator[dict[str, Any]]:
    """A report a day, with the cases shared out over the days."""
    chance, info = random.Random(cases), first["session_info"]
    for day in range(DAYS):
        count = cases * (day + 1) // DAYS - cases * day // DAYS
        name, shift = str(uuid.UUID(int=chance.getrandbits(128))), (DAYS - day) * DAY
        head = {**info, "uuid": name, "num_cases": count}
        for key in ("time_start_unix", "time_end_unix"):
            head[key] = info[key] - shift
        run_of_all = {**first["runs"][0], "num_cases": count, "testcases": [
            _case(first["runs"][0]["testcases"][0], name, number, shift, chance)
            for number in range(count)]}
        yield {**first, "session_info": head, "runs": [run_of_all]}


def _case(
    first: Mapping[str, Any], session: str, number: int, shift: float, chance: random.Random
) -> dict[str, Any]:
    test, ended = f"Stored{number % TESTS}", first["job_completion_time_unix"] - shift + number
    values = copy.deepcopy(first["perfvalues"])
    for value in values.values():
        value[0] = round(1000 * (1 + number % TESTS) * chance.gauss(1, 0.01), 3)
    return {**first, "name": test, "unique_name": test, "display_name": test, "short_name": test,
            "session_uuid": session, "uuid": f"{session}:0:{number}", "jobid": str(number),
            "job_nodelist": [f"n{number // TESTS:03}"], "job_completion_time_unix": ended,
            "perfvalues": values}


def store(database: Path, imported: Path, first: Mapping[str, Any], cases: int) -> None:
    """Put the sessions into ReFrame's database, in its own form, and into a folder."""
    imported.mkdir(parents=True)
    with sqlite3.connect(database) as base:
        base.execute("DELETE FROM testcases")
        base.execute("DELETE FROM sessions")
        for day, report in enumerate(sessions(first, cases)):
            info, text = report["session_info"], json.dumps(report)
            base.execute("INSERT INTO sessions VALUES(?, ?, ?, ?, ?)", (
                info["uuid"], info["time_start_unix"], info["time_end_unix"], text, ""))
            base.executemany("INSERT INTO testcases VALUES(?, ?, ?, ?, ?, ?, ?)", [
                (c["name"], c["system"], c["partition"], c["environ"],
                 c["job_completion_time_unix"], info["uuid"], c["uuid"])
                for c in report["runs"][0]["testcases"]])
            (imported / f"run-report-{day:03}.json").write_text(text)
    base.close()


def compare(folder: Path, cases: int) -> list[list[str]]:
    """Ask both, and what it took. Raises Misuse where the answers differ."""
    folder.mkdir()
    database, settings = folder / "results.db", folder / "settings.py"
    settings.write_text(_SETTINGS.format(str(database)))
    run(folder, REFRAME, "-C", settings, "-c", HERE / "plain" / "stored.py", "-r",
        "--report-file", folder / "report.json", "--prefix", folder)
    first = json.loads((folder / "report.json").read_text())
    store(database, folder / "perflogs" / "plain" / "imported", first, cases)
    theirs = run(folder, REFRAME, "-C", settings, f"--list-stored-testcases={QUESTION}")
    begin = run(folder, SITEPROOF, "history", "--json")
    ours = run(folder, SITEPROOF, "history", "--csv", "--sql", SQL)
    _must_be_same(theirs.out, ours.out)
    return [
        [f"{cases:,} cases: ReFrame {first['session_info']['version']}", *theirs.cells, ""],
        ["  Siteproof, its first reading of all reports", *begin.cells, ""],
        ["  Siteproof", *ours.cells, f"{theirs.wall / ours.wall:.0f} and "
         f"{theirs.cpu / ours.cpu:.0f} times, aim {AIM}"]]


def _must_be_same(theirs: str, ours: str) -> None:
    found = {name: float(mean) for name, mean in re.findall(
        r"(Stored\d+) .*[│|]\s*([0-9.e+]+)\s*[│|]\s*$", theirs, re.MULTILINE)}
    mine = {row["check_name"]: float(row["mean"]) for row in csv.DictReader(io.StringIO(ours))}
    if len(mine) != TESTS or found.keys() != mine.keys() or any(
            abs(found[name] - mean) > 1e-5 * mean for name, mean in mine.items()):
        raise Misuse(f"two answers: {found} and {mine}")


def benchmark() -> None:
    """Measure, and print."""
    options = parser(__doc__)
    options.add_argument("--cases", default="36500,200000", help="of all days (36500,200000)")
    given = options.parse_args().cases.split(",")
    if not all(text.isdigit() and int(text) >= DAYS * TESTS for text in given):
        raise Misuse(f"--cases: numbers with commas between, each at least {DAYS * TESTS}")
    rows = []
    with temporary_folder() as folder:
        for text in given:
            rows += compare(folder / text, int(text))
    print(table(["", "wall", "CPU", "memory", "wall and CPU, less by"], rows))


if __name__ == "__main__":
    main(benchmark)
