"""DataIntegrity: all files were compared, and which were wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from siteproof.errors import OutputError
from siteproof.parsers import Reading, sha256sum

if TYPE_CHECKING:
    from siteproof.collect.raw import Raw


def derive(
    readings: list[Reading], conditions: Mapping[str, str], raw: Raw, facts: Mapping[str, object]
) -> tuple[list[Reading], dict[str, str]]:
    """`errors`, and a text for each file that is not as it was written.

    Raises OutputError unless as many files as asked for were compared.
    """
    if conditions.get("files") != str(facts["files"]):
        raise OutputError(f"{conditions.get('files')} files compared, asked were {facts['files']}")
    errors = [Reading("errors", r.value, r.unit) for r in readings]
    wrong = [
        Reading("wrong", text, "text", {"file": text.partition(" ")[0]})
        for run in raw.runs
        for text in sha256sum.failed(run.stdout)
    ]
    return [*errors, *wrong], dict(conditions) | {"size": str(facts["size"])}
