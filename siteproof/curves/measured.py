"""From the samples of one sweep's run to its curves: a metric against an axis, line by line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from siteproof import units
from siteproof.analysis import plateau
from siteproof.analysis.plateau import CurveShape, Point, fairness
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Sample
from siteproof.sites import Metric
from siteproof.sweeps.keys import shown

TASKS, PER_NODE = "tasks", "tasks_per_node"
SLOWEST, FASTEST = "_slowest", "_fastest"  # endings of the metrics of single ranks
ALL = "best of all"  # the line made of the best at each place
FEWEST = 3  # places without which a curve has no shape

Key = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One place of a curve. label: the axis' value; dims: all that its samples share.

    fair: the slowest rank's rate over the fastest's; None where it was not measured.
    """

    label: str
    point: Point
    dims: Mapping[str, str]
    fair: float | None = None

    @property
    def tasks(self) -> int:
        """Ranks in all."""
        return _whole(self.dims, TASKS)

    @property
    def tasks_per_node(self) -> int:
        """Ranks on each node, at most."""
        return _whole(self.dims, PER_NODE)

    @property
    def nodes(self) -> int:
        """Nodes that took part."""
        return -(-self.tasks // self.tasks_per_node)

    @property
    def per_task(self) -> float:
        """The median's part of one task."""
        return self.point.median / self.tasks


@dataclass(frozen=True)
class Curve:
    """One line of a figure. panel: other axes that vary, with values; line: the lines' axis.

    numeric: whether the axis has numbers, so that the curve may become flat.
    """

    metric: str
    unit: str
    better: str
    panel: str
    line: str
    numeric: bool
    rows: Sequence[Row]
    shape: CurveShape | None

    @property
    def best(self) -> Row:
        """The row of the best median; of equal ones the first."""
        sign = -1 if self.better == "lower" else 1
        return max(self.rows, key=lambda row: sign * row.point.median)

    @property
    def line_name(self) -> str:
        """What distinguishes it from the others of its panel, for people: block 4 KiB."""
        return _for_people(self.line)

    @property
    def panel_name(self) -> str:
        """What distinguishes its panel from others, for people."""
        return _for_people(self.panel)

    @property
    def name(self) -> str:
        """The metric with panel and line."""
        names = ", ".join(filter(None, (self.panel_name, self.line_name)))
        return f"{self.metric} [{names}]" if names else self.metric

    @property
    def group_name(self) -> str:
        """The metric with the panel."""
        return replace(self, line="").name


def _for_people(text: str) -> str:
    """`block 4096, depth 4` as `block 4 KiB, depth 4`."""
    parts = [part.partition(" ") for part in text.split(", ")]
    return ", ".join(shown(name, value) if value else name for name, _, value in parts)


@dataclass
class _Place:
    """The repetitions at one place by trial, and those of its slowest and fastest ranks."""

    dims: Mapping[str, str]
    values: dict[str, dict[int, float]]  # by the ending of the metric


def collect(
    samples: Iterable[Sample], catalogue: Mapping[str, Metric], against: str, lines: str = ""
) -> list[Curve]:
    """All curves of a run's good samples, by metric, panel and line.

    Values are in the catalogue's unit. A metric of single ranks becomes the fairness of its own.
    A further axis makes panels only where it has several values at one place of a line.
    """
    by_metric = grouped(
        (s.metric, s)
        for s in samples
        if s.status == "ok" and units.kind(s.unit) != "text" and against in s.dims
    )
    found: list[Curve] = []
    for metric in sorted(by_metric):
        if metric.endswith((SLOWEST, FASTEST)):
            continue
        each, entry = by_metric[metric], catalogue.get(metric)
        ranks = [s for end in (SLOWEST, FASTEST) for s in by_metric.get(metric + end, ())]
        unit, better = (entry.unit, entry.better) if entry else (each[0].unit, "neither")
        for (panel, line), places in _places(each, ranks, against, lines, unit).items():
            found.append(_curve(metric, unit, better, panel, line, places))
    return found


def envelope(lines: Sequence[Curve]) -> Curve:
    """The best line at each place, as one curve. lines: of one figure and panel, not empty."""
    places = grouped((row.point.x, row) for line in lines for row in line.rows)
    rows = [max(places[x], key=lambda row: row.point.median) for x in sorted(places)]
    first = lines[0]
    return replace(first, line=ALL, rows=rows, shape=_shape(first.better, first.numeric, rows))


def groups(found: Sequence[Curve]) -> list[list[Curve]]:
    """The curves of one metric and panel together: they are drawn in one figure."""
    return list(grouped(((curve.metric, curve.panel), curve) for curve in found).values())


def _places(
    of_metric: Sequence[Sample], ranks: Sequence[Sample], against: str, lines: str, unit: str
) -> dict[tuple[str, str], dict[str, _Place]]:
    """By panel and line the places with a value, by the axis' value."""
    others = _panels(of_metric, against, lines)
    found: dict[tuple[str, str], dict[str, _Place]] = {}
    for sample in (*of_metric, *ranks):
        panel = ", ".join(f"{name} {sample.dims.get(name, '-')}" for name in others)
        line = f"{lines} {sample.dims.get(lines, '-')}" if lines else ""
        places = found.setdefault((panel, line), {})
        if sample.metric == of_metric[0].metric:
            new = _Place(sample.dims, {"": {}, SLOWEST: {}, FASTEST: {}})
            places.setdefault(sample.dims[against], new)
        if place := places.get(sample.dims[against]):
            value = float(units.convert(sample.number, sample.unit, unit))
            ending = sample.metric.removeprefix(of_metric[0].metric)
            place.values[ending][sample.trial] = value
    return {key: found[key] for key in sorted(found, key=_natural) if found[key]}


def _panels(of_metric: Sequence[Sample], against: str, lines: str) -> list[str]:
    """The further axes that have several values at one place of a line."""
    seen = grouped(
        ((name, sample.dims[against], sample.dims.get(lines, "")), value)
        for sample in of_metric
        for name, value in sample.dims.items()
        if name not in (against, lines)
    )
    return sorted({name for (name, _, _), values in seen.items() if len(set(values)) > 1})


def _curve(
    metric: str, unit: str, better: str, panel: str, line: str, places: Mapping[str, _Place]
) -> Curve:
    numeric = all(_number(label) is not None for label in places)
    rows = [
        _row(label, _number(label) if numeric else index, places[label])
        for index, label in enumerate(ordered(places))
    ]
    return Curve(metric, unit, better, panel, line, numeric, rows, _shape(better, numeric, rows))


def _row(label: str, x: float | None, place: _Place) -> Row:
    own, slowest, fastest = place.values.values()
    both = sorted(slowest.keys() & fastest.keys())
    fair = fairness([slowest[t] for t in both], [fastest[t] for t in both])
    values = tuple(own[trial] for trial in sorted(own))
    return Row(label, Point(float(x or 0), values), place.dims, fair)


def _shape(better: str, numeric: bool, rows: Sequence[Row]) -> CurveShape | None:
    """Peak and plateau: only where more is better, on an axis of numbers."""
    if not numeric or better != "higher" or len(rows) < FEWEST:
        return None
    return plateau.find([row.point for row in rows])


def _whole(dims: Mapping[str, str], name: str) -> int:
    text = dims.get(name, "1")
    return int(text) if text.isdigit() and int(text) > 0 else 1


def ordered(labels: Iterable[str]) -> list[str]:
    """Places in the order of an axis: words first, such as a knob's own value, then numbers."""
    return sorted(labels, key=lambda label: _natural((label,)))


def _number(text: str) -> float | None:
    try:
        value = float(text) if text[:1].isdigit() else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _natural(key: Key) -> list[tuple[int, float, str]]:
    """Words by letters and numbers by size."""
    order = []
    for part in " ".join(key).split():
        number = _number(part)
        order.append((0, 0.0, part) if number is None else (1, number, ""))
    return order
