"""Mistakes in criteria and baselines: unknown metrics, and bounds that decide nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from siteproof import units
from siteproof.errors import UserError
from siteproof.rounding import Limit
from siteproof.schema.shapes import hint
from siteproof.schema.yamlfile import Document, Loc, clip
from siteproof.sites.catalogue import MODES, Metric
from siteproof.sites.lint import reference
from siteproof.sites.promise import (
    AGES,
    KINDS,
    Baseline,
    Criterion,
    Promise,
    parse_age,
    parse_bound,
    parse_step,
)
from siteproof.sites.system import SHARE_OF, Hardware, plausible

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLACES = {"every node": ("node", "client", "vm"), "every pair": ("pair",)}
_OF_LINKS = ("pair", "client", "system")
OWNER = "system"  # baselines.yaml's one key that is no id
LINK = "link"  # a metric with this condition is measured over links
MIDDLES = ("median", "mean")
REASONS = {"report_only": "named without a figure", "not_here": "no GPU in this system"}
NO_REASON = ("yes", "no", "true", "false", "on", "off", "y", "n", "none", "null", "todo", "tbd")
_OPPOSITE = {"higher": "at_most", "lower": "at_least"}


@dataclass(frozen=True)
class Around:
    """What a promise refers to: metrics, each role's facts, links; None is what is not known."""

    metrics: dict[str, Metric]
    roles: dict[str, Hardware | None] | None
    links: list[str] | None


class Wrong(Exception):
    """The bound cannot be checked any further; it has been told why."""


def lint_promise(
    document: Document, key: str, promise: Criterion | Baseline, around: Around
) -> None:
    """Check one criterion or baseline against the catalogue and the system."""
    if not _ID.fullmatch(key):
        document.add((key,), f"'{clip(key)}' is no id", "letters, digits, '.', '_' and '-'")
    roles = None if around.roles is None else list(around.roles)
    for role in promise.nodes:
        reference(document, (key, "nodes"), role, "role", roles)
    if "nodes" in promise.model_fields_set and not promise.nodes:
        document.follow_up((key, "nodes"), "an empty list", roles or ())
        document.spoil((key, "nodes"))
    _text(document, key, promise)
    metric = around.metrics.get(promise.metric)
    if metric is None:
        _unknown_metric(document, key, promise.metric, around.metrics)
    else:
        _conditions(document, key, promise, metric)
        _links(document, key, promise, metric, around)
    if isinstance(promise, Criterion):
        _scope(document, key, promise)
        _age(document, key, promise)
    _bound(document, key, promise, metric, around)


def lint_owner(document: Document, site: str) -> None:
    """Baselines say whose they are, so that a copied site does not live on its sister's."""
    if not document.data:
        return
    owner = document.data.get(OWNER)
    if OWNER not in document.data:
        document.add((), f"missing key '{OWNER}', which says whose baselines they are", site)
    elif owner != site:
        what = f"baselines of '{clip(owner)}', which say nothing of {site}"
        document.add((OWNER,), what, hint="Write '{}' until it has a history of its own")


def _text(document: Document, key: str, promise: Promise) -> None:
    for name in ("source", "report_only", "not_here", "description"):
        text = getattr(promise, name, None)
        if name in document.data[key] and not (text or "").strip():
            document.follow_up((key, name), "an empty text")
        elif text and name in REASONS and _no_reason(text):
            what = f"'{clip(text)}' is no reason"
            document.follow_up(
                (key, name), what, hint=f"Say why, such as '{REASONS[name]}', or remove {name}"
            )
    if (
        isinstance(promise, Criterion)
        and promise.not_here is not None
        and promise.report_only is not None
    ):
        document.follow_up((key, "not_here"), "not_here beside report_only, which decides nothing")


def _no_reason(text: str) -> bool:
    """Whether it is a yes or no: `not_here: false` would mean the opposite of what it says."""
    return text.strip().casefold() in NO_REASON or not any(map(str.isalpha, text))


def _unknown_metric(document: Document, key: str, name: str, metrics: dict[str, Metric]) -> None:
    check = name.partition(".")[0]
    sisters = [m for m in metrics if m.partition(".")[0] == check]
    checks = sorted({f"{m.partition('.')[0]}.*" for m in metrics})
    what = f"unknown metric '{clip(name)}'{hint(name, metrics)}"
    document.follow_up((key, "metric"), what, sisters or checks)


def _conditions(document: Document, key: str, promise: Promise, metric: Metric) -> None:
    for name, expected in promise.conditions.items():
        loc = (key, "conditions", name)
        if name != "mode":
            reference(document, loc, name, "condition", ["mode", *metric.conditions])
            continue
        for mode in expected.one_of or [expected.exact or ""]:
            if mode not in MODES:
                document.follow_up(loc, f"unknown mode '{clip(mode or expected)}'", MODES)
    for program in promise.programs:
        reference(document, (key, "programs"), program, "program", metric.programs)


def _links(
    document: Document, key: str, promise: Criterion | Baseline, metric: Metric, around: Around
) -> None:
    """A figure of pairs names its links; no other figure does."""
    loc, of_pairs = (key, "links"), LINK in metric.conditions
    for name in promise.links:
        reference(document, loc, name, "link", around.links)
    if promise.links and not of_pairs:
        document.follow_up(loc, f"'{promise.metric}' is no figure of a link", hint="Remove links")
    elif promise.links and (subject := getattr(promise, "subject", "pair")) not in _OF_LINKS:
        what = f"links beside subject '{subject}'"
        document.follow_up(loc, what, f"subject {' or '.join(_OF_LINKS)}")
    elif promise.links and promise.scope in MIDDLES:
        what = f"scope '{promise.scope}' of links, which ReFrame compares pair by pair"
        document.follow_up((key, "scope"), what, hint="Remove scope: each pair counts")
    measured = of_pairs and metric.check
    if (
        (measured or promise.scope == "every pair")
        and not promise.links
        and not document.spoilt(loc)
    ):
        names = around.links or "links that system.yaml describes"
        document.add((key,), "no links, so nobody knows which pairs", names)


def _scope(document: Document, key: str, criterion: Criterion) -> None:
    subjects = _PLACES.get(criterion.scope, ())
    if subjects and criterion.subject not in subjects:
        what = f"scope '{criterion.scope}' of subject '{criterion.subject}'"
        document.follow_up((key, "scope"), what, f"subject {' or '.join(subjects)}")


def _age(document: Document, key: str, criterion: Criterion) -> None:
    try:
        parse_age(criterion.max_age)
    except UserError:
        what = f"'{clip(criterion.max_age)}' is not an age"
        document.follow_up((key, "max_age"), what, AGES)


def _bound(
    document: Document, key: str, promise: Promise, metric: Metric | None, around: Around
) -> None:
    written = document.data[key]
    kinds = [k for k in KINDS if k in type(promise).model_fields]
    given = [k for k in kinds if written.get(k) is not None]
    if not given and set(written) - set(type(promise).model_fields):
        return  # the unknown key may be the bound
    if len(given) != 1:
        what = f"both {' and '.join(given)}" if given else "no bound"
        document.add((key,), what, f"one of {', '.join(kinds)}")
    elif getattr(promise, given[0]) is not None and metric:
        try:
            _one_bound(document, key, promise, metric, around)
        except Wrong:
            return


def _one_bound(
    document: Document, key: str, promise: Promise, metric: Metric, around: Around
) -> None:
    loc = (key, promise.kind)
    if "ties" in promise.model_fields_set and promise.rounding == "none":
        document.follow_up(
            (key, "ties"), "ties without rounding", hint="Add rounding, or remove ties"
        )
    if promise.kind == "report_only" or metric.unit == "text":
        if promise.kind in ("at_least", "at_most"):
            document.follow_up(loc, f"'{promise.metric}' is text", ["equals", "report_only"])
        if promise.rounding != "none":
            document.follow_up((key, "rounding"), "rounding of what is no number", "none")
        return
    unit = _bound_unit(document, loc, promise, metric)
    step = _step(document, key, promise, unit)
    slack = _slack(document, key, promise)
    if promise.kind == _OPPOSITE.get(metric.better):
        what = f"{promise.kind} although {metric.better} is better of {promise.metric}"
        other = "at_least" if metric.better == "higher" else "at_most"
        document.follow_up(loc, what, [other, "equals", "report_only"])
    if step and slack:
        for facts in _facts(document, loc, promise, metric, around):
            _effect(document, loc, promise, metric, facts)


def _bound_unit(document: Document, loc: Loc, promise: Promise, metric: Metric) -> str:
    """The bound's unit, if it is one that the metric can be compared in."""
    text, kind = getattr(promise, promise.kind), units.kind(metric.unit)
    alike = [unit for unit in units.UNITS if units.kind(unit) == kind]
    try:
        bound = parse_bound(text)
    except UserError as error:
        document.follow_up(loc, error.what, f"a number and one of {', '.join(alike)}")
        raise Wrong from None
    unit = bound.quantity.unit
    if bound.fact and bound.fact not in SHARE_OF:
        near = hint(bound.fact, SHARE_OF)
        document.follow_up(loc, f"unknown hardware fact '{clip(bound.fact)}'{near}", SHARE_OF)
        raise Wrong
    wanted = "share" if bound.fact else kind
    if units.kind(unit) != wanted:
        alike = ["%", "x"] if bound.fact else alike
        whose = f"a share of {bound.fact}" if bound.fact else promise.metric
        what = f"'{unit}' is a unit of {units.kind(unit)}, and {whose} needs one of {wanted}"
        document.follow_up(loc, what, alike)
        raise Wrong
    return unit


def _step(document: Document, key: str, promise: Promise, unit: str) -> bool:
    """Whether the rounding step is one of the bound's kind."""
    loc, kind = (key, "rounding"), units.kind(unit)
    try:
        step = parse_step(promise.rounding)
    except UserError as error:
        document.follow_up(loc, error.what, f"none, or 'nearest 1 {unit}'")
        return False
    if step and units.kind(step.unit) != kind:
        what = f"'{step.unit}' is a unit of {units.kind(step.unit)}, and the bound is of {kind}"
        document.follow_up(loc, what, f"none, or 'nearest 1 {unit}'")
        return False
    if step and step.value <= 0:
        document.follow_up(loc, f"step '{step}' is not above 0")
        return False
    return True


def _slack(document: Document, key: str, promise: Promise) -> bool:
    """Whether a baseline's tolerance is a share from 0 up to 100 %."""
    if not isinstance(promise, Baseline) or promise.tolerance is None:
        return True
    try:
        share = plausible(promise.tolerance).to("x")
    except UserError:
        share = Fraction(-1)
    if 0 <= share < 1:
        return True
    what = f"'{clip(promise.tolerance)}' is no tolerance"
    document.follow_up((key, "tolerance"), what, "0 % to below 100 %")
    return False


def _facts(
    document: Document, loc: Loc, promise: Promise, metric: Metric, around: Around
) -> list[Hardware | None]:
    """The hardware of every role that the bound speaks of; one None if it does not matter."""
    if not promise.bound or not promise.bound.fact:
        return [None]
    fact, kind = promise.bound.fact, units.kind(metric.unit)
    found: list[Hardware | None] = []
    if around.roles is None or document.spoilt((loc[0], "nodes")):
        return []
    for role in promise.nodes or list(around.roles):
        facts = around.roles.get(role)
        if facts is None:  # an unknown role or broken hardware: told already
            continue
        if fact not in facts.facts:
            what = f"a share of {fact}, which the hardware of role '{role}' lacks"
            document.follow_up(loc, what, list(facts.facts))
        elif (other := units.kind(facts.facts[fact].unit)) != kind:
            what = f"{fact} is of {other}, and {promise.metric} of {kind}"
            alike = [name for name, q in facts.facts.items() if units.kind(q.unit) == kind]
            document.follow_up(loc, what, alike)
        else:
            found.append(facts)
    return found


def _effect(
    document: Document, loc: Loc, promise: Promise, metric: Metric, facts: Hardware | None
) -> None:
    """A bound must tell good from bad: some possible value passes, and some does not."""
    low, high = promise.limits(metric.unit, facts)
    bottom = None if metric.lowest is None else Fraction(metric.lowest)
    top = None if metric.highest is None else Fraction(metric.highest)
    reach = f"{promise.metric} is {_range(metric)}"
    if _beyond(low, top, 1) or _beyond(high, bottom, -1) or (low and high and _empty(low, high)):
        document.follow_up(loc, f"a bound that no value can meet: {reach}, rounding counted")
    elif _open(low, bottom, 1) and _open(high, top, -1):
        document.follow_up(loc, f"a bound that every value meets: {reach}, rounding counted")


def _beyond(limit: Limit | None, end: Fraction | None, sign: int) -> bool:
    """Whether even the best possible value misses the limit."""
    if limit is None or end is None:
        return False
    excess = (limit.value - end) * sign
    return excess > 0 or (excess == 0 and not limit.inclusive)


def _open(limit: Limit | None, end: Fraction | None, sign: int) -> bool:
    """Whether even the worst possible value keeps the limit; no limit is kept by all."""
    if limit is None:
        return True
    if end is None:
        return False
    room = (end - limit.value) * sign
    return room > 0 or (room == 0 and limit.inclusive)


def _empty(low: Limit, high: Limit) -> bool:
    inclusive = low.inclusive and high.inclusive
    return low.value > high.value or (low.value == high.value and not inclusive)


def _range(metric: Metric) -> str:
    ends = [
        f"{sign} {end}"
        for sign, end in ((">=", metric.lowest), ("<=", metric.highest))
        if end is not None
    ]
    return f"{' and '.join(ends)} {metric.unit}" if ends else "without ends"
