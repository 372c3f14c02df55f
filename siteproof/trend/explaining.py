"""Which change of the history explains what is wrong with a node now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from siteproof import trend
from siteproof.history import History
from siteproof.record.finding import Finding, Kind
from siteproof.sites import Site
from siteproof.trend.alerts import Alert

OF_A_VALUE = (Kind.MISSES_BOUND, Kind.BELOW_BASELINE, Kind.SLOW, Kind.FELL)


def metric_of(why: Finding) -> str:
    """The metric whose history may explain a finding; empty if none can."""
    return why.metric.partition(" ")[0] if why.kind in OF_A_VALUE else ""


def changes(
    site: Site, h: History, findings: Iterable[Finding], now: datetime | None = None
) -> Callable[[Finding], str]:
    """What gives the id of the change that explains a finding on a node; empty if none does.

    Only the metrics of these findings are searched. now: what is newer does not count.
    """
    found: dict[str, list[Alert]] = {}
    for metric in sorted({name for why in findings if (name := metric_of(why))}):
        seen = trend.survey(site, h, metric=metric, now=now)
        found[metric] = [a for a in (*seen.all, *seen.acknowledged) if a.worse and not a.made_good]

    def explaining(why: Finding) -> str:
        here = [a for a in found.get(metric_of(why), ()) if why.subject in a.nodes]
        of_fleet = why.get("event") is not None  # else the others have lost as much
        here = [a for a in here if a.of_fleet is of_fleet]
        newest = max(here, key=lambda a: a.first_after.time, default=None)
        return newest.id if newest else ""

    return explaining
