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

from reframe.utility.sanity import reference_bounds

from siteproof.errors import UserError, harmless
from siteproof.judge.criterion import MIDDLES, why_not
from siteproof.record.samples import Sample
from siteproof.rounding import Limit

if TYPE_CHECKING:
    from siteproof.sites import Baseline, Criterion, Hardware, Site

Reference = tuple[float, float | None, float | None]
UNBOUNDED: Reference = (0.0, None, None)
NOTHING_PASSES: Reference = (math.inf, 0.0, None)  # of promises that contradict each other
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
    number, reference = compared(each, worst, facts)
    found = [(metric, number, entry.unit, reference)]
    exact = [Fraction(s.number) for s in values]
    for scope, middle in (("median", median(exact)), ("mean", sum(exact) / len(exact))):
        spoken = [
            rule
            for rule in rules
            if rule.scope == scope
            and set(site.promised(rule)) - excused <= {s.node for s in values}
        ]
        if spoken or scope == "median" and len(values) > 1 and entry.better == "higher":
            number, reference = compared(spoken, worst, facts, Fraction(middle))
            found.append((f"{metric}_{scope}", number, entry.unit, reference))
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


def compared(
    rules: Sequence[Criterion | Baseline],
    sample: Sample,
    facts: Hardware | None,
    figure: Fraction | None = None,
) -> tuple[float, Reference]:
    """A sample's figure and the tightest of the bounds that it can answer, as floats.

    figure: another one that answers as the sample does, such as a median.
    """
    exact = Fraction(sample.number) if figure is None else figure
    limits = [rule.limits(sample.unit, facts) for rule in rules if not why_not(rule, sample)]
    lows = [low for low, _ in limits if low]
    highs = [high for _, high in limits if high]
    low = max(lows, key=lambda one: (one.value, not one.inclusive), default=None)
    high = min(highs, key=lambda one: (one.value, one.inclusive), default=None)
    reference = _reference(
        low.as_float(lowest=True) if low else None, high.as_float(lowest=False) if high else None
    )
    return _on_its_side(exact, low, high, reference), reference


def _on_its_side(
    exact: Fraction, low: Limit | None, high: Limit | None, reference: Reference
) -> float:
    """The float nearest to a figure that ReFrame finds on the side of the bounds where it is.

    A median may have more digits than a float: just below 5 it must not become 5.
    """
    number = float(exact)
    if reference == NOTHING_PASSES:
        return number
    lowest, highest = (float(bound) for bound in reference_bounds(*reference))
    if low and (exact < low.value or exact == low.value and not low.inclusive):
        return min(number, math.nextafter(lowest, -math.inf))
    if high and (exact > high.value or exact == high.value and not high.inclusive):
        return max(number, math.nextafter(highest, math.inf))
    return min(max(number, lowest), highest)


def _reference(low: float | None, high: float | None) -> Reference:
    """ReFrame's tuple: an inclusive bound is exact as the reference itself, with 0 beside it."""
    if low is not None and high is not None:
        return _between(low, high)
    if low is not None:
        return (low, 0.0, None)
    if high is not None:
        return (high, None, 0.0)
    return UNBOUNDED


def _between(low: float, high: float) -> Reference:
    """Both bounds at once: ReFrame multiplies, which rounds, unless the reference is well chosen.

    Around zero the thresholds are absolute. A power of two between the bounds makes both factors
    exact; where there is none, low / high is above one half and comes back exactly, too.
    """
    if low > high:
        return NOTHING_PASSES
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
