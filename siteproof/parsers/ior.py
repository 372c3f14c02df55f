"""IOR: its text, or JSON of IOR 4, in, readings out. Its MiB/s are 2**20 bytes per second.

IOR's own rates of the ranks are read, too, where -O saveRankPerformanceDetailsCSV wrote them and
they follow the JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Context, Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, ior_text, values
from siteproof.parsers.ior_text import BY_FILE, Requested, Row, whole
from siteproof.parsers.values import Object

NEEDS = "IOR 3.0 to 4: its text, or -O summaryFormat=JSON"

MIB = 2**20
HEADING = "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput"
MIN_SECONDS = Decimal("0.001")  # a time has four decimals, and must prove its rate
DIGITS = Context(prec=10)  # of a rank's rate: IOR prints eleven

_RANK = re.compile(r"(write|read),([0-9]{1,8}),([^,]+),([^,]+),([^,]+),([^,]+)")
_RANKS_REQUESTED = re.compile(r"saveRankPerformanceDetailsCSV=", re.IGNORECASE)
# On a full file system MPI-IO may report nothing, and IOR only this, with exit code 0.
_SIZES = re.compile(
    r"Expected aggregate file size +=[ ]([0-9]{1,20}).{0,80}\n"
    r"WARNING: Stat\(\) of aggregate file size +=[ ]([0-9]{1,20})"
)
_DEADLINE = re.compile(r'"deadlineForStonewall": ([1-9][0-9]{0,8})\b')
_NO_FSYNC = "WARNING: fsync() "  # of a back end that has none
# What it warns of where all, or what its stonewall allows, was done all the same; the sizes have
# their own answer. A partial read or write is tried again, unless it gave an error (-1).
_HARMLESS = re.compile(
    rf"WARNING: (?:{values.OPEN_MPI}|fsync\(\) (?:not supported|only available) in|"
    r"Expected aggregate|Stat\(\) of|Using actual aggregate|[Mm]aybe caused by|"
    r"Backend returned error during statfs|The file \"[ -~]{1,400}\" exists already and will be|"
    r"[Tt]ask [0-9]{1,8}, partial (?:read|write)\(\), [0-9])"
)
# Its exit code is the number of errors, of which 256 are 0 to the shell.
_WRONG = re.compile(r"Incorrect data on (?:read|write) \((-?[0-9]{1,20}) errors found\)")
_FAILED = re.compile(
    r"(?:ERROR: |WARNING: |\bAssertion |\bFAILED in |^Error(?:,| invalid) )[ -~]{0,200}",
    re.MULTILINE,
)


def parse(text: str) -> list[Reading]:
    """`write` and `read` (MiB/s), the _slowest and _fastest rank's, and the _bytes of each.

    Of JSON's read with -R only `verified_bytes`: IOR compares within its time, so it has no rate.
    Of the text's, IO500's, the rate with the condition `compared`.

    Raises OutputError: `invalid` if IOR found wrong data, less than all of it, or no time.
    """
    _must_have_worked(text)
    requested, rows = _read(text)
    trials = Counter[str]()
    readings = []
    for row in rows:
        trials[row.phase] += 1
        readings += _readings(row, requested, trials[row.phase])
    return readings


def _read(text: str) -> tuple[Requested, list[Row]]:
    """What IOR had to do, and what it has done. Raises OutputError."""
    if ior_text.is_text(text):
        return ior_text.read(text)
    result, table = _result(text)
    requested = _requested(result)
    if requested.ranks != bool(table):
        raise OutputError("ior: the table of the ranks is missing, or was not requested")
    ranks = _ranks(table, requested) if table else {}
    rows = []
    for phase in requested.phases:
        for number, row in enumerate(_repetitions(result, requested, phase)):
            first = number * requested.tasks
            rows.append(
                Row(
                    phase,
                    str(row.get("bwMiB")),
                    str(row.get("totalTime")),
                    requested.bytes,
                    ranks.get(phase, [])[first : first + requested.tasks],
                    timed=phase == "write" or not requested.compared,
                )
            )
    return requested, rows


def _readings(row: Row, requested: Requested, trial: int) -> list[Reading]:
    """Rate and bytes of one repetition. Raises OutputError where they do not agree."""
    if row.moved != requested.bytes and requested.stonewall != BY_FILE:
        if not requested.stonewall:
            raise OutputError(f"ior: files hold {row.moved} of {requested.bytes} bytes", "invalid")
        if not requested.wears_out:
            raise _stonewalled(requested.stonewall)
    rate = values.positive(f"ior: {row.phase} rate", row.rate)
    seconds = values.positive(f"ior: {row.phase} time", row.seconds)
    if seconds < MIN_SECONDS:
        raise OutputError(f"ior: {row.phase} in {seconds} s is too short to be timed", "invalid")
    size = Decimal(row.moved)
    values.must_agree(f"ior: {row.phase} rate", rate, size / MIB, seconds)
    dims = {"trial": str(trial)} if requested.repetitions > 1 else {}
    if not row.timed:
        return [Reading("verified_bytes", size, "B", dims)]
    found = [Reading(row.phase, rate, "MiB/s", dims)]
    if row.ranks:
        found.append(Reading(f"{row.phase}_slowest", min(row.ranks), "MiB/s", dims))
        found.append(Reading(f"{row.phase}_fastest", max(row.ranks), "MiB/s", dims))
    return [*found, Reading(f"{row.phase}_bytes", size, "B", dims)]


def _stonewalled(seconds: str) -> OutputError:
    return OutputError(
        f"ior: ended by its stonewall of {seconds} s, so what each rank did is not known", "invalid"
    )


def conditions(text: str) -> dict[str, str]:
    """Version, api, layout, transfer, block of a task, size of all (bytes), tasks.

    Of the text also `stonewall`, the seconds after which less was moved, or "by a file",
    `compared`, and `fsync` where the back end has none.
    """
    requested, rows = _read(text)
    size = rows[0].moved
    if ior_text.is_text(text):
        found: Object = ior_text.described(text) | {
            "stonewall": requested.stonewall if size < requested.bytes else "",
            "fsync": "no" if _NO_FSYNC in text and "write" in requested.phases else "",
            "compared": "yes" if requested.compared and "read" in requested.phases else "",
        }
    else:
        result, _ = _result(text)
        parameters = values.part("ior", values.only_object("ior", result, "tests"), "Parameters")
        found = {"api": parameters.get("api"), "version": result["Version"]}
    return values.words(found) | {
        "layout": requested.layout,
        "transfer": str(requested.transfer),
        "block": str(size // requested.tasks),
        "size": str(size),
        "tasks": str(requested.tasks),
        "tasks_per_node": str(requested.tasks_per_node),
    }


def _requested(result: Object) -> Requested:
    """Raises OutputError where it is incomplete, or cannot give a rate."""
    test = values.only_object("ior", result, "tests")
    parameters, options = (values.part("ior", test, key) for key in ("Parameters", "Options"))
    command = result.get("Command line")
    if not isinstance(command, str):
        raise OutputError("ior: no 'Command line'")
    compared = _flag("checkRead", parameters)
    phases = ["write"] if _flag("writeFile", parameters) else []
    if _flag("readFile", parameters) or compared:
        phases.append("read")
    if not phases:
        raise OutputError("ior: neither a write nor a read")
    return Requested(
        tasks=whole("tasks", options),
        tasks_per_node=whole("clients per node", options),
        transfer=whole("transferSize", parameters),
        block=whole("blockSize", parameters),
        segments=whole("segmentCount", parameters),
        repetitions=whole("repetitions", parameters),
        file_a_task=_flag("filePerProc", parameters),
        phases=phases,
        compared=compared,
        ranks=bool(_RANKS_REQUESTED.search(command)),
    )


def _must_have_worked(text: str) -> None:
    """Raises OutputError for what IOR itself reports."""
    if wrong := _WRONG.search(text):
        raise OutputError(f"ior: data are not what was written ({wrong[1]} errors)", "invalid")
    if failed := _FAILED.findall(_HARMLESS.sub("", text)):
        # An error explains more than the warnings before it.
        for pattern in ("ERROR", " failed ", "FAILED", "Error", ""):
            if messages := [message for message in failed if pattern in message]:
                raise OutputError(f"ior: {messages[0].strip(' ,')}", "generic")


def _result(text: str) -> tuple[Object, str]:
    """IOR's JSON, and the text after it. Raises OutputError."""
    if sizes := _SIZES.search(text):
        if deadline := _DEADLINE.search(text):
            raise _stonewalled(deadline[1])
        raise OutputError(f"ior: files hold {sizes[2]} of {sizes[1]} bytes", "invalid")
    start = re.search(r"^\{", text, re.MULTILINE)
    if not start:
        raise OutputError("ior: neither JSON nor IOR's text" if text.strip() else "ior: no output")
    result, rest = values.load("ior", text, start.start())
    if not isinstance(result.get("Version"), str) or not isinstance(result.get("Finished"), str):
        raise OutputError("ior: JSON of another program, or of a run that did not finish")
    return result, rest


def _repetitions(result: Object, requested: Requested, phase: str) -> list[Object]:
    """The results of one phase, all that were requested. Raises OutputError."""
    test = values.only_object("ior", result, "tests")
    rows = [row for row in values.rows("ior", test, "Results") if row.get("access") == phase]
    summaries = [
        row for row in values.rows("ior", result, "summary") if row.get("operation") == phase
    ]
    if len(rows) != requested.repetitions or len(summaries) != 1:
        raise OutputError(f"ior: {len(rows)} results of {phase}, expected {requested.repetitions}")
    moved = values.number(f"ior: {phase} volume", str(summaries[0].get("xsizeMiB")))
    if abs(moved * MIB - requested.bytes) > MIB / 10_000:  # it has four decimals
        raise OutputError(
            f"ior: {phase} of {moved} MiB, expected {requested.bytes} bytes", "invalid"
        )
    return rows


def _ranks(table: str, requested: Requested) -> dict[str, list[Decimal]]:
    """By phase, the rates (MiB/s) of all ranks, repetition by repetition. Raises OutputError."""
    heading, *rows = table.splitlines()
    if heading != HEADING:
        raise OutputError("ior: unknown text after the JSON, expected the table of the ranks")
    found: dict[str, list[Decimal]] = {phase: [] for phase in requested.phases}
    for line in rows:
        match = _RANK.fullmatch(line)
        if not match or match[1] not in found:
            raise OutputError("ior: a broken line in the table of the ranks")
        # Ranks follow each other in their order, repetition by repetition.
        if int(match[2]) != len(found[match[1]]) % requested.tasks:
            raise OutputError(f"ior: rank {match[2]} is not in its place")
        found[match[1]].append(_rate(match.groups()[2:], requested))
    for phase, rates in found.items():
        if len(rates) != requested.tasks * requested.repetitions:
            raise OutputError(f"ior: {phase} is not of all {requested.tasks} ranks")
    return found


def _rate(cells: Sequence[str], requested: Requested) -> Decimal:
    """A rank's rate (MiB/s).

    It is that of the transfers (and fsync) alone: with -g all ranks open and close together.
    """
    seconds, inner_seconds, rate, inner_rate = (
        values.positive("ior: a rank's value", cell) for cell in cells
    )
    share = Decimal(requested.bytes) / requested.tasks
    values.must_agree("ior: a rank's rate", rate, share, seconds)
    values.must_agree("ior: a rank's rate", inner_rate, share, inner_seconds)
    return DIGITS.divide(inner_rate, MIB)


def _flag(key: str, part: Object) -> bool:
    text = str(part.get(key))
    if text not in ("0", "1"):
        raise OutputError(f"ior: '{key}' is neither 0 nor 1")
    return text == "1"
