"""Of knobs that were changed one at a time and at their corners: which setting was the best.

The best of many settings looks better than it is, so it must differ from the machine's own values
by more than noise does (siteproof.analysis.before_after).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from siteproof import units
from siteproof.analysis.before_after import Change, compare
from siteproof.record.point import KNOB, OWN
from siteproof.record.samples import Sample
from siteproof.sites import Metric

Dims = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Setting:
    """The best of several settings. place: the other dimensions; knobs: without `knob.`.

    value: the median, in the catalogue's unit. change: against the machine's own values; None where
    they were not measured, or are the best.
    """

    metric: str
    unit: str
    place: Dims
    knobs: Dims
    value: float
    settings: int
    change: Change | None


def best(samples: Iterable[Sample], catalogue: Mapping[str, Metric]) -> list[Setting]:
    """The best setting of each metric whose direction is known, place by place."""
    values: dict[tuple[str, Dims], dict[Dims, list[float]]] = {}
    for sample in samples:
        entry = catalogue.get(sample.metric)
        if sample.status != "ok" or entry is None or entry.better == "neither":
            continue
        knobs = tuple(
            sorted((k.removeprefix(KNOB), v) for k, v in sample.dims.items() if k.startswith(KNOB))
        )
        place = tuple(sorted((k, v) for k, v in sample.dims.items() if not k.startswith(KNOB)))
        value = float(units.convert(sample.number, sample.unit, entry.unit))
        values.setdefault((sample.metric, place), {}).setdefault(knobs, []).append(value)
    return [
        _best(metric, catalogue[metric], place, settings)
        for (metric, place), settings in sorted(values.items())
        if len(settings) > 1
    ]


def _best(metric: str, entry: Metric, place: Dims, settings: Mapping[Dims, list[float]]) -> Setting:
    sign = -1 if entry.better == "lower" else 1
    chosen = max(settings, key=lambda knobs: (sign * median(settings[knobs]), knobs))
    own = next((v for k, v in settings.items() if all(text == OWN for _, text in k)), None)
    is_own = all(text == OWN for _, text in chosen)
    change = None if own is None or is_own else compare(own, settings[chosen], entry.better)
    return Setting(
        metric, entry.unit, place, chosen, median(settings[chosen]), len(settings), change
    )
