"""What could have been found: the smallest change in each series, by its own scatter and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.analysis.steps import most_chance, smallest_change
from siteproof.trend.finds import FLEET, QUESTIONS, SHORTEST, Region, typical_of

LASTS = (3, 10)  # runs, at the end of the history; and half of it
LASTING = "lasting"


@dataclass(frozen=True)
class Sensitivity:
    """One series of a role. scatter: coefficient of variation of a typical node from run to run.

    runs: of a typical node. smallest: by how long a change has lasted, in runs or LASTING (half of
    the runs), the share of the level from which on it is found with probability .9.
    """

    metric: str
    series_name: str
    role: str
    nodes: NodeSet
    runs: int
    scatter: float
    smallest: Mapping[str, float]


def sensitivities(stretches: Sequence[Region]) -> list[Sensitivity]:
    """Of each series that has runs enough, the least sensitive first."""
    groups: dict[int, list[Region]] = {}
    for line in stretches:
        if line.node != FLEET and line.newest and line.values.size >= SHORTEST:
            groups.setdefault(id(line.group), []).append(line)
    searched = sum(line.values.size >= SHORTEST for line in stretches)
    chance = most_chance(QUESTIONS * searched) / QUESTIONS
    found = [_of_group(lines, chance) for lines in groups.values()]
    return sorted(found, key=lambda one: (-one.smallest[LASTING], one.series_name, one.role))


def _of_group(lines: Sequence[Region], chance: float) -> Sensitivity:
    group = lines[0].group
    typical = typical_of([line.values for line in lines], least=1)
    runs = int(median(line.values.size for line in lines))
    places = {str(last): last for last in LASTS} | {LASTING: runs // 2}
    return Sensitivity(
        group.key.metric,
        group.key.name,
        group.key.role,
        nodesets.of(group.nodes[line.node] for line in lines),
        runs,
        typical.noise,
        {
            name: smallest_change(typical.noise, runs - last, last, typical.factor, chance)
            for name, last in places.items()
        },
    )
