"""The nodes in one series: each beside the fleet of its run, and beside its own past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from siteproof.analysis import slow_nodes as rules
from siteproof.analysis.slow_nodes import Middle, Paired, Slow, State
from siteproof.record.series import JobValue, Series

Runs = Mapping[str, list[JobValue]]
COVERS = 0.5  # of a series' nodes: a session with fewer, such as a retest, is no fleet


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
class Finding:
    """A node in one series. state OK: reason is a note that proves nothing yet, or empty.

    suspect: slow against the fleet, or fallen against its own past, however often.
    """

    metric: MetricReport
    state: State
    reason: str
    suspect: bool


@dataclass(frozen=True)
class InSeries:
    """One series of what is judged. past: recent earlier runs of the nodes."""

    key: Series
    better: str
    runs: Runs
    past: Runs

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """Every node that has a value."""
        for node, mine in self.runs.items():
            yield node, self._finding(node, mine)

    def unstable(self) -> Iterator[tuple[str, str]]:
        """Nodes whose runs differ far more than those of their sisters, and the sentence."""
        spreads = {
            node: rules.spread([r.value for r in mine])
            for node, mine in self.runs.items()
            if len(mine) >= rules.UNSTABLE_RUNS
        }
        usual = median(spreads.values()) if spreads else 0.0
        for node, spread in spreads.items():
            if rules.is_unstable([r.value for r in self.runs[node]], usual):
                yield (
                    node,
                    (
                        f"{self.key.name} varies by {spread:.1%} over {len(self.runs[node])} "
                        f"runs, most nodes by {usual:.1%}"
                    ),
                )

    @cached_property
    def fleets(self) -> dict[str, Middle]:
        """The fleet that each session's values stand beside.

        A session that measured less than half of the nodes, such as the retest of slow ones, is
        compared with the last one that measured more; without one, with each node's newest value.
        """
        by_session: dict[str, dict[str, list[float]]] = {}
        for node, mine in self.runs.items():
            for run in mine:
                by_session.setdefault(run.session, {}).setdefault(node, []).append(run.value)
        order = {r.session: (r.place, r.time) for mine in self.runs.values() for r in mine}
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
        last = whole or rules.middle([mine[-1].value for mine in self.runs.values()])
        first = next(iter(found.values()), last)
        return found | dict.fromkeys(few, first)

    @cached_property
    def newest(self) -> Middle:
        """The fleet of the newest session."""
        return self.fleets[max(mine[-1] for mine in self.runs.values()).session]

    @cached_property
    def changes(self) -> dict[str, Paired]:
        """Each node beside its own past, where it has enough of it."""
        spreads = [
            rules.MAD_TO_SIGMA * rules.spread([r.value for r in mine])
            for mine in self.past.values()
            if len(mine) >= rules.MIN_HISTORY
        ]
        usual = median(spreads) if spreads else 0.0
        found = {}
        for node, mine in self.runs.items():
            before = [r.value for r in self.past.get(node, [])]
            change = rules.paired(before, [r.value for r in mine], self.better, usual)
            if change is not None:
                found[node] = change
        return found

    @cached_property
    def shift(self) -> float:
        """How the whole fleet moved against its past; no node is accused of that."""
        known = self.changes.values()
        return median(c.change for c in known) if 2 * len(known) > len(self.runs) else 0.0

    def warnings(self) -> Iterator[str]:
        """What the fleet as a whole did, which no ranking shows."""
        known = self.changes.values()
        if known and self.shift:
            error = rules.middle([c.change for c in known]).sd / len(known) ** 0.5
            if abs(self.shift) >= max(rules.MIN_DEFICIT, rules.FALL_SD * error):
                word = "fell" if self.shift < 0 else "gained"
                yield (
                    f"{self.key.name}: {self.key.role} as a whole {word} {abs(self.shift):.1%} "
                    f"against its history; no node is accused of that"
                )
        if self.newest.count >= rules.MIN_FLEET:
            above = [
                r
                for mine in self.runs.values()
                for r in mine[-1:]
                if _far_above(rules.standing(r.value, self.fleets[r.session], self.better))
            ]
            if len(above) > rules.MANY * len(self.runs):
                share = len(above) / len(self.runs)
                yield (
                    f"{self.key.name}: {share:.0%} of {self.key.role} is far better than the "
                    "median, so the median itself may be bad"
                )

    def slow_group(self, nodes: list[str]) -> float | None:
        """How far a rack as a whole is below the fleet, if it is."""
        inside = [self.runs[n][-1].value for n in nodes if n in self.runs]
        if 2 * len(inside) > len(self.runs):
            return None
        return rules.group_is_slow(inside, self.newest, self.better)

    def _finding(self, node: str, mine: list[JobValue]) -> Finding:
        places = [rules.standing(r.value, self.fleets[r.session], self.better) for r in mine]
        slow = [rules.is_slow(*place) for place in places]
        z, deficit = places[-1]
        change = self.changes.get(node)
        fell = change is not None and rules.fell(change, self.shift)
        proven = change is not None and rules.fell_alone(change, self.shift)
        report = MetricReport(
            mine[-1].value,
            mine[-1].unit,
            self.fleets[mine[-1].session].median,
            z,
            deficit,
            change.change if change else None,
            len(mine),
            sum(slow),
        )
        rule = rules.retest_rule(slow, deficit, fell)
        beside = self._beside_fleet(report, rule, slow) if any(slow) else ""
        past = ""
        if report.change is not None and (fell or proven):
            past = f"{self.key.name} fell {-report.change:.1%} against its own history"
            past += ", seen once, retest" if proven and len(mine) == 1 and not beside else ""
        told = "; ".join(part for part in (beside, past) if part)
        suspect = slow[-1] or fell or proven
        if rule in (Slow.ONCE, Slow.CONFIRMED) or proven:
            return Finding(report, State.SLOW, told, suspect)
        doubt = f"{told}: retest" if rule is Slow.UNCONFIRMED or fell else ""
        return Finding(report, State.OK, doubt, suspect)

    def _beside_fleet(self, report: MetricReport, rule: Slow, slow: list[bool]) -> str:
        z = "" if report.z is None else f", z {report.z:.1f}"
        last = slow[-rules.RETESTS :]
        seen = "seen once, retest" if rule is Slow.ONCE else f"in {sum(last)} of {len(last)} runs"
        side = "below" if self.better == "higher" else "above"
        if report.deficit < 0:
            return f"{self.key.name} was slow {seen}, not in the newest"
        return (
            f"{self.key.name} {report.value:.6g} {report.unit} is {report.deficit:.1%} {side} "
            f"the fleet's median {report.median:.6g}{z}, {seen}"
        )


def _far_above(place: tuple[float | None, float]) -> bool:
    z, deficit = place
    return z is not None and z > -rules.Z_LIMIT and deficit <= -rules.MIN_DEFICIT
