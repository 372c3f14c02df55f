"""The runs of a sweep among samples: what was measured, what failed, and what is still missing.

A run is a session with those that resumed it, in one partition and environment, on one file system
or link. Its size classes are several jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from siteproof import nodesets
from siteproof.errors import UserError
from siteproof.record import campaign as campaigns
from siteproof.record.finding import broke
from siteproof.record.manifest import Point
from siteproof.record.pair_units import grouped
from siteproof.record.samples import SWEEP, Sample
from siteproof.sites import Site
from siteproof.sweeps import caps
from siteproof.sweeps.caps import RESUMES, SWEEP_HASH, chain, settled
from siteproof.sweeps.reading import SweepFile

POINTS, LEFT_OUT = "points", "left_out"  # provenance: how many fitted; numbers of the others
SCALING = "Scaling"  # the check whose points the site names, and no file
PLACES = ("file_system", "link", "service")  # conditions of which each value is a run of its own
Dims = Mapping[str, str]


_Key = tuple[str, str, str, str, str, str]  # the first fields of a SweepRun


@dataclass(frozen=True)
class SweepRun:
    """All samples of one run. place: file system, link or service; empty: it has
    none.

    sessions: from the first to the one that resumed last.
    """

    name: str
    hash: str
    system: str
    partition: str
    environment: str
    place: str
    sessions: tuple[str, ...]
    samples: Sequence[Sample]

    @property
    def newest(self) -> Sample:
        """A sample of its newest job."""
        return max(self.samples, key=lambda s: s.header.job_order)

    @property
    def check(self) -> str:
        """The class that measured it, such as Ior."""
        return self.samples[0].header.check

    @property
    def is_scaling(self) -> bool:
        """Whether it is a program of the site's over growing numbers of nodes."""
        return self.check == SCALING

    @property
    def caps(self) -> Mapping[str, str]:
        """What -S capped its points to, by axis. Raises UserError."""
        return caps.of_text(self.newest.header.conditions.get(caps.CAP, ""))

    @cached_property
    def good(self) -> list[Sample]:
        """Those with a figure, the newest where a point was measured twice."""
        found: dict[object, Sample] = {}
        for sample in sorted(self.samples, key=lambda s: s.header.order):
            if sample.status == "ok":
                found[sample.metric, sample.node, sample.trial, _key(sample.dims)] = sample
        return list(found.values())

    @cached_property
    def bad(self) -> list[Sample]:
        """Failures that no other attempt has made good, the newest of each point."""
        there = {(s.trial, _key(s.dims)) for s in self.good}
        last = max((s.header.order for s in self.good), default=None)
        found: dict[object, Sample] = {}
        for sample in sorted(self.samples, key=lambda s: s.header.order):
            if sample.status == "ok":
                continue
            # The failure of a whole job is made good by any later job; its points have their own.
            cured = last is not None and sample.header.order < last
            if sample.dims:
                cured = (sample.trial, _key(sample.dims)) in there
            if not cured:
                found[sample.metric, sample.trial, _key(sample.dims)] = sample
        return list(found.values())

    def __str__(self) -> str:
        where = " ".join(filter(None, (self.partition, self.environment, self.place)))
        resumed = f", resumed by {', '.join(self.sessions[1:])}" if self.sessions[1:] else ""
        return f"{self.system}: {where}, session {self.sessions[0]}{resumed}"


@dataclass(frozen=True)
class Progress:
    """What became of the points of a run.

    done of planned: planned is None where the sweep file has changed since, and the samples do not
    show that every point was measured. too_large: points that need more nodes than there are, or
    than see each other's files. above_caps: points that -S left out. missing: without any sample.
    failed: measured without success. untried: whose attempt shows nothing about the system.
    """

    done: int
    planned: int | None
    missing: Sequence[Point]
    failed: Sequence[Sample]
    untried: Sequence[Sample]
    too_large: Sequence[Point]
    above_caps: Sequence[Point] = ()

    @property
    def complete(self) -> bool:
        """Whether every point within the caps that fits on the partition has its figures."""
        return self.planned is not None and not (self.missing or self.failed or self.untried)


def of_sweep(sample: Sample, name: str = "") -> bool:
    """Whether a sample belongs to a sweep, or to the one of that name."""
    found = _name(sample)
    return bool(found) and name in ("", found)


def collect(samples: Iterable[Sample], name: str = "") -> list[SweepRun]:
    """All runs of a sweep, or of all sweeps; the newest last."""
    of_sweeps = [s for s in samples if of_sweep(s, name)]
    resumed: dict[str, dict[str, str]] = {}  # by sweep: one session may resume several
    for sample in of_sweeps:
        before = resumed.setdefault(_name(sample), {})
        if RESUMES in sample.header.provenance:
            before[sample.header.session] = sample.header.provenance[RESUMES]
    by_run = grouped(
        ((_of(s), chain(s.header.session, resumed[_name(s)])[-1]), s) for s in of_sweeps
    )
    found = []
    for (key, _), of_run in by_run.items():
        newest_first = sorted(of_run, key=lambda s: s.header.order, reverse=True)
        sessions = tuple(reversed(dict.fromkeys(s.header.session for s in newest_first)))
        found.append(SweepRun(*key, sessions, of_run))
    return sorted(
        found, key=lambda run: (run.newest.header.order, run.sessions, run.partition, run.place)
    )


def choose(runs: Sequence[SweepRun], *, session: str = "", campaign: str = "") -> list[SweepRun]:
    """The runs of a session or campaign; without either, those of the newest session.

    Raises UserError where a session or campaign has none. runs: of one sweep, as of `collect`.
    """
    if session:
        chosen = [run for run in runs if session in run.sessions]
        known = [run.sessions[-1] for run in runs]
        where = "--session"
    elif campaign:
        chosen = _of_campaign(runs, campaign)
        known = [run.newest.header.campaign for run in runs if run.newest.header.campaign]
        where = "--campaign"
    else:
        return [run for run in runs if run.sessions[0] == runs[-1].sessions[0]]
    if not chosen:
        what = f"no run of the sweep in '{session or campaign}'"
        raise UserError(where, what, list(dict.fromkeys(known))[-8:])
    return chosen


def _of_campaign(runs: Sequence[SweepRun], name: str) -> list[SweepRun]:
    """The runs of a campaign; none where it has none."""
    headers = [s.header for run in runs for s in run.samples]
    try:
        wanted, _ = campaigns.choose(headers, campaign=name)
    except UserError:
        return []
    return [run for run in runs if any(wanted(s.header) for s in run.samples)]


def progress(run: SweepRun, file: SweepFile | None, site: Site) -> Progress:
    """What became of the points of the sweep file; it alone knows what is missing."""
    failed = [s for s in run.bad if broke(s.status)]
    untried = [s for s in run.bad if s not in failed]
    if file is None or file.hash != run.hash:
        done = len({(s.trial, _key(s.dims)) for s in run.good})
        return Progress(done, _planned(run, done), (), failed, untried, ())
    every = dict(enumerate(file.points, 1))
    points = caps.apply(file.sweep, every, run.caps)
    large = _left_out(run, points, site) & points.keys()
    good, bad = (settled(points, found) for found in (run.good, run.bad))
    missing = [p for n, p in points.items() if n not in good | bad | large]
    return Progress(
        len(good - bad),
        len(points) - len(large),
        missing,
        failed,
        untried,
        [every[n] for n in sorted(large)],
        [every[n] for n in sorted(every.keys() - points.keys())],
    )


def _planned(run: SweepRun, done: int) -> int | None:
    """The points of a run without its file; None where they are others than those that are done."""
    planned = run.newest.header.provenance.get(POINTS, "")
    known = planned == str(done) or run.is_scaling and planned.isdecimal()
    return int(planned) if known else None


def _left_out(run: SweepRun, points: Mapping[int, Point], site: Site) -> set[int]:
    """The points that could not be measured there, by the run's own record or by their nodes."""
    recorded = run.newest.header.provenance
    if POINTS in recorded:
        return _numbers(recorded.get(LEFT_OUT, ""), max(points, default=0))
    partition = site.system.partitions.get(run.partition)
    if partition is None:
        return set()
    most = 1 if partition.scheduler == "local" else len(site.having(partition.roles))
    return {number for number, point in points.items() if point.nodes > most}


def _numbers(text: str, most: int) -> set[int]:
    """`1-8,12` as numbers of points. Raises UserError, also where one is above the most."""
    try:
        found = nodesets.numbers(text)
        if max(found, default=0) <= most:
            return found
    except ValueError:
        pass  # the same mistake as a number that is too high
    raise UserError(LEFT_OUT, f"'{text[:40]}' are not points of the sweep", f"1 to {most}")


def _name(sample: Sample) -> str:
    return sample.header.conditions.get(SWEEP, "")


def _of(sample: Sample) -> _Key:
    head, keys = sample.header, {**sample.dims, **sample.conditions}
    place = next((keys[key] for key in PLACES if key in keys), "")
    sweep = keys[SWEEP], keys.get(SWEEP_HASH, "")
    return *sweep, head.system, head.partition, head.environment, place


def point_of(sample: Sample) -> str:
    """A point by its axes; the job where the sample covers all of its points."""
    parts = [f"{name}={value}" for name, value in sample.dims.items()]
    if sample.trial:
        parts.append(f"trial={sample.trial}")
    return " ".join(parts) or f"job {sample.header.job}"


def _key(dims: Dims) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(dims.items()))
