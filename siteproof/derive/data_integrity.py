"""DataIntegrity: all files were compared, and which were wrong."""

from __future__ import annotations

from siteproof.derive import Derived, Given, must_be
from siteproof.parsers import Reading, sha256sum


def derive(given: Given) -> Derived:
    """`errors`, and a text for each file that is not as it was written.

    Raises OutputError unless all files were compared.
    """
    must_be("files compared", given.conditions.get("files"), given.fact("files"), "parse")
    found = [Reading("errors", r.value, r.unit) for r in given.readings]
    for run in given.raw.runs:
        for text in sha256sum.failed(run.stdout):
            found.append(Reading("wrong", text, "text", {"file": text.partition(" ")[0]}))
    return found, {**given.conditions, "size": given.fact("size")}
