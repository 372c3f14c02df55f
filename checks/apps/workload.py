"""The site's workload on a file system: applications alone, then all at the same time."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import reframe as rfm
from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import run_before

from checks.apps.gromacs import Gromacs
from checks.apps.lammps import Lammps
from checks.apps.minimap2 import Minimap2
from checks.apps.nwchem import Nwchem
from checks.apps.openfoam import OpenFoam
from siteproof.checks import ApplicationCheck, FileSystemSweep, session
from siteproof.checks.job import ON_NODE
from siteproof.parsers import counters, own_program
from siteproof.record.manifest import OfItsKind, Point
from siteproof.sites import job_keys
from siteproof.sites.system import Application

PROGRAMS: Mapping[str, type[ApplicationCheck]] = {
    "lammps": Lammps,
    "gromacs": Gromacs,
    "nwchem": Nwchem,
    "openfoam": OpenFoam,
    "minimap2": Minimap2,
}
SHARED = ("application.sh", "counters.sh", "member.sh")
OWN = "own."  # what the name of a centre's own program begins with, before that of its application
ON_EACH = '. "$1/application.sh"\nCORES=$cores'
OVER_ALL = '. "$1/launch.sh"\nCORES=$(nproc)'  # one start, whose tasks are over its nodes
SCRIPT = """{start}
export CORES
(
{command}
)
code=$?
echo "end {end}"
exit $code
"""


def parsers_of_all() -> dict[str, ModuleType]:
    """Of every program, and of the counters."""
    found: dict[str, ModuleType] = {}
    for check in PROGRAMS.values():
        found |= check.parsers
    workload = session.current().site.system.workload
    each = workload.applications if workload else {}
    own = {f"{OWN}{name}": own_program for name, one in each.items() if one.command}
    return {**found, **own, "counters": counters}


@rfm.simple_test
class Workload(FileSystemSweep):
    """Each node of an application runs its program by itself, on all of its cores, or all one.

    The programs work in a folder on the file system, and a wrong answer of one of them is a wrong
    answer of all.
    """

    descr = "Applications of the site's workload at the same time"
    tags = {"apps"}
    script = "workload.sh"
    parsers = parsers_of_all()
    derive = "apps.workload"
    steering = job_keys.OF_LIBRARIES
    clean = True
    metrics = ("nodes", "slowdown", "peak", "sustained", "network_peak", "network_sustained")
    headline = ("peak", "sustained")
    seconds_of_point = {"quick": 900, "maintenance": 3600, "acceptance": 4 * 3600}

    def standard_points(self) -> list[Mapping[str, str]]:
        """One: all applications on their nodes."""
        workload = session.current().site.system.workload
        if workload is None:
            return []
        return [
            {
                "tasks": str(workload.nodes),
                "applications": str(len(workload.applications)),
                "nodes": str(workload.nodes),
                "mix": workload.mix,
            }
        ]

    def shared_files(self, point: Point) -> bool:
        """All nodes work in one folder."""
        return True

    def expected_nodes(self) -> NodeSet:
        """As every sweep's, where the site has a workload for this file system."""
        workload = self.site.system.workload
        if workload is None:
            self.skip("the site names no workload")
        if self.fs not in workload.file_systems:
            self.skip(f"the site's workload does not use {self.fs}")
        return super().expected_nodes()

    def plan_of_its_kind(self) -> OfItsKind:
        """With the condition of programs that stand in for those of a contract."""
        fields = super().plan_of_its_kind()
        workload = self.site.system.workload
        emulated = {"emulated": workload.emulated} if workload and workload.emulated else {}
        return {**fields, "conditions": {**fields["conditions"], **emulated}}

    @run_before("run")
    def place_programs(self) -> None:
        """The scripts of the applications, and of the counters."""
        stage = Path(self.stagedir)
        for script in SHARED:
            shutil.copy(ON_NODE / script, stage / script)
        for name, check in PROGRAMS.items():
            shutil.copy(Path(self.prefix) / check.script, stage / f"{name}.sh")
        for name, application in self.applications().items():
            if application.command:
                start = OVER_ALL if application.tasks else ON_EACH
                script = SCRIPT.format(
                    start=start, command=application.command, end=own_program.END
                )
                (stage / f"{OWN}{name}.sh").write_text(script)

    def applications(self) -> Mapping[str, Application]:
        """Those of the site, by name."""
        workload = self.site.system.workload
        return workload.applications if workload else {}

    def settings(self) -> dict[str, str]:
        """A line an application: its name, program, nodes, and the size of its problem."""
        lines = []
        for name, application in self.applications().items():
            program = application.program
            sizes = PROGRAMS[program].problems[self.mode] if program else {}
            variables = [f"{key}={value}" for key, value in sizes.items()]
            if application.tasks:
                each = application.tasks // application.nodes
                variables = [f"TASKS={application.tasks}", f"TASKS_PER_NODE={each}"]
            words = [name, program or f"{OWN}{name}", str(application.nodes), *variables]
            lines.append(" ".join(words))
        return {**super().settings(), **self.hardware_variables(), "WORKLOAD": "\n".join(lines)}

    def facts(self) -> dict[str, object]:
        """Program and nodes of each application, and the known answers of the programs."""
        named = {key: next(iter(check.parsers)) for key, check in PROGRAMS.items()}
        each = self.applications()
        own = {
            f"{OWN}{name}": {"answer": one.answer, "prints": one.prints}
            for name, one in each.items()
            if one.command
        }
        known = {named[key]: check.answer(self.mode) for key, check in PROGRAMS.items()}
        return {
            "workload": {
                name: [named.get(one.program, f"{OWN}{name}"), one.nodes]
                for name, one in each.items()
            },
            "programs": {**known, **own},
        }
