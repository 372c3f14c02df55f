"""Findings as sentences: the one place where they are made; nothing reads them back.

A template names fields and details of a finding, each with a form: one of FORMS, `n THING` for a
number of things (1 thing, 2 things), or a text with `%s` that is left out with an absent value.
Several findings that differ in numbers only are one sentence, each number from the least to the
largest. The template of a note is in the note; those of the other kinds are here.

How values, limits, shares and changes are written, and a text with less room than words.

How a state looks, on a terminal and on the page; the sign before it shows without colours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from fractions import Fraction
from math import isfinite

from siteproof import nodesets, units
from siteproof.analysis.plateau import Part, Why
from siteproof.answers.attempts import lasting
from siteproof.record.finding import Detail, Finding, Kind
from siteproof.record.pair_units import grouped, is_gpu
from siteproof.sweeps.keys import SIZES
from siteproof.units import size, with_unit

Words = Callable[["Fields"], str]  # a template that depends on values


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
        joint = ", the last since " if form == "since" else " to "
        return shown[0] if len(shown) == 1 else f"{shown[0]}{joint}{shown[-1]}"

    def __str__(self) -> str:
        return format(self)

    def __bool__(self) -> bool:
        return any(self.values)

    @property
    def first(self) -> Detail:
        """The least value."""
        return self.values[0]


class Fields:
    """The fields and details of findings that are alike, by name; "" where one is absent."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = findings

    def __getitem__(self, name: str) -> Span:
        if name in Finding.__dataclass_fields__:
            return Span(getattr(finding, name) for finding in self._findings)
        values = [finding.get(name) for finding in self._findings]
        return Span("" if value is None else value for value in values)


def sentence(*findings: Finding) -> str:
    """A finding as a sentence without its subject. findings: one, or several that are alike."""
    fields, first = Fields(findings), findings[0]
    words = first.text if first.kind is Kind.NOTE else TEMPLATES[first.kind]
    template = words(fields) if callable(words) else words
    return (template + _lasting(fields)).format_map(fields)


def full(*findings: Finding) -> str:
    """The same, with the criterion, metric or check that it is about."""
    text, subject = sentence(*findings), about(findings[0])
    if gpus := _gpus(findings):
        subject = f"{subject} of {gpus}"
    return f"{subject}: {text}" if subject else text


def _gpus(findings: Sequence[Finding]) -> str:
    """The GPUs of their nodes that findings are about: `gpu[3,5]`."""
    own = dict.fromkeys(why.subject.partition(" ")[2] for why in findings if is_gpu(why.subject))
    return str(nodesets.of(own))


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
    """Each by itself, with what it is about; GPUs of which the same holds share one."""
    alike = grouped(((is_gpu(why.subject), about(why), sentence(why)), why) for why in findings)
    return list(dict.fromkeys(full(*own) for own in alike.values()))


def days(findings: Iterable[Finding]) -> str:
    """Since when they hold: a day, or the first and the last; empty where that is not known."""
    known = [why for why in findings if why.since]
    return f"{Fields(known)['since']:since}" if known else ""


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
    if not f["message"]:
        return "{status}"
    if str(f["status"]) == "generic":  # adds nothing to the message
        return "{message}"
    return "{status}: {message}"


def _no_value(f: Fields) -> str:
    if f["status"].first == "tool_missing":
        return "cannot be measured here{message:: %s}"
    return f"no value: {_message(f)}"


def _wrong(f: Fields) -> str:
    if f["status"].first == "unhealthy":
        return "not healthy{message:: %s}"
    return f"wrong answer: {_message(f)}"


def _lost(f: Fields) -> str:
    return "did not answer: {message}" if f["message"] else "did not answer; the reason is unknown"


def _misses(f: Fields) -> str:
    event = f"; {_EVENT}" if f["event"] else ""
    return f"{_VALUE} misses the contract, which requires {{bound}}{{message:: %s}}{event}"


def _below_baseline(f: Fields) -> str:
    shown = f"{_VALUE} meets the contract, but " if f["value"] else ""
    return shown + "misses its baseline of {bound}"


def _published(f: Fields) -> str:
    own = bool(f["own"])
    text = "{source}; "
    text += "published, and not measured here" if own else "per-node values not published"
    if f["keeps"].first == "yes":
        how = " by rounding" if f["by_rounding"] else ""
        return f"{text}; {_VALUE} meets the bound{how}"
    if f["keeps"].first == "no":
        least = "" if own else ", so at least one node misses it"
        return f"{text}; {_VALUE} misses the bound{least}"
    return text


def _too_old(f: Fields) -> str:
    limit = timedelta(seconds=float(f["limit"].first))
    ages = [timedelta(seconds=float(age)) for age in f["age"].values]
    shown = list(dict.fromkeys(lasting(age, limit) for age in ages))
    span = shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"
    return f"measured {span} ago; at most {lasting(limit)} are allowed{_ANSWER}"


def _not_ranked(f: Fields) -> str:
    others = " (and {more:n more metric})" if f["more"] else ""
    return "not ranked: {count:n node}, without enough history" + others


def _check_missing(f: Fields) -> str:
    older = "; the older answer counts" if f["older"] else ""
    return "{file} {problem}, so {check} cannot be measured" + older


def _seen(f: Fields) -> str:
    """How often a node was slow, and whether one more run decides."""
    if f["rule"].first == "once":
        return "seen once, run again to confirm"
    again = ", run again to confirm" if f["rule"].first == "unconfirmed" else ""
    return "in {slow} of {runs:n run}" + again


def _lasting(f: Fields) -> str:
    """Since when, in how many runs if in several, and who has acknowledged that."""
    known = "{acknowledged:, acknowledged by %s}"
    if not f["lasting"]:
        return known
    runs = "" if f["lasting"].values == [1] else " ({lasting} runs)"
    return f", since {{since:since}}{runs}{known}"


def _slow(f: Fields) -> str:
    z = ", z {z:1f}" if f["z"] else ""
    side = "below" if f["better"].first == "higher" else "above"
    middle = f"{{deficit:share}} {side} the fleet median of {{median:6g}}{{unit:unit}}{z}"
    return f"{_VALUE} is {middle}, {_seen(f)}"


def _fell(f: Fields) -> str:
    again = ", seen once, run again to confirm" if f["rule"].first == "once" else ""
    return "fell {change:loss} against its own history" + again


def _taken_out(f: Fields) -> str:
    return "{state}{by: by %s}{message:: %s}" + (", since {since:since}" if f["since"] else "")


def _plateau_beyond(f: Fields) -> str:
    gained = f["gain"] and float(f["gain"].first) > 0  # of a curve that rises as a whole, noise
    gain = ", the last doubling gained {gain:amount}" if gained else ""
    return f"{_OF_SWEEP}plateau not reached: >{_at(f, 'last')}{gain}"


def _above_bound(f: Fields) -> str:
    bound = _literal(bound_name(str(f["part"]), f["count"].first))
    wrong = "the bound is wrong, or the value comes from a cache"
    return f"at {_at(f, 'at')} {{share:amount}} of {bound}, more than it can carry: {wrong}"


def _at(f: Fields, name: str) -> str:
    return _literal(at(str(f["axis"]), f[name].first))


def _literal(text: str) -> str:
    """A text that is no template."""
    return text.replace("{", "{{").replace("}", "}}")


WHYS: dict[str, str] = {
    Why.NOTHING_CARRIED: "no value is above 0",
    Why.NO_DOUBLING: "the points span less than a doubling",
    Why.ONE_REPETITION: "one repetition does not distinguish a fall from noise",
    Why.FEW_POINTS: "too few points",
}


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
    "since": lambda detail: str(detail)[:10],
    "minute": lambda detail: str(detail)[:16].replace("T", " "),
    "amount": lambda detail: per_cent(float(detail)),
    "size_in_bytes": lambda detail: size(int(detail)),
    "unit": lambda unit: with_unit("", str(unit)),  # follows a value
    "why": lambda why: WHYS.get(str(why), str(why)),
}
_ANSWER = "{answer:; the answer was %s}"
_CHANGE = "{what} changed: {before} -> {after}"
_DATED = "{earliest: between %s}{latest: and %s}"
_EVENT = (
    "all nodes lost {change:size} since {began:day} ({event}{cause:, %s}), and without that this "
    "one would meet it"
)
_OF_SWEEP = "{sweep:sweep %s: }"
_VALUE = "{value}{unit:unit}"
TEMPLATES: dict[Kind, str | Words] = {
    Kind.NOT_MEASURED: "not measured",
    Kind.NO_VALUE: _no_value,
    Kind.WRONG_ANSWER: _wrong,
    Kind.NODE_LOST: _lost,
    Kind.LOST: _message,
    Kind.INTERRUPTED: lambda f: f"not measured: {_message(f)}",
    Kind.TRIALS_MISSING: "{trials} of {expected} trials gave a value",
    Kind.SETTING_CHANGED: "measured while a sweep had changed {setting}",
    Kind.OTHER_LINK: "measured over {link}; {expected} is required",
    Kind.OTHER_PROGRAM: "measured with {program}; only {expected} may answer",
    Kind.OTHER_CONDITION: "measured with {condition} {found}; {expected} is required",
    Kind.PUBLISHED: _published,
    Kind.TOO_OLD: _too_old,
    Kind.AGE_UNKNOWN: f"measured at an unknown time: the clock showed {{clock}}{_ANSWER}",
    Kind.REPLACED: f"measured before {_CHANGE}{_ANSWER}",
    Kind.UPDATED_SINCE: f"measured {{age:age}} ago, before {_CHANGE}{_ANSWER}",
    Kind.MISSES_BOUND: _misses,
    Kind.BELOW_BASELINE: _below_baseline,
    Kind.REPORTED_ONLY: "{message}",
    Kind.NOT_HERE: "not here: {message}",
    Kind.WAIVED: "waived until {until} by {owner}: {problem}{ticket: (%s)}",
    Kind.CHECK_MISSING: _check_missing,
    Kind.WAIVER_EXPIRED: "waiver {waived_by} of {owner} expired on {until}: {problem}",
    Kind.SLOW: _slow,
    Kind.SLOW_BEFORE: lambda f: f"slow {_seen(f)}, but not in the newest run",
    Kind.FELL: _fell,
    Kind.NOT_RANKED: _not_ranked,
    Kind.PARAMETER_DIFFERS: "{parameter}: {value}",
    Kind.PARAMETERS_DIFFER: "{count} host parameters differ from the expected values",
    Kind.FIELD_DIFFERS: "{field} is {found}; on most nodes of {role} it is {majority}",
    Kind.FIELDS_DIFFER: "{count} more fields differ",
    Kind.CONDITION_DIFFERS: "ran with {condition} {found}, on most nodes with {majority}: "
    "not compared with them",
    Kind.OTHER_SETTING: "measured with another setting{nodes: on %s}, {differences}: "
    "not compared with older values until 'siteproof accept' accepts it",
    Kind.NO_MAJORITY: "{field} is {found}, and no value has a majority in {role}",
    Kind.FIELD_NOT_READ: "{field}: {message}",
    Kind.FACT_DIFFERS: "{section}: {field} is {found}, stated is {expected}",
    Kind.FACT_NOT_READ: "{section}: {field} was not read ({message}), stated is {expected}",
    Kind.NOT_STATED: "{section}: no field is stated: {message}",
    Kind.COUNTER_GREW: "{counter} +{by}",
    Kind.COUNTER_UNKNOWN: "{counter} {message}",
    Kind.RESTARTED_BETWEEN: "restarted in between, so that no counter can be compared",
    Kind.EXPLAINS_PAIRS: "explains {bad:n bad pair}",
    Kind.BLOCK_SLOW: "{bad} pairs between {subject} and {peers} are {deficit:share} worse "
    "than those on either side: a trunk or leaf, and no node, is slow",
    Kind.BELOW_THRESHOLD: f"{_VALUE} is below the link's threshold of {{bound}}",
    Kind.PAIR_SLOW: "{deficit:share} worse than the other pairs; no node explains it",
    Kind.SLOW_DAY: f"{_VALUE} on {{since}} on average, below {{bound}}",
    Kind.DIRECTIONS_DIFFER: "{deficit:share} slower than in the other direction",
    Kind.PAIRS_WITHOUT_VALUE: "no value with {peers:n peer}",
    Kind.PAIRS_MISS_BOUND: "misses the contract with {peers:n peer}",
    Kind.PAIRS_SLOW: lambda f: (
        "{deficit:share} worse than the others with {peers:n peer}, " + _seen(f)
    ),
    Kind.FLEET_EVENT: f"goes back, as {_EVENT}",
    Kind.UNKNOWN_TO_SLURM: "unknown to Slurm",
    Kind.TAKEN_OUT: _taken_out,
    Kind.TAKEN_OUT_BY_SLURM: lambda f: f"{_taken_out(f)} (by Slurm or a health check)",
    Kind.RESERVED: "in reservation {reservations}",
    Kind.STATE_CHANGED: "was {before}, is now {after}",
    Kind.NOT_IN_INVENTORY: "not in the inventory",
    Kind.PUT_BY_OTHERS: "put into the reservation by somebody else",
    Kind.NOT_PASSED: lambda f: "{state}: {message}" if f["message"] else "{state}: no reason given",
    Kind.NOT_RESPONDING: _taken_out,
    Kind.NOT_TESTED_INSIDE: "passed before, and was not measured in the quarantine since it "
    "came there or booted",
    Kind.COMMENT_KEPT: "keeps its comment: {message}",
    Kind.CHANGED: f"{{what}}: {{before}} -> {{after}}{{subject: on %s}}{_DATED}",
    Kind.NOTHING_CHANGED: f"nothing that is recorded changed{_DATED}",
    Kind.CHANGE_UNKNOWN: "not known: {message}",
    Kind.NOT_READ: "not read: {message}{more: and %s more; 'siteproof history' names them}",
    Kind.SWEEP_FILE_CHANGED: "the file of sweep {sweep} was removed or has changed since, so "
    "missing points are not known",
    Kind.SWEEP_CAPPED: "a capped run of {sweep} ({caps}): {count} of {of:n point} not "
    "measured, so it is not the whole sweep",
    Kind.POINTS_TOO_LARGE: "{count:n point} of up to {nodes} nodes: partition {partition} "
    "has fewer, or they do not see each other's files",
    Kind.PLATEAU_BEYOND: _plateau_beyond,
    Kind.PLATEAU_UNKNOWN: f"{_OF_SWEEP}plateau undecided: {{why:why}}",
    Kind.PLATEAU_ROUGH: "uncertain, as runs differ by {noise:amount}",
    Kind.DECLINE_UNKNOWN: "whether it falls after the peak: undecided: {why:why}",
    Kind.ABOVE_BOUND: _above_bound,
    Kind.RANKS_DIFFER: lambda f: (
        f"ranks differ at {_at(f, 'at')}: the slowest has {{share:amount}} of the fastest's rate"
    ),
    Kind.CACHED: "cached, as memory could hold the files of some points",
    Kind.PATH_HOLDS: "the path holds {bytes:size_in_bytes}, its rate times its round trip: "
    "smaller windows cannot fill it",
    Kind.LINES_BROKEN: "{count:n line} left out: broken, in {file}",
    Kind.UNREADABLE: "cannot be read, so it does not count: {message}",
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


LEAST_SHARE = 0.0005  # what is less is shown as 0 %
LIMIT_DIGITS = 6  # significant ones of a limit that is no short decimal
_ENDS = (r"[;,](?= )", r":(?= )", r"(?= )")  # of phrases, of what a phrase is about, of words
MANY_TIMES = 10  # from which on a share is shown as so many times


def at(axis: str, value: object) -> str:
    """A place on an axis with its unit: 32 tasks, 64 servers, 1 MiB, depth 4."""
    text = f"{value}"
    if isinstance(value, float):
        text = f"{value:.4g}" if value < 10_000 else f"{value:.0f}"
    if axis in SIZES and text.isdigit():
        return size(int(text))
    if axis in ("tasks", "servers", "nodes"):
        return f"1 {axis[:-1]}" if text == "1" else f"{text} {axis}"
    return f"{axis} {text}"


def number(value: float) -> str:
    """A value for people: four significant digits, and no exponent."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def quantity(value: float, unit: str) -> str:
    """A value with the unit with which it can be read: 8.712 Gb/s for 8712076343 b/s."""
    own = units.readable(value, unit)
    if own != unit:
        value = float(units.convert(Fraction(value), unit, own))
    return with_unit(number(value), own)


def stated(value: float, unit: str) -> str:
    """A limit, in the unit and the digits of who has set it: at most six."""
    text = f"{value:.{LIMIT_DIGITS}g}"
    return with_unit(f"{value:.0f}" if "e+" in text else text, unit)


def times(ratio: float) -> str:
    """A large ratio in three digits, or all before the point: `56.2 times`, `1467 times`."""
    return f"{ratio:.0f} times" if ratio >= 1000 else f"{ratio:.3g} times"


def per_cent(share: float) -> str:
    """A share: 97.9 %; below a tenth of a per cent 0 %; from 10 on, `210 times`."""
    if not isfinite(share):
        return "-"
    if share >= MANY_TIMES:
        return times(share)
    return f"{100 * share:.3g} %" if abs(share) >= LEAST_SHARE else "0 %"


def change(share: float | None) -> str:
    """A change with its sign: -5.2 %; from 10 on, `511 times`; from 0 what was 0 before."""
    if share is None:
        return "-"
    if not isfinite(share):
        return "from 0"
    if share >= MANY_TIMES:
        return times(share + 1)
    return f"{share:+.1%}".replace("%", " %") if abs(share) >= LEAST_SHARE else "0 %"


def shorten(text: str, room: int) -> str:
    """The first whole phrases that have room; of a phrase that is longer, its first words."""
    if len(text) <= room:
        return text
    for end in _ENDS:
        places = [found.start() for found in re.finditer(end, text[: room + 2])]
        whole = [place for place in places if place <= room and _closed(text[:place])]
        if whole:
            return text[: whole[-1]]
    return text[: room - 3] + "..."


def _closed(text: str) -> bool:
    """Whether no bracket is open, as in the middle of a node set."""
    return all(text.count(left) == text.count(right) for left, right in ("[]", "()"))


LOOKS = {  # of states; each is the whole text of a cell
    "bad": ("FAIL", "ERROR", "FAILED", "worse", "drift", "worse drift", "misses"),
    "warn": ("REGRESSED", "FLAPPING", "SLOW", "ODD", "UNSTABLE", "nodes fell", "provisional"),
    "open": ("INCOMPLETE", "PENDING", "UNTESTED", "UNDECIDED", "PUBLISHED", "undecidable"),
    "good": ("PASS", "OK", "better", "keeps"),
    "none": ("SKIP",),
}
SIGNS = {"bad": "\N{BALLOT X}", "warn": "!", "open": "?", "good": "\N{CHECK MARK}", "none": "–"}
_OF = {state: look for look, states in LOOKS.items() for state in states}


def look(text: str) -> str:
    """The look of a state; empty for any other text."""
    return _OF.get(text, "")
