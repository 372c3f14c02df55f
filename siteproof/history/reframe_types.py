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
# Columns of the view `samples` that lines and figures share with many others.
OF_A_HEAD = ("system", "partition", "environment", "campaign", "mode", "check_name", "file",
             "source")
OF_A_TEMPLATE = ("metric", "unit", "kind", "status", "why", "dims", "conditions", "series")
_KINDS = {"series": np.uint64}


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

    def columns(self) -> dict[str, np.ndarray]:
        """One array a column of the view `samples`, in the order of the file's lines."""
        number = self.lines["number"][self.figures["line"]]
        order = np.argsort(number, kind="stable")
        line, template = self.figures["line"][order], self.figures["template"][order]
        value, head = self.figures["value"][order], self.lines["head"][line]
        factor = np.array([t["factor"] for t in self.templates] or [1.0])
        found = {name: _taken(self.heads, name)[head] for name in OF_A_HEAD}
        found |= {name: _taken(self.templates, name)[template] for name in OF_A_TEMPLATE}
        found |= {
            "node": np.array(self.nodes, dtype=object)[self.lines["node"][line]],
            "session": sessions(self.lines["began"][line]),
            "job": self.lines["job"][line].astype(str).astype(object),
            "time": self.lines["time"][line].view("datetime64[us]"), "value": value,
            "digits": _printed(value, self.figures["digits"][order]),
            "base": value * factor[template], "trial": self.figures["trial"][order]}
        return found


def jobs(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers of jobs where all are such, else texts."""
    if parts and all(part.dtype == np.int64 for part in parts):
        return np.concatenate(parts)
    texts = [part.astype(str).astype(object) for part in parts]
    return np.concatenate([np.array([], dtype=object), *texts])


def sessions(began: Ints) -> Objects:
    """Names of sessions: 20261121T193948Z-reframe."""
    texts = np.datetime_as_string((began // 1_000_000).view("datetime64[s]"))
    return np.array([t.replace("-", "").replace(":", "") + f"Z-{SOURCE}" for t in texts.tolist()],
                    dtype=object)


def _taken(held: Sequence[dict[str, Any]], name: str) -> np.ndarray:
    return np.array([row[name] for row in held], dtype=_KINDS.get(name, object))


def _printed(values: Floats, digits: Objects) -> Objects:
    pairs = zip(values.tolist(), digits.tolist(), strict=True)
    return np.array([None if v != v else str(v) if d is None else d for v, d in pairs],
                    dtype=object)
