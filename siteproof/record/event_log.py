"""Slurm's node events, kept as sacctmgr printed them: `perflogs/<system>/node_events/*.events`.

Each file is one query: a line of JSON with its period and the nodes that Slurm knew, then the text.
It is written whole and never changed, so that no answer needs slurmdbd later.
"""

from __future__ import annotations

import json
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ClusterShell.NodeSet import NodeSet

from siteproof import files, nodesets
from siteproof.errors import UserError

FOLDER, SUFFIX = "node_events", ".events"
FORMAT = 1
MAX_FILES = 100_000
LARGEST = files.OUTPUT
_FILE = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\.events")


@dataclass(frozen=True)
class EventRecord:
    """One query: the period that it covers, the nodes that Slurm knew, and what it printed.

    begin, end: seconds since 1970; end is the time of the query at most. name: of its file.
    """

    begin: int
    end: int
    nodes: NodeSet
    text: str
    name: str = ""


def write(perflogs: Path, system: str, record: EventRecord) -> Path:
    """Keep a query. Raises OSError and UserError."""
    made = f"{datetime.fromtimestamp(record.end, UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    head = {"format": FORMAT, "begin": record.begin, "end": record.end, "nodes": str(record.nodes)}
    path = perflogs / system / FOLDER / f"{made}{SUFFIX}"
    data = f"{json.dumps(head)}\n{record.text}".encode()
    if len(data) > LARGEST:
        raise UserError(path, "too many events for one file", hint="Fetch a shorter period")
    files.write(path, data, below=perflogs)
    return path


def read(perflogs: Path, system: str) -> tuple[list[EventRecord], list[UserError]]:
    """All queries, oldest first, and the files that could not be read.

    Raises UserError if the folder cannot be listed.
    """
    folder = perflogs / system / FOLDER
    found: list[EventRecord] = []
    refused: list[UserError] = []
    try:
        names = files.names(folder, below=perflogs, most=MAX_FILES)
    except FileNotFoundError:
        return [], []
    for name in filter(_FILE.fullmatch, names):
        try:
            text = files.read_text(folder / name, below=perflogs, limit=LARGEST)
            found.append(_parsed(folder / name, text))
        except FileNotFoundError:
            continue
        except UserError as error:
            refused.append(error)
    return found, refused


def _parsed(path: Path, text: str) -> EventRecord:
    """Raises UserError for a file that is no such record."""
    first, _, rest = text.partition("\n")
    head = files.loads(path, first)
    match head:
        case {"format": form, "begin": int(begin), "end": int(end), "nodes": str(nodes)}:
            with suppress(ValueError):
                if form == FORMAT and 0 <= begin <= end < 10**11:
                    return EventRecord(begin, end, nodesets.parse(nodes), rest, path.name)
    raise UserError(path, "is not a record of node events")
