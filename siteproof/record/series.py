"""Series: the values of a metric that may be compared, node by node and run by run.

A series is metric, dimensions, environment, role and conditions. Only samples with a value belong
to one; a wrong answer has none. The values of a link as a whole have the link's name as their node,
and the role `link`. Those of the system as a whole, if the caller needs them, have the system's
name as their node, and the role `system`. Those of a GPU are of one series with those of all other
GPUs of the role, and have the GPU's name as their node: `node017 gpu3`.

Comparable settings of a system's jobs: which of them are new, and wait for a person.

The past of a node begins with the last job that a person accepted, or with its first one. Where
threads, ranks or sizes are not as they were there, its values are compared with no older ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from siteproof import units
from siteproof.record.pair_units import LINK, OF_GPU, as_unit, grouped, of_link
from siteproof.record.samples import PUBLISHED, SWEEP, Header, JobOrder, Sample, expected_nodes

if TYPE_CHECKING:
    from siteproof.sites import Metric, Site

# Counts and shares (errors, residuals, losses) have a median of zero, or one that is no speed.
SPEEDS = ("rate", "flops", "iops", "time", "frequency", *units.WORK_RATES)
FOLLOWS = ("memory_share", "array_share_of_cache")  # follow from problem size and memory
NOISE = "_warning"  # ending of conditions that do not hinder a comparison
NEARLY = Decimal("0.01")  # a problem size chosen by the memory may differ by a block
SYSTEM = "system"  # the role of values of the whole system
CONTRACTUAL = ("maintenance", "acceptance")  # these two measure the same; a quick run does not
OF_THE_SWEEP = ("sweep_hash", "cap")  # depend on the other points of the sweep
# Conditions of the machine: a comparison is to show the effect of their change. A change of the
# other conditions (problem size, program) makes values incomparable.
OF_THE_MACHINE = ("blas", "hpcc", "mpi", "mtu", "version", "last_level_cache", "parameters")
ENDINGS = ("_kernel", "_library", "_version")
# Conditions that name where and what was measured. All others that hinder a comparison are
# comparable settings, such as threads, ranks, problem size and duration.
PLACES = (
    *("mode", "file_system", "folder", "inside", "service", "kind", "protocol"),
    *("link", "pattern", "direction", "sender", "receiver", "workload", "application", "emulated"),
)
VARIABLE = "env."  # prefix of the condition of an environment variable: env.UCX_TLS
OF_A_JOB = ("peer", "trial")  # dimensions over which the median of a node in a job is taken


@dataclass(frozen=True)
class Series:
    """What values must share to be compared."""

    metric: str
    dims: tuple[tuple[str, str], ...]
    environment: str
    role: str
    conditions: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The metric, with its dimensions if it has any."""
        dims = ", ".join(f"{k} {v}" for k, v in self.dims)
        return f"{self.metric} [{dims}]" if dims else self.metric


class JobValue(NamedTuple):
    """A node's value in one job: the median if the job measured it more than once.

    place, time, session, job: the order of jobs. each: all values that the job measured.
    printed: the unit of the tool; empty if there are several.
    """

    place: int
    time: str
    session: str
    job: str
    value: float
    unit: str
    each: tuple[float, ...] = ()
    printed: str = ""


OfJob = dict[str, list[tuple[float, str]]]  # by node: values, and the units they were printed in
Values = dict[Series, dict[str, list[JobValue]]]


def is_speed(metric: Metric) -> bool:
    """Whether nodes may be ranked by it."""
    return metric.better != "neither" and units.kind(metric.unit) in SPEEDS


def is_headline(metric: Metric) -> bool:
    """Whether it is one of the few speeds that are shown of each node."""
    return metric.headline and is_speed(metric)


def speeds(site: Site) -> dict[str, str]:
    """The metrics by which nodes may be ranked, each with its unit."""
    return {name: metric.unit for name, metric in site.catalogue.items() if is_speed(metric)}


def is_number(metric: Metric) -> bool:
    """Whether two of its values can be compared."""
    return units.kind(metric.unit) != "text"


def collect(
    site: Site,
    samples: Iterable[Sample],
    wanted: Callable[[Metric], bool] = is_speed,
    *,
    of_system: bool = False,
) -> Values:
    """Each series with the job values of each node, oldest first, in the catalogue's unit."""
    jobs: dict[tuple[Series, JobOrder], OfJob] = {}
    for sample, of_job in _wanted(site, samples, wanted, of_system, jobs):
        unit = site.catalogue[sample.metric].unit
        number: Decimal | Fraction = sample.number
        if sample.unit != unit:  # an exact conversion takes longer than all the rest
            number = units.convert(number, sample.unit, unit)
        of_job.setdefault(sample.node, []).append((float(number), sample.unit))
    found: Values = {}
    for (series, job), of_job in jobs.items():
        unit, runs = site.catalogue[series.metric].unit, found.setdefault(series, {})
        for node, values in of_job.items():
            runs.setdefault(node, []).append(_job_value(job, values, unit))
    for nodes in found.values():
        for of_node in nodes.values():
            of_node.sort()
    return found


def _job_value(job: JobOrder, values: list[tuple[float, str]], unit: str) -> JobValue:
    if len(values) == 1:  # as nearly always, and there may be a million
        ((value, own),) = values
        return JobValue(*job, value, unit, (value,), own)
    each, printed = tuple(value for value, _ in values), {own for _, own in values}
    return JobValue(*job, median(each), unit, each, printed.pop() if len(printed) == 1 else "")


def align(values: Values, like: Iterable[Series]) -> Values:
    """The same values under the series by which they count."""
    names = counted_as(values, like)
    found: Values = {}
    for key, nodes in values.items():
        for node, runs in nodes.items():
            known_runs = found.setdefault(names[key], {}).get(node, [])
            found[names[key]][node] = sorted([*known_runs, *runs])
    return found


def counted_as(keys: Iterable[Series], like: Iterable[Series]) -> dict[Series, Series]:
    """Each series with the one of others that differs by a block of the problem size, or itself.

    A kernel update changes the memory of a node a little, and with it the problem size.
    """
    by_names = grouped((_without_values(key), key) for key in like)
    found = {}
    for key in keys:
        others = by_names.get(_without_values(key), [])
        found[key] = key if key in others else next((o for o in others if alike(key, o)), key)
    return found


def _without_values(key: Series) -> tuple[object, ...]:
    """What series that may be alike have in common: all but the values of the conditions."""
    return key.metric, key.dims, key.environment, key.role, tuple(k for k, _ in key.conditions)


def alike(one: Series, other: Series) -> bool:
    """Whether two series differ at most by a block of the problem size."""
    if _without_values(one) != _without_values(other):
        return False
    pairs = zip(one.conditions, other.conditions, strict=True)
    return all(a == b or _nearly(a[1], b[1]) for a, b in pairs)


def comparable(key: Series) -> Series:
    """The series without the conditions that do not hinder a comparison."""
    kept = tuple(
        (name, CONTRACTUAL[0] if name == "mode" and text in CONTRACTUAL else text)
        for name, text in key.conditions
        if not of_the_machine(name) and name not in OF_THE_SWEEP
    )
    return replace(key, conditions=kept)


def of_the_machine(name: str) -> bool:
    """Whether a condition belongs to the machine, and was not required."""
    return name in OF_THE_MACHINE or name.endswith(ENDINGS) or name.startswith(VARIABLE)


def settings(texts: Mapping[str, str]) -> dict[str, str]:
    """Those of some conditions that are comparable settings: under others, values differ."""
    return {k: v for k, v in texts.items() if is_setting(k)}


@cache
def is_setting(name: str) -> bool:
    """Whether a condition is a comparable setting."""
    others = (*PLACES, *OF_THE_SWEEP, *FOLLOWS)
    return not (of_the_machine(name) or name.endswith(NOISE) or name in others)


def without_settings(key: Series) -> Series:
    """The series whatever its settings were; a point of a sweep keeps them."""
    if SWEEP in dict(key.conditions):
        return key
    return replace(key, conditions=tuple(one for one in key.conditions if not is_setting(one[0])))


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """`64 -> 32` by name: what both have and is not the same, but for a block of the size."""
    return {
        key: f"{one[key]} -> {text}"
        for key, text in sorted(other.items())
        if key in one and one[key] != text and not _nearly(one[key], text)
    }


def conditions(sample: Sample) -> dict[str, str]:
    """The conditions of a sample that must be equal for values to be compared."""
    common = sample.header.conditions
    kept = {
        key: common.get(key, text) if _nearly(text, common.get(key)) else text
        for key, text in sample.conditions.items()
    }
    return deciding(kept)


def deciding(texts: Mapping[str, str]) -> dict[str, str]:
    """Those of some conditions that must be equal for values to be compared."""
    return {k: v for k, v in texts.items() if k not in FOLLOWS and not k.endswith(NOISE)}


def _wanted(
    site: Site,
    samples: Iterable[Sample],
    wanted: Callable[[Metric], bool],
    of_system: bool,
    jobs: dict[tuple[Series, JobOrder], OfJob],
) -> Iterator[tuple[Sample, OfJob]]:
    """Each sample that counts, and where the values of its series in its job belong."""
    metrics = {name for name, metric in site.catalogue.items() if wanted(metric)}
    known: dict[object, OfJob] = {}  # a series is long to hash, and there may be a million values
    headers: dict[int, Header] = {}  # keeps each header alive, so that no other gets its id
    for sample in samples:
        role, head = site.role_of(sample.node), sample.header
        if of_link(sample):  # it stands for the link itself
            sample, role = replace(sample, node=sample.dims[LINK]), LINK
        elif of_system and not sample.node:
            sample, role = replace(sample, node=site.system.system), SYSTEM
        if sample.status != "ok" or role is None or sample.metric not in metrics:
            continue
        sample = as_unit(sample) if sample.dims else sample
        headers.setdefault(id(head), head)
        key = (id(head), sample.metric, role, _pairs(sample.dims), _pairs(sample.own_conditions))
        place = known.get(key)
        if place is None:
            place = jobs.setdefault((of_sample(sample, role), head.job_order), {})
            known[key] = place
        yield sample, place


def of_sample(sample: Sample, role: str) -> Series:
    """The series of a sample of a node with this role."""
    return of(sample.metric, sample.header.environment, sample.dims, conditions(sample), role)


def of(
    metric: str, environment: str, dims: Mapping[str, str], texts: Mapping[str, str], role: str = ""
) -> Series:
    """The series of values with these dimensions and conditions."""
    own = {k: v for k, v in dims.items() if k not in (*OF_A_JOB, *OF_GPU)}
    return Series(metric, _pairs(own), environment, role, _pairs(deciding(texts)))


def _pairs(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(texts.items())) if texts else ()


def _nearly(one: str, other: str | None) -> bool:
    if other is None or one == other:
        return False
    try:
        first, second = Decimal(one), Decimal(other)
        return abs(first - second) <= NEARLY * abs(second)
    except ArithmeticError:  # not a number, or too large a one
        return False


Place = tuple[object, ...]  # check, environment, mode and where: what may be compared


class Settings:
    """The settings of all jobs. accepted: the sessions that a person accepted."""

    def __init__(self, headers: Iterable[Header], accepted: Collection[str] = ()) -> None:
        self._accepted = accepted
        self._of_nodes: dict[Place, dict[str, list[Header]]] = {}
        ordered = sorted(filter(_counts, headers), key=lambda header: header.job_order)
        found = grouped((_place(header, header.conditions), header) for header in ordered)
        self._jobs = {place: _with_settings(jobs) for place, jobs in found.items()}
        self._varying = {place for place, jobs in self._jobs.items() if _vary(jobs)}

    def changed(self, sample: Sample, nodes: Sequence[str]) -> dict[str, str]:
        """Each setting that is not as it was where the past of a unit begins, as `64 -> 32`.

        nodes: those of the unit. What differs within a session is a point, and no change.
        """
        place = _place(sample.header, sample.conditions)
        if place not in self._varying and not sample.own_conditions:
            return {}  # as nearly always
        own = settings(sample.conditions)
        found = [
            {} if job.session == sample.header.session else differences(job.conditions, own)
            for job in self._begin(sample, nodes)
        ]
        return min(found, key=len, default={})

    def is_accepted(self, sample: Sample, nodes: Sequence[str]) -> bool:
        """Whether a person accepted a job of the unit that has these settings."""
        first = self._begin(sample, nodes)
        return any(job.session in self._accepted for job in first) and not self.changed(
            sample, nodes
        )

    def _begin(self, sample: Sample, nodes: Sequence[str]) -> Sequence[Header]:
        """The jobs of the session in which the past of a unit begins."""
        place = _place(sample.header, sample.conditions)
        if place not in self._jobs or not _counts(sample.header):
            return ()
        jobs = self._by_node(place).get(nodes[0], ()) if nodes else self._jobs[place]
        if len(nodes) > 1:
            jobs = [job for job in jobs if expected_nodes(job.expected).issuperset(nodes)]
        if not jobs:
            return ()
        accepted = (job for job in reversed(jobs) if job.session in self._accepted)
        first = next(accepted, jobs[0]).session
        return [job for job in jobs if job.session == first]

    def _by_node(self, place: Place) -> Mapping[str, list[Header]]:
        if place not in self._of_nodes:
            self._of_nodes[place] = grouped(
                (node, job) for job in self._jobs[place] for node in expected_nodes(job.expected)
            )
        return self._of_nodes[place]

    def newest(
        self, nodes: Collection[str], wanted: Callable[[Header], bool], alone: Collection[str]
    ) -> Iterator[Mapping[str, Header]]:
        """For each place the newest job that had to measure each of these nodes, if it counts.

        A quick job does not where a newer one of a stricter mode is there. Not where all settings
        are alike. wanted: which jobs. alone: the checks of which nodes have settings of their own.
        """
        found: dict[Place, dict[str, Header]] = {}
        for place, jobs in self._jobs.items():
            newest = found[place] = {}
            left = set(nodes)
            for job in filter(wanted, reversed(jobs)):
                newest |= dict.fromkeys(own := left & expected_nodes(job.expected), job)
                left -= own
        for place, newest in found.items():
            check, environment, _, *where = place
            if place not in self._varying and check not in alone:
                continue  # as nearly always
            stricter = found.get((check, environment, CONTRACTUAL[0], *where), {})
            yield {
                node: job
                for node, job in newest.items()
                if stricter.get(node, job).job_order <= job.job_order
            }


def _with_settings(jobs: Sequence[Header]) -> list[Header]:
    """Those with most of the settings: one that failed has only what was requested."""
    known = [len(settings(job.conditions)) for job in jobs]
    return [job for job, count in zip(jobs, known, strict=True) if 2 * count > max(known)]


def _vary(jobs: Sequence[Header]) -> bool:
    seen: dict[str, str] = {}
    for job in jobs:
        own = settings(job.conditions)
        if differences(seen, own):
            return True
        seen |= own
    return False


def _counts(header: Header) -> bool:
    """Whether it is a job of a check with its own settings: a sweep varies them."""
    return header.owes_lines and not header.is_unread and header.mode != PUBLISHED


def _place(header: Header, conditions: Mapping[str, str]) -> Place:
    mode = CONTRACTUAL[0] if header.mode in CONTRACTUAL else header.mode
    where = [(key, conditions.get(key)) for key in PLACES if key != "mode"]
    return header.check, header.environment, mode, *where
