"""FileSystemSweep: a sweep over a file system of the site, as a test for each of them."""

from __future__ import annotations

import shutil
from pathlib import Path

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_before

from siteproof.checks import session
from siteproof.checks.file_system import names
from siteproof.checks.sweep import SweepCheck


class FileSystemSweep(SweepCheck, special=True):
    """One tool over many points on a file system.

    Its script sources "$1/file_system.sh" and sets NEEDED (bytes) before `begin_test`; the folder
    is then there for all nodes of the point, if the file system is shared.
    """

    fs = parameter(names())

    def places(self) -> list[str]:
        """Partitions whose nodes may use it; where none may, all SKIP."""
        site = session.current().site
        self.there = site.system.file_systems.get(self.fs)
        found = super().places()
        return [name for name in found if self.there
                and self.there.used_by(site.partition(name).role)] or found

    def where_of(self) -> dict[str, str]:
        """The same point may have been measured on another file system."""
        return {"file_system": self.fs}

    def most_nodes(self, partition: str) -> int:
        """One where other nodes do not see the files."""
        most = super().most_nodes(partition)
        if not self.there or not self.there.used_by(session.current().site.partition(
                partition).role):
            return 0
        return most if self.there.shared else min(most, 1)

    def expected_nodes(self) -> NodeSet:
        """As every sweep's, where there is a file system that they may use."""
        if not self.there:
            self.skip("the site names no file_systems")
        elif not self.there.used_by(self.where.role):
            self.skip(f"the site lets no node of role {self.where.role} use {self.fs}")
        return super().expected_nodes()

    def plan_of_its_kind(self) -> dict[str, object]:
        """The manifest says which file system."""
        fields = super().plan_of_its_kind()
        known = {"file_system": self.fs}
        if self.there.storage_version:
            known["storage_version"] = self.there.storage_version
        return {**fields, "conditions": {**fields["conditions"], **known}}

    @run_before("run")
    def place_file_system(self) -> None:
        """What measuring scripts share."""
        stage = Path(self.stagedir)
        shutil.copy(Path(__file__).with_name("file_system.sh"), stage / "file_system.sh")
        (stage / "turns").mkdir(exist_ok=True)

    def settings(self) -> dict[str, str]:
        """Where, and under which name its folders are made; one point at a time has no turns."""
        return {
            **super().settings(), "FS_PATH": self.there.path, "FS_KIND": self.there.kind,
            "FS_SHARED": "yes" if self.there.shared else "no", "NEEDED": "0", "TOGETHER": "1",
            "AT_ONCE": "1", "TURN": str(self.point_limit),
            "TEST": f"{self.name_of_check()}.{session.current().name}",
        }
