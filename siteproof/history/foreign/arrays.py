"""Arrays by what they hold, and the result of reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Objects = NDArray[np.object_]
MODE, SOURCE = "imported", "reframe"


@dataclass
class Batch:
    """What a file of ReFrame yields, or a part of one.

    A line is one job's: number (its line, or its test case), time and began (its session's), in
    microseconds since 1970 UTC, job (numbers or texts), head (in heads), node (in
    nodes). A figure is a line's: line (index), template (in templates), value (NaN where there is
    none), digits (None where the value prints like that), trial.
    refused: `FILE:LINE: why`, one a line that could not be read. told: what else a person should
    know: units, zones, lines of tests that measure nothing. systems: as the file names them.
    """

    heads: Sequence[dict[str, Any]]
    templates: Sequence[dict[str, Any]]
    nodes: Sequence[str]
    lines: dict[str, np.ndarray]
    figures: dict[str, np.ndarray]
    refused: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    systems: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.figures["value"])


def jobs(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers of jobs where all are such, else texts."""
    if parts and all(part.dtype == np.int64 for part in parts):
        return np.concatenate(parts)
    texts = [part.astype(str).astype(object) for part in parts]
    return np.concatenate([np.array([], dtype=object), *texts])
