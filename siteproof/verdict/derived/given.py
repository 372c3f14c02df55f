"""What a derivation is given: the samples that count for its criterion, input by input."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, wraps
from importlib import import_module
from pathlib import Path
from statistics import median

from siteproof import units
from siteproof.answers import expected
from siteproof.answers.attempts import answers, attempts_at, of_unit, why_not
from siteproof.errors import UserError, UserErrors
from siteproof.record import descriptions, finding, pair_units
from siteproof.record.descriptions import KERNEL, PROCESSOR, Fields
from siteproof.record.finding import WRONG, Finding, Kind, most_severe_status, note
from siteproof.record.pair_units import LINK, PEER, Point
from siteproof.record.samples import EMULATED, Header, Sample, expected_nodes
from siteproof.sites import Criterion, Site, bought
from siteproof.sites.bought import FactResult

DIGITS = 12  # significant ones of a quotient
MAX_LENGTH = 300  # characters of a reason
MAX_SESSIONS = 20  # of the past that are looked through for one value
FIELDS = "SystemDescription.fields"
MayBe = Callable[[Header], bool]
Lacks = dict[str, Finding]
Derivation = Callable[["Given"], Iterator["Result"]]
Past = Callable[[Collection[str], MayBe], Iterable[tuple[Header, list[Sample]]]]


@dataclass(frozen=True)
class DerivedSample(Sample):
    """A value that follows from others. inputs: those, the oldest first. why: the arithmetic."""

    inputs: tuple[Sample, ...] = ()


@dataclass(frozen=True)
class Lack:
    """A unit (a node, pair or link) without a value, and why; without a unit: none has one."""

    why: Finding
    unit: str = ""


Result = DerivedSample | Lack


class NoValue(Exception):
    """A unit has no value. result: why, or the failure of an input."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.result = result


@dataclass(frozen=True)
class Basis:
    """What all derivations of a system read. of_checks: the chosen samples of each check.

    past: gives the jobs of some checks that may be looked at, with their samples, the newest first
    and read one by one, of MAX_SESSIONS sessions.
    jobs: the headers of all jobs of the chosen sessions.
    """

    site: Site
    of_checks: Mapping[str, Sequence[Sample]]
    perflogs: Path
    now: datetime
    past: Past = lambda _checks, _may_be: ()
    jobs: Sequence[Header] = ()

    @cached_property
    def descriptions(self) -> tuple[dict[str, Fields], dict[str, Fields], dict[str, Sample]]:
        """The fields of each described node, those not read with the reason, and the samples."""
        of_check = self.of_checks.get(descriptions.CHECK, ())
        own = [s for s in of_check if s.header.mode in ("maintenance", "acceptance")]
        fields, unreadable = descriptions.with_unreadable(own, self.perflogs)
        return fields, unreadable, descriptions.described(own)

    @cached_property
    def facts(self) -> dict[str, list[FactResult]]:
        """What became of each fact that the site states of a described node."""
        fields, unreadable, _ = self.descriptions
        return bought.of_nodes(self.site, fields, unreadable)


@dataclass
class Side:
    """One side of a comparison: the values of each quantity, by metric and other dimensions.

    samples: what they are of. lacks: units without a value. failed: samples that have none.
    """

    groups: dict[tuple[str, ...], list[Fraction]] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    failed: list[Sample] = field(default_factory=list)

    @property
    def values(self) -> dict[tuple[str, ...], Fraction]:
        """The median of each quantity."""
        return {key: Fraction(median(values)) for key, values in self.groups.items()}


@dataclass(frozen=True)
class Given:
    """The material, and the criterion that a value is derived for.

    other_side: select the inputs that `against` of the criterion names. samples: in place of those
    of the material, such as older ones.
    """

    material: Basis
    criterion: Criterion
    other_side: bool = False
    samples: Sequence[Sample] | None = None

    @property
    def site(self) -> Site:
        """The site whose criterion it is."""
        return self.material.site

    @property
    def unit(self) -> str:
        """The unit of the derived value."""
        return self.site.catalogue[self.criterion.metric].unit

    @property
    def of(self) -> str:
        """What follows `of` in the expression of the catalogue."""
        return self.site.catalogue[self.criterion.metric].computed.partition(" of ")[2]

    @property
    def inputs(self) -> list[str]:
        """The metrics that the catalogue names as those it follows from."""
        known = self.site.catalogue
        return [name for name in known[self.criterion.metric].derived_from if name in known]

    def stated(self, condition: str) -> str:
        """What a condition of the criterion must be; empty without it."""
        rule = self.criterion.conditions.get(condition)
        return (rule.exact if rule else "") or ""

    def input(self, metric: str) -> Criterion:
        """A criterion that selects an input's samples as this one selects its own."""
        return expected.select(self.site, self.criterion, metric, against=self.other_side)

    @cached_property
    def _answered(self) -> dict[str, dict[str, list[Sample]]]:
        return {}

    def answered(self, metric: str) -> dict[str, list[Sample]]:
        """Of each unit that has answered: an input's samples that count, of its newest jobs."""
        if metric not in self._answered:
            wanted = self.input(metric)
            self._answered[metric] = answering(wanted, self.of_check(wanted))
        return self._answered[metric]

    def of_check(self, wanted: Criterion) -> Sequence[Sample]:
        """The samples of the check of an input."""
        if self.samples is not None:
            return self.samples
        return self.material.of_checks.get(wanted.metric.partition(".")[0], ())

    def units(self, wanted: Criterion) -> list[str]:
        """The units of which an input owes a value."""
        if not wanted.links:
            return list(expected.nodes(self.site, wanted))
        return list(expected.units(self.site, wanted, self.of_check(wanted)))

    def points(self, metric: str, unit: str) -> dict[Point, list[Sample]]:
        """The good samples of an input of a unit, at each point that has enough trials."""
        at = good_points(self.answered(metric).get(unit, []))
        return {point: own for point, own in at.items() if len(own) >= self.trials}

    def each_point(self, metric: str, unit: str) -> Iterator[tuple[Point, list[Sample]]]:
        """The same, point by point.

        Raises NoValue at the end if the input failed, is missing, or has too few trials somewhere.
        """
        yield from self.points(metric, unit).items()
        own = self.answered(metric).get(unit, [])
        fewest = min(map(len, good_points(own).values()), default=0)
        if own and not fewest:
            raise NoValue(self.broken(own, unit))
        if not fewest:
            raise self.missing([self._lacking(metric, unit)], unit)
        if fewest < self.trials:
            details = {"trials": fewest, "expected": self.trials}
            raise NoValue(Lack(finding.of(Kind.TRIALS_MISSING, details, metric=metric), unit))

    def _lacking(self, metric: str, unit: str) -> str:
        """An input without a value that counts; by what it is emulated, where that is why."""
        wanted = self.input(metric)
        refused = [
            sample.conditions[EMULATED]
            for sample in of_unit(unit, attempts_at(self.of_check(wanted), wanted))
            if EMULATED in sample.conditions and why_not(wanted, sample)
        ]
        by = f" ({EMULATED}: {refused[0]})" if refused else ""
        return f"{metric} of {unit}{by}"

    @property
    def trials(self) -> int:
        """How many trials each input must have."""
        return self.criterion.trials or 1

    def side(self, metrics: Iterable[str]) -> Side:
        """The values of all units, each its median; a unit without enough trials lacks it."""
        side = Side()
        for metric in metrics:
            for unit in self.units(self.input(metric)):
                self._add(side, metric, unit)
        return side

    def _add(self, side: Side, metric: str, unit: str) -> None:
        own = self.answered(metric).get(unit, [])
        at = good_points(own)
        side.failed += [s for s in own if s.status in WRONG or s.status != "ok" and not at]
        if min(map(len, at.values()), default=0) < self.trials:
            side.lacks.append(self._lacking(metric, unit))
            return
        side.samples += [s for s in own if s.status == "ok"]
        for point, trials in at.items():
            shared = [f"{k} {text}" for k, text in point if k not in self.criterion.against]
            value = middle(trials, self.site.catalogue[metric].unit)
            side.groups.setdefault((metric, *shared), []).append(value)

    def sample(
        self,
        value: Fraction | Decimal | str | None,
        inputs: Sequence[Sample],
        why: str,
        unit: str = "",
        dated_by: Sequence[Sample] = (),
        whole: Sequence[Sample] = (),
        status: str = "ok",
    ) -> DerivedSample:
        """The value of a unit, as old as its oldest input, at the point that its inputs share.

        unit: a node, `a>b`, or a link. value: in the catalogue's unit. dated_by: the inputs whose
        age matters, if not all do. whole: the inputs of which it is a part, or from which it has
        changed, and whose point does not matter. status: why there is no value.
        """
        exact = decimal(value) if isinstance(value, Fraction) else value
        node, dims = self.place(unit)
        of_whole = {id(one) for one in whole}
        parts = [set(one.dims.items()) for one in inputs if id(one) not in of_whole]
        shared = set.intersection(*parts) if parts else set()
        dims |= {name: text for name, text in shared if name not in (PEER, LINK)}
        return DerivedSample(
            self.head(dated_by or inputs, pair_units.ends(unit) if node else ()),
            node,
            self.criterion.metric,
            exact,
            self.unit if status == "ok" else "",
            status,
            why,
            dims=dims,
            inputs=tuple(sorted(inputs, key=lambda s: s.header.order)),
        )

    def broken(self, inputs: Sequence[Sample], unit: str = "") -> DerivedSample:
        """The failure of an input, which is that of the value."""
        worst = most_severe_status(sample.status for sample in inputs)
        first = next(sample for sample in inputs if sample.status == worst)
        why = f"{first.metric} of {first.node or first.header.system}: {first.why or worst}"
        return self.sample(None, [first], why, unit, whole=[first], status=worst)

    def head(self, inputs: Sequence[Sample], nodes: Collection[str]) -> Header:
        """The header of what follows from samples: the oldest of theirs, with what all share.

        nodes: of the unit. Kernel and processor of a job that had none of them are others'.
        """
        check = self.criterion.metric.partition(".")[0]
        if not inputs:
            system = self.site.system.system
            time = self.material.now.isoformat(timespec="seconds")
            return Header("derived", system, "", "", check, "derived", time, "acceptance")
        oldest = min((sample.header for sample in inputs), key=lambda head: head.order)
        first, *rest = [sample.conditions for sample in inputs]
        shared = {k: v for k, v in first.items() if all(other.get(k) == v for other in rest)}
        shared.pop("mode", None)
        # What one input is emulated by, the value is.
        for sample in inputs:
            if EMULATED in sample.conditions:
                shared[EMULATED] = sample.conditions[EMULATED]
        of_job, known = expected_nodes(oldest.expected), dict(oldest.provenance)
        if nodes and of_job and of_job.isdisjoint(nodes):
            known = {key: text for key, text in known.items() if key not in (KERNEL, PROCESSOR)}
        return replace(oldest, check=check, conditions=shared, provenance=known, expected="")

    def place(self, unit: str) -> tuple[str, dict[str, str]]:
        """Node and dimensions of the sample of a unit."""
        if self.criterion.links and self.criterion.subject == "system":
            return "", {LINK: unit or self.criterion.links[0]}
        if ">" not in unit:
            return unit, {}
        pair, _, link = unit.partition(" over ")
        sender, _, receiver = pair.partition(">")
        return sender, {PEER: receiver, LINK: link or self.criterion.links[0]}

    def missing(self, what: Sequence[str], unit: str = "") -> NoValue:
        """Inputs that are not there, by name; those of the unit itself without its name."""
        first = what[0].removesuffix(f" of {unit}") if unit else what[0]
        others = " and {more:n other input}" if what[1:] else ""
        text = "derived from {input}" + others + ", without a value"
        why = note(text, metric=self.criterion.metric, input=first, more=len(what) - 1)
        return NoValue(Lack(why, unit))

    def described(self, node: str) -> tuple[Fields, Sample]:
        """The fields of a node, and their sample. Raises NoValue."""
        fields, _, samples = self.material.descriptions
        if node not in fields:
            raise self.missing([f"{FIELDS} of {node}"], node)
        return fields[node], samples[node]


def of_each_unit(of_unit: Callable[[Given, str], Iterator[Result]]) -> Derivation:
    """A derivation of each unit that the first input owes a value, from that of one."""

    @wraps(of_unit)
    def derivation(given: Given) -> Iterator[Result]:
        for unit in given.units(given.input(given.inputs[0])):
            try:
                yield from of_unit(given, unit)
            except NoValue as reason:
                yield reason.result

    return derivation


def answering(wanted: Criterion, samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """Of each unit that has answered: the samples that count, of its newest jobs."""
    each = attempts_at(samples, wanted).items()
    return {unit: own for unit, found in each if (own := answers(wanted, found))}


def good_points(samples: Sequence[Sample]) -> dict[Point, list[Sample]]:
    """Those of a unit with a value, by their points."""
    return pair_units.by_point([s for s in samples if s.status == "ok"], PEER, LINK)


def derive(material: Basis, criterion: Criterion) -> tuple[list[DerivedSample], Lacks]:
    """The values that answer a criterion on a derived metric, and why units have none.

    A reason under "" is that of all units.
    """
    given, entry = Given(material, criterion), material.site.catalogue[criterion.metric]
    sides = entry.compared_by
    module, _, name = entry.computed.partition(" of ")[0].partition(".")
    derivation: Derivation = getattr(import_module(f"{__package__}.{module}"), name)
    results: list[Result]
    try:
        if sides and not criterion.against and expected.CAMPAIGN not in sides:
            raise given.missing([f"'against' of the criterion ({' or '.join(sides)})"])
        results = list(derivation(given))
    except NoValue as reason:
        results = [reason.result]
    except (UserError, UserErrors) as error:  # a broken input costs this criterion, and no other
        results = [given.missing([" ".join(str(error).split())[:MAX_LENGTH]]).result]
    lacks = {one.unit: one.why for one in results if isinstance(one, Lack)}
    return [one for one in results if isinstance(one, DerivedSample)], lacks


def middle(trials: Sequence[Sample], unit: str = "b/s") -> Fraction:
    """The median of values in a unit."""
    return Fraction(median(in_unit(one, unit) for one in trials))


def in_unit(sample: Sample, unit: str) -> Fraction:
    """A sample's value in a unit."""
    return Fraction(units.convert(sample.number, sample.unit, unit))


def decimal(value: Fraction) -> Decimal:
    """An exact number as a decimal, to so many digits as any tool prints."""
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return Decimal(f"{exact:.{DIGITS}g}") if exact else Decimal(0)
