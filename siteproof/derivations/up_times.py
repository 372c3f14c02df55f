"""What a user meets: how long services were up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from siteproof.availability import window_figures
from siteproof.availability.window_figures import DOWNTIME, MONTH, WINDOW_HOURS
from siteproof.derivations.given import Given, Lack, Result

DAYS = 14  # of a criterion without the condition window_hours


def availability(given: Given) -> Iterator[Result]:
    """One of the metrics Availability.*, over the hours that the criterion requires, until now."""
    metric, end = given.criterion.metric, given.material.now
    hours = float(MONTH if metric == DOWNTIME else DAYS * 24)
    rule = given.criterion.conditions.get(WINDOW_HOURS)
    if rule:
        hours = _hours(rule.at_least or rule.exact or "", hours)
    begin = end - timedelta(hours=hours)
    found = window_figures.figures(given.site, given.material.perflogs, begin, end, now=end)
    one = found[metric]
    if one.value is None or not one.meets_conditions(given.criterion):
        yield Lack(one.why or given.missing(["probes"]).why)
        return
    why = f"{one.subject}, {one.measured_hours:.10g} of {one.period_hours:.10g} hours measured"
    yield given.sample(one.value, [], why)


def _hours(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise
