"""Keys of a site that contradict one another: warnings of lint, each with its arithmetic.

Typed values are compared, of system.yaml and of its promises; no text is interpreted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product

from siteproof import units
from siteproof.errors import UserError
from siteproof.sites.catalogue import Metric
from siteproof.sites.promise import Bound, Promise
from siteproof.sites.schema.yamlfile import Document, Loc, clip
from siteproof.sites.stated import Expected
from siteproof.sites.system import FileSystem, Link, Nic, NicParameters, System, is_of_network
from siteproof.units import Quantity

FAR = 20  # a bound that is so many times easier than what the hardware states is none
ROUNDED_AWAY = Fraction(1, 10)  # the share of a bound that rounding may give away
MATRIX_ELEMENT = 8  # bytes of a number in HPL's matrix
# By metric of one node: the hardware's own figure, which it cannot exceed.
LIMITS = {"Hpl.gflops": "peak", "Hpcg.gflops": "peak"} | dict.fromkeys(
    ("Stream.triad", "Stream.copy", "Stream.scale", "Stream.add"), "memory_bandwidth"
)
# Metrics that use only a small part of that figure, so a low bound is a real one.
SMALL_SHARE = ("Hpcg.gflops",)
# By metric or check: the highest of the fastest core there is, where no other figure is stated.
A_CORE = {"Stream": Quantity(Decimal(200), "GB/s"), "Hpl.gflops": Quantity(Decimal(200), "GFLOPS")}
INVENTORY = {"nodes": "nodes", "cores": "count", "total_peak": "GFLOPS"}  # with their units
PEAKS_DIFFER = Fraction(1, 100)  # by so much, as a stated total is rounded
Found = Iterator[tuple[str, str]]  # keys of one mapping, each with what contradicts it


def check_system(document: Document, system: System) -> None:
    """Note the warnings of system.yaml."""
    for role, parameters in system.parameters.items():
        nics = system.hardware_of(role).nics
        for name in parameters.nic.keys() & nics.keys():
            found = _interface(parameters.nic[name], nics[name])
            _warn(document, ("parameters", role, "nic", name), found)
    for key, link in system.links.items():
        _warn(document, ("links", key), _link(system, link))
    for key, there in system.file_systems.items():
        _warn(document, ("file_systems", key), _file_system(there))
    for (one, first), (other, second) in combinations(system.file_systems.items(), 2):
        same = (first.path.rstrip("/"), first.kind) == (second.path.rstrip("/"), second.kind)
        if same and any(first.used_by(role) and second.used_by(role) for role in system.nodes):
            what = f"the path of file system '{one}', so it is measured twice"
            document.warn(("file_systems", other, "path"), what)


def check_promise(
    document: Document, key: str, promise: Promise, metric: Metric, system: System
) -> None:
    """Note the warnings of a criterion or baseline that has one bound."""
    try:
        found = [*_parts(promise, system), *_problem_size(promise, system)]
        if promise.bound is not None:
            found += _inventory(promise, promise.bound, system)
        if promise.bound is not None and promise.kind != "equals":
            found += _rounding(promise, promise.bound)
            found += _hardware(promise, promise.bound, metric, system)
            found += _over_links(promise, promise.bound, metric, system)
    except (UserError, ValueError, ZeroDivisionError):
        return  # a bound or a node set with a mistake, which lint has named
    _warn(document, (key,), found)


def _warn(document: Document, loc: Loc, found: Iterable[tuple[str, str]]) -> None:
    for name, what in dict.fromkeys(found):
        document.warn((*loc, name), what)


def _short(number: Fraction | int) -> str:
    """A number in a warning: four digits, or all before the point."""
    return f"{float(number):.4g}" if abs(float(number)) < 10_000 else f"{float(number):.0f}"


def _interface(settings: NicParameters, nic: Nic) -> Found:
    """An expected parameter that is not what the hardware states of the interface."""
    if nic.mtu and settings.mtu and not settings.mtu.met_by(nic.mtu):
        yield "mtu", f"{settings.mtu}, and `hardware` has {nic.mtu}"
    speed = nic.speed.to("Mb/s") if nic.speed else None
    if speed and settings.speed and not settings.speed.met_by(_short(speed)):
        yield "speed", f"{settings.speed} Mb/s, and `hardware` has {nic.speed}"


def _link(system: System, link: Link) -> Found:
    """What the ends of a link cannot do; of an end's nodes together, if all work at once."""
    for name, rate in system.graded(link):
        if rate and link.speed and rate.to("b/s") >= link.speed.to("b/s"):
            yield name, f"{rate} is not below the speed of {link.speed}"
    for end, (name, role) in product((link.servers, link.clients), system.nodes.items()):
        nodes, hardware = len(role.nodes & system.members(end)), system.hardware_of(name)
        rate = hardware.rate * (nodes if link.pattern == "together" else min(nodes, 1))
        if link.speed and 0 < rate < link.speed.to("b/s"):
            has = f"{_short(rate / 10**9)} Gb/s"
            yield "speed", f"{link.speed}, and the interfaces of role '{name}' have {has}"
        largest = max((nic.mtu for nic in hardware.nics.values() if nic.mtu), default=0)
        if link.mtu and nodes and 0 < largest < link.mtu:
            yield "mtu", f"{link.mtu}, and the interfaces of role '{name}' have {largest}"


def _file_system(there: FileSystem) -> Found:
    """Keys that the kind of a file system, or whether it is shared, leaves without an effect."""
    if "most_full" in there.model_fields_set and there.kind not in ("lustre", "any"):
        yield "most_full", f"no effect, as kind is {clip(there.kind)}, not lustre"
    if "at_once" in there.model_fields_set and not there.shared:
        yield "at_once", "no effect without 'shared: true'"
    if not there.shared and is_of_network(there.kind):
        yield "kind", f"{clip(there.kind)} without 'shared: true', so all nodes write to it at once"


def _parts(promise: Promise, system: System) -> Found:
    """A part of the site's description that it does not have: no value will ever answer."""
    known = {"section": system.sections(), "of": set(system.requested)}
    for name in known.keys() & promise.conditions.keys():
        for text in promise.conditions[name].texts:
            if text not in known[name]:
                yield "conditions", f"{name} '{clip(text)}', which system.yaml does not have"


def _rounding(promise: Promise, bound: Bound) -> Found:
    """A step so wide that rounding changes the bound; the bound's own last digit is none."""
    digit = Fraction(10) ** int(bound.quantity.value.as_tuple().exponent)
    low, high = promise.limits_as_written
    limit, exact = low or high, promise.exact_bound
    if bound.fact or promise.exact_step is None or promise.exact_step <= digit or limit is None:
        return
    if abs(limit.value - exact) > ROUNDED_AWAY * abs(exact):
        value = f"{_short(limit.value)} {bound.quantity.unit}"
        yield "rounding", f"{promise.rounding}: {value} is rounded to meet {promise.required}"


def _against(promise: Promise, who: str, share: Fraction, text: str, *, far: bool) -> Found:
    """A bound above what is possible, as a share of it, or, with `far`, far below."""
    if share > 1:
        yield promise.kind, f"no {who} can meet it: {text}"
    elif far and share * FAR < 1:
        yield promise.kind, f"any {who} meets it: {text}"


def _hardware(promise: Promise, bound: Bound, metric: Metric, system: System) -> Found:
    """A bound above what the hardware of a node can do, or far below."""
    if promise.kind != "at_least":
        return
    far, fact = promise.metric not in SMALL_SHARE, LIMITS.get(promise.metric, "")
    if bound.fact:
        share = units.convert(promise.exact_bound, bound.quantity.unit, "x")
        yield from _against(promise, "node", share, str(bound), far=far)
    elif getattr(promise, "subject", "node") != "system":
        for role in promise.nodes or system.nodes:
            if whole := system.hardware_of(role).quantities.get(fact):
                share = promise.bound_value().to(metric.unit) / whole.to(metric.unit)
                text = f"{bound} is {_short(100 * share)} % of the {fact} of role '{role}', {whole}"
                yield from _against(promise, "node", share, text, far=far)


def _over_links(promise: Promise, bound: Bound, metric: Metric, system: System) -> Found:
    """A rate above the link's, or far below; a time below the link's, or far above."""
    if bound.fact or getattr(promise, "subject", "pair") != "pair":
        return
    kind, rule = (units.kind(metric.unit), promise.kind), promise.conditions.get("mtu")
    for name in (name for name in promise.links if name in system.links):
        link, value = system.links[name], promise.bound_value()
        if rule is not None and link.mtu and not rule.met_by(link.mtu):
            yield "conditions", f"mtu {rule}, and link '{name}' has {link.mtu}"
        if kind == ("rate", "at_least") and link.speed:
            share = value.to("b/s") / link.speed.to("b/s")
            text = f"{bound} against the speed of link '{name}', {link.speed}"
            yield from _against(promise, "pair", share, text, far=bool(share) and not link.emulated)
        elif kind == ("rate", "at_least") and (rate := _of_interfaces(system, link)):
            text = f"{bound} against the interfaces of link '{name}', {_short(rate / 10**9)} Gb/s"
            yield from _against(promise, "pair", value.to("b/s") / rate, text, far=False)
        elif kind == ("time", "at_most") and link.round_trip and value.value:
            share = link.round_trip.to("s") / value.to("s")
            text = f"{bound} against the round trip of link '{name}', {link.round_trip}"
            yield from _against(promise, "pair", share, text, far=not link.emulated)


def _of_interfaces(system: System, link: Link) -> Fraction:
    """What the interfaces of the slower end carry together, in b/s; 0 if a role states none."""
    ends = system.members(link.servers) | system.members(link.clients)
    roles = [role for role, one in system.nodes.items() if one.nodes & ends]
    return min(system.hardware_of(role).rate for role in roles)


def _problem_size(promise: Promise, system: System) -> Found:
    """HPL's N and share of memory, as conditions, against the memory of the nodes."""
    n, least = (_lowest(promise.conditions.get(name)) for name in ("n", "memory_share"))
    for role in promise.nodes or system.nodes:
        memory = system.hardware_of(role).memory
        if not promise.metric.startswith("Hpl.") or not n or memory is None:
            continue
        share = n * n * MATRIX_ELEMENT / memory.to("B")
        of = f"8 B x {_short(n)}^2 is {_short(100 * share)} % of the {memory} of role '{role}'"
        if share > 1:
            yield "conditions", f"the matrix does not fit: {of}"
        elif share < least:
            yield "conditions", f"{of}, and memory_share {promise.conditions['memory_share']}"


def _lowest(rule: Expected | None) -> Fraction:
    """The one number that a condition allows, or the lowest; 0 if there is none."""
    return Fraction((rule.at_least or rule.exact or 0) if rule else 0)


def _inventory(promise: Promise, bound: Bound, system: System) -> Found:
    """A number of nodes, cores or FLOPS, and an inventory with another."""
    check, _, name = promise.metric.partition(".")
    if check != "Inventory" or name not in INVENTORY or bound.fact:
        return
    whole = Fraction(0)
    for role in promise.nodes or system.nodes:
        hardware = system.hardware_of(role)
        peak = hardware.peak.to("GFLOPS") if hardware.peak else 0
        one = {"nodes": 1, "cores": hardware.cores, "total_peak": peak}[name]
        if not one or role not in system.nodes:
            return  # not stated
        whole += one * len(system.nodes[role].nodes)
    value = promise.bound_value().to(INVENTORY[name])
    is_exact = promise.kind == "equals" and promise.step is None and name != "total_peak"
    slack = 0 if is_exact else PEAKS_DIFFER
    more = promise.kind != "at_most" and value * (1 - slack) > whole
    less = promise.kind != "at_least" and value * (1 + slack) < whole
    if more or less:
        yield promise.kind, f"{bound}, and the site has {_short(whole)} {INVENTORY[name]}"
