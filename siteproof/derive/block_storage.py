"""BlockStorage: the median of the trials, and how much they differ."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from statistics import mean, median, stdev
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

PHASES = ("write", "read")
LEAST_STORED = Decimal("0.5")  # of the file; less is a file system that stores no zeros


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """`write` and `read` as medians, `variation`, and each trial as write_trial, read_trial.

    Raises OutputError (invalid) where another size was written, or not stored.
    """
    asked, left = str(facts["size"]), dict(conditions)
    if left.get("size") != asked:
        raise OutputError(f"{left.get('size')} bytes were copied, asked was {asked}", "invalid")
    stored = figures.number("bytes stored", left.pop("stored", ""))
    if 0 < stored < int(asked) * LEAST_STORED:  # some file systems say 0 of every file
        raise OutputError(
            f"the file system stored {stored} of {asked} bytes, which are zeros", "invalid"
        )
    trials = {phase: _trials(readings, phase, int(str(facts["trials"]))) for phase in PHASES}
    found = [
        Reading(f"{phase}_trial", trial.value, trial.unit, {"trial": trial.dims["trial"]})
        for phase in PHASES
        for trial in trials[phase]
    ]
    rates = {phase: [Decimal(r.value) for r in trials[phase]] for phase in PHASES}
    found += [Reading(phase, median(rates[phase]), trials[phase][0].unit) for phase in PHASES]
    if facts["trials"] != 1:
        worst = max(stdev(values) / mean(values) for values in rates.values())
        found.append(Reading("variation", Decimal(f"{worst * 100:.3f}"), "%"))
    return found, left | {"trials": str(facts["trials"])}


def _trials(readings: list[Reading], phase: str, asked: int) -> list[Reading]:
    found = [r for r in readings if r.dims.get("phase") == phase]
    if len(found) != asked:
        raise OutputError(f"{len(found)} trials of {phase}, asked were {asked}")
    return found
