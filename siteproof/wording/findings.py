"""Findings as sentences: the one place where they are made; nothing reads them back.

A template names fields and details of a finding, each with a form: one of FORMS, `n THING` for a
number of things (1 thing, 2 things), or a text with `%s` that is left out with an absent value.
Several findings that differ in numbers only are one sentence, each number from the least to the
largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from siteproof.analysis.plateau import Why
from siteproof.analysis.scaling import Part
from siteproof.judge.age import lasting
from siteproof.record.clocks import BOUND
from siteproof.record.finding import Detail, Finding, Kind
from siteproof.units import count, size, with_unit
from siteproof.wording.amounts import at, per_cent

Words = Callable[["Fields"], str]


class Span:
    """The values of one field in several findings, for a template."""

    def __init__(self, values: Iterable[Detail]) -> None:
        self.values = sorted(set(values), key=_order)

    def __format__(self, form: str) -> str:
        if form.startswith("n "):
            thing = form.removeprefix("n ")
            return f"1 {thing}" if self.values == [1] else f"{self} {thing}s"
        if "%s" in form:
            return form.replace("%s", f"{self}") if self else ""
        shown = list(dict.fromkeys(FORMS[form](value) for value in self.values))
        return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"

    def __bool__(self) -> bool:
        return any(self.values)

    @property
    def first(self) -> Detail:
        """The least value."""
        return self.values[0]


class Fields:
    """The fields and details of findings that are alike, as attributes; "" where one is absent."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = findings

    def __getattr__(self, name: str) -> Span:
        if name in Finding.__dataclass_fields__:
            return Span(getattr(finding, name) for finding in self._findings)
        values = [finding.get(name) for finding in self._findings]
        return Span("" if value is None else value for value in values)


def sentence(*findings: Finding) -> str:
    """A finding as a sentence without its subject. findings: one, or several that are alike."""
    fields = Fields(findings)
    template = TEMPLATES[findings[0].kind]
    text = template(fields) if callable(template) else template.format(f=fields)
    return text + _lasting(fields)


def full(*findings: Finding) -> str:
    """The same, with the criterion, metric or check that it is about."""
    text, subject = sentence(*findings), about(findings[0])
    return f"{subject}: {text}" if subject else text


def about(finding: Finding) -> str:
    """What a finding is about: `TB-HPL, Hpl.gflops`, `Osu.bandwidth over fabric as sender`."""
    subject = finding.metric or finding.check
    if link := finding.get("link"):
        subject += f" over {link}"
    if sides := finding.get("sides"):
        subject += f" as {sides}"
    return ", ".join(part for part in (finding.criterion, subject) if part)


def sentences(findings: Iterable[Finding]) -> str:
    """All of them in one line."""
    return "; ".join(dict.fromkeys(map(sentence, findings)))


def fulls(findings: Iterable[Finding]) -> list[str]:
    """Each by itself, with what it is about."""
    return list(dict.fromkeys(map(full, findings)))


def title(finding: Finding) -> str:
    """How a line on what a node reports of itself begins."""
    return TITLES.get(finding.kind, "not described")


def warning(finding: Finding) -> str:
    """A finding that limits the trust in a verdict, with the nodes that it is about."""
    return f"{finding.subject or 'the system'}: {full(finding)}"


def _order(value: Detail) -> tuple[int, float, str]:
    try:
        return 0, float(value), str(value)
    except ValueError:
        return 1, 0.0, str(value)


def _message(f: Fields) -> str:
    if not f.message:
        return f"{f.status}"
    if f"{f.status}" == "generic":  # adds nothing to the message
        return f"{f.message}"
    return f"{f.status}: {f.message}"


def _value(f: Fields) -> str:
    return with_unit(f.value, f"{f.unit}")


def _lost(f: Fields) -> str:
    return f"did not answer: {f.message}" if f.message else "did not answer; the reason is unknown"


def _misses(f: Fields) -> str:
    shown = f": {f.message}" if f.message else ""
    event = f"; {_event(f)}" if f.event else ""
    return f"{_value(f)} misses the contract, which requires {f.bound}{shown}{event}"


def _event(f: Fields) -> str:
    cause = f", {f.cause}" if f.cause else ""
    what = f"all nodes lost {f.change:size} since {f.began:day} ({f.event}{cause})"
    return f"{what}, and without that this one would meet it"


def _below_baseline(f: Fields) -> str:
    shown = f"{_value(f)} meets the contract, but " if f.value else ""
    return f"{shown}misses its baseline of {f.bound}"


def _published(f: Fields) -> str:
    own = bool(f.own)
    text = f"{f.source}; "
    text += "published, and not measured here" if own else "per-node values not published"
    if f.keeps.first == "yes":
        how = " by rounding" if f.by_rounding else ""
        return f"{text}; {_value(f)} meets the bound{how}"
    if f.keeps.first == "no":
        least = "" if own else ", so at least one node misses it"
        return f"{text}; {_value(f)} misses the bound{least}"
    return text


def _too_old(f: Fields) -> str:
    limit = timedelta(seconds=float(f.limit.first))
    ages = [timedelta(seconds=float(age)) for age in f.age.values]
    shown = list(dict.fromkeys(lasting(age, limit) for age in ages))
    span = shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"
    return (
        f"measured {span} ago; at most {lasting(limit)} are allowed{f.answer:; the answer was %s}"
    )


def _not_ranked(f: Fields) -> str:
    number, more = int(f.count.first), int(f.more.first or 0)
    others = f" (and {count(more, 'more metric')})" if more else ""
    return f"not ranked: {count(number, 'node')}, without enough history{others}"


def _input_missing(f: Fields) -> str:
    more = f" and {count(int(f.more.first), 'other input')}" if f.more else ""
    return f"derived from {f.input}{more}, without a value"


def _check_missing(f: Fields) -> str:
    older = "; the older answer counts" if f.older else ""
    return f"{f.file} {f.problem}, so {f.check} cannot be measured{older}"


def _restarted(f: Fields) -> str:
    if f.what.first == "node":
        text = f"the node restarted during the tests: up for {f.age:0f} s"
    elif f.what.first == "slurmd":
        text = f"slurmd restarted during the tests: {f.age:0f} s old"
    else:
        text = "no slurmd was running"
    return f"{text} at {f.time}; it counts until {f.needed} tests in a row are without a restart"


def _seen(f: Fields) -> str:
    """How often a node was slow, and whether one more run decides."""
    if f.rule.first == "once":
        return "seen once, run again to confirm"
    runs = f"in {f.slow} of {count(f.runs.first, 'run')}"
    return f"{runs}, run again to confirm" if f.rule.first == "unconfirmed" else runs


def _lasting(f: Fields) -> str:
    """Since when, where that is more than one run ago."""
    if not f.lasting or f.lasting.values == [1]:
        return ""
    return f", since {f.since:day} ({f.lasting} runs)"


def _slow(f: Fields) -> str:
    z = f", z {f.z:1f}" if f.z else ""
    side = "below" if f.better.first == "higher" else "above"
    return f"{_value(f)} is {f.deficit:share} {side} the fleet median {f.median:6g}{z}, {_seen(f)}"


def _slow_before(f: Fields) -> str:
    return f"slow {_seen(f)}, but not in the newest run"


def _fell(f: Fields) -> str:
    again = ", seen once, run again to confirm" if f.rule.first == "once" else ""
    return f"fell {f.change:loss} against its own history{again}"


def _other_kind(f: Fields) -> str:
    better = "better" if float(f.change.first) > 0 else "lower"
    by = f" ({f.field} {f.value})" if f.field else ""
    return (
        f"two kinds of nodes in {f.role}: {f.subject}{by}, {f.count} of {f.of}, are "
        f"{f.change:size} {better} than the others, and have been so; they are ranked apart. If "
        "that is right, make them a role of their own"
    )


def _moved(f: Fields) -> str:
    fell = float(f.change.first) < 0
    change = f"{'fell' if fell else 'gained'} {f.change:size}"
    return f"{f.role} as a whole {change} against its history; this counts against no single node"


def _taken_out(f: Fields) -> str:
    since = f", since {f.since:day}" if f.since else ""
    return f"{f.state}{f.by: by %s}{f.message:: %s}{since}"


def _no_run(f: Fields) -> str:
    each = "day" if f.days.values == [1] else f"{f.days:6g} days"
    series = f"{f.series}{f.more: and %s more}"
    return f"no run between {f.since} and {f.until}, typically one every {each}: {series}"


def _criterion_missed(f: Fields) -> str:
    criterion = f"{f.criterion}" or "a criterion"
    return f"{f.subject} failed {criterion} in {f.count} of {f.runs} runs"


def _plateau_beyond(f: Fields) -> str:
    gain = f", the last doubling gained {f.gain:amount}" if f.gain else ""
    return f"{f.sweep:sweep %s: }plateau not reached: >{at(f'{f.axis}', f.last.first)}{gain}"


WHYS: dict[str, str] = {
    Why.NOTHING_CARRIED: "no value is above 0",
    Why.NO_DOUBLING: "the points span less than a doubling",
    Why.ONE_REPETITION: "one repetition does not distinguish a fall from noise",
    Why.FEW_POINTS: "too few points",
}


def _why(f: Fields) -> str:
    return WHYS.get(f"{f.why}", f"{f.why}")


def bound_name(part: str, number: Detail) -> str:
    """What bounds a rate: the link of 2 servers."""
    if part in (Part.CLIENTS, Part.SERVERS):
        return f"the link of {number} {part.removesuffix('s') if number == 1 else part}"
    if part == Part.WINDOWS:
        return "the window a round trip" if number == 1 else f"{number} windows a round trip"
    return f"the {part}"


FORMS: dict[str, Callable[[Detail], str]] = {
    "": str,
    "share": lambda detail: f"{float(detail):.1%}".replace("%", " %"),
    "loss": lambda detail: f"{-float(detail):.1%}".replace("%", " %"),
    "size": lambda detail: f"{abs(float(detail)):.1%}".replace("%", " %"),
    "change": lambda detail: f"{float(detail):+.1%}".replace("%", " %"),
    "whole": lambda detail: f"{float(detail):.0%}".replace("%", " %"),
    "5g": lambda detail: f"{float(detail):.5g}",
    "6g": lambda detail: f"{float(detail):.6g}",
    "1f": lambda detail: f"{float(detail):.1f}",
    "0f": lambda detail: f"{float(detail):.0f}",
    "age": lambda detail: lasting(timedelta(seconds=float(detail))),
    "day": lambda detail: str(detail)[:10],
    "minute": lambda detail: str(detail)[:16].replace("T", " "),
    "amount": lambda detail: per_cent(float(detail)),
    "size_in_bytes": lambda detail: size(int(detail)),
}
_ANSWER = "{f.answer:; the answer was %s}"
_CHANGE = "{f.what} changed: {f.before} -> {f.after}"
_SERIES = "{f.series}{f.more: and %s more}"
_LEFT_OUT = "{f.names}{f.more: and %s more}; {f.values:n value} left out"
_UNSTABLE = "{f.what} of {f.change:change} at {f.since:minute}"
_BY_NUMBER = "its number, and not its clock, gives its place in the order of sessions"
TEMPLATES: dict[Kind, str | Words] = {
    Kind.NOT_MEASURED: "not measured",
    Kind.NO_VALUE: lambda f: f"no value: {_message(f)}",
    Kind.WRONG_ANSWER: lambda f: f"wrong answer: {_message(f)}",
    Kind.REPAIRED: "repaired on {f.since:day} by {f.by}: {f.message}{f.ticket: (%s)}",
    Kind.FLAPPING: "failed in {f.failed} of its last {f.of} sessions: {f.how}",
    Kind.NODE_LOST: _lost,
    Kind.LOST: _message,
    Kind.INTERRUPTED: lambda f: f"not measured: {_message(f)}",
    Kind.TRIALS_MISSING: "{f.trials} of {f.expected} trials gave a value",
    Kind.SETTING_CHANGED: "measured while a sweep had changed {f.setting}",
    Kind.OTHER_LINK: "measured over {f.link}; {f.expected} is required",
    Kind.OTHER_PROGRAM: "measured with {f.program}; only {f.expected} may answer",
    Kind.OTHER_CONDITION: "measured with {f.condition} {f.found}; {f.expected} is required",
    Kind.PUBLISHED: _published,
    Kind.TOO_OLD: _too_old,
    Kind.AGE_UNKNOWN: f"measured at an unknown time: the clock showed {{f.clock}}{_ANSWER}",
    Kind.REPLACED: f"measured before {_CHANGE}{_ANSWER}",
    Kind.UPDATED_SINCE: f"measured {{f.age:age}} ago, before {_CHANGE}{_ANSWER}",
    Kind.TEXT: "found {f.value}",
    Kind.MISSES_BOUND: _misses,
    Kind.BELOW_BASELINE: _below_baseline,
    Kind.STEERED: "measured with {f.variables}",
    Kind.STEPS_FAILED: "{f.message}",
    Kind.REPORTED_ONLY: "{f.message}",
    Kind.ROLE_EMPTY: "no node has this role",
    Kind.NO_PAIR: "no pair was measured",
    Kind.NOT_HERE: "not here: {f.message}",
    Kind.WAIVED: "waived until {f.until} by {f.owner}: {f.problem}{f.ticket: (%s)}",
    Kind.MEMBERS_MISSING: "no value of {f.node}{f.more: and %s more}",
    Kind.NO_CHECK: "no check yields {f.metric} yet",
    Kind.INPUT_MISSING: _input_missing,
    Kind.INPUTS_DIFFER: "the sides cannot be compared: {f.differences}",
    Kind.NO_EVIDENCE: "the evidence of a person is due",
    Kind.WITHDRAWN: "evidence of {f.since:day} withdrawn by {f.by}: {f.message}; new one is due",
    Kind.EVIDENCE: "shown by {f.by} on {f.on}, {f.file}{f.message:: %s}",
    Kind.CHECK_GONE: "has results here, is in no catalogue, and counts for nothing",
    Kind.CHECK_MISSING: _check_missing,
    Kind.SWEEP_INCOMPLETE: "sweep {f.sweep} in session {f.session} is incomplete: {f.done} of "
    "{f.planned} points",
    Kind.OLDER_ANSWER: "interrupted in session {f.session}; the older answer counts",
    Kind.WAIVER_EXPIRED: "waiver {f.waived_by} of {f.owner} expired on {f.until}: {f.problem}",
    Kind.HERE_AFTER_ALL: "was measured, although the criterion has not_here: {f.message}",
    Kind.MEASURED_UNDER: "{f.message}",
    Kind.CLOCK_FUTURE: f"session {{f.session}} ended at {{f.ended}}, later than now; {_BY_NUMBER}",
    Kind.CLOCK_BEFORE_OLDER: "session {f.session} ended at {f.ended}, before the older session "
    f"{{f.older_session}} began at {{f.began}}; {_BY_NUMBER}",
    Kind.NUMBER_SHARED: "sessions {f.sessions} have the same number {f.number}; they are "
    "ordered by their times",
    Kind.TWO_NUMBERS: "session {f.session} has the numbers {f.numbers}",
    Kind.NUMBER_TOO_HIGH: "session {f.session} has the number {f.number}, far above {f.last}, "
    "the highest before it; the number does not count",
    Kind.NODE_CLOCKS: "in session {f.session} clocks of nodes differ from the login node's by "
    f"more than {BOUND} s: {{f.nodes}}",
    Kind.MORE_CLOCKS: "{f.count} more like this",
    Kind.RESTARTED: _restarted,
    Kind.SLOW: _slow,
    Kind.SLOW_BEFORE: _slow_before,
    Kind.FELL: _fell,
    Kind.NOT_RANKED: _not_ranked,
    Kind.UNSTABLE: "varies by {f.spread:share} over {f.runs} runs, most nodes by {f.typical:share}",
    Kind.PARAMETER_DIFFERS: "{f.parameter}: {f.value}",
    Kind.PARAMETERS_DIFFER: "{f.count} host parameters differ from the expected values",
    Kind.FIELD_DIFFERS: "{f.field} is {f.found}; on most nodes of {f.role} it is {f.majority}",
    Kind.FIELDS_DIFFER: "{f.count} more fields differ",
    Kind.CONDITION_DIFFERS: "ran with {f.condition} {f.found}, on most nodes with {f.majority}: "
    "not compared with them",
    Kind.OTHER_SETTING: "measured with another setting{f.nodes: on %s}, {f.differences}: "
    "not compared with older values until 'siteproof accept' accepts it",
    Kind.NO_MAJORITY: "{f.field} is {f.found}, and no value has a majority in {f.role}",
    Kind.FIELD_NOT_READ: "{f.field}: {f.message}",
    Kind.FACT_DIFFERS: "{f.section}: {f.field} is {f.found}, stated is {f.expected}",
    Kind.FACT_NOT_READ: "{f.section}: {f.field} was not read ({f.message}), stated is {f.expected}",
    Kind.NOT_STATED: "{f.section}: no field is stated: {f.message}",
    Kind.COUNTER_GREW: "{f.counter} +{f.by}",
    Kind.COUNTER_UNKNOWN: "{f.counter} {f.message}",
    Kind.RESTARTED_BETWEEN: "restarted in between, so that no counter can be compared",
    Kind.EXPLAINS_PAIRS: "explains {f.bad:n bad pair}",
    Kind.BLOCK_SLOW: "{f.bad} pairs between {f.subject} and {f.peers} are {f.deficit:share} worse "
    "than those on either side: a trunk or leaf, and no node, is slow",
    Kind.BELOW_THRESHOLD: lambda f: f"{_value(f)} is below the link's threshold of {f.bound}",
    Kind.PAIR_SLOW: "{f.deficit:share} worse than the other pairs; no node explains it",
    Kind.SLOW_DAY: lambda f: f"{_value(f)} on {f.since} on average, below {f.bound}",
    Kind.DIRECTIONS_DIFFER: "{f.deficit:share} slower than in the other direction",
    Kind.PAIRS_WITHOUT_VALUE: "no value with {f.peers:n peer}",
    Kind.PAIRS_MISS_BOUND: "misses the contract with {f.peers:n peer}",
    Kind.PAIRS_SLOW: lambda f: (
        f"{f.deficit:share} worse than the others with {f.peers:n peer}, {_seen(f)}"
    ),
    Kind.MANY_RESTARTED: "{f.role}: {f.count} of {f.of} nodes, or their slurmd, restarted during "
    "the tests: the maintenance probably goes on, so this counts against no node",
    Kind.MANY_SLOW: "slow in some metric, FAILED ones included: {f.count} of {f.of} measured nodes "
    "of {f.role} ({f.share:whole}); the median itself may be bad, so rely on the contract and each "
    "node's own history",
    Kind.MANY_FAST: "{f.share:whole} of {f.role} is far better than the median, so the median "
    "itself may be bad",
    Kind.FLEET_MOVED: _moved,
    Kind.LOSS_HIDDEN: "{f.runs} runs cannot show a loss of {f.loss:whole}: nodes of {f.role} "
    "scatter by {f.spread:share} from run to run",
    Kind.OTHER_KIND: _other_kind,
    Kind.FLEET_EVENT: lambda f: f"goes back, as {_event(f)}",
    Kind.GROUP_SLOW: "{f.group} as a whole is {f.deficit:share} worse than the fleet",
    Kind.GROUP_BAD: "{f.group}: {f.count} of {f.of} nodes are bad; check what they share",
    Kind.LINKS_BAD: "bad between {f.pairs}{f.more: and %s more}; no node explains it",
    Kind.UNKNOWN_TO_SLURM: "unknown to Slurm",
    Kind.TAKEN_OUT: _taken_out,
    Kind.TAKEN_OUT_BY_SLURM: lambda f: f"{_taken_out(f)} (by Slurm or a health check)",
    Kind.RESERVED: "in reservation {f.reservations}",
    Kind.STATE_CHANGED: "was {f.before}, is now {f.after}",
    Kind.NOT_IN_INVENTORY: "not in the inventory",
    Kind.PUT_BY_OTHERS: "put into the reservation by somebody else",
    Kind.NOT_PASSED: lambda f: f"{f.state}: {f.message or 'no reason given'}",
    Kind.NOT_RESPONDING: _taken_out,
    Kind.NOT_TESTED_INSIDE: "passed before, and was not measured in the quarantine since it "
    "came there or booted",
    Kind.COMMENT_KEPT: "keeps its comment: {f.message}",
    Kind.NOT_COMPARABLE: "not comparable on {f.role}: {f.differences}",
    Kind.NO_NODE_IN_BOTH: "not comparable on {f.role}: no node in both",
    Kind.ONLY_IN_ONE: "{f.subject}",
    Kind.CHANGED: "{f.what}: {f.before} -> {f.after}{f.subject: on %s}",
    Kind.NOTHING_CHANGED: "nothing that is recorded changed",
    Kind.CHANGE_UNKNOWN: "not known: {f.message}",
    Kind.OTHER_SERIES: "another series since {f.since:minute} (session {f.session}): "
    f"{{f.differences}}; {_SERIES} not compared with older values",
    Kind.NOT_MEASURED_SINCE: f"not measured since {{f.since}}: {{f.subject}}, {_SERIES}",
    Kind.RUNS_MISSED: "{f.count:n gap} of {f.least} runs or more in a line, for example "
    "{f.subject}, {f.metric}, between {f.since} and {f.until}",
    Kind.NO_RUN: _no_run,
    Kind.NO_RUN_BEFORE: "{f.count:n earlier period} without any run",
    Kind.TOO_FEW_RUNS: "{f.count} of {f.of} series have fewer than {f.needed} runs, too few for a "
    "step: for example {f.metric}, {f.subject} with {f.runs}",
    Kind.NOT_SEARCHED: "{f.count} series with more runs than are searched: of {f.metric} the "
    "oldest {f.runs:n run} left out",
    Kind.WITHOUT_VALUE: "{f.samples:n sample} of {f.nodes:n node} without a value, of status "
    "{f.status}; the newest: {f.check} on {f.subject}, {f.since}{f.message:: %s}",
    Kind.NO_ROLE: f"nodes without a role: {_LEFT_OUT}",
    Kind.NOT_IN_CATALOGUE: f"metrics that are not in the catalogue: {_LEFT_OUT}",
    Kind.NO_DIRECTION: f"metrics where neither more nor less is better: {_LEFT_OUT}",
    Kind.UNKNOWN_UNIT: "{f.metric}: {f.count:n value} in the unknown unit '{f.unit}', for example "
    "in {f.file}",
    Kind.WRONG_UNIT: "{f.metric}: {f.count:n value} in {f.unit}, not a unit of {f.expected}, for "
    "example in {f.file}",
    Kind.MIXED_UNITS: f"printed in {{f.printed}}, compared in {{f.unit}}: {_SERIES}",
    Kind.NOT_READ: "not read: {f.message}{f.more: and %s more; 'siteproof history' names them}",
    Kind.PUBLISHED_APART: "{f.count:n published value} left out: not measured by Siteproof",
    Kind.NOT_FINITE: "{f.count:n value} not a finite number, for example in {f.file}",
    Kind.SWEEP_FILE_CHANGED: "the file of sweep {f.sweep} was removed or has changed since, so "
    "missing points are not known",
    Kind.SWEEP_CAPPED: "a capped run of {f.sweep} ({f.caps}): {f.count} of {f.of:n point} not "
    "measured, so it is not the whole sweep",
    Kind.POINTS_TOO_LARGE: "{f.count:n point} of up to {f.nodes} nodes: partition {f.partition} "
    "has fewer, or they do not see each other's files",
    Kind.PLATEAU_BEYOND: _plateau_beyond,
    Kind.PLATEAU_UNKNOWN: lambda f: f"{f.sweep:sweep %s: }plateau undecided: {_why(f)}",
    Kind.PLATEAU_ROUGH: "uncertain, as runs differ by {f.noise:amount}",
    Kind.DECLINE_UNKNOWN: lambda f: f"whether it falls after the peak: undecided: {_why(f)}",
    Kind.ABOVE_BOUND: lambda f: (
        f"at {at(f'{f.axis}', f.at.first)} {f.share:amount} of "
        f"{bound_name(f'{f.part}', f.count.first)}, more than it can carry: the bound is wrong, or "
        "the value comes from a cache"
    ),
    Kind.RANKS_DIFFER: lambda f: (
        f"ranks differ at {at(f'{f.axis}', f.at.first)}: the slowest has {f.share:amount} of the "
        "fastest's rate"
    ),
    Kind.CACHED: "cached, as memory could hold the files of some points",
    Kind.PATH_HOLDS: "the path holds {f.bytes:size_in_bytes}, its rate times its round trip: "
    "smaller windows cannot fill it",
    Kind.NO_PACKING: "{f.sweep:sweep %s: }no number of tasks a node was measured together with one "
    "task a node",
    Kind.FLEET_UNSTABLE: f"the fleet as a whole is not stable: {_UNSTABLE}",
    Kind.LINE_UNSTABLE: f"{{f.subject}} is not stable: {_UNSTABLE}",
    Kind.CRITERION_MISSED: _criterion_missed,
    Kind.LINES_LEFT_OUT: "{f.count} of {f.of} series cannot count",
    Kind.TOO_FEW_VALUES: "too few: {f.runs} runs with {f.values} values; {f.needed_runs} runs and "
    "{f.needed_values} values are needed",
    Kind.NOT_IN_BASELINES: "a baseline cannot name {f.dimensions}",
    Kind.NO_LEVEL: "a tolerance in per cent needs a median above 0, and it is {f.median:5g}",
    Kind.SCATTERS: "it varies by {f.spread:whole}, too much for a baseline",
    Kind.SAME_BASELINE: "a baseline cannot distinguish it from that in {f.environment}",
    Kind.HOURS_MISSING: "{f.hours:6g} of {f.needed:6g} h were measured{f.first:; not measured: %s}"
    "{f.until: to %s}{f.more: and %s more}",
    Kind.NO_PROBES: "system.yaml has no {f.needed}",
    Kind.WINDOW_TOO_LATE: "window from {f.begin} is not planned: {f.by} announced it at "
    "{f.announced}",
    Kind.CLOCK_SET_BACK: "the clock of {f.host} was set back: its good probes of {f.hours:6g} h do "
    "not count",
    Kind.PROBES_OF_FUTURE: "{f.count:n line} of probes left out: later than now",
    Kind.PROBES_NOT_KNOWN: "{f.count:n line} left out, of probes that system.yaml does not have: "
    "{f.names}",
    Kind.LINES_BROKEN: "{f.count:n line} left out: broken, in {f.file}",
    Kind.UNREADABLE: "cannot be read, so it does not count: {f.message}",
    Kind.EVENT_BACKWARDS: "event {f.state} ends at {f.end}, before it begins at {f.begin}: left "
    "out",
}
TITLES = {  # how a line on what a node reports of itself begins
    Kind.FIELD_DIFFERS: "odd",
    Kind.NO_MAJORITY: "no majority",
    Kind.FIELD_NOT_READ: "not read",
    Kind.FACT_DIFFERS: "not as stated",
    Kind.FACT_NOT_READ: "not read",
    Kind.NOT_STATED: "not stated",
    Kind.CHANGED: "changed",
    Kind.RESTARTED_BETWEEN: "health, first to last look",
    Kind.COUNTER_GREW: "health, first to last look",
    Kind.COUNTER_UNKNOWN: "health, first to last look",
}
