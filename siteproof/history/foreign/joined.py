"""Lines and figures, put together from contexts and columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from siteproof import units
from siteproof.errors import harmless
from siteproof.history import rows
from siteproof.history.foreign.arrays import SOURCE, Batch, Ints, Objects, jobs
from siteproof.history.foreign.origins import FAILED, Context
from siteproof.history.foreign.values import NONE, NOT_FINITE, Figures
from siteproof.record.samples import Header
from siteproof.units import UNITS

_SECOND = r"(?:s|sec|secs|second|seconds)"
_RATE = re.compile(rf"([kKMGTP]?i?)(B|[Bb]ytes?|b|[Bb]its?)(?:/{_SECOND}|ps)")
_FLOPS = re.compile(rf"([kKMGTP]?)(?:(?:flops?|FLOPs?|FLOPS?|Flops?)/{_SECOND}|flops|FLOPS|Flops)")
_WORDS = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "nsec": "ns",
    "nanoseconds": "ns",
    "usec": "us",
    "usecs": "us",
    "microseconds": "us",
    "msec": "ms",
    "milliseconds": "ms",
    "\u00b5s": "us",
    "\u03bcs": "us",
    "minutes": "min",
    "hours": "h",
    "percent": "%",
    "KB": "kB",
    "bytes": "B",
}


@cache
def known(text: str) -> str:
    """The unit under its name in siteproof.units; empty where it means nothing there."""
    if text in UNITS and text != "text":
        return text
    if match := _RATE.fullmatch(text):
        prefix = match[1] if match[1] == "Ki" else match[1].replace("K", "k")
        name = prefix + (
            "b/s" if match[2].startswith("b") and match[2] in ("b", "bit", "bits") else "B/s"
        )
    elif match := _FLOPS.fullmatch(text):
        name = match[1].replace("K", "k") + "FLOPS"
    else:
        name = _WORDS.get(text, "")
    return name if name in UNITS else ""


@dataclass
class Lines:
    """Some lines of one file. number, time, began, head, node: (n,) as in Batch. job: (n,)."""

    number: Ints
    time: Ints
    began: Ints
    job: Ints | Objects
    head: Ints
    node: Ints


@dataclass
class Table:
    """What has been read of a file. file: its name below perflogs."""

    file: str
    strange: set[str] = field(default_factory=set)  # units that mean nothing here
    lines: list[Lines] = field(default_factory=list)
    figures: list[dict[str, np.ndarray]] = field(default_factory=list)
    count: int = 0
    nodes: dict[str, int] = field(default_factory=dict)  # their numbers by their names
    _heads: list[dict[str, Any]] = field(default_factory=list)
    _templates: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict)
    _contexts: dict[int, Context] = field(default_factory=dict)  # holds each, so its id stays

    def node(self, name: str) -> int:
        """The number of a node."""
        return self.nodes.setdefault(name, len(self.nodes))

    def head(self, context: Context) -> int:
        """The number of the columns that all lines of a context share."""
        key = (id(context),)
        if key not in self._known:
            self._contexts[id(context)] = context
            self._known[key] = len(self._heads)
            self._heads.append(
                {
                    "system": context.system,
                    "partition": context.partition,
                    "environment": context.environment,
                    "campaign": "",
                    "mode": context.conditions["mode"],
                    "check_name": context.check,
                    "source": SOURCE,
                    "file": self.file,
                }
            )
        return self._known[key]

    def template(self, context: Context, variable: str, unit: str, kind: int) -> int:
        """The number of the columns that all figures of a variable, unit and kind share."""
        key = (id(context), variable, unit, kind)
        if key not in self._known:
            self._contexts[id(context)] = context
            self._known[key] = len(self._templates)
            self._templates.append(_template(context, variable, unit, kind))
            if not kind and not known(unit):
                self.strange.add(harmless(unit))
        return self._known[key]

    def add(self, lines: Lines, columns: Sequence[tuple[Ints, Figures]], trial: int = 0) -> None:
        """Add lines, and for each variable its templates and figures, (n,) each."""
        index = np.arange(self.count, self.count + len(lines.number))
        self.lines.append(lines)
        self.count += len(index)
        self.figures += [
            {
                "line": index,
                "template": template,
                "value": held.values,
                "digits": held.digits,
                "trial": np.full(len(index), trial, dtype=np.int32),
            }
            for template, held in columns
        ]

    def add_several(
        self, lines: Lines, owner: Ints, template: Ints, held: Figures, trial: np.ndarray
    ) -> None:
        """Add lines with any number of figures. owner: (m,) the line of each, from 0."""
        self.lines.append(lines)
        self.figures.append(
            {
                "line": owner + self.count,
                "template": template,
                "value": held.values,
                "digits": held.digits,
                "trial": trial,
            }
        )
        self.count += len(lines.number)

    def notes(self) -> list[str]:
        """What is told of units."""
        return [
            f"unit '{unit}' means nothing here and is kept as it is"
            if unit
            else "figures without a unit"
            for unit in sorted(self.strange)
        ]

    def batch(self) -> Batch:
        """All lines and figures since the last one."""
        found = Batch(
            self._heads,
            self._templates,
            list(self.nodes),
            _joined(
                [vars(held) for held in self.lines],
                {"number": int, "time": int, "began": int, "head": int, "node": int},
            )
            | {"job": jobs([held.job for held in self.lines])},
            _joined(
                self.figures,
                {"line": int, "template": int, "value": float, "digits": object, "trial": np.int32},
            ),
        )
        self.lines, self.figures, self.count = [], [], 0
        return found


def _joined(parts: Sequence[Mapping[str, Any]], kinds: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: np.concatenate([np.array([], dtype=kind), *[part[name] for part in parts]])
        for name, kind in kinds.items()
    }


def _template(context: Context, variable: str, printed: str, kind: int) -> dict[str, Any]:
    head = Header(
        session="",
        system=context.system,
        partition=context.partition,
        environment=context.environment,
        check=context.check,
        job="",
        time="",
        mode=context.conditions["mode"],
    )
    held = rows.context(head, {k: v for k, v in context.conditions.items() if k != "mode"})
    metric, unit = f"{context.check}.{variable}", known(printed)
    status, why = _failure(context, kind) if kind else ("ok", "")
    return {
        "metric": metric,
        "unit": "" if kind else unit or harmless(printed),
        "factor": rows.factor(unit) if unit else 1.0,
        "kind": units.kind(unit) if unit and not kind else "",
        "status": status,
        "why": why,
        "dims": rows.canonical(context.dims),
        "conditions": held.conditions,
        "context": held.key,
        "series": held.part ^ rows.of_metric(metric) ^ rows.of_dims(context.dims),
    }


def _failure(context: Context, kind: int) -> tuple[str, str]:
    if kind == NOT_FINITE:
        return "invalid", "the value is no finite number"
    if kind == NONE and context.result in FAILED:
        return "generic", context.why or "the test failed, without a value"
    return "parse", "the test gave no value"
