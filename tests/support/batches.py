"""Batches of ReFrame's lines as columns of the view `samples`, without a store."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from siteproof.history.foreign import formats
from siteproof.history.foreign.arrays import SOURCE, Batch

OF_A_HEAD = (
    "system",
    "partition",
    "environment",
    "campaign",
    "mode",
    "check_name",
    "file",
    "source",
)
OF_A_TEMPLATE = ("metric", "unit", "kind", "status", "why", "dims", "conditions", "series")


def rows(path: Path, **told: str) -> Batch:
    """All rows of a perflog or a run report at once."""
    (found,) = formats.batches(path, blocks=sys.maxsize, **told)
    return found


def columns(batch: Batch) -> dict[str, np.ndarray]:
    """One array a column, in the order of the file's lines."""
    number = batch.lines["number"][batch.figures["line"]]
    order = np.argsort(number, kind="stable")
    line, template = batch.figures["line"][order], batch.figures["template"][order]
    value, head = batch.figures["value"][order], batch.lines["head"][line]
    factor = np.array([t["factor"] for t in batch.templates] or [1.0])
    found = {name: _taken(batch.heads, name)[head] for name in OF_A_HEAD}
    found |= {name: _taken(batch.templates, name)[template] for name in OF_A_TEMPLATE}
    return found | {
        "node": np.array(batch.nodes, dtype=object)[batch.lines["node"][line]],
        "session": _sessions(batch.lines["began"][line]),
        "job": batch.lines["job"][line].astype(str).astype(object),
        "time": batch.lines["time"][line].view("datetime64[us]"),
        "place": np.zeros(line.size, dtype=np.int64),
        "value": value,
        "digits": _printed(value, batch.figures["digits"][order]),
        "base": value * factor[template],
        "trial": batch.figures["trial"][order],
    }


def _sessions(began: np.ndarray) -> np.ndarray:
    """Names of sessions: 20261121T193948Z-reframe."""
    texts = np.datetime_as_string((began // 1_000_000).view("datetime64[s]"))
    return np.array(
        [t.replace("-", "").replace(":", "") + f"Z-{SOURCE}" for t in texts.tolist()], dtype=object
    )


def _taken(held, name):
    kind = np.uint64 if name == "series" else object
    return np.array([row[name] for row in held], dtype=kind)


def _printed(values, digits):
    pairs = zip(values.tolist(), digits.tolist(), strict=True)
    return np.array(
        [None if v != v else str(v) if d is None else d for v, d in pairs], dtype=object
    )
