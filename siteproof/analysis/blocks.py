"""Slow trunks and leaves: two parts of a network that are good inside and slow between them.

A cable or switch that carries all pairs between two sets of nodes makes all of these pairs slow,
and no node is at fault. Sets to look at: groups of the site, and every branch of the tree of an
average linkage (Sokal and Michener, 1958) of the pairs' rates, in which nodes across one slow trunk
are near each other. A block counts if its pairs are slower than those inside *either* set, by the
difference of two medians: nodes that are slow themselves are slow inside their set, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.slow_nodes import MAD_TO_SIGMA, MEDIAN_ERROR

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Pair = tuple[str, str]
Sides = tuple[Bools, Bools]

LEAST = 2  # nodes of a set; a single one is a bad node
LOSS = 0.05  # of the pairs between the sets; a smaller one is no fault
# Simulated: .1 % of clean matrices of 4 to 32 nodes exceed ERRORS x (1 + FEW / pairs), also where
# the pairs of a node are alike; the noise of few pairs is uncertain.
ERRORS, FEW = 4.0, 6.0
QUARTER = 25  # per cent: three quarters of the pairs between are below three quarters of the inner
LOWEST = 1e-3  # of the median: what a pair without a value counts as
DENSE = 0.5  # of the pairs between two sets, and inside each
MAX_BLOCKS = 8  # blocks that are looked for


@dataclass(frozen=True)
class Block:
    """The pairs between a set of nodes and others. inside: the smaller set; share: what they lack.

    pairs: those that are slow: both directions, or only one.
    """

    inside: frozenset[str]
    outside: frozenset[str]
    share: float
    pairs: frozenset[Pair]


def blocks(
    values: Mapping[Pair, float], better: str, groups: Collection[frozenset[str]] = ()
) -> list[Block]:
    """The slow blocks of pairs, those that explain most first.

    values: by directed pair, above 0 where there is one. groups: sets of nodes that may share a
    part of the network.
    """
    nodes = sorted({node for pair in values for node in pair})
    if len(nodes) < 2 * LEAST:
        return []
    ways = _ways(values, nodes, better)
    both = np.fmin(ways, ways.T)
    found: list[Block] = []
    candidates = list(_candidates(both, nodes, groups))
    while len(found) < MAX_BLOCKS:
        candidates = [sides for sides in candidates if _is_dense(both, *sides)]
        scores = [_score(both, *sides) for sides in candidates]
        if max(scores, default=0.0) <= 0:
            break
        inside, outside = candidates[scores.index(max(scores))]
        found.append(_block(ways, both, inside, outside, nodes))
        both[np.ix_(inside, outside)] = both[np.ix_(outside, inside)] = np.nan
    return found


def _ways(values: Mapping[Pair, float], nodes: Sequence[str], better: str) -> Floats:
    """The logarithm of each pair's value, higher is better; NaN where there is none."""
    place = {node: number for number, node in enumerate(nodes)}
    usable = [value for value in values.values() if 0 < value < np.inf]
    middle = float(np.median(usable)) if usable else 1.0
    found = np.full((len(nodes), len(nodes)), np.nan)
    for (a, b), value in values.items():
        low = middle * LOWEST if better == "higher" else middle / LOWEST
        size = float(np.log((value if 0 < value < np.inf else low) / middle))
        found[place[a], place[b]] = size if better == "higher" else -size
    return found


def _candidates(
    both: Floats, nodes: Sequence[str], groups: Collection[frozenset[str]]
) -> Iterator[Sides]:
    """Two sets of two nodes or more, the smaller one first; together they need not be all nodes."""
    seen = set()
    own = [np.array([node in group for node in nodes]) for group in groups]
    splits = [*((one, ~one) for one in own), *_splits(both)]
    for one, other in splits:
        inside, outside = (one, other) if one.sum() <= other.sum() else (other, one)
        key = inside.tobytes(), outside.tobytes()
        if inside.sum() >= LEAST and key not in seen:
            seen.add(key)
            yield inside, outside


def _splits(both: Floats) -> Iterator[Sides]:
    """Every branch of the tree compared with its sister, and with all other nodes."""
    from scipy.cluster import hierarchy

    count = len(both)
    near = np.where(np.isnan(both), np.nanmedian(both), both)
    away = float(near.max()) - near[np.triu_indices(count, 1)]
    members = list(np.eye(count, dtype=bool))
    for one, other, *_ in hierarchy.linkage(away, "average"):
        sisters = members[int(one)], members[int(other)]
        members.append(sisters[0] | sisters[1])
        yield sisters
        yield members[-1], ~members[-1]


def _parts(both: Floats, inside: Bools, outside: Bools) -> tuple[Floats, Floats, Floats]:
    """The pairs between two sets, and those inside of each, every pair once."""
    upper = np.triu(~np.isnan(both), 1)
    between = both[np.ix_(inside, outside)]
    within = [both[upper & side[:, None] & side] for side in (inside, outside)]
    return between[~np.isnan(between)], within[0], within[1]


def _is_dense(both: Floats, inside: Bools, outside: Bools) -> bool:
    """Whether most pairs between and inside were measured: of few pairs a tree is chance."""
    sizes = int(inside.sum()), int(outside.sum())
    possible = sizes[0] * sizes[1], *(n * (n - 1) / 2 for n in sizes)
    there = (part.size for part in _parts(both, inside, outside))
    return all(n >= DENSE * most for n, most in zip(there, possible, strict=True))


def _score(both: Floats, inside: Bools, outside: Bools) -> float:
    """How much the block explains, in pairs; below 0 where the evidence is not enough."""
    between, *within = _parts(both, inside, outside)
    if not between.size or not all(part.size for part in within):
        return -1.0
    middle = float(np.median(between))
    lower = min(within, key=lambda part: float(np.median(part)))
    loss = float(np.median(lower)) - middle
    if 1 - exp(-loss) < LOSS:
        return -1.0
    if np.percentile(between, 100 - QUARTER) >= min(np.percentile(w, QUARTER) for w in within):
        return -1.0
    large = [part - np.median(part) for part in (between, *within) if part.size > LEAST]
    away = np.concatenate(large or [np.empty(0)])
    if away.size < 2 * LEAST:
        return -1.0
    sd = max(MAD_TO_SIGMA * float(np.median(np.abs(away))), float(away.std()) / 2, LOSS / 10)
    error = sd * MEDIAN_ERROR * sqrt(1 / between.size + 1 / lower.size)
    if loss / error < ERRORS * (1 + FEW / away.size):
        return -1.0
    return loss * between.size


def _block(
    ways: Floats, both: Floats, inside: Bools, outside: Bools, nodes: Sequence[str]
) -> Block:
    between, *within = _parts(both, inside, outside)
    typical = min(float(np.median(part)) for part in within)
    loss = typical - float(np.median(between))
    pairs = set()
    for one, other in ((inside, outside), (outside, inside)):
        way = ways[np.ix_(one, other)]
        if not np.isnan(way).all() and typical - float(np.nanmedian(way)) > loss / 2:
            rows, columns = np.flatnonzero(one), np.flatnonzero(other)
            for row, column in np.argwhere(~np.isnan(way)).tolist():
                pairs.add((nodes[rows[row]], nodes[columns[column]]))
    names = np.array(nodes)
    return Block(
        frozenset(names[inside].tolist()),
        frozenset(names[outside].tolist()),
        1 - exp(-loss),
        frozenset(pairs),
    )
