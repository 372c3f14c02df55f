"""The bounds that ReFrame compares with: from criteria and baselines, by mode.

acceptance: the contract. maintenance: the tighter of contract and baseline. quick: only criteria
that a quick run may answer. Where no criterion can be answered by what was measured there is no
bound, and `siteproof verdict` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

from siteproof.analysis.verdict import why_not
from siteproof.errors import UserError
from siteproof.rounding import Limit
from siteproof.samples import Sample

if TYPE_CHECKING:
    from siteproof.sites import Baseline, Criterion, Site

Reference = tuple[float, float | None, float | None]
UNBOUNDED: Reference = (0.0, None, None)
SHOWN = 3  # nodes that a one-line message names


def check_catalogue(site: Site, check: str, metrics: Iterable[str]) -> None:
    """Refuse a check that yields other metrics than the catalogue says. Raises UserError."""
    listed = {
        name.partition(".")[2] for name, entry in site.catalogue.items() if entry.check == check
    }
    if not listed:
        raise UserError("checks/catalogue.yaml", f"no metric of {check}")
    if strangers := sorted(set(metrics) - listed):
        raise UserError(
            "checks/catalogue.yaml", f"{check} yields {', '.join(strangers)}", sorted(listed)
        )


def headline(
    site: Site, role: str, check: str, metric: str, mode: str, samples: Sequence[Sample]
) -> list[tuple[str, float, str, Reference]]:
    """Name, value, unit and reference of a headline metric: its worst node, and its median."""
    name = f"{check}.{metric}"
    entry = site.catalogue[name]
    values = [s for s in samples if s.metric == name and s.status == "ok"]
    if not values:
        return []
    worst = (max if entry.better == "lower" else min)(values, key=lambda s: s.number)
    bounds = _bounds(site, role, name, mode, worst, ("every node", "system"))
    found = [(metric, float(worst.number), entry.unit, _reference(bounds))]
    if len(values) > 1 and entry.better == "higher":
        middle = median(Fraction(s.number) for s in values)
        bounds = _bounds(site, role, name, mode, worst, ("median",))
        found.append((f"{metric}_median", float(middle), entry.unit, _reference(bounds)))
    return found


def _bounds(
    site: Site, role: str, name: str, mode: str, sample: Sample, scopes: Sequence[str]
) -> list[tuple[float | None, float | None]]:
    """Lowest and highest float that each bound in force lets pass."""
    rules: list[Criterion | Baseline] = [
        c for c in site.criteria.values()
        if c.metric == name and c.scope in scopes
        and role in site.roles_of(c) and c.kind != "report_only"
    ]
    if mode == "maintenance" and "every node" in scopes:
        rules += [
            b for b in site.baselines.values() if b.metric == name and role in site.roles_of(b)
        ]
    facts = site.hardware_of(role)
    fitting = [rule for rule in rules if not why_not(rule, sample)]
    return [_floats(rule.limits(sample.unit, facts)) for rule in fitting]


def _floats(limits: tuple[Limit | None, Limit | None]) -> tuple[float | None, float | None]:
    low, high = limits
    return low and low.as_float(lowest=True), high and high.as_float(lowest=False)


def _reference(bounds: Sequence[tuple[float | None, float | None]]) -> Reference:
    """ReFrame's tuple: an inclusive bound is exact as the reference itself, with 0 beside it.

    Both bounds at once: the reference is the lower one and the upper one is relative to it.
    """
    lows = [low for low, _ in bounds if low is not None]
    highs = [high for _, high in bounds if high is not None]
    if lows and highs and max(lows):
        low = max(lows)
        return (low, 0.0, (min(highs) - low) / low)
    if lows:
        return (max(lows), 0.0, None)
    if highs:
        return (min(highs), None, 0.0)
    return UNBOUNDED


def tell_failed(failed: Sequence[Sample], expected: int) -> str:
    """One line: how many nodes were measured, and what became of the others."""
    nodes = len({s.node for s in failed})
    told = "; ".join(f"{s.node}: {s.status}: {s.why}" for s in failed[:SHOWN])
    more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
    return f"{expected - nodes} of {expected} nodes measured. {told}{more}"


def tell_lost(lost: dict[str, str]) -> str:
    """One line: the nodes that cannot take a job."""
    told = "; ".join(f"{node}: {why}" for node, why in list(lost.items())[:SHOWN])
    return told + (f"; and {len(lost) - SHOWN} more" if len(lost) > SHOWN else "")
