"""FileSystemCheck: what every node measures on a file system of the site.

A check of its kind exists once for each file system (ReFrame parameter `fs`). On a shared one
`at_once` nodes measure at the same time, and each goes when the one `at_once` places before it has
been (file_system.sh); the value says how many. On a file system of its own each node measures at
once with all others.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_after, run_before, variable

from siteproof.checks import session
from siteproof.checks.job import MARGIN
from siteproof.checks.per_node import PerNodeCheck
from siteproof.checks.slurm import CHUNK
from siteproof.manifest import Manifest

MIB = 2**20
SPARE = 1.1  # of what is written: directories and journals take some, too
LAST = 5  # seconds after the last turn
BY_TURNS = "1s"  # a time limit that nobody has set: it follows from the number of turns


def names() -> list[str]:
    """The site's file systems; one without a name stands for none, and SKIPs."""
    return list(session.current().site.system.file_systems) or [""]


class FileSystemCheck(PerNodeCheck, special=True):
    """One quantity of a file system, measured by every node that may use it.

    A check says, beside what PerNodeCheck asks for, by mode: `mebibytes` of its file or files and
    `seconds_of_turn`; how many `turns` a node has; `times` that it writes all of it.
    """

    fs = parameter(names())
    size = variable(int, value=0)  # MiB of a node's files; 0: by the mode
    time_limit = BY_TURNS

    mebibytes: dict[str, int] = {}
    seconds_of_turn: dict[str, int] = {}
    turns = 1
    again = None  # the nodes of a second job
    all_stay = False  # whether the files of all nodes are there at the same time

    def written(self) -> float:
        """How many times a node writes all of its files."""
        return 1

    @run_after("init")
    def choose_file_system(self) -> None:
        """Partitions whose nodes may use it; time and gigabytes by what will be written."""
        site = session.current().site
        if not self.fs:
            self.skip("the site names no file_systems")
            return
        self.there = site.system.file_systems[self.fs]
        partitions = {f"{site.system.system}:{name}": p
                      for name, p in site.system.partitions.items()}
        self.valid_systems = [
            name for name in self.valid_systems if self.there.used_by(partitions[name].role)
        ]
        if not self.valid_systems:
            self.skip(f"no partition may use {self.fs}")
        self.size = self.size or self.mebibytes[self.mode]
        self.gigabytes = round(self.size * MIB * self.written() / 1e9, 2)
        if self.seconds() == 1:
            most = max((len(site.expected(p.role)) for p in partitions.values()), default=1)
            turns = self.turns * self.waves(min(most, CHUNK))
            self.time_limit = f"{turns * self.seconds_of_turn[self.mode] + 4 * MARGIN}s"

    def at_once(self, nodes: int) -> int:
        """How many of so many nodes measure on this file system at the same time."""
        return min(nodes, self.there.at_once) if self.there.shared else nodes

    def waves(self, nodes: int) -> int:
        """How many times a turn's length all of so many nodes need for one turn each."""
        return math.ceil(nodes / max(1, self.at_once(nodes)))

    def make_plan(self, mine: NodeSet, lost: dict[str, str]) -> Manifest:
        """The manifest says which file system, also of a node that could not measure."""
        plan = super().make_plan(mine, lost)
        known = {"file_system": self.fs}
        if self.there.storage_version:
            known["storage_version"] = self.there.storage_version
        plan.conditions = {**plan.conditions, **known}
        return plan

    def submit_again(self, nodes: NodeSet) -> None:
        """A second job, in which only these nodes take turns."""
        self.again = nodes
        super().submit_again(nodes)

    @run_before("run")
    def place_turns(self) -> None:
        """What measuring scripts share, and a folder in which nodes say that they have been."""
        stage = Path(self.stagedir)
        shutil.copy(Path(__file__).with_name("file_system.sh"), stage / "file_system.sh")
        (stage / "turns").mkdir(exist_ok=True)

    def settings(self) -> dict[str, str]:
        """Where, how much room it needs, and whose turn it is."""
        nodes = list(self.again or self.asked)
        shared, number = self.there.shared, self.at_once(len(nodes))
        there = (len(nodes) if self.all_stay else number) if shared else 1
        turns = max(1, self.turns * self.waves(len(nodes)))
        return {
            "FS_PATH": self.there.path, "FS_KIND": self.there.kind,
            "FS_SHARED": "yes" if shared else "no",
            "NEEDED": str(int(self.size * MIB * there * SPARE)),
            "TEST": f"{type(self).__name__}.{session.current().name}",
            "NODES": " ".join(nodes), "AT_ONCE": str(max(1, number)),
            "TURN": str(max(1, (self.measuring_seconds() - LAST) // turns)),
            "MEBIBYTES": str(self.size),
        }
