"""The points of a sweep's check that runs without a sweep file: those on the whole partition."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ClusterShell.NodeSet import NodeSet

from siteproof.checks.job import LOCAL
from siteproof.errors import UserError
from siteproof.record.point import Point
from siteproof.sites.system import Partition
from siteproof.slurm import client
from siteproof.slurm.records import unusable


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
