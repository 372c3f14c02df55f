"""What follows from a node's readings and the site's facts. Pure functions.

A check names its function, such as `cpu.stream`: given what one result holds, it returns the
readings and conditions that count. It raises OutputError where the node's own account shows that
the result is not valid. For a link whose pairs all run together, `…_of_link(moved, facts)` next to
it returns the readings of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw

Derived = tuple[list[Reading], dict[str, str]]  # readings, conditions
MICROSECONDS = {"s": 6, "ms": 3, "us": 0}  # powers of ten


@dataclass(frozen=True)
class Measured:
    """What one result holds.

    readings, conditions: as parsed. raw: the texts that they were read from. facts: what the site
    knows of the node or link, and what the check or the sweep's point requested. aside: texts to be
    kept next to the samples, which the function adds.
    """

    readings: list[Reading]
    conditions: Mapping[str, str]
    raw: Raw
    facts: Mapping[str, object]
    aside: dict[str, str] = field(default_factory=dict)

    def fact(self, key: str, default: str | None = None) -> str:
        """A fact as text. Raises KeyError where it is required and not there."""
        if default is None:
            return str(self.facts[key])
        return str(self.facts.get(key) or default)

    def of_phase(self, phase: str) -> list[Reading]:
        """The readings of one phase, such as `write`."""
        return [reading for reading in self.readings if reading.dims.get("phase") == phase]

    def must_offer_cores(self) -> None:
        """Raises OutputError (invalid) where the node has fewer processors than cores by the site.

        One without a figure in the site has as many as it has.
        """
        cores = int(self.fact("cores", "0"))
        if cores and self.raw.number("cpus") < cores:
            found = f"the node offers {self.raw.meta['cpus']} processors"
            raise OutputError(f"{found}, expected {cores} cores", "invalid")

    def must_be_verified(self) -> None:
        """Raises OutputError (invalid) where fio verified less than the whole file."""
        read = [r for r in self.of_phase("verify") if r.metric == "read_bytes"]
        verified = sum(int(reading.value) for reading in read)
        if verified < int(self.fact("size")):
            raise OutputError(f"{verified} of {self.fact('size')} bytes were verified", "invalid")


def must_be(what: str, found: object, expected: object, status: str = "invalid") -> None:
    """Raises OutputError where a tool did something else than requested."""
    if str(found) != str(expected):
        raise OutputError(f"{what}: {found}, expected {expected}", status)


def in_microseconds(reading: Reading) -> Reading:
    """A latency in us, whichever unit the program has; no digit is lost."""
    if reading.unit not in MICROSECONDS:
        return reading
    value = Decimal(reading.value).scaleb(MICROSECONDS[reading.unit])
    return Reading(reading.metric, Decimal(f"{value:f}"), "us", reading.dims)
