"""The bounds that ReFrame compares with: from criteria and baselines, by mode.

acceptance: the contract. maintenance: the tighter of contract and baseline. quick: only criteria
that a quick run may answer. Where no criterion can be answered by what was measured there is no
bound, and `siteproof verdict` says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

from siteproof.errors import UserError, harmless
from siteproof.judge.criterion import MIDDLES, why_not
from siteproof.record.samples import Sample
from siteproof.rounding import Limit

if TYPE_CHECKING:
    from siteproof.sites import Baseline, Criterion, Hardware, Site

Reference = tuple[float, float | None, float | None]
UNBOUNDED: Reference = (0.0, None, None)
SHOWN = 3  # nodes that a one-line message names


def check_catalogue(site: Site, check: str, metrics: Iterable[str]) -> None:
    """Refuse a check that yields other metrics than the catalogue says. Raises UserError."""
    listed = {
        name.partition(".")[2] for name, entry in site.catalogue.items() if entry.check == check
    }
    if not listed:
        raise UserError("checks/*/catalogue.yaml", f"no metric of {check}")
    if strangers := sorted(set(metrics) - listed):
        raise UserError(
            "checks/*/catalogue.yaml", f"{check} yields {', '.join(strangers)}", sorted(listed)
        )


def headline(
    site: Site, role: str, check: str, metric: str, mode: str, samples: Sequence[Sample]
) -> list[tuple[str, float, str, Reference]]:
    """Name, value, unit and reference of a headline metric: its worst node, and its median.

    Median and mean are compared where these samples are of all the nodes that they speak of.
    Nodes that are excused from all that is promised of a metric count in neither.
    """
    name = f"{check}.{metric}"
    entry = site.catalogue[name]
    values = [s for s in samples if s.metric == name and s.status == "ok"]
    if not values:
        return []
    rules = [r for r in spoken_of(site, name, mode) if not r.links and role in site.roles_of(r)]
    facts = site.hardware_of(role)
    excused = _excused(site, rules, name)
    pick = max if entry.better == "lower" else min
    if all(s.node in excused for s in values):
        worst = pick(values, key=lambda s: s.number)
        return [(metric, float(worst.number), entry.unit, UNBOUNDED)]
    values = [s for s in values if s.node not in excused]
    each = [rule for rule in rules if rule.scope not in MIDDLES]
    # Nodes may have used different programs: those whose figure answers something go first.
    answers = [s for s in values if any(not why_not(rule, s) for rule in each)] or values
    worst = pick(answers, key=lambda s: s.number)
    found = [(metric, float(worst.number), entry.unit, bounds(each, worst, facts))]
    exact = [Fraction(s.number) for s in values]
    for scope, middle in (("median", median(exact)), ("mean", sum(exact) / len(exact))):
        spoken = [
            rule
            for rule in rules
            if rule.scope == scope
            and set(site.promised(rule)) - excused <= {s.node for s in values}
        ]
        if spoken or scope == "median" and len(values) > 1 and entry.better == "higher":
            found.append(
                (f"{metric}_{scope}", float(middle), entry.unit, bounds(spoken, worst, facts))
            )
    return found


def spoken_of(site: Site, name: str, mode: str) -> list[Criterion | Baseline]:
    """The criteria, and in a maintenance the baselines, that speak of a metric."""
    rules: list[Criterion | Baseline] = [
        c for c in site.criteria.values() if c.kind != "report_only"
    ]
    if mode == "maintenance":
        rules += site.baselines.values()
    return [rule for rule in rules if rule.metric == name]


def _excused(site: Site, rules: Sequence[Criterion | Baseline], name: str) -> set[str]:
    """The nodes of which a waiver that holds excuses every criterion, and with it the baseline."""
    today = datetime.now(UTC).date()
    held = [waiver for waiver in site.waivers.values() if waiver.holds(today)]
    keys = [key for key, criterion in site.criteria.items() if criterion in rules] or [""]
    nodes = [{n for w in held if w.speaks_of(key, name) for n in w.set} for key in keys]
    return set.intersection(*nodes)


def bounds(
    rules: Sequence[Criterion | Baseline], sample: Sample, facts: Hardware | None
) -> Reference:
    """The tightest of the bounds that the sample can answer."""
    fitting = [rule for rule in rules if not why_not(rule, sample)]
    return _reference([_floats(rule.limits(sample.unit, facts)) for rule in fitting])


def _floats(limits: tuple[Limit | None, Limit | None]) -> tuple[float | None, float | None]:
    low, high = limits
    return (
        low.as_float(lowest=True) if low else None,
        high.as_float(lowest=False) if high else None,
    )


def _reference(bounds: Sequence[tuple[float | None, float | None]]) -> Reference:
    """ReFrame's tuple: an inclusive bound is exact as the reference itself, with 0 beside it."""
    lows = [low for low, _ in bounds if low is not None]
    highs = [high for _, high in bounds if high is not None]
    if lows and highs:
        return _between(max(lows), min(highs))
    if lows:
        return (max(lows), 0.0, None)
    if highs:
        return (min(highs), None, 0.0)
    return UNBOUNDED


def _between(low: float, high: float) -> Reference:
    """Both bounds at once: ReFrame multiplies, which rounds, unless the reference is well chosen.

    Around zero the thresholds are absolute. A power of two between the bounds makes both factors
    exact; where there is none, low / high is above one half and comes back exactly, too.
    """
    if low > high:  # promises that contradict each other: nothing passes
        return (math.inf, 0.0, None)
    if low <= 0 <= high:
        return (0.0, low, high)
    if high < 0:
        reference, below, above = _between(-high, -low)
        return (-reference, -(above or 0.0), -(below or 0.0))
    reference = min(2.0 ** math.frexp(low)[1], high)
    return (reference, low / reference - 1, high / reference - 1)


def tell_failed(failed: Sequence[Sample], expected: int) -> str:
    """One line: how many nodes were measured, and what became of the others."""
    nodes = len({s.node for s in failed})
    told = "; ".join(f"{s.node}: {s.status}: {s.why}" for s in failed[:SHOWN])
    more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
    return harmless(f"{expected - nodes} of {expected} nodes measured. {told}{more}")


def tell_lost(lost: dict[str, str]) -> str:
    """One line: the nodes that cannot take a job."""
    told = "; ".join(f"{node}: {why}" for node, why in list(lost.items())[:SHOWN])
    return harmless(told + (f"; and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""))
