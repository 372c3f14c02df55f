"""Rates: of single pairs and nodes, and of one way as a part of another.

Far as a part of near, virtual of bare, after of before, random of serial.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from statistics import median

from siteproof.analysis.plateau import bandwidth_delay
from siteproof.answers import expected
from siteproof.record import pair_units, series
from siteproof.record.finding import note
from siteproof.record.pair_units import Point
from siteproof.record.samples import Header, Sample
from siteproof.sites import pairs
from siteproof.units import convert, with_unit
from siteproof.verdict.derived.given import (
    Given,
    Lack,
    NoValue,
    Result,
    Side,
    in_unit,
    middle,
    of_each_unit,
)

RATE = "TcpBandwidth.throughput"
DEVICE = "PathMtu.device"
BUFFERS = ("net.core.rmem_max", "net.core.wmem_max")
BECAUSE = "because"
FIGURE = "figure"
MAY_DIFFER = (  # between two ways, or as they follow from the machine's size
    *("mode", "trials", pair_units.LINK, "pattern", "at_once", "partition"),
    *(*series.FOLLOWS, "n", "p", "q", "nb"),
)
OF, AFTER = "of", "after"  # how two sides are related
STATISTICS: Mapping[str, tuple[Callable[[Sequence[Fraction]], Fraction], str]] = {
    "best": (max, "the best of {} trials"),
    "median": (median, "of {} trials"),
}


@of_each_unit
def trials(given: Given, pair: str) -> Iterator[Result]:
    """The `best` or the `median` of a pair's trials."""
    statistic, why = STATISTICS[given.of]
    for _, own in given.each_point(RATE, pair):
        value = statistic([in_unit(one, given.unit) for one in own])
        yield given.sample(value, own, why.format(len(own)), pair)


@of_each_unit
def number(given: Given, pair: str) -> Iterator[Result]:
    """How many trials of a pair gave a value."""
    for _, own in given.each_point(RATE, pair):
        of_trials = {one.trial for one in own}
        why = f"trials {min(of_trials)} to {max(of_trials)}"
        yield given.sample(Fraction(len(of_trials)), own, why, pair)


@of_each_unit
def share_of_max(given: Given, pair: str) -> Iterator[Result]:
    """A pair's median as a share of the link's speed in the site; not of its rounded MB/s."""
    speed = given.site.system.links[given.place(pair)[1][pair_units.LINK]].speed
    for _, own in given.each_point(RATE, pair):
        if speed is None:
            raise given.missing([f"speed of the link of {pair}"], pair)
        part = convert(middle(own) / speed.to("b/s"), "x", given.unit)
        yield given.sample(part, own, f"{_megabits(own)} of {speed}", pair)


def share(given: Given) -> Iterator[Result]:
    """The medians of the inputs as parts of those `against`; the worst of them is the value."""
    metrics = _chosen(given)
    own, other = given.side(metrics), replace(given, other_side=True).side(metrics)
    yield _compare(given, own, other, OF)


def _chosen(given: Given) -> list[str]:
    """The inputs that are compared: all, or the one that the condition `figure` names.

    Of pairs that run together it is what the link carries as a whole, in its worse direction.
    """
    if FIGURE in given.site.catalogue[given.criterion.metric].conditions:
        check = given.inputs[0].partition(".")[0]
        return [f"{check}.{given.stated(FIGURE) or 'sustained'}"]
    of_links = [name for name in given.inputs if given.site.catalogue[name].of_system]
    if not of_links or of_links == given.inputs:
        return given.inputs
    link = given.site.system.links.get(given.criterion.links[0])
    together = link is not None and link.pattern == "together"
    return of_links if together else [name for name in given.inputs if name not in of_links]


def _compare(given: Given, own: Side, other: Side, relation: str) -> Result:
    """The worst quantity of all that both sides have; each must have what the other has.

    relation: OF makes it a share of the other side, AFTER the change since then.
    """
    if failed := [*own.failed, *other.failed]:
        return given.broken(failed)
    against = ", ".join(f"{name} {text}" for name, text in given.criterion.against.items())
    _must_be_comparable(given, own, other, against)
    whole = other.values
    for key in whole:
        if not whole[key]:
            raise given.missing([f"{', '.join(key)}, which is 0 ({against})"])
    shares = {key: value / whole[key] for key, value in own.values.items()}
    better = given.site.catalogue[given.criterion.metric].better
    key = (max if better == "lower" else min)(shares, key=lambda one: shares[one])
    part = shares[key] - 1 if relation == AFTER else shares[key]
    why = f"{_in_words(given, key, own, other, relation)}{f' ({against})' if against else ''}"
    more = f"; the worst of {len(shares)}" if len(shares) > 1 else ""
    both = [*own.samples, *other.samples]
    dated_by = own.samples if relation == AFTER else both  # the other side is of the past
    value = convert(part, "x", given.unit)
    return given.sample(value, both, why + more, dated_by=dated_by, whole=other.samples)


def _must_be_comparable(given: Given, own: Side, other: Side, against: str) -> None:
    """Raises NoValue where a side lacks something, or another condition differs."""
    lacks = [*own.lacks, *(f"{one} ({against})" for one in other.lacks)]
    one_sided = sorted(own.groups.keys() ^ other.groups.keys())
    lacks = lacks or [", ".join(key) for key in one_sided]
    if lacks or not own.groups:
        raise given.missing(lacks or [against])
    if differences := _differences(given, own.samples, other.samples):
        text = "the sides cannot be compared: {differences}"
        why = note(text, metric=given.criterion.metric, differences=differences)
        raise NoValue(Lack(why))


def _in_words(given: Given, key: tuple[str, ...], own: Side, other: Side, relation: str) -> str:
    unit = given.site.catalogue[key[0]].unit
    one, two = (with_unit(f"{float(side.values[key]):.6g}", unit) for side in (own, other))
    return f"{', '.join(key)}: {one} {relation} {two}"


def _differences(given: Given, own: Sequence[Sample], other: Sequence[Sample]) -> str:
    """The conditions in which the sides differ, and that nobody named."""
    named = {*given.criterion.against, _because(given), *MAY_DIFFER}
    one, two = (_conditions(samples) for samples in (own, other))
    return ", ".join(
        f"{check} {name} {' and '.join(sorted(one[check, name]))} vs "
        f"{' and '.join(sorted(two[check, name]))}"
        for check, name in sorted(one.keys() & two.keys())
        if one[check, name] != two[check, name]
        and name not in named
        and not series.of_the_machine(name)
    )


def _conditions(samples: Sequence[Sample]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for sample in samples:
        for name, text in series.deciding(sample.conditions).items():
            found.setdefault((sample.metric, name), set()).add(text)
    return found


def change(given: Given) -> Iterator[Result]:
    """The change of some rates, the worst of them: since `against: {campaign: …}`, or since another
    value of the condition that `because` names.
    """
    named = given.criterion.against.get(expected.CAMPAIGN, "")
    before = replace(given, samples=_of_campaign(given, named) if named else _before_change(given))
    sides = {name: (given.side([name]), before.side([name])) for name in given.inputs}
    there = [name for name, (a, b) in sides.items() if a.groups or a.failed or b.groups]
    own, other = given.side(there), before.side(there)
    if not other.groups:
        what = f"campaign {named}" if named else f"an answer under another {_because(given)}"
        raise given.missing([what])
    yield _compare(given, own, other, AFTER)


def _because(given: Given) -> str:
    return given.stated(BECAUSE) or "condition"


def _checks(given: Given) -> set[str]:
    return {metric.partition(".")[0] for metric in given.inputs}


def _of_campaign(given: Given, name: str) -> list[Sample]:
    past = given.material.past(_checks(given), lambda head: head.campaign == name)
    return [sample for _, found in past for sample in found]


def _before_change(given: Given) -> list[Sample]:
    """Of each check, the newest session under another value of the condition than the answers."""
    name = _because(given)
    today = {sample.conditions.get(name) for sample in given.side(given.inputs).samples}
    return [
        sample
        for check in sorted(_checks(given))
        for sample in _newest_other(given, check, name, today)
    ]


def _newest_other(
    given: Given, check: str, name: str, today: Collection[str | None]
) -> list[Sample]:
    """The samples of the newest session of a check under another value of a condition."""
    found: list[Sample] = []

    def may_be(head: Header) -> bool:
        return head.conditions.get(name) not in today or name not in head.conditions

    for head, samples in given.material.past({check}, may_be):
        if found and head.session != found[0].header.session:
            break
        found += [s for s in samples if s.conditions.get(name, "") not in ("", *today)]
    return found


@of_each_unit
def ratio(given: Given, node: str) -> Iterator[Result]:
    """The first input as a part of the second, node by node, on one file system."""
    first, second = given.inputs
    unit = given.site.catalogue[second].unit
    of_node = [one for own in given.points(second, node).values() for one in own]
    for _, part in given.each_point(first, node):
        place = part[0].conditions.get("file_system")
        whole = [one for one in of_node if one.conditions.get("file_system") == place]
        if not whole:
            raise given.missing([f"{second} of {node}, file system {place}"], node)
        own, other = (middle(samples, unit) for samples in (part, whole))
        if not other:
            raise given.missing([f"{second} of {node}, which is 0"], node)
        why = " of ".join(with_unit(f"{float(one):.6g}", unit) for one in (own, other))
        yield given.sample(own / other, [*part, *whole], why, node, whole=whole)


def asymmetry(given: Given) -> Iterator[Result]:
    """The slower direction as a part of the faster one, of the most unlike pair of each link."""
    for key in given.criterion.links:
        yield from _of_link(Given(given.material, given.criterion.like(links=[key])), key)


def _of_link(given: Given, key: str) -> Iterator[Result]:
    wanted = given.units(given.input(RATE))
    at: dict[Point, dict[str, list[Sample]]] = {}
    for pair in wanted:
        for point, own in given.points(RATE, pair).items():
            at.setdefault(point, {})[pair] = own
    every = [sample for found in at.values() for own in found.values() for sample in own]
    for found in at.values() or [{}]:
        if lacking := [f"{RATE} of {pair}" for pair in wanted if pair not in found]:
            yield given.missing(lacking, key).result
        else:
            yield _most_unlike(given, key, found, every)


def _most_unlike(
    given: Given, key: str, found: Mapping[str, Sequence[Sample]], every: Sequence[Sample]
) -> Result:
    """At one point. found: the trials of each pair; every: those of all points, which date it."""
    values: dict[tuple[str, str], Fraction] = {}
    for pair, samples in found.items():
        back = ">".join(reversed(pair_units.ends(pair)))
        if back in found and pair < back:
            ways = middle(samples), middle(found[back])
            if any(ways):
                values[pair, back] = min(ways) / max(ways)
    if not values:
        return given.missing([f"{RATE} in both directions over {key}"], key).result
    both = min(values, key=lambda names: values[names])
    samples = [sample for name in both for sample in found[name]]
    texts = [f"{name} {_megabits(found[name])}" for name in both]
    return given.sample(values[both], samples, " and ".join(texts), key, every)


def mtu_difference(given: Given) -> Iterator[Result]:
    """The difference between the MTUs of a pair's own devices, each read while it was client."""
    read = [s for own in given.answered(DEVICE).values() for s in own if s.status == "ok"]
    of_node = {sample.node: sample for sample in read}
    for pair in given.units(given.input(DEVICE)):
        ends = pair_units.ends(pair)
        if lacking := [f"{DEVICE} of {node}" for node in ends if node not in of_node]:
            yield given.missing(lacking, pair).result
            continue
        one, other = samples = [of_node[node] for node in ends]
        why = " and ".join(f"{sample.node} {sample.number} B" for sample in samples)
        yield given.sample(Fraction(abs(one.number - other.number)), samples, why, pair)


@of_each_unit
def buffer_shortage(given: Given, node: str) -> Iterator[Result]:
    """What a node's smaller largest buffer lacks of the most demanding of its links."""
    read = {name: given.points(f"HostParameters.sysctl.{name}", node) for name in BUFFERS}
    if lacking := [f"{name} of {node}" for name, at in read.items() if not at]:
        raise given.missing(lacking, node)
    links = _demanding(given, node)
    if not links:
        raise given.missing([f"a link of {node} with speed and round_trip"], node)
    samples = [list(at.values())[-1][-1] for at in read.values()]
    buffer = min(Fraction(str(s.value)) for s in samples)
    key, rate, time = max(links, key=lambda one: one[1] * one[2])
    needed = bandwidth_delay(rate / 8, time)
    why = f"{key} needs {float(needed):.0f} B, the smaller buffer has {buffer} B"
    yield given.sample(max(Fraction(0), needed - buffer), samples, why, node)


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
