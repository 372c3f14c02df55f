"""One way as a part of another: far of near, virtual of bare, after of before, random of serial."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from siteproof.analysis import arithmetic
from siteproof.answers.inputs import CAMPAIGN
from siteproof.derivations.given import DIFFERS_BY, Given, Lack, Result, Side
from siteproof.record import finding, series
from siteproof.record.finding import Kind
from siteproof.record.samples import Header, Sample
from siteproof.sites.promise import Subject
from siteproof.units import convert, with_unit

BECAUSE = "because"
FIGURE = "figure"
Arithmetic = Callable[[Fraction, Fraction], "Fraction | None"]


def of_link(given: Given) -> Iterator[Result]:
    """The rate over a link as a part of that over `against: {link: …}`.

    Of pairs that run together it is what the link carries as a whole, in its worse direction.
    """
    link = given.site.system.links.get(given.criterion.links[0])
    together = link is not None and link.pattern == "together"
    metric = "TcpBandwidth.aggregate" if together else "TcpBandwidth.throughput"
    subject: Subject = "system" if together else "pair"
    yield _two_ways(given, [metric], subject)


def of(metrics: Sequence[str], subject: Subject) -> Callable[[Given], Iterator[Result]]:
    """The medians of some metrics as parts of those `against`; the worst of them is the value."""

    def derive(given: Given) -> Iterator[Result]:
        yield _two_ways(given, metrics, subject)

    return derive


def of_figure(given: Given) -> Iterator[Result]:
    """That of Workload's peak, or of its sustained rate, by the condition `figure`."""
    rule = given.criterion.conditions.get(FIGURE)
    figure = rule.exact if rule else None
    yield _two_ways(given, [f"Workload.{figure or 'sustained'}"], "system")


def _two_ways(given: Given, metrics: Sequence[str], subject: Subject) -> Result:
    own = given.side(metrics, subject)
    other = given.side(metrics, subject, against=True)
    return _compare(given, own, other, arithmetic.share, "of")


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
    worst = max if given.better == "lower" else min
    key = worst(known, key=lambda one: known[one])
    value = Fraction(convert(known[key], "x", given.unit))
    why = f"{_in_words(given, key, own, other, relation)}{f' ({against})' if against else ''}"
    more = f"; the worst of {len(known)}" if len(known) > 1 else ""
    inputs = [*own.samples, *other.samples]
    dated_by = own.samples if how is arithmetic.change else inputs  # the other side is of the past
    return given.sample(value, inputs, why + more, _unit(given), dated_by, other.samples)


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


def _unit(given: Given) -> str:
    links = given.criterion.links
    return links[0] if links and given.criterion.subject == "system" else ""


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


def change(metrics: Mapping[str, Subject]) -> Callable[[Given], Iterator[Result]]:
    """The change of some rates, the worst of them: since `against: {campaign: …}`, or since another
    value of the condition that `because` names.
    """

    def derive(given: Given) -> Iterator[Result]:
        named = given.criterion.against.get(CAMPAIGN, "")
        older = _of_campaign(given, metrics, named) if named else _before_change(given, metrics)
        own, other = Side(), Side()
        for metric, subject in metrics.items():
            newest, former = (
                given.side([metric], subject),
                given.side([metric], subject, samples=older),
            )
            if newest.values or former.values or newest.failed:
                own, other = _joined(own, newest), _joined(other, former)
        if not other.values:
            what = f"campaign {named}" if named else f"an answer under another {_because(given)}"
            yield given.missing([what])
            return
        yield _compare(given, own, other, arithmetic.change, "after")

    return derive


def _joined(one: Side, other: Side) -> Side:
    return Side(
        {**one.values, **other.values},
        [*one.samples, *other.samples],
        [*one.lacks, *other.lacks],
        [*one.failed, *other.failed],
    )


def _because(given: Given) -> str:
    rule = given.criterion.conditions.get(BECAUSE)
    return (rule.exact if rule else None) or "condition"


def _checks(metrics: Iterable[str]) -> set[str]:
    return {metric.partition(".")[0] for metric in metrics}


def _of_campaign(given: Given, metrics: Iterable[str], name: str) -> list[Sample]:
    past = given.material.past(_checks(metrics), lambda head: head.campaign == name)
    return [sample for _, found in past for sample in found]


def _before_change(given: Given, metrics: Mapping[str, Subject]) -> list[Sample]:
    """Of each check, the newest session under another value of the condition than the answers."""
    name = _because(given)
    today = {
        sample.conditions.get(name)
        for metric, subject in metrics.items()
        for sample in given.side([metric], subject).samples
    }
    return [
        sample
        for check in sorted(_checks(metrics))
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


def random_of_serial(kind: str) -> Callable[[Given], Iterator[Result]]:
    """RandomIo's read or write as a part of BlockStorage's, node by node, on one file system."""

    def derive(given: Given) -> Iterator[Result]:
        serial = given.each(f"BlockStorage.{kind}")
        yield from given.without(f"RandomIo.{kind}")
        for (node, _), random in given.each(f"RandomIo.{kind}").items():
            of_node = [s for (other, _), own in serial.items() for s in own if other == node]
            yield _of_serial(given, node, random, of_node, f"BlockStorage.{kind}")

    return derive


def _of_serial(
    given: Given, node: str, random: Sequence[Sample], serial: Sequence[Sample], metric: str
) -> Result:
    place = random[0].conditions.get("file_system")
    same = [s for s in serial if s.conditions.get("file_system") == place]
    if not same:
        return given.missing([f"{metric} of {node}, file system {place}"], node)
    own, whole = (_middle(given, samples) for samples in (random, same))
    value = arithmetic.share(own, whole)
    if value is None:
        return given.missing([f"{metric} of {node}, which is 0"], node)
    texts = [with_unit(f"{float(one):.6g}", "MB/s") for one in (own, whole)]
    why = f"{texts[0]} of {texts[1]}"
    return given.sample(value, [*random, *same], why, node, whole=same)


def _middle(given: Given, samples: Sequence[Sample]) -> Fraction:
    unit = given.site.catalogue[samples[0].metric].unit
    return arithmetic.middle([Fraction(convert(s.number, s.unit, unit)) for s in samples])
