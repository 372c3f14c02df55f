"""Made-up years: the sample files of a system that is measured day after day.

    years.write(perflogs, nodes=320, runs=365, seed=1,
                steps=[years.Step("Stream.triad", 200, -0.08, ("n007",))],
                changes=[years.Change(200, "kernel", "6.1.0-13")])

What is planted is known, so that a test can say what must be found. Node, run and noise are drawn
from the seed: the same call writes the same bytes. The system is that of fleets.write_site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fleets
import numpy as np

from siteproof.record import samples
from siteproof.record.samples import Header

BEGIN = datetime(2025, 11, 21, 2, tzinfo=UTC)  # of 365 daily runs the last is on 20 November
LASTS = timedelta(minutes=15)
UNLIKE = 0.5  # of a metric's noise: how far nodes differ from each other for good


@dataclass(frozen=True)
class Figure:
    """A metric. cv: standard deviation of the logarithm from run to run."""

    metric: str
    unit: str
    level: float
    cv: float

    @property
    def check(self) -> str:
        return self.metric.partition(".")[0]


FIGURES = (
    Figure("Stream.triad", "MB/s", 181_000, 0.01),
    Figure("Stream.copy", "MB/s", 176_000, 0.01),
    Figure("Hpl.gflops", "GFLOPS", 2_450, 0.008),
    Figure("RandomIo.read", "MB/s", 410, 0.03),
    Figure("RandomIo.write_iops", "IOPS", 61_000, 0.05),
    Figure("IorSingle.write", "MiB/s", 1_900, 0.04),
    Figure("Stream.scale", "MB/s", 170_000, 0.01),
    Figure("Stream.add", "MB/s", 180_000, 0.01),
    Figure("Hpl.time", "s", 312, 0.008),
    Figure("RandomIo.write", "MB/s", 240, 0.03),
    Figure("RandomIo.read_iops", "IOPS", 104_000, 0.04),
    Figure("IorSingle.read", "MiB/s", 2_700, 0.04),
    Figure("BlockStorage.read", "MB/s", 820, 0.03),
    Figure("BlockStorage.write", "MB/s", 610, 0.03),
    Figure("Mdtest.create", "IOPS", 9_100, 0.05),
    Figure("Mdtest.stat", "IOPS", 42_000, 0.05),
    Figure("Mdtest.remove", "IOPS", 8_300, 0.05),
    Figure("Lnet.read", "MB/s", 11_200, 0.02),
    Figure("Lnet.write", "MB/s", 10_800, 0.02),
    Figure("Mdtest.read", "IOPS", 30_000, 0.05),
)
ORDINARY = tuple(f.metric for f in FIGURES[:6])
ALL = tuple(f.metric for f in FIGURES)
PROGRAMS = {
    "Stream": "stream",
    "Hpl": "xhpl",
    "RandomIo": "fio",
    "IorSingle": "ior",
    "BlockStorage": "dd",
    "Mdtest": "mdtest",
    "Lnet": "lst",
}
PROVENANCE = {
    "suite": "0123456789ab",
    "reframe": "4.10.4",
    "user": "ops",
    "login": "login1",
    "kernel": "6.1.0-12",
    "processor": "AMD EPYC 9354",
    "software_lock": "aaaa1111",
}


@dataclass(frozen=True)
class Step:
    """From run `run` on (to `last`, if given) the level differs by a share. nodes: all if none."""

    metric: str
    run: int
    by: float
    nodes: Sequence[str] = ()
    last: int | None = None


@dataclass(frozen=True)
class Drift:
    """The level changes by a share a year of 365 runs, evenly. nodes: all if none."""

    metric: str
    a_year: float
    nodes: Sequence[str] = ()


@dataclass(frozen=True)
class Season:
    """The level swings by a share to either side. period: in days, 7 for weekdays."""

    metric: str
    by: float
    period: float = 7.0


@dataclass(frozen=True)
class Scatter:
    """From run `run` on the noise is so many times as large. nodes: all if none."""

    metric: str
    run: int
    times: float
    nodes: Sequence[str] = ()


@dataclass(frozen=True)
class Gap:
    """The runs from first to last lack a metric ('' for every one) on nodes (all if none).

    status: of the failure that is kept in its place; without it there is no line at all.
    """

    first: int
    last: int
    nodes: Sequence[str] = ()
    metric: str = ""
    status: str = ""


@dataclass(frozen=True)
class Change:
    """From run `run` on the headers say another text. where: provenance or conditions.

    check: one whose conditions change; all if none.
    """

    run: int
    key: str
    text: str
    where: str = "provenance"
    check: str = ""


def names(count: int) -> list[str]:
    """The nodes."""
    return fleets.names(count)


def time_of(run: int, every: timedelta = timedelta(days=1)) -> datetime:
    """When the jobs of a run ended."""
    return BEGIN + run * every + LASTS


def session_of(run: int, every: timedelta = timedelta(days=1)) -> str:
    """The name of a run's session."""
    return f"{BEGIN + run * every:%Y%m%dT%H%M%SZ}-{run:07x}"


def write(
    perflogs: Path,
    system: str = "here",
    nodes: int = 320,
    runs: int = 365,
    metrics: Sequence[str] = ORDINARY,
    seed: int = 1,
    *,
    first: int = 0,
    steps: Sequence[Step] = (),
    drifts: Sequence[Drift] = (),
    seasons: Sequence[Season] = (),
    scatters: Sequence[Scatter] = (),
    gaps: Sequence[Gap] = (),
    changes: Sequence[Change] = (),
    slow: Mapping[str, float] | None = None,
    campaigns: Mapping[int, str] | None = None,
    partition: str = "compute",
    environment: str = "system",
    mode: str = "maintenance",
    every: timedelta = timedelta(days=1),
) -> list[Path]:
    """Write a session a run, a file a check, and give the paths in order of time.

    slow: nodes that lack a share of every rate all the time. campaigns: by run.
    first: the first run that is written; later runs have the same values as without it.
    """
    known = {f.metric: f for f in FIGURES}
    figures = [known[metric] for metric in metrics]
    plan = steps, drifts, seasons, scatters, slow or {}, every
    values = {f.metric: _values(f, names(nodes), runs, seed, *plan) for f in figures}
    missing = [(gap, frozenset(gap.nodes or names(nodes))) for gap in gaps]
    written = []
    for run in range(first, runs):
        for check in dict.fromkeys(f.check for f in figures):
            head = _header(
                system,
                check,
                run,
                every,
                changes,
                partition=partition,
                environment=environment,
                mode=mode,
                campaign=(campaigns or {}).get(run, ""),
                expected=fleets.node_set(nodes),
            )
            mine = [f for f in figures if f.check == check]
            lines = _lines(names(nodes), mine, run, values, missing)
            if lines:
                path = samples.path_of(perflogs, head)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(samples.dump(head, []) + lines)
                written.append(path)
    return written


def _values(
    figure: Figure,
    nodes: Sequence[str],
    runs: int,
    seed: int,
    steps: Sequence[Step],
    drifts: Sequence[Drift],
    seasons: Sequence[Season],
    scatters: Sequence[Scatter],
    slow: Mapping[str, float],
    every: timedelta,
) -> np.ndarray:
    """A figure's values, one row a run and one column a node."""
    digest = [seed, *figure.metric.encode()]
    of_nodes, of_runs = (np.random.default_rng([part, *digest]) for part in (1, 2))
    own = of_nodes.standard_normal(len(nodes)) * figure.cv * UNLIKE
    noise = of_runs.standard_normal((runs, len(nodes))) * figure.cv
    place = {node: number for number, node in enumerate(nodes)}
    for scatter in (s for s in scatters if s.metric == figure.metric):
        noise[scatter.run :, [place[n] for n in scatter.nodes or nodes]] *= scatter.times
    values: np.ndarray = figure.level * np.exp(own + noise)
    days = np.arange(runs) * (every / timedelta(days=1))
    for node, lack in slow.items():
        values[:, place[node]] *= 1 / (1 - lack) if figure.unit == "s" else 1 - lack
    for step in (s for s in steps if s.metric == figure.metric):
        last = runs if step.last is None else step.last + 1
        values[step.run : last, [place[n] for n in step.nodes or nodes]] *= 1 + step.by
    for drift in (d for d in drifts if d.metric == figure.metric):
        which = [place[n] for n in drift.nodes or nodes]
        values[:, which] *= (1 + drift.a_year * np.arange(runs) / 365)[:, None]
    for season in (s for s in seasons if s.metric == figure.metric):
        values *= 1 + season.by * np.sin(2 * np.pi * days / season.period)[:, None]
    return values


def _header(
    system: str, check: str, run: int, every: timedelta, changes: Sequence[Change], **words: str
) -> Header:
    conditions, provenance = {"program": PROGRAMS[check]}, dict(PROVENANCE)
    for change in changes:
        if run >= change.run and change.check in ("", check):
            (provenance if change.where == "provenance" else conditions)[change.key] = change.text
    moment = time_of(run, every).isoformat(timespec="seconds")
    return Header(
        session=session_of(run, every),
        system=system,
        check=check,
        job=str(1000 + run),
        time=moment,
        conditions=conditions,
        provenance=provenance,
        **words,
    )


def _lines(
    nodes: Sequence[str],
    figures: Sequence[Figure],
    run: int,
    values: Mapping[str, np.ndarray],
    missing: Sequence[tuple[Gap, frozenset[str]]],
) -> bytes:
    now = [(gap, lost) for gap, lost in missing if gap.first <= run <= gap.last]
    rows = sorted((f.metric, f.unit, values[f.metric][run].tolist()) for f in figures)
    told = []
    for place, node in enumerate(nodes):
        for metric, unit, held in rows:
            gap = next((g for g, lost in now if g.metric in ("", metric) and node in lost), None)
            if gap is None:
                told.append(
                    f'{{"node":"{node}","metric":"{metric}","value":"{held[place]:.2f}",'
                    f'"unit":"{unit}"}}\n'
                )
            elif gap.status:
                told.append(
                    f'{{"node":"{node}","metric":"{metric}","status":"{gap.status}",'
                    f'"why":"planted"}}\n'
                )
    return "".join(told).encode()
