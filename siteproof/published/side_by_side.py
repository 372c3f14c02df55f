"""Published figures beside each other: before and after, and what must not be joined."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

from siteproof.published.figures import (
    NO_SHARE,
    Stated,
    change,
    figures,
    is_exact,
    is_number,
    statistic,
    what,
    when,
)
from siteproof.record.samples import Sample
from siteproof.units import convert

BEFORE, AFTER = "before", "after"


def tuning(samples: Iterable[Sample]) -> Stated | None:
    """Campaigns whose names say before and after, metric by metric."""
    campaigns: dict[str, dict[tuple[str, str], list[Sample]]] = {}
    for sample in samples:
        if is_number(sample) and sample.header.campaign:
            key = (what(sample), statistic(sample))
            campaigns.setdefault(sample.header.campaign, {}).setdefault(key, []).append(sample)
    rows = []
    for name, before in campaigns.items():
        after = campaigns.get(name.replace(BEFORE, AFTER, 1), {}) if BEFORE in name else {}
        rows += [
            (
                name,
                metric,
                kind,
                figures(held),
                figures(after[metric, kind]),
                _change(held, after[metric, kind]),
                when(held[0]),
                when(after[metric, kind][0]),
            )
            for (metric, kind), held in before.items()
            if (metric, kind) in after
        ]
    if not rows:
        return None
    columns = ("campaign", "metric", "it is a", "before", "after", "change", "date", "date after")
    return Stated(
        "Before and after", columns, rows, "One figure each, so a small change may be noise."
    )


def _change(before: Sequence[Sample], after: Sequence[Sample]) -> str:
    if len(before) != 1 or len(after) != 1 or not (is_exact(before[0]) and is_exact(after[0])):
        return ""
    old, new = before[0], after[0]
    return change(old.number, convert(new.number, new.unit, old.unit))


def unlike(samples: Iterable[Sample]) -> Stated | None:
    """Metrics stated both as means and as maxima, which therefore are not one series."""
    held: dict[tuple[str, str], dict[str, list[Sample]]] = {}
    for sample in samples:
        if is_exact(sample) and statistic(sample) not in ("landmark", "rank"):
            key = what(sample), sample.own_conditions.get("program", "")
            held.setdefault(key, {}).setdefault(statistic(sample), []).append(sample)
    rows = [
        (name, program, f"{kind}: " + ", ".join(f"{figures([s])} ({when(s)})" for s in found))
        for (name, program), kinds in held.items()
        if {"mean", "maximum"} <= kinds.keys()
        for kind, found in kinds.items()
    ]
    if not rows:
        return None
    return Stated(
        "Means and maxima of one metric, which are not one series",
        ("metric", "program", "figures"),
        rows,
        "A maximum after a mean is no rise; they are not joined in any trend.",
    )


def of_serial(samples: Iterable[Sample]) -> Stated | None:
    """Random access as a part of serial access of the same campaign, beside what is stated."""
    held = {(s.header.campaign, s.metric): s for s in samples if is_number(s)}
    rows = []
    for (campaign, metric), part in held.items():
        check, _, kind = metric.partition(".")
        whole = held.get((campaign, f"BlockStorage.{kind}"))
        if check == "RandomIo" and whole is not None:
            most = convert(whole.number, whole.unit, part.unit)
            ratio = f"{float(Fraction(part.number) / most):.3f}" if most else NO_SHARE
            said = [figures([s]) for (_, name), s in held.items() if name == f"{metric}_ratio"]
            rows.append((campaign, kind, figures([part]), figures([whole]), ratio, "; ".join(said)))
    return (
        Stated(
            "Random access as a part of serial access",
            ("campaign", "kind", "random", "serial", "worked out", "stated"),
            rows,
            "No block size is stated for random access.",
        )
        if rows
        else None
    )


def rest(samples: Iterable[Sample], told: Collection[Sample]) -> Stated | None:
    """Figures that no other table has, and of which no criterion speaks."""
    seen = {id(sample) for sample in told}
    grouped: dict[tuple[str, str, str, str], list[Sample]] = {}
    for s in samples:
        if is_number(s) and id(s) not in seen and not (s.node and s.dims):
            key = (what(s), statistic(s), when(s), s.header.campaign)
            if statistic(s) not in ("landmark", "rank"):
                grouped.setdefault(key, []).append(s)
    rows = [(name, figures(held), *others) for (name, *others), held in grouped.items()]
    return (
        Stated(
            "Other published figures",
            ("metric", "figure", "it is a", "date", "campaign"),
            rows,
            "No criterion of the site has a bound for them.",
        )
        if rows
        else None
    )
