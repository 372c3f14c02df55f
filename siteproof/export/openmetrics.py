"""OpenMetrics text 1.0 that node_exporter's textfile collector reads as well.

That collector has the older parser of Prometheus. It refuses a whole file for a time beside a
value or a type that it does not know, such as stateset or info. Hence every family is a gauge,
times are values of their own, and a state is one value of 0 or 1 for each word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from siteproof import units
from siteproof.errors import harmless
from siteproof.units import UNITS

END = "# EOF\n"
SUFFIX = {  # of a name, by the kind of what it holds, which is told in the base unit
    "size": "bytes",
    "rate": "bytes_per_second",
    "flops": "flops_per_second",
    "frequency": "hertz",
    "iops": "operations_per_second",
    "time": "seconds",
    "share": "ratio",
    "hours a month": "hours_per_month",
    "percentage points": "percentage_points",
    "count": "",
}
BASE = {kind: unit for unit, (kind, size) in reversed(UNITS.items()) if size == 1}
Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    """All values of one name. unit: a suffix of SUFFIX, and the end of the name; or empty."""

    name: str
    help: str
    unit: str = ""
    values: dict[Labels, float] = field(default_factory=dict)


@dataclass
class Families:
    """What a file holds, in the order in which the families were begun."""

    known: dict[str, Family] = field(default_factory=dict)

    def put(
        self, name: str, told: str, value: float, labels: Mapping[str, str], unit: str = ""
    ) -> None:
        """Keep one value. name: without its unit. Of two values with equal labels, the first."""
        whole = "_".join(filter(None, ("siteproof", name, unit)))
        family = self.known.setdefault(whole, Family(whole, told, unit))
        kept = tuple((key, text) for key, text in labels.items() if text)
        family.values.setdefault(kept, float(value))

    def text(self) -> str:
        """The whole exposition."""
        return "".join(line for family in self.known.values() for line in _lines(family)) + END


def base(value: object, unit: str) -> tuple[float, str]:
    """A value in the base unit of its kind, and the suffix that names this unit."""
    kind = units.kind(unit)
    return float(units.convert(value, unit, BASE[kind])), SUFFIX[kind]  # type: ignore[arg-type]


def _lines(family: Family) -> Iterable[str]:
    yield f"# TYPE {family.name} gauge\n"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}\n"
    # A quotation mark is escaped in the one form and must not be in the other.
    told = harmless(family.help).replace("\\", "\\\\").replace('"', "'")
    yield f"# HELP {family.name} {told}\n"
    for labels, value in family.values.items():
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        yield (
            f"{family.name}{{{inside}}} {_number(value)}\n"
            if inside
            else (f"{family.name} {_number(value)}\n")
        )


def _escaped(text: str) -> str:
    return harmless(text).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.15g}"
