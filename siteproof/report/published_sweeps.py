"""Landmarks of sweeps that others have published without the curves: highest values, plateaus.

They are samples of imported figures: Ior.write_max is the highest Ior.write, Ior.write_max_tasks
the place where it was reached, Ior.write_plateau where the curve becomes flat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from siteproof.figure.line_chart import Landmark
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.report import promised
from siteproof.sites import printed

HIGHEST, AT, PLATEAU, SATURATION = "_max", "_max_tasks", "_plateau", "_saturation"
ENDINGS = (AT, HIGHEST, PLATEAU, SATURATION)  # the longer one first


@dataclass
class Stated:
    """What one source says of one curve. metric: such as Ior.write; who: system and campaign."""

    metric: str
    system: str
    who: str
    highest: list[Sample] = field(default_factory=list)
    at: list[Sample] = field(default_factory=list)
    plateau: list[Sample] = field(default_factory=list)
    saturation: list[Sample] = field(default_factory=list)

    @property
    def value(self) -> str:
        """The highest value as printed."""
        return _told(self.highest)

    @property
    def place(self) -> str:
        """Where it was reached."""
        return _told(self.at)

    @property
    def says(self) -> str:
        """In words: `x august-2016 3325 MB/s at 414 tasks, plateau 32 tasks`."""
        top = f" {self.value} at {self.place}" if self.highest else ""
        return f"{self.who}{top}" + (f", plateau {self.flat}" if self.flat != "-" else "")

    @property
    def flat(self) -> str:
        """Where it becomes flat, and where it is said to be saturated."""
        parts = [_told(self.plateau)] if self.plateau else []
        if self.saturation:
            parts.append(f"saturated at {_told(self.saturation)}")
        return ", ".join(parts) or "-"

    @property
    def unit(self) -> str:
        """The printed unit of the highest value."""
        return self.highest[0].unit if self.highest else ""

    def drawn(self, unit: str) -> Landmark:
        """For a picture in a unit."""
        told = [
            f"highest {self.value}" if self.highest else "",
            f"at {self.place}" if self.at else "",
            f"plateau {self.flat}" if self.plateau or self.saturation else "",
        ]
        words = ", ".join(filter(None, (" ".join(filter(None, told[:2])), told[2])))
        name = f"published landmark: {self.who}:\n{words}"
        top = None
        if self.highest and self.at:
            best = self.highest[0]
            top = (
                float(self.at[0].number),
                promised.converted(best.number, best.unit, unit),
                _beyond(self.at[0]),
            )
        flat = [(float(s.number), _beyond(s)) for s in self.plateau]
        return Landmark(name, top, flat)


def of(samples: Iterable[Sample]) -> list[Stated]:
    """All landmarks among published samples, source by source."""
    found: dict[tuple[str, str, str], Stated] = {}
    for sample in samples:
        if sample.status != "ok" or sample.header.mode != PUBLISHED:
            continue
        for ending in ENDINGS:
            if not sample.metric.endswith(ending):
                continue
            metric, head = sample.metric.removesuffix(ending), sample.header
            who = " ".join(filter(None, (head.system, head.campaign or head.time[:10])))
            one = found.setdefault((metric, head.system, who), Stated(metric, head.system, who))
            {HIGHEST: one.highest, AT: one.at, PLATEAU: one.plateau, SATURATION: one.saturation}[
                ending
            ].append(sample)
            break
    return list(found.values())


def _beyond(sample: Sample) -> bool:
    return sample.conditions.get(printed.STATED, "") == printed.MORE


def _told(found: Sequence[Sample]) -> str:
    """As printed: `3325 MB/s`, `> 166 tasks`, `from 350 to 400 tasks`."""
    words = [f"{printed.sign(s.conditions.get(printed.STATED, ''))}{s.value}" for s in found]
    return f"{' '.join(words)} {found[0].unit}" if found else "-"
