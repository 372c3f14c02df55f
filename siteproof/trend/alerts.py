"""What a trend shows: alerts, each with its place, its size, its runs and what changed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from ClusterShell.NodeSet import NodeSet

from siteproof.record.finding import Finding
from siteproof.record.series import Series

if TYPE_CHECKING:
    import numpy as np

    from siteproof.trend.sensitivity import Sensitivity

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
    def open(self) -> bool:
        """Whether it is worse, was not made good, and is not acknowledged."""
        return self.worse and self.ack is None and self.made_good is None


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
