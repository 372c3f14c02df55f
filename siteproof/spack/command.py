"""Spack as a program: which one, whether it is the pinned release, and how it is run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.spack import env_files, registered

LOG = "build.log"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # HUP: the terminal was lost
_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")
_ERRORS, _LENGTH = 5, 200  # lines of a failed build that are printed, and characters of each
_PATH = 4096  # characters of the longest path on Linux
# Spack's progress: [mark] hash package step-or-prefix (time).
STEP = re.compile(r"\[(.)\] (\w{7}) (\S+) (.*?) ?(?:\((\d\S*)\))?")
_MARK = "> "  # how Spack marks the lines of a build's log that are errors

_NAMES_ERROR = re.compile(r"\berror\b|\bfailed\b|Error:", re.IGNORECASE)


class Failed(Exception):
    """Spack ended with an error: what failed in one line, and then the lines that say why."""

    def __init__(self, what: str, why: Sequence[str] = ()) -> None:
        self.why = list(why)
        super().__init__(what)


def settings() -> dict[str, str]:
    """The variables that Spack runs with; nothing of it is read or written in a user's home.

    The configuration in a home is not the site's: each user's lock would differ.
    """
    own = {"SPACK_DISABLE_LOCAL_CONFIG": "1", "SPACK_COLOR": "never"}
    kept = {"SPACK_USER_CACHE_PATH": str(registered.cache())}
    return kept | os.environ | own


class Spack:
    """The Spack of this shell: on PATH, or below $SPACK_ROOT."""

    def __init__(self, program: str, version: str) -> None:
        self.program, self.version = program, version

    def run(
        self, folder: Path, *words: str, line: Callable[[str], None] = lambda _text: None
    ) -> None:
        """Run in an environment's folder; each line of its output is passed to `line`, and logged.

        Raises Failed. Ctrl-C is passed to Spack, and waits until it has cleaned up.
        """
        command, log = [self.program, "-D", str(folder), *words], folder / LOG
        with open(log, "a", encoding="utf-8", opener=files.no_link) as file:  # noqa: PTH123
            file.write(f"$ {' '.join(command)}\n")
            printed, code = _stream(command, folder, file.write, line)
        if code:
            what, why = _failure(printed, code)
            raise Failed(what, [*why, f"all output: {log}"])

    def ask(self, folder: Path | None, *words: str) -> str:
        """Spack's output for an environment, or for none. Raises Failed."""
        where = ["-D", str(folder)] if folder else []
        return output(f"spack {words[0]}", self.program, *where, *words)


def output(what: str, *command: str) -> str:
    """What a command prints. what: its name in an error. Raises Failed."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            env=settings(),
            timeout=600,
            check=True,
        ).stdout
    except subprocess.CalledProcessError as error:
        lines = [harmless(text) for text in error.stderr.splitlines()]
        reason, why = _failure(lines, error.returncode)
        raise Failed(f"{what}: {reason}", why) from None
    except (OSError, subprocess.SubprocessError) as error:
        raise Failed(f"{what}: {error}") from None


def _stream(
    command: Sequence[str],
    folder: Path,
    write: Callable[[str], object],
    line: Callable[[str], None],
) -> tuple[list[str], int]:
    """Run it in a folder: all lines that it prints, passed on at once, and its exit code."""
    printed: list[str] = []
    process: subprocess.Popen[str] | None = None
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # or one could come before `process` is set
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=settings(),
            text=True,
            errors="replace",
            cwd=folder,  # some recipes leave files in the current folder
            preexec_fn=_hear,
        )
        _hear()
        for text in process.stdout or ():
            write(text)
            printed.append(harmless(text.rstrip("\n")))
            line(printed[-1])
        return printed, process.wait()
    except KeyboardInterrupt:
        if process:
            process.send_signal(signal.SIGINT)
            process.wait()
        raise


def _hear() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def _failure(printed: Sequence[str], code: int) -> tuple[str, list[str]]:
    """What failed, and the lines that say why.

    A failed build: the package and its phase, the lines of its log that Spack marks as errors, and
    where the log is. Anything else: the line in which Spack names the error, and those after it.
    """
    phases: dict[str, str] = {}
    for number, text in enumerate(printed):
        if not (step := STEP.fullmatch(text.strip())):
            continue
        mark, _, package, words, _ = step.groups()
        if mark == "x":
            what = f"{package} failed in its phase {phases.get(package, 'staging')}"
            log = words.removeprefix("failed").removeprefix(": ")
            of_log = [f"log of the package: {log[:_PATH]}"] if log else []
            return what, [*_error_lines(printed[number + 1 :]), *of_log]
        phases[package] = words
    for number, text in enumerate(printed):
        if text.startswith("==> Error:"):
            return text.removeprefix("==> Error: ")[:_LENGTH], _bounded(printed[number + 1 :])
    return f"exit code {code}", _bounded(printed[-_ERRORS:])


def _error_lines(printed: Sequence[str]) -> list[str]:
    """Of the part of a log that Spack prints: what it marks as errors, or else what names one."""
    part = [text for text in printed if not text.startswith(("==>", "-- lines"))]
    marked = [text.removeprefix(_MARK) for text in part if text.startswith(_MARK)]
    marked = [text for text in marked if text.strip()]
    named = [text for text in part if _NAMES_ERROR.search(text)]
    return _bounded(marked or named or part[-_ERRORS:])


def _bounded(lines: Iterable[str]) -> list[str]:
    """The first few of these lines, none of them long or empty, and how many more there are."""
    found = [text.strip()[:_LENGTH] for text in lines if text.strip()]
    more = [f"… and {len(found) - _ERRORS} more"] if len(found) > _ERRORS else []
    return found[:_ERRORS] + more


def find(other: bool = False) -> Spack:
    """The Spack of this shell. Raises UserError, with the command that gets the pinned release.

    other: take another release, too.
    """
    root = os.environ.get("SPACK_ROOT", "")
    program = shutil.which("spack") or (root and shutil.which("spack", path=f"{root}/bin"))
    if not program:
        _refuse("not on PATH, and not below $SPACK_ROOT")
    try:
        found = _VERSION.match(output(f"{program} --version", program, "--version").strip())
    except Failed as error:
        _refuse(str(error))
    if not found:
        _refuse(f"{program} --version prints no version")
    if found[0] != env_files.versions().release and not other:
        _refuse(
            f"{program} is {found[0]}, not {env_files.versions().release}",
            "; or use --other-spack to take this one",
        )
    return Spack(program, found[0])


def _refuse(what: str, more: str = "") -> NoReturn:
    pinned = env_files.versions().spack
    clone = f"git clone --depth 1 --branch {pinned.tag} {pinned.git}"
    raise UserError("spack", what, hint=f"Run '{clone} && . spack/share/spack/setup-env.sh'{more}")
