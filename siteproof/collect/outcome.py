"""The texts of one result folder to readings, or to the reason why there are none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from importlib import import_module
from types import FunctionType
from typing import Any

from siteproof import files, units
from siteproof.collect import cause, raw
from siteproof.collect.derive import Measured
from siteproof.collect.raw import KILLED, Execution, Raw
from siteproof.errors import OutputError, harmless
from siteproof.parsers import ALL, Reading
from siteproof.parsers.iperf3 import Interval
from siteproof.record import manifest, samples
from siteproof.record.manifest import Manifest
from siteproof.record.series import VARIABLE

MAX_DIGITS = 6  # of a trial's number
MAX_VARIABLES = 50  # that steer libraries, and are conditions
LONGEST_VARIABLE = 200  # characters of such a variable
MAX_READINGS = 2_000  # of one result; a ping-pong over all sizes has some 50
MAX_CONDITIONS = raw.MAX_KEYS
LONGEST = 40_000  # characters of all conditions of a result
LONGEST_TEXT = 16_384  # characters of a reading that is a text
LONGEST_ASIDE = 4 * files.MIB  # characters of all texts aside
MAX_DIMS, LONGEST_DIM = 30, 1_000
LONGEST_VALUE = 100  # digits
LONGEST_LINE = 160  # characters of a tool's line that is kept
FEW_DIGITS = 3  # a number of fewer may stand in any line, which must then name the metric
_NUMBER = re.compile(r"(?<![\w.])-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
UNFORESEEN = "no parser expects this output"  # how the reason begins where a parser went wrong
JOBS_OWN = ("mode", samples.PUBLISHED)  # set by the job alone, as its conditions are
CRASHED = "crashed"  # a fact: how the first attempt of a point ended, where this is the second
REFUSALS = ("invalid", "interrupted")  # statuses that a script may note, with a reason


@dataclass(frozen=True)
class Outcome:
    """The result of one node or pair: readings and their conditions, or a status and the reason.

    dims: what all of it belongs to beyond its node, such as peer and trial.
    aside: texts that are too many for samples, kept next to them (siteproof.record.descriptions).
    origin: the evidence that the node has made it.
    metric: of a status, which of the check's metrics has no value for it.
    lacks: metrics that cannot be measured here, though others are there, and why.
    """

    readings: list[Reading] = field(default_factory=list)
    conditions: Mapping[str, str] = field(default_factory=dict)
    status: str = "ok"
    why: str = ""
    host: Mapping[str, str] = field(default_factory=dict)
    aside: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""
    metric: str = ALL
    lacks: Mapping[str, str] = field(default_factory=dict)


def judge(
    left: Raw, runs: Sequence[Execution], job: Manifest
) -> tuple[dict[str, str], list[Reading], Mapping[str, str]]:
    """Conditions, readings and texts aside of these runs of a result, none of which may fail.

    Without runs the script's own output is read. Raises OutputError where there is no value.
    """
    must_not_set_what_the_job_sets(job, left.facts, *(run.dims for run in runs))
    for run in runs:
        must_have_ended(run, left, job)
    runs = runs or [Execution({}, 0, left.stdout, left.stderr)]
    try:
        parsed = [parse(run, left, job) for run in runs]
    except OutputError as error:
        lost = cause.lost_output(left.meta, str(error), left.facts.get("program", job.check))
        if error.status != "parse" or lost is None:
            raise
        raise lost from None
    readings = [reading for _, found in parsed for reading in found]
    conditions = {**left.facts, **agreed([own for own, _ in parsed]), **steered(left.meta)}
    if crash := conditions.pop(CRASHED, ""):
        end = harmless(crash)[: cause.TAIL]
        what = f"its ranks crashed at first ({end}); this is the value of the second attempt"
        conditions[samples.REPEATED] = what
    aside: Mapping[str, str] = {}
    if job.derive:
        function = derived(job)
        if function is None:
            raise OutputError(f"siteproof.collect.derive has no function '{job.derive[:40]}'")
        given = Measured(readings, conditions, left, job.facts)
        readings, conditions = function(given)
        aside = given.aside
    conditions = {**conditions, **emulated(job, left.meta)}
    complete(job, readings)
    must_be_short(readings, conditions)
    readings = with_lines(readings, runs, job)
    if _length(aside) > LONGEST_ASIDE:
        raise OutputError(f"texts of {_length(aside)} characters, at most {LONGEST_ASIDE}")
    return conditions, readings, aside


def reason(error: Exception) -> OutputError:
    """The reason for a result without a value. Raises files.Unread again.

    An error of another class is a mistake in a parser, and must not stop the other results.
    """
    if isinstance(error, files.Unread):  # the collecting side failed, and not the node
        raise error
    if isinstance(error, OutputError):
        return error
    what = harmless(" ".join(f"{type(error).__name__} {error}".split()))[: cause.TAIL]
    return OutputError(f"{UNFORESEEN}: {what}")


def derived(job: Manifest, part: str = "") -> Callable[..., Any] | None:
    """What adds readings, or its part `_of_link`: a function of siteproof.collect.derive."""
    module, _, name = job.derive.partition(".")
    if module not in manifest.modules("collect/derive"):
        return None
    found = getattr(import_module(f"siteproof.collect.derive.{module}"), name + part, None)
    return found if isinstance(found, FunctionType) else None


def must_not_set_what_the_job_sets(job: Manifest, *each: Mapping[str, str]) -> None:
    """Raises OutputError where a node claims what only the job knows, such as its mode."""
    own = {*JOBS_OWN, *job.conditions}
    for pairs in each:
        if wrong := sorted(own & pairs.keys()):
            raise OutputError(f"a node must not set '{wrong[0]}' itself", "invalid")


def agreed(each: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What all runs have in common; the rest is in the dimensions of each run."""
    common = set(each[0].items()).intersection(*(other.items() for other in each))
    return {key: value for key, value in each[0].items() if (key, value) in common}


def emulated(job: Manifest, *accounts: Mapping[str, str]) -> dict[str, str]:
    """The condition that a processor is emulated, if one of these accounts of nodes reports it.

    With it goes by what the job's link or file system is; a criterion must allow both.
    """
    if not any(samples.EMULATED in meta for meta in accounts):
        return {}
    by = [job.conditions.get(samples.EMULATED, ""), samples.PROCESSOR]
    return {samples.EMULATED: ", ".join(filter(None, by))}


def steered(meta: Mapping[str, str]) -> dict[str, str]:
    """The variables of the node's environment that steer libraries, as conditions."""
    names = sorted(key for key in meta if key.startswith(VARIABLE) and len(key) <= LONGEST_VARIABLE)
    return {key: meta[key][:LONGEST_VARIABLE] for key in names[:MAX_VARIABLES]}


def without_result(job: Manifest, node: str, ended: str) -> Outcome:
    """Nothing was left: the node could not take the job, or the job was ended."""
    if node in job.lost:
        return Outcome(status=job.fate(node), why=job.lost[node])
    if cause.at_time_limit(ended):
        return Outcome(status="timeout", why="no result when the job reached its time limit")
    return Outcome(status=samples.INTERRUPTED, why=f"left no result (job {ended or 'ended'})")


def failed(
    error: Exception,
    left: Raw | None,
    job: Manifest,
    ended: str,
    meta: Mapping[str, str] | None = None,
) -> Outcome:
    """Of a result without a value. meta: the node's own account, where the rest was not read."""
    host = dict(left.meta if left else meta or {})
    wrong = reason(error)
    status = status_of(wrong, left, job, ended, [host.get("exit", "")])
    return Outcome(conditions=emulated(job, host), status=status, why=str(wrong), host=host)


def status_of(
    error: OutputError, left: Raw | None, job: Manifest, ended: str, codes: Iterable[object] = ()
) -> str:
    """The status of a failure: `interrupted` where its job's end has ended it.

    codes: exit codes in addition to that of the script.
    """
    meta = left.meta if left else {}
    texts = (left.stdout, left.stderr) if left else ("", "")
    known = [meta.get("exit", ""), *codes]
    with_job = cause.with_its_job(ended, known, meta, texts, job.over)
    return samples.INTERRUPTED if with_job else error.status


def must_not_deny(left: Raw) -> None:
    """Raises OutputError if the script itself has noted that its values do not count."""
    for status in REFUSALS:
        if status in left.facts:
            raise OutputError(left.facts[status], status)


def must_have_worked(left: Raw, job: Manifest) -> None:
    """Raises OutputError unless all commands and the script ended with 0, and none was refused."""
    for run in left.runs:
        must_have_ended(run, left, job)
    must_not_deny(left)
    code = left.number("exit")
    if code != 0:
        program = left.facts.get("program", "") or job.check
        raise cause.failure(code, left.stdout, left.stderr, left.meta, program)


def must_have_ended(run: Execution, left: Raw, job: Manifest) -> None:
    """Raises OutputError unless one command of a script ended with 0."""
    what = " ".join([program_of(run, left) or job.check, *run.dims.values()])
    if run.exit is None and left.meta.get("exit") != str(KILLED):
        raise OutputError(f"{what} hung: ended after its time limit", "timeout")
    if run.exit != 0:
        code = left.number("exit") if run.exit is None else run.exit
        raise cause.failure(code, run.stdout, run.stderr, left.meta, what)


def program_of(run: Execution, left: Raw) -> str:
    """The program of a run: its own dimension, or else the script's fact."""
    return run.dims.get("program", left.facts.get("program", ""))


def parse(run: Execution, left: Raw, job: Manifest) -> tuple[dict[str, str], list[Reading]]:
    """Conditions and readings of one run, with its dimensions. Raises OutputError."""
    parser, text = _parser(run, left, job)
    dims = {key: value for key, value in run.dims.items() if key != "program"}
    try:
        found: list[Reading] = parser.parse(text)
    except OutputError as error:
        raise _explained(error, parser, run) from None
    conditions = parser.conditions(text) if hasattr(parser, "conditions") else {}
    if not dims:  # as of a description, which has thousands of readings
        return conditions, found
    return conditions, [replace(r, dims={**dims, **r.dims}) for r in found]


def _explained(error: OutputError, parser: Any, run: Execution) -> OutputError:
    """A refusal with what the tool itself printed, and with what its parser reads."""
    needs = getattr(parser, "NEEDS", "")
    if not needs or error.status != "parse":
        return error
    said = cause.printed(run.stdout, run.stderr)
    quote = f"it printed '{said}'" if said else "it printed nothing"
    why = str(error) if said and said in str(error) else f"{error}; {quote}"
    return OutputError(f"{why}; needed: {needs}", error.status)


def intervals(run: Execution, left: Raw, job: Manifest) -> list[Interval]:
    """The data that one run moved in each interval. Raises OutputError if the tool prints none."""
    parser, text = _parser(run, left, job)
    if not hasattr(parser, "intervals"):
        what = "does not print how much it moved when, so pairs cannot be added up"
        raise OutputError(f"{program_of(run, left)} {what}", "tool_missing")
    found: list[Interval] = parser.intervals(text)
    return found


def _parser(run: Execution, left: Raw, job: Manifest) -> tuple[Any, str]:
    """The parser's module, and the text that it reads. Raises OutputError."""
    program = program_of(run, left)
    if program not in job.parsers:
        raise OutputError(f"measured by '{program}', which no parser of {job.check} reads")
    name = job.parsers[program]
    if name not in manifest.modules("parsers"):
        raise OutputError(f"{job.check} has no parser '{name[:20]}'")
    parser = import_module(f"siteproof.parsers.{name}")
    if not hasattr(parser, "parse"):
        raise OutputError(f"{job.check} has no parser '{name}'")
    return parser, run.stderr if getattr(parser, "STREAM", "stdout") == "stderr" else run.stdout


def with_lines(
    readings: Sequence[Reading], runs: Iterable[Execution], job: Manifest
) -> list[Reading]:
    """The readings; those that miss a bound of the site with the tool's line, for the vendor."""
    found = lines_with({r.value for r in readings if misses(r, job)}, runs)
    return [replace(r, line=line_of(r, found[r.value])) if misses(r, job) else r for r in readings]


def lines_with(
    values: set[Decimal | str], runs: Iterable[Execution]
) -> dict[Decimal | str, list[str]]:
    """Of each value the different lines with it. The outputs are read once, however many values."""
    found: dict[Decimal | str, dict[str, None]] = {value: {} for value in values}
    texts = (text for run in runs for text in (run.stdout, run.stderr) if values)
    for line in (line for text in texts for line in text.splitlines()):
        for value in found.keys() & map(Decimal, _NUMBER.findall(line)):
            found[value][" ".join(line.split())] = None
    return {value: list(of_value) for value, of_value in found.items()}


def misses(reading: Reading, job: Manifest) -> bool:
    """Whether a value misses a bound of the site, in any mode and under any conditions."""
    low, high = job.bounds.get(reading.metric, (None, None))
    if not isinstance(reading.value, Decimal):
        return False
    value = float(reading.value) * float(units.UNITS[reading.unit][1])
    return (low is not None and value < low) or (high is not None and value > high)


def line_of(reading: Reading, found: Sequence[str]) -> str:
    """That of the lines with its value which names the metric, or the only one; else empty."""
    name = reading.metric.rpartition("_")[2]
    named = [line for line in found if name in line.lower()]
    digits = len(Decimal(reading.value).as_tuple().digits)
    sure = named or (found if len(found) == 1 and digits >= FEW_DIGITS else [""])
    line = harmless(sure[0])
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


def complete(job: Manifest, readings: list[Reading]) -> None:
    """Raises OutputError unless every promised metric is there, and finite."""
    names = {reading.metric for reading in readings}
    if missing := sorted(set(job.metrics) - names):
        raise OutputError(f"the output has no {', '.join(missing)}, expected by the catalogue")
    for reading in readings:
        if isinstance(reading.value, Decimal) and not reading.value.is_finite():
            raise OutputError(f"{reading.metric} is {reading.value}", "invalid")


def must_be_short(readings: Sequence[Reading], conditions: Mapping[str, str]) -> None:
    """Raises OutputError where samples of it could not be kept, or not be read again."""
    if len(readings) > MAX_READINGS:
        raise OutputError(f"{len(readings)} values in one result, at most {MAX_READINGS}")
    if len(conditions) > MAX_CONDITIONS or _length(conditions) > LONGEST:
        raise OutputError(
            f"{len(conditions)} conditions of {_length(conditions)} characters, "
            f"at most {MAX_CONDITIONS} of {LONGEST}"
        )
    for reading in readings:
        _must_be_storable(reading)


def _must_be_storable(reading: Reading) -> None:
    name, value, dims = reading.metric[:40], reading.value, reading.dims
    if reading.unit not in units.UNITS:
        raise OutputError(f"{name}: unknown unit '{reading.unit[:20]}'")
    if isinstance(value, Decimal):
        digits = len(value.as_tuple().digits)
        if digits > LONGEST_VALUE or abs(value.adjusted()) > samples.MAX_DIGITS:
            raise OutputError(f"{name} is {str(value)[:40]}, which no tool prints", "invalid")
    elif len(value) > LONGEST_TEXT:
        raise OutputError(f"{name}: a text of {len(value)} characters, at most {LONGEST_TEXT}")
    trial = raw.whole(dims.get("trial", "0"))
    if trial is None or trial >= 10**MAX_DIGITS:
        raise OutputError(f"{name}: trial '{dims['trial'][:20]}' is not a whole number")
    if len(dims) > MAX_DIMS or _length(dims) > LONGEST_DIM:
        raise OutputError(f"{name}: {len(dims)} dimensions of {_length(dims)} characters")


def _length(texts: Mapping[str, str]) -> int:
    return sum(len(key) + len(value) for key, value in texts.items())
