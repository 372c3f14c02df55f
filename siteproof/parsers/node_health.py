"""What the health program of a node prints with --report: the state now, and its record.

now OK                       or: now BAD WHAT; WHAT
record 1764374400 BAD WHAT   a line each time that the state was another, by the node's clock
unreadable record WHY        in place of these
records 1                    how many there are
end node health
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, lines

_NOW = re.compile(r"now (?:(OK)|BAD (.+))")
_RECORD = re.compile(r"record ([0-9]{1,10}) (?:OK|BAD (.+))")


def parse(text: str) -> list[Reading]:
    """`findings`: 0; of the record `changes`, `failures` and the text `last_failure`.

    Raises OutputError: `unhealthy` if something is not as stated now.
    """
    first, *recorded = lines.whole(text, "node health") or [""]
    now = _NOW.fullmatch(first)
    if not now:
        raise OutputError(f"node health: no state in '{first[:80]}'")
    if now[2]:
        raise OutputError(now[2][: lines.LONGEST], "unhealthy")
    findings = Reading("findings", Decimal(0), "count")
    unreadable = [line for line in recorded if line.startswith("unreadable record ")]
    matches = [_RECORD.fullmatch(line) for line in recorded[:-1] if line not in unreadable]
    if None in matches or not recorded or recorded[-1] != f"records {len(matches)}":
        raise OutputError("node health: a line is not one of a record, or one is missing")
    return [findings] if unreadable else [findings, *_of_record(filter(None, matches))]


def _of_record(matches: Iterable[re.Match[str]]) -> list[Reading]:
    changes = list(matches)
    failures = [match for match in changes if match[2]]
    found = [
        Reading("changes", Decimal(len(changes)), "count"),
        Reading("failures", Decimal(len(failures)), "count"),
    ]
    if failures:
        at = datetime.fromtimestamp(int(failures[-1][1]), UTC)
        what = f"{at:%Y-%m-%dT%H:%M:%SZ} {failures[-1][2]}"
        found.append(Reading("last_failure", what[: lines.LONGEST], "text"))
    return found
