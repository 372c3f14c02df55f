"""The answers of `siteproof verdict` and `siteproof nodes` for programs.

What a command answers, typed: a dataclass whose fields are the keys of its JSON, in their order.

Its docstring has a sentence for each key, `key: sentence.`, from which the schema is made. A field
with a default is left out of the JSON while it has that. The _ at the end of `from_` is no part of
the key.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ClusterShell.NodeSet import NodeSet

from siteproof import __version__
from siteproof.analysis.slow_nodes import State
from siteproof.answers.criterion import CriterionVerdict, NodeVerdict
from siteproof.errors import ExitCode
from siteproof.record.finding import Details, Finding, Verdict
from siteproof.record.samples import Sample
from siteproof.sites import Bound, Criterion
from siteproof.units import Limit
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.tally import Standing, Tally
from siteproof.wording import tallies
from siteproof.wording.findings import full, fulls, sentence
from siteproof.wording.verdicts import awaited, bound, digits, number, reasons, why

if TYPE_CHECKING:
    from siteproof.nodes.states import FleetReport, NodeReport

FORMAT: Literal[1] = 1  # another number only if a key is removed or changes its meaning
SCHEMAS: dict[Any, dict[str, Any]] = {
    Any: {},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Details: {"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}},
    float: {"type": "number"},
    Fraction: {"type": "number"},
    int: {"type": "integer"},
    NodeSet: {"type": "string"},
    str: {"type": "string"},
    type(None): {"type": "null"},
}
LEVELS = 3  # of a document whose parts have a line each
PLAIN = (str, int, type(None))  # which JSON has
SCALARS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (float | Fraction, lambda value: float(value) if math.isfinite(value) else None),
    (datetime, lambda value: value.isoformat(timespec="seconds")),
    (NodeSet, str),
)
Time = Annotated[str, ("format", "date-time")]  # ISO 8601, with its zone
Code = Annotated[int, ("minimum", 0), ("maximum", 3)]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Answer:
    """What every answer begins with.

    format: The form of this document. It changes when a key is removed or gets another meaning; a
        new key does not change it.
    version: The version of Siteproof that wrote it.
    made: When this document was made.
    system: The system that it is about.
    samples_of: Which samples it rests on, in words: a session, a campaign, since when.
    exit_code: What the command ends with.
    """

    format: Literal[1] = field(default=FORMAT, init=False)
    version: str = field(default=__version__, init=False)
    made: Time = field(default_factory=_now, init=False)
    system: str
    samples_of: str
    exit_code: Code


def same(source: object, *names: str) -> dict[str, Any]:
    """What an answer has by the same names as its source; None where there is no source."""
    return {name: getattr(source, name, None) for name in names}


def dumps(answer: Answer) -> str:
    """An answer as text, ASCII only; JSON has no NaN and no infinity."""
    return _text(plain(answer), LEVELS)


_ENCODER = json.JSONEncoder(allow_nan=False)


def _text(value: Any, levels: int) -> str:
    """As json.dumps with an indent, which is slow, but whole items below some levels on a line."""
    if not (levels and value and isinstance(value, dict | list)):
        return _ENCODER.encode(value)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_text(one, levels - 1)}" for key, one in value.items()]
    else:
        parts = [_text(one, levels - 1) for one in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    line = "\n" + " " * (LEVELS - levels)
    return f"{begin}{line} {f',{line} '.join(parts)}{line}{end}"


def plain(value: Any) -> Any:
    """A value as JSON has it: null for NaN and infinity, texts for times and sets of nodes."""
    kind: Any = type(value)
    form = _form(kind)
    return form(value) if form else value


@cache
def _form(kind: Any) -> Callable[[Any], Any] | None:
    """What makes JSON of each value of a type; None: it is JSON. A fleet has a million values."""
    if issubclass(kind, PLAIN):
        return None
    if form := next((form for one, form in SCALARS if issubclass(kind, one)), None):
        return form
    if issubclass(kind, Finding):
        return _of_finding
    if is_dataclass(kind):
        return _of_fields(kind)
    if issubclass(kind, Mapping):
        return lambda value: {str(key): plain(part) for key, part in value.items()}
    return lambda value: list(map(plain, value))


def _of_finding(why: Finding) -> dict[str, Any]:
    text = sentence(why) if why.text else ""
    return {key: plain(part) for key, part in replace(why, text=text).record().items()}


def _of_fields(kind: Any) -> Callable[[Any], dict[str, Any]]:
    """What makes JSON of each value of a dataclass; the types of its fields say what JSON has."""
    hints, known = get_type_hints(kind, include_extras=True), fields(kind)
    keys = {one.name: _key(one) for one in known}
    optional = {_key(one): one.default for one in known if _optional(one)}
    others = [_key(one) for one in known if not _is_plain(hints[one.name])]
    return partial(_object_of, keys, optional, others)


def _object_of(
    keys: Mapping[str, str], optional: Mapping[str, object], others: Sequence[str], value: object
) -> dict[str, Any]:
    found = {key: getattr(value, name) for name, key in keys.items()}
    for key, default in optional.items():
        if found[key] == default:
            del found[key]
    for key in others:
        if found.get(key) is not None:
            found[key] = plain(found[key])
    return found


def _is_plain(kind: Any) -> bool:
    """Whether JSON has each value of a type, which is no list and no object."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is_plain(args[0])
    if origin in (Union, UnionType):
        return all(map(_is_plain, args))
    return origin is Literal or (isinstance(kind, type) and issubclass(kind, PLAIN))


def _key(one: Field[Any]) -> str:
    return one.name.rstrip("_")


def _optional(one: Field[Any]) -> bool:
    """Whether a key is left out while it has its default."""
    return one.init and one.default is not MISSING


# ---- the schema


def schema(answer: type[Answer], document: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of the answer of a command, complete in itself."""
    parts: dict[str, Any] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"siteproof {document} --json",
        **_of(answer, parts),
        "$defs": parts,
    }


def _of(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; that of a dataclass is put into `parts`."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _of(args[0], parts) | dict(args[1:])
    if origin in (Union, UnionType):
        return {"anyOf": [_of(one, parts) for one in args]}
    if origin is Literal:
        return {"enum": list(args)}
    if kind in SCHEMAS:
        return dict(SCHEMAS[kind])
    if issubclass(origin or kind, Mapping):
        return {"type": "object", "additionalProperties": _of(args[1], parts)}
    if issubclass(origin or kind, Enum):
        return {"type": "string", "enum": list(map(str, kind))}
    if not is_dataclass(kind):
        return {"type": "array", "items": _of(args[0], parts)}
    name = str(getattr(kind, "__name__", ""))
    if name not in parts:
        parts[name] = {}  # it may hold itself
        parts[name] = _object(kind, parts)
    return {"$ref": f"#/$defs/{name}"}


def _object(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a dataclass: its keys, each with its sentence."""
    texts, known = sentences(kind), fields(kind)
    hints = get_type_hints(kind, include_extras=True)
    return {
        "type": "object",
        "description": texts[""],
        "required": [_key(one) for one in known if not _optional(one)],
        "properties": {
            _key(one): _of(hints[one.name], parts) | {"description": texts[one.name]}
            for one in known
        },
    }


def sentences(kind: Any) -> dict[str, str]:
    """What the docstrings of a dataclass have of the whole, as '', and of each of its fields."""
    names = "|".join(one.name for one in fields(kind))
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):  # what a class adds comes after what it is made of
        whole, *rest = re.split(rf"^({names}): ", inspect.cleandoc(one.__doc__ or ""), flags=re.M)
        texts = dict(zip(["", *rest[::2]], [whole, *rest[1::2]], strict=True))
        found |= {name: " ".join(text.split()) for name, text in texts.items()}
    return found


@dataclass(frozen=True)
class BoundValue:
    """A bound as a number.

    value: The digits as the contract has them.
    unit: The unit of the bound.
    of: The fact of the hardware of which it is a share; empty where it is none.
    """

    value: str
    unit: str
    of: str


@dataclass(frozen=True)
class WorstValue:
    """The worst value of a criterion.

    node: The node, pair or link.
    value: In the digits that its noise leaves.
    number: With all digits.
    unit: Its unit; that of a fact where the bound is a share of one.
    """

    node: str
    value: str
    number: Fraction
    unit: str


@dataclass(frozen=True)
class UnitAnswer:
    """One node, pair, link or GPU of a criterion.

    node: The node; a pair as sender>receiver; a GPU as 'node017 gpu3'; 'median of 320' where these
        decide.
    verdict: The verdict on it.
    why: Why it is so; may be empty. A sentence for people: programs read findings.
    findings: Why it is so; may be empty.
    value: The tool's own digits; of a median or mean, the computed value. Null: none, or a text.
    number: The same value as a number.
    unit: The unit of value and number; null where nothing was measured.
    rounded: The value as it was compared with the bound: in the bound's unit, and rounded if the
        contract requires it.
    by_rounding: Whether it passes only because the contract rounds.
    waived: Whether it misses the bound and is excused.
    session: The session that measured it.
    status: ok, or why the sample has no value, such as node_lost or timeout; null without a sample.
    time: When the job ended that measured it.
    partition: The partition that it was measured in.
    environment: The environment that it was measured with.
    dims: What the value belongs to beyond its node, such as size or peer.
    conditions: The conditions in which it differs from those of the criterion.
    """

    node: str
    verdict: Verdict
    why: str
    findings: Sequence[Finding]
    value: str | None
    number: Fraction | None
    unit: str | None
    rounded: str | None
    by_rounding: bool
    waived: bool
    session: str | None
    status: str | None
    time: Time | None
    partition: str | None
    environment: str | None
    dims: Mapping[str, str]
    conditions: Mapping[str, str]


@dataclass(frozen=True)
class CriterionAnswer:
    """One line of the contract.

    id: The criterion's name in criteria.yaml.
    verdict: The verdict on all its nodes, pairs or links: the most severe one on any.
    why: Why it is so, the most common reason first; may be empty. A sentence for people: programs
        read findings.
    findings: Why it is so: what most of the nodes that decide have in common; may be empty.
    excused: Whether it is a SKIP that decides nothing, because of report_only, not_here, or waivers
        of all nodes.
    metric: The metric, Check.metric.
    description: What is required, in a few words.
    phase: The phase of the acceptance that it belongs to.
    subject: What one value belongs to: node, pair, client, service, system …
    scope: What must meet the bound: every node, pair or GPU, median, mean or system.
    links: The links over which it is measured; empty where it names none.
    bound: The bound as a person reads it, a share worked out, with its rounding.
    kind: How value and bound are compared: at_least, at_most, equals or report_only.
    limit: The bound as a number; null where a text is compared, or nothing.
    rounding: The rounding of the contract before it is compared: none, or nearest 1 GB/s; with ',
        ties to even' where the contract rounds so.
    source: Document and paragraph.
    note: A note; may be empty.
    by_rounding: Whether it passes only because the contract rounds.
    counts: How many units have which standing. expected: how many nodes, pairs or links owe a
        value, 1 of a median or mean, 0 where none is required; it is the sum of passed (meet the
        bound), below_baseline (meet it, and are worse than their baseline), failed (miss it, or
        gave a wrong answer) and no_value (none that counts). waived of these are excused.
        reported: how many have a value where nothing is required.
    sets: Which units are below_baseline, failed and no_value, as node sets, or as sets of senders
        and receivers; empty where there are none.
    worst: The worst value that no waiver excuses, in the unit of the bound, as people read it; null
        without a number.
    passes: From which (lowest) and up to which value (highest) before rounding it passes, in the
        unit of the worst value; null: open.
    margin: By which share of that limit the worst value is on the right side of it; negative: it
        fails.
    nodes_ok: How many of its nodes, pairs or links meet it.
    nodes_expected: How many the inventory has; 0 where none is required.
    oldest: When the oldest of its answers was measured; null without one, and for what others have
        published.
    age: Seconds from the oldest answer to 'as_of'; null without one.
    conditions: The conditions that all its values were measured under, such as mode and program.
    nodes: Each node, pair or link, from the worst on; one of a median, a mean or the system.
    over: How the members of the system answer together; left out of a system without members.
    members: Each member with its own answer; left out of a system without members.
    """

    id: str
    verdict: Verdict
    why: str
    findings: Sequence[Finding]
    excused: bool
    metric: str
    description: str
    phase: str
    subject: str
    scope: str
    links: Sequence[str]
    bound: str
    kind: str
    limit: BoundValue | None
    rounding: str
    source: str
    note: str
    by_rounding: bool
    counts: Mapping[str, int]
    sets: Mapping[str, str]
    worst: WorstValue | None
    passes: Mapping[str, Limit | None]
    margin: Fraction | None
    nodes_ok: int
    nodes_expected: int
    oldest: datetime | None
    age: int | None
    conditions: Mapping[str, str]
    nodes: Sequence[UnitAnswer]
    over: str = ""
    members: Sequence[UnitAnswer] = ()


@dataclass(frozen=True)
class MetricAnswer:
    """A node in one metric.

    value: The value of its newest run.
    unit: The unit of value and median.
    median: The fleet's median in that run.
    z: The modified z-score against the fleet; null where too few nodes allow none.
    deficit: By which share of the median it is worse; below 0 where it is better.
    change: The change against its own history, below 0 where it got worse; null for too few earlier
        values.
    runs: How many runs are judged.
    slow_runs: In how many of them it was slow.
    """

    value: float | None
    unit: str
    median: float | None
    z: float | None
    deficit: float | None
    change: float | None
    runs: int
    slow_runs: int


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer, which only a waiver of its status excuses.

    reason: The sentence, as in reasons.
    check: The check that gave it.
    status: invalid, checksum or unhealthy.
    """

    reason: str
    check: str
    status: str


@dataclass(frozen=True)
class NodeAnswer:
    """A node of the inventory.

    node: Its name.
    role: Its role in system.yaml.
    state: Its state.
    reasons: Why, a sentence each, the most severe first; empty for a node that is OK. Programs read
        findings.
    findings: Why, the most severe first; empty for a node that is OK.
    metrics: Its values, by metric with its dimensions.
    notes: What proves nothing yet, such as one slow run that a retest has to confirm; a sentence
        each.
    note_findings: The same as notes, by their fields: what one more run would decide.
    repair: The last repair that a person has recorded; null without one.
    suspect: Whether it is slow by any measure, proven or not.
    untested: Whether a headline value is missing, whatever else is wrong with it.
    wrong: Those of its reasons that are wrong answers.
    """

    node: str
    role: str
    state: State
    reasons: Sequence[str]
    findings: Sequence[Finding]
    metrics: Mapping[str, MetricAnswer]
    notes: Sequence[str]
    note_findings: Sequence[Finding]
    repair: Finding | None
    suspect: bool
    untested: bool
    wrong: Sequence[WrongAnswer]


@dataclass(frozen=True)
class Judged(Answer):
    """What is judged from samples.

    set_aside: Stage directories of the system that could not be collected, each with the reason;
        'siteproof collect' tries again.
    warnings: What limits the trust in this, a sentence each: a wrong clock, a slow BLAS, a waiver
        that expired, what racks have in common.
    findings: The same as warnings, by their fields.
    """

    set_aside: Sequence[str]
    warnings: Sequence[str]
    findings: Sequence[Finding]


@dataclass(frozen=True)
class Nodes(Judged):
    """The state of every node, as printed by 'siteproof nodes --json'.

    exit_code: What 'siteproof nodes' ends with: 0 all OK, 1 some node is not, 3 some is only
        untested.
    suspect_share: The largest share of a role that is slow by any measure.
    retest: The nodes that one more run would decide, as a node set; may be empty.
    states: The nodes in each state, as node sets.
    nodes: Each node.
    in_slurm: The nodes that Slurm has drained or down now, and why; or that it does not answer.
        'siteproof nodes' has it, where there are any.
    """

    suspect_share: float
    retest: NodeSet
    states: Mapping[State, NodeSet]
    nodes: Sequence[NodeAnswer]
    in_slurm: Sequence[Finding] = ()


@dataclass(frozen=True)
class Verdicts(Judged):
    """The verdicts on a system: 'siteproof verdict --json' and 'siteproof export json'.

    exit_code: What 'siteproof verdict' ends with: 0 kept; 1 a FAIL, ERROR or REGRESSED; 3 nothing
        failed, and something is INCOMPLETE or PENDING, or a SKIP that is not excused, or nothing
        was decided.
    as_of: The moment at which ages count: now, --as-of, or the end of the newest session of
        --campaign or --since.
    first: When the first job ended that it rests on; null without samples.
    last: When the last job ended that it rests on; null without samples.
    sessions: The sessions that it rests on.
    awaited: How many criteria are answered, wait for a measurement, for inputs from which they are
        derived, for the evidence of a person, for the acceptance of a setting, for a check that
        does not exist yet or for a run in another mode, which had met them, or decide nothing here;
        their sum is the number of criteria.
    counts: How many criteria have each verdict.
    unjudged: Headline metrics that were measured and that no criterion covers.
    criteria: Every criterion, in the order of criteria.yaml.
    fleet: The state of every node; in 'siteproof export json' only.
    """

    as_of: datetime | None
    first: Time | None
    last: Time | None
    sessions: Sequence[str]
    awaited: Mapping[str, int]
    counts: Mapping[Verdict, int]
    unjudged: Sequence[str]
    criteria: Sequence[CriterionAnswer]
    fleet: Nodes | None = None


def verdict(judged: Judgement, report: FleetReport | None = None) -> Verdicts:
    """The verdicts on a system; with a report, also the states of its nodes."""
    times = sorted(s.header.time for s in judged.samples)
    return Verdicts(
        **_head(judged, judged.exit_code, judged.warnings),
        as_of=judged.as_of,
        first=times[0] if times else None,
        last=times[-1] if times else None,
        sessions=sorted({s.header.session for s in judged.samples}),
        awaited=awaited(judged),
        counts={v: sum(r.verdict is v for r in judged.verdicts) for v in Verdict},
        unjudged=judged.unjudged,
        criteria=[criterion(judged, result) for result in judged.verdicts],
        fleet=nodes(judged, report) if report else None,
    )


def _head(judged: Judgement, code: int, warnings: Sequence[Finding]) -> dict[str, Any]:
    """The fields of Judged."""
    return {
        "system": judged.site.system.system,
        "samples_of": judged.chosen,
        "exit_code": code,
        "set_aside": judged.set_aside,
        "warnings": list(map(full, warnings)),
        "findings": warnings,
    }


def nodes(judged: Judgement, report: FleetReport, in_slurm: Sequence[Finding] = ()) -> Nodes:
    """The states of all nodes."""
    return Nodes(
        **_head(judged, nodes_exit_code(report.nodes.values()), report.warnings),
        **same(report, "suspect_share", "retest"),
        states={state: report.of(state) for state in State},
        nodes=[_node_answer(node) for node in report.nodes.values()],
        in_slurm=tuple(in_slurm),
    )


def _node_answer(node: NodeReport) -> NodeAnswer:
    """A node with its findings; reasons and notes: those findings as sentences."""
    wrong = [why for why in node.findings if why.is_wrong_answer]
    return NodeAnswer(
        **same(node, "node", "role", "state", "findings", "repair", "suspect", "untested"),
        reasons=fulls(node.findings),
        metrics={name: MetricAnswer(*metric) for name, metric in node.metrics.items()},
        notes=fulls(node.notes),
        note_findings=node.notes,
        wrong=[WrongAnswer(full(why), why.check, why.status) for why in wrong],
    )


def nodes_exit_code(found: Iterable[NodeReport]) -> ExitCode:
    """Some node is not OK, or is only untested; without a node nothing was tested."""
    of_nodes = {node.state for node in found}
    if of_nodes - {State.OK, State.UNTESTED}:
        return ExitCode.FAIL
    return ExitCode.PASS if of_nodes == {State.OK} else ExitCode.INCOMPLETE


def common(samples: Iterable[Sample]) -> dict[str, str]:
    """The conditions that all of these samples were measured under."""
    alike = {(id(s.header), tuple(s.own_conditions.items())): s.conditions for s in samples}
    found: dict[str, str] | None = None
    for own in alike.values():
        found = own if found is None else {k: v for k, v in found.items() if own.get(k) == v}
    return found or {}


def answers(result: CriterionVerdict) -> list[Sample]:
    """The samples that a verdict rests on."""
    return [node.sample for node in result.nodes if node.sample]


def criterion(judged: Judgement, result: CriterionVerdict) -> CriterionAnswer:
    """A criterion with its nodes, pairs or links, and how many of them have which standing."""
    required, shared = result.criterion, common(answers(result))
    tally, limit = Tally.of(judged.site, result), required.bound
    number, worst = tally.worst_value, None
    members = [one for unit in result.nodes for one in unit.members if required.over]
    if tally.worst and number is not None:
        worst = WorstValue(tally.worst.node, tally.shown(number), number, tally.unit)
    return CriterionAnswer(
        **same(result, "id", "verdict", "findings", "excused", "by_rounding", "oldest"),
        **same(required, "metric", "description", "phase", "subject", "scope", "links", "kind"),
        over=required.over,
        members=tuple(_unit(required, one, shared) for one in members),
        why=why(result),
        bound=bound(judged, result),
        limit=_limit(limit) if limit else None,
        rounding=required.rounding_rule,
        source=required.source,
        note=required.note,
        counts={
            "expected": tally.expected,
            **{standing.key: len(units) for standing, units in tally.standings.items()},
            "waived": sum(unit.waived for units in tally.standings.values() for unit in units),
            "reported": tally.reported,
        },
        sets={
            standing.key: tallies.units([unit.node for unit in units])
            for standing, units in tally.standings.items()
            if standing is not Standing.PASSED
        },
        worst=worst,
        passes=dict(zip(("lowest", "highest"), tally.limits, strict=True)),
        margin=tally.margin,
        nodes_ok=result.ok,
        nodes_expected=result.units,
        age=None if result.age is None else int(result.age.total_seconds()),
        conditions=shared,
        nodes=[_unit(required, one, shared) for one in result.nodes],
    )


def _limit(bound: Bound) -> BoundValue:
    return BoundValue(str(bound.quantity.value), bound.quantity.unit, bound.fact)


def _unit(required: Criterion, result: NodeVerdict, shared: Mapping[str, str]) -> UnitAnswer:
    """A unit: where, when and how it was measured, without the conditions that all share."""
    sample, value, rounded = result.sample, result.value, result.rounded(required)
    conditions = sample.conditions.items() if sample else ()
    return UnitAnswer(
        **same(result, "node", "verdict", "findings", "by_rounding", "waived"),
        **same(sample and sample.header, "session", "time", "partition", "environment"),
        why=reasons(result.findings),
        value=None if value is None else digits(result),
        number=value,
        unit=(sample.unit or None) if sample else None,
        rounded=None if rounded is None else number(rounded, 12),
        status=sample.status if sample else None,
        dims=sample.dims if sample else {},
        conditions={key: text for key, text in conditions if shared.get(key) != text},
    )
