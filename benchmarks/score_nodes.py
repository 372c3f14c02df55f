"""What `siteproof nodes`, `gate` and `compare` say of made fleets of which the truth is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import made_held_out
import made_noise
import numpy as np
from made_noise import NOISES, Random, fleet
from made_sites import COUNTS, METRICS, MadeSite, times
from scoring import CVS, LOSSES, Cells, Page, Told, percent

from siteproof import nodesets

RUNS = 34
BAD_RUNS = (1, 3, 20)  # the newest runs in which a node is bad
SIZES = (1, 2, 3, 4, 6, 10, 100, 1000)
SMALL = (3, 4, 5, 6, 9)
SHARES = (0.1, 0.15, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Slow:
    """A slow node, in one metric."""

    metric: str
    node: str
    loss: float
    row: str


@dataclass
class Fleets:
    """A site with what was planted in it."""

    site: MadeSite
    chance: Random
    slow: list[Slow] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """The site with its samples."""
        self.site.write(folder)

    def fleets(self, name: str, count: int, size: int) -> list[list[int]]:
        """So many roles of so many nodes: their columns."""
        found = [self.site.add_role(f"{name}x{number}", size) for number in range(count)]
        return [list(range(part.start, part.stop)) for part in found]

    def fill(self, metric: str, noise: made_noise.Noise, cv: float) -> None:
        """Values of all nodes without a loss."""
        nodes = len(self.site.nodes)
        self.site.values[metric] = fleet(noise, self.chance, self.site.times, nodes, cv)

    def plant(self, metric: str, column: int, loss: float, runs: int, row: str) -> None:
        """A node that lacks a share in so many newest runs."""
        self.site.values[metric][-runs:, column] *= 1 - loss
        self.slow.append(Slow(metric, self.site.nodes[column], loss, row))


Plane = Callable[[Random, int], Iterator[Fleets]]


def new(chance: Random, name: str, runs: int = RUNS) -> Fleets:
    """An empty site with daily runs."""
    return Fleets(MadeSite(name, times("1", runs, chance)), chance)


def lasts(runs: int) -> str:
    """How long, in words."""
    return f"{runs} runs" if runs > 1 else "1 run"


def grid(chance: Random, rounds: int) -> Iterator[Fleets]:
    """CV x loss x newest runs, one bad node of ten, and as many clean fleets."""
    f = new(chance, "grid")
    cells = list(product(BAD_RUNS, LOSSES))
    fleets = f.fleets("fleet", 2 * rounds * len(cells), 10)
    for place, (metric, cv) in enumerate(zip(METRICS, CVS, strict=False)):
        f.fill(metric, NOISES["normal"], cv)
        for number, columns in enumerate(fleets[::2]):
            runs, loss = cells[number % len(cells)]
            f.plant(metric, columns[place], loss, runs, f"CV {percent(cv)}, {lasts(runs)}")
    yield f


def by_size(chance: Random, rounds: int) -> Iterator[Fleets]:
    """Nodes x loss x newest runs at a CV of 1 and 2 %."""
    f = new(chance, "sizes")
    cells = list(product((3, 20), LOSSES))
    kinds = {}
    for size in SIZES:
        count = 4 * rounds * len(cells) if size <= 10 else max(1, 100 * rounds // size)
        kinds[size] = f.fleets(f"of{size}", count, size)
    for place, (metric, cv) in enumerate(zip(METRICS, (0.01, 0.02), strict=False)):
        f.fill(metric, NOISES["normal"], cv)
        for size, fleets in kinds.items():
            row = f"{size} nodes, CV {percent(cv)}"
            if size > 10:
                for columns in fleets:
                    for (runs, loss), column in zip(
                        cells * max(1, size // 200), columns[place::7], strict=False
                    ):
                        f.plant(metric, column, loss, runs, f"{row}, {lasts(runs)}")
                continue
            for number, columns in enumerate(fleets[place::4]):
                runs, loss = cells[number % len(cells)]
                f.plant(metric, columns[0], loss, runs, f"{row}, {lasts(runs)}")
    yield f


def by_share(chance: Random, rounds: int) -> Iterator[Fleets]:
    """Share of bad nodes x loss, at a CV of 1 %, in fleets of 40, for three and ten runs."""
    f = new(chance, "shares")
    cells = list(product(SHARES, (0.02, 0.06, 0.1, 0.2)))
    fleets = f.fleets("fleet", rounds * len(cells), 40)
    for metric, runs in zip(METRICS, (3, 10), strict=False):
        f.fill(metric, NOISES["normal"], 0.01)
        for number, columns in enumerate(fleets):
            share, loss = cells[number % len(cells)]
            for column in columns[: round(share * len(columns))]:
                f.plant(metric, column, loss, runs, f"{percent(share)} bad, {lasts(runs)}")
    yield f


def without_past(chance: Random, rounds: int) -> Iterator[Fleets]:
    """Three sessions and no more, as at an acceptance: share x loss, CV 1 %, fleets of 40."""
    f = new(chance, "acceptance", runs=3)
    cells = list(product((0.025, 0.1, 0.3), LOSSES))
    fleets = f.fleets("fleet", rounds * len(cells), 40)
    f.fill(METRICS[0], NOISES["normal"], 0.01)
    for number, columns in enumerate(fleets):
        share, loss = cells[number % len(cells)]
        for column in columns[: round(share * len(columns))]:
            f.plant(METRICS[0], column, loss, 3, f"{percent(share)} bad")
    yield f


def small(chance: Random, rounds: int) -> Iterator[Fleets]:
    """As at an acceptance, fleets of 3 to 9 nodes: one bad node, from 4 nodes on also two."""
    f = new(chance, "small", runs=3)
    cells = list(product((1, 2), LOSSES[2:]))
    kinds = {size: f.fleets(f"of{size}", 2 * rounds * len(cells), size) for size in SMALL}
    f.fill(METRICS[0], NOISES["normal"], 0.01)
    for size, fleets in kinds.items():
        for number, columns in enumerate(fleets[::2]):
            bad, loss = cells[number % len(cells)]
            if 2 * bad <= size:
                for column in columns[:bad]:
                    f.plant(METRICS[0], column, loss, 3, f"{bad} of {size} nodes")
    yield f


def populations(chance: Random, rounds: int) -> Iterator[Fleets]:
    """Another kind of nodes, 5 or 12 % slower for good; one node of each fleet is bad, CV 1 %."""
    f = new(chance, "kinds")
    cells = list(product((0.15, 0.3, 0.5), LOSSES))
    fleets = f.fleets("fleet", rounds * len(cells), 40)
    found = zip(METRICS, product((3, 34), (0.05, 0.12)), strict=False)
    for place, (metric, (runs, gap)) in enumerate(found):
        f.fill(metric, NOISES["normal"], 0.01)
        for number, columns in enumerate(fleets):
            share, loss = cells[number % len(cells)]
            other = columns[: round(share * len(columns))]
            f.site.values[metric][:, other] *= 1 - gap
            bad = columns[-1 - place] if number % 2 else columns[place]
            row = f"{percent(share)} {percent(gap)} slower, {lasts(runs)}"
            f.plant(metric, bad, loss, runs, row)
    yield f


def by_noise(chance: Random, rounds: int) -> Iterator[Fleets]:
    """Noise x loss x newest runs at a CV of 2 %, three bad nodes of 50."""
    yield from noises(chance, rounds, NOISES)


def noises(chance: Random, rounds: int, kinds: dict[str, made_noise.Noise]) -> Iterator[Fleets]:
    """As many kinds as are given."""
    f = new(chance, "noises")
    fleets = f.fleets("fleet", 2 * rounds, 50)
    for place, (metric, (name, noise)) in enumerate(zip(METRICS, kinds.items(), strict=False)):
        f.fill(metric, noise, 0.02)
        for number, columns in enumerate(fleets):
            cells = list(product(((3, 20)[number % 2],), LOSSES))
            for (runs, loss), column in zip(cells, columns[place % 8 :: 8], strict=False):
                f.plant(metric, column, loss, runs, f"{name}, {lasts(runs)}")
    yield f


def scattering(chance: Random, rounds: int) -> Iterator[Fleets]:
    """One node of ten scatters more than the others by so many times, and lacks nothing."""
    f = new(chance, "scattering")
    cells = list(product((3, 20, RUNS), (3, 5, 10)))
    fleets = f.fleets("fleet", 2 * rounds * len(cells), 10)
    for place, (metric, cv) in enumerate(zip(METRICS, (0.01, 0.02, 0.05), strict=False)):
        f.fill(metric, NOISES["normal"], cv)
        for number, columns in enumerate(fleets[::2]):
            runs, more = cells[number % len(cells)]
            values = f.site.values[metric][-runs:, columns[place]]
            values[:] = np.maximum(1 + more * (values - 1), made_noise.LEAST)
            f.plant(metric, columns[place], 0.0, runs, f"CV {percent(cv)} x {more}, {lasts(runs)}")
    yield f


def clean(chance: Random, rounds: int) -> Iterator[Fleets]:
    """No loss at all: 1,000 nodes, 6 metrics, of each kind of noise in turn."""
    f = new(chance, "clean")
    f.fleets("fleet", 2, 250)
    f.fleets("small", 50, 10)
    for metric in METRICS[:6]:
        f.fill(metric, NOISES["normal"], 0.02)
    yield f


def held_out(kind: str) -> Plane:
    """A kind of noise that no constant was chosen on: a page with losses, and one without."""
    name = kind.replace(" ", "-").lower()
    cells = list(product((3, 20), (0.05, 0.1, 0.2)))

    def plane(chance: Random, rounds: int) -> Iterator[Fleets]:
        for bad, site in ((cells, name), ([], f"{name}-clean")):
            f = new(chance, site)
            fleets = f.fleets("fleet", rounds, 50)
            for place, (metric, cv) in enumerate(zip(METRICS, made_held_out.CVS, strict=False)):
                f.fill(metric, made_held_out.KINDS[kind], cv)
                for columns in fleets:
                    for (runs, loss), column in zip(bad, columns[place::8], strict=False):
                        f.plant(metric, column, loss, runs, f"CV {percent(cv)}, {lasts(runs)}")
            yield f

    return plane


NODES_PLANES: dict[str, Plane] = {
    "grid": grid,
    "nodes": by_size,
    "share": by_share,
    "acceptance": without_past,
    "small": small,
    "kinds": populations,
    "noise": by_noise,
    "scattering": scattering,
    "clean": clean,
    **{f"held-out {kind}": held_out(kind) for kind in made_held_out.KINDS},
}


def score_nodes(f: Fleets, answer: dict[str, Any], cells: Cells, page: Page) -> None:
    """Compare what `nodes` says with the truth: an item is a node and metric that it accuses."""
    truth = {(slow.metric, slow.node): slow for slow in f.slow}
    said: dict[tuple[str, str], str] = {}
    for node in answer["nodes"]:
        if node["state"] in ("OK", "UNTESTED"):
            continue
        for number, found in enumerate(node["findings"]):
            unconfirmed = found.get("details", {}).get("rule") == "unconfirmed"
            if unconfirmed or found["kind"] == "not_measured":
                continue
            key = found.get("metric", "").partition(" [")[0], node["node"]
            said.setdefault(key, f"{node['state']}: {node['reasons'][number]}")
    for key, text in said.items():
        page.add(Told.RIGHT if key in truth else Told.FALSE, f"{key[1]} {key[0]}: {text}")
    states = {node["node"]: node for node in answer["nodes"]}
    for key, slow in truth.items():
        cells.add(slow.row, slow.loss, key in said)
        if key not in said:
            node = states[slow.node]
            notes = "; ".join(node["notes"]) or "nothing"
            page.miss(slow.row, slow.loss, f"{slow.node} {slow.metric}: {node['state']}, {notes}")


def score_gate(f: Fleets, answer: dict[str, Any], cells: Cells, page: Page) -> None:
    """Compare whom the gate keeps out with the truth: an item is a node."""
    out = set(nodesets.parse(answer["out"])) if answer["out"] else set()
    bad = {slow.node for slow in f.slow}
    for node in out:
        page.add(Told.RIGHT if node in bad else Told.FALSE, f"{node} stays out")
    for slow in f.slow:
        cells.add(slow.row, slow.loss, slow.node in out)


# ---- compare


@dataclass
class Compared:
    """A site whose newest session differs. changed: (metric, role, node or "" for all, row)."""

    site: MadeSite
    changed: list[tuple[str, str, str, float, str]] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """The site with its samples."""
        self.site.write(folder)


def campaigns(chance: Random, rounds: int) -> Iterator[Compared]:
    """The newest session beside the one before: one node of each fleet fell, or all of it."""
    for runs in (1, 3):
        f = new(chance, f"before-after-{runs}", runs=2 * runs)
        f.site.campaigns = {run: "before" if run < runs else "after" for run in range(2 * runs)}
        made = Compared(f.site)
        fleets = {
            size: f.fleets(f"of{size}", 3 * rounds * len(LOSSES), size) for size in (1, 4, 20)
        }
        roles = {nodes[0]: role for role, nodes in f.site.roles.items()}
        for metric, cv in zip(METRICS, (0.01, 0.05), strict=False):
            f.fill(metric, NOISES["normal"], cv)
            for size, columns in ((size, c) for size, of in fleets.items() for c in of):
                number = fleets[size].index(columns)
                loss, kind = LOSSES[number % len(LOSSES)], number // len(LOSSES) % 3
                if kind == 2:
                    continue  # clean
                part = columns[:1] if kind == 0 else columns
                f.site.values[metric][runs:, part] *= 1 - loss
                role = roles[f.site.nodes[columns[0]]]
                node = f.site.nodes[columns[0]] if kind == 0 and size > 1 else ""
                what = "one" if node else "all"
                row = f"{what} of {size}, CV {percent(cv)}, {runs} and {runs} runs"
                made.changed.append((metric, role, node, loss, row))
        yield made


def counts(chance: Random, rounds: int) -> Iterator[Compared]:
    """Counts of errors that were 0 everywhere: 1, 3 or 20 on one node of 20, or on all."""
    f = new(chance, "counts", runs=2)
    made = Compared(f.site)
    fleets = f.fleets("fleet", 6 * rounds, 20)
    roles = list(f.site.roles)
    for metric in COUNTS[:1]:
        f.site.values[metric] = np.zeros((2, len(f.site.nodes)))
        for number, columns in enumerate(fleets):
            size, everywhere = (1, 3, 20)[number % 3], number // 3 % 2
            part = columns if everywhere else columns[:1]
            f.site.values[metric][1, part] = size
            node = "" if everywhere else f.site.nodes[columns[0]]
            row = "count from 0, " + ("all" if everywhere else "one of 20")
            made.changed.append((metric, roles[number], node, float(size), row))
    yield made


COMPARE_PLANES: dict[str, Callable[[Random, int], Iterator[Compared]]] = {
    "campaigns": campaigns,
    "counts": counts,
}


def score_compare(made: Compared, answer: dict[str, Any], cells: Cells, page: Page) -> None:
    """Compare what `compare` says with the truth: an item is a worse row, or a node that fell."""
    truth = {(metric, role, node) for metric, role, node, *_ in made.changed}
    said: set[tuple[str, str, str]] = set()
    for row in answer["rows"]:
        metric = row["metric"].partition(" [")[0]
        if row["verdict"].startswith("worse"):
            said.add((metric, row["role"], ""))
        said |= {(metric, row["role"], node) for node in row["worst"]}
    for metric, role, node in said:
        mine = {(m, r, n) for m, r, n in truth if (m, r) == (metric, role)}
        right = (metric, role, node) in truth or (metric, role, "") in truth
        told = Told.RIGHT if right else Told.MISNAMED if mine and not node else Told.FALSE
        page.add(told, f"{metric} of {role} {node}")
    for metric, role, node, size, row in made.changed:
        alone = {n for m, r, n in said if (m, r) == (metric, role)}
        cells.add(row, size, node in alone if node else bool(alone))
        if not alone:
            page.miss(row, size, f"{metric} of {role} {node}")
