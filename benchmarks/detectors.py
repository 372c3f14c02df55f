"""How often the detectors are right, on made series of which the truth is known.

    .venv/bin/python benchmarks/detectors.py [--series 200] [--points 30,100,365,1000] [--seed 1]
        [--peers PYTHON]…

Steps: 1 to 3 a series, each of k robust sd up or down, 15 runs or more apart and from the ends. A
step counts as found by a change point at most 5 runs away. Siteproof is what its trend does: the
screen, and the search in what it flags. Four times as many series have no step.

`--peers` runs asv's and Apache Otava's step detection on the same series, each in a Python of its
own, as both want other libraries than Siteproof:

    python3.11 -m venv /var/tmp/asv && /var/tmp/asv/bin/pip install asv==0.6.6
    python3.11 -m venv /var/tmp/otava && /var/tmp/otava/bin/pip install apache-otava==0.8.0
    .venv/bin/python benchmarks/detectors.py --peers /var/tmp/asv/bin/python \
        --peers /var/tmp/otava/bin/python --series 40

CPU seconds are of one thread.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # before numpy

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import made_series as made
import numpy as np
from measuring import Misuse, main, parser, table

from siteproof.analysis import drift, screen, season, shape

TOLERANCE = 5  # runs
SIZES = (3, 5)  # robust sd of a step
STABLE = 4  # times as many series without a step
AIMS = "aims: F1 .95 at k = 5, 1 % of the stable series alarmed"
OURS = "Siteproof"
HERE = Path(__file__).resolve().parent


@dataclass
class Score:
    """What one detector made of one kind of series. cpu: seconds of all series."""

    right: int = 0
    found: int = 0
    true: int = 0
    alarmed: int = 0
    series: int = 0
    cpu: float = 0.0
    of: list[list[int]] = field(default_factory=list)

    def add(self, found: list[int], truth: list[int]) -> None:
        """One series."""
        self.right += made.matched(found, truth, TOLERANCE)
        self.found, self.true = self.found + len(found), self.true + len(truth)
        self.alarmed, self.series = self.alarmed + bool(found), self.series + 1

    @property
    def f1(self) -> str:
        """Harmonic mean of precision and recall."""
        return f"{2 * self.right / max(1, self.found + self.true):.3f}"

    @property
    def alarms(self) -> str:
        """Share of series with a step found."""
        return f"{self.alarmed / self.series:.2%}"

    @property
    def each(self) -> str:
        """Milliseconds a series."""
        return f"{1000 * self.cpu / self.series:.2f}"


Scores = dict[str, Score]


class Trials:
    """Detectors on the same series."""

    def __init__(self, count: int, seed: int, peers: Sequence[Path]) -> None:
        self.count, self.seed, self.peers = count, seed, peers

    def chance(self, *words: object) -> np.random.Generator:
        """The same numbers for the same words."""
        return np.random.default_rng([self.seed, *" ".join(map(str, words)).encode()])

    def steps(self, name: str, points: int, size: float) -> Scores:
        """Series with steps; of size 0: without."""
        chance = self.chance(name, points, size)
        count = self.count if size else STABLE * self.count
        values = made.stable(made.NOISES[name], chance, count, points)
        truth = made.with_steps(values, size, chance) if size else [[] for _ in values]
        values = made.measured(values)
        scores: Scores = {}
        for detector, cpu, row, found in self._found(values):
            score = scores.setdefault(detector, Score())
            score.cpu += cpu
            score.add(found, truth[row])
        return scores

    def _found(self, values: made.Floats) -> Iterator[tuple[str, float, int, list[int]]]:
        begin = time.process_time()
        flagged = screen.screen(values)
        share = (time.process_time() - begin) / len(values)
        for row, series in enumerate(values):
            begin = time.process_time()
            found = shape.explain(None, series).steps if flagged[row] else []
            yield OURS, share + time.process_time() - begin, row, found
        for python in self.peers:
            yield from peer(python, values)


def peer(python: Path, values: made.Floats) -> Iterator[tuple[str, float, int, list[int]]]:
    """What the detectors of another Python find."""
    lines = "\n".join(json.dumps(row.tolist()) for row in values)
    done = subprocess.run(
        [python, HERE / "peer_steps.py"], input=lines, text=True, capture_output=True, check=False
    )
    if done.returncode or not done.stdout:
        last = done.stderr.strip().splitlines()[-1:] or ["neither asv nor Otava in it"]
        raise Misuse(f"{python}: {last[0]}")
    rows: Counter[str] = Counter()
    for line in done.stdout.splitlines():
        name, cpu, found = json.loads(line)
        yield name, cpu, rows[name], found
        rows[name] += 1


def found_steps(trials: Trials, lengths: Sequence[int]) -> None:
    """A row a kind of noise, length and detector."""
    rows = []
    for points in lengths:
        for name in made.NOISES:
            by_size = [trials.steps(name, points, size) for size in (*SIZES, 0)]
            for detector in by_size[0]:
                *stepped, stable = (scores[detector] for scores in by_size)
                rows.append(
                    [
                        name,
                        str(points),
                        detector,
                        *(score.f1 for score in stepped),
                        stable.alarms,
                        stepped[-1].each,
                        stable.each,
                    ]
                )
    head = [
        "noise",
        "runs",
        "by",
        *(f"F1, k={k}" for k in SIZES),
        "stable alarmed",
        "ms with steps",
        "ms stable",
    ]
    print(f"Steps, found within {TOLERANCE} runs; {AIMS}\n\n{table(head, rows)}\n", flush=True)


# ---- drift, season and modes, each called by its name

Change = Callable[[made.Floats, np.random.Generator], made.Floats]  # times and chance to sd


def of_line(size: float) -> Change:
    """A straight line over the whole time."""
    return lambda times, _: size * (times - times[0]) / (times[-1] - times[0])


def of_weekend(size: float) -> Change:
    """Saturday and Sunday are lower."""
    return lambda times, _: -size * np.isin((times // made.DAY + 3) % 7, (5, 6))


def of_year(size: float) -> Change:
    """A sine of a year, of so much from its lowest to its highest."""
    return lambda times, chance: (
        size / 2 * np.sin(2 * np.pi * (times / drift.YEAR + chance.random()))
    )


def of_flips(size: float, stay: int) -> Change:
    """Two levels; each is left after so many runs on average."""
    return lambda times, chance: size * (np.cumsum(chance.random(times.size) < 1 / stay) % 2)


def nothing(times: made.Floats, _: np.random.Generator) -> made.Floats:
    """No change."""
    return np.zeros(times.size)


CASES: list[tuple[str, str, int, Change]] = [
    ("drift of 1.5 sd", "drift", 365, of_line(1.5)),
    ("drift of 3 sd", "drift", 365, of_line(3)),
    ("drift of 6 sd", "drift", 365, of_line(6)),
    ("drift of 20 sd", "drift", 365, of_line(20)),
    ("weekend 2 sd lower", "weekday", 365, of_weekend(2)),
    ("weekend 4 sd lower", "weekday", 365, of_weekend(4)),
    ("year of 2 sd", "annual", 1000, of_year(2)),
    ("year of 5 sd", "annual", 1000, of_year(5)),
    ("flips of 5 sd, 20 runs each", "modes", 365, of_flips(5, 20)),
    ("flips of 6 sd, 2 runs each", "modes", 365, of_flips(6, 2)),
    ("nothing", "", 365, nothing),
    ("nothing", "", 1000, nothing),
]


def names(times: made.Floats, values: made.Floats) -> list[str]:
    """What Siteproof calls each series: the screens, then the competition."""
    of_all = np.tile(times, (len(values), 1))
    flagged = screen.screen(values) | screen.of_modes(values)
    flagged |= season.screen_seasons(of_all, values)
    return [
        called(shape.explain(times, row)) if flag else ""
        for row, flag in zip(values, flagged, strict=True)
    ]


def called(found: shape.Shape) -> str:
    """All names of a shape."""
    told = ["step"] * bool(found.steps) + ["drift"] * bool(found.drift)
    told += [one.name for one in found.seasons]
    return "+".join([*told, "modes"] if found.modes else told)


def by_name(trials: Trials) -> None:
    """A row a case and noise: right, called a step, what else."""
    rows = []
    for case, right, points, change in CASES:
        times, total = made.days(points), Counter[str]()
        for name in made.NOISES:
            chance = trials.chance(case, name, points)
            values = made.stable(made.NOISES[name], chance, trials.count, points)
            values += np.array([change(times, chance) for _ in values])
            told = Counter(names(times, made.measured(values)))
            if name == "bimodal" and right != "modes":
                told = _without_modes(told)  # such noise may be called what it is
            total += told
            rows.append(_row(case, name, points, right, told))
        rows.append(_row(case, "all", points, right, total))
    head = ["case", "noise", "runs", "right", "called a step", "what else"]
    print(f"Called by name; right: this name and no other\n\n{table(head, rows)}")


def _without_modes(told: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for words, count in told.items():
        found["+".join(word for word in words.split("+") if word != "modes")] += count
    return found


def _row(case: str, noise: str, points: int, right: str, told: Counter[str]) -> list[str]:
    count = told.total()
    wrong = sum(n for words, n in told.items() if "step" in words)
    else_ = [
        f"{words or 'nothing'} {n / count:.1%}"
        for words, n in told.most_common()
        if words != right and "step" not in words
    ]
    return [
        case,
        noise,
        str(points),
        f"{told[right] / count:.3f}",
        f"{wrong / count:.3f}",
        ", ".join(else_),
    ]


def benchmark() -> None:
    """Print both tables."""
    options = parser(__doc__)
    options.add_argument("--series", type=int, default=200, help="of each kind (200)")
    options.add_argument("--points", default="30,100,365,1000", help="lengths (30,100,365,1000)")
    options.add_argument("--seed", type=int, default=1, help="of all chance (1)")
    options.add_argument(
        "--peers",
        type=Path,
        action="append",
        default=[],
        metavar="PYTHON",
        help="a Python that has asv or Otava; may be given twice",
    )
    given = options.parse_args()
    try:
        lengths = [int(word) for word in given.points.split(",")]
    except ValueError:
        raise Misuse(f"'{given.points}' is no list of lengths. Allowed: 100,365") from None
    if min(lengths) < 2 * made.APART:
        raise Misuse(f"{min(lengths)} runs hold no step. Allowed: {2 * made.APART} and more")
    trials = Trials(max(1, given.series), given.seed, given.peers)
    print(f"{trials.count} series of each kind, seed {trials.seed}, numpy {np.__version__}\n")
    found_steps(trials, lengths)
    if not given.peers:
        by_name(trials)


if __name__ == "__main__":
    main(benchmark)
