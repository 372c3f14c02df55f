"""Spack as a program: which one, whether it is the pinned release, and how it is run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.spack import env_files

LOG = "build.log"
_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")
# The configuration in a user's home is not the site's: each user's lock would differ.
_SETTINGS = {"SPACK_DISABLE_LOCAL_CONFIG": "1", "SPACK_COLOR": "never"}


class Failed(Exception):
    """Spack ended with an error; the text has the place and the reason, in one line."""


class Spack:
    """The Spack of this shell: on PATH, or below $SPACK_ROOT."""

    def __init__(self, program: str, version: str) -> None:
        self.program, self.version = program, version

    def run(self, folder: Path, *words: str, log: Path, line: Callable[[str], None]) -> None:
        """Run in an environment's folder; each line of its output is passed to `line`, and logged.

        Raises Failed. Ctrl-C is passed to Spack, and waits until it has cleaned up.
        """
        command = [self.program, "-D", str(folder), *words]
        with open(log, "a", encoding="utf-8", opener=files.no_link) as file:  # noqa: PTH123
            file.write(f"$ {' '.join(command)}\n")
            printed, code = _stream(command, folder, file.write, line)
        if code:
            raise Failed(f"{_reason(printed) or f'exit code {code}'}; see {log}")

    def ask(self, folder: Path, *words: str) -> str:
        """Spack's output for an environment. Raises Failed."""
        try:
            answer = subprocess.run(
                [self.program, "-D", str(folder), *words],
                capture_output=True,
                text=True,
                env=os.environ | _SETTINGS,
                timeout=600,
                check=True,
            )
        except subprocess.CalledProcessError as error:
            reason = harmless(_reason(error.stderr.splitlines()))
            raise Failed(f"spack {words[0]}: {reason or f'exit code {error.returncode}'}") from None
        except (OSError, subprocess.SubprocessError) as error:
            raise Failed(f"spack {words[0]}: {error}") from None
        return answer.stdout


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
        with _ctrl_c_later():  # or it could come before `process` is set
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=os.environ | _SETTINGS,
                text=True,
                errors="replace",
                cwd=folder,  # some recipes leave files in the current folder
            )
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


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Delay a Ctrl-C to the end; what is started meanwhile does not receive it."""
    came = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        came = True

    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # ignored, as by a shell's '&'; children ignore it, too
        yield
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _reason(printed: Sequence[str]) -> str:
    """The line in which Spack names the error, and the one after it."""
    for number, text in enumerate(printed):
        if text.startswith("==> Error:"):
            return " ".join([text.removeprefix("==> Error: "), *printed[number + 1 : number + 2]])
    return ""


def find(other: bool = False) -> Spack:
    """The Spack of this shell. Raises UserError, with the command that gets the pinned release.

    other: take another release, too.
    """
    root = os.environ.get("SPACK_ROOT", "")
    program = shutil.which("spack") or (root and shutil.which("spack", path=f"{root}/bin"))
    if not program:
        _refuse("not on PATH, and not below $SPACK_ROOT")
    try:
        answer = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            env=os.environ | _SETTINGS,
            timeout=120,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        _refuse(f"{program} does not run: {getattr(error, 'strerror', '') or 'no answer'}")
    found = _VERSION.match(answer.stdout.strip())
    if answer.returncode or not found:
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
