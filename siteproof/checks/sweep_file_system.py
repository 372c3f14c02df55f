"""FileSystemSweep: a sweep over a file system of the site, as a test for each of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ClusterShell.NodeSet import NodeSet

from siteproof.answers import required
from siteproof.checks import file_system, session
from siteproof.checks.file_system import OnFileSystem
from siteproof.checks.job import LOCAL
from siteproof.checks.sweep import SweepCheck
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


class FileSystemSweep(OnFileSystem, SweepCheck, special=True):
    """One tool over many points on a file system.

    Its script sources "$1/file_system.sh" and sets NEEDED (bytes) before `begin_test`; the folder
    is then there for all nodes of the point, if the file system is shared. Where each node has one
    of its own at the same path, points on several nodes are those that need no `shared_files`.
    """

    whole: Collection[int] = frozenset()  # how many nodes the partitions have

    def standard_tasks(self) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """Points of a run without a sweep file: all usable nodes of each partition, a task each;
        and the points that criteria require."""
        site = session.current().site
        counts = {usable(site.partition(name), self.chosen_on(name)) for name in self.roles}
        whole = [{"tasks": str(count)} for count in sorted(counts - {0})]
        points = required.points(site, self.planned_job()) if self.fs else []
        named = {int(values["tasks"]) for values in points if "tasks" in values}
        self.whole = counts - named
        there = [values for values in points if "tasks" in values]
        others = [values for values in points if "tasks" not in values]
        return whole, [*there, *({**tasks, **values} for tasks in whole for values in others)]

    def fitting(self, most: int) -> dict[int, Point]:
        """Of the points on a whole partition only those of the partition in question."""
        return narrowed(super().fitting(most), self.whole, most)

    def missing_on(self, partition: str, environment: str = "") -> dict[int, Point]:
        """As every sweep's; the points of another partition are not missing here."""
        found = super().missing_on(partition, environment)
        if not self.fs:  # the site names none, which is why none of the points fits
            return found
        return narrowed(found, self.whole, self.most_nodes(partition))

    def shared_files(self, point: Point) -> bool:
        """Whether the nodes of a point must see each other's files."""
        return True

    def may_measure(self, point: Point, most: int) -> bool:
        """Where nodes do not see each other's files, only points that do without."""
        seen = point.nodes == 1 or bool(self.fs and self.there.shared)
        return super().may_measure(point, most) and (seen or not self.shared_files(point))

    def most_nodes(self, partition: str) -> int:
        """None where there is no file system."""
        return super().most_nodes(partition) if self.fs else 0

    def settings(self) -> dict[str, str]:
        """Where, and under which name its folders are made; one point at a time has no turns."""
        return {
            **super().settings(),
            **file_system.variables(self.there),
            "NEEDED": "0",
            "TOGETHER": "1",
            "AT_ONCE": "1",
            "TURN": str(self.point_limit),
            "TEST": f"{self.name_of_check()}.{session.current().name}",
        }
