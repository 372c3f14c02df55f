"""Bounds that are possible and not plausible: warnings of lint, each with its arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from siteproof import units
from siteproof.errors import UserError
from siteproof.schema.yamlfile import Document, clip
from siteproof.sites.catalogue import Metric
from siteproof.sites.promise import KINDS, Baseline, Bound, Promise, parse_tolerance
from siteproof.sites.system import Expected, Hardware, Link, System

NOBODY = "no pair can meet it"
FAR = 20  # a bound that is so many times easier than what the hardware states is none
ROUNDED_AWAY = Fraction(1, 10)  # the share of a bound that rounding may give away
MATRIX_ELEMENT = 8  # bytes of a number in HPL's matrix
# By metric of one node: the hardware's own figure, which it cannot exceed.
LIMITS = {"Hpl.gflops": "peak", "Hpcg.gflops": "peak"} | dict.fromkeys(
    ("Stream.triad", "Stream.copy", "Stream.scale", "Stream.add"), "memory_bandwidth"
)
EXACT = ("nodes", "cores")  # of the inventory: whole numbers, which `equals` compares exactly
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
        value = f"{_short(limit.value)} {bound.quantity.unit}"
        yield "rounding", f"{promise.rounding}: {value} is rounded to meet {promise.required}"


def _of_hardware(promise: Promise, metric: Metric, system: System) -> Iterator[tuple[str, str]]:
    """A bound above what the hardware can do, or far below."""
    bound, fact = promise.bound, LIMITS.get(promise.metric)
    if bound is None or promise.kind != "at_least":
        return
    if bound.fact:
        yield from _of_share(promise, bound)
    elif fact and getattr(promise, "subject", "node") != "system":
        for role in promise.nodes or system.nodes:
            whole = _hardware(system, role).quantities.get(fact)
            if whole is not None:
                yield from _of_whole(promise, metric, f"{fact} of role '{role}'", whole)
    if not bound.fact and getattr(promise, "subject", "node") == "node":
        yield from _of_a_core(promise, system)


def _of_a_core(promise: Promise, system: System) -> Iterator[tuple[str, str]]:
    """A bound that is too low or too high for any processor, where no peak is stated."""
    check = promise.metric.partition(".")[0]
    limits = A_CORE.get(promise.metric) or A_CORE.get(check)
    for role in promise.nodes or system.nodes:
        hardware = _hardware(system, role)
        cores = (hardware.sockets or 0) * (hardware.cores_per_socket or 0)
        stated = LIMITS.get(promise.metric, "") in hardware.quantities
        if not limits or not cores or stated or units.kind(promise.bound_value().unit) == "time":
            continue
        low, high = limits
        each = promise.bound_value().to(low.unit) / cores
        text = f"{promise.bound} / {cores} cores of role '{role}' = {_short(each)} {low.unit}"
        if each < low.to(low.unit):
            yield promise.kind, f"any node meets it: {text}"
        elif each > high.to(low.unit):
            yield promise.kind, f"no node can meet it: {text}"


def _of_whole(
    promise: Promise, metric: Metric, what: str, whole: units.Quantity
) -> Iterator[tuple[str, str]]:
    """A bound against the figure that no node can exceed."""
    share = promise.bound_value().to(metric.unit) / whole.to(metric.unit)
    text = f"{promise.bound} is {_short(100 * share)} % of the {what}, {whole}"
    if share > 1:
        yield promise.kind, f"no node can meet it: {text}"
    elif share * FAR < 1 and promise.metric not in SMALL_SHARE:
        yield promise.kind, f"any node meets it: {text}"


def _of_share(promise: Promise, bound: Bound) -> Iterator[tuple[str, str]]:
    """A share above the whole, or far below."""
    share = units.convert(promise.exact_bound, bound.quantity.unit, "x")
    if share > 1:
        yield promise.kind, f"no node can meet it: {bound} is more than the whole"
    elif share * FAR < 1 and promise.metric not in SMALL_SHARE:
        yield promise.kind, f"any node meets it: {bound}, and 1/{FAR} is {100 // FAR} %"


def _of_links(promise: Promise, metric: Metric, system: System) -> Iterator[tuple[str, str]]:
    """A rate above the link's, or far below; a time below the link's, or far above."""
    if promise.bound is None or promise.bound.fact or getattr(promise, "subject", "pair") != "pair":
        return
    for name in promise.links:
        link = system.links.get(name)
        if link is None:
            continue
        yield from _of_mtu(promise, name, link)
        kind = units.kind(metric.unit)
        if kind == "rate" and promise.kind == "at_least":
            if link.speed:
                yield from _against(promise, link, f"speed of link '{name}'", link.speed, "b/s")
            elif speed := _of_interfaces(system, link):
                what = f"interfaces of the nodes of link '{name}'"
                found = _against(promise, link, what, speed, "b/s")
                # A link may be far slower than its interfaces.
                yield from (one for one in found if one[1].startswith(NOBODY))
        elif kind == "time" and link.round_trip and promise.kind == "at_most":
            what = f"round trip of link '{name}'"
            yield from _against(promise, link, what, link.round_trip, "s")


def _of_interfaces(system: System, link: Link) -> units.Quantity | None:
    """What the interfaces of the slower end carry together; None if a role states none."""
    ends = system.members(link.servers) | system.members(link.clients)
    roles = [role for role, one in system.nodes.items() if one.nodes & ends]
    sums = [_speed_of_interfaces(_hardware(system, role)) for role in roles]
    if not all(sums):
        return None
    least = min(sums)
    return units.Quantity(Decimal(least.numerator) / Decimal(least.denominator), "Gb/s")


def _speed_of_interfaces(hardware: Hardware) -> Fraction:
    """Gb/s of all interfaces together; 0 where one of them has no speed."""
    speeds = [nic.speed.to("Gb/s") if nic.speed else Fraction(0) for nic in hardware.nics.values()]
    return sum(speeds, Fraction(0)) if all(speeds) else Fraction(0)


def _against(
    promise: Promise, link: Link, what: str, limit: units.Quantity, unit: str
) -> Iterator[tuple[str, str]]:
    """A bound against the link's own figure: beyond it, or more than FAR times easier."""
    bound, whole = promise.bound_value().to(unit), limit.to(unit)
    if not bound:
        return
    harder = bound / whole if promise.kind == "at_least" else whole / bound
    text = f"{promise.bound} against the {what}, {limit}"
    if harder > 1:
        yield promise.kind, f"{NOBODY}: {text}"
    elif harder * FAR < 1 and not link.emulated:
        yield promise.kind, f"any pair meets it: {text}"


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
        yield "conditions", f"a memory_share of {_short(share)} is more than the memory"
    for role in promise.nodes or system.nodes:
        memory = _hardware(system, role).memory
        if n is None or memory is None:
            continue
        needed = n * n * MATRIX_ELEMENT / memory.to("B")
        words = f"8 B x {_short(n)}^2 is {_short(100 * needed)} % of the {memory} of role '{role}'"
        if needed > 1:
            yield "conditions", f"the matrix does not fit: {words}"
        elif share is not None and needed < share:
            yield "conditions", f"{words}, and memory_share {promise.conditions['memory_share']}"


def _of_inventory(promise: Promise, system: System) -> Iterator[tuple[str, str]]:
    """A number of nodes, cores or FLOPS, and an inventory with another."""
    name = promise.metric.removeprefix("Inventory.")
    if name == promise.metric or promise.bound is None or promise.bound.fact:
        return
    roles = promise.nodes or list(system.nodes)
    stated = _inventory(name, roles, system)
    if stated is None:
        return
    whole, arithmetic = stated
    bound = promise.bound_value().to(whole.unit)
    if promise.kind == "equals" and promise.step is None and name in EXACT:
        if bound != Fraction(whole.value):
            yield promise.kind, f"{promise.bound}, and the site has {arithmetic}"
        return
    short = promise.kind in ("equals", "at_least") and bound * 99 > whole.value * 100
    above = promise.kind in ("equals", "at_most") and bound * 101 < whole.value * 100
    if short or above:
        yield promise.kind, f"{promise.bound}, and the site has {arithmetic}"


def _inventory(name: str, roles: list[str], system: System) -> tuple[units.Quantity, str] | None:
    """What the site's own nodes and hardware add up to, with the arithmetic."""
    terms: list[Fraction] = []
    words: list[str] = []
    unit = {"nodes": "nodes", "cores": "count", "total_peak": "GFLOPS"}.get(name)
    for role in roles:
        if unit is None or role not in system.nodes:
            return None
        hardware, nodes = _hardware(system, role), len(system.nodes[role].nodes)
        one = _of_one_node(name, hardware)
        if one is None:
            return None
        terms.append(one * nodes)
        words.append(f"{nodes} nodes" if name == "nodes" else f"{nodes} x {_short(one)} {unit}")
    total = sum(terms, Fraction(0))
    value = Decimal(total.numerator) / Decimal(total.denominator)
    return units.Quantity(value, unit or ""), " + ".join(words)


def _of_one_node(name: str, hardware: Hardware) -> Fraction | None:
    if name == "nodes":
        return Fraction(1)
    if name == "cores":
        cores = (hardware.sockets or 0) * (hardware.cores_per_socket or 0)
        return Fraction(cores) if cores else None
    return hardware.peak.to("GFLOPS") if hardware.peak else None


def _hardware(system: System, role: str) -> Hardware:
    kind = system.nodes[role].hardware if role in system.nodes else None
    return system.hardware.get(kind or "") or Hardware()


def _number(rule: Expected | None) -> Fraction | None:
    """The one number that a condition names, or its lowest; None if it names none."""
    text = (rule.at_least or rule.exact or "") if rule else ""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _short(number: Fraction) -> str:
    return f"{float(number):.4g}" if abs(number) < 10_000 else f"{float(number):.0f}"
