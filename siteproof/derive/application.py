"""Applications: a rate counts only where the answer is the known one, on all cores of the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import cast

from siteproof.derive import Derived, Given, must_be
from siteproof.errors import OutputError
from siteproof.parsers import Reading


def derive(given: Given) -> Derived:
    """The readings and conditions as they are, if the answer is the known one.

    Raises OutputError (invalid) where an answer differs from its reference by more than the
    tolerance, where another problem was solved, or where the node has fewer processors than cores
    by the site.
    """
    cores = int(given.fact("cores", "0"))
    if cores and given.raw.number("cpus") < cores:
        raise OutputError(
            f"the node offers {given.raw.meta['cpus']} processors, expected {cores} cores",
            "invalid",
        )
    must_be_known(given.readings, given.conditions, given.facts)
    return given.readings, dict(given.conditions)


def must_be_known(
    readings: Sequence[Reading], conditions: Mapping[str, str], facts: Mapping[str, object]
) -> None:
    """Raises OutputError (invalid) unless the problem and its answers are the known ones.

    facts: `solved`, conditions that must be met; `references`, of a metric its value and tolerance.
    """
    for key, wanted in cast("Mapping[str, str]", facts["solved"]).items():
        must_be(key, conditions.get(key, "not printed"), wanted)
    answers = {reading.metric: reading for reading in readings}
    references = cast("Mapping[str, tuple[str, str]]", facts["references"])
    for metric, (known, tolerance) in references.items():
        if metric not in answers:
            raise OutputError(f"no {metric}, which must be {known}")
        found, unit = Decimal(answers[metric].value), answers[metric].unit
        if not abs(found - Decimal(known)) <= Decimal(tolerance):
            raise OutputError(
                f"{metric}: {found} {unit}, expected {known} within {tolerance}", "invalid"
            )
