"""Made sites for the benchmarks of commands: many fleets in one site, measured for weeks.

A role is a fleet of its own, as nodes are compared within their role, and a system may have
thousands of roles: so one command judges thousands of fleets at once. Values are given as arrays;
what is written are sample files in the suite's own format, a file a run and check.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from measuring import TOP
from numpy.typing import NDArray

sys.path.insert(0, str(TOP / "tests/support"))

import years

from siteproof.record import samples
from siteproof.record.samples import Header

Floats = NDArray[np.float64]

END = datetime(2026, 6, 30, 2, tzinfo=UTC)  # of the newest run of each site
SYSTEM = """\
system: {system}
description: A site for benchmarks
recognise: {{fallback: true}}
nodes:
{roles}
partitions:
  all: {{description: All, role: {first}, scheduler: {scheduler}, environments: [system]}}
environments:
  system: {{description: Installed}}
{more}
"""
FIGURES = {figure.metric: figure for figure in years.FIGURES}
METRICS = tuple(metric for metric in years.ALL if metric != "Hpl.time")  # a loss is a rate's
PROVENANCE = years.PROVENANCE
COUNTS = ("Health.kernel_errors", "Health.throttled", "Health.oom_kills")
PROGRAMS = {**years.PROGRAMS, "Health": "sh"}


@dataclass
class MadeSite:
    """One site. times: when each run ended. roles: the nodes of each, in order.

    values: by metric, (runs, nodes), as factors of the metric's level, or counts; NaN: not
    measured. more: of system.yaml. links: the partition has all nodes, and Slurm, as links need it.
    """

    system: str
    times: list[datetime]
    roles: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, Floats] = field(default_factory=dict)
    more: str = ""
    links: bool = False
    campaigns: Mapping[int, str] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        """All nodes, role by role."""
        return [node for nodes in self.roles.values() for node in nodes]

    @property
    def series(self) -> int:
        """How many there are."""
        return len(self.nodes) * len(self.values)

    def add_role(self, name: str, count: int) -> slice:
        """A role of so many new nodes: their columns."""
        first = sum(map(len, self.roles.values()))
        self.roles[name] = [f"n{number:06}" for number in range(first, first + count)]
        return slice(first, first + count)

    def write(self, folder: Path, first: int = 0, last: int | None = None) -> None:
        """The site in folder/sites, its samples in folder/perflogs. first, last: runs."""
        self._write_site(folder / "sites" / self.system)
        heads = {metric: _line_heads(self.nodes, metric) for metric in self.values}
        by_check: dict[str, list[str]] = {}
        for metric in self.values:
            by_check.setdefault(metric.partition(".")[0], []).append(metric)
        for run in range(len(self.times))[first:last]:
            for check, metrics in by_check.items():
                lines = "".join(
                    _lines(heads[metric], metric, self.values[metric][run]) for metric in metrics
                )
                if lines:
                    head = self._header(run, check)
                    path = samples.path_of(folder / "perflogs", head)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(samples.dump(head, []) + lines.encode())

    def _write_site(self, where: Path) -> None:
        where.mkdir(parents=True, exist_ok=True)
        roles = "".join(
            f"  {role}: {{set: '{_set(nodes)}'}}\n" for role, nodes in self.roles.items()
        )
        first, scheduler = next(iter(self.roles)), "local"
        if self.links:
            first, scheduler = "everything", "slurm"
            roles += f"  {first}: {{set: '{_set(self.nodes)}', overlaps: {[*self.roles]}}}\n"
        text = SYSTEM.format(
            system=self.system, roles=roles, first=first, scheduler=scheduler, more=self.more
        )
        (where / "system.yaml").write_text(text)
        for name in ("criteria", "baselines"):
            (where / f"{name}.yaml").write_text("{}\n")

    def _header(self, run: int, check: str) -> Header:
        began = self.times[run] - timedelta(minutes=15)
        return Header(
            session=f"{began:%Y%m%dT%H%M%SZ}-{run:07x}",
            system=self.system,
            partition="all",
            environment="system",
            check=check,
            job=str(1000 + run),
            time=self.times[run].isoformat(timespec="seconds"),
            mode="maintenance",
            campaign=self.campaigns.get(run, ""),
            conditions={"program": PROGRAMS[check]},
            provenance=PROVENANCE,
            place=run + 1,
        )


def _set(nodes: Sequence[str]) -> str:
    return nodes[0] if len(nodes) == 1 else f"n[{nodes[0][1:]}-{nodes[-1][1:]}]"


def _line_heads(nodes: Sequence[str], metric: str) -> list[str]:
    return [f'{{"node":"{node}","metric":"{metric}","value":"' for node in nodes]


def _lines(heads: Sequence[str], metric: str, factors: Floats) -> str:
    figure = FIGURES.get(metric)
    unit, level = (figure.unit, figure.level) if figure else ("count", 1.0)
    tail = f'","unit":"{unit}"}}\n'
    return "".join(
        [
            f"{head}{value:.10g}{tail}"
            for head, value in zip(heads, (factors * level).tolist(), strict=True)
            if value == value  # NaN is not
        ]
    )


# ---- when runs are

DAY = timedelta(days=1)


def times(schedule: str, runs: int, chance: np.random.Generator) -> list[datetime]:
    """When so many runs ended, the last at END. schedule: one of SCHEDULES."""
    if schedule == "uneven":
        gaps = chance.exponential(1.0, runs - 1).clip(0.05, 6)
        return [END - DAY * float(gap) for gap in np.cumsum(gaps)[::-1]] + [END]
    if schedule == "weekdays":
        days = (END - n * DAY for n in range(2 * runs))
        return [day for day in days if day.weekday() < 5][:runs][::-1]
    step = DAY / int(schedule)
    return [END - n * step for n in range(runs)][::-1]


SCHEDULES = ("1", "2", "3", "4", "12", "uneven", "weekdays")


def hours(moments: Sequence[datetime]) -> Floats:
    """The hour of the day of each."""
    return np.array([m.hour + m.minute / 60 for m in moments])


def weekend(moments: Sequence[datetime]) -> Floats:
    """1 on Saturday and Sunday, else 0."""
    return np.array([float(m.weekday() >= 5) for m in moments])
