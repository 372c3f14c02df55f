"""Values of single pairs: their best trial, their count, both directions, what a link allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from siteproof.analysis import arithmetic
from siteproof.derivations.given import Given, Lack, Result
from siteproof.record import pair_units
from siteproof.record.pair_units import Point
from siteproof.record.samples import Sample
from siteproof.sites import pairs
from siteproof.units import convert, with_unit

RATE, CPU = "TcpBandwidth.throughput", "TcpBandwidth.cpu_sender"
BUFFERS = ("net.core.rmem_max", "net.core.wmem_max")


def trials(given: Given) -> Iterator[Result]:
    """The `best` or the `median` of a pair's trials, or the `number` of those with a value."""
    found, lacks = given.each(RATE)
    yield from lacks
    for (pair, _), own in found.items():
        numbers = {s.trial for s in own}
        if given.of == "number":
            why = f"trials {min(numbers)} to {max(numbers)}"
            yield given.sample(Fraction(len(numbers)), own, why, pair)
            continue
        best = given.of == "best"
        value = convert(max(map(rate, own)) if best else middle(own), "b/s", given.unit)
        why = f"{'the best ' if best else ''}of {len(own)} trials"
        yield given.sample(value, own, why, pair)


def share_of_max(given: Given) -> Iterator[Result]:
    """A pair's median as a share of the link's speed in the site; not of its rounded MB/s."""
    found, lacks = given.each(RATE)
    yield from lacks
    for (pair, _), own in found.items():
        key = pair.partition(" over ")[2] or given.criterion.links[0]
        speed = given.site.system.links[key].speed
        if speed is None:
            yield given.missing([f"speed of the link of {pair}"], pair)
            continue
        part = convert(middle(own) / speed.to("b/s"), "x", given.unit)
        yield given.sample(part, own, f"{_megabits(own)} of {speed}", pair)


def service_demand(given: Given) -> Iterator[Result]:
    """Processor time of the sender for each KiB, from its share of a core and the rate."""
    found, lacks = given.each(RATE)
    busy, _ = given.each(CPU)
    yield from lacks
    for (pair, point), own in found.items():
        if (pair, point) not in busy:
            yield given.missing([f"{CPU} of {pair}"], pair)
            continue
        shares = busy[pair, point]
        used = arithmetic.middle([convert(s.number, s.unit, "x") for s in shares])
        value = arithmetic.service_demand(used, middle(own))
        if value is None:
            yield given.missing([f"{RATE} of {pair} above 0"], pair)
            continue
        yield given.sample(value, [*own, *shares], f"{float(used):.3g} of a core busy", pair)


def asymmetry(given: Given) -> Iterator[Result]:
    """The slower direction as a part of the faster one, of the most unlike pair of each link."""
    for key in given.criterion.links:
        one = Given(given.material, given.criterion.like(links=[key]))
        each, _ = one.each(RATE)
        at: dict[Point, dict[str, list[Sample]]] = {}
        for (pair, point), samples in each.items():
            at.setdefault(point, {})[pair] = samples
        every = [sample for samples in each.values() for sample in samples]
        yield from (_of_link(one, key, found, every) for found in at.values() or [{}])


def _of_link(
    given: Given, key: str, found: Mapping[str, Sequence[Sample]], every: Sequence[Sample]
) -> Result:
    """At one point. found: the trials of each pair; every: those of all points, which date it."""
    wanted = given.units(given.input(RATE))
    if lacking := [f"{RATE} of {unit}" for unit in wanted if unit not in found]:
        return Lack(given.missing(lacking).why, key)
    values: dict[str, Fraction] = {}
    for pair, samples in found.items():
        back = ">".join(reversed(pair_units.ends(pair)))
        if back in found and pair < back:
            share = arithmetic.asymmetry(middle(samples), middle(found[back]))
            if share is not None:
                values[pair] = share
    if not values:
        return Lack(given.missing([f"{RATE} in both directions over {key}"]).why, key)
    pair = min(values, key=lambda name: values[name])
    back = ">".join(reversed(pair_units.ends(pair)))
    inputs = [*found[pair], *found[back]]
    texts = [f"{name} {_megabits(found[name])}" for name in (pair, back)]
    return given.sample(values[pair], inputs, " and ".join(texts), key, every)


def mtu_difference(given: Given) -> Iterator[Result]:
    """The difference between the MTUs of a pair's own devices, each read while it was client."""
    wanted = given.input("PathMtu.device")
    answers = given.answers(wanted)
    devices = {pair: [s for s in found if s.status == "ok"] for pair, found in answers.items()}
    of_node = {found[-1].node: found[-1] for found in devices.values() if found}
    for pair in given.units(wanted):
        ends = pair_units.ends(pair)
        if lacking := [f"PathMtu.device of {node}" for node in ends if node not in of_node]:
            yield given.missing(lacking, pair)
            continue
        sizes = [Fraction(of_node[node].number) for node in ends]
        why = " and ".join(f"{node} {of_node[node].number} B" for node in ends)
        yield given.sample(abs(sizes[0] - sizes[1]), [of_node[n] for n in ends], why, pair)


def buffer_shortage(given: Given) -> Iterator[Result]:
    """What a node's smaller largest buffer lacks of the most demanding of its links."""
    of_places = [given.each(f"HostParameters.sysctl.{name}")[0] for name in BUFFERS]
    read = [{node: own for (node, _), own in of.items()} for of in of_places]
    for node in given.units(given.input("HostParameters.mismatches")):
        if lacking := [n for n, of in zip(BUFFERS, read, strict=True) if node not in of]:
            yield given.missing([f"{name} of {node}" for name in lacking], node)
            continue
        links = _demanding(given, node)
        if not links:
            yield given.missing([f"a link of {node} with speed and round_trip"], node)
            continue
        samples = [of[node][-1] for of in read]
        buffer = min(Fraction(str(s.value)) for s in samples)
        key, rate_, time = max(links, key=lambda one: one[1] * one[2])
        value = arithmetic.shortage(rate_, time, buffer)
        needed = float(arithmetic.under_way(rate_, time))
        why = f"{key} needs {needed:.0f} B, the smaller buffer has {buffer} B"
        yield given.sample(value, samples, why, node)


def _demanding(given: Given, node: str) -> list[tuple[str, Fraction, Fraction]]:
    """The links of a node with a speed (b/s) and a round trip (s)."""
    found = []
    for key, link in given.site.system.links.items():
        ends = pairs.servers(given.site, link) | pairs.clients(given.site, link)
        if link.speed and link.round_trip and node in ends:
            found.append((key, link.speed.to("b/s"), link.round_trip.to("s")))
    return found


def _megabits(trials: Sequence[Sample]) -> str:
    return with_unit(f"{float(middle(trials)) / 10**6:.6g}", "Mb/s")


def middle(trials: Sequence[Sample]) -> Fraction:
    """The median of rates in b/s."""
    return arithmetic.middle(list(map(rate, trials)))


def rate(sample: Sample) -> Fraction:
    """A sample's rate in b/s."""
    return convert(sample.number, sample.unit, "b/s")
