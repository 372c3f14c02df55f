"""Which slow nodes are named, and how many healthy ones: made fleets of which the truth is known.

    .venv/bin/python benchmarks/slow_nodes.py [--nodes 320] [--fleets 20] [--own 0.5] [--seed 1]

Siteproof is the rule that `siteproof nodes` and the gate use (siteproof/nodes/speeds.py), on three
runs of each node. *New*: the nodes have no past, as at an acceptance, and the bad ones have always
been bad. *Past*: each node has ten earlier runs, in which all were healthy. Beside it, on the
newest run alone: a node is bad that is 3 standard deviations below the mean, or that the test of
Grubbs (one side, 5 %, repeated without the outlier as long as there is one) names.

Noise is normal. `--own` is the share of its variance that a node keeps in all its runs; the rest is
drawn anew for each run. Recall: share of the bad nodes named. False: healthy nodes named, a fleet.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # before numpy

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from measuring import Misuse, main, parser, table
from numpy.typing import NDArray

from siteproof.analysis.slow_nodes import RETESTS, State, level
from siteproof.nodes.courses import Course
from siteproof.nodes.speeds import InSeries
from siteproof.record.series import JobValue, Series

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CVS = (0.01, 0.02, 0.04)
DEFICITS = (0.04, 0.06, 0.10)
SHARES = (0.02, 0.05, 0.10, 0.20, 0.35)
EARLIER = 10  # runs before what is judged
LEVEL = 100.0
GRUBBS = 0.05  # chance of naming a node of a healthy fleet
AIM = "aim of Siteproof at a CV of 1 %, -6 %, 10 % bad: recall .9, false 0.5"
KEY = Series("Stream.triad", (), "system", "compute", ())


@dataclass(frozen=True)
class Fleet:
    """runs, past: (nodes, runs). bad: which nodes are."""

    runs: Floats
    past: Floats
    bad: Bools


def fleet(
    chance: np.random.Generator, nodes: int, cv: float, deficit: float, share: float, own: float
) -> Fleet:
    """One made fleet."""
    mine = chance.standard_normal((nodes, 1)) * sqrt(own)
    noise = chance.standard_normal((nodes, EARLIER + RETESTS)) * sqrt(1 - own)
    values = LEVEL * (1 + cv * (mine + noise))
    bad = np.zeros(nodes, dtype=bool)
    bad[chance.choice(nodes, round(share * nodes), replace=False)] = True
    values[bad, EARLIER:] *= 1 - deficit
    return Fleet(values[:, EARLIER:], values[:, :EARLIER], bad)


def siteproof(runs: Floats, past: Floats) -> Bools:
    """The rule of nodes and gate."""
    levels = {str(node): level(row) for node, row in enumerate(past.tolist())}
    values = np.hstack((past, runs)) if past.size else runs
    days = [f"2026-11-{1 + day:02}T00:00:00+00:00" for day in range(values.shape[1])]
    now = days[-runs.shape[1] :]
    rows = {str(node): node for node in range(len(runs))}
    course = Course(rows, days, days, values, values.shape[1] - runs.shape[1])
    places = InSeries(KEY, "higher", _runs(runs, now), levels, course).places()
    slow = {node for node, place in places if place.state is State.SLOW}
    return np.array([str(node) in slow for node in range(len(runs))])


def _runs(values: Floats, days: list[str]) -> dict[str, list[JobValue]]:
    return {
        str(node): [
            JobValue(0, day, day, "1", value, "MB/s") for day, value in zip(days, row, strict=True)
        ]
        for node, row in enumerate(values.tolist())
    }


def far_below_mean(newest: Floats) -> Bools:
    """Mean minus three standard deviations."""
    return newest < newest.mean() - 3 * newest.std(ddof=1)


def grubbs(newest: Floats) -> Bools:
    """The test of Grubbs for the lowest value, again and again."""
    from scipy.stats import t

    named = np.zeros(newest.size, dtype=bool)
    while (n := int((~named).sum())) > 2:
        left = newest[~named]
        lowest = int(np.flatnonzero(~named)[np.argmin(left)])
        limit = float(t.isf(GRUBBS / n, n - 2))
        least = (n - 1) / sqrt(n) * sqrt(limit**2 / (n - 2 + limit**2))
        if (left.mean() - newest[lowest]) / left.std(ddof=1) <= least:
            break
        named[lowest] = True
    return named


RULES: dict[str, Callable[[Fleet], Bools]] = {
    "new": lambda f: siteproof(f.runs, np.empty((0, 0))),
    "past": lambda f: siteproof(f.runs, f.past),
    "mean - 3 sd": lambda f: far_below_mean(f.runs[:, -1]),
    "Grubbs": lambda f: grubbs(f.runs[:, -1]),
}


def rows(chance: np.random.Generator, nodes: int, fleets: int, own: float) -> Iterator[list[str]]:
    """A row a fleet's kind: recall and false nodes of each rule."""
    for cv in CVS:
        for deficit, share in ((0.0, 0.0), *((d, s) for d in DEFICITS for s in SHARES)):
            made = [fleet(chance, nodes, cv, deficit, share, own) for _ in range(fleets)]
            cells = []
            for rule in RULES.values():
                named = [(rule(one), one.bad) for one in made]
                false = sum(int((told & ~bad).sum()) for told, bad in named) / fleets
                bad = sum(int(bad.sum()) for _, bad in named)
                right = sum(int((told & bad).sum()) for told, bad in named)
                cells += [f"{right / bad:.2f}" if bad else "-", f"{false:.2f}"]
            yield [f"{cv:.0%}", f"{-deficit:.0%}" if share else "-", f"{share:.0%}", *cells]


def benchmark() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, default=320, help="of a fleet (320)")
    options.add_argument("--fleets", type=int, default=20, help="of each kind (20)")
    options.add_argument("--own", type=float, default=0.5, help="a node's own variance (0.5)")
    options.add_argument("--seed", type=int, default=1, help="of all chance (1)")
    given = options.parse_args()
    if not 0 <= given.own <= 1 or given.nodes < 8:
        raise Misuse("--own is a share, --nodes 8 or more. Allowed: --own 0.5 --nodes 320")
    print(
        f"{max(1, given.fleets)} fleets of {given.nodes} nodes of each kind, own variance "
        f"{given.own:.0%}, seed {given.seed}; {AIM}\n"
    )
    begin = time.process_time()
    head = [
        "CV",
        "deficit",
        "bad",
        *(f"{name}: {what}" for name in RULES for what in ("recall", "false")),
    ]
    chance = np.random.default_rng(given.seed)
    print(table(head, list(rows(chance, given.nodes, max(1, given.fleets), given.own))))
    print(f"\n{time.process_time() - begin:.0f} CPU seconds")


if __name__ == "__main__":
    main(benchmark)
