"""The records of siteproof.services, a line of JSON each: text in, steps and readings out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from siteproof.errors import OutputError, harmless
from siteproof.parsers import Reading, count, values

NEEDS = "the records of python -m siteproof.services, from its begin to its end"
ABSENT = "absent"  # what the step would use is not there, which fails nothing
STATUSES = (
    *("ok", "login", "timeout", "checksum", "generic", "killed", "tool_missing"),
    *("invalid", ABSENT),
)
MAX_RECORDS = 5_000
LONGEST = 500  # characters of a reason
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class Step:
    """One step that has ended. place: its name as `step`, and what else distinguishes it.

    alone: its failure is none of what other steps measure.
    """

    place: Mapping[str, str]
    seconds: Decimal
    status: str
    why: str
    alone: bool = False

    @property
    def failed(self) -> bool:
        """Whether it was made, and did not succeed."""
        return self.status not in ("ok", ABSENT)

    @property
    def name(self) -> str:
        """Its name, for people."""
        return " ".join(self.place.values())


@dataclass
class Report:
    """What a test has done. done: whether it came to its end."""

    steps: list[Step] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    conditions: dict[str, str] = field(default_factory=dict)
    done: bool = False


def parse(text: str) -> list[Reading]:
    """How many steps failed (count), the seconds of the others (s), and other figures.

    Raises OutputError for a test that has not come to its end.
    """
    found = report(text)
    if not found.done or not found.steps:
        raise OutputError(f"service: the test ended after {len(found.steps)} steps")
    took = [Reading("seconds", s.seconds, "s", s.place) for s in found.steps if s.status == "ok"]
    number = count("failures", sum(step.failed for step in found.steps))
    return [number, *took, *found.readings]


def report(text: str) -> Report:
    """All records; an incomplete last line, as of a test that was killed, is left out.

    Raises OutputError.
    """
    found = Report()
    lines = text.split("\n")[:-1]
    if len(lines) > MAX_RECORDS:
        raise OutputError(f"service: {len(lines)} records, at most {MAX_RECORDS}")
    for number, line in enumerate(lines, 1):
        if found.done:
            raise OutputError(f"service: line {number} comes after the end of the test")
        record, after = values.load("service", line)
        if after:
            raise OutputError(f"service: line {number} is more than a record")
        _take(found, record, number)
    return found


def _take(found: Report, record: dict[str, Any], number: int) -> None:
    if "end" in record:
        found.steps.append(_step(record, number))
    elif "metric" in record:
        found.readings.append(_reading(record, number))
    elif "conditions" in record:
        found.conditions |= _texts(record["conditions"], number)
    elif "done" in record:
        found.done = True
        if record["done"] != f"{number - 1}":
            raise OutputError(f"service: {number - 1} records where {record['done']} were made")
    elif "begin" not in record:
        raise OutputError(f"service: line {number} is of no known kind")


def _step(record: dict[str, Any], number: int) -> Step:
    status, place = record.get("status"), _texts(record["end"], number)
    if status not in STATUSES or "step" not in place:
        raise OutputError(f"service: line {number}: no step, or an unknown status")
    seconds = values.number(f"service: line {number}: seconds", str(record.get("seconds")))
    why = harmless(str(record.get("why", "")))[:LONGEST]
    return Step(place, seconds, status, why, record.get("alone") == "yes")


def _reading(record: dict[str, Any], number: int) -> Reading:
    metric, where = str(record["metric"]), f"service: line {number}"
    if not _NAME.fullmatch(metric):
        raise OutputError(f"{where}: '{metric[:40]}' is not a metric")
    value = values.number(f"{where}: {metric}", str(record.get("value")))
    return Reading(metric, value, str(record.get("unit")), _texts(record.get("dims"), number))


def _texts(found: Any, number: int) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise OutputError(f"service: line {number}: not an object of texts")
    if wrong := [key for key in found if not _NAME.fullmatch(key)]:
        raise OutputError(f"service: line {number}: '{wrong[0][:40]}' is not a name")
    return {key: harmless(value)[:LONGEST] for key, value in found.items()}
