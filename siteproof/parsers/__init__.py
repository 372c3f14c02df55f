"""One file a tool: text in, readings out. A parser knows neither ReFrame nor Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from siteproof.errors import OutputError, harmless

ALL = "*"  # the metrics of a check


@dataclass(frozen=True)
class Reading:
    """One value of a tool's output: the tool's own digits in the tool's own unit.

    metric: the name without its check, such as `triad`.
    value: the digits as printed; text where the unit is `text`.
    dims: what the value belongs to beyond its node, such as {"size": "4194304"}.
    line: the tool's own line with the value, where that misses a bound (siteproof.collect.outcome).
    status: `ok`, or as that of OutputError, where only a part of the node failed (see `failure`).

    A control character that a tool printed becomes `?` here, for all parsers.
    """

    metric: str
    value: Decimal | str
    unit: str
    dims: Mapping[str, str] = field(default_factory=dict)
    line: str = ""
    status: str = "ok"

    def __post_init__(self) -> None:
        dims = {harmless(key): harmless(text) for key, text in self.dims.items()}
        vars(self).update(metric=harmless(self.metric), unit=harmless(self.unit), dims=dims)
        if isinstance(self.value, str):
            vars(self)["value"] = harmless(self.value)


def count(metric: str, number: int) -> Reading:
    """How many there are of something."""
    return Reading(metric, Decimal(number), "count")


def failure(error: OutputError, **dims: str) -> Reading:
    """What failed with a part of the node alone, such as a GPU: no metric has a value of it."""
    return Reading(ALL, str(error), "text", dims, status=error.status)
