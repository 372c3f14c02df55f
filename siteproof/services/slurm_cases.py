"""What a cluster promises its users: for each case the jobs that prove it, and what must be seen.

Pure: from what Slurm is configured for, and from the records of sacct, to what is not as promised.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import median

from siteproof import nodesets
from siteproof.record.pair_units import grouped
from siteproof.sites import Hardware, Service
from siteproof.slurm.configured import ConfiguredNode
from siteproof.slurm.records import JobRecord, last_runs
from siteproof.units import count

MIB = 1 << 20
ASKED, HELD, MODEST = 100, 300, 200  # MiB: a job's limit, more than that, and less than 2 x MODEST
BURNT = 5  # seconds of processor time
LEAST_SHARE, MAX_SHARE = 0.9, 1.25  # of a known amount of memory or time, as accounted
SLACK = 2.0  # of processor time: writing the memory takes some, too
LIMIT = 60  # seconds: the shortest limit of time that Slurm has
POLL = 60  # seconds after a limit within which slurmctld notices; it looks each 30 s
TASKS, AT_ONCE = 6, 2
SAW = 100  # a job's exit code: this, and how many cores it sees
LEAST_MEMORY = 0.85  # of what the site states: the kernel and the firmware keep some
MODEST_OPTION = f"--mem={2 * MODEST}M"
LOOK_OFTEN = "--acctg-freq=task=1"
# tail keeps all of its input until it ends, which has no end of line
_HOLD = "head -c {0}M /dev/zero | tail -c {0}M | {{ {1}; cat >/dev/null; }}"
# /proc counts in ticks, of which Linux has 100 a second.
_BURN = (
    f'u=0; while [ "$u" -lt {BURNT * 100} ]; do read -r l </proc/self/stat; set -- ${{l##*) }}; '
    "u=$((${12} + ${13})); done"
)
_CORES = (
    f'unset OMP_NUM_THREADS OMP_THREAD_LIMIT; n=$(nproc); [ "$n" -le {SAW} ] || n={SAW}; '
    f'[ "$n" = "$SLURM_CPUS_ON_NODE" ] || exit $(({SAW} + n))'
)
_REQUEUE = (
    'if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then scontrol requeue "$SLURM_JOB_ID"; sleep 200; fi; '
    '[ "$SLURM_RESTART_COUNT" = 1 ]'
)
_ONCE = '[ "${SLURM_RESTART_COUNT:-0}" != 0 ] || sleep 200'  # of which it is preempted
Jobs = Mapping[str, Sequence[JobRecord]]  # each run of each batch, by its name
Figure = tuple[str, float, str]  # metric, value, unit


@dataclass(frozen=True)
class Cluster:
    """What the cases follow from. nodes: of the partition. stated: its nodes in the site.

    features: of the partition's nodes in the site what their jobs are to ask for.
    """

    service: Service
    settings: Mapping[str, str]
    nodes: Mapping[str, ConfiguredNode]
    stated: Mapping[str, Hardware] = field(default_factory=dict)
    features: Mapping[str, Collection[str]] = field(default_factory=dict)

    def has(self, setting: str, part: str) -> bool:
        """Whether a setting of slurm.conf has a part, whatever its case."""
        return part.lower() in self.settings.get(setting, "").lower()

    def number(self, setting: str) -> int:
        """The number with which a setting begins; 0 where it has none."""
        match = re.match(r"[0-9]{1,9}", self.settings.get(setting, ""))
        return int(match[0]) if match else 0

    @property
    def jobs(self) -> int:
        """How many jobs `throughput` submits."""
        return self.service.jobs or 0

    @property
    def feature(self) -> str:
        """The feature that the fewest nodes have; empty: none has one."""
        return _rarest(node.features for node in self.nodes.values())

    @property
    def gres(self) -> str:
        """The generic resource that the fewest nodes have; empty: none has one."""
        return _rarest([kind for kind, _ in node.gres] for node in self.nodes.values())

    def words(self) -> dict[str, str]:
        """What stands for the names in braces in the options of batches."""
        return {"gres": self.gres, "feature": self.feature, "last": f"{self.jobs - 1}"}


def _rarest(each: Iterable[Iterable[str]]) -> str:
    names = [name for some in each for name in some]
    return min(sorted(set(names)), key=names.count, default="")


@dataclass(frozen=True)
class Batch:
    """One call of sbatch. records: how many jobs it makes.

    options: {NAME} is the number of an earlier batch, {node} the node of that which it follows, or
    one of Cluster.words. follows: it is submitted when that batch is over, or as soon as it runs.
    """

    name: str
    script: str = "true"
    options: tuple[str, ...] = ()
    records: int = 1
    follows: str = ""
    as_soon_as_it_runs: bool = False


def completed(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    """All ran to their end."""
    for name, records in jobs.items():
        for one in last_runs(records):
            if one.state != "COMPLETED":
                yield f"{name} (job {one.number}): {one.state}, exit code {one.exit}:{one.signal}"


@dataclass(frozen=True)
class Case:
    """One promise. expect: what is not as promised. late: submitted when its turn comes.

    lacks: what Slurm is not configured for; a case that the site names is tried all the same.
    unstated: what the site does not state, without which it cannot be tried. reserves: in a
    reservation of its own. figures: metrics of the check, also where something is not as promised.
    """

    batches: Callable[[Cluster], Sequence[Batch]]
    expect: Callable[[Cluster, Jobs], Iterable[str]] = completed
    lacks: Callable[[Cluster], str] = lambda cluster: ""
    unstated: Callable[[Cluster], str] = lambda cluster: ""
    figures: Callable[[Cluster, Jobs], Iterable[Figure]] = lambda cluster, jobs: ()
    late: bool = False
    reserves: bool = False


def _these(*batches: Batch) -> Callable[[Cluster], Sequence[Batch]]:
    return lambda cluster: batches


def _with(setting: str, part: str) -> Callable[[Cluster], str]:
    """Why a case is not tried: a setting has a part."""
    return lambda c: f"{setting} is {c.settings.get(setting)}" if c.has(setting, part) else ""


def _without_both(
    one: tuple[str, str], other: tuple[str, str], what: str
) -> Callable[[Cluster], str]:
    """Why a case is not tried: neither setting has its part, so Slurm is not configured for it."""
    why = f"Slurm is not configured to {what}"
    return lambda c: "" if c.has(*one) or c.has(*other) else why


def _unless(key: str) -> Callable[[Cluster], str]:
    return lambda c: "" if getattr(c.service, key) else f"the site states no '{key}' of the service"


def _preempted(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    yield from completed(cluster, {"urgent": jobs["urgent"]})
    if not any(one.state == "PREEMPTED" or one.suspended for one in jobs["ordinary"]):
        yield f"the ordinary job was not preempted: {jobs['ordinary'][-1].state}"


def _prolog(cluster: Cluster) -> Sequence[Batch]:
    proof = cluster.service.prolog
    return [Batch("job", _is_there(proof) if proof[0] == "/" else f'[ -n "${{{proof}}}" ]')]


def _epilog(cluster: Cluster) -> Sequence[Batch]:
    is_there = _is_there(cluster.service.epilog, "SLURM_JOB_NAME##*-after-")
    # The account of a job may be closed before its epilog ends.
    looks = f'n=0; until {is_there}; do n=$((n + 1)); [ "$n" -lt {POLL} ] || exit 1; sleep 1; done'
    named = "--job-name={mark}-after-{job}"
    return [Batch("job"), Batch("next", looks, ("--nodelist={node}", named), follows="job")]


def _is_there(path: str, number: str = "SLURM_JOB_ID") -> str:
    """A script that looks for a file; %j is the number of a job, which a variable has."""
    variable = f'"${{{number}}}"'
    return f"[ -e {variable.join(shlex.quote(part) for part in path.split('%j'))} ]"


def _array(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    yield from completed(cluster, jobs)
    numbers = sorted(one.number.partition("_")[2] for one in jobs["array"])
    if numbers != [f"{task}" for task in range(1, TASKS + 1)]:
        yield f"tasks {', '.join(numbers)} ran, of 1 to {TASKS} once each"
    if (most := _at_once(jobs["array"])) > AT_ONCE:
        yield f"{most} tasks ran at once, {AT_ONCE} were allowed"


def _at_once(records: Iterable[JobRecord]) -> int:
    """How many ran at the same time, at most; what ends in a second makes room in that second."""
    changes = sorted(
        change for one in records for change in ((one.start, 1), (max(one.end, one.start + 1), -1))
    )
    return max(accumulate(by for _, by in changes), default=0)


def _dependency(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    first, never = jobs["fails"][-1], jobs["never"][-1]
    if (first.state, first.exit) != ("FAILED", 7):
        yield f"a job that ended with 7 is {first.state}, exit code {first.exit}:{first.signal}"
    yield from completed(cluster, {name: jobs[name] for name in ("afternotok", "afterok")})
    if never.nodes:
        yield "a job ran after one that had failed, in spite of afterok"
    for before, after in (("fails", "afternotok"), ("afternotok", "afterok")):
        if jobs[after][-1].start < jobs[before][-1].end:
            yield f"{after} started before {before} was over"


def _together(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    yield from completed(cluster, jobs)
    if len({one.start for one in jobs["both"]}) > 1:
        yield "the components did not start together"


def _has_gres(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    yield from completed(cluster, jobs)
    one, wanted = jobs["job"][-1], f"gres/{cluster.gres.partition(':')[0]}"
    able = [name for name, node in cluster.nodes.items() if cluster.gres in dict(node.gres)]
    if others := one.nodes - nodesets.of(able):
        yield f"it ran on {others}, without {cluster.gres}"
    is_accounted = wanted in cluster.settings.get("AccountingStorageTRES", "").split(",")
    if is_accounted and f"{wanted}=1" not in one.allocated:
        yield f"{wanted} is not accounted"


def _has_feature(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    yield from completed(cluster, jobs)
    able = [name for name, node in cluster.nodes.items() if cluster.feature in node.features]
    if others := jobs["job"][-1].nodes - nodesets.of(able):
        yield f"it ran on {others}, without the feature {cluster.feature}"


def _few_cores(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    one = jobs["job"][-1]
    if one.exit > SAW:
        yield f"a job with {count(one.processors, 'processor')} could use {one.exit - SAW}"
    else:
        yield from completed(cluster, jobs)


def _accounted(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    yield from completed(cluster, jobs)
    one = jobs["job"][-1]
    for metric, share, _ in _shares(cluster, jobs):
        most = MAX_SHARE if metric == "memory_accounted" else SLACK
        if not LEAST_SHARE <= share <= most:
            yield f"{metric.replace('_', ' ')}: {share:.3g} of what was used"
    if one.processor_seconds != one.elapsed * one.processors:
        yield f"CPUTime is {one.processor_seconds} s, of {one.processors} x {one.elapsed} s"
    if one.partition != cluster.service.address or one.nodes - nodesets.of(cluster.nodes):
        yield f"accounted on {one.nodes} of {one.partition}, not of {cluster.service.address}"


def _shares(cluster: Cluster, jobs: Jobs) -> Iterator[Figure]:
    one = jobs["job"][-1]
    yield "memory_accounted", one.resident / (MODEST * MIB), "x"
    yield "processor_accounted", one.used / BURNT, "x"


def _killed(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    one, promised = jobs["job"][-1], cluster.service.over_memory
    if one.state != promised or (promised == "FAILED" and not one.signal):
        version = "memory.max of cgroup v2" if cluster.has("CgroupPlugin", "v2") else "cgroup"
        limited = cluster.has("ConstrainRAMSpace", "yes")
        although = f", although ConstrainRAMSpace is yes ({version})" if limited else ""
        yield (
            f"a job that took {HELD} MiB and had asked for {ASKED} MiB ended as {one.state}, "
            f"not {promised}{although}"
        )


def _at_limit(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    one, most = jobs["job"][-1], cluster.number("KillWait") + POLL
    if one.state != "TIMEOUT":
        yield f"a job beyond its limit of {LIMIT} s ended as {one.state} after {one.elapsed} s"
    elif (beyond := _beyond(cluster, one)) > most:
        yield f"it ran {beyond} s beyond its limit, at most {most} s are expected"


def _beyond(cluster: Cluster, one: JobRecord) -> int:
    return one.elapsed - LIMIT - 60 * cluster.number("OverTimeLimit")


def _throughput_lacks(cluster: Cluster) -> str:
    for name in ("MaxArraySize", "MaxJobCount"):
        if (most := cluster.number(name)) and cluster.jobs > most:
            return f"{name} is {most}, {count(cluster.jobs, 'job')} are wanted"
    return ""


def _starts(cluster: Cluster, jobs: Jobs) -> Iterator[Figure]:
    records = [one for one in jobs["array"] if one.nodes]
    if not records:
        return
    waits = sorted(one.start - one.submitted for one in records)
    yield "start_median", median(waits), "s"
    yield "start_p99", waits[math.ceil(0.99 * len(waits)) - 1], "s"
    begun = min(one.submitted for one in records)
    last = max(one.start for one in records)
    yield "start_rate", round(len(waits) / max(1, last - begun), 3), "jobs/s"


def differences(cluster: Cluster) -> list[str]:
    """What the site states of the partition's nodes and Slurm has otherwise."""
    found = [
        ("in Slurm, and not in the site", name) for name in cluster.nodes - cluster.stated.keys()
    ]
    for name, kind in cluster.stated.items():
        if name not in cluster.nodes:
            found.append(("in the site, and not in Slurm's partition", name))
        else:
            found += [(what, name) for what in _of_node(cluster.nodes[name], kind)]
            lacks = {*cluster.features.get(name, ())} - cluster.nodes[name].features
            found += [(f"feature {one} in the site's `access` only", name) for one in lacks]
    return [f"{nodesets.of(names)}: {what}" for what, names in sorted(grouped(found).items())]


def _of_node(node: ConfiguredNode, kind: Hardware) -> Iterator[str]:
    cores = node.sockets * node.cores_per_socket
    if kind.cores and kind.cores != cores:
        yield f"{count(cores, 'core')} in Slurm, {kind.cores} in the site"
    if kind.memory:
        share = node.memory * MIB / float(kind.memory.to("B"))
        if not LEAST_MEMORY <= share <= 1:
            yield f"{node.memory} MiB in Slurm, {kind.memory} in the site"
    for name, device in kind.devices.items():
        there = sum(int(n) for gres, n in node.gres if gres.partition(":")[0] == name)
        if there != device.count:
            yield f"{there} {name} in Slurm, {device.count} in the site"


CASES: Mapping[str, Case] = {
    "preemption": Case(
        _these(
            Batch("ordinary", _ONCE, ("--exclusive", "--requeue")),
            Batch(
                "urgent",
                options=("--nodelist={node}", "--exclusive", "{preempting}"),
                follows="ordinary",
                as_soon_as_it_runs=True,
            ),
        ),
        _preempted,
        _with("PreemptType", "none"),
        _unless("preempting"),
    ),
    "prolog": Case(_prolog, unstated=_unless("prolog")),
    "epilog": Case(_epilog, unstated=_unless("epilog")),
    "array": Case(
        _these(Batch("array", "sleep 2", (f"--array=1-{TASKS}%{AT_ONCE}",), TASKS)),
        _array,
        lambda c: "" if c.number("MaxArraySize") > TASKS else "MaxArraySize allows no arrays",
    ),
    "dependency": Case(
        _these(
            Batch("fails", "exit 7"),
            Batch("afternotok", options=("--dependency=afternotok:{fails}",)),
            Batch("afterok", options=("--dependency=afterok:{afternotok}",)),
            Batch("never", options=("--dependency=afterok:{fails}", "--kill-on-invalid-dep=yes")),
        ),
        _dependency,
    ),
    "heterogeneous": Case(
        _these(Batch("both", "srun --het-group=0,1 true", (":",), records=2)),
        _together,
        _with("SchedulerType", "builtin"),
    ),
    "gres": Case(
        _these(Batch("job", options=("--gres={gres}:1",))),
        _has_gres,
        lambda c: "" if c.gres else f"no node of {c.service.address} has a GRES",
    ),
    "feature": Case(
        _these(Batch("job", options=("--constraint={feature}",))),
        _has_feature,
        lambda c: "" if c.feature else f"no node of {c.service.address} has a feature",
    ),
    "cores": Case(
        _these(Batch("job", _CORES, ("--ntasks=1", "--cpus-per-task=1"))),
        _few_cores,
        _without_both(
            ("ConstrainCores", "yes"), ("TaskPlugin", "affinity"), "bind jobs to their cores"
        ),
    ),
    "accounting": Case(
        _these(Batch("job", _HOLD.format(MODEST, _BURN), (MODEST_OPTION, LOOK_OFTEN))),
        _accounted,
        _with("JobAcctGatherType", "none"),
        figures=_shares,
    ),
    "memory": Case(
        _these(Batch("job", _HOLD.format(HELD, "sleep 30"), (f"--mem={ASKED}M", LOOK_OFTEN))),
        _killed,
        _without_both(
            ("ConstrainRAMSpace", "yes"),
            ("JobAcctGatherParams", "OverMemoryKill"),
            "enforce limits on memory",
        ),
    ),
    "reservation": Case(
        _these(Batch("job", options=("--reservation={mark}-own",))), late=True, reserves=True
    ),
    "agreement": Case(
        _these(),
        lambda cluster, jobs: differences(cluster),
        unstated=lambda c: (
            ""
            if c.stated
            else f"no partition of the site has --partition={c.service.address} in `access`"
        ),
        figures=lambda cluster, jobs: [("disagreements", len(differences(cluster)), "count")],
    ),
    "time": Case(
        _these(Batch("job", "sleep 900", ("--time=1",))),
        _at_limit,
        _with("OverTimeLimit", "unlimited"),
        figures=lambda c, jobs: [("beyond_limit", _beyond(c, jobs["job"][-1]), "s")],
    ),
    "requeue": Case(_these(Batch("job", _REQUEUE, ("--requeue",))), lacks=_with("JobRequeue", "0")),
    "throughput": Case(
        lambda c: [Batch("array", options=("--array=0-{last}", "--time=1"), records=c.jobs)],
        lacks=_throughput_lacks,
        unstated=lambda c: "" if c.jobs else "'jobs' is not given, and the mode not acceptance",
        figures=_starts,
        late=True,
    ),
}
