"""The records of one point of a cloud's capacity, a line of JSON each: text in, readings out."""

from __future__ import annotations

from siteproof.errors import OutputError
from siteproof.parsers import Reading, service

NEEDS = "the records of python -m siteproof.services for a point, from its begin to its end"
QUOTA = "quota"  # the step that ends a point before anything was created
LAST = "clean"  # reads that nothing is left


def parse(text: str) -> list[Reading]:
    """instances (VMs), failures by cause (count), cleanup_seconds; and, where something ran,
    instances_per_network, hosts, seconds_to_active and seconds_to_active_p95.

    Raises OutputError: `interrupted` for a point that the quota does not allow, as it was not
    tried; otherwise with the status of the first step that failed.
    """
    found = service.report(text)
    failed = next((step for step in found.steps if step.status != "ok"), None)
    if failed:
        status = "interrupted" if failed.name == QUOTA else failed.status
        raise OutputError(f"{failed.name}: {failed.why}", status)
    if not found.done or found.steps[-1].name != LAST:
        raise OutputError(f"cloud: the test ended after {len(found.steps)} steps", "killed")
    return found.readings


def conditions(text: str) -> dict[str, str]:
    """flavor, image, hypervisor, and by which times a server became ACTIVE."""
    return service.report(text).conditions
