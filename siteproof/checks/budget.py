"""What the sweeps of a run cost at most: printed before anything is submitted, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
        out = f"; {count(self.left_out, 'point')} left out, {self.why}"
        text += out if self.left_out else ""
        capped = f"; {count(self.above_caps, 'point')} above the caps of -S, not measured"
        return text + (capped if self.above_caps else "")


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
        if hours > budget:
            loading.refuse(
                UserError(
                    f"{site.name}/system.yaml: budgets",
                    f"a run in mode {mode} may take {hours:.1f} node-hours, the budget is {budget}",
                    hint="Run a part of it (-n, -S nodes), or give a larger budget",
                )
            )


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
    of_sweeps = (case for case in testcases if hasattr(case.check, "sweep_file"))
    for name, cases in grouped((type(case.check).__name__, case) for case in of_sweeps).items():
        _report_cost(name, cases)


def _report_cost(name: str, cases: Sequence[Any]) -> None:
    check = cases[0].check
    for case in cases:
        if case.check.refused:
            loading.refuse(case.check.refused)
    cost = of(_case_cost(case) for case in cases)
    if not all(_sees_common_files(case.check) for case in cases):
        cost.why = UNSHARED
    budget = check.sweep_file.sweep.budget if check.sweep_file else None
    if budget is not None and cost.node_hours > budget:
        loading.refuse(
            UserError(
                f"{check.sweep_file.path.name}: budget",
                f"the sweep may take {cost.node_hours:.1f} node-hours, the budget is {budget}",
                hint="Use fewer points, repetitions or nodes (-S nodes), a shorter point_limit, "
                "or a larger budget",
            )
        )
    of_budget = f" (budget {budget})" if budget is not None else ""
    getlogger().info(f"{name}: {cost}{of_budget}")


def _sees_common_files(check: Any) -> bool:
    there = getattr(check, "there", None)
    return there is None or there.shared


def _case_cost(case: Any) -> tuple[float, ...]:
    """As `cost_on` of the check; the seconds follow a time limit that -S sets."""
    check = case.check
    nodes, seconds, *points = check.costs[case.partition.fullname]
    return nodes, seconds if check.by_points else check.seconds(), *points
