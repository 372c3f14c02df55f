"""The steps of `siteproof evening`: a child process each, a line each, and all output in a file."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile

import click

from siteproof import files, installed
from siteproof.cli.records import INDENT, print_wrapped
from siteproof.cli.shared import print_text
from siteproof.errors import ExitCode, harmless
from siteproof.gate import children
from siteproof.wording.amounts import shorten

FIRST, OFTEN = 10, 10  # seconds until progress is shown, and between two lines on a terminal
MAX_LINE = 300  # characters of an answer in the line of its step
NEXT = "; next: "  # the answer of a command ends here; the evening has one next command
# A line of ReFrame: how a check ended, of how many, and its name.
_ENDED = re.compile(r"^\[ +(OK|FAIL|SKIP) \] \( *\d+/(\d+)\) (.+?)(?: /[0-9a-f]+)? @", re.MULTILINE)


class Stopped(Exception):
    """A step failed, and the next has no ground. The text is the reason."""

    def __init__(self, why: str, code: ExitCode) -> None:
        super().__init__(why)
        self.code = code


class Screen:
    """What a person sees, which the log has, too. folder: of the campaign's report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.live = sys.stdout.isatty()
        self.path = folder / f"evening-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.log"
        files.write(self.path, b"", below=files.folder())
        self.log = files.no_link(str(self.path), os.O_RDWR | os.O_APPEND)

    def line(self, text: str, *, whole: bool = False) -> None:
        """A line that stays. whole: never broken, as it is to copy."""
        self.note(text)
        self._clear()
        (print_text if whole else print_wrapped)(text)
        sys.stdout.flush()

    def progress(self, text: str) -> None:
        """A line that the next one replaces on a terminal."""
        width = shutil.get_terminal_size().columns - 1
        self._clear()
        click.echo(harmless(text)[: width if self.live else MAX_LINE], nl=not self.live)
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """A line of the log alone."""
        os.write(self.log, f"{harmless(text)}\n".encode())

    def size(self) -> int:
        """Bytes of the log so far."""
        return os.fstat(self.log).st_size

    def since(self, begin: int) -> str:
        """What the log has got since it had so many bytes."""
        return os.pread(self.log, self.size() - begin, begin).decode(errors="replace")

    def _clear(self) -> None:
        if self.live:
            click.echo("\r\x1b[K", nl=False)


class Steps:
    """Runs the steps. received: of children.noted(). again: how to go on after an end."""

    def __init__(self, screen: Screen, received: Sequence[int]) -> None:
        self.screen, self.received = screen, received
        self.again: Sequence[str] = ()
        self.name = ""

    def do(
        self,
        name: str,
        argv: Sequence[str],
        good: Collection[int],
        summary: Callable[[str], str] = lambda printed: answer(printed),
        progress: Callable[[], str] = lambda: "",
    ) -> str:
        """A step. Returns the line that answers it: summary(output).

        good: the exit codes after which the next step has ground. progress: what it does just now.
        Raises Stopped, Interrupted.
        """
        self.name, start = name, time.monotonic()
        line = summary(self.round(argv, good, self.follow(name, progress)))
        self.ended(name, start, line)
        return line

    def follow(self, name: str, progress: Callable[[], str]) -> Callable[[], None]:
        """What shows how far a step is, which may be several rounds."""
        self.name = name
        return _Progress(self.screen, name, progress)

    def round(self, argv: Sequence[str], good: Collection[int], look: Callable[[], None]) -> str:
        """A command of a step. Returns its output. look: of follow(). Raises as do."""
        return self._child(argv, good, self.screen.log, look)[1]

    def ask(self, name: str, argv: Sequence[str], good: Collection[int]) -> tuple[ExitCode, str]:
        """A command's exit code, and what it prints on standard output. Raises as do."""
        self.name = name
        with TemporaryFile() as kept:
            code, _ = self._child(argv, good, kept.fileno())
            kept.seek(0)
            return ExitCode(code), kept.read().decode(errors="replace")

    def rest(self, seconds: float, look: Callable[[], None]) -> None:
        """Do nothing for a while. Raises Interrupted."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.received:
                raise children.Interrupted(self.received[0])
            time.sleep(children.LOOK_EVERY)
            look()

    def last(self, verdict: str, argv: Sequence[str], good: Collection[int]) -> ExitCode:
        """The last screen: the verdict once more, and what a command prints. Its exit code."""
        code, printed = self.ask("gate", argv, good)
        self.screen.line(verdict)
        for line in printed.splitlines():
            self.screen.line(line, whole=True)
        return code

    def stopped(self, end: Stopped | children.Interrupted) -> ExitCode:
        """Why the evening ends here, and how to go on. Returns the exit code."""
        why, code = f"interrupted by {end} at '{self.name}', which was ended", ExitCode.INTERRUPTED
        if isinstance(end, Stopped):
            why, code = f"stopped at '{self.name}': {end}", end.code
        with suppress(OSError):  # the terminal may be gone; the log has both lines
            self.screen.line(f"{why}; no further step was run; what was measured is kept")
        with suppress(OSError):
            self.screen.line(f"next: {shlex.join(self.again)}", whole=True)
        return code

    def _child(
        self,
        argv: Sequence[str],
        good: Collection[int],
        output: int,
        look: Callable[[], None] = lambda: None,
    ) -> tuple[int, str]:
        """Run a command. Returns its exit code, and what it has added to the log."""
        self.screen.note(f"== {self.name}: {shlex.join(argv)}")
        program = shutil.which(argv[0]) or str(Path(sys.executable).with_name(argv[0]))
        settings = {"RFM_CONFIG_FILES": installed.settings_files()}
        begin = self.screen.size()
        code = children.run(
            [program, *argv[1:]],
            self.received,
            output=output,
            errors=self.screen.log,
            cwd=installed.SUITE,
            env=os.environ | settings,
            look=look,
        )
        printed = self.screen.since(begin)
        if code not in good:
            why = answer(printed).removeprefix("siteproof: ") or "no message"
            if code != ExitCode.USAGE:
                why = f"exit code {code}: {why}"
            is_known = code in (ExitCode.USAGE, ExitCode.INTERRUPTED)
            raise Stopped(why, ExitCode(code) if is_known else ExitCode.FAIL)
        return code, printed

    def ended(self, name: str, start: float, answer: str) -> None:
        """The line of a step. start: of time.monotonic()."""
        took = _duration(time.monotonic() - start)
        self.screen.line(f"{name}, {took}: {shorten(answer, MAX_LINE)}")


class _Progress:
    """Shows what a step does, once it takes longer than FIRST seconds.

    On a terminal every OFTEN seconds in one line; elsewhere in lines ever further apart.
    """

    def __init__(self, screen: Screen, name: str, now: Callable[[], str]) -> None:
        self.screen, self.name, self.now = screen, name, now
        self.start, self.due, self.begin = time.monotonic(), float(FIRST), screen.size()

    def __call__(self) -> None:
        took = time.monotonic() - self.start
        if took < self.due:
            return
        self.due = took + OFTEN if self.screen.live else 2 * self.due
        printed = self.screen.since(self.begin)
        known = filter(None, (checks_ended(printed), self.now() or _last_line(printed)))
        self.screen.progress(f"  {self.name}, {_duration(took)}: {'; '.join(known) or 'runs'}")


def _last_line(printed: str) -> str:
    """What a step printed last; ReFrame's own lines are counted, not shown."""
    lines = [line.strip() for line in printed.splitlines() if not line.startswith(("[", "== "))]
    return next(filter(None, reversed(lines)), "")


def answer(printed: str) -> str:
    """The last line of a command, which answers the question, without the next command.

    Where it was wrapped it is put together again.
    """
    lines = [line for line in printed.splitlines() if line.strip()]
    if lines and lines[-1].startswith("next: "):
        lines.pop()
    text = lines.pop() if lines else ""
    while lines and text.startswith(" " * INDENT):
        text = f"{lines.pop()} {text.strip()}"
    return text.partition(NEXT)[0]


def checks_ended(printed: str) -> str:
    """How many checks of a run have ended, and which failed; empty before the first."""
    ended = _ENDED.findall(printed)
    if not ended:
        return ""
    failed = list(dict.fromkeys(name for how, _, name in ended if how == "FAIL"))
    of = f" of {ended[-1][1]}" if len(ended) <= int(ended[-1][1]) else ""  # else of several runs
    text = f"{len(ended)}{of} checks ended"
    return f"{text}; failed: {', '.join(failed)}" if failed else text


def _duration(seconds: float) -> str:
    hours, minutes = divmod(int(seconds) // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds:.0f} s"
