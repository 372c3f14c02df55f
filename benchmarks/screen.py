"""What 10,000 nodes would cost: 200,000 series of a year, screened, and what is flagged confirmed.

    .venv/bin/python benchmarks/screen.py [--series 200000] [--points 365] [--steps 633] [--seed 1]
        [--noise Gauss | --noise mixed]

So many of the series have one step of 3 to 8 robust sd, 15 runs or more from the ends. 2 % of the
values are gaps. `mixed`: all kinds of noise in equal parts. Making the series is not counted. CPU
seconds are of one thread; the peak memory is that of the process, with all series in it.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # before numpy

import resource
import time

import made_series as made
import numpy as np
from measuring import Misuse, main, parser

from siteproof.analysis import screen, shape

TOLERANCE = 5  # runs
GAPS = 0.02
SIZES = (3.0, 8.0)
PART = 10_000  # series made at a time
AIMS = "aims: 30 CPU seconds, 4 GiB"


def series(chance: np.random.Generator, count: int, points: int, noise: str) -> made.Floats:
    """All series, without steps."""
    values = np.empty((count, points))
    kinds = list(made.NOISES.values()) if noise == "mixed" else [made.NOISES[noise]]
    for number, begin in enumerate(range(0, count, PART)):
        size = min(PART, count - begin)
        part = made.stable(kinds[number % len(kinds)], chance, size, points)
        part[chance.random(part.shape) < GAPS] = np.nan
        values[begin : begin + size] = part
    return values


def plant(chance: np.random.Generator, values: made.Floats, count: int) -> dict[int, list[int]]:
    """Steps in so many of the series: where."""
    truth = {}
    for row in chance.choice(len(values), count, replace=False):
        truth[int(row)] = made.places(chance, values.shape[1], 1)
        size = chance.uniform(*SIZES) * chance.choice((-1, 1))
        values[row, truth[int(row)][0] :] += size
    return truth


def peak() -> float:
    """GiB that the process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def benchmark() -> None:
    """Print what it takes, and what it finds."""
    options = parser(__doc__)
    options.add_argument("--series", type=int, default=200_000, help="how many (200000)")
    options.add_argument("--points", type=int, default=365, help="runs of each (365)")
    options.add_argument("--steps", type=int, default=633, help="series with a step (633)")
    options.add_argument("--noise", default="Gauss", help="a kind, or mixed (Gauss)")
    options.add_argument("--seed", type=int, default=1, help="of all chance (1)")
    given = options.parse_args()
    if given.noise != "mixed" and given.noise not in made.NOISES:
        raise Misuse(f"no noise '{given.noise}'. Allowed: mixed, {', '.join(made.NOISES)}")
    if not 0 <= given.steps <= given.series or given.points <= 2 * made.APART:
        raise Misuse("too few series or runs. Allowed: --series 1000 --steps 10 --points 365")
    chance = np.random.default_rng(given.seed)
    values = series(chance, given.series, given.points, given.noise)
    truth = plant(chance, values, given.steps)
    values *= made.CV * made.LEVEL  # in place: a copy would be the peak
    values += made.LEVEL
    held = peak()
    shape.explain(None, values[0])  # the libraries are loaded
    begin = time.process_time()
    flagged = np.flatnonzero(screen.screen(values))
    screened = time.process_time()
    found = {int(row): shape.explain(None, values[row]).steps for row in flagged}
    ended = time.process_time()
    hits = sum(made.matched(found.get(row, []), where, TOLERANCE) for row, where in truth.items())
    false = sum(bool(where) for row, where in found.items() if row not in truth)
    more = sum(len(where) for row, where in found.items() if row in truth) - hits
    print(
        f"{given.series} series of {given.points} runs, {given.noise} noise, {GAPS:.0%} gaps, "
        f"seed {given.seed}; {AIMS}"
    )
    print(
        f"screen {screened - begin:.1f} s, {len(flagged)} flagged; search "
        f"{ended - screened:.1f} s; together {ended - begin:.1f} CPU seconds"
    )
    print(f"peak memory {peak():.2f} GiB, of which {held:.2f} GiB before the screen")
    print(
        f"{hits} of {len(truth)} steps found within {TOLERANCE} runs; alarms in {false} of "
        f"{given.series - len(truth)} series without a step; {more} wrong ones in the others"
    )


if __name__ == "__main__":
    main(benchmark)
