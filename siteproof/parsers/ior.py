"""IOR 4 with -O summaryFormat=JSON: text in, readings out. Its MiB/s are 2**20 bytes per second.

IOR's own rates of the ranks are read, too, where -O saveRankPerformanceDetailsCSV wrote them and
they follow the JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any

from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures

MIB = 2**20
PHASES = ("write", "read")
HEADING = "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput"
LEAST = Decimal("0.001")  # seconds: a time has four decimals, and must prove its rate
DIGITS = Context(prec=10)  # of a rank's rate: IOR prints eleven

_RANKS_ASKED = re.compile(r"saveRankPerformanceDetailsCSV=", re.IGNORECASE)
# Of a full file system MPI-IO may say nothing, and IOR no more than this, with exit code 0.
_SIZES = re.compile(
    r"Expected aggregate file size +=( [0-9]{1,20}).{0,80}\n"
    r"WARNING: Stat\(\) of aggregate file size +=( [0-9]{1,20})"
)
# Its exit code is the number of errors, of which 256 are 0 to the shell.
_WRONG = re.compile(r"Incorrect data on (?:read|write) \((-?[0-9]{1,20}) errors found\)")
_FAILED = re.compile(r"(?:ERROR: |WARNING: |\bAssertion )[ -~]{0,200}")


def parse(text: str) -> list[Reading]:
    """`write` and `read` (MiB/s), the _slowest and _fastest rank's, and the _bytes of each.

    Of a read with -R only `verified_bytes`: IOR compares within its time, so it has no rate.

    Raises OutputError: `invalid` if IOR found wrong data, less than all of it, or no time.
    """
    result, ranks = _result(text)
    asked = _Asked(result)
    if asked.ranks != bool(ranks):
        raise OutputError(
            "ior: no table of the ranks that was asked for, or something else after the JSON"
        )
    table = _ranks(ranks, asked) if ranks else {}
    return [reading for phase in asked.phases for reading in _phase(result, asked, phase, table)]


def conditions(text: str) -> dict[str, str]:
    """Version, api, layout, transfer, block of a task, size of all (bytes), tasks."""
    try:
        result, _ = _result(text)
        asked = _Asked(result)
        api, version = _part(result["tests"][0], "Parameters").get("api"), result.get("Version")
    except OutputError:
        return {}
    told = {"api": api, "version": version}
    found = {
        key: value
        for key, value in told.items()
        if isinstance(value, str) and 0 < len(value) <= 40 and value.isprintable()
    }
    return found | {
        "layout": asked.layout,
        "transfer": str(asked.transfer),
        "block": str(asked.block * asked.segments),
        "size": str(asked.bytes),
        "tasks": str(asked.tasks),
        "tasks_per_node": str(asked.tasks_per_node),
    }


class _Asked:
    """What IOR was asked for, as it says itself: numbers, and which phases."""

    def __init__(self, result: dict[str, Any]) -> None:
        test = _only(result, "tests")
        said, options = _part(test, "Parameters"), _part(test, "Options")
        self.tasks = _whole("tasks", options)
        self.tasks_per_node = _whole("clients per node", options)
        self.transfer, self.block = (_whole(key, said) for key in ("transferSize", "blockSize"))
        self.segments = _whole("segmentCount", said)
        self.repetitions = _whole("repetitions", said)
        alone, pieces = _flag("filePerProc", said), self.block == self.transfer
        self.layout = (
            "file_a_task" if alone else "interleaved" if pieces and self.segments > 1 else "shared"
        )
        self.compared = _flag("checkRead", said)
        self.bytes = self.tasks * self.block * self.segments
        self.ranks = bool(_RANKS_ASKED.search(_text("Command line", result)))
        wanted = {
            "write": _flag("writeFile", said),
            "read": _flag("readFile", said) or self.compared,
        }
        self.phases = [phase for phase in PHASES if wanted[phase]]
        if str(said.get("deadlineForStonewall")) != "0":
            raise OutputError(
                "ior: ended by its stonewall, so nobody knows what each rank did", "invalid"
            )
        if not self.phases or self.repetitions > 10_000 or self.tasks > 10**7:
            raise OutputError("ior: neither a write nor a read, or too many of them")


def _result(text: str) -> tuple[dict[str, Any], str]:
    """What stands in the JSON, and the text after it. Raises OutputError."""
    if wrong := _WRONG.search(text):
        raise OutputError(f"ior: data are not what was written ({wrong[1]} errors)", "invalid")
    if sizes := _SIZES.search(text):
        raise OutputError(f"ior: files hold{sizes[2]} of{sizes[1]} bytes", "invalid")
    if failed := _FAILED.findall(text):
        said = [line for word in ("ERROR", " failed ", "") for line in failed if word in line]
        raise OutputError(f"ior: {said[0].strip(' ,')}", "generic")
    start = re.search(r"^\{", text, re.MULTILINE)
    if not start:
        raise OutputError("ior: no JSON")
    try:  # numbers stay the text that was printed
        result, end = json.JSONDecoder(
            parse_float=str, parse_int=str, parse_constant=str
        ).raw_decode(text, start.start())
    except (ValueError, RecursionError):
        raise OutputError("ior: JSON cut off, or damaged") from None
    if not isinstance(result.get("Version"), str) or not isinstance(result.get("Finished"), str):
        raise OutputError("ior: JSON, and not IOR's, or of a run that did not finish")
    return result, text[end:].strip()


def _phase(
    result: dict[str, Any], asked: _Asked, phase: str, table: dict[str, list[list[Decimal]]]
) -> Iterator[Reading]:
    """The readings of one phase, each repetition a trial."""
    rows = [row for row in _list(result["tests"][0], "Results") if row.get("access") == phase]
    sums = [row for row in _list(result, "summary") if row.get("operation") == phase]
    if len(rows) != asked.repetitions or len(sums) != 1:
        raise OutputError(f"ior: {len(rows)} results of {phase}, asked were {asked.repetitions}")
    moved = figures.number(f"ior: {phase} volume", str(sums[0].get("xsizeMiB")))
    if abs(moved * MIB - asked.bytes) > MIB / 10_000:  # it has four decimals
        raise OutputError(f"ior: {phase} of {moved} MiB, asked were {asked.bytes} bytes", "invalid")
    for number, row in enumerate(rows):
        dims = {"trial": str(number + 1)} if asked.repetitions > 1 else {}
        rate = figures.positive(f"ior: {phase} rate", str(row.get("bwMiB")))
        seconds = figures.positive(f"ior: {phase} time", str(row.get("totalTime")))
        if seconds < LEAST:
            raise OutputError(f"ior: {phase} in {seconds} s is too short to be timed", "invalid")
        figures.must_agree(f"ior: {phase} rate", rate, Decimal(asked.bytes) / MIB, seconds)
        if phase == "read" and asked.compared:
            yield Reading("verified_bytes", Decimal(asked.bytes), "B", dims)
            continue
        yield Reading(phase, rate, "MiB/s", dims)
        if table:
            mine = table[phase][number]
            yield Reading(f"{phase}_slowest", min(mine), "MiB/s", dims)
            yield Reading(f"{phase}_fastest", max(mine), "MiB/s", dims)
        yield Reading(f"{phase}_bytes", Decimal(asked.bytes), "B", dims)


def _ranks(text: str, asked: _Asked) -> dict[str, list[list[Decimal]]]:
    """By phase, the rates (MiB/s) of all ranks in each repetition. Raises OutputError."""
    heading, *lines = text.splitlines()
    if heading != HEADING:
        raise OutputError("ior: something else than the table of the ranks after the JSON")
    found: dict[str, list[list[Decimal]]] = {phase: [] for phase in asked.phases}
    for phase, rank, rate in (_row(line, asked) for line in lines):
        if phase not in found:
            raise OutputError(f"ior: a rank's {phase}, which was not asked for")
        if rank == 0:
            found[phase].append([])
        if not found[phase] or len(found[phase][-1]) != rank:
            raise OutputError(f"ior: rank {rank} out of its order")
        found[phase][-1].append(rate)
    for phase, repetitions in found.items():
        if [len(rates) for rates in repetitions] != [asked.tasks] * asked.repetitions:
            raise OutputError(f"ior: not the {phase} of all {asked.tasks} ranks")
    return found


def _row(line: str, asked: _Asked) -> tuple[str, int, Decimal]:
    """Phase, rank and rate (MiB/s) of one line.

    The rate is that of the transfers (and fsync) alone: with -g all ranks open and close together.
    """
    phase, *cells = line.split(",")
    if phase not in PHASES or len(cells) != 5 or not re.fullmatch(r"[0-9]{1,8}", cells[0]):
        raise OutputError("ior: a broken line in the table of the ranks")
    share = Decimal(asked.bytes) / asked.tasks
    whole, inner, rate, inner_rate = (
        figures.positive("ior: a rank's figure", cell) for cell in cells[1:]
    )
    figures.must_agree("ior: a rank's rate", rate, share, whole)
    figures.must_agree("ior: a rank's rate", inner_rate, share, inner)
    return phase, int(cells[0]), DIGITS.divide(inner_rate, MIB)


def _only(held: dict[str, Any], key: str) -> dict[str, Any]:
    rows = _list(held, key)
    if len(rows) != 1:
        raise OutputError(f"ior: {len(rows)} {key} in one output")
    return rows[0]


def _list(held: dict[str, Any], key: str) -> list[dict[str, Any]]:
    rows = held.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise OutputError(f"ior: no '{key}'")
    return rows


def _part(held: dict[str, Any], key: str) -> dict[str, Any]:
    part = held.get(key)
    if not isinstance(part, dict):
        raise OutputError(f"ior: no '{key}'")
    return part


def _text(key: str, held: dict[str, Any]) -> str:
    text = held.get(key)
    if not isinstance(text, str):
        raise OutputError(f"ior: no '{key}'")
    return text


def _whole(key: str, held: dict[str, Any]) -> int:
    """A whole number above zero."""
    text = str(held.get(key))
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) == 0:
        raise OutputError(f"ior: '{key}' is no whole number above zero")
    return int(text)


def _flag(key: str, held: dict[str, Any]) -> bool:
    text = str(held.get(key))
    if text not in ("0", "1"):
        raise OutputError(f"ior: '{key}' is neither 0 nor 1")
    return text == "1"
