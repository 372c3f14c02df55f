"""A made fleet of nodes with GPUs: a site, and samples in which single GPUs are bad."""

from __future__ import annotations

import random
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from clone import TOP
from fleets import header, names, node_set

from siteproof.record import samples
from siteproof.record.samples import Sample

RECOMPUTE = TOP / "siteproof/report/recompute.py"
CHECK = "GpuProbe"
METRIC = f"{CHECK}.gflops"
SYSTEM = """\
system: here
description: A fleet with GPUs
recognise: {{fallback: true}}
checks: ["{own}"]
hardware:
  gpus: {{devices: {{gpu: {{count: {count}}}}}}}
nodes:
  compute: {{set: '{nodes}', hardware: gpus}}
partitions:
  compute: {{description: All, role: compute, scheduler: local, environments: [system]}}
environments:
  system: {{description: Installed}}
"""
CATALOGUE = f"""\
{METRIC}:
  description: Matrix product of a GPU
  check: {CHECK}
  file: gpu_probe.py
  unit: GFLOPS
  better: higher
  headline: true
  point: [gpu]
{CHECK}.transfer:
  description: Bandwidth from a GPU to another one of its node
  check: {CHECK}
  file: gpu_probe.py
  unit: GB/s
  better: higher
  point: [gpu, peer_gpu]
"""
CHECKS = f"""\
import reframe as rfm


@rfm.simple_test
class {CHECK}(rfm.RunOnlyRegressionTest):
    pass
"""
CRITERIA = f"""\
GPU-PRODUCT: {{description: Every GPU computes, metric: {METRIC}, subject: gpu,
  at_least: 17000 GFLOPS, source: contract, max_age: none}}
"""
Values = Mapping[str, Decimal | str | None]  # by GPU: a value, the status of a failure, or nothing


def write_site(
    top: Path, nodes: int = 40, count: int = 8, criteria: str = CRITERIA, waivers: str = ""
) -> Path:
    """The folder of sites, with one named `here`, and its own checks next to it."""
    own, where = top / "own", top / "sites" / "here"
    own.mkdir(parents=True, exist_ok=True)
    where.mkdir(parents=True, exist_ok=True)
    (own / "catalogue.yaml").write_text(CATALOGUE)
    (own / "gpu_probe.py").write_text(CHECKS)
    (where / "system.yaml").write_text(SYSTEM.format(own=own, nodes=node_set(nodes), count=count))
    (where / "criteria.yaml").write_text(criteria)
    (where / "baselines.yaml").write_text("{}\n")
    if waivers:
        (where / "waivers.yaml").write_text(waivers)
    return top / "sites"


def even(nodes: int = 40, count: int = 8, seed: int = 1, **different: object) -> dict[str, object]:
    """Each GPU by its unit, alike but for 0.5 % of noise. different: by `n017_gpu3`."""
    noise = random.Random(seed)
    units = [f"{node} gpu{gpu}" for node in names(nodes) for gpu in range(count)]
    found: dict[str, object] = {unit: Decimal(f"{noise.gauss(19000, 95):.1f}") for unit in units}
    return found | {name.replace("_", " "): value for name, value in different.items()}


def run_of(values: Values, run: int = 1, metric: str = METRIC, **keys: object) -> list[Sample]:
    """One session. None: the GPU has no line; a text: the status of its failure."""
    units = list(values)
    expected = ",".join(dict.fromkeys(unit.partition(" ")[0] for unit in units))
    head = header(run, CHECK, **{"conditions": {}, "expected": expected, "place": run, **keys})
    found = []
    for unit, value in values.items():
        node, _, gpu = unit.partition(" gpu")
        dims = {"gpu": gpu} if gpu else {}
        if isinstance(value, Decimal):
            found.append(Sample(head, node, metric, value, "GFLOPS", dims=dims))
        elif value is not None:
            why = "the product is wrong"
            found.append(Sample(head, node, f"{CHECK}.*", status=value, why=why, dims=dims))
    return found


def fleet() -> list[list[Sample]]:
    """Three sessions: a GPU of n017 is slow; in the last n005 lacks one, n009 has a wrong one."""
    slow = Decimal("16300.0")
    before = [run_of(even(seed=run, n017_gpu3=slow), run) for run in (1, 2)]
    last = run_of(even(seed=3, n017_gpu3=slow, n005_gpu7=None, n009_gpu2="invalid"), 3)
    return [*before, last]


def keep(perflogs: Path, sessions: list[list[Sample]]) -> None:
    for found in sessions:
        samples.write(perflogs, found[0].header, found)
