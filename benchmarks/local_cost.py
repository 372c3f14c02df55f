"""CPU of a local case: plain ReFrame, with the deprecation warnings silenced, and ours.

    python3 benchmarks/local_cost.py [--cases 100] [--rounds 5]

All three run the same trivial script and compare one figure with one reference, one case after
the other: where many cases wait for their turn, ReFrame logs each of them whenever it polls.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from measuring import (
    HERE,
    REFRAME,
    TOP,
    Cost,
    clean_environment,
    main,
    measure,
    must,
    ours,
    parser,
    table,
    temporary_folder,
)

AIM = 5.0  # ms of CPU a case over a bare check
STOCK, THRIFTY, OURS = "plain ReFrame", "plain, warnings silenced", "Siteproof"
NEEDED = ("checks", "siteproof", "site-config", "spack-envs", "reframe_settings.py")
POLLING = {"RFM_POLL_RATE_MAX": "20", "RFM_POLL_RATE_MIN": "20"}  # the same for all


@dataclass(frozen=True)
class Case:
    """CPU of one case in ms: all of it, and ReFrame's process alone."""

    cpu: float
    own: float

    @property
    def started(self) -> float:
        """What runs for the case: shell, script, and node.sh."""
        return self.cpu - self.own


def benchmark() -> None:
    """Measure in turns, and print medians."""
    options = parser(__doc__)
    options.add_argument("--cases", type=int, default=100, help="in one run of ReFrame (100)")
    options.add_argument("--rounds", type=int, default=5, help="of each, in turns (5)")
    given = options.parse_args()
    cases, rounds = max(1, given.cases), max(1, given.rounds)
    with temporary_folder() as folder:
        variants = make_variants(folder, cases)
        taken: dict[str, list[Case]] = {name: [] for name in variants}
        for _ in range(rounds):
            for name, (env, checks) in variants.items():
                taken[name].append(a_case(folder, env, checks, cases))
    tell(taken)


def make_variants(folder: Path, cases: int) -> dict[str, tuple[dict[str, str], Path]]:
    """Environment and check file of each variant."""
    plain = HERE / "plain"
    variables = {"BENCHMARK_CASES": cases, **POLLING}
    stock = clean_environment(
        folder, RFM_CONFIG_FILES=plain / "settings_local.py", RFM_PREFIX=folder, **variables
    )
    clone = copy_suite(folder / "clone")
    data = folder / "data"
    data.mkdir()
    return {
        STOCK: (stock, plain / "trivial.py"),
        THRIFTY: (stock | {"BENCHMARK_THRIFT": str(TOP)}, plain / "trivial.py"),
        OURS: (
            ours(data, clone, SITEPROOF_SYSTEM="thishost", **variables),
            clone / "checks" / "trivial" / "trivial.py",
        ),
    }


def copy_suite(clone: Path) -> Path:
    """The suite with one more check, as its catalogue must list it."""
    clone.mkdir()
    for name in NEEDED:
        if (TOP / name).is_dir():
            shutil.copytree(TOP / name, clone / name)
        else:
            shutil.copy(TOP / name, clone)
    source, target = HERE / "ours", clone / "checks" / "trivial"
    target.mkdir()
    shutil.copy(source / "trivial.py", target)
    shutil.copy(source / "trivial.sh", target)
    shutil.copy(source / "trivial_parser.py", clone / "siteproof" / "parsers" / "trivial.py")
    shutil.copy(source / "catalogue.yaml", target)
    append(source / "criteria.yaml", clone / "site-config" / "thishost" / "criteria.yaml")
    return clone


def append(source: Path, target: Path) -> None:
    """Add one file's text to another's."""
    with target.open("a", encoding="utf-8") as stream:
        stream.write(source.read_text(encoding="utf-8"))


def a_case(folder: Path, env: dict[str, str], checks: Path, cases: int) -> Case:
    """A run's CPU without that of the listing, divided by the cases."""
    listed = reframe(folder, env, checks, "-l")
    ran = reframe(folder, env, checks, "-r")
    return Case(1000 * (ran.cpu - listed.cpu) / cases, 1000 * (ran.own - listed.own) / cases)


def reframe(folder: Path, env: dict[str, str], checks: Path, action: str) -> Cost:
    """The cost of one ReFrame that must succeed."""
    log = folder / "log"
    command = [REFRAME, "-c", checks, "--exec-policy=serial", action]
    return must(measure(command, env, log), log, f"reframe -c {checks}")


def tell(taken: dict[str, list[Case]]) -> None:
    """The table, and the values of the aim; differences and ratios are medians over the rounds."""
    rows = []
    for name, cases in taken.items():
        cpu = [c.cpu for c in cases]
        ratio = median(c.own / p.own for c, p in zip(cases, taken[STOCK], strict=True))
        rows.append(
            [
                name,
                f"{median(cpu):.1f} ms",
                f"{min(cpu):.1f} to {max(cpu):.1f}",
                f"{median(c.own for c in cases):.1f} ms",
                f"{median(c.started for c in cases):.1f} ms",
                f"{ratio:.2f} x",
            ]
        )
    print(
        table(
            [
                "CPU of a local case",
                "all",
                "range",
                "ReFrame's process",
                "what it starts",
                "process of plain's",
            ],
            rows,
        )
    )
    print()
    for name in (STOCK, THRIFTY):
        pairs = list(zip(taken[OURS], taken[name], strict=True))
        print(
            f"{OURS} over {name} (aim {AIM:+.0f} ms): "
            f"{median(a.cpu - b.cpu for a, b in pairs):+.1f} ms in all, "
            f"{median(a.own - b.own for a, b in pairs):+.1f} ms in ReFrame's process, "
            f"{median(a.started - b.started for a, b in pairs):+.1f} ms of node.sh on the node"
        )


if __name__ == "__main__":
    main(benchmark)
