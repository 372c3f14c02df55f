"""What changed where a metric changed, and which change explains what is wrong with a node now.

Between the last run before a change and the first one after it.
The runs between which a small change lies are more: what changed there only is named with them.

The metric's own samples have kernel, suite, software lock and Slurm in their provenance. Host
parameters and the nodes' descriptions come from checks of their own, often less frequent: the
newest that is not after the last run before is compared with the oldest that is not before the
first run after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from siteproof.compare import changes
from siteproof.errors import UserError
from siteproof.record import samples
from siteproof.record.finding import Finding, Kind
from siteproof.record.grouped import grouped
from siteproof.record.pair_units import LINK, node_of
from siteproof.record.samples import Sample
from siteproof.record.series import SYSTEM
from siteproof.trend.alerts import Alert, Moment

if TYPE_CHECKING:
    from siteproof.history import History

NOTHING = Finding(Kind.NOTHING_CHANGED)
UNKNOWN = Finding(Kind.CHANGE_UNKNOWN, message="imported perflogs record values only")
TEXTS, DESCRIPTION = "HostParameters", "SystemDescription"
FILES = 64  # that are kept in memory: many alerts need those of one night
# A row for each run of a check of texts on a node; the order is that of sessions.
_TEXTS = """
    SELECT DISTINCT place, time, session, check_name, node, file FROM samples
    WHERE system = $system AND check_name IN ($texts, $description) AND status = 'ok'
    ORDER BY place, time, file"""
_SESSIONS = """
    SELECT session FROM runs WHERE system = $system
    GROUP BY session ORDER BY min(place), min(time), session"""
_FILES = """
    SELECT check_name, session, file FROM runs WHERE system = $system AND source = 'siteproof'
    ORDER BY place, time, file"""


class Causes:
    """Answers for one system's alerts."""

    def __init__(self, h: History, system: str) -> None:
        self._h, self._system = h, system
        self._read = lru_cache(maxsize=FILES)(samples.read)
        self._known: dict[object, list[Finding]] = {}

    def explain(self, alert: Alert) -> Alert:
        """The alert with what changed there; a drift has no day, and so no cause."""
        if alert.kind == "drift":
            return alert
        likely, sure = (alert.last_before, alert.first_after), (alert.earliest, alert.latest)
        found = self._between(alert, *likely)
        if sure != likely:
            more = [one for one in self._between(alert, *sure) if one not in found]
            found = [*found, *(_dated(one, *sure) for one in more or ([] if found else [NOTHING]))]
        return replace(alert, changed=found or [NOTHING])

    def _between(self, alert: Alert, first: Moment, last: Moment) -> list[Finding]:
        """What changed between two runs, which many alerts may share."""
        check = alert.metric.partition(".")[0]
        key = (check, alert.environment, str(alert.nodes), first, last)
        if key not in self._known:
            self._known[key] = self._compared(alert, first, last)
        return self._known[key]

    def _compared(self, alert: Alert, first: Moment, last: Moment) -> list[Finding]:
        """The cause is not known where a file is missing or broken by now."""
        check = alert.metric.partition(".")[0]
        try:
            before = list(self._samples(alert, first, False))
            after = list(self._samples(alert, last, True))
            own = [
                [
                    s
                    for s in side
                    if s.header.check == check and s.header.environment == alert.environment
                ]
                for side in (before, after)
            ]
            if not all(own):
                return [UNKNOWN]
            found = [
                *changes.provenance(*own),
                *changes.software(*own),
                *changes.texts(before, after),
                *changes.described(before, after, self._h.perflogs),
            ]
        except UserError as error:
            return [Finding(Kind.CHANGE_UNKNOWN, message=str(error))]
        return list(dict.fromkeys(found))

    def _samples(self, alert: Alert, moment: Moment, later: bool) -> Iterator[Sample]:
        alone = alert.role in (LINK, SYSTEM)
        nodes = set() if alone else set(map(node_of, alert.nodes))
        files = list(self._files.get((alert.metric.partition(".")[0], moment.session), ()))
        files += self._nearest(nodes, moment, later)
        for file in dict.fromkeys(files):
            for sample in self._read(self._h.perflogs / file):
                if alone or sample.node in nodes:
                    yield sample

    @cached_property
    def _files(self) -> dict[tuple[str, str], list[str]]:
        """The files of each check and session."""
        rows = self._h.sql(_FILES, {"system": self._system})
        return grouped(((check, session), file) for check, session, file in rows)

    @cached_property
    def _order(self) -> dict[str, int]:
        """The number of each session, the oldest first."""
        rows = self._h.sql(_SESSIONS, {"system": self._system})
        return {session: number for number, (session,) in enumerate(rows)}

    @cached_property
    def _texts(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """The runs of each check of texts on each node, oldest first."""
        rows = self._h.sql(
            _TEXTS, {"system": self._system, "texts": TEXTS, "description": DESCRIPTION}
        )
        return grouped(
            ((check, node), (session, file)) for _, _, session, check, node, file in rows
        )

    def _nearest(self, nodes: set[str], moment: Moment, later: bool) -> Iterator[str]:
        """The files of the texts that are nearest to a moment, on its side of the change."""
        for node in sorted(nodes):
            for check in (TEXTS, DESCRIPTION):
                here = self._order.get(moment.session, -1)
                fit = [
                    file
                    for session, file in self._texts.get((check, node), [])
                    if session == moment.session
                    or (self._order[session] > here if later else self._order[session] < here)
                ]
                yield from fit[:1] if later else fit[-1:]


def _dated(one: Finding, first: Moment, last: Moment) -> Finding:
    """With the days (on one day, the runs) between which it changed, as no run is certain."""
    form = "%Y-%m-%d" if first.time.date() != last.time.date() else "%Y-%m-%d %H:%M"
    dates = (("earliest", f"{first.time:{form}}"), ("latest", f"{last.time:{form}}"))
    return replace(one, details=(*one.details, *dates))


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
    return _since(why, newest) if newest else why


def _since(why: Finding, change: Alert) -> Finding:
    """A finding since its change; a drift meets a bound later than it begins."""
    details = dict(why.details)
    details |= {"acknowledged": change.ack.who} if change.ack else {}
    if change.kind == "drift" and why.kind in OF_A_BOUND:
        return replace(why, alert=change.id, details=tuple(details.items()))
    # Of a change that was acknowledged, the runs until then are known.
    lasting = max(change.n_after, int(why.number("lasting")))
    since = f"{change.begin.time.isoformat(timespec='seconds')}+00:00"
    details |= {"lasting": lasting}
    details |= {"began": since} if "began" in details else {}
    return replace(why, alert=change.id, since=since, details=tuple(details.items()))
