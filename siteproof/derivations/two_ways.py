"""One way as a part of another: far of near, virtual of bare, after of before, random of serial."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction

from siteproof.analysis import arithmetic
from siteproof.answers import inputs
from siteproof.derivations.given import DIFFERS_BY, Given, Lack, Result, Side
from siteproof.record import finding, series
from siteproof.record.finding import Kind
from siteproof.record.samples import Header, Sample
from siteproof.units import convert, with_unit

BECAUSE = "because"
FIGURE = "figure"
Arithmetic = Callable[[Fraction, Fraction], "Fraction | None"]


def share(given: Given) -> Iterator[Result]:
    """The medians of the inputs as parts of those `against`; the worst of them is the value."""
    metrics = _chosen(given)
    own, other = given.side(metrics), given.side(metrics, against=True)
    yield _compare(given, own, other, arithmetic.share, "of")


def _chosen(given: Given) -> list[str]:
    """The inputs that are compared: all, or the one that the condition `figure` names.

    Of pairs that run together it is what the link carries as a whole, in its worse direction.
    """
    if FIGURE in given.site.catalogue[given.criterion.metric].conditions:
        check = given.inputs[0].partition(".")[0]
        return [f"{check}.{given.stated(FIGURE) or 'sustained'}"]
    of_links = [name for name in given.inputs if name in inputs.OF_LINKS]
    if not of_links:
        return given.inputs
    link = given.site.system.links.get(given.criterion.links[0])
    together = link is not None and link.pattern == "together"
    return of_links if together else [name for name in given.inputs if name not in of_links]


def _compare(given: Given, own: Side, other: Side, how: Arithmetic, relation: str) -> Result:
    """The worst quantity of all that both sides have; each must have what the other has."""
    if failed := [*own.failed, *other.failed]:
        return given.broken(failed)
    against = ", ".join(f"{name} {text}" for name, text in given.criterion.against.items())
    if lack := _lack(given, own, other, against):
        return lack
    values = {key: how(own.values[key], other.values[key]) for key in own.values}
    known = {key: value for key, value in values.items() if value is not None}
    if len(known) < len(values):
        zero = next(key for key in values if key not in known)
        return given.missing([f"{', '.join(zero)}, which is 0 ({against})"])
    better = given.site.catalogue[given.criterion.metric].better
    worst = max if better == "lower" else min
    key = worst(known, key=lambda one: known[one])
    value = Fraction(convert(known[key], "x", given.unit))
    why = f"{_in_words(given, key, own, other, relation)}{f' ({against})' if against else ''}"
    more = f"; the worst of {len(known)}" if len(known) > 1 else ""
    both = [*own.samples, *other.samples]
    dated_by = own.samples if how is arithmetic.change else both  # the other side is of the past
    return given.sample(value, both, why + more, dated_by=dated_by, whole=other.samples)


def _lack(given: Given, own: Side, other: Side, against: str) -> Lack | None:
    """Why two sides cannot be compared, if they cannot."""
    lacks = [*own.lacks, *(f"{one} ({against})" for one in other.lacks)]
    one_sided = sorted(own.values.keys() ^ other.values.keys())
    lacks = lacks or [", ".join(key) for key in one_sided]
    if lacks or not own.values:
        return given.missing(lacks or [against])
    if differences := _differences(given, own.samples, other.samples):
        details = {"differences": differences}
        return Lack(finding.of(Kind.INPUTS_DIFFER, details, metric=given.criterion.metric))
    return None


def _in_words(given: Given, key: tuple[str, ...], own: Side, other: Side, relation: str) -> str:
    unit = given.site.catalogue[key[0]].unit
    one, two = (with_unit(f"{float(side.values[key]):.6g}", unit) for side in (own, other))
    return f"{', '.join(key)}: {one} {relation} {two}"


def _differences(given: Given, own: Sequence[Sample], other: Sequence[Sample]) -> str:
    """The conditions in which the sides differ, and that nobody named."""
    named = {*given.criterion.against, _because(given)}
    sides = [_conditions(samples) for samples in (own, other)]
    differing = [
        f"{check} {name} {' and '.join(sorted(sides[0][check, name]))} vs "
        f"{' and '.join(sorted(sides[1][check, name]))}"
        for check, name in sorted(sides[0].keys() & sides[1].keys())
        if sides[0][check, name] != sides[1][check, name]
        and name not in named
        and name not in DIFFERS_BY
        and not series.of_the_machine(name)
    ]
    return ", ".join(differing)


def _conditions(samples: Sequence[Sample]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for sample in samples:
        for name, text in series.deciding(sample.conditions).items():
            if name not in given_by_size:
                found.setdefault((sample.metric, name), set()).add(text)
    return found


given_by_size = (*series.FOLLOWS, "n", "p", "q", "nb")  # follow from the machine's size


def change(given: Given) -> Iterator[Result]:
    """The change of some rates, the worst of them: since `against: {campaign: …}`, or since another
    value of the condition that `because` names.
    """
    named = given.criterion.against.get(inputs.CAMPAIGN, "")
    older = _of_campaign(given, named) if named else _before_change(given)
    sides = {name: (given.side([name]), given.side([name], samples=older)) for name in given.inputs}
    there = [name for name, (a, b) in sides.items() if a.values or a.failed or b.values]
    own, other = given.side(there), given.side(there, samples=older)
    if other.values:
        yield _compare(given, own, other, arithmetic.change, "after")
    else:
        what = f"campaign {named}" if named else f"an answer under another {_because(given)}"
        yield given.missing([what])


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


def ratio(given: Given) -> Iterator[Result]:
    """The first input as a part of the second, node by node, on one file system."""
    first, second = given.inputs
    whole, _ = given.each(second)
    parts, lacks = given.each(first)
    yield from lacks
    for (node, _), part in parts.items():
        of_node = [s for (other, _), own in whole.items() for s in own if other == node]
        yield _part_of(given, node, part, of_node, second)


def _part_of(
    given: Given, node: str, part: Sequence[Sample], whole: Sequence[Sample], metric: str
) -> Result:
    place = part[0].conditions.get("file_system")
    same = [s for s in whole if s.conditions.get("file_system") == place]
    if not same:
        return given.missing([f"{metric} of {node}, file system {place}"], node)
    unit = given.site.catalogue[metric].unit
    own, other = (
        arithmetic.middle([Fraction(convert(s.number, s.unit, unit)) for s in samples])
        for samples in (part, same)
    )
    value = arithmetic.share(own, other)
    if value is None:
        return given.missing([f"{metric} of {node}, which is 0"], node)
    why = " of ".join(with_unit(f"{float(one):.6g}", unit) for one in (own, other))
    return given.sample(value, [*part, *same], why, node, whole=same)
