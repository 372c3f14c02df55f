"""Curves of which others have published landmarks only: the highest value, and the plateau.

They are samples of imported values: Ior.write_max is the highest Ior.write, Ior.write_max_tasks
the place where it was reached, Ior.write_plateau where the curve becomes flat.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from siteproof.figure.line_plot import Line
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.report import promised
from siteproof.sites import printed
from siteproof.units import with_unit

HIGHEST, AT, PLATEAU, SATURATION = "_max", "_max_tasks", "_plateau", "_saturation"
ENDINGS = (AT, HIGHEST, PLATEAU, SATURATION)  # _max_tasks before _max, whose ending it has, too


@dataclass
class PublishedCurve:
    """What one source states about one curve. found: its samples, by ending."""

    metric: str
    source: str
    found: dict[str, list[Sample]] = field(default_factory=dict)

    def row(self) -> tuple[str, ...]:
        """For a table of curves: name, points, best, at, plateau, share of the bound."""
        plateau = self._printed(PLATEAU)
        if SATURATION in self.found:
            plateau = f"{plateau}, saturated at {self._printed(SATURATION)}"
        return (self.name, "-", self._printed(HIGHEST), self._printed(AT), plateau, "-")

    @property
    def name(self) -> str:
        """What it is called next to measured curves."""
        return f"published landmark: {self.source}"

    def line(self, unit: str) -> Line | None:
        """Its highest value as a line of one point; None where value or place is not printed."""
        if HIGHEST not in self.found or AT not in self.found:
            return None
        best, place = self.found[HIGHEST][0], self.found[AT][0]
        value = promised.converted(best.number, best.unit, unit)
        name = f"{self.name}, {self._printed(HIGHEST)} at {self._printed(AT)}"
        return Line(name, [float(place.number)], [value])

    def _printed(self, ending: str) -> str:
        """As printed: `3325 MB/s`, `> 166 tasks`, `from 350 to 400 tasks`."""
        samples = self.found.get(ending)
        if not samples:
            return "-"
        values = [f"{printed.sign(s.conditions.get(printed.STATED, ''))}{s.value}" for s in samples]
        return with_unit(" ".join(values), samples[0].unit)


def of(samples: Iterable[Sample]) -> list[PublishedCurve]:
    """All curves with a landmark among published samples, source by source."""
    found: dict[tuple[str, str], PublishedCurve] = {}
    for sample in samples:
        ending = next((e for e in ENDINGS if sample.metric.endswith(e)), None)
        if ending is None or sample.status != "ok" or sample.header.mode != PUBLISHED:
            continue
        metric, head = sample.metric.removesuffix(ending), sample.header
        source = f"{head.system} {head.campaign or head.time[:10]}"
        curve = found.setdefault((metric, source), PublishedCurve(metric, source))
        curve.found.setdefault(ending, []).append(sample)
    return list(found.values())
