"""Mistakes in criteria and baselines: unknown metrics, and bounds that decide nothing."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from siteproof import units
from siteproof.errors import UserError
from siteproof.record.samples import EMULATED, HYPERVISOR, PROCESSOR
from siteproof.rounding import Limit
from siteproof.schema.shapes import hint, near
from siteproof.schema.yamlfile import Document, Loc, clip
from siteproof.sites import plausible_bounds
from siteproof.sites.catalogue import MODES, Metric
from siteproof.sites.lint import belongs_to, reference
from siteproof.sites.promise import KINDS, Baseline, Criterion, Promise, parse_bound
from siteproof.sites.system import SHARE_OF, Hardware, System

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SUBJECTS = {"every node": ("node", "client", "vm"), "every pair": ("pair",)}
_LINK_SUBJECTS = ("pair", "client", "system")
OWNER = "system"  # baselines.yaml's one key that is no id
ANYWHERE = ("mode", EMULATED)  # conditions of every metric
VALUES = {  # of conditions whose values are a closed list, whatever the site
    "mode": MODES,
    "direct": ("yes", "no"),
    "cached": ("yes", "no"),
    "direction": ("out", "in"),
    "variant": ("easy", "hard"),
}
LINK = "link"  # a metric with this condition is measured over links
MIDDLES = ("median", "mean")
REASONS = {"report_only": "no value is promised", "not_here": "no GPU in this system"}
NO_REASON = ("yes", "no", "true", "false", "on", "off", "y", "n", "none", "null", "todo", "tbd")
PLACEHOLDERS = ("todo", "tbd", "tba", "fixme", "xxx", "none", "null", "n/a", "na", "unknown")
_RIGHT_BOUND = {"higher": "at_least", "lower": "at_most"}


@dataclass(frozen=True)
class Around:
    """What a promise refers to: metrics, each role's facts, links; None is what is not known.

    broken: system.yaml has mistakes.
    """

    metrics: dict[str, Metric]
    roles: dict[str, Hardware | None] | None
    links: list[str] | None
    system: System | None = None
    broken: bool = False


def lint_promise(
    document: Document, key: str, promise: Criterion | Baseline, around: Around
) -> None:
    """Check one criterion or baseline against the catalogue and the system."""
    if not _ID.fullmatch(key):
        document.add(
            (key,), f"'{clip(key)}' is not a valid id", "letters, digits, '.', '_' and '-'"
        )
    roles = None if around.roles is None else list(around.roles)
    for role in promise.nodes:
        reference(document, (key, "nodes"), role, "role", roles)
    if "nodes" in promise.model_fields_set and not promise.nodes:
        document.follow_up((key, "nodes"), "an empty list", roles or ())
        document.spoil((key, "nodes"))
    _texts(document, key, promise)
    metric = around.metrics.get(promise.metric)
    if metric is None and (key, "metric") not in document.gaps:
        _unknown_metric(document, key, promise.metric, around.metrics)
    if metric is not None:
        _conditions(document, key, promise, metric, around)
        _links(document, key, promise, metric, around)
    if isinstance(promise, Criterion):
        _scope(document, key, promise)
    if isinstance(promise, Criterion) and metric:
        _against(document, key, promise, metric, around)
        _evidence(document, key, promise, metric)
    _bound(document, key, promise, metric, around)
    if metric and around.system and not around.broken:
        plausible_bounds.check(document, key, promise, metric, around.system)


def lint_owner(document: Document, site: str) -> None:
    """Note baselines of another site, as in a copied folder."""
    if not document.data:
        return
    if OWNER in document.data:
        belongs_to(document, (OWNER,), "baselines", document.data[OWNER], site)
    else:
        document.add((), f"missing key '{OWNER}', the site that the baselines belong to", site)


def _texts(document: Document, key: str, promise: Promise) -> None:
    for name in ("source", "report_only", "not_here", "description"):
        text = getattr(promise, name, None)
        if name in document.data[key] and not (text or "").strip():
            document.follow_up((key, name), "an empty text")
        elif text and name == "source" and _is_placeholder(text):
            hint = "Name the document and its section, or write source: !gap 'what is missing'"
            document.follow_up((key, name), f"'{clip(text)}' is not a source", hint=hint)
        elif text and name in REASONS and _is_no_reason(text):
            hint = f"Give the reason, such as '{REASONS[name]}', or remove {name}"
            document.follow_up((key, name), f"'{clip(text)}' is not a reason", hint=hint)
    if getattr(promise, "not_here", None) and getattr(promise, "report_only", None):
        hint = "Remove one of them: neither decides anything"
        document.follow_up((key, "not_here"), "not_here together with report_only", hint=hint)


def _is_placeholder(text: str) -> bool:
    """Whether it stands for a source that nobody has named yet."""
    return text.strip().casefold() in PLACEHOLDERS or not any(map(str.isalnum, text))


def _is_no_reason(text: str) -> bool:
    """Whether it is a yes or no: `not_here: false` would be read as a reason."""
    return text.strip().casefold() in NO_REASON or not any(map(str.isalpha, text))


def _unknown_metric(document: Document, key: str, name: str, metrics: dict[str, Metric]) -> None:
    close = near(document, (key, "metric"), name, metrics)
    check = name.partition(".")[0]
    of_check = [m for m in metrics if m.partition(".")[0] == check]
    checks = sorted({f"{m.partition('.')[0]}.*" for m in metrics})
    what = f"unknown metric '{clip(name)}'{close}"
    document.follow_up((key, "metric"), what, of_check or checks)


def _values(name: str, system: System | None) -> Collection[str] | None:
    """The values that a condition can have; None if the list is not closed, or not known."""
    if name in VALUES:
        return VALUES[name]
    if system is None:
        return None
    if name == "file_system":
        return system.file_systems
    return {*system.emulations(), PROCESSOR, HYPERVISOR} if name == EMULATED else None


def _conditions(
    document: Document, key: str, promise: Promise, metric: Metric, around: Around
) -> None:
    for name, expected in promise.conditions.items():
        loc = (key, "conditions", name)
        reference(document, loc, name, "condition", [*ANYWHERE, *metric.conditions])
        allowed = _values(name, around.system)
        given = expected.one_of or [expected.exact or str(expected)]
        for text in given if allowed is not None else ():
            reference(document, loc, text, name.replace("_", " "), list(allowed or ()))
    for program in promise.programs:
        reference(document, (key, "programs"), program, "program", metric.programs)


def _against(
    document: Document, key: str, promise: Criterion, metric: Metric, around: Around
) -> None:
    """What compares two sides names the other one, by what the metric is compared by."""
    known = {"link": around.links, "nodes": None if around.roles is None else list(around.roles)}
    for name, text in promise.against.items():
        loc = (key, "against", name)
        reference(document, loc, name, "side", metric.compared_by)
        if name in known:
            reference(document, loc, text, "role" if name == "nodes" else name, known[name])


def _evidence(document: Document, key: str, promise: Criterion, metric: Metric) -> None:
    """A person's word counts only where nothing else can answer."""
    if promise.answered_by == "evidence" and metric.answerable:
        by = "a derivation" if metric.derived_from else f"check {metric.check}"
        hint = "Remove answered_by: a person's word answers only what nothing else can"
        document.follow_up((key, "answered_by"), f"{by} answers {promise.metric}", hint=hint)


def _links(
    document: Document, key: str, promise: Criterion | Baseline, metric: Metric, around: Around
) -> None:
    """What is measured over links names them; nothing else does."""
    loc, over_links = (key, "links"), LINK in metric.conditions
    if loc in document.gaps:
        return
    for name in promise.links:
        reference(document, loc, name, "link", around.links)
    if not promise.links:
        are_needed = over_links and metric.check or promise.scope == "every pair"
        if are_needed and not document.spoilt(loc):
            document.add((key,), "missing key 'links'", around.links or "links of system.yaml")
        return
    subject = getattr(promise, "subject", "pair")
    if not over_links:
        what = f"'{promise.metric}' is not measured over links"
        document.follow_up(loc, what, hint="Remove links")
    elif subject not in _LINK_SUBJECTS:
        what = f"links together with subject '{subject}'"
        document.follow_up(loc, what, f"subject {' or '.join(_LINK_SUBJECTS)}")
    elif promise.scope in MIDDLES:
        what = f"scope '{promise.scope}' with links"
        document.follow_up((key, "scope"), what, hint="Remove scope: each pair is compared")


def _scope(document: Document, key: str, criterion: Criterion) -> None:
    subjects = _SUBJECTS.get(criterion.scope, ())
    if subjects and criterion.subject not in subjects:
        what = f"scope '{criterion.scope}' of subject '{criterion.subject}'"
        document.follow_up((key, "scope"), what, f"subject {' or '.join(subjects)}")


def _bound(
    document: Document, key: str, promise: Promise, metric: Metric | None, around: Around
) -> None:
    written = document.data[key]
    kinds = [k for k in KINDS if k in type(promise).model_fields]
    gaps = [k for k in kinds if (key, k) in document.gaps]
    given = [k for k in kinds if written.get(k) is not None] + gaps
    if not given and set(written) - set(type(promise).model_fields):
        return  # the unknown key may be the bound
    if len(given) != 1:
        what = f"both {' and '.join(given)}" if given else "no bound"
        document.add((key,), what, f"one of {', '.join(kinds)}")
    elif not gaps and getattr(promise, given[0]) is not None and metric:
        _one_bound(document, key, promise, metric, around)


def _one_bound(
    document: Document, key: str, promise: Promise, metric: Metric, around: Around
) -> None:
    loc = (key, promise.kind)
    if "ties" in promise.model_fields_set and promise.rounding == "none":
        advice = "Add rounding, or remove ties"
        document.follow_up((key, "ties"), "ties without rounding", hint=advice)
    if promise.kind == "report_only" or metric.unit == "text":
        if promise.kind in ("at_least", "at_most"):
            document.follow_up(loc, f"'{promise.metric}' is text", ["equals", "report_only"])
        if promise.rounding != "none":
            document.follow_up((key, "rounding"), "rounding without a number", "none")
        return
    unit = _bound_unit(document, loc, promise, metric)
    if unit is None:
        return
    right = _RIGHT_BOUND.get(metric.better)
    if right and promise.kind not in (right, "equals"):
        what = f"{promise.kind}, although {metric.better} is better for {promise.metric}"
        document.follow_up(loc, what, [right, "equals", "report_only"])
    if _step_fits(document, key, promise, unit):
        for facts in _facts(document, loc, promise, metric, around):
            _effect(document, loc, promise, metric, facts)


def _bound_unit(document: Document, loc: Loc, promise: Promise, metric: Metric) -> str | None:
    """The bound's unit, if the metric can be compared in it."""
    kind = units.kind(metric.unit)
    alike = [unit for unit in units.UNITS if units.kind(unit) == kind]
    try:
        bound = parse_bound(getattr(promise, promise.kind), kind)
    except UserError as error:
        allowed = f"a number and one of {', '.join(alike)}"
        if facts := [fact for fact in SHARE_OF if fact in getattr(promise, promise.kind).split()]:
            allowed = f"a share such as '80 % of {facts[0]}'"
        document.follow_up(loc, error.what, allowed)
        return None
    if bound.fact and bound.fact not in SHARE_OF:
        close = hint(bound.fact, SHARE_OF)
        document.follow_up(loc, f"unknown hardware fact '{clip(bound.fact)}'{close}", SHARE_OF)
        return None
    required, subject = kind, promise.metric
    if bound.fact:
        required, subject, alike = "share", f"a share of {bound.fact}", ["%", "x"]
    unit = bound.quantity.unit
    if units.kind(unit) != required:
        what = f"'{unit}' is a unit of {units.kind(unit)}, and {subject} needs one of {required}"
        what += units.hint(bound.quantity, required)
        document.follow_up(loc, what, alike)
        return None
    return unit


def _step_fits(document: Document, key: str, promise: Promise, unit: str) -> bool:
    """Whether the rounding step is of the bound's kind."""
    step, kind = promise.step, units.kind(unit)
    if step is None or units.kind(step.unit) == kind:
        return True
    what = f"'{step.unit}' is a unit of {units.kind(step.unit)}, and the bound is of {kind}"
    document.follow_up((key, "rounding"), what, f"none, or 'nearest 1 {unit}'")
    return False


def _facts(
    document: Document, loc: Loc, promise: Promise, metric: Metric, around: Around
) -> list[Hardware | None]:
    """The hardware of every role that the bound covers; one None if it does not matter."""
    if not promise.bound or not promise.bound.fact:
        return [None]
    if around.roles is None or document.spoilt((loc[0], "nodes")):
        return []
    found: list[Hardware | None] = []
    for role in promise.nodes or list(around.roles):
        facts = around.roles.get(role)  # None: an unknown role or broken hardware, noted before
        if facts and _fact_fits(document, loc, promise, metric, role, facts):
            found.append(facts)
    return found


def _fact_fits(
    document: Document, loc: Loc, promise: Promise, metric: Metric, role: str, facts: Hardware
) -> bool:
    """Whether a role's hardware has the fact that the bound is a share of, in the right kind."""
    fact, kind = promise.bound.fact if promise.bound else "", units.kind(metric.unit)
    if fact not in facts.quantities:
        what = f"a share of {fact}, which the hardware of role '{role}' lacks"
        document.follow_up(loc, what, facts.quantities)
        return False
    other = units.kind(facts.quantities[fact].unit)
    if other != kind:
        alike = [name for name, q in facts.quantities.items() if units.kind(q.unit) == kind]
        what = f"{fact} is of {other}, and {promise.metric} of {kind}"
        document.follow_up(loc, what, alike)
        return False
    return True


def _effect(
    document: Document, loc: Loc, promise: Promise, metric: Metric, facts: Hardware | None
) -> None:
    """Note a bound that every possible value meets, or none."""
    low, high = promise.limits(metric.unit, facts)
    lowest = None if metric.lowest is None else Fraction(metric.lowest)
    highest = None if metric.highest is None else Fraction(metric.highest)
    nothing_passes = (
        (highest is not None and not _reaches(highest, low))
        or (lowest is not None and not _stays_below(lowest, high))
        or (low is not None and high is not None and _is_empty(low, high))
    )
    lowest_passes = low is None or (lowest is not None and _reaches(lowest, low))
    highest_passes = high is None or (highest is not None and _stays_below(highest, high))
    possible = f"{promise.metric} is {_range(metric)}, rounding included"
    if nothing_passes:
        document.follow_up(loc, f"a bound that no value can meet: {possible}")
    elif lowest_passes and highest_passes:
        document.follow_up(loc, f"a bound that every value meets: {possible}")


def _reaches(value: Fraction, low: Limit | None) -> bool:
    return low is None or value > low.value or (value == low.value and low.inclusive)


def _stays_below(value: Fraction, high: Limit | None) -> bool:
    return high is None or value < high.value or (value == high.value and high.inclusive)


def _is_empty(low: Limit, high: Limit) -> bool:
    inclusive = low.inclusive and high.inclusive
    return low.value > high.value or (low.value == high.value and not inclusive)


def _range(metric: Metric) -> str:
    ends = []
    if metric.lowest is not None:
        ends.append(f">= {metric.lowest}")
    if metric.highest is not None:
        ends.append(f"<= {metric.highest}")
    return f"{' and '.join(ends)} {metric.unit}" if ends else "any number"
