"""FileSystemCheck: what every node measures on a file system of the site.

A check of its kind exists once for each file system (ReFrame parameter `fs`). On a shared one
`at_once` nodes measure at the same time, and each goes when the one `at_once` places before it has
been (file_system.sh); the condition at_once has their number. On file systems of their own all
nodes measure at the same time.

FileSystemSweep: a sweep over a file system of the site, as a test for each of them.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import reframe as rfm
from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_after, run_before, variable

from siteproof import files
from siteproof.answers import expected
from siteproof.checks import loading, session
from siteproof.checks.job import DERIVED_LIMIT, MARGIN, ON_NODE
from siteproof.checks.per_node import PerNodeCheck, jobs_of
from siteproof.checks.selection import CHUNK
from siteproof.checks.sweep import SweepCheck
from siteproof.record.manifest import OfItsKind, Point
from siteproof.sites import FileSystem
from siteproof.sites.system import Partition, Striping

SPARE = 1.1  # of what is written: directories and journals take some, too
LAST = 5  # seconds after the last turn


def names() -> list[str]:
    """The site's file systems; one without a name stands for none, and SKIPs."""
    return list(session.current().site.system.file_systems) or [""]


def conditions(name: str, there: FileSystem) -> dict[str, str]:
    """The conditions of samples on the file system."""
    version = {"storage_version": there.storage_version} if there.storage_version else {}
    emulated = {"emulated": there.emulated} if there.emulated else {}
    return {"file_system": name, **version, **emulated}


def variables(there: FileSystem) -> dict[str, str]:
    """What scripts know of it: where it is, and what Lustre must be like before I/O."""
    striping = there.striping or Striping()
    return {
        "FS_PATH": there.path,
        "FS_KIND": there.kind,
        "FS_SHARED": "yes" if there.shared else "no",
        "MAX_FULL": str(there.most_full),
        "STRIPE_COUNT": str(striping.count or ""),
        "STRIPE_SIZE": str(int(striping.size.to("B"))) if striping.size else "",
        "STRIPE_POOL": striping.pool,
    }


class OnFileSystem(rfm.RegressionTestPlugin):
    """Mixed into the tests of file systems, each of which exists once for each of them."""

    where: Partition
    fs = parameter(names())
    unfit = variable(str, value="")  # why there is nothing to measure on it, for the plan

    def places(self) -> list[str]:
        """Partitions whose nodes may use it; where none may, all SKIP."""
        if self.fs:
            self.there = session.current().site.system.file_systems[self.fs]
        found: list[str] = super().places()  # type: ignore[misc]
        return found

    def roles_on(self, partition: str) -> list[str]:
        """Those whose nodes may use it."""
        roles: list[str] = super().roles_on(partition)  # type: ignore[misc]
        return [role for role in roles if self.there.used_by(role)] if self.fs else roles

    def expected_nodes(self) -> NodeSet:
        """As every check's, where there is a file system that they may use."""
        if not self.fs:
            self.skip("the site names no file_systems")
        elif not self.roles_on(self.current_partition.name):
            roles = " or ".join(self.where.roles)
            self.skip(f"the site lets no node of role {roles} use {self.fs}")
        elif self.unfit:
            self.skip(self.unfit)
        found: NodeSet = super().expected_nodes()  # type: ignore[misc]
        return found

    def where_of(self) -> dict[str, str]:
        """The same may have been measured on another file system."""
        return {"file_system": self.fs}

    def plan_of_its_kind(self) -> OfItsKind:
        """The manifest names the file system, also for a node that could not measure."""
        fields: OfItsKind = super().plan_of_its_kind()  # type: ignore[misc]
        own = fields.get("conditions", {})
        return {**fields, "conditions": {**own, **conditions(self.fs, self.there)}}

    @run_before("run")
    def place_file_system(self) -> None:
        """What measuring scripts share, and a folder in which nodes mark the end of their turn."""
        stage = Path(self.stagedir)
        for script in ("file_system.sh", "lustre_state.sh"):
            shutil.copy(ON_NODE / script, stage / script)
        (stage / "turns").mkdir(exist_ok=True)


class FileSystemCheck(OnFileSystem, PerNodeCheck, special=True):
    """One quantity of a file system, measured by every node that may use it.

    A check defines, in addition to what PerNodeCheck needs, by mode: `mebibytes` of its file or
    files and `seconds_of_turn`; how many `turns` a node has; how often all is `written`; whether it
    measures one kind of file system only, or shared ones only.
    """

    size = variable(int, value=0)  # MiB of a node's files; 0: by the mode
    time_limit = DERIVED_LIMIT

    mebibytes: dict[str, int] = {}
    seconds_of_turn: dict[str, int] = {}
    turns = 1
    only_kind = ""
    only_shared = False
    all_stay = False  # whether the files of all nodes are there at the same time

    def written(self) -> float:
        """How many times a node writes all of its files."""
        return 1

    @run_after("init")
    def choose_file_system(self) -> None:
        """Time and gigabytes by what will be written."""
        loading.refuse_number(self, "size", 0)
        site = session.current().site
        if not self.fs and self.chunk:
            self.skip("the site names no file_systems")
        elif not self.fs:
            self.time_limit = "1m"  # of a job that is never submitted
        default = self.mebibytes[self.mode] * files.MIB
        self.size = self.size or int(self.of_criteria("size", default)) // files.MIB
        self.gigabytes = round(self.size * files.MIB * self.written() / 1e9, 2) if self.fs else 0.0
        if self.derives_limit():
            waves = [
                self.waves(jobs_of(roles), min(site.size(role), CHUNK))
                for roles in self.roles.values()
                for role in roles
            ]
            longest = max(waves, default=1)
            self.time_limit = f"{self.turns * longest * self.turn() + 4 * MARGIN}s"

    @run_after("init")
    def refuse_other_kinds(self) -> None:
        """A file system on which there is nothing to measure."""
        if not self.fs:
            return
        if self.only_kind not in ("", self.there.kind):
            self.unfit = f"{self.fs} is of kind {self.there.kind}, not {self.only_kind}"
        elif self.only_shared and not self.there.shared:
            self.unfit = f"{self.fs} is not shared: each node has files of its own"

    def turn(self) -> int:
        """Seconds of a turn, by the mode; as many times more as its files are larger."""
        default = self.mebibytes[self.mode]
        larger = max(1, math.ceil(self.size / default)) if default else 1
        return self.seconds_of_turn[self.mode] * larger

    def at_once(self, jobs: int, nodes: int) -> int:
        """How many of a job's nodes measure on this file system at the same time.

        jobs: of the partition, as all of them may run at the same time.
        """
        if not (self.fs and self.there.shared):
            return nodes
        most = min(self.there.at_once, int(self.of_criteria("at_once", self.there.at_once)))
        return min(nodes, max(1, most // jobs))

    def waves(self, jobs: int, nodes: int) -> int:
        """How many times a turn's length all of a job's nodes need for one turn each."""
        return max(1, math.ceil(nodes / max(1, self.at_once(jobs, nodes))))

    def known_before(self) -> dict[str, str]:
        """With the size in bytes."""
        return {**super().known_before(), "size": str(self.size * files.MIB)}

    def settings(self) -> dict[str, str]:
        """Where, how much room it needs, and whose turn it is."""
        nodes, roles = list(self.nodes_of_job), self.roles_on(self.current_partition.name)
        jobs, most = jobs_of(roles), len(self.site.having(roles))
        number = self.at_once(jobs, len(nodes))
        together = min(most, number * jobs) if self.there.shared else 1
        stay = max(len(nodes), together) if self.there.shared and self.all_stay else together
        turns = self.turns * self.waves(jobs, len(nodes))
        return {
            **variables(self.there),
            "NEEDED": str(int(self.size * files.MIB * stay * SPARE)),
            "TOGETHER": str(together),
            "TEST": f"{type(self).__name__}.{session.current().name}",
            "NODES": " ".join(nodes),
            "AT_ONCE": str(max(1, number)),
            "TURN": str(max(1, (self.measuring_seconds() - LAST) // turns)),
            "MEBIBYTES": str(self.size),
        }


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
        points = expected.points(site, self.planned_job()) if self.fs else []
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
            **variables(self.there),
            "NEEDED": "0",
            "TOGETHER": "1",
            "AT_ONCE": "1",
            "TURN": str(self.point_limit),
            "TEST": f"{self.name_of_check()}.{session.current().name}",
        }
