"""IOR's text output, 3.0 to 4: what was requested, and the rows of its table.

A run of IO500 has no summary and no line `Finished`: it is whole with the rows of its one phase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from siteproof.errors import OutputError
from siteproof.parsers import values

BY_FILE = "by a file"  # stonewall of a read of what an earlier run has written until its stonewall
PHASES = {"write": "w", "read": "r"}
MAX_REPETITIONS, MAX_TASKS = 10_000, 10**7
MAX_LINE = 300  # characters of an option: a longer line is none
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

_VERSION = re.compile(r"^IOR-(\S{1,40}): MPI Coordinated Test of Parallel I/O", re.MULTILINE)
_COMMAND = re.compile(r"^Command line(?: used)? *: (.{1,4000})$", re.MULTILINE)
_OPTION = re.compile(r"([A-Za-z][A-Za-z ]{1,30}?) *[:=] ?(.{0,200})")
_CLIENTS = re.compile(r"([0-9]{1,8}) \(([0-9]{1,8}) per node\)")  # up to 3.1
_NUMBER = r"(?<!\S)-%s[ =]?([0-9]{1,12})(?!\S)"  # as the command has it
# Options without a value, whose letters may stand together: -wrR.
_FLAGS = re.compile(r"(?<!\S)-([BcCeEFghHIkKmnpPqrRSuvVwWxyYzZ]+)(?!\S)")
_SET = r"\b%s=1\b"  # by -O, several with commas between them
_SIZE = re.compile(r"([0-9]{1,15})(?:\.[0-9]{1,2})? (bytes|[KMGT]iB)")
_MOVED = re.compile(r"WARNING: Using actual aggregate bytes moved = ([0-9]{1,20})\.?")
_TABLE = re.compile(r"^(access +bw\(MiB/s\) .*)\n", re.MULTILINE)
_SUMMARY_ROW = re.compile(r"^(write|read) ", re.MULTILINE)
_END = re.compile(r"^Finished ?", re.MULTILINE)


@dataclass(frozen=True)
class Requested:
    """What IOR had to do, as it prints it. Raises OutputError: more than anybody requests.

    phases: write, read or both. compared: whether it compares what it reads.
    ranks: whether a table of the ranks follows. stonewall: the seconds after which it ends early,
    or `BY_FILE`. wears_out: whether each rank then goes on until all have done the same.
    """

    tasks: int
    tasks_per_node: int
    transfer: int
    block: int
    segments: int
    repetitions: int
    file_a_task: bool
    phases: list[str]
    compared: bool
    ranks: bool = False
    stonewall: str = ""
    wears_out: bool = False

    def __post_init__(self) -> None:
        if self.tasks > MAX_TASKS or self.repetitions > MAX_REPETITIONS:
            raise OutputError("ior: too many tasks or repetitions")

    @property
    def bytes(self) -> int:
        """Of all tasks."""
        return self.tasks * self.block * self.segments

    @property
    def layout(self) -> str:
        """How the file is divided among the tasks, or that each has a file of its own."""
        if self.file_a_task:
            return "file_a_task"
        return "interleaved" if self.block == self.transfer and self.segments > 1 else "shared"


@dataclass(frozen=True)
class Row:
    """A phase of one repetition. rate: MiB/s. seconds: in all, as printed. moved: bytes.

    ranks: the rate of each, where IOR prints them. timed: whether nothing else is in its time.
    """

    phase: str
    rate: str
    seconds: str
    moved: int
    ranks: Sequence[Decimal] = ()
    timed: bool = True


def is_text(text: str) -> bool:
    """Whether it is not JSON, and begins as IOR's text does."""
    return bool(_VERSION.search(text))


def described(text: str) -> dict[str, str]:
    """Version and back end."""
    version = values.only("ior", "outputs", _VERSION.findall(text))
    return {"version": version, "api": _options(text).get("api", "")}


def read(text: str) -> tuple[Requested, list[Row]]:
    """What was requested, and the rows of all repetitions. Raises OutputError: incomplete."""
    described(text)
    command, options = values.only("ior", "command lines", _COMMAND.findall(text)), _options(text)
    flags = {*"".join(_FLAGS.findall(command))}  # the letters of its options without a value
    clients = _CLIENTS.fullmatch(options.get("clients", ""))
    stonewall = options.get("stonewallingTime") or _given("D", command).lstrip("0")
    if not stonewall and "stoneWallingStatusFile=" in command and "w" not in flags:
        stonewall = BY_FILE
    cells = _cells(text)
    segments = options.get("segments") or _given("s", command) or "1"
    run = Requested(
        tasks=int(clients[1]) if clients else whole("tasks", options),
        tasks_per_node=int(clients[2]) if clients else whole("clients per node", options),
        transfer=_bytes("xfer", options, _given("t", command), cells[0]),
        block=_bytes("block", options, _given("b", command), cells[0]),
        segments=whole("segments", {"segments": segments}),
        repetitions=whole("repetitions", options),
        file_a_task=options.get("access") == "file-per-process",
        phases=_phases(text, flags),
        compared="R" in flags or _is_set("checkRead", command),
        stonewall=stonewall,
        wears_out=options.get("stoneWallingWearOut") == "1"
        or _is_set("stoneWallingWearOut", command),
    )
    rows = [
        Row(one["access"], one["bw(MiB/s)"], one["total(s)"], int(one["moved"] or run.bytes))
        for one in cells
    ]
    for phase in run.phases:
        if (count := sum(row.phase == phase for row in rows)) != run.repetitions:
            raise OutputError(f"ior: {count} rows of {phase}, expected {run.repetitions}")
    return run, rows


def _options(text: str) -> dict[str, str]:
    """The options that are printed above the table. Raises OutputError: cut off."""
    lines = (line.strip(" \t\r") for line in _parts(text)[0].split("\n"))
    found = (_OPTION.fullmatch(line) for line in lines if len(line) <= MAX_LINE)
    return {match[1]: match[2] for match in found if match}


def _parts(text: str) -> list[str]:
    """What is above the table, its heading, and the rest. Raises OutputError."""
    parts = _TABLE.split(text)
    if len(parts) != 3:  # noqa: PLR2004
        raise OutputError(f"ior: {len(parts) // 2} tables where one is expected")
    return parts


def _given(option: str, command: str) -> str:
    """The number of an option in the command; empty if it has none."""
    match = re.search(_NUMBER % option, command)
    return match[1] if match else ""


def _is_set(name: str, command: str) -> bool:
    return bool(re.search(_SET % name, command, re.IGNORECASE))


def _phases(text: str, flags: set[str]) -> list[str]:
    """What has rows: what the summary names or, where the end is missing, the command.

    Raises OutputError: cut off.
    """
    named = _SUMMARY_ROW.findall(text.partition("\nSummary of all tests:")[2])
    if not _END.search(text):
        named = [phase for phase, option in PHASES.items() if option in flags]
    if {*named} != {cells["access"] for cells in _cells(text)}:
        raise OutputError("ior: its text is cut off")
    return [phase for phase in PHASES if phase in named]


def _cells(text: str) -> list[Mapping[str, str]]:
    """The cells of each row by the heading of their column; and `moved`, if less than all was.

    Raises OutputError: no row, or a broken one.
    """
    _, heading, table = _parts(text)
    names = heading.split()
    if "total(s)" not in names:
        raise OutputError("ior: its table has no column 'total(s)', as before 3.0")
    found: list[Mapping[str, str]] = []
    moved = ""
    for line in table.splitlines(keepends=True):
        if match := _MOVED.match(line):
            moved = match[1]
        words = line.split()
        if words[:1] == ["Summary"]:
            break
        if not words or words[0] not in PHASES:
            continue
        if len(words) != len(names) or not line.endswith("\n"):
            raise OutputError(f"ior: a row of {words[0]} is cut off")
        found.append({**dict(zip(names, words, strict=True)), "moved": moved})
        moved = ""
    if not found:
        raise OutputError("ior: its text has no row of write or read: cut off, or it failed")
    return found


def _bytes(of: str, options: Mapping[str, str], given: str, cells: Mapping[str, str]) -> int:
    """A size in bytes: the option, which is rounded to two decimals, the command or the table.

    Raises OutputError.
    """
    option = options.get(f"{of}size", "")
    match = _SIZE.fullmatch(option)
    if match and "." not in option:
        return int(match[1]) * UNITS[match[2]]
    if given:
        return int(given)
    size = values.positive("ior: a size in KiB", cells.get(f"{of}(KiB)", "")) * UNITS["KiB"]
    if not match or size % UNITS["KiB"]:
        raise OutputError(f"ior: '{option}' is not a size")
    return int(size)


def whole(key: str, options: Mapping[str, Any]) -> int:
    """A whole number above zero. Raises OutputError."""
    text = str(options.get(key, ""))
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
        raise OutputError(f"ior: '{key}' is not a whole number above zero")
    return int(text)
