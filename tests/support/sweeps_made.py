"""Made-up sweeps: a site with file systems, a sweep file, and samples of its points."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from fleets import header

from siteproof.record.samples import Sample
from siteproof.sweeps import reading

SYSTEM = """\
system: here
description: A system for tests of sweeps
recognise: {fallback: true}
hardware:
  blade: {nics: {em1: {speed: 10 Gb/s}, em2: {speed: 10 Gb/s}}}
  server: {nics: {em1: {speed: 40 Gb/s}}}
nodes:
  compute: {set: 'n[001-166]', hardware: blade}
  storage: {set: 's[1-2]', hardware: server}
parameters:
  compute: {bond: {bond0: {members: [em1, em2]}}}
file_systems:
  scratch: {path: /scratch, kind: lustre, shared: true, servers: storage, roles: [compute]}
  work: {path: /work, kind: xfs}
partitions:
  compute: {description: All, role: compute, scheduler: slurm, environments: [system]}
environments:
  system: {description: Installed}
links:
  wan: {description: Far away, partition: compute, servers: n001, clients: n002, speed: 10 Gb/s,
        round_trip: 50 ms}
"""
TASKS = """\
description: Rates against tasks
tool: ior
axes:
  - {tasks: [1, 2, 4, 8, 16, 32, 64, 128, 166], tasks_per_node: [1]}
  - {tasks: [332], tasks_per_node: [2]}
  - {tasks: [498], tasks_per_node: [3]}
fixed: {api: POSIX, layout: file_a_task, transfer: 1 MiB, block: 1 GiB}
against: tasks
lines: tasks_per_node
repetitions: 3
point_limit: 5m
"""
FIXED = {"api": "POSIX", "layout": "file_a_task", "transfer": "1048576", "block": "1073741824"}
Rate = Callable[[int, int], float]  # of tasks and tasks a node, MiB/s


def write_site(folder: Path, criteria: str = "{}\n") -> Path:
    """A site named `here`."""
    where = folder / "here"
    where.mkdir(parents=True, exist_ok=True)
    (where / "system.yaml").write_text(SYSTEM)
    (where / "criteria.yaml").write_text(criteria)
    (where / "baselines.yaml").write_text("{}\n")
    return folder


def write_sweep(
    folder: Path, monkeypatch, text: str = TASKS, name: str = "made_tasks"
) -> reading.SweepFile:
    """A sweep file in a folder of the user's own, as it is read."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
    monkeypatch.setenv(reading.VARIABLE, str(folder))
    found, documents = reading.examine()
    assert name in found, [m for d in documents for m in d.mistakes]
    return found[name]


def of(
    file: reading.SweepFile,
    figures: Mapping[str, Rate],
    run: int = 1,
    cv: float = 0.0,
    points: Sequence[int] | None = None,
    **keys,
) -> list[Sample]:
    """The samples of a session: each figure (Ior.write) at each point, with noise; MiB/s.

    points: the numbers of those that were measured; all, if not given.
    """
    chance = random.Random(run)
    head = job(file, run, **keys)
    return [
        Sample(
            head,
            "",
            metric,
            Decimal(f"{rate(p.tasks, p.tasks_per_node) * noise:.2f}"),
            "MiB/s",
            trial=p.trial,
            dims=p.own_dims,
        )
        for number, p in enumerate(file.points, 1)
        if points is None or number in points
        for noise in [chance.gauss(1, cv)]
        for metric, rate in figures.items()
    ]


def failed(
    file: reading.SweepFile, number: int, status: str = "timeout", run: int = 1, **keys
) -> Sample:
    """A point that gave no figure."""
    point = file.points[number - 1]
    return Sample(
        job(file, run, **keys),
        "",
        "Ior.*",
        status=status,
        why="because",
        trial=point.trial,
        dims=point.own_dims,
    )


def job(file: reading.SweepFile, run: int = 1, place: str = "scratch", resumes: int = 0, **keys):
    """The header of a job of the sweep."""
    conditions = {
        "sweep": file.name,
        "sweep_hash": file.hash,
        "program": "ior",
        "file_system": place,
        **FIXED,
    }
    if resumes:
        keys = {"provenance": {"resumes": f"s{resumes:04}"}, **keys}
    return header(run, "Ior", **{"conditions": conditions, **keys})


def times(sample: Sample, factor: float) -> Sample:
    """The same sample with another value."""
    return replace(sample, value=Decimal(f"{float(sample.number) * factor:.2f}"))


def over_link(file: reading.SweepFile, rate: Callable[[int], float]) -> list[Sample]:
    """Samples of TCP over the link wan; rate: of a window, in b/s."""
    head = header(
        1,
        "TcpSweep",
        conditions={
            "sweep": file.name,
            "sweep_hash": file.hash,
            "program": "iperf3",
            "link": "wan",
            "streams": "1",
        },
    )
    return [
        Sample(
            head,
            "",
            "TcpSweep.rate",
            Decimal(f"{rate(int(p.values['window'])) / 1e9:.6f}"),
            "Gb/s",
            trial=p.trial,
            dims=p.own_dims,
        )
        for p in file.points
    ]


def messages(file: reading.SweepFile, sizes: Sequence[int]) -> list[Sample]:
    """Samples of MPI messages of several sizes, all of one point."""
    head = header(1, "MessageSweep", conditions={"sweep": file.name, "sweep_hash": file.hash})
    dims = file.points[0].own_dims
    found = []
    for size in sizes:
        took, own = 2 + size / 1000, {**dims, "size": str(size)}
        for name, unit, value in (("latency", "us", took), ("bandwidth", "MB/s", size / took)):
            found.append(
                Sample(head, "", f"MessageSweep.{name}", Decimal(f"{value:.3f}"), unit, dims=own)
            )
    return found
