"""Values as columns: what jobs have measured, without an object for each value.

A past of thirty sessions of ten thousand nodes has some million values; as samples they take a
kilobyte each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from siteproof import units
from siteproof.record.pair_units import PEER
from siteproof.record.samples import Sample

Ints = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
NOBODY = -1  # the peer of a value of one node


@dataclass(frozen=True)
class ValueTable:
    """Values of nodes and pairs, each in the unit that the catalogue gives its metric.

    kinds: what values share: samples without node, peer and value. kind, node, peer, value: arrays
    of equal length; kind is an index into kinds, node and peer into names.
    """

    kinds: Sequence[Sample]
    names: Sequence[str]
    kind: Ints
    node: Ints
    peer: Ints
    value: Floats

    def where(self, rows: NDArray[np.bool_]) -> ValueTable:
        """Some of the rows."""
        if rows.all():
            return self
        kind, node, peer = self.kind[rows], self.node[rows], self.peer[rows]
        return ValueTable(self.kinds, self.names, kind, node, peer, self.value[rows])

    def plus(self, other: ValueTable) -> ValueTable:
        """The rows of both."""
        names = list(dict.fromkeys((*self.names, *other.names)))
        place = {name: number for number, name in enumerate(names)}
        moved = np.array([*(place[name] for name in other.names), NOBODY])
        return ValueTable(
            (*self.kinds, *other.kinds),
            names,
            np.concatenate((self.kind, other.kind + len(self.kinds))),
            np.concatenate((self.node, moved[other.node])),
            np.concatenate((self.peer, moved[other.peer])),
            np.concatenate((self.value, other.value)),
        )


def of_samples(samples: Iterable[Sample], metrics: Mapping[str, str]) -> ValueTable:
    """The values among samples. metrics: those that count, each with its unit.

    Values of no node are left out.
    """
    kinds: dict[object, tuple[int, Sample]] = {}
    names: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    values: list[float] = []
    for sample in samples:
        if sample.status != "ok" or sample.metric not in metrics or not sample.node:
            continue
        dims = {k: v for k, v in sample.dims.items() if k != PEER}
        peer = sample.dims.get(PEER)
        own = tuple(sorted(dims.items())), tuple(sorted(sample.own_conditions.items()))
        key = (id(sample.header), sample.metric, peer is None, *own)
        if key not in kinds:
            kept = Sample(
                sample.header, "", sample.metric, dims=dims, own_conditions=sample.own_conditions
            )
            kinds[key] = len(kinds), kept
        first = names.setdefault(sample.node, len(names))
        second = NOBODY if peer is None else names.setdefault(peer, len(names))
        rows.append((kinds[key][0], first, second))
        values.append(in_unit(sample.number, sample.unit, metrics[sample.metric]))
    kind, node, peers = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return ValueTable(
        [kept for _, kept in kinds.values()], list(names), kind, node, peers, np.array(values)
    )


def in_unit(value: Decimal, unit: str, own: str) -> float:
    """A value in the unit `own`, rounded once."""
    if unit == own:  # an exact conversion takes longer than all the rest
        return float(value)
    return float(units.convert(value, unit, own))


NO_VALUES = of_samples((), {})
