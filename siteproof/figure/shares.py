"""Shares of the typical value as kinds of cells, from light to dark, so that a grey print differs.

Clearly worse is what the rules on slow nodes and pairs call so: below the typical value, yet within
the scatter, is not.
A cell without a value has a pattern.
"""

from __future__ import annotations

import numpy as np

from siteproof.figure.pixels import Kind

EDGES = (0.98, 0.95, 0.90)  # a loss below 2 % is not worth a repair (siteproof.analysis.slow_nodes)
TYPICAL, BROKEN, MISSING, FAILED, SHORT, TOO_FEW = 0, 4, 5, 6, 7, 8
KINDS = (
    Kind("not clearly worse", "#e1ecf5"),
    Kind("2 to 5 % worse", "#e9b44c"),
    Kind("5 to 10 % worse", "#c9752d"),
    Kind("more than 10 % worse", "#8c3413"),
    Kind("misses the contract", "#2b0606"),
    Kind("not measured", "#ffffff", "/", "#8a8a8a"),
    Kind("failed", "#000000", "x", "#ffffff"),
    Kind("cut short", "#cccccc", "-", "#555555"),
    Kind("too few to judge", "#ffffff", ".", "#8a8a8a"),
)


def kinds_of(shares: np.ndarray) -> np.ndarray:
    """Indices into KINDS. shares: of the typical value; 1 or more is good, NaN is not measured."""
    worse = np.zeros(shares.shape, dtype=np.uint8)
    for edge in EDGES:
        worse += shares < edge
    return np.where(np.isnan(shares), np.uint8(MISSING), worse)


def is_dark(kind: int) -> bool:
    """Whether a text on it must be white."""
    return kind in (3, BROKEN, FAILED)
