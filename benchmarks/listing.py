"""CPU that `reframe -c checks/ -l` takes, compared with ReFrame with nothing to load, in one run.

python3 benchmarks/listing.py [--rounds 7]
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from measuring import (
    REFRAME,
    TOP,
    clean_environment,
    main,
    measure,
    must,
    ours,
    parser,
    table,
    temporary_folder,
)

AIM = 1.5  # seconds of CPU
SITES = ("thishost", "jetstream-iu")
BARE = "ReFrame, no check, built-in settings"


def benchmark() -> None:
    """Measure in turns, and print medians."""
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=7, help="of each, in turns (7)")
    rounds = max(1, options.parse_args().rounds)
    with temporary_folder() as folder:
        taken = {name: [] for name in (BARE, *SITES)}
        for turn in range(rounds + 1):
            for name in taken:
                cpu = listing(folder, name)
                if turn:  # the first one fills the caches
                    taken[name].append(cpu)
    bare = median(taken[BARE])
    rows = [
        [
            name,
            f"{median(cpu):.2f} s",
            f"{min(cpu):.2f} to {max(cpu):.2f}",
            f"{median(cpu) / bare:.1f} x",
            "" if name == BARE else f"{AIM} s",
        ]
        for name, cpu in taken.items()
    ]
    print(table(["listing the checks", "CPU", "range", "of bare", "aim"], rows))


def listing(folder: Path, name: str) -> float:
    """CPU seconds of one listing: of a site's checks, or of an empty folder."""
    log = folder / "log"
    if name == BARE:
        (folder / "empty").mkdir(exist_ok=True)
        command = [REFRAME, "-c", folder / "empty", "-l"]
        env = clean_environment(folder)
    else:
        command = [REFRAME, "-c", TOP / "checks", "-l", "--system", name]
        env = ours(folder)
    return must(measure(command, env, log), log, f"listing of {name}").cpu


if __name__ == "__main__":
    main(benchmark)
