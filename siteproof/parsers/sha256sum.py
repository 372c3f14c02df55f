"""sha256sum --check: text in, readings out.

The checksums that it compares with precede its answers, so that no answer can be missing;
after them `end sha256sum`, which checks/storage prints.
"""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

_SUM = re.compile(r"[0-9a-f]{64} \*?(\S{1,200})")
_ANSWER = re.compile(r"(\S{1,200}): (OK|FAILED|FAILED open or read)")


def parse(text: str) -> list[Reading]:
    """`errors`: files that came back with another checksum, or could not be read.

    Raises OutputError unless every file has exactly one answer.
    """
    wanted, answers = _files(text)
    if not wanted or wanted != [name for name, _ in answers]:
        raise OutputError(f"sha256sum: {len(answers)} answers for {len(wanted)} checksums")
    wrong = sum(answer != "OK" for _, answer in answers)
    return [Reading("errors", Decimal(wrong), "count")]


def conditions(text: str) -> dict[str, str]:
    """How many files were compared."""
    return {"files": str(len(_files(text)[0]))}


def failed(text: str) -> list[str]:
    """The files that are not as they were written, each with sha256sum's answer."""
    return [f"{name} {answer}" for name, answer in _files(text)[1] if answer != "OK"]


def _files(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    wanted: list[str] = []
    answers: list[tuple[str, str]] = []
    for line in values.whole(text, "sha256sum"):
        if (match := _SUM.fullmatch(line)) and not answers:
            wanted.append(match[1])
        elif match := _ANSWER.fullmatch(line):
            answers.append((match[1], match[2]))
        else:
            raise OutputError("sha256sum: neither checksums nor answers")
    return wanted, answers
