"""The gate's log: one JSON object a line, `perflogs/<system>/gate.jsonl`, appended to only.

It is also the proof of whose a reservation is: name and start of each that the gate has made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet

from siteproof import files, locks, nodesets
from siteproof.errors import UserError
from siteproof.slurm.records import Reservation

NAME = "gate.jsonl"
LARGEST = 256 * files.MIB  # some hundred thousand decisions
LOCK = ".gate"  # in the same folder
LOOK_EVERY = 0.2  # seconds
LONGEST = 600  # seconds to wait for another gate: ten commands that Slurm does not answer
HANDED_OVER = "handed over"  # the phase of a command that somebody with the right has to run
TESTED = "reframe"  # what a record of a test inside a quarantine is about
# Seconds that a create may take after the gate has stopped to wait for it, and by which slurmctld's
# clock may be late: right before a create there was no reservation of this name.
GRACE = 60


@contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Hold the log until the end, so that two gates never act at the same time.

    What it gives appends a record. Raises UserError if another gate holds the log; with wait only
    if it does so for LONGEST.
    """
    if path.parent.is_symlink():  # a link of another user must not redirect what we write
        raise UserError(path.parent, "cannot be written: it is a link", "a folder")
    deadline = time.monotonic() + (LONGEST if wait else 0)
    while True:
        try:
            lock = locks.take(path.with_name(LOCK))
            break
        except locks.Taken as error:
            if time.monotonic() >= deadline:
                what = f"another 'siteproof gate' is running: {error.where} is {error.what}"
                raise UserError(path, what, hint=error.hint) from None
        time.sleep(LOOK_EVERY)
    with lock:
        yield partial(_add, path)


def _add(path: Path, record: Mapping[str, object]) -> None:
    """Append a record in one write. Raises UserError where it is not written whole."""
    line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    try:
        files.append(path, line, below=path.parents[1], limit=LARGEST)
    except OSError as error:
        raise UserError(path, f"cannot be written: {error.strerror}") from None


def read(path: Path) -> list[dict[str, Any]]:
    """All records; a line that is none is passed over, which can only make the gate more careful.

    Raises UserError if the file cannot be read.
    """
    try:
        text = files.read_text(path, below=path.parents[1], limit=LARGEST)
    except FileNotFoundError:
        return []
    records = []
    for line in filter(None, text.split("\n")):
        try:
            record = files.loads(path, line)
        except UserError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def made_by_us(records: list[dict[str, Any]], found: Reservation) -> bool:
    """Whether the log has it that the gate made this reservation.

    Of a create that Slurm did not answer, or whose end is not in the log, it is the gate's if it
    holds the same nodes, and began from then on. A create that was handed over may begin at any
    time from then on.
    """
    open_ended: list[tuple[int, float, object]] = []  # begin, end, nodes
    handed_over: list[tuple[int, float, object]] = []
    for record in records:
        moment = record.get("unix")
        if not _creates(record, found.name) or type(moment) is not int:
            continue
        if has_start(record, found):
            return True
        if record.get("phase") == HANDED_OVER:
            handed_over.append((moment, inf, record.get("nodes")))
        elif record.get("phase") == "before":
            open_ended.append((moment, moment, record.get("nodes")))
        elif record.get("perhaps") and open_ended:
            begin, _, nodes = open_ended.pop()
            open_ended.append((begin, moment, nodes))
        elif open_ended:
            open_ended.pop()  # refused, or known by its start
    return any(
        begin - GRACE <= found.start <= end + GRACE and nodes == str(found.nodes)
        for begin, end, nodes in [*open_ended, *handed_over]
    )


def has_start(record: Mapping[str, Any], found: Reservation) -> bool:
    """Whether this record proves it, whatever its nodes are now."""
    return _creates(record, found.name) and record.get("start") == found.start


def _creates(record: Mapping[str, Any], name: str) -> bool:
    return record.get("what") == "create" and record.get("reservation") == name


def put_in(records: list[dict[str, Any]], name: str) -> dict[str, float]:
    """The nodes that the gate has put, or tried to put, into the reservation of this name.

    With the time of the last, in seconds since 1970; infinity where the log has none. Of a command
    that was handed over it is the first test inside since then, as only then they were there.
    """
    nodes: dict[str, float] = {}
    for record in records:
        if record.get("reservation") != name:
            continue
        moment = record.get("unix")
        since = float(moment) if type(moment) is int else inf
        if record.get("what") == TESTED:
            inside = _set(record.get("nodes"))
            nodes |= {node: since for node in inside if nodes.get(node) == inf}
        elif added := _set(record.get("added")):
            at = inf if record.get("phase") == HANDED_OVER else since
            nodes |= dict.fromkeys(added, at)
    return nodes


def done(records: list[dict[str, Any]], samples_of: str) -> tuple[NodeSet, NodeSet]:
    """The nodes that were quarantined, and that were released, on these samples."""
    quarantined, released = nodesets.of(), nodesets.of()
    for record in records:
        if record.get("samples_of") != samples_of or record.get("phase") != "after":
            continue
        if not record.get("error"):
            quarantined.update(_set(record.get("added")))
            released.update(_set(record.get("released")))
    return quarantined, released


def _set(text: object) -> NodeSet:
    """A node set of the log; empty if it is none."""
    with suppress(ValueError):
        return nodesets.parse(text if isinstance(text, str) else "")
    return nodesets.of()
