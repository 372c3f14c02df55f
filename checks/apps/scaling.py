"""A program over growing numbers of nodes: the whole machine, weak and strong scaling."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import reframe as rfm
from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_after, run_before

from checks.apps.hpcg import Hpcg
from checks.apps.lammps import Lammps
from checks.apps.workload import SCRIPT
from checks.cpu.hpl import MKL, NB, QUICK, Hpl
from siteproof.checks import ApplicationCheck, SweepCheck, session
from siteproof.collect.of_system import ENERGY
from siteproof.parsers import own_program
from siteproof.record.manifest import Manifest, OfItsKind
from siteproof.record.samples import Sample
from siteproof.sites import Site, job_keys
from siteproof.sites.key_types import parse_tolerance
from siteproof.sites.system import Scaled

SCRIPTS = {"hpl": "../cpu/hpl.sh", "hpcg": "hpcg.sh", "lammps": "lammps.sh"}
FEATURES = {"hpl": Hpl.features, "hpcg": Hpcg.features, "lammps": Lammps.features}
APPLICATIONS: Mapping[str, type[ApplicationCheck]] = {"hpcg": Hpcg, "lammps": Lammps}
HALF = "50 %"  # of the memory: what contracts require of HPL at least
OWN = "own"  # the program that is a command of the site's
START = "echo program=own >>facts\nmkdir work && cd work || exit"


def names() -> list[str]:
    """The applications that the site names; without one there is no test."""
    return list(session.current().site.system.scaling)


@rfm.simple_test
class Scaling(SweepCheck):
    """Each number of nodes is a point: one start of the program, with its tasks over all of them.

    An answer that is not the known one is a wrong answer, as in the check of the program alone.
    """

    descr = "A program over growing numbers of nodes"
    tags = {"apps"}
    script = "scaling.sh"
    shared_scripts = (*SweepCheck.shared_scripts, "application.sh")
    parsers = {**Hpl.parsers, **Hpcg.parsers, **Lammps.parsers, OWN: own_program}
    derive = "apps.scaling"
    steering = job_keys.OF_LIBRARIES
    clean = True
    metrics = ("time",)
    seconds_of_point = {"quick": 300, "maintenance": 3600, "acceptance": 6 * 3600}

    application = parameter(names())

    @property
    def features(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the program."""
        return FEATURES.get(self.scaled.program, ())

    @property
    def scaled(self) -> Scaled:
        """What the site states of the application."""
        return session.current().site.system.scaling[self.application]

    def default_environment(self, site: Site, partition: str) -> str:
        """Of a command of the site's each environment that it names, in a test of its own."""
        offered, wanted = site.system.partitions[partition].environments, self.scaled.environments
        named = [name for name in offered if name in wanted]
        here = getattr(self.current_environ, "name", "")
        if here in named:
            return here
        return named[0] if named else super().default_environment(site, partition)

    def standard_points(self) -> list[Mapping[str, str]]:
        """A point for each number of nodes that the site names."""
        self.named = {int(count) for count in self.scaled.nodes if count != "all"}
        if "all" in self.scaled.nodes:
            self.whole = self.whole_counts()
        each = self.scaled.tasks_per_node
        return [
            {"tasks": str(n * each), "tasks_per_node": str(each), "nodes": str(n)}
            for n in sorted({*self.named, *self.whole} - {0})
        ]

    @property
    def point_limit(self) -> int:
        """As the site has it, or by the mode."""
        limit = self.scaled.time_limit
        return int(limit.to("s")) if limit else super().point_limit

    def where_of(self) -> dict[str, str]:
        """Others are measured over the same nodes."""
        return {"application": self.application}

    def plan_of_its_kind(self) -> OfItsKind:
        """With the name of its curve."""
        fields = super().plan_of_its_kind()
        curve = {"sweep": f"scaling.{self.application}", "scaling": self.scaled.scaling}
        return {**fields, "conditions": {**self.where_of(), **curve}}

    def make_plan(self, nodes: NodeSet, lost: dict[str, str]) -> Manifest:
        """With the number of points, which no file has."""
        plan = super().make_plan(nodes, lost)
        plan.provenance = {**plan.provenance, "points": str(len(self.points))}
        return plan

    @run_after("init")
    def choose_environments(self) -> None:
        """All those that the site names for its command."""
        self.valid_prog_environs = self.scaled.environments or self.valid_prog_environs

    @run_before("run")
    def place_program(self) -> None:
        """The script that scaling.sh runs."""
        stage, name = Path(self.stagedir), self.scaled.program
        if name:
            shutil.copy(Path(self.prefix) / SCRIPTS[name], stage / f"{name}.sh")
        else:
            command = self.scaled.command
            script = SCRIPT.format(start=START, command=command, end=own_program.END)
            (stage / f"{OWN}.sh").write_text(script)

    def without_value(self) -> list[Sample]:
        """A point without an energy is no failure."""
        return [s for s in super().without_value() if s.metric != f"Scaling.{ENERGY}"]

    @property
    def smallest(self) -> str:
        """Of strong scaling the number of nodes whose problem all solve; of weak scaling empty."""
        least = min(point.nodes for point in self.points.values())
        return str(least) if self.scaled.scaling == "strong" else ""

    def settings(self) -> dict[str, str]:
        """The program, and the size of its problem."""
        name, problem = self.scaled.program, dict[str, str]()
        if name in APPLICATIONS:
            problem = dict(APPLICATIONS[name].problems[self.mode])
        elif name:
            problem = self.matrix()
        of_all = {"PROGRAM": name or OWN, "SMALLEST": self.smallest}
        return {**super().settings(), **self.hardware_variables(), **of_all, **problem}

    def matrix(self) -> dict[str, str]:
        """HPL's, of one node."""
        share, size = self.scaled.memory_share, {"N": str(QUICK)}
        if share or self.mode != "quick":
            size = {"SHARE": str(float(parse_tolerance(share or HALF)))}
        blas = {"BLAS": "mkl", "CLONE_MKL": str(MKL)} if self.on_mkl() else {}
        return {"NB": str(self.hardware.hpl_nb or NB), **size, **blas}

    def on_mkl(self) -> bool:
        """Whether HPL must run on MKL here."""
        return self.scaled.program == "hpl" and "mkl" in self.current_environ.features

    def facts(self) -> dict[str, object]:
        """The known answer of the program, or the lines of the site's that show it; energy, too."""
        name, known = self.scaled.program, dict[str, object]()
        if name in APPLICATIONS:
            known = APPLICATIONS[name].answer(self.mode)
        elif not name:
            known = self.scaled.model_dump(include={"answer", "prints", "result"})
        blas = {"blas": "mkl"} if self.on_mkl() else {}
        return {**self.hardware_facts(), **known, **blas, "smallest": self.smallest, ENERGY: {}}
