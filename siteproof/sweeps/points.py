"""The points of a sweep, and the order in which they are measured. Pure functions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from siteproof.record.point import KNOB, OWN, Point, Values
from siteproof.sweeps import knobs as turned
from siteproof.sweeps.keys import Sweep, plain
from siteproof.sweeps.tools import TOOLS

CLASS = 8  # how many times as many nodes a size class may have as the one before


def points(sweep: Sweep) -> list[Point]:
    """All points, each once: repetition by repetition, in the order of the file.

    A point's place is its number, in every session.
    """
    found: dict[tuple[tuple[str, str], ...], Values] = {}
    for combination in _combinations(sweep):
        values = _exact(sweep, combination)
        if sweep.keeps(Point(values, ())):
            found[tuple(sorted(values.items()))] = values
    return repeated(found.values(), sweep.varied, sweep.repetitions)


def _exact(sweep: Sweep, combination: Mapping[str, str]) -> Values:
    """Values as points have them; axes that a knob names are replaced by their numbers."""
    axes = TOOLS[sweep.tool].all_axes
    values = {
        name: plain(name, text, None if name.startswith(KNOB) else axes[name])
        for name, text in combination.items()
    }
    filled = {
        name: turned.filled(text, values) for name, text in values.items() if name.startswith(KNOB)
    }
    return values | filled


def repeated(
    each: Iterable[Mapping[str, str]], varied: Sequence[str], repetitions: int
) -> list[Point]:
    """These points, as often as required."""
    each = list(each)
    trials = range(1, repetitions + 1) if repetitions > 1 else (0,)
    return [Point(values, tuple(varied), trial) for trial in trials for values in each]


def _combinations(sweep: Sweep) -> Iterator[Values]:
    tasks = TOOLS[sweep.tool].tasks
    for axes in sweep.axes:
        for chosen in product(*axes.values()):
            for knobs in knob_settings(sweep):
                values = {**sweep.fixed, **dict(zip(axes, chosen, strict=True)), **knobs}
                yield {"tasks": values.get(tasks, tasks), "tasks_per_node": "1", **values}


def knob_settings(sweep: Sweep) -> list[Values]:
    """No knob changed; each knob alone; and the corners, if the sweep has them."""
    if not sweep.knobs:
        return [{}]
    alone = sweep.knobs.one_at_a_time
    own = dict.fromkeys(alone, OWN)
    found = [own, *({**own, name: value} for name, values in alone.items() for value in values)]
    if sweep.knobs.corners:
        ends = [dict.fromkeys((values[0], values[-1])) for values in alone.values()]
        found += [dict(zip(alone, corner, strict=True)) for corner in product(*ends)]
    return found


def walk(numbered: Mapping[int, Point], order: str, seed: str) -> list[int]:
    """The points' numbers in the order in which they are measured.

    Repetitions follow each other. Points with the same settings of the nodes stay together in each
    repetition; random: in random order, and the settings too. The same seed gives the same order.
    """
    chance = random.Random(seed)
    groups: dict[int, dict[tuple[tuple[str, str], ...], list[int]]] = {}  # by trial and settings
    for number, point in numbered.items():
        settings = tuple(sorted(point.knobs.items()))
        groups.setdefault(point.trial, {}).setdefault(settings, []).append(number)
    ordered: list[int] = []
    for by_settings in groups.values():
        of_trial = list(by_settings.values())
        if order == "random":
            for numbers in of_trial:
                chance.shuffle(numbers)
            chance.shuffle(of_trial)
        else:
            for numbers in of_trial:
                numbers.sort(key=lambda number: (_ascending(numbered[number]), number))
        ordered += [number for numbers in of_trial for number in numbers]
    return ordered


def _ascending(point: Point) -> list[tuple[int, str]]:
    """Its values in the order of the axes: numbers by size, words alphabetically."""
    return [
        (int(value), "") if value.isdigit() else (0, value) for value in point.own_dims.values()
    ]


def combinations(numbered: Mapping[int, Point]) -> dict[int, int]:
    """The number of the settings that each point needs, from 1 on in the order of the points."""
    found: dict[tuple[tuple[str, str], ...], int] = {}
    return {
        number: found.setdefault(tuple(sorted(point.knobs.items())), len(found) + 1)
        for number, point in numbered.items()
    }


def size_class(nodes: int) -> str:
    """The size class of a point: 1, 2-8, 9-64, 65-512 … nodes."""
    low, high = 1, 1
    while nodes > high:
        low, high = high + 1, high * CLASS
    return "1" if high == 1 else f"{low}-{high}"


def classes(each: Iterable[Point]) -> list[str]:
    """The size classes of these points, smallest first."""
    found = {size_class(point.nodes) for point in each}
    return sorted(found, key=lambda name: int(name.rpartition("-")[2]))
