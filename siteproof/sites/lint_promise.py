"""Mistakes in criteria, baselines and waivers: unknown metrics, and bounds that decide nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import get_args

from ClusterShell.NodeSet import NodeSet

from siteproof import units
from siteproof.errors import UserError, hint
from siteproof.record.samples import EMULATED, HYPERVISOR, PROCESSOR
from siteproof.sites import plausible
from siteproof.sites.catalogue import MODES, Metric
from siteproof.sites.lint import Around, belongs_to, node_set, reference
from siteproof.sites.promise import (
    ALL,
    ANY,
    EVERYTHING,
    KINDS,
    SUM,
    Baseline,
    Criterion,
    Subject,
    Waiver,
    parse_bound,
)
from siteproof.sites.schema.shapes import near
from siteproof.sites.schema.yamlfile import Document, clip
from siteproof.sites.system import SHARE_OF, Hardware, System

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SUBJECTS = {"every node": ("node", "client", "vm"), "every pair": ("pair",), "every gpu": ("gpu",)}
_LINK_SUBJECTS = ("pair", "client", "system")
OWNER = "system"  # baselines.yaml's one key that is no id
ANYWHERE = ("mode", EMULATED)  # conditions of every metric
# Of conditions whose values are a closed list, whatever the site.
VALUES: dict[str, Collection[str]] = {
    "mode": MODES,
    "direct": ("yes", "no"),
    "cached": ("yes", "no"),
    "direction": ("out", "in"),
    "variant": ("easy", "hard"),
}
WHOLE = ("system", "service")  # subjects of which a system has one value
LINK = "link"  # a metric with this condition is measured over links
MIDDLES = ("median", "mean")
_RIGHT_BOUND = {"higher": "at_least", "lower": "at_most"}


def lint_promise(
    document: Document, key: str, promise: Criterion | Baseline, around: Around, *others: Around
) -> None:
    """Check one criterion or baseline against the catalogue and the system.

    others: of a system that consists of several, all members but the first.
    """
    if not _ID.fullmatch(key):
        document.add(
            (key,), f"'{clip(key)}' is not a valid id", "letters, digits, '.', '_' and '-'"
        )
    roles = around.names("nodes")
    for other in others:
        roles = [role for role in roles or () if role in (other.names("nodes") or ())]
    for role in promise.nodes:
        reference(document, (key, "nodes"), role, "role", roles)
    if isinstance(promise, Criterion):
        _over(document, key, promise, len(others) + bool(others))
    for name in ("source", "report_only", "not_here", "description"):
        if name in document.data[key] and not (getattr(promise, name, None) or "").strip():
            document.add((key, name), "an empty text")
    metric = around.metrics.get(promise.metric)
    if metric is not None:
        _Linted(document, key, promise, metric, around).all()
        return
    if (key, "metric") not in document.gaps:
        _unknown_metric(document, key, promise.metric, around.metrics)
    _bound_of(document, key, promise)


def _over(document: Document, key: str, criterion: Criterion, members: int) -> None:
    """What a system with members says in `over`, and no other does. members: 0: it has none."""
    loc, over = (key, "over"), criterion.over
    if not members or criterion.answered_by == "evidence":
        if over:
            why = "evidence" if members else "a system without `members`"
            document.add(loc, f"'{over}' of {why}", hint="Remove over")
        return
    known = [ALL, ANY, f"1 to {members}"]
    if criterion.combines or not over:
        known = [SUM, *known]
    if not over and not document.spoilt(loc):
        document.add((key,), "missing key 'over'", known)
    if over == SUM not in known or over.isdigit() and int(over) > members:
        document.add(loc, f"'{over}' of {criterion.metric} of {members} members", known)
    _one_value(document, key, criterion)


def _one_value(document: Document, key: str, criterion: Criterion) -> None:
    """Note what gives several values of each member, and a bound that differs between them."""
    if criterion.subject not in WHOLE or criterion.scope != "system" or criterion.links:
        what = "several values of each member, not one,"
        document.add((key, "subject"), what, f"subject {' or '.join(WHOLE)}, no scope, no links")
    if criterion.bound and criterion.bound.fact:
        what = f"a share of {criterion.bound.fact}, of which each member has its own"
        document.add((key, criterion.kind), what, "a number and a unit")


def lint_owner(document: Document, site: str) -> None:
    """Note baselines of another site, as in a copied folder, and take the owner from the data."""
    if document.data and OWNER in document.data:
        belongs_to(document, (OWNER,), "baselines", document.data.pop(OWNER), site)
    elif document.data:
        document.add((), f"missing key '{OWNER}', the site that the baselines belong to", site)


def _unknown_metric(document: Document, key: str, name: str, metrics: Collection[str]) -> None:
    close = near(document, (key, "metric"), name, metrics)
    check = name.partition(".")[0]
    of_check = [m for m in metrics if m.partition(".")[0] == check]
    checks = sorted({f"{m.partition('.')[0]}.*" for m in metrics})
    what = f"unknown metric '{clip(name)}'{close}"
    document.add((key, "metric"), what, of_check or checks)


def _bound_of(document: Document, key: str, promise: Criterion | Baseline) -> bool:
    """Whether it has one bound that is known; notes one too few or too many."""
    written = document.data[key]
    kinds = [k for k in KINDS if k in type(promise).model_fields]
    gaps = [k for k in kinds if (key, k) in document.gaps]
    given = [k for k in kinds if written.get(k) is not None] + gaps
    if not given and set(written) - set(type(promise).model_fields):
        return False  # the unknown key may be the bound
    if len(given) != 1:
        what = f"both {' and '.join(given)}" if given else "no bound"
        document.add((key,), what, f"one of {', '.join(kinds)}")
        return False
    return not gaps and getattr(promise, given[0]) is not None


@dataclass(frozen=True)
class _Linted:
    """A criterion or baseline of a metric that is known, with the file that it is in."""

    document: Document
    key: str
    promise: Criterion | Baseline
    metric: Metric
    around: Around

    def _note(
        self, name: str, what: str, allowed: str | Collection[str] = (), hint: str = ""
    ) -> None:
        """Note a mistake at one of its keys."""
        self.document.add((self.key, name), what, allowed, hint)

    def all(self) -> None:
        """Note every mistake."""
        self._conditions()
        self._links()
        if isinstance(self.promise, Criterion):
            self._criterion(self.promise)
        if not _bound_of(self.document, self.key, self.promise):
            return
        self._bound()
        is_sum = getattr(self.promise, "over", "") == SUM  # a bound of several systems together
        if self.around.system and not self.around.broken and not is_sum:
            plausible.check_promise(
                self.document, self.key, self.promise, self.metric, self.around.system
            )

    def _conditions(self) -> None:
        known, values = [*ANYWHERE, *self.metric.conditions], dict(VALUES)
        if system := self.around.system:
            values["file_system"] = list(system.file_systems)
            values[EMULATED] = [*system.emulations(), PROCESSOR, HYPERVISOR]
        for name, expected in self.promise.conditions.items():
            loc = (self.key, "conditions", name)
            reference(self.document, loc, name, "condition", known)
            for text in expected.texts or [str(expected)]:
                reference(self.document, loc, text, name.replace("_", " "), values.get(name))
        for program in self.promise.programs:
            place = (self.key, "programs")
            reference(self.document, place, program, "program", self.metric.programs)

    def _links(self) -> None:
        """What is measured over links names them; nothing else does."""
        promise, loc = self.promise, (self.key, "links")
        over_links, links = LINK in self.metric.conditions, self.around.names("links")
        if loc in self.document.gaps:
            return
        for name in promise.links:
            reference(self.document, loc, name, "link", links)
        if not promise.links:
            are_needed = over_links and self.metric.check or promise.scope == "every pair"
            if are_needed and not self.document.spoilt(loc):
                allowed = links or "links of system.yaml"
                self.document.add((self.key,), "missing key 'links'", allowed)
            return
        subject = getattr(promise, "subject", "pair")
        if not over_links:
            what = f"'{promise.metric}' is not measured over links"
            self._note("links", what, hint="Remove links")
        elif subject not in _LINK_SUBJECTS:
            what = f"links together with subject '{subject}'"
            self._note("links", what, f"subject {' or '.join(_LINK_SUBJECTS)}")
        elif promise.scope in MIDDLES:
            what = f"scope '{promise.scope}' with links"
            self._note("scope", what, hint="Remove scope: each pair is compared")

    def _criterion(self, criterion: Criterion) -> None:
        """What only a criterion has: subject, another side, evidence, a reason."""
        subjects = _SUBJECTS.get(criterion.scope, ())
        if subjects and criterion.subject not in subjects:
            what = f"scope '{criterion.scope}' of subject '{criterion.subject}'"
            self._note("scope", what, f"subject {' or '.join(subjects)}")
        self._gpus(criterion)
        sides = {"link": ("link", "links"), "nodes": ("role", "nodes")}
        for name, text in criterion.against.items():
            loc = (self.key, "against", name)
            reference(self.document, loc, name, "side", self.metric.compared_by)
            if name in sides:
                what, section = sides[name]
                reference(self.document, loc, text, what, self.around.names(section))
        if criterion.answered_by == "evidence" and self.metric.answerable:
            by = f"check {self.metric.check}" if self.metric.check else "a derivation"
            hint = "Remove answered_by: evidence is only for what no check or derivation answers"
            self._note("answered_by", f"{by} answers {criterion.metric}", hint=hint)

    def _gpus(self, criterion: Criterion) -> None:
        """Values of GPUs are judged GPU by GPU; `devices` states how many each node has."""
        of_gpus, system = self.metric.of_gpus, self.around.system
        if (criterion.subject == "gpu") != of_gpus:
            what = f"subject '{criterion.subject}', and '{criterion.metric}' is "
            what += "of GPUs" if of_gpus else "not of GPUs"
            allowed = [one for one in get_args(Subject) if (one == "gpu") == of_gpus]
            self._note("subject", what, allowed)
        elif of_gpus and system and not self.around.broken:
            self._stated_gpus(criterion, system)

    def _stated_gpus(self, criterion: Criterion, system: System) -> None:
        roles = criterion.nodes or system.nodes
        without = [role for role in roles if not system.hardware_of(role).gpus]
        if without and (criterion.nodes or len(without) == len(system.nodes)):
            what = f"no GPU is stated of {', '.join(without)}"
            hint = "Add devices: {gpu: {count: 4}} to the hardware"
            self._note("nodes" if criterion.nodes else "metric", what, hint=hint)

    def _bound(self) -> None:
        promise, metric = self.promise, self.metric
        nearest = promise.rounding.startswith(f"{units.USUAL} ")
        if "ties" in promise.model_fields_set and not nearest:
            self._note("ties", "ties without rounding", hint="Add rounding, or remove ties")
        if promise.kind == "report_only" or metric.unit == "text":
            if promise.kind in ("at_least", "at_most"):
                what = f"'{promise.metric}' is text"
                self._note(promise.kind, what, ["equals", "report_only"])
            if promise.rounding != "none":
                self._note("rounding", "rounding without a number", "none")
            return
        unit = self._unit()
        if unit is None:
            return
        right = _RIGHT_BOUND.get(metric.better)
        if right and promise.kind not in (right, "equals"):
            what = f"{promise.kind}, although {metric.better} is better for {promise.metric}"
            self._note(promise.kind, what, [right, "equals", "report_only"])
        step, kind = promise.step, units.kind(unit)
        if step is not None and units.kind(step.unit) != kind:
            what = f"'{step.unit}' is a unit of {units.kind(step.unit)}, and the bound is of {kind}"
            self._note("rounding", what, f"none, or 'nearest 1 {unit}'")
            return
        for facts in self._facts():
            self._effect(facts)

    def _unit(self) -> str | None:
        """The bound's unit, if the metric can be compared in it."""
        promise, required = self.promise, units.kind(self.metric.unit)
        written, subject = getattr(promise, promise.kind), promise.metric
        alike = [unit for unit in units.UNITS if units.kind(unit) == required]
        try:
            bound = parse_bound(written, required)
        except UserError as error:
            allowed = f"a number and one of {', '.join(alike)}"
            if facts := [fact for fact in SHARE_OF if fact in written.split()]:
                allowed = f"a share such as '80 % of {facts[0]}'"
            self._note(promise.kind, error.what, allowed)
            return None
        if bound.fact and bound.fact not in SHARE_OF:
            what = f"unknown hardware fact '{clip(bound.fact)}'{hint(bound.fact, SHARE_OF)}"
            self._note(promise.kind, what, SHARE_OF)
            return None
        if bound.fact:
            required, subject, alike = "share", f"a share of {bound.fact}", ["%", "x"]
        unit = bound.quantity.unit
        if units.kind(unit) != required:
            what = f"'{unit}' is a unit of {units.kind(unit)}, and {subject} needs one of"
            what += f" {required}{units.hint(bound.quantity, required)}"
            self._note(promise.kind, what, alike)
            return None
        return unit

    def _facts(self) -> Iterator[Hardware | None]:
        """The hardware of every role that the bound covers; one None if it does not matter."""
        fact, system = self.promise.bound.fact if self.promise.bound else "", self.around.system
        if not fact:
            yield None
            return
        spoilt = self.around.broken or self.document.spoilt((self.key, "nodes"))
        if system and not spoilt and not getattr(self.promise, "over", ""):
            for role in self.promise.nodes or system.nodes:
                facts = system.hardware_of(role)
                if role in system.nodes and self._has_fact(facts, fact, role):
                    yield facts

    def _has_fact(self, facts: Hardware, fact: str, role: str) -> bool:
        """Whether a role's hardware has the fact that the bound is a share of, in its kind."""
        promise, kind = self.promise, units.kind(self.metric.unit)
        others = {name: units.kind(q.unit) for name, q in facts.quantities.items()}
        if fact not in others:
            what = f"a share of {fact}, which the hardware of role '{role}' lacks"
            self._note(promise.kind, what, list(others))
        elif others[fact] != kind:
            what = f"{fact} is of {others[fact]}, and {promise.metric} of {kind}"
            alike = [name for name, other in others.items() if other == kind]
            self._note(promise.kind, what, alike)
        return others.get(fact) == kind

    def _effect(self, facts: Hardware | None) -> None:
        """Note a bound that every possible value meets, or none: its ends, rounded, decide."""
        promise, metric = self.promise, self.metric
        bound, step = promise.exact_bound, promise.exact_step
        low, high = (
            no_end if end is None else promise.rounded(end, metric.unit, facts)
            for end, no_end in ((metric.lowest, -inf), (metric.highest, inf))
        )
        is_between = bool(step and bound % step)  # no value is rounded to it
        every, none = {
            "at_least": (low >= bound, high < bound),
            "at_most": (high <= bound, low > bound),
            "equals": (low == bound == high, is_between or not low <= bound <= high),
        }[promise.kind]
        possible = f"{promise.metric} is {_range(metric)}, rounding included"
        if none:
            self._note(promise.kind, f"a bound that no value can meet: {possible}")
        elif every:
            self._note(promise.kind, f"a bound that every value meets: {possible}")


def _range(metric: Metric) -> str:
    ends = ((">=", metric.lowest), ("<=", metric.highest))
    text = " and ".join(f"{sign} {end}" for sign, end in ends if end is not None)
    return f"{text} {metric.unit}" if text else "any number"


def lint_waiver(
    document: Document,
    key: str,
    waiver: Waiver,
    inventory: NodeSet | None,
    known: Mapping[str, bool],
) -> None:
    """Check one waiver.

    inventory: None if it is not known. known: criteria and metrics, and whether each is of GPUs.
    """
    for name in ("problem", "owner", "ticket"):
        if name in document.data[key] and not getattr(waiver, name).strip():
            document.add((key, name), "an empty text")
    if waiver.waives != EVERYTHING and waiver.waives not in known:
        what = f"'{clip(waiver.waives)}' is neither a criterion nor a metric"
        close = near(document, (key, "waives"), waiver.waives, known)
        allowed = "all, the id of a criterion, a metric of the catalogue"
        document.add((key, "waives"), f"{what}{close}", allowed)
    if waiver.gpus and not known.get(waiver.waives, True):
        what = f"'{clip(waiver.waives)}' is not of GPUs"
        document.add((key, "gpus"), what, hint="Remove gpus")
    node_set(document, (key, "nodes"), waiver.nodes, inventory)
