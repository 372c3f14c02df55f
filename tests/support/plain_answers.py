"""The one rule of answers a second time, plain and slow: written from DESIGN.md, not from the code.

A history is plain data: what jobs left, what a contract requires, what is waived. `answers` gives
what the commands must give of it; test_two_versions.py compares. Nothing of siteproof/ is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

GRAVITY = ("FAIL", "ERROR", "REGRESSED", "INCOMPLETE", "PENDING", "SKIP", "PASS")
STATES = ("FAILED", "FLAPPING", "SLOW", "ODD", "UNTESTED", "OK")
SYSTEM = "here"
STRICTER = ("quick", "maintenance", "acceptance")
WRONG = ("invalid", "checksum")
BROKEN = ("login", "timeout", "parse", "killed", "generic", "tool_missing", "implausible")
TOLERANCE = 1.05  # of what the hardware can do
OLD = "old: "  # before the outcome of an answer that is too old
REPLACED = "replaced: "  # ... that was measured on another board
NEVER_WAIVED = ("lost", REPLACED)
WINDOW = 10  # sessions in which a node fails now and then
ALL_OF_A_JOB = 3  # nodes with one cause accuse the check


@dataclass(frozen=True)
class Line:
    """What a job has of a node, or of a pair: a value at a point, or why there is none."""

    node: str
    metric: str
    status: str = "ok"
    value: float = 0
    trial: int = 0
    peer: str = ""
    point: str = ""


@dataclass(frozen=True)
class Job:
    """One file. place: of its session. day: days ago. One that cannot be read has a name.

    boards: node and serial number, as nodes described themselves in it. service: that it used, or
    the link that it measured as a whole.
    """

    place: int
    number: int
    check: str
    day: float
    mode: str
    environment: str
    partition: str
    expected: tuple[str, ...]
    lines: tuple[Line, ...]
    conditions: tuple[tuple[str, str], ...] = ()
    readable: bool = True
    service: str = ""
    boards: tuple[tuple[str, str], ...] = ()

    @property
    def order(self) -> tuple[int, bool, int]:
        """Of what cannot be read only the session is known: it may be the last of it."""
        return self.place, not self.readable, self.number


@dataclass(frozen=True)
class Criterion:
    """At least `bound`, on every node, pair of the link that it names, or service that it names.

    whole: of the link as a whole.
    """

    name: str
    metric: str
    bound: float
    modes: tuple[str, ...] = ("maintenance", "acceptance")
    max_age: float | None = 7
    conditions: tuple[tuple[str, str], ...] = ()
    link: str = ""
    services: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True)
class Waiver:
    """day: the last one on which it holds, counted from today."""

    nodes: tuple[str, ...]
    waives: str
    wrong_answers: tuple[str, ...] = ()
    day: int = 30


@dataclass(frozen=True)
class History:
    """Of one system. partitions: the nodes of each. pairs: of each link, as sender>receiver.

    limits: what a node can do, by check.
    """

    partitions: dict[str, tuple[str, ...]]
    environments: tuple[str, ...]
    checks: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    waivers: tuple[Waiver, ...]
    jobs: tuple[Job, ...]
    pairs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    limits: tuple[tuple[str, float], ...] = ()

    @property
    def nodes(self) -> list[str]:
        return sorted({node for nodes in self.partitions.values() for node in nodes})


@dataclass(frozen=True)
class Attempt:
    """What one job left of one unit."""

    job: Job
    outcome: str
    value: float = 0


@dataclass(frozen=True)
class Why:
    """What is not well with a node: in which state that puts it, and what a waiver needs."""

    state: str
    check: str
    outcome: str
    criterion: Criterion | None = None


Units = dict[str, tuple[Criterion, Attempt | None]]


@dataclass
class Answers:
    """What the commands give. codes: of verdict, nodes and gate."""

    criteria: dict[str, str]
    units: dict[str, dict[str, str]]
    nodes: dict[str, str]
    out: list[str]
    codes: tuple[int, int, int]


def answers(history: History) -> Answers:
    """All that is known of a history."""
    history = without_wrong_values(history)
    units = {one.name: _units(history, one) for one in history.criteria}
    criteria = {one.name: _verdict(history, units[one.name]) for one in history.criteria}
    whys = {
        node: list(_whys(history, node)) or list(_untried(history, node)) for node in history.nodes
    }
    nodes = {node: _state(_shown(history, node, found)) for node, found in whys.items()}
    left = {node: [w for w in whys[node] if not _waived(history, node, w)] for node in whys}
    out = [node for node in left if _state(left[node]) != "OK"]
    codes = _verdict_code(history, units, criteria, left), _nodes_code(nodes), 1 if out else 0
    words = {name: _uncovered(history, of) for name, of in units.items()}
    for one in history.criteria:
        if one.services:  # all of them stand together, for the system
            words[one.name] = {SYSTEM: min(words[one.name].values(), key=GRAVITY.index)}
    return Answers(criteria, words, nodes, out, codes)


# ---- attempts


def without_wrong_values(history: History) -> History:
    """A run of a node with a value that cannot be right has no value."""
    return replace(history, jobs=tuple(_right(history, job) for job in history.jobs))


def _right(history: History, job: Job) -> Job:
    most = TOLERANCE * dict(history.limits).get(job.check, float("inf"))
    wrong = [(line.node, line.trial) for line in job.lines if line.value > most]
    lines = [
        replace(line, status="implausible")
        if line.status == "ok" and (line.node, line.trial) in wrong
        else line
        for line in job.lines
    ]
    return replace(job, lines=tuple(lines))


def attempts(
    history: History, check: str, unit: str, one: Criterion | None = None
) -> Iterator[Attempt]:
    """What was tried of a unit, the newest first: of a criterion, or of the check as a whole.

    Of a failure only the mode is known before it began, so that no other condition refuses it.
    """
    for job in sorted(history.jobs, key=lambda job: job.order, reverse=True):
        if job.check != check:
            continue
        if not job.readable:  # nobody knows what it could not answer
            if unit not in history.nodes or unit in history.partitions[job.partition]:
                yield Attempt(job, "lost")
            continue
        if job.service and job.service != unit:
            continue
        if one and job.mode not in one.modes:
            continue
        own = [line for line in job.lines if job.service or unit in _units_of(line)]
        if one:
            own = [line for line in own if line.metric == one.metric or _whole(line)]
        fits = one is None or set(one.conditions) <= set(job.conditions)
        could = [line for line in own if fits or line.status != "ok"]
        if could:
            yield _attempt(job, could, trials=one is not None)
        elif not own and unit in job.expected and not _has_pairs(job):
            yield Attempt(job, "lost")


def _has_pairs(job: Job) -> bool:
    """Whether it measured pairs: these condemn neither end, and no node owes to be in one."""
    return any(line.peer for line in job.lines)


def _whole(line: Line) -> bool:
    return line.metric.endswith(".*")


def _units_of(line: Line) -> list[str]:
    """A failure of a pair belongs to both directions."""
    if not line.peer:
        return [line.node]
    pair = [f"{line.node}>{line.peer}"]
    return pair if line.status == "ok" else [*pair, f"{line.peer}>{line.node}"]


def _attempt(job: Job, own: Sequence[Line], *, trials: bool) -> Attempt:
    """Trials are one value, their median; one wrong answer among them is a wrong answer.

    Values of different points are never put together: the worst decides.
    """
    failed = [line.status for line in own if line.status != "ok"]
    if not set(failed) & set(WRONG) and len(failed) < len(own) and trials:
        good = [line for line in own if line.status == "ok"]
        points = {line.point for line in good}
        of_points = ([line.value for line in good if line.point == point] for point in points)
        return Attempt(job, "ok", min(map(median, of_points)))
    if not failed:
        return Attempt(job, "ok")
    outcome = min(failed, key=_gravity)
    if outcome == "tool_missing" and _absent(job):
        outcome = "absent"
    return Attempt(job, outcome)


def _gravity(status: str) -> tuple[int, str]:
    """FAIL before ERROR before INCOMPLETE; what somebody ended comes last; then by name."""
    last = {**dict.fromkeys(WRONG, 0), "node_lost": 2, "interrupted": 3}
    return last.get(status, 1), status


def _absent(job: Job) -> bool:
    """Whether the tool is missing on every node of the job of which that is known."""
    statuses = {line.status for line in job.lines}
    return statuses - {"interrupted", "node_lost", "generic"} == {"tool_missing"}


def own_cause(job: Job) -> bool:
    """Whether one cause, but no wrong answer, is on all of three nodes or more."""
    nodes = {line.node for line in job.lines}
    of_nodes = [[line.status for line in job.lines if line.node == node] for node in nodes]
    causes = {min(set(own) - {"ok"}, key=_gravity, default="ok") for own in of_nodes}
    alike = len(causes) == 1 and not causes & {"ok", "interrupted", "tool_missing", *WRONG}
    return alike and len(nodes) >= ALL_OF_A_JOB and nodes >= set(job.expected)


# ---- a criterion


def _units(history: History, one: Criterion) -> Units:
    """A tool that is missing on some units, and not on others, leaves these without an answer."""
    units = history.pairs[one.link] if one.link else one.services or history.nodes
    units = [one.link] if one.whole else units
    found = {unit: (one, answer(history, one, unit)) for unit in units}
    if all(attempt and attempt.outcome == "absent" for _, attempt in found.values()):
        return found
    return {unit: (one, _not_absent(attempt)) for unit, (_, attempt) in found.items()}


def _not_absent(attempt: Attempt | None) -> Attempt | None:
    return None if attempt and attempt.outcome == "absent" else attempt


def answer(history: History, one: Criterion, unit: str) -> Attempt | None:
    """The newest attempt that could answer, but for those that take nothing back."""
    check = one.metric.partition(".")[0]
    could = list(attempts(history, check, unit, one))
    told = [a for a in could if a.outcome not in ("interrupted", "absent")]
    for attempt in could:
        if attempt.outcome == "interrupted":
            continue
        if attempt.outcome == "absent" and told and _place(told[0]) != _place(attempt):
            continue  # there is one elsewhere, or nobody knows where
        if attempt.outcome not in ("lost", "absent"):
            if any(_replaced(history, attempt.job, node) for node in unit.split(">")):
                return Attempt(attempt.job, f"{REPLACED}{attempt.outcome}")
            if _old(one, attempt):
                return Attempt(attempt.job, f"{OLD}{attempt.outcome}")
        return attempt
    return None


def _place(attempt: Attempt) -> tuple[str, str]:
    """Where it was tried; of what cannot be read the environment is unknown."""
    return attempt.job.partition, attempt.job.environment if attempt.job.readable else ""


def _old(one: Criterion, attempt: Attempt) -> bool:
    return one.max_age is not None and attempt.job.day > one.max_age


def _replaced(history: History, job: Job, node: str) -> bool:
    """Whether the board has changed since: what was known then, or first known after, differs."""
    known = [
        (one.place, dict(one.boards)[node]) for one in history.jobs if node in dict(one.boards)
    ]
    before = [serial for place, serial in sorted(known) if place <= job.place]
    after = [serial for place, serial in sorted(known) if place > job.place]
    first = before[-1:] or after[:1]
    return any([serial] != first for serial in after)


def _is_old(outcome: str) -> bool:
    return outcome.startswith((OLD, REPLACED))


def _word(one: Criterion, attempt: Attempt | None) -> str:
    """The verdict on one unit."""
    if attempt is None or attempt.outcome in ("lost", "node_lost") or _is_old(attempt.outcome):
        return "INCOMPLETE"
    if attempt.outcome == "ok":
        return "PASS" if attempt.value >= one.bound else "FAIL"
    if attempt.outcome in WRONG:
        return "FAIL"
    return "SKIP" if attempt.outcome == "absent" else "ERROR"


def _uncovered(history: History, units: Units) -> dict[str, str]:
    """The verdicts on units that no waiver covers."""
    found = {}
    for unit, (one, attempt) in units.items():
        word = _word(one, attempt)
        outcome = attempt.outcome if attempt else "missing"
        why = Why("", one.metric.partition(".")[0], outcome, one)
        if word == "PASS" or not _waived(history, unit, why):
            found[unit] = word
    return found


def _verdict(history: History, units: Units) -> str:
    """The worst of its units that no waiver covers."""
    return min(_uncovered(history, units).values(), key=GRAVITY.index, default="SKIP")


# ---- a node


def _whys(history: History, node: str) -> Iterator[Why]:
    """All that is not well with a node."""
    for one in history.criteria:
        if not (one.link or one.services):
            yield from _of_criterion(*_units(history, one)[node])
    for check in history.checks:
        yield from _of_check(history, check, node)
    if not any(
        why.state == "FAILED" for check in history.checks for why in _of_check(history, check, node)
    ):
        yield from _now_and_then(history, node)


def _untried(history: History, node: str) -> Iterator[Why]:
    """A node of which nothing is known but that tools are missing, and files have no line of it."""
    promised = {
        (one.metric.partition(".")[0], mode) for one in history.criteria for mode in one.modes
    }
    tried = [a for check in history.checks for a in attempts(history, check, node)]
    tried = [
        a
        for a in tried
        if a.job.environment in history.environments or (a.job.check, a.job.mode) in promised
    ]
    in_pairs = any(
        node in (line.node, line.peer)
        for job in history.jobs
        for line in job.lines
        if line.peer and job.readable
    )
    if not in_pairs and all(attempt.outcome in ("absent", "lost") for attempt in tried):
        yield Why("UNTESTED", "", "missing")


def _of_criterion(one: Criterion, attempt: Attempt | None) -> Iterator[Why]:
    check = one.metric.partition(".")[0]
    outcome = attempt.outcome if attempt else "missing"
    word = _word(one, attempt)
    if word in ("FAIL", "ERROR") or outcome == "node_lost":
        assert attempt
        shared = outcome != "ok" and own_cause(attempt.job)  # a value is its node's own
        yield Why("UNTESTED" if shared else "FAILED", check, outcome, one)
    elif word == "INCOMPLETE":
        yield Why("UNTESTED", check, outcome, one)


def _of_check(history: History, check: str, node: str) -> Iterator[Why]:
    """Did the newest attempt of a check end well? A failure stands until the same ends well."""
    standing: set[Attempt] = set()
    none = {"interrupted", "absent"}
    for environment in _environments(history, check):
        known: list[Attempt] = []
        for attempt in reversed(list(attempts(history, check, node))):
            if attempt.job.readable and attempt.job.environment != environment:
                continue
            if attempt.outcome in none:
                continue  # takes nothing back
            known = [old for old in known if not _clears(history, environment, attempt, old)]
            if attempt.outcome != "ok":
                known.append(attempt)
        standing |= set(known)
    for attempt in standing:
        lost = attempt.outcome == "lost" or own_cause(attempt.job)
        yield Why("UNTESTED" if lost else "FAILED", check, attempt.outcome)


def _environments(history: History, check: str) -> list[str]:
    """Those that a plan contains and in which the check has run; of none nobody knows which."""
    run = {job.environment for job in history.jobs if job.check == check and job.readable}
    return [name for name in history.environments if name in run] or [""]


def _clears(history: History, environment: str, new: Attempt, old: Attempt) -> bool:
    """Whether a newer attempt replaces an older one of the same check, environment and node.

    What is lost replaces nothing. It may have been of the strictest mode that there is.
    """
    if new.outcome == "lost":
        return False
    modes = [
        job.mode
        for job in history.jobs
        if (job.check, job.environment, job.readable) == (old.job.check, environment, True)
    ]
    mode = old.job.mode if old.job.readable else max(modes, key=STRICTER.index)
    if new.outcome == "ok":
        return STRICTER.index(new.job.mode) >= STRICTER.index(mode)
    return new.job.mode == mode


def _now_and_then(history: History, node: str) -> Iterator[Why]:
    """Two sessions with a failure of its own among the last ten."""
    tried = [a for check in history.checks for a in attempts(history, check, node)]
    tried = [a for a in tried if a.job.readable and a.job.environment in history.environments]
    sessions = sorted({a.job.place for a in tried})[-WINDOW:]
    broke = {*WRONG, *BROKEN, "node_lost"}
    own = [a for a in tried if a.outcome in broke and not own_cause(a.job)]
    if len({a.job.place for a in own} & set(sessions)) > 1:
        for attempt in own:
            yield Why("FLAPPING", attempt.job.check, attempt.outcome)


def _shown(history: History, node: str, whys: Sequence[Why]) -> list[Why]:
    """Without values that a waiver covers; without a value a node lacks it all the same."""
    found = []
    for why in whys:
        covered = why.criterion and _waived(history, node, why)
        if not covered:
            found.append(why)
        elif not why.outcome.endswith("ok"):
            found.append(replace(why, state="UNTESTED"))
    return found


def _state(whys: Sequence[Why]) -> str:
    return min([why.state for why in whys], key=STATES.index, default="OK")


# ---- waivers and exit codes


def _waived(history: History, unit: str, why: Why) -> bool:
    return any(
        set(unit.split(">")) & set(waiver.nodes)
        and waiver.day >= 0
        and _covers(history, waiver, why)
        for waiver in history.waivers
    )


def _covers(history: History, waiver: Waiver, why: Why) -> bool:
    if why.outcome.startswith(NEVER_WAIVED):
        return False
    was = why.outcome.removeprefix(OLD)
    if was in WRONG and was not in waiver.wrong_answers:
        return False
    if waiver.waives == "all":
        return True
    if why.criterion:
        return waiver.waives in (why.criterion.name, why.criterion.metric)
    metrics = {one.metric for one in history.criteria if one.name == waiver.waives}
    return why.check in {name.partition(".")[0] for name in (waiver.waives, *metrics)}


def _verdict_code(
    history: History, units: dict[str, Units], criteria: dict[str, str], left: dict[str, list[Why]]
) -> int:
    """1 before 3 before 0; what all is waived of a criterion decides nothing."""
    words = [criteria[one.name] for one in history.criteria if _uncovered(history, units[one.name])]
    for why in (why for whys in left.values() for why in whys):
        if not why.criterion and why.state != "FLAPPING":
            words.append(_of_failure(why.outcome))
    if {"FAIL", "ERROR", "REGRESSED"} & set(words):
        return 1
    if {"INCOMPLETE", "PENDING", "SKIP"} & set(words) or "PASS" not in words:
        return 3
    return 0


def _of_failure(outcome: str) -> str:
    if outcome in WRONG:
        return "FAIL"
    return "INCOMPLETE" if outcome in ("lost", "node_lost", "missing") else "ERROR"


def _nodes_code(nodes: dict[str, str]) -> int:
    if set(nodes.values()) - {"OK", "UNTESTED"}:
        return 1
    return 3 if "UNTESTED" in nodes.values() else 0
