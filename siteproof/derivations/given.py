"""What a derivation is given: the samples that count for its criterion, input by input."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from pathlib import Path

from siteproof import units
from siteproof.analysis import arithmetic
from siteproof.answers import expected, inputs
from siteproof.answers.attempts import answers, attempts_at, why_not
from siteproof.errors import UserError, UserErrors
from siteproof.record import descriptions, finding, pair_units
from siteproof.record.descriptions import Fields
from siteproof.record.finding import Finding, Kind
from siteproof.record.pair_units import LINK, PEER, Point
from siteproof.record.samples import EMULATED, Header, Sample, expected_nodes
from siteproof.record.updates import KERNEL, PROCESSOR
from siteproof.severity import WRONG, most_severe_status
from siteproof.sites import Criterion, Site, bought, hardware_read
from siteproof.sites.bought import FactResult

DIGITS = 12  # significant ones of a quotient
DIFFERS_BY = ("mode", "trials", LINK, "pattern", "at_once", "partition")  # between two ways
MAX_LENGTH = 300  # characters of a reason
MAX_SESSIONS = 20  # of the past that are looked through for one value
Place = tuple[str, Point]  # a unit, and the point of its value
MayBe = Callable[[Header], bool]
Lacks = dict[str, Finding]
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


@dataclass(frozen=True)
class Material:
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

    @cached_property
    def amounts(self) -> dict[str, dict[str, Fraction]]:
        """Cores, threads, memory and more of each described node."""
        return {node: hardware_read.amounts(own) for node, own in self.descriptions[0].items()}


@dataclass(frozen=True)
class Side:
    """One side of a comparison: the median of each quantity, by metric and other dimensions.

    samples: what they are of. lacks: units without a value. failed: samples that have none.
    """

    values: Mapping[tuple[str, ...], Fraction] = field(default_factory=dict)
    samples: Sequence[Sample] = ()
    lacks: Sequence[str] = ()
    failed: Sequence[Sample] = ()


@dataclass(frozen=True)
class Given:
    """The material, and the criterion that a value is derived for."""

    material: Material
    criterion: Criterion

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

    def input(self, metric: str, *, against: bool = False) -> Criterion:
        """A criterion that selects an input's samples as this one selects its own."""
        return inputs.select(self.site, self.criterion, metric, against=against)

    def answers(
        self, wanted: Criterion, samples: Sequence[Sample] | None = None
    ) -> dict[str, list[Sample]]:
        """Of each unit that has answered: the samples that count, of its newest jobs."""
        attempted = self._of_check(wanted) if samples is None else samples
        each = attempts_at(attempted, wanted).items()
        return {unit: own for unit, found in each if (own := answers(wanted, found))}

    def _of_check(self, wanted: Criterion) -> Sequence[Sample]:
        return self.material.of_checks.get(wanted.metric.partition(".")[0], ())

    def units(self, wanted: Criterion) -> list[str]:
        """The units of which an input owes a value."""
        if not wanted.links:
            return list(expected.nodes(self.site, wanted))
        return list(expected.units(self.site, wanted, self._of_check(wanted)))

    def each(self, metric: str) -> tuple[dict[Place, list[Sample]], list[Result]]:
        """The good samples of an input of each unit at each point that has enough trials.

        And why the other units have no value: the input failed, or is missing.
        """
        wanted = self.input(metric)
        answered = self.answers(wanted)
        found: dict[Place, list[Sample]] = {}
        lacks: list[Result] = []
        for unit in self.units(wanted):
            own = answered.get(unit, [])
            at = good_points(own)
            found |= {(unit, p): trials for p, trials in at.items() if len(trials) >= self.trials}
            fewest = min(map(len, at.values()), default=0)
            if own and not fewest:
                lacks.append(self.broken(own, unit))
            elif not fewest:
                lacks.append(self.missing([self._lacking(wanted, unit)], unit))
            elif fewest < self.trials:
                details = {"trials": fewest, "expected": self.trials}
                lacks.append(Lack(finding.of(Kind.TRIALS_MISSING, details, metric=metric), unit))
        return found, lacks

    def _lacking(
        self, wanted: Criterion, unit: str, samples: Sequence[Sample] | None = None
    ) -> str:
        """An input without a value that counts; by what it is emulated, where that is why."""
        attempted = self._of_check(wanted) if samples is None else samples
        refused = [
            sample.conditions[EMULATED]
            for sample in attempts_at(attempted, wanted).get(unit, ())
            if EMULATED in sample.conditions and why_not(wanted, sample)
        ]
        by = f" ({EMULATED}: {refused[0]})" if refused else ""
        return f"{wanted.metric} of {unit}{by}"

    @property
    def trials(self) -> int:
        """How many trials each input must have."""
        return self.criterion.trials or 1

    def side(
        self,
        metrics: Sequence[str],
        *,
        against: bool = False,
        samples: Sequence[Sample] | None = None,
    ) -> Side:
        """The medians over all units, each over its trials; a unit without an answer lacks it."""
        groups: dict[tuple[str, ...], list[Fraction]] = {}
        used: list[Sample] = []
        failed: list[Sample] = []
        lacks: list[str] = []
        for wanted, unit, own in self._inputs(metrics, against, samples):
            good = [s for s in own if s.status == "ok"]
            failed += [s for s in own if s.status in WRONG or s.status != "ok" and not good]
            if min(map(len, good_points(own).values()), default=0) < self.trials:
                lacks.append(self._lacking(wanted, unit, samples))
                continue
            used += good
            for key, values in self._by_dims(wanted.metric, good).items():
                groups.setdefault(key, []).append(arithmetic.middle(values))
        middles = {key: arithmetic.middle(values) for key, values in groups.items()}
        return Side(middles, used, lacks, failed)

    def _inputs(
        self, metrics: Sequence[str], against: bool, samples: Sequence[Sample] | None
    ) -> Iterator[tuple[Criterion, str, list[Sample]]]:
        """Each input and unit of a side, with the samples that count."""
        for metric in metrics:
            wanted = self.input(metric, against=against)
            answered = self.answers(wanted, samples)
            yield from ((wanted, unit, answered.get(unit, [])) for unit in self.units(wanted))

    def _by_dims(
        self, metric: str, samples: Sequence[Sample]
    ) -> dict[tuple[str, ...], list[Fraction]]:
        """The values of a unit in the catalogue's unit, by metric and dimensions."""
        found: dict[tuple[str, ...], list[Fraction]] = {}
        unit = self.site.catalogue[metric].unit
        for sample in samples:
            value = Fraction(units.convert(sample.number, sample.unit, unit))
            shared = pair_units.point(sample, PEER, LINK, *self.criterion.against)
            key = (metric, *(f"{name} {text}" for name, text in shared))
            found.setdefault(key, []).append(value)
        return found

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

    def missing(self, what: Sequence[str], unit: str = "") -> Lack:
        """Inputs that are not there, by name; those of the unit itself without its name."""
        first = what[0].removesuffix(f" of {unit}") if unit else what[0]
        details = {"input": first, "more": len(what) - 1}
        why = finding.of(Kind.INPUT_MISSING, details, metric=self.criterion.metric)
        return Lack(why, unit)


def good_points(samples: Sequence[Sample]) -> dict[Point, list[Sample]]:
    """Those of a unit with a value, by their points."""
    return pair_units.by_point([s for s in samples if s.status == "ok"], PEER, LINK)


def derive(material: Material, criterion: Criterion) -> tuple[list[DerivedSample], Lacks]:
    """The values that answer a criterion on a derived metric, and why units have none.

    A reason under "" is that of all units.
    """
    given, entry = Given(material, criterion), material.site.catalogue[criterion.metric]
    sides, samples, lacks = entry.compared_by, list[DerivedSample](), dict[str, Finding]()
    try:
        if sides and not criterion.against and inputs.CAMPAIGN not in sides:
            need = f"'against' of the criterion ({' or '.join(sides)})"
            return [], {"": given.missing([need]).why}
        module, _, name = entry.computed.partition(" of ")[0].partition(".")
        for result in getattr(import_module(f"{__package__}.{module}"), name)(given):
            if isinstance(result, Lack):
                lacks[result.unit] = result.why
            else:
                samples.append(result)
    except (UserError, UserErrors) as error:  # a broken input costs this criterion, and no other
        return [], {"": given.missing([" ".join(str(error).split())[:MAX_LENGTH]]).why}
    return samples, lacks


def decimal(value: Fraction) -> Decimal:
    """An exact number as a decimal, to so many digits as any tool prints."""
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return Decimal(f"{exact:.{DIGITS}g}") if exact else Decimal(0)
