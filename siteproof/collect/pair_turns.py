"""The results of every turn of a job over pairs: a client, a server, one or both directions.

A turn has the folders raw/NUMBER/ (of the client) and raw/NUMBER.server/. Its runs may have
direction=out (from client to server) or in (from server to client); without it a run is the
client's. Both ends count their cores all the while.

A link as a whole has values, too, from turns that ran at the same time, if collect.derive has a
function of the check's name and `_of_link`. There is one outcome for each trial and each kind of
run, such as direction=out streams=4, and values only where every pair of the trial has one: what
some pairs carry is not what the link carries.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path

from siteproof import files
from siteproof.collect import cause, outcome, raw
from siteproof.collect.outcome import Outcome
from siteproof.collect.raw import Execution, Raw, Stage
from siteproof.errors import OutputError
from siteproof.parsers import Reading, cores
from siteproof.record import samples
from siteproof.record.manifest import Manifest
from siteproof.record.pair_units import grouped

MAX_KINDS = 100
NO_FAULT_OF_THE_LINK = ("node_lost", samples.INTERRUPTED)
Runs = Sequence[Execution]
Kind = tuple[tuple[str, str], ...]  # dimensions that runs of all pairs have in common


@dataclass(frozen=True)
class Way:
    """One direction of a turn, or both where neither was measured.

    direction: `out`, `in`, or empty. left, runs: what it was read from, as far as that went.
    """

    trial: int
    pair: str
    direction: str
    outcome: Outcome
    left: Raw | None = None
    runs: Runs = ()

    @cached_property
    def kinds(self) -> dict[Kind, Execution]:
        """Its runs by direction and dimensions; also of a failure, to name what has no value."""
        way = {"direction": self.direction} if self.direction else {}
        found = {}
        for run in self.runs:
            dims = {key: value for key, value in run.dims.items() if key != "program"}
            found[tuple(sorted({**dims, **way}.items()))] = run
        return found


def derived_of_link(job: Manifest) -> Callable[..., list[Reading]] | None:
    """What makes such values, if a job has them."""
    return outcome.derived(job, "_of_link") if job.together else None


def outcomes_of_link(job: Manifest, ways: Iterable[Way]) -> list[tuple[str, Outcome]]:
    """The link's outcome of each trial and kind of run; its node is empty."""
    of_link = derived_of_link(job)
    if of_link is None:
        return []
    found = []
    for trial, of_trial in grouped((way.trial, way) for way in ways).items():
        kinds = list(dict.fromkeys(kind for way in of_trial for kind in way.kinds))
        if len(kinds) > MAX_KINDS:
            why = f"{len(kinds)} kinds of runs in one trial, at most {MAX_KINDS} are added up"
            found.append(("", Outcome(status="parse", why=why, dims=_dims(job, trial, {}))))
            continue
        for kind in kinds or [()]:
            found.append(("", _of_kind(job, of_link, trial, dict(kind), of_trial)))
    return found


def _of_kind(
    job: Manifest,
    of_link: Callable[..., list[Reading]],
    trial: int,
    kind: Mapping[str, str],
    ways: Sequence[Way],
) -> Outcome:
    dims = _dims(job, trial, kind)
    pairs = {way.pair for way in ways}
    key = tuple(sorted(kind.items()))
    good = {way.pair: way for way in ways if way.outcome.status == "ok" and key in way.kinds}
    if len(good) < len(pairs):
        status, why = _lacking([way for way in ways if way.pair not in good])
        why = f"{len(good)} of {len(pairs)} pairs gave a value; {why}"
        return Outcome(status=status, why=why, dims=dims)
    try:
        moved = {
            pair: outcome.intervals(way.kinds[key], way.left, job)
            for pair, way in good.items()
            if way.left
        }
        readings = of_link(moved, job.facts)
        outcome.must_be_short(readings, {})
    except Exception as error:  # an error in one result must not stop the others
        wrong = outcome.reason(error)
        return Outcome(status=wrong.status, why=str(wrong), dims=dims)
    each = [way.outcome for way in good.values()]
    # What one pair alone is emulated by, the sum is.
    emulated = {k: v for o in each for k, v in o.conditions.items() if k == samples.EMULATED}
    return Outcome(
        readings,
        outcome.agreed([o.conditions for o in each]) | emulated,
        host=outcome.agreed([o.host for o in each]),
        dims=dims,
    )


def _dims(job: Manifest, trial: int, kind: Mapping[str, str]) -> dict[str, str]:
    dims = {**kind, "link": job.conditions.get("link", "")}
    return dims | ({"trial": str(trial)} if trial else {})


def _lacking(ways: Sequence[Way]) -> tuple[str, str]:
    """Status and reason for the pairs without a value: the first with a cause of its own.

    A pair that measured other kinds of runs has no failure to show.
    """
    failed = [way for way in ways if way.outcome.status != "ok"]
    if not failed:
        return "generic", f"{ways[0].pair} has no such run"
    of_the_link = [way for way in failed if way.outcome.status not in NO_FAULT_OF_THE_LINK]
    first = (of_the_link or failed)[0]
    status = first.outcome.status if of_the_link else samples.INTERRUPTED
    return status, f"{first.pair}: {first.outcome.status}: {first.outcome.why}"


PROGRAM = "cores"  # of runs that are no measurement
METRIC = "busiest_core"


def busiest(client: Runs, server: Runs, way: str) -> list[Reading]:
    """A value, in %, of each run of a direction; or why it has none.

    The server has counted all the time: of that, what lies between the client's first and last
    look at its own cores, by the clocks of both.
    """
    of_server = next((run.stdout for run in server if run.dims.get("program") == PROGRAM), "")
    found = []
    for run in client:
        if run.dims.get("program") != PROGRAM or run.dims.get("direction", "") != way:
            continue
        dims = {k: v for k, v in run.dims.items() if k not in ("program", "direction")}
        try:
            found.append(Reading(METRIC, _of_both(run.stdout, of_server), "%", dims))
        except OutputError as error:
            found.append(Reading("not_read", str(error), "text", {"parameter": METRIC, **dims}))
    return found


def _of_both(client: str, server: str) -> Decimal:
    own = cores.whole(client)
    begin, end = own[0][0], own[-1][0]
    # Ended with its turn, it may have been about to write a line.
    other = cores.looks(server[: server.rfind("\n") + 1])
    return max(cores.busiest(own), cores.busiest([s for s in other if begin <= s[0] <= end]))


# A server is ended with its turn; only other codes mean that it could not serve.
SERVED = (0, raw.ENDED, raw.KILLED, 143)
DIRECTIONS = ("", "out", "in")
OF_TIMETABLE = ("peer", "link", "node")  # dimensions that no script sets


def name(number: int) -> str:
    """The name of a turn's result folder."""
    return f"{number:05d}"


def server_of(number: int) -> str:
    """The name of the folder with the server's account of a turn."""
    return f"{name(number)}.server"


def outcomes(stage: Path, job: Manifest, ended: str) -> list[tuple[str, Outcome]]:
    """Each turn's outcomes with their senders; those of the link; then nodes that were lost."""
    raw_files = Stage.of(stage)
    numbers = range(len(job.turns))
    there = {number for number in numbers if raw_files.has(name(number))}
    anything = bool(there) or any(raw_files.has(server_of(number)) for number in numbers)
    last = max(there, default=-1)
    of_link = derived_of_link(job)
    found: list[tuple[str, Outcome]] = []
    ways: list[Way] = []
    for number in numbers:
        turn = _Turn(raw_files, job, number, ended)
        for node, way in turn.read() if number in there else [turn.missing(anything, last)]:
            found.append((node, way.outcome))
            if of_link:  # it contains all raw texts, so it is kept only if needed
                ways.append(way)
    found += outcomes_of_link(job, ways)
    # A lost client has an outcome in each of its turns without a result.
    accounted = {job.turns[number][1] for number in numbers if number not in there}
    return found + [
        (node, Outcome(status=job.fate(node), why=why))
        for node, why in job.lost.items()
        if node not in accounted
    ]


def waiting(
    turns: Sequence[tuple[int, str, str]], there: Container[str], dead: Container[str]
) -> set[str]:
    """The nodes that may still write results. there: result folders. dead: nodes.

    A turn with a dead node gives no result, so its other node is not waited for.
    """
    found = set()
    for number, (_, client, server) in enumerate(turns):
        for end, other, folder in (
            (client, server, name(number)),
            (server, client, server_of(number)),
        ):
            if folder not in there and (end in dead or other not in dead):
                found.add(end)
    return found


def worth_repeating(stage: Path, number: int) -> bool:
    """Whether a turn gave no value because its client or its server was missing."""
    raw_files = Stage.of(stage)
    try:
        if not raw_files.has(name(number)):
            return True
        if raw_files.has(server_of(number)):
            return False
        left = raw.read(raw_files.result(name(number)))
        return left.number("exit") != 0 or any(run.exit != 0 for run in left.runs)
    except (OutputError, files.Unread):
        return True


class _Turn:
    """One turn of the timetable."""

    def __init__(self, stage: Stage, job: Manifest, number: int, ended: str) -> None:
        self.stage, self.job, self.number, self.ended = stage, job, number, ended
        self.trial, self.client, self.server = job.turns[number]
        self.dims = {"trial": str(self.trial)} if self.trial else {}
        self.proof = self.server_proof = ""
        self.has_server = stage.has(server_of(number))
        self.served, self.not_served = self._server()

    def _server(self) -> tuple[Raw | None, OutputError | None]:
        """The server's account, if there is one, and why it did not serve, if it did not."""
        if not self.has_server:
            lost = self.job.lost.get(self.server, "it left no account of this turn")
            why = f"{self.server} did not serve: {lost}"
            return None, OutputError(why, samples.INTERRUPTED)
        try:
            result = self.stage.result(server_of(self.number))
            served = raw.read(result)
            code = served.number("exit")
            self.server_proof = raw.check_origin(result.folder, self.server, served, self.job)
        except Exception as error:  # an error in one result must not stop the others
            broken = outcome.reason(error)
            return None, OutputError(f"the server on {self.server}: {broken}", "generic")
        if code in SERVED:
            return served, None
        what = f"the server on {self.server}"
        failed = cause.failure(code, served.stdout, served.stderr, served.meta, what)
        if failed.status == "tool_missing":  # then its message does not name the server
            failed = OutputError(f"on {self.server}: {failed}", failed.status)
        failed.status = outcome.status_of(failed, served, self.job, self.ended)
        return served, failed

    def missing(self, anything: bool, last: int) -> tuple[str, Way]:
        """The outcome without a result. anything: whether any turn has one; last: its number."""
        lost, ended = self.job.lost, self.ended
        why = f"left no result (job {ended or 'ended'})"
        if self.client in lost:
            status, why = self.job.fate(self.client), lost[self.client]
        elif self.server in lost:
            status, why = samples.INTERRUPTED, f"no turn with {self.server}: {lost[self.server]}"
        elif cause.at_time_limit(ended) and self.number > last:
            status, why = samples.INTERRUPTED, "the job reached its time limit before this turn"
        elif cause.at_time_limit(ended):
            status, why = "timeout", "no result, and turns after it have one"
        elif ended == "COMPLETED" and anything:
            status, why = "generic", f"{why}: it came too late for its turn, or could not write"
        else:
            status = samples.INTERRUPTED
        return self._way("", Outcome(status=status, why=why))

    def read(self) -> list[tuple[str, Way]]:
        """The outcome of each direction that was measured."""
        left = None
        try:
            result = self.stage.result(name(self.number))
            left = raw.read(result)
            self.proof = raw.check_origin(result.folder, self.client, left, self.job)
            self._must_use_one_program(left)
            ways = self._directions(left)
            self._must_be_whole(left)
        except Exception as error:  # an error in one result must not stop the others
            return [self._way("", self._explained(outcome.reason(error), left), left)]
        return [
            self._way(way, self._judged(left, runs, way), left, runs) for way, runs in ways.items()
        ]

    def _must_use_one_program(self, left: Raw) -> None:
        """Raises OutputError where each end has chosen another program: no link is to blame."""
        client = left.facts.get("program", "")
        server = self.served.facts.get("program", client) if self.served else client
        if client and server != client:
            raise OutputError(
                f"{self.client} used {client}, {self.server} used {server}: "
                "both need the same program",
                "tool_missing",
            )

    def _must_be_whole(self, left: Raw) -> None:
        """Raises OutputError where a run may be missing without a trace."""
        outcome.must_not_deny(left)
        if not left.runs or all(run.exit == 0 for run in left.runs):
            outcome.must_have_worked(left, self.job)
        elif left.number("end") - left.number("start") >= left.number("limit"):
            raise OutputError("its turn was over before its runs were", "timeout")
        elif left.meta["exit"] in cause.SIGNALS and left.runs[-1].exit is None:
            code = left.number("exit")
            why = cause.failure(code, left.stdout, left.stderr, left.meta, "its script")
            raise OutputError(
                f"a signal ended its script before its runs were over: {why}", why.status
            )

    def _directions(self, left: Raw) -> dict[str, list[Execution]]:
        """The runs of each direction, without that dimension. Raises OutputError."""
        ways: dict[str, list[Execution]] = {}
        for run in left.runs:
            if run.dims.get("program") == PROGRAM:  # not a measurement of the link
                continue
            way = run.dims.get("direction", "")
            if way not in DIRECTIONS:
                raise OutputError(f"a run has direction '{way[:20]}', expected out or in")
            if wrong := [key for key in OF_TIMETABLE if key in run.dims]:
                raise OutputError(f"a run must not set its {wrong[0]}")
            rest = {key: value for key, value in run.dims.items() if key != "direction"}
            ways.setdefault(way, []).append(replace(run, dims=rest))
        return ways or {"": []}

    def _judged(self, left: Raw, runs: Runs, way: str) -> Outcome:
        """One direction: readings of all of its runs, or why there are none."""
        try:
            if self.has_server and self.not_served:  # then it is not known what answered the client
                raise self.not_served
            conditions, readings, _ = outcome.judge(left, runs, self.job)
            served = self.served.runs if self.served else ()
            also = busiest(left.runs, served, way)
            outcome.must_be_short(also, {})
            readings = [*readings, *also]
        except Exception as error:  # an error in one result must not stop the others
            return self._explained(outcome.reason(error), left, runs)
        return Outcome(readings, conditions, host=left.meta, origin=self.proof)

    def _explained(self, error: OutputError, left: Raw | None, runs: Runs = ()) -> Outcome:
        """A failure, with the server as its cause where the server could not serve."""
        if self.not_served is None or self.not_served is error:
            codes = [run.exit for run in runs]
            status = outcome.status_of(error, left, self.job, self.ended, codes)
            return Outcome(status=status, why=str(error))
        return Outcome(status=self.not_served.status, why=f"{self.not_served}; {error}")

    def _way(
        self, direction: str, found: Outcome, left: Raw | None = None, runs: Runs = ()
    ) -> tuple[str, Way]:
        """The outcome with its peer and trial, and its sender."""
        ends = self.client, self.server
        node, peer = ends[::-1] if direction == "in" else ends
        dims: Mapping[str, str] = {"peer": peer, **self.dims}
        accounts = [end.meta for end in (left, self.served) if end]
        conditions = {**found.conditions, **outcome.emulated(self.job, *accounts)}
        full = replace(found, dims=dims, conditions=conditions)
        pair = f"{self.client}>{self.server}"
        return node, Way(self.trial, pair, direction, full, left, runs)
