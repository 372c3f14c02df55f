"""Criteria, baselines and waivers: a metric, a bound, and the exact arithmetic of meeting it.

Values are rounded by siteproof.units; nothing here is a float.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args

from ClusterShell.NodeSet import NodeSet
from pydantic import Field, model_validator

from siteproof import nodesets, units
from siteproof.errors import UserError
from siteproof.record.pair_units import gpu_name, gpus_of
from siteproof.sites.key_types import (
    Count,
    Day,
    Model,
    parse_tolerance,
    plausible,
    readable,
    shaped,
)
from siteproof.sites.stated import Expected, Value
from siteproof.sites.system import Hardware
from siteproof.units import (
    RULES,
    USUAL,
    Limit,
    Number,
    Quantity,
    highest_passing,
    lowest_passing,
    round_to,
)

Kind = Literal["at_least", "at_most", "equals", "report_only"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SIGNS = {"at_least": ">=", "at_most": "<=", "equals": "="}
Scope = Literal["every node", "every pair", "every gpu", "median", "mean", "system"]
Subject = Literal["node", "vm", "client", "pair", "gpu", "service", "system"]
SCOPES: dict[str, Scope] = {
    "node": "every node",
    "client": "every node",
    "pair": "every pair",
    "gpu": "every gpu",
}
CONTRACT_MODES = ["maintenance", "acceptance"]
UNNAMED = Expected(one_of=CONTRACT_MODES)  # the modes of what names none; itself, and no copy
AGES = ("7d", "36h", "4w", "none")
_STEPS = "none, or 'nearest 1 GB/s'"
_TIES = {"away": USUAL, "even": "even"}  # the rules of `rounding: nearest …`
_WRITTEN = [rule for rule in RULES if rule == USUAL or rule not in _TIES.values()]
_ROUNDINGS = ["none", *(f"'{rule} 1 GB/s'" for rule in _WRITTEN)]
_AGE = re.compile(r"(\d{1,5}) ?([hdw])(?:ours?|ays?|eeks?)?", re.ASCII)
_HOURS = {"h": 1, "d": 24, "w": 168}
# YAML's true, false and null are texts here: `not_here: false` would be read as the reason.
_NO_WORD = r"(?is)(?!\s*(?:true|false|yes|no|on|off|y|n|none|null)\s*$).*"
Reason = Annotated[str, shaped(_NO_WORD, "a reason such as 'no GPU in this system'")]
AVAILABILITY = "Availability."  # metrics of a time line, which several systems have together
SUM, ALL, ANY = "sum", "all", "any"  # of `over`; or a number
_OVER = "sum, all, any, or a number of members"
_SHARE = re.compile(r"\s*(.*?)\s+of\s+(\S+)\s*", re.DOTALL)


@dataclass(frozen=True)
class Bound:
    """A bound as written; `fact` is set for a share of a hardware fact."""

    quantity: Quantity
    fact: str = ""

    def __str__(self) -> str:
        text = units.with_unit(self.quantity.value, self.quantity.unit)
        return f"{text} of {self.fact}" if self.fact else text

    def scale(self, facts: Hardware | None) -> tuple[Fraction, str]:
        """The size of one bound's unit, and in which unit it is given: (8.064, "GFLOPS")."""
        if not self.fact:
            return Fraction(1), self.quantity.unit
        whole = facts.quantities.get(self.fact) if facts else None
        if whole is None:
            raise UserError(str(self), f"the hardware has no {self.fact}")
        return units.convert(1, self.quantity.unit, "x") * Fraction(whole.value), whole.unit


def parse_bound(text: str, wanted: str = "") -> Bound:
    """Read "65 GB/s" or "80 % of peak". Raises UserError. wanted: the metric's kind, for hints."""
    match = _SHARE.fullmatch(text)
    if match:
        return Bound(plausible(match[1], "share"), match[2])
    return Bound(plausible(text, wanted))


class Rounding(NamedTuple):
    """How a value is rounded before it is compared: one of units.RULES, and its step."""

    rule: str
    step: Quantity


def parse_rounding(text: str) -> Rounding | None:
    """Read "nearest 1 GB/s", or "none". Raises UserError."""
    if text == "none":
        return None
    rule, _, stated = text.partition(" ")
    if rule not in _WRITTEN:
        raise UserError("rounding", f"unknown rounding '{text}'", _ROUNDINGS)
    step = plausible(stated)
    if step.value <= 0:
        raise UserError("rounding", f"step '{step}' is not above 0", _STEPS)
    return Rounding(rule, step)


def parse_age(text: str) -> timedelta | None:
    """Read "7d", "36 hours" or "none". Raises UserError."""
    if text == "none":
        return None
    match = _AGE.fullmatch(text.strip())
    if not match or not int(match[1]):
        raise UserError("max_age", f"'{text[:40]}' is not a valid age", AGES)
    return timedelta(hours=int(match[1]) * _HOURS[match[2]])


def compared(kind: Kind, value: Fraction, bound: Fraction) -> bool:
    """Whether a value is on the right side of a bound."""
    if kind == "at_least":
        return value >= bound
    return value <= bound if kind == "at_most" else value == bound


class Promise(Model):
    """What criteria and baselines have in common."""

    metric: str
    """The metric, Check.metric of checks/*/catalogue.yaml."""
    nodes: list[str] = Field([], min_length=1)
    """Roles that it covers; without it, all roles."""
    links: list[str] = []
    """Links over which it was measured, keys of `links`; needed for pairs."""
    at_least: str | None = None
    """The lowest value that passes: '65 GB/s', or a share: '80 % of peak'."""
    at_most: str | None = None
    """The highest value that passes: '0 %', or a share of a hardware fact."""
    rounding: Annotated[str, readable(parse_rounding)] = Field(
        "none",
        description="'nearest 1 GB/s': the value is rounded to the step, then compared; none: as "
        "measured. The rules: "
        + "; ".join(f"{name}: {rule.meaning}" for name, rule in RULES.items() if name in _WRITTEN)
        + ".",
    )
    ties: Literal["away", "even"] = "away"
    """Of `nearest`, how a value half-way between two steps is rounded: away from zero, or to the
    even multiple of the step, as in ASTM E29 (6.4.3)."""
    conditions: dict[str, Value] = Field(default_factory=lambda: {"mode": UNNAMED})
    """The conditions that a sample must have to count. Those that the check has settings for set
    the runs of the modes that `mode` names. Without it maintenance and acceptance count, and
    acceptance is set."""
    programs: list[str] = []
    """Programs whose value counts; without it, any that the check knows."""
    source: str
    """Where the bound is stated: document and paragraph."""
    note: str = ""
    """A remark for readers of the report."""

    @model_validator(mode="before")
    @classmethod
    def _never_quick(cls, data: Any) -> Any:
        conditions = data.get("conditions") if isinstance(data, dict) else None
        if not isinstance(conditions, dict) or "mode" in conditions:
            return data
        return {**data, "conditions": {**conditions, "mode": UNNAMED}}

    @cached_property
    def kind(self) -> Kind:
        """Which of the four it is; at_least and at_most are the only ones of a baseline."""
        return next(k for k in KINDS if getattr(self, k, None) is not None)

    @cached_property
    def bound(self) -> Bound | None:
        """The bound as written; None for a text and for report_only."""
        if self.kind == "report_only":
            return None
        try:
            return parse_bound(getattr(self, self.kind))
        except UserError:
            if self.kind == "equals":
                return None
            raise

    @property
    def required(self) -> str:
        """Kind and bound in words: `at least 165 GB/s`; without one `report only`."""
        return f"{self.kind.replace('_', ' ')} {self.bound or getattr(self, 'equals', '')}".rstrip()

    @cached_property
    def rounds(self) -> Rounding | None:
        """The rule and the step, or None for the absolute method."""
        found = parse_rounding(self.rounding)
        return found and found._replace(
            rule=_TIES[self.ties] if found.rule == USUAL else found.rule
        )

    @property
    def step(self) -> Quantity | None:
        """The rounding step, or None for the absolute method."""
        return self.rounds and self.rounds.step

    @property
    def rounding_rule(self) -> str:
        """The rounding in words, with its ties where they are not the default."""
        named = self.rounding != "none" and self.ties != "away"
        return self.rounding + (f", ties to {self.ties}" if named else "")

    def _number(self) -> Bound:
        """The bound as written. Raises UserError if it is not a number."""
        if self.bound is None:
            raise UserError(self.metric, f"{self.kind} has no bound that is a number")
        return self.bound

    @cached_property
    def exact_bound(self) -> Fraction:
        """The bound that counts, in the bound's unit. Raises UserError if it has none."""
        sign = {"at_least": -1, "at_most": 1}.get(self.kind, 0)
        slack = parse_tolerance(getattr(self, "tolerance", None) or "0 %")  # of a baseline
        return Fraction(self._number().quantity.value) * (1 + sign * slack)

    @cached_property
    def exact_step(self) -> Fraction | None:
        """The rounding step in the bound's unit; None for the absolute method."""
        return self.step.to(self.bound.quantity.unit) if self.step and self.bound else None

    def bound_value(self, facts: Hardware | None = None) -> Quantity:
        """The bound with a share computed: 80 % of 806.4 GFLOPS is 645.12 GFLOPS."""
        about = facts if self._number().fact else None
        if about not in self.bounds:
            scale, unit = self._number().scale(facts)
            value = self.exact_bound * scale
            number = Decimal(value.numerator) / Decimal(value.denominator)
            self.bounds[about] = Quantity(number, unit)
        return self.bounds[about]

    @cached_property
    def bounds(self) -> dict[Hardware | None, Quantity]:
        """What `bound_value` has found."""
        return {}

    @cached_property
    def kept(self) -> dict[object, tuple[Any, Any]]:
        """What siteproof.answers has found of it that many samples share: refusals, and limits."""
        return {}

    def rounded(self, value: Number, unit: str, facts: Hardware | None = None) -> Fraction:
        """A measured value as it is compared: in the bound's unit (% for a share), rounded."""
        scale, scale_unit = self._number().scale(facts)
        exact = units.convert(value, unit, scale_unit)
        exact = exact if scale == 1 else exact / scale
        step = self.exact_step
        return round_to(exact, step, self.rounds.rule) if self.rounds and step else exact

    def met(self, value: Number | str, unit: str, facts: Hardware | None = None) -> bool:
        """Whether a measured value, as the tool printed it, meets the bound. Raises UserError."""
        if self.bound is None:
            return str(value) == str(getattr(self, self.kind))
        if isinstance(value, str):
            raise UserError(self.metric, f"'{value}' is not a number")
        return self.met_by(self.rounded(value, unit, facts))

    def met_by(self, rounded: Fraction) -> bool:
        """Whether a value that was rounded meets the bound."""
        return compared(self.kind, rounded, self.exact_bound)

    def limits(
        self, metric_unit: str, facts: Hardware | None = None
    ) -> tuple[Limit | None, Limit | None]:
        """The lowest and the highest raw value that pass, in the metric's unit; None: open.

        Both are None where no number is compared: a text, or report_only.
        """
        if self.bound is None:
            return None, None
        scale, unit = self.bound.scale(facts)

        def raw(limit: Limit | None) -> Limit | None:
            if limit is None:
                return None
            return Limit(units.convert(limit.value * scale, unit, metric_unit), limit.inclusive)

        low, high = self.limits_as_written
        return raw(low), raw(high)

    @cached_property
    def limits_as_written(self) -> tuple[Limit | None, Limit | None]:
        """The same in the bound's own unit, of a share of a fact as a share."""
        if self.bound is None:
            return None, None
        value, step = self.exact_bound, self.exact_step
        rule = self.rounds.rule if self.rounds else USUAL
        low = lowest_passing(value, step, rule) if self.kind != "at_most" else None
        high = highest_passing(value, step, rule) if self.kind != "at_least" else None
        return low, high

    def limit(self, metric_unit: str, facts: Hardware | None = None) -> tuple[Kind, Limit]:
        """The worst raw value that passes, in the metric's unit, and its side.

        For `equals` it is the value itself; `limits` has both sides of its rounding.
        """
        low, high = self.limits(metric_unit, facts)
        if self.kind == "equals":
            scale, unit = self._number().scale(facts)
            exact = units.convert(self.exact_bound * scale, unit, metric_unit)
            return self.kind, Limit(exact, True)
        limit = low or high
        if limit is None:
            raise UserError(self.metric, f"{self.kind} has no bound that is a number")
        return self.kind, limit


class Criterion(Promise):
    """One line of a contract."""

    description: str
    """What is required, in a few words."""
    subject: Subject = "node"
    """What one value belongs to; gpu, if and only if the metric is of GPUs."""
    scope: Scope = Field(default_factory=lambda data: SCOPES.get(data.get("subject", ""), "system"))
    """What must meet the bound; by the subject: every node for a node or client, every pair for a
    pair, every gpu for a GPU, otherwise the system's one value."""
    equals: str | None = None
    """The only value that passes, number or text."""
    report_only: Reason | None = None
    """Instead of a bound: why the value is reported and decides nothing."""
    not_here: Reason | None = None
    """Why it cannot be measured on this system. It then decides nothing, unless it was measured
    nevertheless."""
    phase: Literal["functionality", "performance", "stability", "review"] = "performance"
    """The phase of the acceptance that it belongs to."""
    trials: Count | None = None
    """How many trials must have been made; fewer are INCOMPLETE."""
    against: dict[str, str] = {}
    """With what a derived metric compares, by what differs there: link, nodes (a role), campaign,
    or a condition, such as file_system."""
    over: Annotated[str, shaped(r"(?:sum|all|any|[1-9][0-9]{0,2})?", _OVER)] = ""
    """Of a system with `members`: how their answers are one. sum: the values of all are added; all,
    any, or a number: so many members must meet it, and the value is that of the last one of these.
    Of Availability.*: the system is up while so many members are."""
    answered_by: Literal["measurement", "evidence"] = "measurement"
    """Evidence is what a person has recorded with 'siteproof evidence'; it counts only where
    neither a check nor a derivation can answer."""
    max_age: Annotated[str, readable(parse_age)] = "7d"
    """How old its answer may be: '7d', '36h', '4w'. An older one is INCOMPLETE, and so is one from
    before a change of kernel, firmware or software lock. none: no limit, and such changes do not
    matter."""

    @cached_property
    def oldest(self) -> timedelta | None:
        """How old an answer may be; None where no age matters: of evidence unless it is given."""
        if self.answered_by == "evidence" and "max_age" not in self.model_fields_set:
            return None
        return parse_age(self.max_age)

    def sets(self, mode: str) -> bool:
        """Whether it sets the runs of a mode: of those that it names; else of acceptance."""
        rule = self.conditions["mode"]
        return mode == "acceptance" if rule is UNNAMED else rule.met_by(mode)

    @property
    def combines(self) -> str:
        """How the answers of members are one; empty where their records are read as one."""
        return "" if self.metric.startswith(AVAILABILITY) else self.over

    def needed_of(self, members: int) -> int:
        """How many of so many members must meet it, or be up, by `over`."""
        return int(self.over) if self.over.isdigit() else 1 if self.over == ANY else members

    def like(self, **changes: Any) -> Criterion:
        """A criterion that differs in these keys; what was computed from the others is new."""
        own = {name: getattr(self, name) for name in type(self).model_fields} | changes
        return type(self).model_construct(self.model_fields_set | changes.keys(), **own)


class Baseline(Promise):
    """A value that the system typically reaches."""

    description: str = ""
    """What the baseline is, in a few words."""
    scope: Scope = "every node"
    """What must meet the bound."""
    tolerance: Annotated[str, readable(parse_tolerance)] | None = None
    """How far below (at_most: above) the bound a value may be: '5 %'."""
    taken: Day
    """The day on which it was measured or calibrated."""


EVERYTHING = "all"


def parse_gpus(text: str) -> frozenset[str]:
    """Read "3" or "0-3,6": indices of GPUs. Raises UserError."""
    try:
        return frozenset(map(str, nodesets.numbers(text)))
    except ValueError as error:
        raise UserError("gpus", f"'{text[:40]}': {error}", "such as '3', or '0-3,6'") from None


class Waiver(Model):
    """A known problem with an owner."""

    nodes: str
    """The nodes, in ClusterShell's syntax, all in the inventory."""
    waives: str
    """What the nodes may miss: a criterion's id, a metric, or 'all'."""
    gpus: Annotated[str, readable(parse_gpus)] = ""
    """Which GPUs of these nodes it covers, by index: '3', '0-3,6'; nothing else of the nodes is
    waived then."""
    wrong_answers: list[Literal["invalid", "checksum", "unhealthy"]] = []
    """Statuses of wrong answers that are waived, too; without it wrong answers are never waived."""
    problem: str
    """The known problem, in a few words."""
    owner: str
    """The person who is responsible for it."""
    expires: Day
    """The last day on which it holds."""
    ticket: str = ""
    """The ticket of the problem, such as an address."""

    @cached_property
    def set(self) -> NodeSet:
        """The nodes as a set; group names are never looked up."""
        return nodesets.parse(self.nodes)

    @cached_property
    def gpu_set(self) -> frozenset[str]:
        """The GPUs that it is limited to, by index; empty: it is not."""
        return parse_gpus(self.gpus)

    @property
    def units(self) -> NodeSet:
        """What it covers: its nodes, or their GPUs."""
        if not self.gpus:
            return self.set
        return nodesets.of(gpu_name(node, [gpu]) for node in self.set for gpu in self.gpu_set)

    def is_of(self, unit: str) -> bool:
        """Whether it covers a unit of its nodes."""
        return not self.gpus or not self.gpu_set.isdisjoint(gpus_of(unit))

    def holds(self, today: date) -> bool:
        """Whether it has not expired; it holds on its last day."""
        return today <= self.expires

    def covers(self, name: str, metric: str) -> bool:
        """Whether it covers a criterion, by its id or its metric."""
        return self.waives in (EVERYTHING, name, metric)
