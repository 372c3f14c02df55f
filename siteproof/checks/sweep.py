"""SweepCheck: one job whose first node walks the points of a sweep, and each point is a sample.

The job takes as many nodes as the largest of its points needs. A sweep has a job for each size
class of points (ReFrame parameter `walk`), so that hundreds of nodes are not held while one task
runs.

TogetherCheck: one program of MPI whose ranks run on many nodes at once, a rank a node.

Tuning: what a sweep that turns knobs needs in addition to every sweep.

It runs only where the site allows it. Its scripts set, read back and restore (knob.sh); a knob that
they could not restore is a failed sample of the node (siteproof/collect/of_system.py).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import reframe as rfm
from ClusterShell.NodeSet import NodeSet
from ClusterShell.RangeSet import RangeSet
from reframe.core.backends import getlauncher
from reframe.core.builtins import parameter, run_after, run_before, variable
from reframe.core.logging import getlogger
from reframe.utility import typecheck

from siteproof import files, nodesets
from siteproof.answers import expected
from siteproof.checks import loading, progress, selection, session
from siteproof.checks.job import DERIVED_LIMIT, LOCAL, MARGIN, ON_NODE, JobCheck
from siteproof.checks.selection import ALL
from siteproof.collect import of_system, stages
from siteproof.collect.outcome import Outcome
from siteproof.errors import UserError
from siteproof.record.manifest import KNOB, Manifest, OfItsKind, Point, folder_of
from siteproof.record.samples import REPEATED, SWITCHES, Sample
from siteproof.slurm import client
from siteproof.slurm.records import unusable
from siteproof.sweeps import caps, keys
from siteproof.sweeps.reading import SweepFile, combinations, repeated, size_class, walk
from siteproof.units import count

SCRIPTS = ("knob.sh", "knob_hold.sh", "knob_kinds.sh")
RESTORED_WITHIN = (
    20  # seconds in which the nodes of a job that was ended restore; Slurm's KillWait is 30
)


class Tuning(rfm.RegressionTestPlugin):
    """Mixed into SweepCheck; does nothing for sweeps without a knob."""

    sweep_file: SweepFile | None
    points: dict[int, Point]

    @property
    def turns_knobs(self) -> bool:
        """Whether the sweep changes settings of the nodes."""
        return bool(self.sweep_file and self.sweep_file.sweep.turns_knobs)

    @run_after("setup")
    def skip_without_tuning(self) -> None:
        """No node is changed unless its site allows it."""
        where = session.current().site.partition(self.current_partition.name)
        if self.turns_knobs and not where.tuning:
            self.skip(
                f"{self.current_partition.fullname} has no 'tuning: true' in system.yaml, "
                "and this sweep changes settings of nodes"
            )

    @run_before("run")
    def place_knobs(self) -> None:
        """The scripts, and the values of each combination that the points need."""
        if not self.turns_knobs:
            return
        stage = Path(self.stagedir)
        for script in SCRIPTS:
            shutil.copy(ON_NODE / script, stage / script)
        named = [name for point in self.points.values() for name in point.values]
        every = [name for name in dict.fromkeys(named) if name.startswith(KNOB)]
        numbers = combinations(self.points)
        each = {number: self.points[point].knobs for point, number in reversed(numbers.items())}
        lines = keys.lines([each[number] for number in sorted(each)], every)
        (stage / "knobs").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    @run_before("sanity")
    def wait_for_restored(self) -> None:
        """The nodes of a cancelled job restore their knobs while the job has already ended."""
        for _ in range(RESTORED_WITHIN):
            if not (self.turns_knobs and keys.not_restored(Path(self.stagedir))):
                break
            time.sleep(1)


AROUND = 5  # seconds of a point beyond its limit: ranks that do not end at once
COLLECT_EVERY = 20  # seconds between two rewritings of the samples
QUEUED = 7200  # seconds that a job may wait in the queue, when it is its turn
PATIENCE = 150  # seconds in which Slurm notices a dead node, and ends the job
_submitted: list[tuple[str, float]] = []  # this session's jobs, each with its time limit


class SweepCheck(JobCheck, Tuning, special=True):
    """One tool over many points.

    A check defines, in addition to what JobCheck needs: its `tool`; and, if it also runs without a
    sweep file, its `standard_points` and by mode `seconds_of_point` and `trials_of` each.
    """

    walk = parameter([ALL])
    resume = variable(str, value="")  # a session, or last: only what is missing there
    launch = variable(str, value="")  # srun's --mpi; empty: as the program's library has it
    again = variable(str, value="no")  # yes: with `resume`, also what failed there
    time_limit = DERIVED_LIMIT
    refusal = variable(str, value="")  # why this run is refused, for the plan
    costs = variable(typecheck.Dict[str, typecheck.List[int]], value={})

    runs_on_node = "sweep.sh"
    shared_scripts: tuple[str, ...] = ("account.sh", "mpi.sh", "launch.sh")
    tool = ""
    sweep_file: SweepFile | None = None
    only_caps: Collection[str] = ()  # variables that the check without a sweep file does not have
    owns_size = False  # whether `-S size` is the check's own, and no cap
    seconds_of_point: dict[str, int] = {"quick": 60, "maintenance": 300, "acceptance": 600}
    trials_of: dict[str, int] = {"quick": 1, "maintenance": 1, "acceptance": 1}
    fewest = 0  # nodes of a point on a whole partition
    whole: Collection[int] = frozenset()  # nodes of the partitions, where these are points
    named: Collection[int] = frozenset()  # of these the points on each partition that has so many

    # ---- which points

    def standard_points(self) -> list[Mapping[str, str]]:
        """The points of the check without a sweep file: values by axis, sizes in bytes."""
        return []

    def places(self) -> list[str]:
        """The partitions; `-S nodes` with unknown nodes is refused."""
        found = [name for name, nodes in self.on_each_partition(self.selected).items() if nodes]
        found = [name for name in found if self.may_run_on(name)] or found
        return found or list(session.current().site.system.partitions)

    def inventory_of(self, partition: str) -> NodeSet:
        """The nodes of a partition on which points may be measured."""
        return session.current().site.having(self.roles_on(partition))

    def chosen_on(self, partition: str) -> NodeSet:
        """The nodes that `-S nodes` selects of a partition; none where it selects others."""
        try:
            return self.selected(partition)
        except UserError:
            return nodesets.of()

    def may_run_on(self, partition: str) -> bool:
        """Whether the site allows there what the sweep does to nodes."""
        return session.current().site.partition(partition).tuning or not self.turns_knobs

    @run_after("init")
    def choose_points(self) -> None:
        """The points of this size class, by number; and what a job over them costs."""
        loading.refuse_choice(self, "again", ("yes", "no"))
        self.refused: UserError | None = None
        if getattr(self, "program", ""):  # what no parser reads; of tests that run, as below
            self.refused = loading.wrong_choice(self, "program", self.parsers)
        self.caps: Mapping[str, str] = {}
        every = self.all_points()
        own = {n: p for n, p in every.items() if self.walk in (ALL, size_class(p.nodes))}
        self.within = self.capped(every)
        self.points = {number: self.within[number] for number in own if number in self.within}
        self.above_caps = len(own) - len(self.points)
        self.resumed: caps.Resumed | None = None
        if self.resume and not self.refused:
            self.find_resumed()
        self.refusal = str(self.refused or "")
        self.answered = self.is_answered()
        self.by_points = self.derives_limit()
        self.costs = {name: self.cost_on(name.partition(":")[2]) for name in self.valid_systems}
        if self.by_points:
            self.time_limit = f"{max(cost[1] for cost in self.costs.values())}s"

    def capped(self, every: dict[int, Point]) -> dict[int, Point]:
        """Those within the caps that -S sets; a mistake is reported before the run."""
        if not self.sweep_file:
            return every
        sweep, test = self.sweep_file.sweep, self.sweep_file.test
        given = {name: f"{getattr(self, name)}" for name in caps.NAMES}
        for name, text in list(given.items()):
            unset = "" if name in self.only_caps else "0"
            if text in ("", unset) or name == caps.SIZE and self.owns_size:
                del given[name]
        try:
            requested = caps.of_options(test, sweep, given)
            self.caps = caps.binding(sweep, every, requested)
            found = caps.apply(sweep, every, self.caps)
        except UserError as error:  # for tests that run, not for all that are listed
            self.refused = error
            return every
        if not found:
            what = f"{test} has no point within {caps.in_words(self.caps)}"
            allowed = f"caps that at least one of its {count(len(every), 'point')} meets"
            self.refused = UserError(f"-S {caps.text(self.caps)}", what, allowed)
        return found

    def all_points(self) -> dict[int, Point]:
        """Every point, by number, before caps."""
        if self.sweep_file:
            return dict(enumerate(self.sweep_file.points, 1))
        ranks = {"tasks": "1", "tasks_per_node": "1"}
        standard = [{**ranks, **values} for values in self.standard_points()]
        varied = [
            name
            for name in dict.fromkeys(n for v in standard for n in v)
            if name in ranks or len({values.get(name) for values in standard}) > 1
        ]
        return dict(enumerate(repeated(standard, varied, self.trials_of[self.mode]), 1))

    @property
    def point_limit(self) -> int:
        """Longest seconds of a point."""
        if self.sweep_file:
            return self.sweep_file.sweep.point_limit
        return self.seconds_of_point[self.mode]

    def find_resumed(self) -> None:
        """The session that `resume` names; a mistake is reported before the run."""
        active = session.current()
        if not self.sweep_file:
            what = f"{type(self).__name__} is not a sweep"
            remedy = "'reframe -c sweeps/ -l' lists the sweeps"
            self.refused = UserError("-S resume", what, hint=remedy)
            return
        system, named = active.site.system.system, (self.resume, self.mode, self.caps)
        try:
            self.resumed = caps.find(active.folder, system, self.sweep_file, *named)
        except UserError as error:  # reported for tests that run, not for all that are listed
            self.refused = error

    def whole_counts(self) -> set[int]:
        """How many nodes a point on the whole of each partition has."""
        return {self.whole_of(name) for name in self.roles}

    def whole_of(self, partition: str) -> int:
        """The nodes of a partition that can take a job now, and at least `fewest`."""
        where = session.current().site.partition(partition)
        return max(self.fewest, selection.usable(where, self.chosen_on(partition)))

    def missing_on(self, partition: str, environment: str = "") -> dict[int, Point]:
        """The points of this size class; of a resumed session those that it lacks there.

        Those on the whole of another partition are not missing here.
        """
        if not self.resumed:
            return self.narrowed(self.points, partition)
        return self.resumed.missing(
            self.points, self.where_of(), partition, environment, again=self.again == "yes"
        )

    def narrowed(self, points: Mapping[int, Point], partition: str) -> dict[int, Point]:
        """Without those on the whole of another partition."""
        others = {*self.whole} - {*self.named}
        return selection.narrowed(points, others - {self.whole_of(partition)} if others else ())

    def fitting(self, partition: str) -> dict[int, Point]:
        """The points that can be measured there; of whole partitions only this one."""
        most = self.most_nodes(partition)
        fits = {n: point for n, point in self.points.items() if self.may_measure(point, most)}
        return self.narrowed(fits, partition)

    def may_measure(self, point: Point, most: int) -> bool:
        """Whether a partition of so many nodes can measure a point at all."""
        return point.nodes <= most

    def most_nodes(self, partition: str) -> int:
        """How many nodes a point may have there."""
        most = len(self.chosen_on(partition))
        is_local = session.current().site.partition(partition).scheduler == LOCAL
        return min(1, most) if is_local else most

    def cost_on(self, partition: str) -> list[int]:
        """Nodes, seconds and points of a job on a partition; how many points do not fit on it, how
        many are above the caps, and the bytes that those of the job write.
        """
        if self.answered or not self.may_run_on(partition):
            return [0, self.seconds_of(0), 0, 0, 0, 0]
        missing = self.missing_on(partition)
        fitting = self.fitting(partition)
        left = [point for number, point in fitting.items() if number in missing]
        nodes = max((point.nodes for point in left), default=0)
        written = sum(map(self.bytes_of, left))
        left_out = len(missing) - len(left)
        return [nodes, self.seconds_of(len(left)), len(left), left_out, self.above_caps, written]

    def bytes_of(self, point: Point) -> int:
        """What a point writes to file systems, for the plan."""
        return 0

    def seconds_of(self, points: int) -> int:
        """The time limit of a job over so many points."""
        return points * (self.point_limit + AROUND) + 2 * MARGIN

    # ---- which nodes

    def expected_nodes(self) -> NodeSet:
        """As many nodes as the largest point needs; broken ones only where no others are left."""
        here = self.current_partition.name
        self.points = missing_points = self.missing_on(here, self.current_environ.name)
        if self.answered:
            self.skip("nothing is missing")
        if not missing_points and self.resume:
            self.skip(f"no point is missing in session {self.resume}")
        if not missing_points and self.above_caps:
            self.skip(f"every point is above the caps: {caps.in_words(self.caps)}")
        if not missing_points:
            self.skip("there is no point to measure")
        self.points = self.fitting(here)
        if not self.points:
            least = min(point.nodes for point in missing_points.values())
            nodes = f"at least {count(least, 'node')}, and there are {self.most_nodes(here)}"
            if least <= self.most_nodes(here):
                nodes = "several nodes that share a file system, and this one is local to each node"
            self.skip(f"{self.current_partition.fullname}: every point needs {nodes}")
        if self.by_points:
            self.time_limit = f"{self.seconds_of(len(self.points))}s"
        chosen = self.nodes_for(max(point.nodes for point in self.points.values()))
        if not chosen:
            self.skip(f"-S nodes={self.nodes}: no such node can take a job now")
        return chosen

    def nodes_for(self, count: int) -> NodeSet:
        """The nodes of a job over so many."""
        here = self.current_partition.name
        states = client.recent_states() if self.on_slurm and not self.is_dry_run() else {}
        try:
            whole = self.nodes.isdigit()
            selected = self.inventory_of(here) if whole else self.selected(here, states)
        except UserError as error:
            self.skip(str(error))
        within = self.reservation()
        own = self.allocated or (self.reserved(within) if within and states else selected)
        selected = selected & own or selected
        outside = not self.allocated and not within
        bad = unusable(selected, states, outside=outside) if states else {}
        bad |= {n: why for n, why in session.current().blind.items() if n in selected}
        able = [node for node in selected if node not in bad]
        if states:
            able.sort(key=lambda node: not states[node].state.idle)
        # Points take them in this order: the walk is on the first that Slurm has.
        self.in_order = list(nodesets.of(self.of_one_role(able, count)[:count]))
        if not any(point.nodes <= len(self.in_order) for point in self.points.values()):
            self.in_order = []  # no job, then
        lacking = list(bad)[: count - len(self.in_order)]
        return nodesets.of([*self.in_order, *lacking])

    def of_one_role(self, able: Sequence[str], count: int) -> Sequence[str]:
        """The nodes of the first role that has so many of them; all nodes, if none has."""
        for role in self.roles_on(self.current_partition.name):
            known = set(self.site.expected(role))
            alike = [node for node in able if node in known]
            if len(alike) >= count:
                return alike
        return able

    def plan_of_its_kind(self) -> OfItsKind:
        """The points, and from which sweep they are."""
        conditions = {}
        if self.sweep_file:
            conditions = {"sweep": self.sweep_file.name, "sweep_hash": self.sweep_file.hash}
            if self.caps:
                conditions[caps.CAP] = caps.text(self.caps)
        return {"points": self.points, "conditions": conditions}

    def make_plan(self, nodes: NodeSet, lost: dict[str, str]) -> Manifest:
        """The manifest has the number of points, and the session that it resumes."""
        plan = super().make_plan(nodes, lost)
        if self.sweep_file:  # the file may change: the samples show whether all points are there
            inventory = self.inventory_of(self.current_partition.name)
            most = 1 if self.where.scheduler == LOCAL else len(inventory)
            out = [f"{n}" for n, point in self.within.items() if not self.may_measure(point, most)]
            plan.provenance["points"] = str(len(self.within) - len(out))
            if out:
                plan.provenance["left_out"] = str(RangeSet.fromlist(out))
        if self.resumed:
            plan.provenance["resumes"] = self.resumed.session
        return plan

    # ---- the job

    @run_after("setup")
    def start_walker_alone(self) -> None:
        """Only the first node walks; the ranks of a point are steps of their own."""
        self.job.launcher = getlauncher("local")()
        self.known: dict[int, Outcome] = {}
        self.collected_at = self.began = 0.0

    def pin(self, nodes: NodeSet) -> None:
        """Ask Slurm for exactly these nodes; the job ends with any of them."""
        self.num_tasks = len(nodes)
        self.job.launcher = getlauncher("local")()
        if not self.allocated:
            self.job.options = [f"--nodelist={nodes}", f"--nodes={len(nodes)}", "--no-requeue"]
            # After the job of another partition: both might measure one file system.
            for job, limit in [one for one in _submitted if one[0] not in self.plan.jobs][-1:]:
                self.job.options.append(f"--dependency=afterany:{job}")
                self.max_pending_time = f"{QUEUED + int(limit)}s"

    def remember_job(self) -> None:
        """As every job, with its nodes; the next job starts after it."""
        nodes = [self.plan.provenance.get("nodes", ""), str(self.nodes_of_job)]
        self.plan.provenance["nodes"] = "; ".join(filter(None, nodes))
        super().remember_job()
        if self.in_batch:
            _submitted.append((str(self.job.jobid), self.seconds()))

    def write_work(self, missing: bool) -> None:
        """The points in the order of the walk; of a second job those that are not there."""
        stage = Path(self.stagedir)
        order = self.sweep_file.sweep.order if self.sweep_file else "ascending"
        there = of_system.measured(stage, self.points) if missing else set()
        turned = combinations(self.points) if self.turns_knobs else {}
        nodes = len(self.nodes_of_job)
        lines = [
            self.points[n].line(n, self.point_limit, turned.get(n, 0))
            for n in walk(self.points, order, session.current().name)
            if folder_of(n) not in there and self.points[n].nodes <= nodes
        ]
        self.place("points", lines)

    def settings(self) -> dict[str, str]:
        """The nodes in their order, and how ranks start."""
        nodes = set(self.nodes_of_job)
        return {
            "JOB_NODES": " ".join(node for node in self.in_order if node in nodes),
            "SWEEP_SRUN": "yes" if self.on_slurm else "",
            "SWEEP_PATIENCE": str(PATIENCE),
            "LAUNCH": self.launch or self.mpi_of_site(),
        }

    # ---- while the job runs

    def measured(self) -> set[str]:
        """All nodes, when nothing more is to come of any."""
        there = of_system.measured(Path(self.stagedir), self.points)
        done = all(folder_of(number) in there for number in self.points)
        return set(self.usable) if done else set()

    def run_complete(self) -> bool:
        """As every job's; what has been measured meanwhile becomes samples at once."""
        if not self.is_dry_run():
            if not self.began and (not self.in_batch or "RUNNING" in (self.job.state or "")):
                self.began = time.time()
            self.collect_so_far()
        return super().run_complete()

    def collect_so_far(self) -> None:
        """The samples of the points that are there; a full disk is reported at the end."""
        now = time.time()
        if now - self.collected_at < COLLECT_EVERY:
            return
        stage, before = Path(self.stagedir), len(self.known)
        self.collected_at = now
        try:
            done = len(of_system.measured(stage, self.points))
            if done > before:
                stages.collect_so_far(stage, files.perflogs(), self.plan, self.known)
        except (OSError, files.Unread):
            return
        if len(self.known) > before:
            failed = sum(point.status != "ok" for point in self.known.values())
            repeated = sum(REPEATED in point.conditions for point in self.known.values())
            seconds = now - (self.began or self.plan.started)
            counts = len(self.known), len(self.points), seconds, failed, repeated
            getlogger().info(f"{self.display_name}: {progress.points_done(*counts)}")

    def progress(self, measured: set[str]) -> str:
        """Nothing: `collect_so_far` prints it."""
        return ""

    def worth_another_job(self, measured: set[str], ended: str) -> NodeSet:
        """Nodes for the points that are missing since the job lost a node."""
        none = nodesets.of()
        if measured or not super().worth_another_job(measured, ended):
            return none
        if not (ended.startswith("NODE_FAIL") or self.watcher.dead or self.blocked):
            return none  # the walk has ended by itself, with its reason
        there = of_system.measured(Path(self.stagedir), self.points)
        left = [p.nodes for n, p in self.points.items() if folder_of(n) not in there]
        try:
            nodes = self.nodes_for(max(left))
        except UserError:  # a controller that restarts
            return none
        able = [n for n in self.in_order if n in nodes and n not in self.watcher.dead]
        return nodesets.of(able) if min(left) <= len(able) else none

    def parts_missing(self, failed: Sequence[Sample]) -> str:
        """One line: how many points gave a value, and how the others ended."""
        points = {(s.trial, tuple(sorted(s.dims.items()))) for s in failed if not s.node}
        measured = f"{len(self.points) - len(points)} of {len(self.points)} points measured"
        return f"{measured}. {progress.failures(failed)}"


class TogetherCheck(SweepCheck, special=True):
    """A check over all nodes of a partition that can take a job.

    A check defines, in addition to what SweepCheck needs: `fewest` nodes that it needs; `growing`,
    whether it also runs on 2, 4, 8, ... of them (and on 1, where that is enough).
    """

    program = variable(str, value="")  # of `parsers`; empty: the first that is installed
    tags = {"network"}
    shared_scripts = (*SweepCheck.shared_scripts, "messages.sh", "mpi_together.py")
    fewest = 2
    growing = False
    seconds_of_point = {"quick": 60, "maintenance": 120, "acceptance": 300}
    iterations_of: Mapping[str, int] = {"quick": 50, "maintenance": 100, "acceptance": 400}

    def standard_points(self) -> list[Mapping[str, str]]:
        """The whole of each partition, the numbers of nodes that criteria name, and 2, 4, 8, ..."""
        counts = self.whole_counts()
        points = expected.points(session.current().site, self.planned_job())
        named = {int(values["tasks"]) for values in points if "tasks" in values}
        if self.growing:
            powers = range(self.fewest.bit_length() - 1, max(counts, default=0).bit_length())
            named |= {2**power for power in powers}
        self.whole, self.named = counts, named
        nodes = sorted(counts | named)
        return [{"tasks": str(count)} for count in nodes if count >= self.fewest]

    def make_plan(self, nodes: NodeSet, lost: dict[str, str]) -> Manifest:
        """With the switches of Slurm's topology.conf and their nodes."""
        plan = super().make_plan(nodes, lost)
        there = client.switches() if self.on_slurm and not self.is_dry_run() else {}
        own = {name: below & nodes for name, below in there.items()}
        named = " ".join(f"{name}={below}" for name, below in own.items() if below)
        if named:
            plan.provenance[SWITCHES] = named
        return plan

    def settings(self) -> dict[str, str]:
        """Which program, and how often it repeats."""
        iterations = self.iterations_of[self.mode]
        return {**super().settings(), "PROGRAM": self.program, "ITERATIONS": str(iterations)}
