"""The nodes in one series: each compared with the fleet of its run, and with its own past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import Any

from siteproof.analysis import slow_nodes as rules
from siteproof.analysis.slow_nodes import Level, Middle, Paired, Slow, State
from siteproof.record import finding
from siteproof.record.finding import Finding, Kind
from siteproof.record.series import JobValue, Series

Runs = Mapping[str, list[JobValue]]
COVERS = 0.5  # of a series' nodes: a session with fewer, such as a retest, is not a fleet


@dataclass(frozen=True)
class MetricReport:
    """A node in one metric. z and deficit are of its newest run, against the fleet of that run.

    value: of the newest run. median: the fleet's. z: None where too few nodes allow none.
    change: against the node's own history, negative where it got worse; None if fewer than three
    earlier values. runs, slow_runs: within what is judged.
    """

    value: float
    unit: str
    median: float
    z: float | None
    deficit: float
    change: float | None
    runs: int
    slow_runs: int


@dataclass(frozen=True)
class InOneSeries:
    """A node in one series. state OK: reasons prove nothing yet, until it is run again.

    suspect: slow against the fleet, or fallen against its own past, however often.
    """

    metric: MetricReport
    state: State
    reasons: tuple[Finding, ...]
    suspect: bool


@dataclass(frozen=True)
class InSeries:
    """One series of what is judged. past: where the recent earlier values of each node lie."""

    key: Series
    better: str
    runs: Runs
    past: Mapping[str, Level]

    def places(self) -> Iterator[tuple[str, InOneSeries]]:
        """Every node that has a value."""
        for node, runs in self.runs.items():
            yield node, self._place(node, runs)

    def unstable(self) -> Iterator[Finding]:
        """Nodes whose runs differ far more than those of most nodes."""
        spreads = {
            node: rules.spread([r.value for r in runs])
            for node, runs in self.runs.items()
            if len(runs) >= rules.UNSTABLE_RUNS
        }
        typical = median(spreads.values()) if spreads else 0.0
        for node, spread in spreads.items():
            if rules.is_unstable([r.value for r in self.runs[node]], typical):
                details = {"spread": spread, "runs": len(self.runs[node]), "typical": typical}
                yield self._finding(Kind.UNSTABLE, details, node)

    @cached_property
    def fleets(self) -> dict[str, Middle]:
        """The fleet that each session's values are compared with.

        A session that measured less than half of the nodes, such as the retest of slow ones, is
        compared with the last one that measured more; without one, with each node's newest value.
        """
        by_session: dict[str, dict[str, list[float]]] = {}
        for node, runs in self.runs.items():
            for run in runs:
                by_session.setdefault(run.session, {}).setdefault(node, []).append(run.value)
        order = {r.session: (r.place, r.time) for runs in self.runs.values() for r in runs}
        found: dict[str, Middle] = {}
        whole: Middle | None = None
        few = []
        for session in sorted(by_session, key=lambda s: (order[s], s)):
            nodes = by_session[session]
            if len(nodes) >= COVERS * len(self.runs):
                whole = found[session] = rules.middle([median(v) for v in nodes.values()])
            elif whole is not None:
                found[session] = whole
            else:
                few.append(session)
        last = whole or rules.middle([runs[-1].value for runs in self.runs.values()])
        first = next(iter(found.values()), last)
        return found | dict.fromkeys(few, first)

    @cached_property
    def newest(self) -> Middle:
        """The fleet of the newest session."""
        return self.fleets[max(runs[-1] for runs in self.runs.values()).session]

    @cached_property
    def changes(self) -> dict[str, Paired]:
        """Each node compared with its own past, where it has enough of it."""
        spreads = [
            rules.MAD_TO_SIGMA * before.spread
            for before in self.past.values()
            if before.size >= rules.MIN_HISTORY
        ]
        typical = median(spreads) if spreads else 0.0
        found = {}
        for node, runs in self.runs.items():
            before, now = self.past.get(node), [r.value for r in runs]
            change = rules.paired(before, now, self.better, typical) if before else None
            if change is not None:
                found[node] = change
        return found

    @cached_property
    def shift(self) -> float:
        """How the whole fleet changed against its past; this counts against no node."""
        known = self.changes.values()
        return median(c.change for c in known) if 2 * len(known) > len(self.runs) else 0.0

    def warnings(self) -> Iterator[Finding]:
        """What the fleet as a whole did, which no ranking shows."""
        role, known = self.key.role, self.changes.values()
        if known and self.shift:
            error = rules.middle([c.change for c in known]).sd / len(known) ** 0.5
            if abs(self.shift) >= max(rules.MIN_DEFICIT, rules.FALL_SD * error):
                yield self._finding(Kind.FLEET_MOVED, {"role": role, "change": self.shift})
        if self.newest.count >= rules.MIN_FLEET:
            share = self._share_far_above()
            if share > rules.MANY:
                yield self._finding(Kind.MANY_FAST, {"role": role, "share": share})

    def _share_far_above(self) -> float:
        """The share of nodes whose newest run is far better than the median."""
        newest = [runs[-1] for runs in self.runs.values()]
        places = [rules.standing(r.value, self.fleets[r.session], self.better) for r in newest]
        return sum(map(_far_above, places)) / len(newest)

    def slow_group(self, nodes: list[str]) -> float | None:
        """How far a rack as a whole is below the fleet, if it is."""
        inside = [self.runs[n][-1].value for n in nodes if n in self.runs]
        if 2 * len(inside) > len(self.runs):
            return None
        return rules.group_is_slow(inside, self.newest, self.better)

    def _place(self, node: str, runs: list[JobValue]) -> InOneSeries:
        places = [rules.standing(r.value, self.fleets[r.session], self.better) for r in runs]
        slow = [rules.is_slow(*place) for place in places]
        z, deficit = places[-1]
        change = self.changes.get(node)
        fell = change is not None and rules.fell(change, self.shift)
        proven = change is not None and rules.fell_alone(change, self.shift)
        report = MetricReport(
            runs[-1].value,
            runs[-1].unit,
            self.fleets[runs[-1].session].median,
            z,
            deficit,
            change.change if change else None,
            len(runs),
            sum(slow),
        )
        rule = rules.retest_rule(slow, deficit, fell)
        is_slow = rule in (Slow.ONCE, Slow.CONFIRMED) or proven
        reasons = [self._against_fleet(node, report, rule, slow, is_slow)] if any(slow) else []
        if report.change is not None and (fell or proven):
            reasons.append(self._fell(node, report, proven, is_slow, first=not reasons))
        if not is_slow and rule is not Slow.UNCONFIRMED and not fell:
            reasons = []
        suspect = slow[-1] or fell or proven
        return InOneSeries(report, State.SLOW if is_slow else State.OK, tuple(reasons), suspect)

    def _fell(
        self, node: str, report: MetricReport, proven: bool, is_slow: bool, *, first: bool
    ) -> Finding:
        """A node against its own history. first: there is no other finding on the node."""
        rule = Slow.CONFIRMED if is_slow else Slow.UNCONFIRMED
        if proven and report.runs == 1 and first:
            rule = Slow.ONCE
        return self._finding(Kind.FELL, {"change": report.change, "rule": str(rule)}, node)

    def _against_fleet(
        self, node: str, report: MetricReport, rule: Slow, slow: list[bool], is_slow: bool
    ) -> Finding:
        last = slow[-rules.RETESTS :]
        if not is_slow:
            rule = Slow.UNCONFIRMED
        elif rule is not Slow.ONCE:
            rule = Slow.CONFIRMED
        seen: dict[str, Any] = {"slow": sum(last), "runs": len(last), "rule": str(rule)}
        if report.deficit < 0:
            return self._finding(Kind.SLOW_BEFORE, seen, node)
        details = {
            "deficit": report.deficit,
            "better": self.better,
            "median": report.median,
            "z": report.z,
        }
        found = self._finding(Kind.SLOW, details | seen, node)
        return replace(found, value=f"{report.value:.6g}", unit=report.unit)

    def _finding(self, kind: Kind, details: Mapping[str, Any], subject: str = "") -> Finding:
        check = self.key.metric.partition(".")[0]
        return finding.of(kind, details, subject=subject, check=check, metric=self.key.name)


def _far_above(place: tuple[float | None, float]) -> bool:
    z, deficit = place
    return z is not None and z > -rules.Z_LIMIT and deficit <= -rules.MIN_DEFICIT
