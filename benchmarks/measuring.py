"""What the benchmarks share: CPU of a command with all its children, and tables.

    python3 measuring.py RESULT LOG SECONDS COMMAND…

runs a command and writes its cost into RESULT as JSON, so that it can be measured on a node of the
test bed, too.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

TOP = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent
REFRAME = TOP / ".venv" / "bin" / "reframe"
TICK = os.sysconf("SC_CLK_TCK")
GRACE = 60  # seconds that a command may take to clean up after SIGINT


class Misuse(Exception):
    """A mistake that the user can correct: printed in one line, exit code 2."""


@dataclass(frozen=True)
class Cost:
    """What a command took. Seconds; cpu is user and system time with all children waited for.

    own: the part of cpu that the command's first process used itself. cut: ended by the time limit.
    memory: the most that any one process held, in MB; at least what this process held when it
    began, so a benchmark makes large data in another process.
    """

    wall: float
    cpu: float
    own: float
    code: int
    cut: bool = False
    memory: float = 0.0

    @property
    def children(self) -> float:
        """CPU seconds of everything that the first process has started."""
        return max(0.0, self.cpu - self.own)


def measure(
    command: Sequence[object], env: Mapping[str, str], log: Path, limit: float = 900
) -> Cost:
    """Run a command to its end, or end it after `limit` seconds; its output goes to `log`."""
    start = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(word) for word in command],
            env=env,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            cut = not _ends_within(process.pid, limit)
            if cut:
                _end(process.pid)
        except BaseException:
            _end(process.pid)
            process.wait()
            raise
        own = _own_cpu(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    cpu, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000
    return Cost(wall, cpu, own, process.returncode, cut, memory)


def _ends_within(pid: int, seconds: float) -> bool:
    """Wait for a child without burying it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return True
        time.sleep(0.02)
    return False


def _end(pid: int) -> None:
    for number, patience in ((signal.SIGINT, GRACE), (signal.SIGKILL, GRACE)):
        os.kill(pid, number)
        if _ends_within(pid, patience):
            return


def _own_cpu(pid: int) -> float:
    """CPU seconds of one process that has ended, without its children."""
    return sum(map(int, stat_fields(pid)[11:13])) / TICK


def stat_fields(pid: int | str) -> list[str]:
    """/proc/PID/stat after the name, which is in brackets and may hold blanks."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


@contextmanager
def worktree(commit: str, folder: Path) -> Iterator[Path]:
    """The suite as it was at a commit; it uses this clone's .venv."""
    git = ["git", "-C", TOP, "worktree"]
    made = subprocess.run(
        [*git, "add", "--quiet", "--detach", folder, commit], stderr=subprocess.PIPE, text=True
    )
    if made.returncode:
        raise Misuse(made.stderr.strip().splitlines()[-1])
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", folder], check=False)


def must(cost: Cost, log: Path, what: str) -> Cost:
    """The cost of a command that succeeded. Raises Misuse with its last line otherwise."""
    if cost.code:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise Misuse(f"{what} ended with {cost.code}: {(lines or ['no output'])[-1]}")
    return cost


def clean_environment(folder: Path, **more: object) -> dict[str, str]:
    """An environment without the user's settings of ReFrame, Slurm and Siteproof."""
    (folder / "home").mkdir(exist_ok=True)
    env = {
        "PATH": f"{REFRAME.parent}:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": folder / "home",
        "LANG": "C.UTF-8",
        "RFM_COLORIZE": "n",
        **more,
    }
    return {key: str(value) for key, value in env.items()}


def ours(folder: Path, clone: Path = TOP, **more: object) -> dict[str, str]:
    """What `. ./activate` sets, with a data folder of its own."""
    return clean_environment(
        folder,
        SITEPROOF_CLONE=clone,
        SITEPROOF_SITES=clone / "site-config",
        SITEPROOF_DATA=folder,
        RFM_CONFIG_FILES=clone / "reframe_settings.py",
        **more,
    )


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that all nodes of a test bed see; it goes however this ends, also with SIGTERM."""
    signal.signal(signal.SIGTERM, _exit)
    with TemporaryDirectory(prefix="siteproof-benchmark.", dir="/var/tmp") as name:
        yield Path(name)


def _exit(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Misuse(message)


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the benchmark's first words."""
    return _Parser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def main(benchmark: Callable[[], None]) -> NoReturn:
    """Run a benchmark; misuse is one line and 2, Ctrl-C is silent and 130."""
    try:
        if not REFRAME.exists():
            raise Misuse(f"no {REFRAME}: 'make venv' makes it")
        benchmark()
    except Misuse as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines with the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _on_a_node(result: str, log: str, seconds: str, *command: str) -> None:
    cost = measure(command, os.environ, Path(log), float(seconds))
    Path(result).write_text(json.dumps(asdict(cost)), encoding="utf-8")


def read(result: Path) -> Cost:
    """What `python3 measuring.py RESULT …` has left."""
    raw: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return Cost(**raw)


if __name__ == "__main__":
    _on_a_node(*sys.argv[1:])
