"""JobCheck: one job over named nodes, of which every one is accounted for.

A value that cannot be parsed, a missing reference, a job that hit its time limit, a node that did
not take part: each is an error here, and passes silently in plain ReFrame 4.10.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import reframe as rfm
from ClusterShell.NodeSet import NodeSet
from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import JobError, SanityError
from reframe.core.logging import getlogger
from reframe.core.runtime import runtime
from reframe.utility.sanity import make_performance_function

from siteproof import files, installed, nodesets
from siteproof.answers import expected, implausible
from siteproof.checks import adapter, data_folder, loading, missing, progress, selection, session
from siteproof.checks.progress import Lacking
from siteproof.collect import raw, stages
from siteproof.errors import UserError
from siteproof.record.manifest import Manifest, OfItsKind
from siteproof.record.samples import Header, Sample
from siteproof.sites import Site, job_keys
from siteproof.sites.catalogue import MODES
from siteproof.slurm import client
from siteproof.slurm.records import Node, unusable
from siteproof.spack import registered

ON_NODE = Path(__file__).with_name("on_node")  # what runs on nodes: sh, and one program of mpi4py

MARGIN = 60  # seconds of the job's limit that are not the measurement's; a quarter of a short one
LOCAL = "local"
DERIVED_LIMIT = "1s"  # stands for a limit that the check derives from what it measures
# In this process only: ReFrame writes each attribute of a test into its stage directory.
SECRET = os.urandom(32)
Found = TypeVar("Found")


class JobCheck(rfm.RunOnlyRegressionTest, special=True):
    """What PerNodeCheck and PerPairCheck share.

    A check defines: `script` (next to the check, run on the node) or, where one program is all that
    runs, its `command`; `features` (an environment with one of them will do), `parsers` by the
    program's name, `metrics` that the parser must give, `headline` (those that ReFrame compares
    with a reference), `time_limit`. `by_mode` has its settings, each a variable of the name of its
    condition and with a rule in the catalogue: their values where neither -S nor a criterion sets
    them (`value_of`).
    """

    mode = variable(str, value="")
    nodes = variable(str, value="all")
    lacking = variable(dict, value={})  # by partition the nodes that `-S nodes=missing` means
    answered = variable(bool, value=False)  # whether it means nothing of a check of the system
    roles = variable(dict, value={})  # by partition the roles whose nodes it measures, for the plan
    gigabytes = variable(float, value=0.0)  # that a node writes to file systems, for the plan
    session = variable(list, value=[])  # of which an environment must offer one, for the plan
    unoffered = variable(list, value=[])  # partitions none of whose environments does, for the plan
    valid_systems = ["*"]
    executable = "sh"
    num_tasks_per_node = 1
    max_pending_time = "2h"
    require_reference = True
    exclusive_access = True

    runs_on_node = ""  # the script of this kind of check, of ON_NODE
    shared_scripts: tuple[str, ...] = ("account.sh",)  # what it sources
    script = ""
    command: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    by_mode: Mapping[str, Mapping[str, Any]] = {}
    parsers: dict[str, ModuleType] = {}
    derive = ""
    metrics: tuple[str, ...] = ()
    headline: tuple[str, ...] = ()
    steering = f"{job_keys.OF_ANY} {job_keys.OF_MPI}"  # variables that are recorded
    clean = False  # whether what steers them is unset first, unless the site wants it
    measures = ""  # the class that the catalogue names, where this is not it
    blocked = ""  # why the job could not start
    second: NodeSet | None = None  # the nodes of a second job

    # ---- what a kind of check must define

    def places(self) -> list[str]:
        """The partitions on which it runs; ends the run or the test where there are none."""
        raise NotImplementedError

    def expected_nodes(self) -> NodeSet:
        """The nodes that this job needs by the site; ends the test where there are none."""
        raise NotImplementedError

    def plan_of_its_kind(self) -> OfItsKind:
        """Fields of the manifest beyond those of every job."""
        return {}

    def write_work(self, missing: bool) -> None:
        """What the nodes' scripts read with `settings`. missing: only what is not measured."""

    def measured(self) -> set[str]:
        """The nodes of which nothing more is to come."""
        return stages.measured(Path(self.stagedir), set(self.usable))

    def parts_missing(self, failed: Sequence[Sample]) -> str:
        """One line: what was measured, and how the rest failed."""
        expected, nodes = len(stages.expected(self.plan)), len({s.node for s in failed})
        return f"{expected - nodes} of {expected} nodes measured. {progress.failures(failed)}"

    @classmethod
    def name_of_check(cls) -> str:
        """The check of its samples."""
        return cls.measures or cls.__name__

    # ---- what a check may override

    def roles_on(self, partition: str) -> list[str]:
        """The roles whose nodes it measures on a partition."""
        return session.current().measured_on(partition)

    def selected(self, partition: str, states: Mapping[str, Node] | None = None) -> NodeSet:
        """Those of the nodes that it measures on a partition that `-S nodes` selects.

        A set of nodes may have others of the partition, too. Raises UserError.
        """
        active = session.current()
        own = active.site.having(self.roles_on(partition))
        if selection.needs_states(self.nodes):
            return selection.select(self.nodes, own, states)
        whole = own | active.site.having(active.measured_on(partition))
        return selection.select(self.nodes, whole) & own

    def on_each_partition(self, find: Callable[[str], Found]) -> dict[str, Found]:
        """What is found on the partitions whose nodes `-S nodes` selects; none ends the run."""
        found: dict[str, Found] = {}
        errors = []
        for name in filter(self.roles_on, session.current().site.system.partitions):
            try:
                found[name] = find(name)
            except UserError as error:
                errors.append(error)
        if not found and errors:
            loading.refuse(errors[0])
        return found

    def nodes_on(self, partition: str) -> int:
        """How many nodes its job takes on a partition, at most."""
        return 1

    def settings(self) -> dict[str, str]:
        """Variables that the node's script reads; quoted when they are written."""
        return {}

    def facts(self) -> dict[str, object]:
        """What `derive` needs to know of the role's hardware."""
        return {}

    def where_of(self) -> dict[str, str]:
        """Conditions that separate this job's samples from those of others: file system, link."""
        return {}

    def known_before(self) -> dict[str, str]:
        """Conditions that this job's samples will have, of its settings."""
        return {name: self.value_of(name) for name in self.by_mode}

    def planned(self) -> missing.Planned:
        """What decides which criteria this check may answer."""
        here = self.where_of()
        return missing.Planned(self.name_of_check(), self.mode, here, self.known_before())

    def is_answered(self) -> bool:
        """Whether `-S nodes=missing` leaves a check of the whole system nothing to measure."""
        site = session.current().site
        return self.nodes == nodesets.MISSING and not missing.of_system(site, self.planned())

    def value_of(self, name: str) -> str:
        """A setting: as -S has it, else as criteria require it, else that of the mode."""
        given = getattr(self, name)
        return str(given) if given else self.of_criteria(name, self.by_mode[name][self.mode])

    def larger(self, name: str) -> float:
        """How many times a setting is above that of the mode; at least 1."""
        return max(1.0, float(self.value_of(name)) / float(self.by_mode[name][self.mode]))

    def of_criteria(self, name: str, default: object) -> str:
        """A setting as criteria require it of this run, or the default."""
        return expected.one(session.current().site, self.planned_job(), name, str(default))

    def planned_job(self) -> Header:
        """What the attempts of this job are to share."""
        return missing.Planned(self.name_of_check(), self.mode, self.where_of()).job

    def decides_headline(self, sample: Sample) -> bool:
        """Whether a headline that no criterion decides may be made of this sample."""
        return True

    def hardware_variables(self) -> dict[str, str]:
        """What the site knows of a node and a script may use: CORES, MEMORY and CACHE in bytes."""
        kind = self.hardware
        known = {"MEMORY": kind.memory, "CACHE": kind.last_level_cache}
        values = {name: str(int(size.to("B"))) for name, size in known.items() if size}
        if kind.sockets and kind.cores_per_socket:
            values["CORES"] = str(kind.sockets * kind.cores_per_socket)
        return values

    def hardware_facts(self) -> dict[str, object]:
        """The same for `derive`, with the peak as the site writes it."""
        facts: dict[str, object] = {
            name.lower(): value for name, value in self.hardware_variables().items()
        }
        return facts | ({"peak": str(self.hardware.peak)} if self.hardware.peak else {})

    def wanted(self) -> list[str]:
        """The variables, or beginnings of names with '*', that a clean set leaves as they are."""
        place, environ = self.current_partition.local_env, self.current_environ
        named = [*place.env_vars, *environ.env_vars, *self.env_vars]
        return [*named, *self.site.system.environments[environ.name].keep_variables]

    def mpi_of_site(self) -> str:
        """The --mpi that the site gives srun; empty: none."""
        given = (option.partition("=") for option in self.where.srun_options)
        return next((value for name, _, value in given if name == "--mpi"), "")

    def modules_of_site(self) -> list[str]:
        """The modules that the site wants to be loaded in the job."""
        environment = self.site.system.environments[self.current_environ.name]
        return [*self.where.modules, *environment.modules]

    # ---- before the job

    @run_after("init")
    def choose_mode_and_environments(self) -> None:
        """The mode, and the environments that offer what the check needs."""
        active = session.current()
        self.mode = self.mode or active.site.system.mode
        if self.mode not in MODES:
            loading.refuse(UserError("-S mode", f"unknown mode '{self.mode}'", MODES))
        if not self.time_limit:
            what = "a job without a limit can hang"
            loading.refuse(UserError("-S time_limit", what, "a duration such as 10m or 2h"))
        offered = self.offered(active.site, active.site.system.environments)
        # What needs no software is not measured once more for each environment.
        partitions = active.site.system.partitions
        first = sorted({self.default_environment(active.site, name) for name in partitions})
        self.valid_prog_environs = [f"+{feature}" for feature in offered] or first
        missing.check_catalogue(active.site, self.name_of_check(), self.metrics)
        allowed = expected.settings(active.site, self.name_of_check())
        for name in self.by_mode:
            loading.refuse_setting(self, name, allowed[name])

    @run_after("init")
    def choose_partitions(self) -> None:
        """Only partitions that have work for it; if none offers its software, all SKIP."""
        site = session.current().site
        filled = self.places()
        offering = [n for n in filled if self.offered(site, site.system.partitions[n].environments)]
        filled = offering or filled
        self.software = list(self.features)
        if self.features and not offering:  # listed, to SKIP with the reason
            self.unoffered = filled
            self.valid_prog_environs = sorted({self.default_environment(site, n) for n in filled})
        self.valid_systems = [f"{site.system.system}:{name}" for name in filled]
        self.roles = {name: self.roles_on(name) for name in filled}

    def offered(self, site: Site, environments: Iterable[str]) -> list[str]:
        """The features of this check that one of these environments has."""
        found = {f for name in environments for f in site.system.environments[name].features}
        return [feature for feature in self.features if feature in found]

    def default_environment(self, site: Site, partition: str) -> str:
        """Where a check runs that needs no feature: an environment may offer its programs."""
        environments = site.system.partitions[partition].environments
        return session.default_environment(site, environments, self.parsers)

    @run_after("setup")
    def find_partition(self) -> None:
        """What the site states of this partition."""
        self.site = session.current().site
        self.where = self.site.partition(self.current_partition.name)

    @run_after("setup")
    def skip_without_environment(self) -> None:
        """Name what is missing, instead of generating no test at all."""
        wanted = set(self.features)
        if wanted and not wanted & set(self.current_environ.features):
            what = f"no environment of {self.current_partition.fullname} offers "
            raise Lacking(what + " or ".join(self.features), session.remedy(self.features))
        here = self.default_environment(self.site, self.current_partition.name)
        if not wanted and self.current_environ.name != here:
            self.skip(f"{self.current_partition.fullname} measures it in environment {here}")

    @run_after("setup")
    def refuse_other_software(self) -> None:
        """What is installed must match the lock, or the provenance of the values would be wrong."""
        active, name = session.current(), self.current_environ.name
        there = active.software.get(name)
        if there and (differs := registered.difference(active.site.name, there)):
            remedy = f"Run {registered.mend(there.name)}"
            what = f"differs from its lock file: {differs}"
            raise JobError(str(UserError(f"environment {name}", what, hint=remedy)))

    @run_after("setup")
    def choose_nodes(self) -> None:
        """Expected: the nodes in the site. Usable: those of them that can take a job."""
        self.on_slurm = self.where.scheduler != LOCAL
        inventory = self.site.nodes_of(self.current_partition.name)
        self.allocated = client.allocation() & inventory if self.on_slurm else None
        expected = self.expected_nodes()
        self.role = self.role_of_job(expected)
        self.hardware = self.site.hardware_of(self.role)
        self.in_batch = self.on_slurm and not self.allocated
        states = client.recent_states() if self.on_slurm and not self.is_dry_run() else {}
        within = self.reservation()
        lost, bad = dict[str, str](), dict[str, str]()
        if states:
            outside = not self.allocated and not within
            lost, bad = unusable(expected, states, outside=outside), unusable(expected, states)
        if self.allocated:
            others = expected - self.allocated
            lost |= dict.fromkeys(others, "not in the job in which the check runs")
        elif states and within:
            others = expected - self.reserved(within)
            lost |= dict.fromkeys(others, f"not in the reservation {within}")
        blind = {n: why for n, why in session.current().blind.items() if n in expected}
        lost, bad = lost | blind, bad | blind
        self.plan = self.make_plan(expected, lost)
        self.plan.spared = [node for node in lost if node not in bad]
        self.usable = expected - nodesets.of(lost)

    def role_of_job(self, nodes: NodeSet) -> str:
        """The first role of the partition with all of these nodes, or with the first of them."""
        known = {role: self.site.system.nodes[role].nodes for role in self.where.roles}
        of_all = (role for role in known if nodes <= known[role])
        return next(of_all, None) or next(role for role in known if nodes[0] in known[role])

    def reservation(self) -> str:
        """The reservation of the job, from -J or the site; empty: none."""
        options = [*self.job.sched_access, *self.job.cli_options]
        return next((o.partition("=")[2] for o in options if o.startswith("--reservation=")), "")

    def reserved(self, name: str) -> NodeSet:
        """The nodes of the reservation in which the job is to run; without one the test fails."""
        try:
            return client.reserved(name)
        except UserError as error:
            raise JobError(f"-J reservation={name}: {error}") from None

    def make_plan(self, nodes: NodeSet, lost: dict[str, str]) -> Manifest:
        """The manifest of this job."""
        active = session.current()
        return Manifest(
            session=active.name,
            campaign=active.campaign,
            place=active.place,
            system=active.site.system.system,
            partition=self.current_partition.name,
            environment=self.current_environ.name,
            check=self.name_of_check(),
            mode=self.mode,
            expected=str(nodes),
            metrics=list(self.metrics),
            derive=self.derive,
            scheduler="slurm" if self.in_batch else LOCAL,
            parsers={p: m.__name__.rpartition(".")[2] for p, m in self.parsers.items()},
            facts=self.facts(),
            point={
                name.partition(".")[2]: metric.point
                for name, metric in active.site.catalogue.items()
                if metric.point and metric.check == self.name_of_check()
            },
            bounds=missing.bounds(active.site, self.name_of_check(), self.role),
            lost=lost,
            limit=int(self.seconds()),
            provenance=session.provenance(installed.SUITE)
            | session.provenance_of(active.software, self.current_environ.name),
            **self.plan_of_its_kind(),
        )

    @run_before("run")
    def place_job(self) -> None:
        """Scripts, settings and manifest into the stage directory; nodes into the options."""
        stage = Path(self.stagedir)
        for script in (self.runs_on_node, *self.shared_scripts):
            shutil.copy(ON_NODE / script, stage / script)
        if self.script:
            shutil.copy(Path(self.prefix) / self.script, stage / "measure.sh")
        else:
            self.place("measure.sh", [f"measure {shlex.join(self.command)}"])
        (stage / "raw").mkdir(exist_ok=True)
        self.write_work(missing=False)
        if not self.is_dry_run():
            self.plan.origin = raw.of_job(self.usable, self.where.origin, slurm=self.on_slurm)
        self.write_settings(attempt=1)
        self.write_memory()
        self.executable_opts = [f"./{self.runs_on_node}"]
        self.plan.started = time.time()
        if not self.is_dry_run():  # or it would look like a lost session
            self.plan.save(stage, session.current().folder / "stage")
        if not self.usable:
            stages.collect(stage, files.perflogs(), job=self.plan)
            lost = [f"{node}: {why}" for node, why in self.plan.lost.items()]
            raise JobError(f"no node can take a job: {progress.shortened(lost)}")
        if self.modules_of_site():
            shutil.copy(ON_NODE / "modules.sh", stage / "modules.sh")
            self.prerun_cmds = [". ./modules.sh", *self.prerun_cmds]
        if self.in_batch or self.allocated:
            self.pin(self.usable)
        elif not self.on_slurm:
            self.job.launcher = getlauncher(LOCAL)()

    def pin(self, nodes: NodeSet) -> None:
        """Request exactly these nodes of Slurm, and go on if one of them dies."""
        self.num_tasks = len(nodes)
        these = [f"--nodelist={nodes}", f"--nodes={len(nodes)}", "--no-kill"]
        # --export: with `access: [--export=NONE]` the step would know nothing of the batch script.
        step = ["--kill-on-bad-exit=0", "--wait=0", "--cpu-bind=none", "--export=ALL"]
        if self.allocated:  # the step has all options; it shares the nodes with the batch script
            step += [*these, f"--ntasks={len(nodes)}", "--ntasks-per-node=1", "--overlap"]
        else:
            self.job.options = [*these, "--no-requeue"]
            step.append("--no-kill")
        self.job.launcher = getlauncher("srun")()
        self.job.launcher.options = [*step, *_words(self.where.srun_options)]

    def write_settings(self, attempt: int) -> None:
        """What node.sh and measure.sh read: quoted, so that no site value runs as a command.

        Only this user may read it: nobody else may know the names on shared file systems.
        """
        secret = hashlib.blake2b(os.fsencode(self.stagedir), key=SECRET, digest_size=16)
        values = {
            "SITEPROOF_NODE": str(nodesets.parse(self.plan.expected)[0]),
            "SITEPROOF_ATTEMPT": str(attempt),
            "SITEPROOF_LIMIT": str(self.measuring_seconds()),
            "SITEPROOF_STEERING": self.steering,
            "SITEPROOF_CLEAN": "yes" if self.clean else "no",
            "SITEPROOF_WANTED": " ".join(self.wanted()),
            "SITEPROOF_MODULES": " ".join(self.modules_of_site()),
            "SITEPROOF_LOADED_BY": self.site.system.modules_system,
            "SITEPROOF_SECRET": secret.hexdigest(),
            "SITEPROOF_SRUN_OPTIONS": " ".join(_words(self.where.srun_options)),
            **raw.settings_of(self.plan.origin),
            **self.settings(),
        }
        lines = [f"{key}={shlex.quote(str(value))}; export {key}" for key, value in values.items()]
        self.place("settings", lines, mode=0o600)

    def place(self, name: str, lines: Sequence[str], *, mode: int = 0o666) -> None:
        """Write a file into the stage directory, where a node may have put a link meanwhile."""
        stage = Path(self.stagedir)
        data = "".join(f"{line}\n" for line in lines).encode()
        files.write(stage / name, data, below=stage, mode=mode)

    def write_memory(self) -> None:
        """Each node's memory in slurm.conf, for jobs that requested no other share."""
        known = {}
        if self.on_slurm and not self.is_dry_run():
            with suppress(UserError):  # slurmctld restarts: then the node's own memory counts
                known = client.memory()
        lines = [f"{node} {known[node]}" for node in self.usable if node in known]
        self.place("memory_of_nodes", lines)

    @property
    def nodes_of_job(self) -> NodeSet:
        """The nodes of the job: of the second one, if there is one."""
        return self.second or self.usable

    def seconds(self) -> float:
        """The job's time limit."""
        return float(self.time_limit)

    def derives_limit(self) -> bool:
        """Whether no time limit is set, so that it follows from what is measured."""
        return self.seconds() == 1  # DERIVED_LIMIT, which ReFrame has read

    def measuring_seconds(self) -> int:
        """What of the job's time limit a node may measure."""
        seconds = self.seconds()
        return max(1, int(max(seconds - MARGIN, seconds * 3 / 4)))

    # ---- while the job runs

    def run(self) -> None:
        """As ReFrame's; a hook after `run` would come only when the job has ended."""
        super().run()
        if not self.is_dry_run():
            outside = not self.allocated and not self.reservation()
            self.watcher = progress.Watcher(self.usable, self.seconds(), outside=outside)
            self.remember_job()

    def remember_job(self) -> None:
        """Note the scheduler's id, so that a lost session loses no samples."""
        self.plan.jobs.append(str(self.job.jobid))
        self.plan.save(Path(self.stagedir), session.current().folder / "stage")

    def run_complete(self) -> bool:
        """As ReFrame's; and what is missing, but could be measured, is submitted once more."""
        adapter.repeat_signal()
        if self.is_dry_run() or not self.in_batch:
            return super().run_complete()
        if self.watcher.runs(self.job.state):
            self.job.max_pending_time = None  # it waits no longer, also where it loses a node
        try:
            done = super().run_complete() or self.was_lost()
        except JobError as error:  # cancelled by ReFrame: a node went, so it cannot start
            self.blocked, done = " ".join(str(error).split()), True
        try:
            measured = self.measured()
        except files.Unread:  # what is there is read at the next look, or by 'siteproof collect'
            return done
        if not done:
            if self.watcher.cannot_start() or self.watcher.only_dead_nodes_left(measured):
                self.job.cancel()
            elif progress := self.progress(measured) or self.waits():
                getlogger().info(f"{self.display_name}: {progress}")
            return False
        ended = "" if self.job.is_cancelling else self.job.state
        again = self.worth_another_job(measured, ended)
        return not (again and self.submit_again(again))

    def was_lost(self) -> bool:
        """Whether Slurm has forgotten the job; it then counts as ended."""
        job = self.job
        lost = self.watcher.lost_by_slurm(
            job.is_cancelling, lambda: bool(client.queued([str(job.jobid)]))
        )
        if lost:
            self.blocked = "lost by Slurm, which no longer lists it"
            adapter.end_job(self)
        return lost

    def progress(self, measured: set[str]) -> str:
        """A line of progress, if something has changed."""
        return self.watcher.progress(measured, self.has_measured)

    def waits(self) -> str:
        """A line on why Slurm lets the job wait, if that has changed."""
        job = str(self.job.jobid)
        why = self.watcher.waits(lambda: client.why_pending(job))
        return f"job {job} waits: {why}" if why else ""

    def has_measured(self, node: str) -> bool:
        """Whether a node that is done has measured, by its own account."""
        return stages.succeeded(Path(self.stagedir), node)

    def worth_another_job(self, measured: set[str], ended: str) -> NodeSet:
        """The nodes of a second job; none where it would be without success."""
        return self.watcher.worth_another_job(measured, ended)

    def submit_again(self, nodes: NodeSet) -> bool:
        """Whether there is a second job for them, with what remains of the first one's limit."""
        before = len(self.plan.jobs)
        getlogger().info(f"submitting {nodes} once more: no result from job {self.job.jobid}")
        self.second = nodes
        self.time_limit = f"{int(self.watcher.remaining())}s"
        try:
            self.write_work(missing=True)
            self.write_settings(attempt=2)
            self.blocked = ""
            adapter.renew_job(self)
            self.pin(nodes)
            rfm.RunOnlyRegressionTest.run(self)
            self.remember_job()
        except UserError as error:  # a node may have put something in the way of its files
            getlogger().warning(f"{self.display_name}: {error}")
        return len(self.plan.jobs) > before

    # ---- after the job

    @sanity_function
    def every_node_measured(self) -> bool:
        """Collect; then every expected node must have a value, and the job must have completed.

        Where no node has the tool the test SKIPs.
        """
        self.collect()
        failed = self.without_value()
        without = [s for s in failed if s.status == "tool_missing"]
        if without and len(without) == len(self.samples):
            why = without[0].why
            raise Lacking(f"tool missing: {why}", session.remedy(re.findall(r"[\w.-]+", why)))
        if failed:
            raise SanityError(f"{self.parts_missing(failed)}; output in {self.stagedir}/raw")
        ended = self.end_of_job()
        if self.in_batch and ended != "COMPLETED":
            raise SanityError(f"job {self.job.jobid} ended as {ended}")
        return True

    def without_value(self) -> list[Sample]:
        """The samples for which the test fails."""
        return [s for s in self.samples if s.status != "ok"]

    def end_of_job(self) -> str:
        """How Slurm or ReFrame ended the job; empty without a job of Slurm."""
        return (self.blocked or self.job.state or "") if self.in_batch else ""

    def lost_nodes(self) -> dict[str, str]:
        """The nodes that went down or do not see the data folder, and why."""
        if not self.in_batch:
            return {}
        measured = self.measured()
        lost = self.watcher.lost(measured)
        if left := self.usable - nodesets.of({*measured, *lost}):
            options = shlex.split(" ".join(self.job.cli_options))
            lost |= data_folder.again(self.current_partition, left, options)
        return lost

    def collect(self) -> None:
        """Turn the raw files into samples."""
        perflogs, stage = files.perflogs(), Path(self.stagedir)
        try:
            lost = self.lost_nodes()
            self.plan.over = float(self.job.completion_time or 0) if self.in_batch else 0.0
            if lost or self.plan.over:
                self.plan.lost |= lost
                self.plan.spared += [node for node in lost if node in self.watcher.spared]
                self.plan.save(stage, session.current().folder / "stage")
            ended = self.end_of_job()
            found = stages.collect(stage, perflogs, ended=ended, job=self.plan)
            self.samples = implausible.checked(self.site, found)
        except OSError as error:
            raise SanityError(
                f"samples cannot be written to {perflogs}: {error.strerror}; make room there, "
                "then run 'siteproof collect'"
            ) from None
        except UserError as error:  # about what nodes wrote; also reported at every later start
            raise SanityError(str(error)) from None

    @run_before("performance")
    def compare_with_contract(self) -> None:
        """The worst value of each headline metric, and the bound of the mode.

        In ReFrame's results database, where that is on, each node's value, too.
        """
        self.perf_variables = {}
        references = {}
        check, found = self.name_of_check(), getattr(self, "samples", [])
        stored = runtime().get_option("storage/0/enable")
        for metric in self.headline:
            shows = self.decides_headline
            shown = missing.compared(self.site, check, metric, self.mode, found, shows)
            if stored:
                shown += missing.of_each_node(self.site, check, metric, found, shows)
            for name, value, unit, reference in shown:
                self.perf_variables[name] = make_performance_function(float, unit, value)
                references[name] = (*reference, unit)
        self.reference = {self.current_partition.fullname: references}


def _words(options: Iterable[str]) -> list[str]:
    """Options as words of a script, where nothing in them is a command."""
    return [shlex.quote(part) for option in options for part in shlex.split(option)]
