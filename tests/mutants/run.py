#!/usr/bin/env python3
"""What do the tests prove? Which mutants they kill, and which branches of each room they reach.

    python tests/mutants/run.py                   the mutants of list.tsv that were killed once
    python tests/mutants/run.py --all             also those that have survived
    python tests/mutants/run.py --only judge,gate/decision      those of some rooms or modules
    python tests/mutants/run.py --sample 1500     a new sample (--seed N) in place of the list, or
                                                  of what it has of the rooms of --only
    ... --measured DIR                            where the coverage is, or is kept
    ... --write                                   keep what came out in list.tsv and rooms.tsv

First all tests that need no test bed run once with coverage. Then they are loaded once; for each
mutant a copy of that process gets the mutated code and runs the tests that reach its line, the
fast ones first, to the first that fails. A mutant is `killed`, `survived`, `unreached` by any
test, or `gone` with its line. The exit code is 1 if one that was killed is not any more and its
row gives no reason, or if a room's coverage is lower by more than one point.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gc
import importlib
import os
import pkgutil
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType

import pytest
import sampled
from coverage import Coverage
from sampled import TOP, Mutant

ROOMS = Path(__file__).with_name("rooms.tsv")
SETTINGS = Path(__file__).with_name("coveragerc")
TESTS = ("tests/unit", "tests/command", "tests/golden")
KINDS = "not testbed and not slow and not long and not weekly and not services and not cloud"
SECONDS = 20.0  # of tests for one mutant, by what they took without it
LIMIT = 60  # s, after which a mutant has made a test hang, and is killed
AT_ONCE = 2
UNREACHED, SURVIVED = 3, 0  # exit codes of a copy; any other is a failed test
FEWER = 1.0  # points of a room's coverage that may go


# ---- coverage


class Times:
    """A plugin of pytest that keeps what each test took."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of a test has ended."""
        self.seconds[report.nodeid] += report.duration


def measure(folder: Path) -> None:
    """Run all tests with coverage; keep it and what each took."""
    folder.mkdir(parents=True, exist_ok=True)
    times = Times()
    os.environ["COVERAGE_FILE"] = str(folder / "coverage")
    code = pytest.main(
        [
            *("-q", "-n", str(AT_ONCE), "-p", "no:cacheprovider", "-m", KINDS, *TESTS),
            *("--cov=siteproof", "--cov-branch", "--cov-context=test", "--cov-report="),
            f"--cov-config={SETTINGS}",
        ],
        plugins=[times],
    )
    if code != pytest.ExitCode.OK:
        sys.exit("a test failed without a mutant")
    with (folder / "seconds").open("w", encoding="utf-8") as file:
        for name, seconds in times.seconds.items():
            file.write(f"{name}\t{seconds:.3f}\n")


def covered(data: Path) -> dict[str, float]:
    """Branches and lines reached, in percent, by room."""
    coverage = Coverage(data_file=str(data), config_file=str(SETTINGS))
    coverage.load()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted((TOP / "siteproof").rglob("*.py")):
        numbers = coverage._analyze(str(path)).numbers
        of = counts[sampled.room_of(str(path.relative_to(TOP)))]
        reached, all_ = numbers.ratio_covered
        of["reached"] += reached
        of["all"] += all_
    return {room: 100 * n["reached"] / max(n["all"], 1) for room, n in sorted(counts.items())}


# ---- which tests reach a mutant


class Reach:
    """Which tests reach which line."""

    def __init__(self, data: Path) -> None:
        self.tests: dict[tuple[str, int], set[str]] = defaultdict(set)
        connection = sqlite3.connect(data)
        found = connection.execute(
            "SELECT file.path, context.context, arc.fromno, arc.tono FROM arc"
            " JOIN file ON file.id = arc.file_id JOIN context ON context.id = arc.context_id"
        )
        for path, context, *arc in found:
            test = context.rpartition("|")[0]  # what follows is the phase
            file = path[path.rindex("/siteproof/") + 1 :]
            for line in arc:
                if line > 0 and test:
                    self.tests[file, line].add(test)
        connection.close()

    def of(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """Tests that reach its line, and those that reach only its function."""
        at = sampled.line_of(mutant)
        tree = ast.parse((TOP / mutant.file).read_text(encoding="utf-8"))
        function = sampled.function_at(tree, mutant.function, at)
        near, around = set(), set()
        for line in range(function.lineno, (function.end_lineno or at) + 1):
            around |= self.tests[mutant.file, line]
        for line in _statement(function, at):
            near |= self.tests[mutant.file, line]
        return sorted(near), sorted(around - near)


def _statement(function: ast.FunctionDef, at: int) -> range:
    """Lines of the innermost statement at a line; of a compound one up to that line."""
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    around = [node for node in statements if node.lineno <= at <= (node.end_lineno or 0)]
    inner = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno)
    last = at if hasattr(inner, "body") else inner.end_lineno or at
    return range(inner.lineno, last + 1)


# ---- mutated code


def patch(mutant: Mutant, functions: Sequence[FunctionType]) -> bool:
    """Give those of the functions that have the mutant's code the mutated one."""
    path = TOP / mutant.file
    made = sampled.mutated(mutant)
    assert made is not None
    old = compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)
    new = compile(made, str(path), "exec", dont_inherit=True)
    changed = {a: b for a, b in _pairs(old, new) if a != b and a is not old}
    done = False
    for function in functions:
        code = changed.get(function.__code__)
        if code and len(code.co_freevars) == len(function.__code__.co_freevars):
            function.__code__ = code
            done = True
    return done


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Code objects at the same place of two versions of a module."""
    yield old, new
    by_name = defaultdict(list)
    for code in new.co_consts:
        if isinstance(code, CodeType):
            by_name[code.co_name, code.co_firstlineno].append(code)
    for code in old.co_consts:
        if isinstance(code, CodeType):
            same = by_name[code.co_name, code.co_firstlineno]
            if same:
                yield from _pairs(code, same.pop(0))


class Runner:
    """A plugin of pytest that runs each mutant's tests in a copy of the loaded process."""

    def __init__(self, mutants: list[Mutant], folder: Path) -> None:
        self.mutants, self.reach = mutants, Reach(folder / "coverage")
        self.seconds = {}
        for line in (folder / "seconds").read_text(encoding="utf-8").splitlines():
            name, seconds = line.rsplit("\t", 1)
            self.seconds[name] = float(seconds)
        self.outcomes: dict[Mutant, str] = {}
        self.running: dict[int, tuple[Mutant, Path, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In a copy: the first failure decides."""
        if report.failed:
            os._exit(1)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running the tests one after the other."""
        items = {item.nodeid: item for item in session.items}
        _load_everything()
        functions = [thing for thing in gc.get_objects() if isinstance(thing, FunctionType)]
        ours = [f for f in functions if f.__code__.co_filename.startswith(str(TOP / "siteproof"))]
        gc.freeze()  # what is loaded stays shared between the copies
        for number, mutant in enumerate(self.mutants, 1):
            chosen = self.chosen(mutant, items)
            if not chosen:
                self.outcomes[mutant] = "unreached" if sampled.line_of(mutant) else "gone"
                continue
            while len(self.running) >= AT_ONCE:
                self._wait()
            folder = Path(tempfile.mkdtemp(prefix="mutant-"))
            pid = os.fork()
            if pid == 0:
                _run(session, mutant, chosen, folder, ours)
            self.running[pid] = mutant, folder, time.monotonic()
            if number % 50 == 0:
                told = dict(Counter(self.outcomes.values()))
                print(f"{number} of {len(self.mutants)}: {told}", file=sys.__stderr__, flush=True)
        while self.running:
            self._wait()
        return True

    def chosen(self, mutant: Mutant, items: dict[str, pytest.Item]) -> list[pytest.Item]:
        """The tests that reach the line, then some that reach the function, fast ones first."""
        if not sampled.line_of(mutant):
            return []
        found = []
        for names, most in zip(self.reach.of(mutant), (SECONDS, SECONDS / 4), strict=True):
            spent = 0.0
            mixed = random.Random(1).sample(names, len(names))  # of equally fast ones any
            for name in sorted(mixed, key=lambda n: round(self.seconds.get(n, 1.0), 1)):
                if name in items and spent < most:
                    spent += self.seconds.get(name, 1.0)
                    found.append(items[name])
        return found

    def _wait(self) -> None:
        """For one copy to end, or to have taken too long."""
        pid, status = os.waitpid(-1, os.WNOHANG)
        while not pid:
            for child, (_, _, begun) in self.running.items():
                if time.monotonic() - begun > LIMIT:
                    _end(child)
            time.sleep(0.02)
            pid, status = os.waitpid(-1, os.WNOHANG)
        if pid not in self.running:
            return
        mutant, folder, _ = self.running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        self.outcomes[mutant] = {SURVIVED: "survived", UNREACHED: "unreached"}.get(code, "killed")
        _end(pid)
        shutil.rmtree(folder, ignore_errors=True)


def _load_everything() -> None:
    """Modules that are imported late would be imported by each copy, and not be patched."""
    for module in pkgutil.walk_packages([str(TOP / "siteproof")], "siteproof."):
        with suppress(Exception):  # parts of it work inside ReFrame only
            importlib.import_module(module.name)
    for name in ("matplotlib.backends.backend_svg", "matplotlib.backends.backend_agg", "ruptures"):
        importlib.import_module(name)


def _run(
    session: pytest.Session,
    mutant: Mutant,
    chosen: list[pytest.Item],
    folder: Path,
    functions: Sequence[FunctionType],
) -> None:
    """In a copy: run the tests; the exit code is what became of the mutant."""
    os.setpgid(0, 0)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    made = session.config._tmp_path_factory  # type: ignore[attr-defined]
    made._basetemp = folder / "pytest"
    made._basetemp.mkdir()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    code = UNREACHED
    try:
        if patch(mutant, functions):
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            code = SURVIVED
    finally:
        os._exit(code)


def _end(pid: int) -> None:
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


# ---- the command


def main() -> int:
    """Run what was asked for; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="", metavar="ROOMS")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measured", type=Path, metavar="DIR", default=TOP / "output" / "covered")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    os.chdir(TOP)
    if not (asked.measured / "seconds").exists():
        measure(asked.measured)
    places = tuple(f"siteproof/{room}" for room in asked.only.split(","))
    known = sampled.read()
    if asked.sample:
        known = {m: row for m, row in known.items() if not m.file.startswith(places)}
        mutants = sampled.sample(asked.sample, asked.seed, places)
    else:
        listed = ((m, out) for m, (out, _) in known.items() if m.file.startswith(places))
        mutants = [m for m, outcome in listed if asked.all or outcome == "killed"]
    runner = Runner(mutants, asked.measured)
    loaded = ("-s", "-p", "no:cacheprovider", "-p", "no:xdist")
    pytest.main([*loaded, "-m", KINDS, *TESTS], plugins=[runner])
    fewer = _tell_coverage(covered(asked.measured / "coverage"), asked.write)
    return 1 if _tell(runner.outcomes, known, asked.write) + fewer else 0


def _tell_coverage(now: dict[str, float], keep: bool) -> int:
    """Print each room's coverage beside what is kept; how many rooms have less."""
    before = {}
    if ROOMS.exists():
        with ROOMS.open(encoding="utf-8", newline="") as file:
            before = {room: float(percent) for room, percent in csv.reader(file, delimiter="\t")}
    fewer = 0
    for room, percent in now.items():
        was = before.get(room, percent)
        is_less = percent < was - FEWER
        fewer += is_less
        print(f"{room:14} {percent:6.1f} % reached, before {was:6.1f} %{' LESS' * is_less}")
    if keep:
        with ROOMS.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, delimiter="\t", lineterminator="\n")
            rows.writerows((room, f"{percent:.1f}") for room, percent in now.items())
    return fewer


def _tell(outcomes: dict[Mutant, str], known: dict[Mutant, tuple[str, str]], keep: bool) -> int:
    """Print what became of the mutants, by room; how many of the killed ones are not any more."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, outcome in outcomes.items():
        rooms[mutant.room][outcome] += 1
        rooms["all"][outcome] += 1
    for room, counts in sorted(rooms.items()):
        print(f"{room:14}", "  ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    lost = 0
    for mutant, outcome in outcomes.items():
        before, reason = known.get(mutant, ("", ""))
        if before == "killed" and outcome != "killed" and not reason:
            lost += 1
            place = f"{mutant.file}:{sampled.line_of(mutant)} {mutant.function}"
            print(f"{outcome}: {place}: {mutant.before}  ->  {mutant.after}")
    print(f"{lost} that were killed are not any more")
    if keep:
        reasons = {mutant: known.get(mutant, ("", ""))[1] for mutant in outcomes}
        sampled.write(known | {m: (outcome, reasons[m]) for m, outcome in outcomes.items()})
    return lost


if __name__ == "__main__":
    sys.exit(main())
