"""What the sweeps of a run cost at most: printed before anything is submitted, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from reframe.core.logging import getlogger

from siteproof.checks import loading
from siteproof.checks.selection import TOO_FEW, UNSHARED
from siteproof.errors import UserError
from siteproof.record.grouped import grouped
from siteproof.sites import Site
from siteproof.units import count


@dataclass
class Cost:
    """All jobs of one sweep. nodes: of the widest one; why: of points that are left out."""

    points: int = 0
    jobs: int = 0
    nodes: int = 0
    node_hours: float = 0.0
    left_out: int = 0
    above_caps: int = 0
    why: str = TOO_FEW

    def __str__(self) -> str:
        text = (
            f"{count(self.points, 'point')} in {count(self.jobs, 'job')}, on "
            f"{count(self.nodes, 'node')} at most, {self.node_hours:.1f} node-hours at most"
        )
        if self.left_out:
            text += f"; {count(self.left_out, 'point')} left out, {self.why}"
        if self.above_caps:
            text += f"; {count(self.above_caps, 'point')} above the caps of -S, not measured"
        return text


def of(costs: Iterable[Sequence[float]]) -> Cost:
    """The cost of jobs. costs: each one's nodes, seconds, points, points left out,
    points above the caps, and bytes written.
    """
    total = Cost()
    for nodes, seconds, points, left_out, above_caps, _ in costs:
        total.left_out += int(left_out)
        total.above_caps += int(above_caps)
        if points:
            total.jobs += 1
            total.points += int(points)
            total.nodes = max(total.nodes, int(nodes))
            total.node_hours += nodes * seconds / 3600
    return total


def refuse_above(site: Site, testcases: Sequence[Any]) -> None:
    """End a run that may take more node-hours than the site's budget of its mode."""
    for mode, budget in site.system.budgets.items():
        of_mode = (case for case in testcases if getattr(case.check, "mode", "") == mode)
        hours = sum(_node_hours(case) for case in of_mode)
        where = f"{site.name}/system.yaml: budgets"
        _refuse_beyond(budget, where, f"a run in mode {mode}", hours)


def _refuse_beyond(budget: float | Decimal, where: str, what: str, hours: float) -> None:
    if hours > budget:
        what = f"{what} may take {hours:.1f} node-hours, the budget is {budget}"
        remedy = "Run a part of it (-n, -S nodes), or give a larger budget"
        loading.refuse(UserError(where, what, hint=remedy))


def _node_hours(case: Any) -> float:
    """What a test takes at most; none of what a plain test, or one on this host, takes is known."""
    if case.check.local:
        return 0.0
    if hasattr(case.check, "costs"):
        nodes, seconds, *_ = _case_cost(case)
        return nodes * seconds / 3600
    if not hasattr(case.check, "nodes_on") or case.partition.name in case.check.unoffered:
        return 0.0
    return float(case.check.nodes_on(case.partition.name) * case.check.seconds() / 3600)


def report_costs(testcases: Sequence[Any]) -> None:
    """Print what the sweeps of a run cost; one beyond its budget ends the run."""
    of_sweeps = [case for case in testcases if hasattr(case.check, "sweep_file")]
    for refused in filter(None, (case.check.refused for case in of_sweeps)):
        loading.refuse(refused)
    for name, cases in grouped((type(case.check).__name__, case) for case in of_sweeps).items():
        cost = of(_case_cost(case) for case in cases)
        places = filter(None, (getattr(case.check, "there", None) for case in cases))
        if not all(there.shared for there in places):
            cost.why = UNSHARED
        file, of_budget = cases[0].check.sweep_file, ""
        if file and file.sweep.budget is not None:
            budget, of_budget = file.sweep.budget, f" (budget {file.sweep.budget})"
            _refuse_beyond(budget, f"{file.path.name}: budget", "the sweep", cost.node_hours)
        getlogger().info(f"{name}: {cost}{of_budget}")


def _case_cost(case: Any) -> tuple[float, ...]:
    """As `cost_on` of the check; the seconds follow a time limit that -S sets."""
    check = case.check
    nodes, seconds, *points = check.costs[case.partition.fullname]
    return nodes, seconds if check.by_points else check.seconds(), *points
