"""The order of severity: the words of a verdict, what a status is worth, and the exit code.

Whatever picks one of several verdicts or statuses, or lists them, goes by the order of `Verdict`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from siteproof.errors import ExitCode


class Verdict(StrEnum):
    """The words of a verdict, the most severe first."""

    FAIL = "FAIL"
    ERROR = "ERROR"
    REGRESSED = "REGRESSED"
    INCOMPLETE = "INCOMPLETE"
    PENDING = "PENDING"
    SKIP = "SKIP"
    PASS = "PASS"


MEANINGS = {  # of each verdict on a criterion
    Verdict.FAIL: "A value misses the bound, or an answer is wrong.",
    Verdict.ERROR: "A measurement broke, though the node was there.",
    Verdict.REGRESSED: "The contract is met, and a value is below its baseline.",
    Verdict.INCOMPLETE: "Nodes, trials or points have no answer, or one that is too old.",
    Verdict.PENDING: "A person's evidence is due, or a check that does not exist yet.",
    Verdict.SKIP: "It cannot be measured here; the reason is named.",
    Verdict.PASS: "Everything was measured, and meets the bound.",
}
RANKS = {verdict: rank for rank, verdict in enumerate(Verdict)}
NOT_KEPT = (Verdict.FAIL, Verdict.ERROR, Verdict.REGRESSED)
WORTH_REPEATING = (Verdict.FAIL, Verdict.ERROR, Verdict.INCOMPLETE)  # a new answer may differ
LACKS_NOTHING = (Verdict.REGRESSED, Verdict.SKIP, Verdict.PASS)  # of a contract
UNDECIDED = (Verdict.INCOMPLETE, Verdict.PENDING, Verdict.SKIP)
OF_STATUS = {  # the verdict on a node without a value, by the status of its sample
    "invalid": Verdict.FAIL,  # a wrong answer is neither a slow nor a missing one
    "checksum": Verdict.FAIL,
    "unhealthy": Verdict.FAIL,
    "login": Verdict.ERROR,
    "timeout": Verdict.ERROR,
    "parse": Verdict.ERROR,
    "implausible": Verdict.ERROR,
    "killed": Verdict.ERROR,  # by a signal that nobody sent on purpose, as where memory runs out
    "generic": Verdict.ERROR,
    "node_lost": Verdict.INCOMPLETE,
    "interrupted": Verdict.INCOMPLETE,
    "lost": Verdict.INCOMPLETE,
    "tool_missing": Verdict.SKIP,
}
BROKEN = (Verdict.FAIL, Verdict.ERROR)  # it was tried, and broke or gave a wrong answer
WRONG = tuple(status for status, verdict in OF_STATUS.items() if verdict is Verdict.FAIL)
NOT_TRIED = tuple(status for status, verdict in OF_STATUS.items() if verdict not in BROKEN)


def most_severe(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The one that decides; None of none."""
    return min(verdicts, key=RANKS.__getitem__, default=None)


def of_status(status: str) -> Verdict:
    """The verdict on a sample without a value; a status of a later version is an ERROR."""
    return OF_STATUS.get(status, Verdict.ERROR)


def most_severe_status(statuses: Iterable[str]) -> str:
    """The status that decides among those of one measurement; `ok` if all are.

    Of equally severe ones the first by name, whatever their order.
    """
    bad = [status for status in statuses if status != "ok"]
    return min(bad, key=lambda status: (RANKS[of_status(status)], status), default="ok")


def broke(status: str) -> bool:
    """Whether a measurement was tried, and broke or gave a wrong answer."""
    return status != "ok" and of_status(status) in BROKEN


def in_order(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by the word of a verdict, the most severe first; a later version's words last."""
    ranks: dict[str, int] = {verdict.value: rank for verdict, rank in RANKS.items()}
    return dict(sorted(counts.items(), key=lambda item: ranks.get(item[0], len(ranks))))


def exit_code(verdicts: Iterable[Verdict]) -> ExitCode:
    """The exit code for what decides; a SKIP that was accepted is left out by the caller."""
    worst = most_severe(verdicts)
    if worst in NOT_KEPT:
        return ExitCode.FAIL
    return ExitCode.PASS if worst is Verdict.PASS else ExitCode.INCOMPLETE
