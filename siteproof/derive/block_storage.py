"""BlockStorage: the median of the trials, and how much they differ."""

from __future__ import annotations

from decimal import Decimal
from statistics import mean, median, stdev

from siteproof.derive import Derived, Given, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

PHASES = ("write", "read")
MIN_STORED = Decimal("0.5")  # of the file; less is a file system that does not store zeros


def derive(given: Given) -> Derived:
    """`write` and `read` as medians, `variation`, and each trial as write_trial, read_trial.

    Raises OutputError (invalid) where another size was written, or not stored.
    """
    conditions = dict(given.conditions)
    size, trials = given.fact("size"), given.fact("trials")
    must_be("bytes copied", conditions.get("size"), size)
    stored = values.number("bytes stored", conditions.pop("stored", ""))
    if 0 < stored < int(size) * MIN_STORED:  # some file systems report 0 for every file
        raise OutputError(
            f"the file system stored {stored} of {size} bytes, which are zeros", "invalid"
        )
    found: list[Reading] = []
    medians: list[Reading] = []
    variations: list[Decimal] = []
    for phase in PHASES:
        rows = given.of_phase(phase)
        must_be(f"trials of {phase}", len(rows), trials, "parse")
        for row in rows:
            dims = {"trial": row.dims["trial"]}
            found.append(Reading(f"{phase}_trial", row.value, row.unit, dims))
        rates = [Decimal(row.value) for row in rows]
        medians.append(Reading(phase, median(rates), rows[0].unit))
        if len(rates) > 1:
            variations.append(stdev(rates) / mean(rates))
    found += medians
    if variations:
        found.append(Reading("variation", Decimal(f"{max(variations) * 100:.3f}"), "%"))
    return found, conditions | {"trials": trials}
