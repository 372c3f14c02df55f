"""The values of `Availability.*` that a criterion names, from probes and node events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path

from siteproof.availability import overview
from siteproof.availability.definitions import Spans, Uptime, gap, overall, scheduled
from siteproof.availability.overview import Overview
from siteproof.errors import UserError
from siteproof.record.finding import Finding, note
from siteproof.record.severity import Verdict
from siteproof.sites import Criterion, Site
from siteproof.sites.promise import AVAILABILITY

MONTH = 720  # hours: 30 days
SCHEDULED, OVERALL = f"{AVAILABILITY}scheduled", f"{AVAILABILITY}overall"
DOWNTIME, GATEWAY_GAP = f"{AVAILABILITY}downtime", f"{AVAILABILITY}gateway_gap"
CONTINUOUS = f"{AVAILABILITY}continuous"
UNITS = {SCHEDULED: "%", OVERALL: "%", DOWNTIME: "h/month", CONTINUOUS: "d", GATEWAY_GAP: "pp"}
DAY = 86_400  # seconds
WINDOW_HOURS, INTERVAL = "window_hours", "interval"
MODE = "mode"  # every criterion has this condition, and probes have no mode


@dataclass(frozen=True)
class WindowFigure:
    """One metric of a period. value: exact, of the measured time; None if there is none.

    subject: the system, or the gateway that is the worst. found: what is known of the period; part:
    of the subject. why: the reason why there is no value, or why hours are missing.
    """

    metric: str
    value: Fraction | None
    subject: str
    found: Overview
    part: Uptime | None
    why: Finding | None = None

    @property
    def measured_hours(self) -> float:
        """How much of the period was measured."""
        return self.found.measured_hours(self.part) if self.part else 0.0

    @property
    def missing(self) -> Spans:
        """The rest of the period."""
        return self.found.missing(self.part) if self.part else (self.found.period,)

    @property
    def interval(self) -> int:
        """The longest interval of the probes, in seconds."""
        return self.found.interval

    @property
    def unit(self) -> str:
        """The unit of the catalogue."""
        return UNITS[self.metric]

    @property
    def conditions(self) -> dict[str, str]:
        """What a criterion can require: the measured hours, and the interval in seconds."""
        return {WINDOW_HOURS: f"{self.measured_hours:.10g}", INTERVAL: str(self.interval)}

    def meets_conditions(self, criterion: Criterion) -> bool:
        """Whether it is measured as the criterion requires; without a window, the whole period."""
        if self.value is None or (WINDOW_HOURS not in criterion.conditions and self.missing):
            return False
        own = self.conditions
        required = {name: rule for name, rule in criterion.conditions.items() if name != MODE}
        return all(name in own and rule.met_by(own[name]) for name, rule in required.items())


def figures(
    site: Site, perflogs: Path, begin: datetime, end: datetime, count: int = 0
) -> dict[str, WindowFigure]:
    """Each metric of UNITS in a period that has ended, from what is recorded of a site.

    begin, end: with a time zone. count: of a system with members, how many of them must be up.
    Raises UserError for a period that ends before it begins, and
    UserError and UserErrors as overview.read.
    """
    if begin >= end:
        raise UserError("period", f"{end} is not after {begin}")
    period = (int(begin.timestamp()), int(end.timestamp()))
    parts = site.members or {site.name: site}
    read = {name: overview.read(one, perflogs, period, period[1]) for name, one in parts.items()}
    return of_overview(
        site.name, overview.of_members(read, count) if site.members else read[site.name]
    )


def of_overview(system: str, found: Overview) -> dict[str, WindowFigure]:
    """The same of an overview that was read before."""
    shares: dict[str, Callable[[Uptime], Fraction | None]] = {
        SCHEDULED: lambda part: _percent(scheduled([part])),
        OVERALL: lambda part: _percent(overall([part])),
        DOWNTIME: lambda part: _month(overall([part])),
        CONTINUOUS: lambda part: Fraction(max((b - a for a, b in part.up), default=0), DAY),
    }
    made = {metric: _of_system(metric, system, found, share) for metric, share in shares.items()}
    return made | {GATEWAY_GAP: _of_gateways(system, found)}


def _of_system(
    metric: str, system: str, found: Overview, share: Callable[[Uptime], Fraction | None]
) -> WindowFigure:
    """A share of the system, which needs services that are probed."""
    part = found.whole if found.services else None
    why = found.hours_missing(subject=system) if part else _no_probes("probes")
    return WindowFigure(metric, share(part) if part else None, system, found, part, why)


def _of_gateways(system: str, found: Overview) -> WindowFigure:
    """The largest gap of a gateway."""
    if not found.gateways or not found.services or found.whole is None:
        what = "probes of a gateway" if found.services else "probes"
        return WindowFigure(GATEWAY_GAP, None, system, found, None, _no_probes(what))
    whole = found.whole
    gaps = {name: gap(whole, part) for name, part in found.gateways.items()}
    # A gateway that was never measured hides no other one, but leaves the answer open.
    name = max(gaps, key=lambda one: (gaps[one] is None, gaps[one] or Fraction(-100)))
    part = found.gateways[name]
    both = part.within(whole.known)
    why = found.hours_missing(both, subject=name)
    return WindowFigure(GATEWAY_GAP, gaps[name], name, found, both, why)


def _no_probes(what: str) -> Finding:
    return note("system.yaml has no {needed}", needed=what)


def _percent(share: Fraction | None) -> Fraction | None:
    return None if share is None else 100 * share


def _month(share: Fraction | None) -> Fraction | None:
    return None if share is None else MONTH * (1 - share)


def verdict_of(criterion: Criterion, figure: WindowFigure) -> Verdict | None:
    """PASS, FAIL or INCOMPLETE; None for a criterion that decides nothing."""
    if criterion.kind == "report_only" or criterion.not_here:
        return None
    if figure.value is None or not figure.meets_conditions(criterion):
        return Verdict.INCOMPLETE
    return Verdict.PASS if criterion.met(figure.value, figure.unit) else Verdict.FAIL
