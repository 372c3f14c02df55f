"""Which change of the history explains what is wrong with a node now, and so since when it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from siteproof.record.finding import Finding, Kind
from siteproof.trend.alerts import Alert

OF_A_BOUND = (Kind.MISSES_BOUND, Kind.BELOW_BASELINE)
OF_A_LEVEL = (*OF_A_BOUND, Kind.SLOW, Kind.FELL)
# For what changed in a metric, and what of it was acknowledged; None: not known.
Search = Callable[[str], Sequence[Alert] | None]


def explained(why: Finding, search: Search) -> Finding:
    """A finding on a level with the newest change that explains it, if there is one."""
    if why.kind not in OF_A_LEVEL:
        return why
    metric = why.metric.partition(" ")[0]
    changes = search(metric)
    if changes is None:
        return why
    of_fleet = why.get("event") is not None  # else the others have lost as much
    here = [
        one
        for one in changes
        if one.metric == metric and why.subject in one.nodes and one.of_fleet is of_fleet
        if one.worse and not one.made_good
    ]
    newest = max(here, key=lambda one: one.first_after.time, default=None)
    return _dated(why, newest) if newest else why


def _dated(why: Finding, change: Alert) -> Finding:
    """A finding since its change; a drift meets a bound later than it begins."""
    if change.kind == "drift" and why.kind in OF_A_BOUND:
        return replace(why, alert=change.id)
    # Of a change that was acknowledged, the runs until then are known.
    lasting = max(change.n_after, int(why.number("lasting")))
    since = f"{change.begin.time.isoformat(timespec='seconds')}+00:00"
    details = dict(why.details) | {"lasting": lasting}
    details |= {"began": since} if "began" in details else {}
    return replace(why, alert=change.id, since=since, details=tuple(details.items()))
