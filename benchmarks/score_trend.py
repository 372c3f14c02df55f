"""What `siteproof trend` says of made histories of which the truth is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import made_held_out
import made_noise
import numpy as np
from made_noise import NOISES, Random, fleet
from made_sites import COUNTS, METRICS, SCHEDULES, MadeSite, times
from scoring import CVS, LOSSES, Cells, Page, Told, percent

from siteproof import nodesets

RUNS = 200
LASTING = 0
DURATIONS = (LASTING, 20, 8, 3)
NODES = 100  # of an ordinary fleet
SIZES = (1, 2, 3, 10, 100, 1000)
NEAR = 5  # runs by which the place of a change may be off, if its size is that of the scatter


@dataclass(frozen=True)
class Planted:
    """A change. first, end: runs. by: -0.1 is a tenth less. shape: what it must be called.

    row: of the table of results. near: how many runs its place may be off.
    """

    metric: str
    node: str
    first: int
    end: int
    by: float
    row: str
    near: int
    shape: str = "step"

    @property
    def size(self) -> float:
        """Of the loss; 0 where it has none."""
        return 0.0 if self.shape in ("scatter", "unit") else abs(self.by)


@dataclass
class History:
    """A site with what was planted in it."""

    site: MadeSite
    chance: Random
    planted: list[Planted] = field(default_factory=list)
    patterns: set[str] = field(default_factory=set)  # metrics whose noise has one

    def write(self, folder: Path) -> None:
        """The site with its samples."""
        self.site.write(folder)

    @property
    def runs(self) -> int:
        """How many there are."""
        return len(self.site.times)

    def fleets(self, name: str, count: int, size: int) -> list[list[int]]:
        """So many roles of so many nodes: their columns."""
        found = [self.site.add_role(f"{name}x{number}", size) for number in range(count)]
        return [list(range(part.start, part.stop)) for part in found]

    def fill(self, metric: str, noise: made_noise.Noise, cv: float) -> None:
        """Values of all nodes without a change."""
        nodes = len(self.site.nodes)
        if noise in (*made_noise.PATTERNS, *made_held_out.PATTERNS):
            self.patterns.add(metric)
        self.site.values[metric] = fleet(noise, self.chance, self.site.times, nodes, cv)

    def plant(
        self,
        metric: str,
        column: int,
        loss: float,
        lasts: int,
        row: str,
        cv: float,
        shape: str = "step",
    ) -> None:
        """A loss at a random place: of so many runs, or lasting."""
        fifth = self.runs // 5
        if lasts == LASTING:
            first, end = int(self.chance.integers(2 * fifth, 3 * fifth + 1)), self.runs
        else:
            first = int(self.chance.integers(fifth, 4 * fifth - lasts))
            end = first + lasts
        self.site.values[metric][first:end, column] *= 1 - loss
        self.note(metric, column, first, end, -loss, row, cv, shape)

    def note(
        self,
        metric: str,
        column: int,
        first: int,
        end: int,
        by: float,
        row: str,
        cv: float,
        shape: str = "step",
    ) -> None:
        """What was planted in a column."""
        near = min(3 * NEAR, NEAR + round((2 * cv / abs(by)) ** 2)) if by else 3 * NEAR
        node = self.site.nodes[column]
        self.planted.append(Planted(metric, node, first, end, by, row, near, shape))


Plane = Callable[[Random, int], Iterator[History]]


def lasting(lasts: int) -> str:
    """A duration in words."""
    return f"{lasts} runs" if lasts else "lasting"


def new(chance: Random, name: str, schedule: str = "1", runs: int = RUNS) -> History:
    """An empty site."""
    return History(MadeSite(name, times(schedule, runs, chance)), chance)


def in_fleets(
    h: History, fleets: Sequence[Sequence[int]], metric: str, cv: float, row: str
) -> None:
    """Every loss and duration once in each of the fleets, each on a node of its own."""
    for columns in fleets:
        chosen = h.chance.choice(columns, len(LOSSES) * len(DURATIONS), replace=False)
        for (lasts, loss), column in zip(product(DURATIONS, LOSSES), chosen, strict=True):
            h.plant(metric, int(column), loss, lasts, f"{row}, {lasting(lasts)}", cv)


def alone(
    h: History,
    fleets: Sequence[Sequence[int]],
    metric: str,
    cv: float,
    row: str,
    durations: Sequence[int] = DURATIONS,
) -> None:
    """Every loss and duration in the first node of as many fleets; every second fleet is clean."""
    cells = list(product(durations, LOSSES))
    for number, columns in enumerate(fleets[::2]):
        lasts, loss = cells[number % len(cells)]
        h.plant(metric, columns[0], loss, lasts, f"{row}, {lasting(lasts)}", cv)


def grid(chance: Random, rounds: int) -> Iterator[History]:
    """CV x loss x duration: normal noise, daily runs, fleets of 100."""
    h = new(chance, "grid")
    fleets = h.fleets("fleet", rounds, NODES)
    for metric, cv in zip(METRICS, CVS, strict=False):
        h.fill(metric, NOISES["normal"], cv)
        in_fleets(h, fleets, metric, cv, f"CV {percent(cv)}")
    yield h


def by_size(chance: Random, rounds: int) -> Iterator[History]:
    """Nodes x loss x duration at a CV of 1, 2 and 5 %."""
    h = new(chance, "sizes")
    cells = len(LOSSES) * 2
    kinds = {size: h.fleets(f"of{size}", 2 * cells * rounds, size) for size in SIZES[:3]}
    kinds[10] = h.fleets("of10", cells * rounds // 2, 10)
    kinds |= {size: h.fleets(f"of{size}", 1, size) for size in SIZES[4:]}
    for metric, cv in zip(METRICS, (0.01, 0.02, 0.05), strict=False):
        h.fill(metric, NOISES["normal"], cv)
        for size, fleets in kinds.items():
            row = f"{size} nodes, CV {percent(cv)}"
            if size > 10:
                parts = np.array_split(fleets[0], max(1, size // 120))
                in_fleets(h, [part.tolist() for part in parts], metric, cv, row)
            else:
                alone(h, fleets, metric, cv, row, (LASTING, 8))
    yield h


def by_schedule(chance: Random, rounds: int) -> Iterator[History]:
    """Runs a day x loss x duration at a CV of 2 %, nodes alone, with and without a swing."""
    for schedule in SCHEDULES:
        h = new(chance, f"every-{schedule}", schedule)
        fleets = h.fleets("one", 2 * len(LOSSES) * 2 * rounds, 1)
        name = f"{schedule} a day" if schedule.isdigit() else schedule
        for metric, noise in zip(METRICS, ("normal", "daily swing", "weekend"), strict=False):
            h.fill(metric, NOISES[noise], 0.02)
            alone(h, fleets, metric, 0.02, f"{name}, {noise}", (LASTING, 8))
        yield h


def by_noise(chance: Random, rounds: int) -> Iterator[History]:
    """Noise x loss x duration at a CV of 2 %: fleets of 100, and nodes alone at twice a day."""
    yield from noises(chance, rounds, NOISES)


def noises(chance: Random, rounds: int, kinds: dict[str, made_noise.Noise]) -> Iterator[History]:
    """As many kinds as are given."""
    h = new(chance, "noises")
    fleets = h.fleets("fleet", rounds, NODES)
    for metric, (name, noise) in zip(METRICS, kinds.items(), strict=False):
        h.fill(metric, noise, 0.02)
        in_fleets(h, fleets, metric, 0.02, name)
    yield h
    h = new(chance, "noises-alone", "2")
    fleets = h.fleets("one", 2 * len(LOSSES) * 2 * rounds, 1)
    for metric, (name, noise) in zip(METRICS, kinds.items(), strict=False):
        h.fill(metric, noise, 0.02)
        alone(h, fleets, metric, 0.02, f"{name}, alone", (LASTING, 8))
    yield h


# ---- changes of other shapes: a function each, of a node's column; it notes what it planted

Shape = Callable[[History, str, int, float, str], None]


def _middle(h: History) -> int:
    return int(h.chance.integers(2 * h.runs // 5, 3 * h.runs // 5 + 1))


def more_scatter(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """The scatter grows to five times (the loss does not matter)."""
    at, of = _middle(h), h.site.values[metric]
    of[at:, column] = 1 + 5 * (of[at:, column] - 1)
    h.note(metric, column, at, h.runs, 0.0, row, 0.01, "scatter")


def less_scatter(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """The scatter shrinks to a fifth."""
    at, of = _middle(h), h.site.values[metric]
    of[:at, column] = 1 + 5 * (of[:at, column] - 1)
    h.note(metric, column, at, h.runs, 0.0, row, 0.01, "scatter")


def step_and_scatter(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """After an update the level is lower, and the noise three times as large."""
    at, of = _middle(h), h.site.values[metric]
    of[at:, column] = (1 - loss) * (1 + 3 * (of[at:, column] - 1))
    h.note(metric, column, at, h.runs, -loss, row, 0.03)


def ramp_then_step(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """A ramp of the same size ends in a step."""
    at, of = _middle(h), h.site.values[metric]
    of[:, column] *= 1 - loss * np.minimum(np.arange(h.runs) / at, 1)
    of[at:, column] *= 1 - loss
    h.note(metric, column, at, h.runs, -loss, row, 0.01, "step or drift")


def two_steps(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """Down, and 30 runs later down again."""
    at, of = _middle(h), h.site.values[metric]
    for place in (at, at + 30):
        of[place:, column] *= 1 - loss
        h.note(metric, column, place, h.runs, -loss, row, 0.01)


def newest(count: int) -> Shape:
    """The last so many runs are lower."""

    def plant(h: History, metric: str, column: int, loss: float, row: str) -> None:
        h.site.values[metric][-count:, column] *= 1 - loss
        h.note(metric, column, h.runs - count, h.runs, -loss, row, 0.01)

    return plant


def oldest(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """A step after the first ten runs."""
    h.site.values[metric][10:, column] *= 1 - loss
    h.note(metric, column, 10, h.runs, -loss, row, 0.01)


def drifting(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """A loss that comes evenly over all runs."""
    h.site.values[metric][:, column] *= 1 - loss * np.linspace(0, 1, h.runs)
    h.note(metric, column, 0, h.runs, -loss, row, 0.01, "drift")


def drift_of_some(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """A loss that comes evenly over 80 runs and stays."""
    first = int(h.chance.integers(40, 80))
    ramp = np.clip((np.arange(h.runs) - first) / 80, 0, 1)
    h.site.values[metric][:, column] *= 1 - loss * ramp
    h.note(metric, column, first, h.runs, -loss, row, 0.01, "any")


def burst(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """Eight runs are better by so much."""
    first = int(h.chance.integers(40, 150))
    h.site.values[metric][first : first + 8, column] *= 1 + loss
    h.note(metric, column, first, first + 8, loss, row, 0.01)


def two_dips(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """Eight runs down, twenty as before, eight runs down."""
    first = int(h.chance.integers(40, 120))
    for begin in (first, first + 28):
        h.site.values[metric][begin : begin + 8, column] *= 1 - loss
        h.note(metric, column, begin, begin + 8, -loss, row, 0.01)


def every_third(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """From a run on every third run is lower, in no order."""
    at = _middle(h)
    low = h.chance.random(h.runs - at) < 1 / 3
    h.site.values[metric][at:, column] *= np.where(low, 1 - loss, 1)
    h.note(metric, column, at, h.runs, -loss, row, 0.01, "any")


def other_unit(factor: float) -> Shape:
    """The values are so many times larger from a run on: another unit."""

    def plant(h: History, metric: str, column: int, loss: float, row: str) -> None:
        at = _middle(h)
        h.site.values[metric][at:, column] *= factor
        h.note(metric, column, at, h.runs, factor - 1, row, 0.01, "unit")

    return plant


def first_after_gap(h: History, metric: str, column: int, loss: float, row: str) -> None:
    """Forty runs are missing, and after them the level is lower."""
    at = _middle(h)
    h.site.values[metric][at - 40 : at, column] = np.nan
    h.site.values[metric][at:, column] *= 1 - loss
    h.note(metric, column, at, h.runs, -loss, row, 0.01)


SHAPES: dict[str, Shape] = {
    "scatter x 5": more_scatter,
    "scatter / 5": less_scatter,
    "step, then scatter x 3": step_and_scatter,
    "ramp, then step": ramp_then_step,
    "two steps": two_steps,
    "last 10 runs": newest(10),
    "last 5 runs": newest(5),
    "last 3 runs": newest(3),
    "after 10 runs": oldest,
    "drift": drifting,
    "ramp of 80 runs": drift_of_some,
    "burst of 8": burst,
    "two dips of 8": two_dips,
    "a third of runs": every_third,
    "unit x 1000": other_unit(1000),
    "unit x 1024": other_unit(1024),
    "unit x 1.048576": other_unit(1.048576),
    "step after a gap": first_after_gap,
}
WITHOUT_LOSS = ("scatter", "unit")


def by_shape(chance: Random, rounds: int) -> Iterator[History]:
    """Changes of other shapes at a CV of 1 %: in fleets of 100, and nodes alone."""
    yield from shapes(chance, rounds, SHAPES)


def shapes(chance: Random, rounds: int, kinds: dict[str, Shape]) -> Iterator[History]:
    """As many shapes as are given, a metric each."""
    h = new(chance, "shapes")
    fleets = h.fleets("fleet", rounds, NODES)
    ones = h.fleets("one", 2 * len(LOSSES) * rounds, 1)
    for metric, (name, shape) in zip(METRICS, kinds.items(), strict=False):
        h.fill(metric, NOISES["normal"], 0.01)
        losses = (0.0,) if name.startswith(WITHOUT_LOSS) else LOSSES
        for columns in fleets:
            for column, loss in zip(columns[::10], losses, strict=False):
                shape(h, metric, column, loss, name)
        for number, (column,) in enumerate(ones[::2]):
            shape(h, metric, column, losses[number % len(losses)], f"{name}, alone")
    yield h


def short(chance: Random, rounds: int) -> Iterator[History]:
    """Histories of 12, 20, 30 and 60 runs with a lasting loss in the middle, CV 1 and 2 %."""
    for runs in (12, 20, 30, 60):
        h = new(chance, f"short-{runs}", runs=runs)
        fleets = h.fleets("fleet", rounds, NODES)
        for metric, cv in zip(METRICS, (0.01, 0.02), strict=False):
            h.fill(metric, NOISES["normal"], cv)
            for columns in fleets:
                for column, loss in zip(columns[::10], LOSSES, strict=False):
                    h.plant(metric, column, loss, LASTING, f"{runs} runs, CV {percent(cv)}", cv)
        yield h


def together(chance: Random, rounds: int) -> Iterator[History]:
    """Losses of the whole fleet, of half of it and of ten nodes in it at once, CV 2 %."""
    h = new(chance, "together")
    for metric, (name, share) in zip(
        METRICS, {"all": 1.0, "half": 0.5, "third": 0.3, "tenth": 0.1}.items(), strict=False
    ):
        if not h.site.roles:
            fleets = h.fleets("fleet", len(LOSSES) * rounds, 40)
        h.fill(metric, NOISES["normal"], 0.02)
        for number, columns in enumerate(fleets):
            loss = LOSSES[number % len(LOSSES)]
            at = _middle(h)
            for column in columns[: round(share * len(columns))]:
                h.site.values[metric][at:, column] *= 1 - loss
                h.note(metric, column, at, h.runs, -loss, f"{name} of a fleet", 0.02)
    yield h


def counts(chance: Random, rounds: int) -> Iterator[History]:
    """Counts that are nearly always 0: from a run on 1, 3 or 10 on average a run."""
    h = new(chance, "counts")
    fleets = h.fleets("fleet", rounds, NODES)
    for metric, rare in zip(COUNTS, (0.0, 0.02, 0.2), strict=True):
        nodes = len(h.site.nodes)
        h.site.values[metric] = chance.poisson(rare, (h.runs, nodes)).astype(float)
        for columns in fleets:
            for column, rate in zip(columns[::10], (0.3, 1, 3, 10), strict=False):
                at = _middle(h)
                h.site.values[metric][at:, column] = chance.poisson(rate, h.runs - at)
                row = f"mean {rare:g} to {rate:g}"
                h.note(metric, column, at, h.runs, 1.0, row, 0.2)
    yield h


HELD_OUT = list(product((LASTING, 20, 3), LOSSES[1:]))


def held_out(kind: str) -> Plane:
    """A kind of noise that no constant was chosen on: a page with losses, and one without."""
    noise = made_held_out.KINDS[kind]
    schedule = "2" if noise in made_held_out.TWICE_A_DAY else "1"
    name = kind.replace(" ", "-").lower()

    def plane(chance: Random, rounds: int) -> Iterator[History]:
        h = new(chance, name, schedule)
        fleets = h.fleets("fleet", rounds, NODES)
        ones = h.fleets("one", 2 * len(HELD_OUT) * rounds, 1)
        for metric, cv in zip(METRICS, made_held_out.CVS, strict=False):
            h.fill(metric, noise, cv)
            row = f"CV {percent(cv)}"
            for columns in fleets:
                chosen = chance.choice(columns, len(HELD_OUT), replace=False)
                for (lasts, loss), column in zip(HELD_OUT, chosen, strict=True):
                    h.plant(metric, int(column), loss, lasts, f"{row}, {lasting(lasts)}", cv)
            for number, (column,) in enumerate(ones[::2]):
                lasts, loss = HELD_OUT[number % len(HELD_OUT)]
                h.plant(metric, column, loss, lasts, f"{row}, {lasting(lasts)}, alone", cv)
        yield h
        h = new(chance, f"{name}-clean", schedule)
        h.fleets("fleet", rounds, NODES)
        h.fleets("one", 10 * rounds, 1)
        for metric, cv in zip(METRICS, made_held_out.CVS, strict=False):
            h.fill(metric, noise, cv)
        yield h

    return plane


PLANES: dict[str, Plane] = {
    "grid": grid,
    "nodes": by_size,
    "schedule": by_schedule,
    "noise": by_noise,
    "shape": by_shape,
    "short": short,
    "together": together,
    "counts": counts,
    **{f"held-out {kind}": held_out(kind) for kind in made_held_out.KINDS},
}


# ---- what the command said


@dataclass(frozen=True)
class Item:
    """One thing that the page says. first, last: runs; kind: as the page calls it."""

    metric: str
    nodes: frozenset[str]
    first: int
    last: int
    relative: float
    kind: str
    unit: bool  # whether it asks about the unit
    text: str


def items(h: History, answer: dict[str, Any]) -> Iterator[Item]:
    """All that the page says, but what could not be judged."""
    stamps = np.array([moment.timestamp() for moment in h.site.times])

    def run(moment: Any, default: int) -> int:
        text = moment.get("time") if isinstance(moment, dict) else moment
        if not text:
            return default
        when = datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
        return int(np.searchsorted(stamps, when - 60))

    for name in ("fleet", "alerts", "drifts", "episodes", "scatter", "seasons"):
        for one in answer.get(name, ()):
            nodes = frozenset(nodesets.parse(str(one["nodes"])))
            yield Item(
                one["metric"],
                nodes,
                run(one.get("first_after") or one.get("begin"), 0),
                run(one.get("made_good") or one.get("end"), h.runs),
                one.get("relative") or 0.0,
                "pattern" if name == "seasons" else str(one.get("kind", name)),
                bool(one.get("unit_factor")),
                f"{one.get('name', '')} {one.get('id', '')}",
            )


def is_told(item: Item, change: Planted) -> bool:
    """Whether an item says what was planted, at its place and in its direction."""
    if change.shape == "unit" and not item.unit:
        return False
    if change.shape == "drift":
        return item.kind == "drift" and item.relative * change.by > 0
    if change.shape == "scatter":
        return "scatter" in item.kind and abs(item.first - change.first) <= change.near
    if item.kind == "drift":
        return change.shape in ("any", "step or drift") and item.relative * change.by > 0
    if item.kind == "pattern" or "scatter" in item.kind:
        return change.shape == "any"
    if change.shape == "any" and item.relative * change.by > 0 and item.first >= change.first - 5:
        return True
    return abs(item.first - change.first) <= change.near and item.relative * change.by > 0


def belongs(item: Item, change: Planted, runs: int) -> bool:
    """Whether an item is about what was planted, also if it is the way back from it."""
    if is_told(item, change):
        return True
    back = change.end < runs and abs(item.first - change.end) <= change.near
    return back and item.relative * change.by < 0


def score(h: History, answer: dict[str, Any], cells: Cells, page: Page) -> None:
    """Compare a page with the truth."""
    judge(h, items(h, answer), cells, page)


def judge(h: History, said: Iterable[Item], cells: Cells, page: Page) -> None:
    """Compare all that is said with the truth."""
    planted: dict[tuple[str, str], list[Planted]] = {}
    for change in h.planted:
        planted.setdefault((change.metric, change.node), []).append(change)
    found: dict[tuple[str, str], list[Item]] = {}
    for item in said:
        told = Told.FALSE
        for node in item.nodes:
            found.setdefault((item.metric, node), []).append(item)
            mine = planted.get((item.metric, node), [])
            if any(belongs(item, change, h.runs) for change in mine):
                told = Told.RIGHT
            elif mine and told is Told.FALSE:
                told = Told.MISNAMED
        if item.kind == "pattern" and item.metric in h.patterns:
            told = Told.RIGHT
        where = f"{item.relative:+.1%} at run {item.first}, {item.metric} on {_few(item.nodes)}"
        page.add(told, f"{item.kind} {where} {item.text}")
    for (metric, node), mine in planted.items():
        here = found.get((metric, node), [])
        for change in mine:
            told = any(is_told(item, change) for item in here)
            cells.add(change.row, change.size, told)
            if not told:
                what = ", ".join(f"{i.kind} {i.relative:+.1%} at run {i.first}" for i in here)
                page.miss(
                    change.row,
                    change.size,
                    f"{metric} of {node}, runs {change.first} to {change.end}, {change.by:+.0%}: "
                    f"{what or 'nothing'}",
                )


def _few(nodes: frozenset[str]) -> str:
    return ", ".join(sorted(nodes)[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")


# ---- a fleet without a change, looked at every day of a week

CALM = ("normal", "lognormal", "heavy tails", "AR(1) .5", "pairs", "lost runs")
DAYS = 7


def calm(chance: Random, nodes: int, runs: int) -> History:
    """One role and six metrics at a CV of 2 %, without a change."""
    h = new(chance, "calm", runs=runs)
    h.fleets("fleet", 1, nodes)
    for metric, name in zip(METRICS, CALM, strict=False):
        h.fill(metric, NOISES[name], 0.02)
    return h


def names(h: History, answer: dict[str, Any]) -> set[str]:
    """What a page says, so that what stands there every day counts once."""
    return {f"{item.kind} of {item.metric} on {_few(item.nodes)}" for item in items(h, answer)}
