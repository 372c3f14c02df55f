"""A point of a sweep: what it costs beyond srun, and points in one job against a job a point.

    python3 benchmarks/sweep_point.py [--points 30]

Makes a test bed of 8 nodes, which needs root, and takes it away. A point starts `echo` as two
ranks on two nodes. In the first sweep each point also starts them with a bare srun, before or after
its own in turns, so that both have the same machine. Then the points again without that, in one
job of Siteproof's, and as tests of plain ReFrame, one job a point: one after the other, as points
on shared storage or a shared network have to be measured, and all at once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import fan_out
from fan_out import Bed, Run, passed_in, running
from local_cost import NEEDED, append
from measuring import (
    HERE,
    TOP,
    Misuse,
    clean_environment,
    main,
    ours,
    parser,
    table,
    temporary_folder,
)

NODES = 8
MOST = 1000  # points
AIM = "50 ms"
SWEEPS = {"paired": "yes", "points": "no"}
SWEEP = """\
description: Nothing
tool: trivial
axes: {{case: {cases}}}
fixed: {{tasks: 2, paired: {paired}}}
against: case
order: ascending
point_limit: 1m
"""


@dataclass(frozen=True)
class Point:
    """Times of one point in ms. whole: until the next point began."""

    bare: float
    launch: float
    whole: float

    @property
    def launch_beyond(self) -> float:
        """What Siteproof's way to start ranks takes beyond a bare srun."""
        return self.launch - self.bare

    @property
    def rest(self) -> float:
        """All else of a point: its folder, account and files, and the walk to the next one."""
        return self.whole - self.launch - self.bare

    @property
    def cost(self) -> float:
        """Of a point beyond a bare srun."""
        return self.launch_beyond + self.rest


def benchmark() -> None:
    """Both comparisons on one test bed."""
    options = parser(__doc__)
    options.add_argument("--points", type=int, default=30, help="of each sweep (30)")
    points = options.parse_args().points
    if not 2 <= points <= MOST:
        raise Misuse(f"--points {points}: a number from 2 to {MOST}")
    if os.geteuid() != 0:
        raise Misuse("the test bed needs root")
    with temporary_folder() as folder, running(Bed(NODES)) as bed:
        clone = copy_suite(folder / "clone", points)
        load = os.getloadavg()[0]
        sweep(bed, folder / "paired", clone, "Paired", points)
        tell_points(read_stamps(folder / "paired" / "stamps", points))
        sides = {"Siteproof, one job": sweep(bed, folder / "points", clone, "Points", points)}
        for name, policy in (("one after the other", "serial"), ("all at once", "async")):
            sides[f"plain, {name}"] = plain(bed, folder / policy, policy, points)
        tell_sides(sides, points)
        print(f"load average {load:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end")


def copy_suite(clone: Path, points: int) -> Path:
    """The suite with one more tool, and only the two sweeps of it."""
    clone.mkdir()
    for name in NEEDED:
        if (TOP / name).is_dir():
            shutil.copytree(TOP / name, clone / name)
        else:
            shutil.copy(TOP / name, clone)
    source, target = HERE / "ours" / "sweep", clone / "checks" / "trivial"
    target.mkdir()
    (target / "__init__.py").touch()
    for name in ("trivial_sweep.py", "trivial_sweep.sh", "catalogue.yaml"):
        shutil.copy(source / name, target)
    shutil.copy(HERE / "ours" / "trivial_parser.py", clone / "siteproof/parsers/trivial.py")
    append(source / "tool.py", clone / "siteproof" / "sweeps" / "tools.py")
    (clone / "sweeps").mkdir()
    shutil.copy(TOP / "sweeps" / "sweeps.py", clone / "sweeps")
    for name, paired in SWEEPS.items():
        text = SWEEP.format(cases=list(range(1, points + 1)), paired=paired)
        (clone / "sweeps" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return clone


def sweep(bed: Bed, folder: Path, clone: Path, test: str, points: int) -> Run:
    """One of the two sweeps."""
    stamps = folder / "stamps"
    stamps.mkdir(parents=True)
    env = ours(folder, clone, SITEPROOF_SYSTEM="testbed", BENCHMARK_STAMPS=stamps, PYTHONPATH=clone)
    fan_out.say(f"the sweep {test}")
    words = ["-c", str(clone / "sweeps"), "-n", f"^{test}", "-r"]
    return all_of(
        points, fan_out.run(bed, folder, env, words, lambda: answers_in(folder / "perflogs"))
    )


def answers_in(perflogs: Path) -> int:
    """How many points have a figure."""
    return sum(
        '"TrivialSweep.answer"' in line
        for path in perflogs.glob("*/*/*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    )


def plain(bed: Bed, folder: Path, policy: str, points: int) -> Run:
    """The same points, a test and a job each."""
    folder.mkdir()
    env = clean_environment(
        folder,
        RFM_CONFIG_FILES=HERE / "plain" / "settings_slurm.py",
        RFM_PREFIX=folder,
        BENCHMARK_CASES=points,
    )
    fan_out.say(f"plain ReFrame, {policy}, {fan_out.LIMIT // 60} min at most")
    words = ["-c", str(HERE / "plain" / "trivial_points.py"), f"--exec-policy={policy}", "-r"]
    return fan_out.run(bed, folder, env, words, lambda: passed_in(folder / "log"))


def all_of(points: int, run: Run) -> Run:
    """The run, if every point has a figure."""
    if run.nodes != points:
        raise Misuse(f"{run.nodes} of {points} points gave a figure")
    return run


def read_stamps(folder: Path, points: int) -> list[Point]:
    """The points' times; the last one has no point after it."""

    def at(case: int, name: str) -> float:
        return (folder / f"{case}.{name}").stat().st_mtime_ns / 1e6

    return [
        Point(
            at(case, "bare.end") - at(case, "bare.begin"),
            at(case, "launch.end") - at(case, "launch.begin"),
            at(case + 1, "begin") - at(case, "begin"),
        )
        for case in range(1, points)
    ]


def tell_points(points: Sequence[Point]) -> None:
    """Smallest, median and largest of each part."""
    parts = {
        "bare srun": [p.bare for p in points],
        "launch, beyond it": [p.launch_beyond for p in points],
        "the rest of the point": [p.rest for p in points],
        "point beyond a bare srun": [p.cost for p in points],
    }
    rows = [
        [
            name,
            *(f"{figure:.1f} ms" for figure in (min(part), median(part), max(part))),
            AIM if name.startswith("point") else "",
        ]
        for name, part in parts.items()
    ]
    print(table([f"{len(points)} points", "least", "median", "most", "aim"], rows), flush=True)
    print()


def tell_sides(sides: dict[str, Run], points: int) -> None:
    """One job against many."""
    rows = [
        ["wall time", *(f"{run.cost.wall:.1f} s" for run in sides.values())],
        ["  a point", *(f"{run.cost.wall / points:.2f} s" for run in sides.values())],
        ["CPU on the login node", *(f"{run.cost.cpu:.2f} s" for run in sides.values())],
        ["CPU of slurmctld", *(f"{run.daemons['slurmctld']:.2f} s" for run in sides.values())],
        ["CPU in the jobs", *(f"{run.in_jobs:.2f} s" for run in sides.values())],
        ["Slurm jobs", *(str(run.jobs) for run in sides.values())],
        ["Slurm client calls", *(str(run.client_calls) for run in sides.values())],
        ["points with a figure", *(str(run.nodes) for run in sides.values())],
    ]
    print(table([f"{points} points", *sides], rows))
    for name, run in sides.items():
        if run.cost.cut:
            print(f"{name}: cut off after {fan_out.LIMIT} s: its figures are too low")


if __name__ == "__main__":
    main(benchmark)
