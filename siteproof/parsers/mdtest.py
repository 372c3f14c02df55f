"""mdtest 1.9 to 4: text in, readings out. It exits with 0 after errors, too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, values

NEEDS = "mdtest 1.9, 3 or 4, of one run"


# Option for one phase alone, its row in the table, our name.
PHASES = (
    ("C", "File creation", "create"),
    ("T", "File stat", "stat"),
    ("E", "File read", "read"),
    ("r", "File removal", "remove"),
)
Rows = dict[str, tuple[Decimal, Decimal, Decimal]]  # least, mean, standard deviation
BY_FILE = "by a file"  # stonewall of phases whose number of files an earlier run has written

# Letters that are flags, then one that takes a value.
_OPTION = re.compile(r"-([^-=abdBefGiIlnNpsVwWxz]*)(?:([abdBefGiIlnNpsVwWxz])(.*)|=.*)?")
_NO_FILE = "could not read stonewall status file"  # so all files count that the command names
# With each of them all phases are done all the same. A back end without statfs cannot tell how much
# of it is used.
_HARMLESS = re.compile(
    rf"WARNING: (?:{values.OPEN_MPI}|{_NO_FILE}|Backend returned error during statfs|"
    r"unable to use realpath\(\) on file system|"
    r"Read bytes is 0, thus, a read test will actually just open/close)"
)
_FAILED = re.compile(r"(?:WARNING|ERROR): [ -~]{0,200}|Process [0-9]{1,8}: FAILED[ -~]{0,200}")
_WRONG = "ERROR: verifying the data"
_WHEN = r"[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}"
_BEGIN = re.compile(rf"^-- started at {_WHEN} --$", re.MULTILINE)
# After it may be lines of other ranks, which come late, and of the launcher.
_END = re.compile(rf"^-- finished at {_WHEN} --[ \t]*$", re.MULTILINE)
_LAUNCHED = re.compile(
    r"^mdtest-(\S{1,40}) was launched with ([1-9][0-9]{0,7}) total task\(s\) on "
    r"([0-9]{1,8}) node\(s\)$",
    re.MULTILINE,
)
_COMMAND = re.compile(r"^Command line used: (.{1,4000})$", re.MULTILINE)
_WORK = re.compile(r"^([0-9]{1,8}) tasks, ([0-9]{1,15}) files(?:/directories)?$", re.MULTILINE)
# Whatever the heading is, a time is that of the whole phase, in seconds.
_TABLE = re.compile(
    r"^SUMMARY ?(rate(?: \(in ops/sec\))?|time(?: \(in (?:ops/sec|ms/op)\))?|): "
    r"\(of ([0-9]{1,6}) iterations\)$",
    re.MULTILINE,
)
_SECONDS = re.compile(r"[1-9][0-9]{0,8}")
_STONEWALL = re.compile(r"\bContinue stonewall hit min: [0-9]{1,15} max: ([0-9]{1,15}) avg: ")
_ROW = re.compile(
    r"^   (File [a-z]+) *( :)? +(\S{1,30}) +(\S{1,30}) +(\S{1,30}) +(\S{1,30})$", re.MULTILINE
)


def parse(text: str) -> list[Reading]:
    """`create`, `stat`, `read` and `remove` of files (IOPS), those that were requested.

    Of several iterations the mean, and the standard deviation as `create_stddev` and so on.

    Raises OutputError: `invalid` if mdtest found wrong data; `generic` if it could not do all.
    """
    text = text.replace("\r\n", "\n")
    options = _options_of_run(text)
    tables, iterations = _tables(text, timed="P" in options)
    files, _ = _work(text, options)
    found = []
    for _, row, name in _phases(options):
        if any(row not in table for table in tables):
            raise OutputError(f"mdtest: no '{row}'")
        (least, rate, deviation), *times = (table[row] for table in tables)
        if least == 0:
            raise OutputError(f"mdtest: '{row}' was requested and not done", "invalid")
        if times and files is not None and iterations == 1:
            values.must_agree(f"mdtest: '{row}'", rate, Decimal(files), times[0][1])
        found.append(Reading(name, rate, "IOPS"))
        if iterations > 1:
            found.append(Reading(f"{name}_stddev", deviation, "IOPS"))
    return found


def conditions(text: str) -> dict[str, str]:
    """Version, tasks, nodes, files of each task, iterations if several, as far as they are known.

    `stonewall` where a time limit (its seconds), and not the command, decided how many files there
    are; `sync` where phases (-Y) or files (-y) are synced within their time.
    """
    text = text.replace("\r\n", "\n")
    options = _options_of_run(text)
    version, tasks, nodes = _launched(text)
    _, iterations = _tables(text, timed="P" in options)
    files, stonewall = _work(text, options)
    synced = [name for letter, name in (("Y", "phases"), ("y", "files")) if letter in options]
    found = {
        "version": version if version.isprintable() else "",
        "tasks": tasks,
        "nodes": nodes,
        "files": "" if files is None else str(files // int(tasks)),
        "stonewall": stonewall,
        "sync": " and ".join(synced),
        "iterations": str(iterations) if iterations > 1 else "",
    }
    return {key: value for key, value in found.items() if value}


def _phases(options: dict[str, str]) -> Sequence[tuple[str, str, str]]:
    """The phases that were requested; without an option that names one, all."""
    return [phase for phase in PHASES if phase[0] in options] or PHASES


def _options_of_run(text: str) -> dict[str, str]:
    """The options of a run that began, ended and reported no error."""
    text = _HARMLESS.sub("", text)
    if _WRONG in text:
        raise OutputError("mdtest: files do not hold what was written", "invalid")
    if failed := _FAILED.search(text):
        raise OutputError(f"mdtest: {failed[0].strip()}", "generic")
    commands = _COMMAND.findall(text)
    if len(_BEGIN.findall(text)) != 1 or len(commands) != 1:
        raise OutputError("mdtest: not the output of one run")
    if not _END.search(text):
        raise OutputError("mdtest: cut off, or did not finish")
    found: dict[str, str] = {}
    # The words of the command, of which quotes are no part: -W 30, -W=30, -W30, -FW 30.
    words = re.findall(r"""(?<!\S)(?:'([^']*)'|"([^"]*)"|(\S+))""", commands[0])
    rest = map("".join, words)
    for argument in rest:
        option = _OPTION.fullmatch(argument)
        if option is None:
            continue
        flags, letter, value = option.groups()
        found |= dict.fromkeys(flags, "")
        if not letter:
            continue
        if value.startswith("="):
            found[letter] = value[1:]
        elif value and not flags:
            found[letter] = value
        else:
            found[letter] = next(rest, "")
    return found


def _launched(text: str) -> tuple[str, ...]:
    """Version, tasks and nodes. Raises OutputError."""
    return values.one("mdtest: numbers of tasks", _LAUNCHED, text)


def _work(text: str, options: dict[str, str]) -> tuple[int | None, str]:
    """The files of all tasks, None if unknown; and what else ended their creation.

    Raises OutputError.
    """
    tasks, files = map(int, values.one("mdtest: numbers of files", _WORK, text))
    if f"{tasks}" != _launched(text)[1] or not files or files % tasks:
        raise OutputError(f"mdtest: {files} files are not the same number for {tasks} tasks")
    if stonewalls := _STONEWALL.findall(text):
        most = int(stonewalls[0])  # the other tasks went on until they had as many
        seconds = options.get("W", "")
        possible = 0 < most * tasks <= files and _SECONDS.fullmatch(seconds)
        if len(stonewalls) > 1 or not possible:
            raise OutputError("mdtest: a stonewall that was not requested, or more than one")
        return most * tasks, seconds
    creates = any(name == "create" for *_, name in _phases(options))
    if "x" in options and not creates and _NO_FILE not in text:
        return None, BY_FILE
    return files, ""


def _tables(text: str, *, timed: bool) -> tuple[list[Rows], int]:
    """The table of rates, that of times if there is one; and of how many iterations they are."""
    heads = list(_TABLE.finditer(text))
    if [head[1][:4] or "rate" for head in heads] != (["rate", "time"] if timed else ["rate"]):
        raise OutputError("mdtest: expected one table of rates, and with -P one of times")
    iterations = int(heads[0][2])
    if not iterations or any(int(head[2]) != iterations for head in heads):
        raise OutputError("mdtest: the number of iterations is not the same in both tables, or 0")
    ends = [head.start() for head in heads[1:]] + [len(text)]
    each = zip(heads, ends, strict=True)
    return [_rows(text[head.end() : end], iterations) for head, end in each], iterations


def _rows(table: str, iterations: int) -> Rows:
    """Least, mean and standard deviation of each row. Raises OutputError."""
    found: Rows = {}
    for name, of_ranks, *cells in _ROW.findall(table):
        what = f"mdtest: '{name}'"
        largest, least, mean, deviation = (values.number(what, cell) for cell in cells)
        if name in found:
            raise OutputError("mdtest: a row twice")
        # Before version 4 each rank's own time counts.
        if iterations == 1 and not of_ranks and not largest == least == mean:
            raise OutputError(f"{what} of one iteration has several values")
        if not least <= mean <= largest:
            raise OutputError(f"{what}: the mean is not between minimum and maximum")
        if deviation > largest - least:
            raise OutputError(f"{what}: the standard deviation is above the range")
        found[name] = least, mean, deviation
    return found
