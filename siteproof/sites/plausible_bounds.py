"""What is possible in a site and not plausible: warnings of lint, each with its arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction

from ClusterShell.NodeSet import NodeSet

from siteproof import units
from siteproof.errors import UserError
from siteproof.schema.yamlfile import Document, clip
from siteproof.sites.catalogue import Metric
from siteproof.sites.promise import KINDS, Baseline, Promise, parse_tolerance
from siteproof.sites.system import FileSystem, Hardware, Link, System, is_of_network

FAR = 20  # a bound that is so many times easier than what the hardware states is none
ROUNDED_AWAY = Fraction(1, 10)  # the share of a bound that rounding may give away
# By metric of one node: the hardware's own figure, which it cannot exceed.
LIMITS = {"Hpl.gflops": "peak", "Hpcg.gflops": "peak"} | dict.fromkeys(
    ("Stream.triad", "Stream.copy", "Stream.scale", "Stream.add"), "memory_bandwidth"
)
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
CLOCK = (Fraction(8, 10), Fraction(6))  # GHz: from many-core processors to the fastest
PER_CORE = (Fraction(1), Fraction(200))  # GFLOPS of a core
MEMORY_PER_CORE = (Fraction(1, 4), Fraction(1024))  # GiB
_UNUSUAL = re.compile(
    r"/(?:(?:bin|boot|dev(?!/shm)|etc|lib|lib64|proc|root|run|sbin|sys|usr)(?:/.*)?)?"
)


def short(number: Fraction | int) -> str:
    """A number in a warning: four digits, or all before the point."""
    return f"{float(number):.4g}" if abs(float(number)) < 10_000 else f"{float(number):.0f}"


def between(limits: Iterable[Fraction | int], unit: str) -> str:
    """Two limits in a warning."""
    return f"{' to '.join(map(short, limits))} {unit}"


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


def system(document: Document, found: System) -> None:
    """Note the warnings of system.yaml."""
    for key, hardware in found.hardware.items():
        for name, what in _of_kind(hardware):
            document.warn(("hardware", key, name), what)
    for key, link in found.links.items():
        for name, what in dict.fromkeys(_of_link(found, link)):
            document.warn(("links", key, name), what)
    for key, there in found.file_systems.items():
        for name, what in _of_file_system(there):
            document.warn(("file_systems", key, name), what)


def _of_kind(hardware: Hardware) -> Iterator[tuple[str, str]]:
    """Keys of a kind of node, each with what is not plausible."""
    yield from _of_peak(hardware)
    for key in ("avx_base", "highest_clock"):
        clock = hardware.quantities.get(key)
        if clock and not CLOCK[0] <= clock.to("GHz") <= CLOCK[1]:
            yield key, f"a clock of {clock}, and processors have {between(CLOCK, 'GHz')}"
    yield from _of_memory(hardware)


def _of_peak(hardware: Hardware) -> Iterator[tuple[str, str]]:
    """A peak that no processor has; what belongs to accelerators is not counted by cores."""
    has_gpu = any(
        field.startswith("gpu.") for facts in hardware.stated.values() for field in facts.fields
    )
    if not hardware.cores or hardware.peak is None or has_gpu:
        return
    each = hardware.peak.to("GFLOPS") / hardware.cores
    if not PER_CORE[0] <= each <= PER_CORE[1]:
        text = f"{hardware.peak} / ({hardware.sockets} x {hardware.cores_per_socket} cores)"
        limits = between(PER_CORE, "GFLOPS a core")
        yield "peak", f"{text} = {short(each)} GFLOPS a core, and processors have {limits}"


def _of_memory(hardware: Hardware) -> Iterator[tuple[str, str]]:
    memory, cores = hardware.memory, hardware.cores
    if not memory or not cores:
        return
    each = memory.to("GiB") / cores
    if not MEMORY_PER_CORE[0] <= each <= MEMORY_PER_CORE[1]:
        limits = between(MEMORY_PER_CORE, "GiB")
        yield "memory", f"{memory} / {cores} cores = {short(each)} GiB, and nodes have {limits}"


def _of_link(found: System, link: Link) -> Iterator[tuple[str, str]]:
    """Keys of a link, each with what its ends cannot do."""
    if link.slow_below and link.speed and link.slow_below.to("b/s") >= link.speed.to("b/s"):
        yield "slow_below", f"{link.slow_below} is not below the speed of {link.speed}"
    for end in ("servers", "clients"):
        for role in _roles_of(found, getattr(link, end)):
            yield from _of_end(found, link, getattr(link, end), role)


def _of_end(found: System, link: Link, end: str, role: str) -> Iterator[tuple[str, str]]:
    """What the interfaces of a role cannot do; of all its nodes together, if all work at once."""
    hardware = found.hardware_of(role)
    sizes = [nic.mtu for nic in hardware.nics.values() if nic.mtu]
    nodes = len(found.nodes[role].nodes & found.members(end)) if link.pattern == "together" else 1
    if link.speed and hardware.rate and link.speed.to("b/s") > nodes * hardware.rate:
        written = " + ".join(str(nic.speed) for nic in hardware.nics.values())
        written += f" on each of {nodes} nodes" if nodes > 1 else ""
        yield "speed", f"{link.speed}, and the interfaces of role '{role}' have {written}"
    if link.mtu and sizes and link.mtu > max(sizes):
        yield "mtu", f"{link.mtu}, and the interfaces of role '{role}' have {max(sizes)}"


def _roles_of(found: System, text: str) -> list[str]:
    """The roles of the nodes of a link's end; none if it has a mistake."""
    try:
        ends: NodeSet = found.members(text)
        return [key for key, role in found.nodes.items() if role.nodes & ends]
    except ValueError:
        return []


def _of_file_system(there: FileSystem) -> Iterator[tuple[str, str]]:
    if _UNUSUAL.fullmatch(there.path):
        yield "path", f"'{clip(there.path)}' belongs to the operating system of a node"
    if not there.shared and is_of_network(there.kind):
        yield "kind", f"{there.kind} without 'shared: true', so all nodes write to it at once"
