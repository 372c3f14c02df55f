"""A small world for one test: sites and data of its own, and programs that lie first on PATH.

A program that is put there is a fault (or a recorded output); what it leads to is the doing of the
real ReFrame and the real siteproof.
"""

from __future__ import annotations

import fcntl
import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from unittest import mock

from recorded import OUTPUTS
from warm_reframe import AT_START, Warm

TOP = Path(__file__).resolve().parents[2]
FOREIGN = TOP / "tests/unit/history/foreign"  # what plain ReFrame has left
SITES = TOP / "tests/unit/sites/sites"
CORE = ("-n", "Hpl|Stream|HostParameters")  # the checks of thishost's criteria
SLOW_LIKWID = f"""
    case $2 in copy) sleep 1; cat '{OUTPUTS}/likwid/5.2.2-copy_avx.txt' ;;
    stream) cat '{OUTPUTS}/likwid/5.2.2-stream_avx.txt' ;; esac"""
# What steers a library, as a user may have exported it.
USER = {"OPENBLAS_CORETYPE": "Nehalem", "UCX_TLS": "tcp", "OMP_NUM_THREADS": "7"}
PROGRAMS = Path(sys.executable).parent
CLONE = ("checks", "siteproof", "reframe_settings.py", "site-config", "spack-envs")
# s, the one bound of what must happen at last: it costs nothing where all is well, and a busy
# machine is no defect. A test has a number of its own only where that number is what it tests.
PATIENCE = 300
# May read everything, as root's own Python may lie in root's home, and write nothing of others.
NOBODY = [
    "setpriv",
    "--reuid",
    "nobody",
    "--regid",
    "nogroup",
    "--clear-groups",
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=+dac_read_search",
]


class World:
    """One folder with sites/, data/, home/ and bin/, and commands that know no other.

    clone: whose checks and settings run. as_nobody: run as the user nobody, which only root can.
    """

    def __init__(self, folder: Path, clone: Path = TOP) -> None:
        self.folder, self.clone = folder, clone
        self.sites, self.data, self.bin = folder / "sites", folder / "data", folder / "bin"
        self.as_nobody = False
        for path in (self.sites, self.bin, folder / "home"):
            path.mkdir(exist_ok=True)
        # As many processors everywhere as the recorded outputs were measured with.
        self.fake("nproc", "echo 2")

    # ---- what is there

    def site(self, name: str = "thishost", **replaced: str) -> Path:
        """Copy a shipped site; replaced: files whose text is another, such as criteria."""
        folder = self.sites / name
        if not folder.exists():
            shutil.copytree(TOP / "site-config" / name, folder)
        for file, text in replaced.items():
            (folder / f"{file}.yaml").write_text(text, encoding="utf-8")
        return folder

    def edit(self, file: str, old: str, new: str, name: str = "thishost") -> None:
        """Replace a text in a file of a site; the text must be there."""
        path = self.site(name) / f"{file}.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{path} does not hold {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def fake(self, name: str, script: str) -> None:
        """Put a program first on PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def recorded_likwid(self) -> None:
        """likwid-bench as it was recorded."""
        self.fake(
            "likwid-bench",
            f"""
            case $2 in
            copy) cat '{OUTPUTS}/likwid/5.2.2-copy_avx.txt' ;;
            stream) cat '{OUTPUTS}/likwid/5.2.2-stream_avx.txt' ;;
            esac""",
        )

    def recorded_hpcc(self, name: str = "1.5.0-n3000_openblas", edit: str = "") -> None:
        """hpcc as it was recorded, with the block that the check asks for; edit: of sed."""
        self.fake("hpcc", "exit 3")
        self.fake(
            "mpirun",
            f"""
            sed -e 's/\\b128\\b/192/' {edit} '{OUTPUTS}/hpcc/{name}.txt' >hpccoutf.txt""",
        )

    def without(self, *programs: str) -> None:
        """A PATH in which these programs are not, whatever the machine has."""
        self.path = self.folder / "usr-bin"
        self.path.mkdir()
        for folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin"):
            for program in Path(folder).iterdir():
                link = self.path / program.name
                if program.name not in programs and not link.is_symlink():
                    link.symlink_to(program)

    path: Path | None = None
    checks = "checks/"  # what `reframe` loads; a part of it takes less time

    # ---- what is done

    def environment(self, **more: str) -> dict[str, str]:
        """What `. ./activate` sets, and a home and a temporary folder of the test's own."""
        rest = str(self.path) if self.path else "/usr/bin:/bin:/usr/sbin:/sbin"
        env = {
            "PATH": f"{self.bin}:{PROGRAMS}:{rest}",
            "HOME": str(self.folder / "home"),
            "PYTHONPATH": str(self.clone),
            "LANG": "C.UTF-8",
            "COLUMNS": "132",
            "SITEPROOF_CLONE": str(self.clone),
            "SITEPROOF_SITES": str(self.sites),
            "SITEPROOF_DATA": str(self.data),
            "SITEPROOF_SYSTEM": "thishost",
            "RFM_CONFIG_FILES": str(self.clone / "reframe_settings.py"),
            "RFM_COLORIZE": "n",
            "RFM_POLL_RATE_MAX": "20",
            "RFM_POLL_RATE_MIN": "20",
            "PYTHONDONTWRITEBYTECODE": "1",
            "MKLROOT": str(self.folder / "no-mkl"),  # one in the clone is not the test's
        }
        return {key: str(value) for key, value in (env | more).items() if value != "UNSET"}

    def start(self, *command: object, **variables: str) -> subprocess.Popen[str]:
        """Start a command in the clone."""
        return subprocess.Popen(
            [*(NOBODY if self.as_nobody else []), *map(str, command)],
            cwd=self.clone,
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )

    def run(self, *command: object, timeout: float = PATIENCE, **variables: str) -> Done:
        """Run a command in the clone to its end."""
        if command[0] == "reframe" and self.clone in LOADED and self.is_usual(variables):
            env = self.environment(**variables)
            words = [str(word) for word in command[1:]]
            try:
                return Done(*warm(self.clone).run(words, env, self.clone, timeout))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{command} took more than {timeout} s") from None
        process = self.start(*command, **variables)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"{command} took more than {timeout} s: {out}{err}") from None
        return Done(process.returncode, out, err)

    def is_usual(self, variables: dict[str, str]) -> bool:
        """Whether an interpreter that runs already is as good as a new one for a command."""
        return not self.as_nobody and not any(key.startswith(AT_START) for key in variables)

    def reframe(self, *words: object, **variables: str) -> Done:
        """`reframe -c checks/ WORDS…`."""
        return self.run("reframe", "-c", self.checks, *words, **variables)

    def siteproof(self, *words: object, **variables: str) -> Done:
        """`siteproof WORDS…`, in this process where that is the same; see `process`."""
        here = self.clone == TOP and self.is_usual(variables)
        return (self.inside if here else self.process)(*words, **variables)

    def process(self, *words: object, **variables: str) -> Done:
        """`siteproof WORDS…` in a process of its own, which takes three times as long."""
        return self.run("siteproof", *words, **variables)

    def inside(self, *words: object, **variables: str) -> Done:
        """`siteproof WORDS…` in this process."""
        from siteproof import cli

        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "oe")
        code: object = 0
        with (
            mock.patch.dict(os.environ, self.environment(**variables), clear=True),
            mock.patch.object(sys, "argv", ["siteproof", *map(str, words)]),
            mock.patch.object(sys, "stdin", io.StringIO()),
            mock.patch.object(import_module("siteproof.cli.plan"), "forked", self._described),
            redirect_stdout(out),
            redirect_stderr(err),
            chdir(self.clone),
        ):
            try:
                cli.main()
            except SystemExit as end:
                code = end.code or 0
        told = [stream.buffer.getvalue().decode() for stream in (out, err)]
        return Done(code, *told)

    def _described(self, command: list[str]) -> tuple[int, str, str]:
        """What `plan` runs, not in a copy of this process, which has loaded more than `plan`."""
        return warm(self.clone).run(command[1:], dict(os.environ), Path.cwd(), PATIENCE)

    def verdicts(self, *words: object) -> dict[str, str]:
        """Each criterion's verdict."""
        done = self.siteproof("verdict", "--json", *words)
        return {c["id"]: c["verdict"] for c in json.loads(done.out)["criteria"]}

    # ---- what became of it

    def samples(self) -> list[Path]:
        """The sample files."""
        return sorted((self.data / "perflogs").glob("*/*/*.jsonl"))

    def statuses(self) -> dict[str, str]:
        """Status of each failure, by metric; empty if every sample is good."""
        found = {}
        for path in self.samples():
            for line in path.read_text(encoding="utf-8").splitlines()[1:]:
                record = json.loads(line)
                if "status" in record:
                    found[record["metric"]] = record["status"]
        return found

    def processes(self) -> list[int]:
        """Processes that still work in this world's folder."""
        found = []
        for proc in Path("/proc").glob("[0-9]*"):
            try:
                if str(self.folder) in str((proc / "cwd").readlink()):
                    found.append(int(proc.name))
            except OSError:
                continue
        return found

    def end_processes(self) -> None:
        """End what a test has left behind."""
        for pid in self.processes():
            with suppress(ProcessLookupError):  # it may end by itself just now
                os.kill(pid, signal.SIGKILL)


class Done:
    """A command that has ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.out}\n{self.err}"

    @property
    def said(self) -> str:
        """Everything that it printed."""
        return self.out + self.err

    def refused(self) -> str:
        """The one line with which it refused, with exit code 2 and nothing run."""
        lines = [line for line in self.said.splitlines() if line.startswith("siteproof: ")]
        assert self.code == 2, self
        assert len(lines) == 1, self
        assert "Traceback" not in self.said, self
        assert "Running" not in self.out, self
        return lines[0]


LOADED = {TOP}  # the clones whose ReFrame is loaded once, and forked for each run
_warm: dict[tuple[Path, int], Warm] = {}


def warm(clone: Path) -> Warm:
    """The loaded ReFrame of this process, which is not that of one that it was forked from."""
    key = clone, os.getpid()
    if key not in _warm:
        _warm[key] = Warm(PROGRAMS / "reframe", clone)
    return _warm[key]


def wait_for(what, every: float = 0.02):
    """The first true answer of what(), asked again and again; every: seconds between two."""
    end = time.monotonic() + PATIENCE
    while not (answer := what()):
        assert time.monotonic() < end, f"{what} does not hold after {PATIENCE} s"
        time.sleep(every)
    return answer


def rises_above(least: float, rate, most: float = math.inf) -> None:
    """Measure until a rate is high enough: a busy machine can lower it, and nothing raises it."""

    def reached() -> bool:
        measured = rate()
        assert measured < most
        return measured > least

    wait_for(reached)


def before_others() -> list[str]:
    """What makes a program run before all others, as a busy machine would slow its rate; or []."""
    words = ["chrt", "--rr", "5"]
    try:
        done = subprocess.run([*words, "true"], capture_output=True)
    except FileNotFoundError:
        return []
    return [] if done.returncode else words


def measured_once(folder: Path, name: str, measure) -> tuple[Path, Done]:
    """The folder of a world that measure(world) has measured, and what that answered.

    folder: of all processes of a run of the tests; who comes first measures, the others wait.
    """
    folder.mkdir(exist_ok=True)
    top, told = folder / name, folder / f"{name}.json"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            shutil.rmtree(top, ignore_errors=True)
            top.mkdir()
            world = World(top)
            world.site()
            done = measure(world)
            told.write_text(json.dumps([done.code, done.out, done.err]))
    return top, Done(*json.loads(told.read_text()))


def copy_clone(folder: Path) -> Path:
    """A working tree of its own, as far as checks and settings go."""
    folder.mkdir()
    for name in CLONE:
        source = TOP / name
        if source.is_dir():
            # Compiled files too, but not those that another process writes just now.
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.pyc.*"))
        else:
            shutil.copy(source, folder)
    return folder


def reason(done):
    """The reason that ReFrame tells, in one line."""
    return next(line for line in done.out.splitlines() if "* Reason:" in line)
