"""The sweep files, read and checked; their points, and the order in which these are measured."""

from __future__ import annotations

import hashlib
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import prod
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError, UserErrors
from siteproof.installed import SUITE
from siteproof.record.manifest import KNOB, OWN, Point, Values
from siteproof.sites.schema import shapes, yamlfile
from siteproof.sites.schema.yamlfile import Document
from siteproof.sweeps import keys as turned
from siteproof.sweeps.keys import TOOLS, Sweep, plain

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
    values = {name: plain(name, text, axes.get(name)) for name, text in combination.items()}
    knobs = {name: text for name, text in values.items() if name.startswith(KNOB)}
    return values | {name: turned.filled(text, values) for name, text in knobs.items()}


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
        ordered += chain.from_iterable(of_trial)
    return ordered


def _ascending(point: Point) -> list[tuple[int, str]]:
    """Its values in the order of the axes: numbers by size, words alphabetically."""
    values = point.own_dims.values()
    return [(int(value), "") if value.isdigit() else (0, value) for value in values]


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


FOLDER = SUITE / "sweeps"
VARIABLE = "SITEPROOF_SWEEPS"
MAX_POINTS = 20_000
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True)
class SweepFile:
    """One sweep with its name, its file's content as a hash, and its points."""

    path: Path
    sweep: Sweep
    points: list[Point]
    hash: str

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def test(self) -> str:
        """The name of its ReFrame test: ior_tasks is IorTasks."""
        return camel_case(self.name)


def camel_case(name: str) -> str:
    """ior_tasks as IorTasks."""
    return "".join(part.capitalize() for part in name.split("_"))


def folders() -> list[Path]:
    """The clone's folder, and one of the user's own. Raises UserError where it is missing."""
    given = os.environ.get(VARIABLE)
    if not given:
        return [FOLDER]
    own = Path(given).expanduser()
    if not own.is_dir():
        raise UserError(VARIABLE, f"{own} is not a folder", "a folder with sweep files NAME.yaml")
    return [FOLDER] if own.resolve() == FOLDER else [FOLDER, own]


def load() -> dict[str, SweepFile]:
    """All sweeps, by name. Raises UserErrors with every mistake in them."""
    found, documents = examine()
    if mistakes := [error for document in documents for error in document.sorted_mistakes()]:
        raise UserErrors(mistakes)
    return found


def lint(systems: Iterable[str]) -> tuple[list[str], list[UserError]]:
    """The names of all sweeps, and every mistake in them; a sweep names no system."""
    found, documents = examine()
    for document in documents:
        words = set(re.findall(r"[A-Za-z0-9_-]+", str(document.data)))
        for system in (one for one in systems if one in words):
            document.add((), f"it names the system '{system}'", "only what is true of any system")
    mistakes = [error for document in documents for error in document.sorted_mistakes()]
    return list(found), mistakes


def examine() -> tuple[dict[str, SweepFile], list[Document]]:
    """The sweeps without a mistake, and all files with theirs. Raises UserError."""
    found: dict[str, SweepFile] = {}
    documents = []
    tests: dict[str, Path] = {}
    for path in sorted(path for folder in folders() for path in folder.glob("*.yaml")):
        document = yamlfile.read(path)
        documents.append(document)
        read = _read(document)
        other = tests.setdefault(camel_case(path.stem), path)
        if other != path:
            document.add((), f"the same name as {yamlfile.shown(other)}", "a unique name")
        elif read:
            found[path.stem] = read
    return found, documents


def _read(document: Document) -> SweepFile | None:
    path = document.path
    if not NAME.fullmatch(path.stem):
        what = f"'{yamlfile.clip(path.stem)}' is not a name of a sweep"
        document.add((), what, "lower-case letters and digits, words joined by _")
    if document.data is None:
        return None
    sweep = shapes.validate(document, (), Sweep, document.data)
    if sweep is None or document.mistakes:
        return None
    if (many := _most_points(sweep)) > MAX_POINTS:
        document.add(("axes",), f"more than {MAX_POINTS} points ({many})")
        return None
    if not (each := points(sweep)):
        document.add(("constraints",), "no point meets them")
        return None
    content = files.read_named(path, yamlfile.MAX_BYTES)
    return SweepFile(path, sweep, each, hashlib.sha256(content).hexdigest()[:16])


def _most_points(sweep: Sweep) -> int:
    """How many points there are before constraints."""
    settings = 1  # combinations of knobs, counted without making them
    if sweep.knobs:
        alone = sweep.knobs.one_at_a_time
        settings += sum(map(len, alone.values()))
        settings += 2 ** len(alone) if sweep.knobs.corners else 0
    combinations = sum(prod(map(len, axes.values())) for axes in sweep.axes)
    return combinations * sweep.repetitions * settings
