"""Every error class, and the table of exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """What a script may rely on; 2 goes before 1, 1 before 3, 3 before 0.

    siteproof.record.finding.exit_code makes it of verdicts.
    """

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCOMPLETE = 3
    INTERRUPTED = 130  # Ctrl-C; as a shell: 128 + SIGINT


MEANINGS = {  # of each exit code
    ExitCode.PASS: "Every criterion in force was decided, at least one, and is met.",
    ExitCode.FAIL: "Something is FAIL, ERROR or REGRESSED.",
    ExitCode.USAGE: "Wrong usage or input; one line names the file and the key.",
    ExitCode.INCOMPLETE: "Nothing failed, but something is INCOMPLETE, PENDING, or SKIP without "
    "a waiver or not_here; or nothing was decided; or a stage directory is set aside, or a file "
    "left out, that could hold a failure.",
}


def harmless(text: str) -> str:
    """A text without the control characters with which a tool could steer a reader's terminal."""
    if text.isprintable():  # nearly all are
        return text
    return "".join(c if c.isprintable() else "?" for c in text)


def all_harmless(value: Any) -> Any:
    """The same of all texts in a value of JSON."""
    if isinstance(value, dict):
        return {harmless(key): all_harmless(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [all_harmless(inner) for inner in value]
    return harmless(value) if isinstance(value, str) else value


def hint(name: str, known: Iterable[str]) -> str:
    """ " (did you mean 'x'?)" or nothing; capitals, '-' and '_' do not matter."""
    plain = {_plain(one): one for one in reversed(list(known))}
    close = get_close_matches(_plain(name), plain, n=1)
    return f" (did you mean '{plain[close[0]]}'?)" if close else ""


def _plain(name: str) -> str:
    return str(name).lower().replace("-", "_")


class UserError(Exception):
    """A mistake of a user: one line, no traceback, exit code 2.

    where: a file, file:line, or the option that holds the mistake.
    what: the mistake in a few words.
    allowed: the allowed values, or one description of them.
    hint: what to do next, as a sentence without its full stop.
    """

    def __init__(
        self, where: object, what: str, allowed: str | Iterable[str] = (), hint: str = ""
    ) -> None:
        self.where = str(where)
        self.what = harmless(" ".join(what.split()))
        self.allowed = tuple(filter(None, [allowed] if isinstance(allowed, str) else allowed))
        self.hint = hint
        super().__init__(str(self))

    @property
    def message(self) -> str:
        """The error without its place."""
        text = self.what
        if self.allowed:
            text += f". Allowed: {', '.join(self.allowed)}"
        if self.hint:
            text += f". {self.hint}"
        if self.allowed or self.hint:
            text += "."
        return text

    def __str__(self) -> str:
        return harmless(" ".join(f"{self.where}: {self.message}".split()))


class Mistake(ValueError):
    """A wrong value in a file, for a validator to raise; the fields are those of UserError."""

    def __init__(self, what: str, allowed: str = "", hint: str = "") -> None:
        self.allowed, self.hint = allowed, hint
        super().__init__(what)


class UserErrors(Exception):
    """Several mistakes, reported together."""

    def __init__(self, errors: Iterable[UserError]) -> None:
        self.errors = list(errors)
        super().__init__("\n".join(map(str, self.errors)))


class OutputError(Exception):
    """A tool's output without a value that counts.

    status: the sample's status: `parse` (not understood), `invalid` (the tool's own validation
    failed), or another one of samples.STATUSES.
    what: may quote what a tool has printed; a control character becomes `?`.
    """

    def __init__(self, what: str, status: str = "parse") -> None:
        self.status = status
        super().__init__(harmless(what))
