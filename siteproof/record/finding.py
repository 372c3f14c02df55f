"""Why a node, a pair, a criterion or a series is as it is: one typed record, and no sentence.

Everything that decides (verdict, waiver, retest, gate, comparison, report, export) reads the fields
of a finding. siteproof.wording.findings makes sentences of them, last, and nothing reads those.

The order of severity: the words of a verdict, what a status is worth, and the exit code.

Whatever picks one of several verdicts or statuses, or lists them, goes by the order of `Verdict`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from siteproof import nodesets
from siteproof.errors import ExitCode

Detail = str | int | float
Details = tuple[tuple[str, Detail], ...]


class Kind(StrEnum):
    """What was found, where something decides by it. The comment names the details of each kind."""

    NOTE = "note"  # text; details are what that names

    # A measurement
    NOT_MEASURED = "not_measured"
    NO_VALUE = "no_value"  # status, message: it was tried, and broke
    WRONG_ANSWER = "wrong_answer"  # status, message: the tool's own validation, or a node's health
    NODE_LOST = "node_lost"
    LOST = "lost"  # message: its record cannot be read
    INTERRUPTED = "interrupted"
    TRIALS_MISSING = "trials_missing"  # trials, expected

    # A sample that cannot answer a criterion
    SETTING_CHANGED = "setting_changed"  # setting: a tuning sweep had changed it
    OTHER_LINK = "other_link"  # link, expected
    OTHER_PROGRAM = "other_program"  # program, expected
    OTHER_CONDITION = "other_condition"  # condition, found, expected
    PUBLISHED = "published"  # source, own, keeps (yes, no, unknown), by_rounding, decides
    TOO_OLD = "too_old"  # age, limit (seconds), answer
    AGE_UNKNOWN = "age_unknown"  # clock, answer
    REPLACED = "replaced"  # what, before, after, answer: it was measured on other hardware
    UPDATED_SINCE = "updated_since"  # age (seconds), what, before, after, answer

    # A value
    # source: of a published value; event, change, began, cause: of the whole role, that explains it
    MISSES_BOUND = "misses_bound"
    BELOW_BASELINE = "below_baseline"

    # A criterion
    REPORTED_ONLY = "reported_only"
    NOT_HERE = "not_here"
    WAIVED = "waived"  # problem, owner, until, ticket
    CHECK_MISSING = "check_missing"  # file, problem, older (1: an older answer stands)

    # What limits the trust in a verdict
    WAIVER_EXPIRED = "waiver_expired"  # problem, owner, until, ticket

    # A node compared with others and with its past
    # lasting: for how many runs, with since; acknowledged: by whom, of a change with an alert
    SLOW = "slow"  # value, deficit, better, median, z, slow, runs, rule, lasting
    SLOW_BEFORE = "slow_before"  # slow, runs, rule, lasting
    FELL = "fell"  # change, rule, lasting
    NOT_RANKED = "not_ranked"  # count: so few nodes, no past; more: metrics
    PARAMETER_DIFFERS = "parameter_differs"  # parameter
    PARAMETERS_DIFFER = "parameters_differ"  # count
    FIELD_DIFFERS = "field_differs"  # field, found, majority, role
    FIELDS_DIFFER = "fields_differ"  # count
    CONDITION_DIFFERS = "condition_differs"  # condition, found, majority
    OTHER_SETTING = "other_setting"  # differences, nodes (that changed alike): not accepted yet
    NO_MAJORITY = "no_majority"  # field, found, role; subject: the nodes with this value
    FIELD_NOT_READ = "field_not_read"  # field
    FACT_DIFFERS = "fact_differs"  # section, field, expected, found: not what the site states
    FACT_NOT_READ = "fact_not_read"  # section, field, expected
    NOT_STATED = "not_stated"  # section; subject: the role; message: why no field is given
    COUNTER_GREW = "counter_grew"  # counter, by
    COUNTER_UNKNOWN = "counter_unknown"  # counter
    RESTARTED_BETWEEN = "restarted_between"  # so that no counter can be compared
    PAIRS_WITHOUT_VALUE = "pairs_without_value"  # link, peers
    PAIRS_MISS_BOUND = "pairs_miss_bound"  # link, sides, peers
    PAIRS_SLOW = "pairs_slow"  # link, sides, peers, deficit, slow, runs, rule
    EXPLAINS_PAIRS = "explains_pairs"  # link, sides, bad, deficit: a node is responsible
    BLOCK_SLOW = "block_slow"  # link, deficit, bad (pairs), peers; subject: nodes across a trunk
    BELOW_THRESHOLD = "below_threshold"  # value, bound: of the link
    PAIR_SLOW = "pair_slow"  # link, deficit: no node explains it
    SLOW_DAY = "slow_day"  # since: the day; value: the average; bound
    DIRECTIONS_DIFFER = "directions_differ"  # link, deficit

    # What holds of many nodes
    FLEET_EVENT = "fleet_event"  # event (step, drift), change, began, cause: no node is at fault

    # What the gate leaves alone
    UNKNOWN_TO_SLURM = "unknown_to_slurm"
    TAKEN_OUT = "taken_out"  # state, by
    TAKEN_OUT_BY_SLURM = "taken_out_by_slurm"  # state: by Slurm itself, or a health check
    RESERVED = "reserved"  # reservations
    STATE_CHANGED = "state_changed"  # before, after
    NOT_IN_INVENTORY = "not_in_inventory"
    PUT_BY_OTHERS = "put_by_others"
    NOT_PASSED = "not_passed"  # state
    NOT_RESPONDING = "not_responding"  # state
    NOT_TESTED_INSIDE = "not_tested_inside"
    COMMENT_KEPT = "comment_kept"

    # What differs between two campaigns
    # earliest, latest: the runs between which it changed, if those next to the change differ not
    CHANGED = "changed"  # what, before, after, earliest, latest; subject: the nodes
    NOTHING_CHANGED = "nothing_changed"  # earliest, latest
    CHANGE_UNKNOWN = "change_unknown"  # message

    # What could not be judged in a history. series: names; more: how many more there are
    NOT_READ = "not_read"  # more; message: of the first file

    # A sweep. axis: its name, such as tasks
    SWEEP_FILE_CHANGED = "sweep_file_changed"  # sweep, session: missing points are not known
    SWEEP_CAPPED = "sweep_capped"  # sweep, caps, count (of points above them), of
    POINTS_TOO_LARGE = "points_too_large"  # count, nodes, partition
    PLATEAU_BEYOND = "plateau_beyond"  # sweep, axis, last, gain (of the last doubling)
    PLATEAU_UNKNOWN = "plateau_unknown"  # sweep, why
    PLATEAU_ROUGH = "plateau_rough"  # noise
    DECLINE_UNKNOWN = "decline_unknown"  # why
    ABOVE_BOUND = "above_bound"  # part, count, limit, share, axis, at
    RANKS_DIFFER = "ranks_differ"  # axis, at, share (slowest of the fastest)
    CACHED = "cached"
    PATH_HOLDS = "path_holds"  # bytes: smaller windows cannot fill the path

    # What limits an availability. hours: of that length; times in UTC
    LINES_BROKEN = "lines_broken"  # file, count
    UNREADABLE = "unreadable"  # message: a record of a person, or the history, and why


NEVER_WAIVED = (Kind.LOST, Kind.REPLACED)  # nobody knows how good it is


@dataclass(frozen=True)
class Finding:
    """One reason: why a node, a pair or a criterion is as it is. Empty fields do not apply.

    kind: What was found. A later version may know more kinds.
    subject: What it is about: a node, a node set, a pair as sender>receiver, a link or a system.
    check: The check that measured it, or should have.
    metric: The metric, Check.metric, with its dimensions if it has any, as in 'Osu.latency [size
        8]'.
    criterion: The criterion's id in criteria.yaml, where the reason is one of that criterion alone.
    status: The status of the sample, such as timeout or invalid.
    value: The value as printed.
    unit: The unit of value.
    bound: The bound that it misses, as the contract or the baseline has it.
    since: When it was measured or seen, or since when it holds, as ISO 8601.
    alert: The change of the history that explains it, an id of 'siteproof trend'.
    waived_by: The waiver's key in waivers.yaml.
    message: What a tool, a node or a person wrote; it is shown as it is, and nothing compares it.
    text: The sentence of a finding of the kind note.
    details: What else belongs to this kind, such as age and limit in seconds, or slow and runs;
        null where a number is not finite.
    """

    kind: Kind
    subject: str = ""
    check: str = ""
    metric: str = ""
    criterion: str = ""
    status: str = ""
    value: str = ""
    unit: str = ""
    bound: str = ""
    since: str = ""
    alert: str = ""
    waived_by: str = ""
    message: str = ""
    text: str = ""
    details: Details = ()

    def __getitem__(self, name: str) -> Detail:
        """A detail of its kind. Raises KeyError."""
        return dict(self.details)[name]

    def get(self, name: str) -> Detail | None:
        """A detail of its kind, if it has that."""
        return dict(self.details).get(name)

    @property
    def is_wrong_answer(self) -> bool:
        """Whether it is a wrong answer, which only a waiver that names its status excuses.

        A pair's wrong answer accuses neither end: to them it is a value that is missing.
        """
        return self.status in WRONG and self.kind is not Kind.NO_VALUE

    def number(self, name: str) -> float:
        """A detail that is a number; 0 if it has none."""
        return float(dict(self.details).get(name, 0))

    @property
    def alike(self) -> tuple[object, ...]:
        """What it shares with findings that differ only in subject, time and numbers."""
        texts = tuple((key, "" if _is_number(value) else value) for key, value in self.details)
        value = "" if _is_number(self.value) else self.value
        plain = replace(self, subject="", since="", alert="", value=value, details=())
        return plain, texts

    def record(self) -> dict[str, Any]:
        """For JSON: the fields that apply."""
        plain = {name: getattr(self, name) for name in _FIELDS if getattr(self, name)}
        return plain | ({"details": dict(self.details)} if self.details else {})


_FIELDS = tuple(name for name in Finding.__dataclass_fields__ if name != "details")


def details(**values: Detail | None) -> Details:
    """Details in their order; those that are None are left out."""
    return tuple((key, value) for key, value in values.items() if value is not None)


def of(kind: Kind, values: Mapping[str, Any] | None = None, **fields: str) -> Finding:
    """A finding with its details."""
    return Finding(kind, details=details(**(values or {})), **fields)


def note(text: str, **values: Detail | None) -> Finding:
    """A finding by which nothing decides.

    text: its sentence, a template of siteproof.wording.findings. values: fields, and the details
    that it names.
    """
    named = dict(details(**values))
    fields = {name: str(named.pop(name)) for name in _FIELDS if name in named}
    return Finding(Kind.NOTE, text=text, details=tuple(named.items()), **fields)


def of_many(findings: Iterable[tuple[Finding, Iterable[str]]]) -> list[Finding]:
    """Each different finding once, with all of its nodes as subject, in the order of the first."""
    nodes: dict[Finding, list[str]] = {}
    for found, names in findings:
        nodes.setdefault(found, []).extend(names)
    return [replace(found, subject=str(nodesets.of(names))) for found, names in nodes.items()]


def other_setting(changes: Mapping[str, str], **fields: str) -> Finding:
    """Settings that are not as they were, each as `64 -> 32`."""
    differences = ", ".join(f"{key} {change}" for key, change in changes.items())
    return of(Kind.OTHER_SETTING, {"differences": differences}, **fields)


def text(value: str | None) -> str:
    """A value of a node's description, as a detail."""
    return "missing" if value is None else value or "empty"


def read(plain: dict[str, Any]) -> Finding:
    """A finding from its record. Raises LookupError, TypeError or ValueError for another record."""
    fields = dict(plain)
    kind, named = Kind(fields.pop("kind")), fields.pop("details", {})
    if not all(isinstance(value, str) for value in fields.values()):
        raise TypeError
    if not all(isinstance(value, Detail) for value in named.values()):
        raise TypeError
    return Finding(kind, **fields, details=tuple((str(key), value) for key, value in named.items()))


def _is_number(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        float(value)
    except ValueError:
        return False
    return True


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
