"""What a trend shows: alerts, each with its place, its size, its runs and what changed there.

Those that somebody has acknowledged: each record is a file, `perflogs/<system>/trend/<time>.json`,
that is never changed and never removed: one that takes another back is a record of its own. A
record holds the whole alert, so that it can be shown when its runs are no longer looked at.

What changed where a metric changed, and which change explains what is wrong with a node now.

Between the last run before a change and the first one after it.
The runs between which a small change lies are more: what changed there only is named with them.

The metric's own samples have kernel, suite, software lock and Slurm in their provenance. Host
parameters and the nodes' descriptions come from checks of their own, often less frequent: the
newest that is not after the last run before is compared with the oldest that is not before the
first run after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.compare import comparison
from siteproof.errors import UserError
from siteproof.record import evidence_records, finding, samples
from siteproof.record.finding import Finding
from siteproof.record.finding import Kind as FindingKind
from siteproof.record.pair_units import LINK, grouped, node_of
from siteproof.record.samples import Sample
from siteproof.record.series import SYSTEM, Series

if TYPE_CHECKING:
    import numpy as np

    from siteproof.history import History
    from siteproof.trend.gaps import Sensitivity

Kind = Literal["step", "episode", "drift", "scatter", "out of control"]
CONFIRMS = 5  # runs on each side of a step; what rests on fewer is provisional
TWO_LEVELS = "two levels"


@dataclass(frozen=True)
class Moment:
    """A run: when it ended (UTC), and its session."""

    time: datetime
    session: str

    def __str__(self) -> str:
        return f"{self.time:%Y-%m-%d %H:%M}"

    @property
    def iso(self) -> str:
        """The time for programs."""
        return f"{self.time.isoformat()}Z"


@dataclass(frozen=True)
class Ack:
    """A person's note that a change is known: from it on a new control region begins.

    alert: its id. when: UTC, ISO 8601.
    """

    alert: str
    who: str
    why: str
    when: str


@dataclass(frozen=True)
class Alert:
    """A change of one metric, on nodes that changed in the same runs.

    before, after: medians in `unit`; of a scatter robust sd. relative: the change, signed: -0.1 is
    a tenth less; for nodes of a fleet without the change of the whole fleet. severity: the change
    in units of the scatter of one run. place: the rack, role, link or system. n_before, n_after:
    runs of one node that it rests on. last_before, first_after: where it most likely lies;
    earliest, latest: between which it lies with 99 %. changed: what else differs between these.
    made_good: the run from which on the value was again what it had been; of an episode, its end.
    ends: the run with which a gain began that this loss ended, where the nodes are again as before
    and as the others are.
    unit_factor: that of two units, if it explains the change, else 0. meets: the day on which a
    drift meets its bound, if that is soon.
    """

    id: str
    kind: Kind
    metric: str
    series_name: str
    environment: str
    role: str
    nodes: NodeSet
    place: str
    before: float
    after: float
    unit: str
    relative: float
    worse: bool
    confidence: str
    provisional: bool
    n_before: int
    n_after: int
    last_before: Moment
    first_after: Moment
    earliest: Moment
    latest: Moment
    series: Series
    better: str = "neither"
    of_fleet: bool = False
    changed: Sequence[Finding] = ()
    made_good: Moment | None = None
    ends: Moment | None = None
    ack: Ack | None = None
    severity: float = 0.0
    unit_factor: float = 0.0
    meets: str = ""

    @property
    def begin(self) -> Moment:
        """Since when it is: the first run after it, of a drift the run with which it begins."""
        return self.last_before if self.kind == "drift" else self.first_after

    @property
    def improved(self) -> bool:
        """Whether it went in the good direction."""
        return self.better != "neither" and not self.worse

    @property
    def past(self) -> bool:
        """Whether the nodes are again as they were before it, or before the gain that it ended."""
        return self.made_good is not None or self.ends is not None

    @property
    def open(self) -> bool:
        """Whether it is worse, still there, and not acknowledged."""
        return self.worse and self.ack is None and not self.past


@dataclass(frozen=True)
class Rhythm:
    """A metric that changes with weekday, hour or time of the year, or flips between two levels.

    pattern: weekday, hour of day, annual, or TWO_LEVELS. lowest, highest: where in it; empty for
    two levels. size: the difference, as a share of the median.
    """

    metric: str
    series_name: str
    role: str
    nodes: NodeSet
    pattern: str
    lowest: str
    highest: str
    size: float


@dataclass(frozen=True)
class Line:
    """The runs of a node (or link, or the system) in one series, oldest first.

    times: datetime64[us], UTC. values: in `unit`. changes: the alerts on it.
    """

    series: Series
    node: str
    unit: str
    times: np.ndarray
    values: np.ndarray
    changes: Sequence[Alert] = ()


@dataclass(frozen=True)
class Survey:
    """Everything that changed, the worst first.

    fleet: steps of a whole fleet, one alert each. gaps: what could not be judged. clocks: sessions
    with wrong clocks, which were judged by their number. series: lines that were looked at, one
    for each node and series. points: their runs. long_enough: lines with enough runs for a step
    to be seen. sensitivity: how small a change could have been found in each series. dates: of
    each metric the changes that it shows by itself, and those that are acknowledged.
    """

    alerts: list[Alert] = field(default_factory=list)
    fleet: list[Alert] = field(default_factory=list)
    drifts: list[Alert] = field(default_factory=list)
    seasons: list[Rhythm] = field(default_factory=list)
    gaps: list[Finding] = field(default_factory=list)
    clocks: list[Finding] = field(default_factory=list)
    acknowledged: list[Alert] = field(default_factory=list)
    series: int = 0
    points: int = 0
    long_enough: int = 0
    sensitivity: list[Sensitivity] = field(default_factory=list)
    dates: dict[str, list[Alert]] = field(default_factory=dict)

    @property
    def all(self) -> list[Alert]:
        """Every alert that nobody has acknowledged."""
        return [*self.fleet, *self.alerts, *self.drifts]


_KEYS = ("ack", "who", "why", "when", "takes_back", "alert")
_MOMENTS = ("last_before", "first_after", "earliest", "latest", "made_good", "ends")
_KINDS: dict[object, Any] = {
    "str": str,
    "Kind": str,
    "bool": bool,
    "int": int,
    "float": (int, float),
}
_PLAIN = {f.name: _KINDS[f.type] for f in fields(Alert) if f.type in _KINDS}
_CAUSES = (  # what an alert may give as its cause
    FindingKind.CHANGED,
    FindingKind.NOTHING_CHANGED,
    FindingKind.CHANGE_UNKNOWN,
)


@dataclass(frozen=True)
class AckFile:
    """One file. takes_back: whether it ends an earlier one on the same alert."""

    ack: Ack
    alert: Alert
    takes_back: bool


def folder(perflogs: Path, system: str) -> Path:
    """Where a system's records are kept."""
    return perflogs / system / "trend"


def acknowledge(
    perflogs: Path, system: str, alert: Alert, who: str, why: str, *, takes_back: bool = False
) -> Ack:
    """Acknowledge an alert, or take that back. Raises OSError where perflogs cannot be written."""
    now = datetime.now(UTC)
    ack = Ack(alert.id, who, why, now.isoformat())
    record = {
        "ack": alert.id,
        "who": who,
        "why": why,
        "when": ack.when,
        "takes_back": takes_back,
        "alert": as_record(alert),
    }
    target = folder(perflogs, system) / f"{now:%Y%m%dT%H%M%S.%fZ}.json"
    evidence_records.keep(target, perflogs, record)
    return ack


def acknowledgements(perflogs: Path, system: str) -> list[AckFile]:
    """Every record, oldest first. Raises UserError for a broken one."""
    return [_read(path) for path in sorted(folder(perflogs, system).glob("[!.]*.json"))]


def standing(records: Iterable[AckFile]) -> list[Alert]:
    """The alerts that are acknowledged and not taken back, each with its ack, oldest first."""
    found: dict[str, Alert] = {}
    for record in records:
        found.pop(record.alert.id, None)
        if not record.takes_back:
            found[record.alert.id] = replace(record.alert, ack=record.ack)
    return list(found.values())


def as_record(alert: Alert) -> dict[str, Any]:
    """An alert as plain data."""
    plain: dict[str, Any] = {name: getattr(alert, name) for name in _PLAIN}
    for name in _MOMENTS:
        moment = getattr(alert, name)
        plain[name] = moment and {"time": moment.iso, "session": moment.session}
    return plain | {
        "nodes": str(alert.nodes),
        "changed": [why.record() for why in alert.changed],
        "series": {"dims": dict(alert.series.dims), "conditions": dict(alert.series.conditions)},
    }


def _read(path: Path) -> AckFile:
    record = evidence_records.plain(path, "an acknowledgement")
    try:
        if set(record) != set(_KEYS):
            raise ValueError
        ack = Ack(*(_is(record, key, str) for key in ("ack", "who", "why", "when")))
        return AckFile(ack, _alert(record["alert"]), _is(record, "takes_back", bool))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise UserError(path, "not an acknowledgement", _KEYS) from None


def _alert(plain: dict[str, Any]) -> Alert:
    own: dict[str, Any] = {name: _is(plain, name, kind) for name, kind in _PLAIN.items()}
    own |= {name: _moment(plain[name]) for name in _MOMENTS}
    pairs = [
        tuple(sorted((str(k), str(v)) for k, v in plain["series"][key].items()))
        for key in ("dims", "conditions")
    ]
    series = Series(own["metric"], pairs[0], own["environment"], own["role"], pairs[1])
    nodes = nodesets.parse(_is(plain, "nodes", str))
    if own["last_before"] is None or own["first_after"] is None:
        raise ValueError
    changed = [_finding(cause) for cause in plain["changed"]]
    return Alert(**own, nodes=nodes, series=series, changed=changed)


def _finding(plain: Any) -> Finding:
    """What changed, as recorded."""
    found = finding.read(plain)
    if found.kind not in _CAUSES:  # the sentences of others need details that this one may lack
        raise ValueError
    return found


def _moment(plain: Any) -> Moment | None:
    if plain is None:
        return None
    time = datetime.fromisoformat(plain["time"])
    if time.tzinfo is None:
        raise ValueError
    return Moment(time.astimezone(UTC).replace(tzinfo=None), str(plain["session"]))


def _is(record: dict[str, Any], key: str, kind: Any) -> Any:
    if not isinstance(record[key], kind):
        raise TypeError
    return record[key]


NOTHING = Finding(finding.Kind.NOTHING_CHANGED)
UNKNOWN = Finding(finding.Kind.CHANGE_UNKNOWN, message="imported perflogs record values only")
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
                *comparison.provenance(*own),
                *comparison.software(*own),
                *comparison.texts(before, after),
                *comparison.described(before, after, self._h.perflogs),
            ]
        except UserError as error:
            return [Finding(finding.Kind.CHANGE_UNKNOWN, message=str(error))]
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


OF_A_BOUND = (finding.Kind.MISSES_BOUND, finding.Kind.BELOW_BASELINE)
OF_A_LEVEL = (*OF_A_BOUND, finding.Kind.SLOW, finding.Kind.FELL)
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
