"""What the health program of a node prints with --report: the state now, and its record.

now OK                       or: now BAD WHAT; WHAT
record 1764374400 BAD WHAT   a line each time that the state was another, by the node's clock
unreadable record WHY        in place of these
records 1                    how many there are
end node health
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from siteproof.errors import OutputError
from siteproof.parsers import Reading, count, values

_NOW = re.compile(r"now (?:(OK)|BAD (.+))")
_RECORD = re.compile(r"record ([0-9]{1,10}) (?:OK|BAD (.+))")


def parse(text: str) -> list[Reading]:
    """`findings`: 0; of the record `changes`, `failures` and the text `last_failure`.

    Raises OutputError: `unhealthy` if something is not as stated now.
    """
    first, *recorded = values.whole(text, "node health") or [""]
    now = _NOW.fullmatch(first)
    if not now:
        raise OutputError(f"node health: no state in '{first[:80]}'")
    if now[2]:
        raise OutputError(now[2][: values.LONGEST], "unhealthy")
    findings = count("findings", 0)
    unreadable = [line for line in recorded if line.startswith("unreadable record ")]
    matches = [_RECORD.fullmatch(line) for line in recorded[:-1] if line not in unreadable]
    if None in matches or not recorded or recorded[-1] != f"records {len(matches)}":
        raise OutputError("node health: a line is not one of a record, or one is missing")
    if unreadable:
        return [findings]
    failures = [match for match in matches if match and match[2]]
    found = [findings, count("changes", len(matches)), count("failures", len(failures))]
    if failures:
        at = datetime.fromtimestamp(int(failures[-1][1]), UTC)
        what = f"{at:%Y-%m-%dT%H:%M:%SZ} {failures[-1][2]}"
        found.append(Reading("last_failure", what[: values.LONGEST], "text"))
    return found
