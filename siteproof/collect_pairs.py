"""What became of every turn of a job over pairs: a client, a server, one or both directions.

A turn leaves raw/NUMBER/ (the client's) and raw/NUMBER.server/. Its runs may say direction=out or
in: `out` is of client to server, `in` of server to client, and without the word it is the client's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from siteproof import outcome, raw, samples
from siteproof.errors import OutputError
from siteproof.manifest import Manifest
from siteproof.outcome import Outcome
from siteproof.raw import Raw, Run

# A server is ended when its turn is over; only other codes tell that it could not serve.
SERVED = (0, raw.ENDED, raw.KILLED, 143)


def name(number: int) -> str:
    """The name of a turn's result folder."""
    return f"{number:05d}"


def server_of(number: int) -> str:
    """The name of the folder with the server's account of a turn."""
    return f"{name(number)}.server"


def outcomes(stage: Path, job: Manifest, ended: str) -> list[tuple[str, Outcome]]:
    """Each turn's outcomes with their senders; then the nodes that were lost as servers only."""
    there = {path.name for path in (stage / "raw").glob("[!.]*")}
    found: list[tuple[str, Outcome]] = []
    for number, (trial, client, server) in enumerate(job.turns):
        turn = _Turn(stage, job, number, trial, client, server)
        found += turn.read(there) if name(number) in there else [turn.missing(there, ended)]
    clients = {client for _, client, _ in job.turns}
    return found + [
        (node, Outcome(status="node_lost", why=why)) for node, why in job.lost.items()
        if node not in clients
    ]


class _Turn:
    """One turn of the timetable."""

    def __init__(
        self, stage: Path, job: Manifest, number: int, trial: int, client: str, server: str
    ) -> None:
        self.raw, self.job, self.number = stage / "raw", job, number
        self.client, self.server = client, server
        self.trial = {"trial": str(trial)} if trial else {}

    def missing(self, there: set[str], ended: str) -> tuple[str, Outcome]:
        """Why the client left nothing."""
        lost = self.job.lost
        why = f"left no result (job {ended or 'ended'})"
        if self.client in lost:
            told = "node_lost", lost[self.client]
        elif self.server in lost:
            told = samples.INTERRUPTED, f"no turn with {self.server}: {lost[self.server]}"
        elif ended.startswith("TIMEOUT"):
            told = "timeout", "no result when the job reached its time limit"
        elif ended == "COMPLETED" and there:
            told = "generic", f"{why}: it came too late for its turn, or could not write"
        else:
            told = samples.INTERRUPTED, why
        return self._failed(self.client, self.server, *told)

    def read(self, there: set[str]) -> list[tuple[str, Outcome]]:
        """The outcome of each direction that was measured."""
        folder = self.raw / name(self.number)
        meta: Mapping[str, str] = {}
        try:
            meta = raw.read_meta(folder)
            left = raw.read(folder)
            if not left.runs:
                outcome.must_have_worked(left, self.job)
        except OutputError as error:
            return [self._explained(self.client, self.server, error, there)]
        ways: dict[str, list[Run]] = {}
        for run in left.runs:
            ways.setdefault(run.dims.get("direction", ""), []).append(run)
        found = []
        for way, runs in (ways or {"": []}).items():
            ends = (self.server, self.client) if way == "in" else (self.client, self.server)
            found.append(self._judged(ends, left, runs, there, meta))
        return found

    def _judged(
        self, ends: tuple[str, str], left: Raw, runs: Sequence[Run], there: set[str],
        meta: Mapping[str, str],
    ) -> tuple[str, Outcome]:
        """One direction: readings of all of its runs, or why there are none."""
        plain = [Run({k: v for k, v in run.dims.items() if k != "direction"}, run.exit,
                     run.stdout, run.stderr) for run in runs]
        try:
            conditions, readings, _ = outcome.judge(left, plain, self.job)
        except OutputError as error:
            return self._explained(*ends, error, there)
        dims = {"peer": ends[1], **self.trial}
        return ends[0], Outcome(readings, conditions, host=meta, dims=dims)

    def _explained(
        self, node: str, peer: str, error: OutputError, there: set[str]
    ) -> tuple[str, Outcome]:
        """A failure, laid at the server's door where the server could not serve."""
        status, why = error.status, str(error)
        if server_of(self.number) not in there:
            lost = self.job.lost.get(self.server, "it left no account of this turn")
            return self._failed(
                node, peer, samples.INTERRUPTED, f"{self.server} did not serve: {lost}; {why}")
        try:
            served = raw.read(self.raw / server_of(self.number))
            code = served.number("exit")
        except OutputError as broken:
            return self._failed(node, peer, status, f"{why}; {self.server}: {broken}")
        if code == outcome.NOT_FOUND:
            return self._failed(
                node, peer, "tool_missing", f"on {self.server}: {served.last_words}")
        if code not in SERVED:
            why = f"{why}; the server on {self.server} exited with {code}: {served.last_words}"
        return self._failed(node, peer, status, why)

    def _failed(self, node: str, peer: str, status: str, why: str) -> tuple[str, Outcome]:
        return node, Outcome(status=status, why=why, dims={"peer": peer, **self.trial})
