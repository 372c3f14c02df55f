"""Nodes of one kind in run after run, each compared with all of them: robust z, deficit, slow.

The rule for one run is that of siteproof.analysis.slow_nodes. Of three to nine nodes the MAD may be
that of the bad ones; there a gross deficit against the others alone counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from siteproof.analysis.screen import row_medians
from siteproof.analysis.slow_nodes import (
    CLEAR_DEFICIT,
    FEW,
    MAD_TO_SIGMA,
    MIN_DEFICIT,
    MIN_FLEET,
    RESOLUTION,
    Z_LIMIT,
    Level,
    Middle,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

COVERS = 0.5  # of the nodes: a run with fewer, such as a retest, has no median of its own
MIN_GROSS = 3  # nodes: of two either may be the bad one
FEW_NODES = 9


@dataclass(frozen=True)
class Ranks:
    """z, deficit, slow: of each node in each run. z: NaN where too few nodes allow none.

    fleet: the nodes that the values of each run are compared with.
    """

    z: Floats
    deficit: Floats
    slow: Bools
    fleet: tuple[Middle, ...]


def ranks(values: Floats, better: str, noise: float = 0.0) -> Ranks:
    """Compare nodes of one kind. values: (nodes, runs), NaN where a node was not measured.

    better: higher or lower. noise: from run to run, as a share. A run that measured less than half
    of the nodes is compared with the last one that measured more, or with the first one.
    """
    alike = _like(~np.isnan(values))
    fleet = [_middle(column) for column in values.T]
    if not alike.size and len(fleet):
        last = np.array([row[~np.isnan(row)][-1] for row in values if not np.isnan(row).all()])
        fleet = [_middle(last)] * len(fleet)
    elif alike.size:
        fleet = [fleet[number] for number in alike]
    sign = 1 if better == "higher" else -1
    medians, sds, counts = (
        np.array([getattr(one, name) for one in fleet], dtype=float)
        for name in ("median", "sd", "count")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        deficit = np.where(medians > 0, sign * (1 - values / medians), 0.0)
        z = np.where((medians > 0) & (counts >= MIN_FLEET), sign * (values - medians) / sds, np.nan)
        slow = (z < Z_LIMIT) & (deficit >= MIN_DEFICIT)
    if MIN_GROSS <= len(values) <= FEW_NODES:
        slow |= _gross(values, better, noise)
    return Ranks(z, deficit, slow, tuple(fleet))


def _like(there: Bools) -> NDArray[np.intp]:
    """Of each run, the run whose nodes its values are compared with; empty if there is none."""
    whole = np.flatnonzero(there.sum(axis=0) >= COVERS * len(there))
    if not whole.size:
        return whole
    before = np.searchsorted(whole, np.arange(there.shape[1]), side="right") - 1
    return whole[np.maximum(before, 0)]


def _middle(column: Floats) -> Middle:
    known = column[~np.isnan(column)]
    if not known.size:
        return Middle(0.0, 0.0, 0)
    centre = float(np.median(known))
    found = Level(centre, float(np.median(np.abs(known - centre))), known.size)
    return Middle(centre, found.sd, known.size)


def _gross(values: Floats, better: str, noise: float) -> Bools:
    """Who lacks a fifth of the others' median, and more than they differ from each other."""
    sign = 1 if better == "higher" else -1
    found = np.zeros(values.shape, dtype=bool)
    for node in range(len(values)):
        others = np.delete(values, node, axis=0).T
        count = (~np.isnan(others)).sum(axis=1)
        centre = row_medians(others)
        mad = row_medians(np.abs(others - centre[:, None]))
        few = np.array([FEW.get(number, 1.1) for number in count.tolist()])
        sd = np.maximum(MAD_TO_SIGMA * few * mad, max(RESOLUTION, noise) * centre)
        with np.errstate(divide="ignore", invalid="ignore"):
            deficit = sign * (1 - values[node] / centre)
            far = sign * (values[node] - centre) < Z_LIMIT * sd
            found[node] = (count >= MIN_GROSS - 1) & far & (deficit >= CLEAR_DEFICIT)
    return found
