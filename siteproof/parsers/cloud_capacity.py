"""The records of one point of a cloud's capacity, a line of JSON each: text in, readings out."""

from __future__ import annotations

from siteproof.errors import OutputError
from siteproof.parsers import Reading, service

NEEDS = "the records of python -m siteproof.services for a point, from its begin to its end"
QUOTA = "quota"  # the step that ends a point before anything was created
LAST = "clean"  # reads that nothing is left
UNITS = {  # of each figure
    "instances": "VMs",
    "instances_per_network": "instances",
    "hosts": "nodes",
    "seconds_to_active": "s",
    "seconds_to_active_p95": "s",
    "failures": "count",
    "cleanup_seconds": "s",
}
STEPS = ("login", QUOTA, "networks", "launch", "remove", LAST)


def parse(text: str) -> list[Reading]:
    """instances (VMs), failures by cause (count), cleanup_seconds; and, where something ran,
    instances_per_network, hosts, seconds_to_active and seconds_to_active_p95.

    Raises OutputError: `interrupted` for a point that the quota does not allow, as it was not
    tried; otherwise with the status of the first step that failed.
    """
    found = service.report(text)
    if any(step.name not in STEPS for step in found.steps):
        raise OutputError("cloud: a step that no point has")
    failed = next((step for step in found.steps if step.status != "ok"), None)
    if failed:
        status = "interrupted" if failed.name == QUOTA else failed.status
        raise OutputError(f"{failed.name}: {failed.why}", status)
    counted = {reading.metric for reading in found.readings}
    if not found.done or "instances" not in counted or found.steps[-1].name != LAST:
        raise OutputError(f"cloud: the test ended after {len(found.steps)} steps")
    for reading in found.readings:
        if UNITS.get(reading.metric) != reading.unit:
            raise OutputError("cloud: a figure that no point has, or in another unit")
    return found.readings


def conditions(text: str) -> dict[str, str]:
    """flavor, image, hypervisor, and by which times a server became ACTIVE."""
    return service.report(text).conditions
