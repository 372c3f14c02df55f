"""Transfers of files, as in the daily matrix of the ExTENCI Lustre-WAN project.

OSG Storage Forum, 2010-09-21: the best, slowest and mean transfer of a day, its grade, and four
classes of failures. A service that transfers files counts with the newest day on which it was
tested, and all attempts of that day count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from statistics import mean

from siteproof import units
from siteproof.answers.attempts import SERVICE, why_not
from siteproof.links.transfers import CHECK, RATE, UNIT, UNTRIED, Grade, Moved, category, moved
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Sample
from siteproof.verdict.derived.given import Given, Result, in_unit

FAILURES = f"{CHECK}.failures"
MB_A_DAY = 86_400 / 10**6  # TB a day that 1 MB/s are
MAX_NAMED = 3  # failures in a reason
CHOICES: Mapping[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "highest": max,
    "lowest": min,
    "mean": mean,
}


def rate(given: Given) -> Iterator[Result]:
    """The `highest`, `lowest` or `mean` rate of all successful transfers of the day."""
    rates = [one.sample for one in _attempts(given) if one.sample.status == "ok"]
    if not rates:
        raise given.missing([RATE])
    value = CHOICES[given.of]([in_unit(s, UNIT) for s in rates])
    why = f"{_why([s.conditions[SERVICE] for s in rates])}; "
    why += f"{float(value) * MB_A_DAY:.3g} TB a day"
    yield given.sample(units.convert(value, UNIT, given.unit), rates, why)


def grade(given: Given) -> Iterator[Result]:
    """The class of the worst pair's mean: a grade is that of one pair."""
    good = (one for one in _attempts(given) if one.sample.status == "ok")
    pairs = grouped((one.pairs[0], one) for one in good)
    if not pairs:
        raise given.missing([RATE])
    means = {p: mean([in_unit(s, UNIT) for s, *_ in own]) for p, own in pairs.items()}
    graded = {pair: pairs[pair][0].grades.grade(average) for pair, average in means.items()}
    worst = min(means, key=lambda pair: (list(Grade).index(graded[pair]), means[pair], pair))
    words = pairs[worst][0].grades.words(graded[worst])
    if not words:
        raise given.missing(["warn or critical of mesh in system.yaml"])
    why = f"{worst[0]} > {worst[1]}, {float(means[worst]):.1f} {UNIT} on average"
    yield given.sample(words, [one.sample for one in pairs[worst]], why)


def failures(given: Given) -> Iterator[Result]:
    """How many transfers of the day failed for a reason of a category: `of login`."""
    attempts = [one.sample for one in _attempts(given)]
    tested = [sample.conditions[SERVICE] for sample in attempts]
    lacking = [f"{RATE} of {name}" for name in _services(given) if name not in tested]
    failed = [s for s in attempts if s.status != "ok" and category(s.status) == given.of]
    yield _count(given, failed, failed or attempts, lacking, _why(tested))


def failed_services(given: Given) -> Iterator[Result]:
    """How many of the services that the criterion names, or of all, failed in their newest test."""
    newest = {name: _newest(given, name) for name in _services(given)}
    lacking = [f"{FAILURES} of {name}" for name, own in newest.items() if not own]
    failed = [sample for own in newest.values() for sample in own[:1] if sample.why]
    attempts = [sample for own in newest.values() for sample in own]
    yield _count(given, failed, attempts, lacking, f"all of {', '.join(newest)} work")


def _count(
    given: Given,
    failed: Sequence[Sample],
    inputs: Sequence[Sample],
    lacking: Sequence[str],
    good: str,
) -> Result:
    """The number of failures with their reasons; none only where nothing is missing."""
    if lacking and not failed:
        raise given.missing(lacking)
    reasons = "; ".join(f"{s.conditions[SERVICE]}: {s.why}" for s in failed[:MAX_NAMED])
    return given.sample(Fraction(len(failed)), inputs, reasons or good)


def _newest(given: Given, name: str) -> list[Sample]:
    """The answer of a service's newest test, or its failures; those come first."""
    of_name = [
        sample
        for sample in given.material.of_checks.get(CHECK, ())
        if sample.conditions.get(SERVICE) == name and sample.status not in UNTRIED
    ]
    answers = replace(given, samples=of_name).answered(FAILURES).values()
    return sorted((s for own in answers for s in own), key=lambda s: s.status == "ok")


def _attempts(given: Given) -> list[Moved]:
    """The attempts of each service, of its newest day."""
    wanted = given.input(RATE)
    of_service: dict[str, dict[date, list[Moved]]] = {}
    for one in moved(given.site, given.material.of_checks.get(CHECK, ())):
        if not why_not(wanted, one.sample):
            day = datetime.fromisoformat(one.sample.header.time).astimezone(UTC).date()
            days = of_service.setdefault(one.sample.conditions[SERVICE], {})
            days.setdefault(day, []).append(one)
    return [one for days in of_service.values() for one in days[max(days)]]


def _services(given: Given) -> list[str]:
    """The services that the criterion names, or all that move files; never none."""
    rule = given.criterion.conditions.get(SERVICE)
    if rule:
        return rule.one_of or [rule.exact or "a service"]
    known = given.site.system.services.items()
    return [name for name, one in known if one.transfers] or ["a service"]


def _why(services: Sequence[str]) -> str:
    return f"{units.count(len(services), 'transfer')} of {', '.join(sorted(set(services)))}"
