"""siteproof/checks/on_node/mpi_together.py: text in, readings out.

A line `# mpi_together MODE, N ranks`, a row `METRIC VALUE UNIT KEY=VALUE...` each, and at the end
how many rows there are. Ranks that do not find each other print a title each. `wrong` in place of a
row: what arrived was not what had been sent.
"""

from __future__ import annotations

import re

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "mpi_together.py of Siteproof, up to its last line"

_TITLE = values.row(r"# mpi_together (\w{1,20}), ([0-9]{1,7}) ranks")
_ROW = values.row(r"([a-z]\w{1,20}) ([0-9]\S{0,30}) (us|MB/s)((?: [a-z]+=\w+)*)")
_WRONG = re.compile(r"^wrong (\w{1,20}) ?(.{0,60})$", re.MULTILINE)
_END = values.row(r"# end of ([0-9]{1,7}) values")


def parse(text: str) -> list[Reading]:
    """Times in us and rates in MB/s, as printed. Raises OutputError: `invalid` if one was wrong."""
    values.one("mpi_together: titles", _TITLE, text)
    if wrong := _WRONG.findall(text):
        metric, where = wrong[0]
        raise OutputError(f"mpi_together: wrong messages of {metric} {where}".rstrip(), "invalid")
    (count,) = values.one("mpi_together: last lines", _END, text)
    rows = _ROW.findall(text)
    if len(rows) != int(count) or not rows:
        raise OutputError(f"mpi_together: {len(rows)} rows of {count}")
    return [
        Reading(
            metric,
            values.positive(f"mpi_together: {metric}{where}", value),
            unit,
            dict(part.split("=") for part in where.split()),
        )
        for metric, value, unit, where in rows
    ]


def conditions(text: str) -> dict[str, str]:
    """That each message is compared with the known one."""
    return {"validated": "yes"} if _TITLE.search(text) else {}
