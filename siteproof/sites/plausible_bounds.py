"""Bounds that are possible and not plausible: warnings of lint, each with its arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from siteproof import units
from siteproof.errors import UserError
from siteproof.schema.yamlfile import Document, clip
from siteproof.sites.catalogue import Metric
from siteproof.sites.plausible import short
from siteproof.sites.promise import KINDS, Baseline, Promise, parse_tolerance
from siteproof.sites.system import Expected, Hardware, Link, System

FAR = 20  # a bound that is so many times easier than what the hardware states is none
ROUNDED_AWAY = Fraction(1, 10)  # the share of a bound that rounding may give away
MATRIX_ELEMENT = 8  # bytes of a number in HPL's matrix
# By metric of one node: the hardware's own figure, which it cannot exceed.
LIMITS = {"Hpl.gflops": "peak", "Hpcg.gflops": "peak"} | dict.fromkeys(
    ("Stream.triad", "Stream.copy", "Stream.scale", "Stream.add"), "memory_bandwidth"
)
# Of the inventory, with their units; whole numbers but for the last one, compared exactly.
INVENTORY = {"nodes": "nodes", "cores": "count", "total_peak": "GFLOPS"}
# Metrics that use only a small part of that figure, so a low bound is a real one.
SMALL_SHARE = ("Hpcg.gflops",)
# By metric of one node: the lowest and the highest of one core, where no other figure is stated.
A_CORE = {
    "Stream": (units.Quantity(Decimal("0.05"), "GB/s"), units.Quantity(Decimal(200), "GB/s")),
    "Hpl.gflops": (
        units.Quantity(Decimal("0.005"), "GFLOPS"),
        units.Quantity(Decimal(200), "GFLOPS"),
    ),
}


def check(document: Document, key: str, promise: Promise, metric: Metric, system: System) -> None:
    """Note the warnings of a criterion or baseline that has no mistake."""
    if all(getattr(promise, kind, None) is None for kind in KINDS):
        return  # no bound, which lint has named
    try:
        found = list(_warnings(promise, metric, system))
    except (UserError, ValueError):
        return  # a bound or a node set with a mistake, which lint has named
    for name, what in found:
        document.warn((key, name), what)


def _warnings(promise: Promise, metric: Metric, system: System) -> Iterator[tuple[str, str]]:
    tolerance = promise.tolerance if isinstance(promise, Baseline) else None
    if tolerance and parse_tolerance(tolerance) >= Fraction(1, 2):
        yield "tolerance", f"a value that misses the bound by {tolerance} passes"
    yield from _of_conditions(promise, system)
    yield from _of_problem_size(promise, system)
    yield from _of_inventory(promise, system)
    if promise.bound is not None and promise.kind != "equals":
        yield from _of_rounding(promise)
        yield from _of_hardware(promise, metric, system)
        yield from _of_links(promise, metric, system)


def _of_conditions(promise: Promise, system: System) -> Iterator[tuple[str, str]]:
    """A part of the site's description that it does not have: no value will ever answer."""
    known = {"section": system.sections(), "of": set(system.requested)}
    for name, names in known.items():
        rule = promise.conditions.get(name)
        if rule is not None and rule.exact is not None and rule.exact not in names:
            yield "conditions", f"{name} '{clip(rule.exact)}', which system.yaml does not have"


def _of_rounding(promise: Promise) -> Iterator[tuple[str, str]]:
    """A step so wide that rounding changes the bound; the bound's own last digit is none."""
    bound = promise.bound
    if promise.step is None or promise.exact_step is None or bound is None or bound.fact:
        return
    exponent = bound.quantity.value.as_tuple().exponent
    if promise.exact_step <= Fraction(10) ** int(exponent):
        return
    low, high = promise.limits(bound.quantity.unit)
    limit, exact = low or high, promise.exact_bound
    if limit and abs(limit.value - exact) > ROUNDED_AWAY * abs(exact):
        value = f"{short(limit.value)} {bound.quantity.unit}"
        yield "rounding", f"{promise.rounding}: {value} is rounded to meet {promise.required}"


def _against(
    promise: Promise, who: str, share: Fraction, text: str, *, far: bool = True
) -> Iterator[tuple[str, str]]:
    """A bound above what is possible, as a share of it, or, with `far`, far below."""
    if share > 1:
        yield promise.kind, f"no {who} can meet it: {text}"
    elif far and share * FAR < 1:
        yield promise.kind, f"any {who} meets it: {text}"


def _of_hardware(promise: Promise, metric: Metric, system: System) -> Iterator[tuple[str, str]]:
    """A bound above what the hardware can do, or far below."""
    bound, fact = promise.bound, LIMITS.get(promise.metric, "")
    if bound is None or promise.kind != "at_least":
        return
    subject, far = getattr(promise, "subject", "node"), promise.metric not in SMALL_SHARE
    if bound.fact:
        share = units.convert(promise.exact_bound, bound.quantity.unit, "x")
        yield from _against(promise, "node", share, str(bound), far=far)
        return
    for role in promise.nodes or system.nodes:
        hardware = system.hardware_of(role)
        if subject != "system" and (whole := hardware.quantities.get(fact)):
            share = promise.bound_value().to(metric.unit) / whole.to(metric.unit)
            what = f"{short(100 * share)} % of the {fact} of role '{role}', {whole}"
            yield from _against(promise, "node", share, f"{bound} is {what}", far=far)
        elif subject == "node":
            yield from _of_a_core(promise, role, hardware.cores)


def _of_a_core(promise: Promise, role: str, cores: int) -> Iterator[tuple[str, str]]:
    """A bound that is too low or too high for any processor, where no peak is stated."""
    limits = A_CORE.get(promise.metric) or A_CORE.get(promise.metric.partition(".")[0])
    if not limits or not cores or units.kind(promise.bound_value().unit) == "time":
        return
    low, high = limits
    each = promise.bound_value().to(low.unit) / cores
    text = f"{promise.bound} / {cores} cores of role '{role}' = {short(each)} {low.unit}"
    if each < low.to(low.unit):
        yield promise.kind, f"any node meets it: {text}"
    else:
        yield from _against(promise, "node", each / high.to(low.unit), text, far=False)


def _of_links(promise: Promise, metric: Metric, system: System) -> Iterator[tuple[str, str]]:
    """A rate above the link's, or far below; a time below the link's, or far above."""
    if promise.bound is None or promise.bound.fact or getattr(promise, "subject", "pair") != "pair":
        return
    kind, bound = (units.kind(metric.unit), promise.kind), promise.bound_value()
    for name in (name for name in promise.links if name in system.links):
        link, text = system.links[name], f"{promise.bound} against the"
        yield from _of_mtu(promise, name, link)
        if kind == ("rate", "at_least") and link.speed:
            text += f" speed of link '{name}', {link.speed}"
            share = bound.to("b/s") / link.speed.to("b/s")
            yield from _against(promise, "pair", share, text, far=bool(share) and not link.emulated)
        elif kind == ("rate", "at_least") and (rate := _of_interfaces(system, link)):
            text += f" interfaces of the nodes of link '{name}', {short(rate / 10**9)} Gb/s"
            share = bound.to("b/s") / rate  # a link may be far slower than its interfaces
            yield from _against(promise, "pair", share, text, far=False)
        elif kind == ("time", "at_most") and link.round_trip and bound.value:
            text += f" round trip of link '{name}', {link.round_trip}"
            share = link.round_trip.to("s") / bound.to("s")
            yield from _against(promise, "pair", share, text, far=not link.emulated)


def _of_interfaces(system: System, link: Link) -> Fraction:
    """What the interfaces of the slower end carry together, in b/s; 0 if a role states none."""
    ends = system.members(link.servers) | system.members(link.clients)
    roles = [role for role, one in system.nodes.items() if one.nodes & ends]
    return min(system.hardware_of(role).rate for role in roles)


def _of_mtu(promise: Promise, name: str, link: Link) -> Iterator[tuple[str, str]]:
    rule = promise.conditions.get("mtu")
    if rule is not None and link.mtu and not rule.met_by(link.mtu):
        yield "conditions", f"mtu {rule}, and link '{name}' has {link.mtu}"


def _of_problem_size(promise: Promise, system: System) -> Iterator[tuple[str, str]]:
    """HPL's N and share of memory, as conditions, against the memory of the nodes."""
    if promise.metric.partition(".")[0] != "Hpl":
        return
    n, share = (_number(promise.conditions.get(name)) for name in ("n", "memory_share"))
    if share is not None and share > 1:
        yield "conditions", f"a memory_share of {short(share)} is more than the memory"
    for role in promise.nodes or system.nodes:
        memory = system.hardware_of(role).memory
        if n is None or memory is None:
            continue
        needed = n * n * MATRIX_ELEMENT / memory.to("B")
        words = f"8 B x {short(n)}^2 is {short(100 * needed)} % of the {memory} of role '{role}'"
        if needed > 1:
            yield "conditions", f"the matrix does not fit: {words}"
        elif share is not None and needed < share:
            yield "conditions", f"{words}, and memory_share {promise.conditions['memory_share']}"


def _of_inventory(promise: Promise, system: System) -> Iterator[tuple[str, str]]:
    """A number of nodes, cores or FLOPS, and an inventory with another."""
    name = promise.metric.removeprefix("Inventory.")
    unit = INVENTORY.get(name)
    if unit is None or name == promise.metric or promise.bound is None or promise.bound.fact:
        return
    whole, words = Fraction(0), []
    for role in promise.nodes or system.nodes:
        one = _of_one_node(name, system.hardware_of(role))
        if not one or role not in system.nodes:
            return
        nodes = len(system.nodes[role].nodes)
        whole += one * nodes
        words.append(f"{nodes} nodes" if name == "nodes" else f"{nodes} x {short(one)} {unit}")
    bound = promise.bound_value().to(unit)
    is_exact = promise.kind == "equals" and promise.step is None and name != "total_peak"
    slack = 0 if is_exact else 1  # in per cent
    more = promise.kind != "at_most" and bound * (100 - slack) > whole * 100
    less = promise.kind != "at_least" and bound * (100 + slack) < whole * 100
    if more or less:
        yield promise.kind, f"{promise.bound}, and the site has {' + '.join(words)}"


def _of_one_node(name: str, hardware: Hardware) -> Fraction:
    """What one node adds to the inventory; 0: not given."""
    if name == "total_peak":
        return hardware.peak.to("GFLOPS") if hardware.peak else Fraction(0)
    return Fraction(1 if name == "nodes" else hardware.cores)


def _number(rule: Expected | None) -> Fraction | None:
    """The one number that a condition names, or its lowest; None if it names none."""
    text = (rule.at_least or rule.exact or "") if rule else ""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None
