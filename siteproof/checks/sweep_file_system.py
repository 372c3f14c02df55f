"""FileSystemSweep: a sweep over a file system of the site, as a test for each of them."""

from __future__ import annotations

from siteproof.answers import required
from siteproof.checks import file_system, session
from siteproof.checks.file_system import OnFileSystem
from siteproof.checks.sweep import SweepCheck
from siteproof.record.point import Point


class FileSystemSweep(OnFileSystem, SweepCheck, special=True):
    """One tool over many points on a file system.

    Its script sources "$1/file_system.sh" and sets NEEDED (bytes) before `begin_test`; the folder
    is then there for all nodes of the point, if the file system is shared. Where each node has one
    of its own at the same path, points on several nodes are those that need no `shared_files`.
    """

    def standard_tasks(self) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """Points of a run without a sweep file: all usable nodes of each partition, a task each;
        and the points that criteria require."""
        site = session.current().site
        counts = self.whole_counts()
        whole = [{"tasks": str(count)} for count in sorted(counts - {0})]
        points = required.points(site, self.planned_job()) if self.fs else []
        named = {int(values["tasks"]) for values in points if "tasks" in values}
        self.whole, self.named = counts if self.fs else (), named
        there = [values for values in points if "tasks" in values]
        others = [values for values in points if "tasks" not in values]
        return whole, [*there, *({**tasks, **values} for tasks in whole for values in others)]

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
