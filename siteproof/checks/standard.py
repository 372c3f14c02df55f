"""The points of a sweep's check that runs without a sweep file.

They are the whole partition, and the numbers of tasks that criteria name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ClusterShell.NodeSet import NodeSet

from siteproof.answers import inputs
from siteproof.checks.job import LOCAL
from siteproof.errors import UserError
from siteproof.record.point import Point
from siteproof.sites import Site
from siteproof.sites.system import Partition
from siteproof.slurm import client
from siteproof.slurm.records import unusable
from siteproof.sweeps.keys import plain
from siteproof.sweeps.tools import TOOLS

Values = Mapping[str, str]


def usable(where: Partition, chosen: NodeSet) -> int:
    """How many of the nodes that were chosen of a partition can take a job now.

    If Slurm does not answer, all of them: the run itself will report it.
    """
    if where.scheduler == LOCAL:
        return 1
    try:
        return len(chosen) - len(unusable(chosen, client.first_look()))
    except UserError:
        return len(chosen)


def of_criteria(site: Site, tool: str, file_system: str) -> list[dict[str, str]]:
    """The points on a file system that criteria on the tool's metrics need, values by axis.

    Criteria on derived metrics need those of their inputs.

    Only criteria that name a number of tasks; of several allowed values the first.
    """
    known = TOOLS[tool].all_axes
    found: list[dict[str, str]] = []
    for criterion in inputs.of_check(site, TOOLS[tool].check):
        conditions = criterion.conditions
        where = conditions.get("file_system")
        if "tasks" not in conditions or (where and not where.met_by(file_system)):
            continue
        values = {
            name: (rule.one_of or [rule.exact or ""])[0]
            for name, rule in conditions.items()
            if name in known and (rule.one_of or rule.exact)
        }
        if values not in found:
            found.append(
                {name: plain(name, str(text), known[name]) for name, text in values.items()}
            )
    return found


def narrowed(points: Mapping[int, Point], whole: Collection[int], most: int) -> dict[int, Point]:
    """Without the points that are the whole of another, smaller partition.

    whole: how many nodes each partition has. most: those of the partition in question.
    """
    largest = max((count for count in whole if count <= most), default=0)
    return {
        number: point
        for number, point in points.items()
        if point.tasks == largest or point.tasks not in whole
    }
