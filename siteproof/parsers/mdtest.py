"""mdtest 4: text in, readings out. It exits with 0 and prints its table whatever went wrong."""

from __future__ import annotations

import re
from decimal import Decimal

from siteproof.errors import OutputError
from siteproof.parsers import Reading, figures

# Option that asks for one phase alone, its row in the table, our name.
PHASES = (
    ("C", "File creation", "create"),
    ("T", "File stat", "stat"),
    ("E", "File read", "read"),
    ("r", "File removal", "remove"),
)
WITH_VALUE = "abdBefGiIlnNpsVwWxz"  # options of one letter that take a value
BY_FILE = "by a file"  # stonewall of phases whose number of files an earlier run has written down

_HARMLESS = re.compile(r"WARNING: Read bytes is 0, thus, a read test will actually just open/close")
_FAILED = re.compile(r"(?:WARNING|ERROR): [ -~]{0,200}|Process [0-9]{1,8}: FAILED[ -~]{0,200}")
_WRONG = "ERROR: verifying the data"
_WHEN = r"[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}"
_BEGIN = re.compile(rf"^-- started at {_WHEN} --$", re.MULTILINE)
_END = re.compile(rf"^-- finished at {_WHEN} --\s*\Z", re.MULTILINE)
_LAUNCHED = re.compile(
    r"^mdtest-(\S{1,40}) was launched with ([0-9]{1,8}) total task\(s\) on "
    r"([0-9]{1,8}) node\(s\)$",
    re.MULTILINE,
)
_COMMAND = re.compile(r"^Command line used: (.{1,4000})$", re.MULTILINE)
_WORK = re.compile(r"^([0-9]{1,8}) tasks, ([0-9]{1,15}) files(?:/directories)?$", re.MULTILINE)
# Whatever the heading says, a time is that of the whole phase, in seconds.
_TABLE = re.compile(
    r"^SUMMARY (rate(?: \(in ops/sec\))?|time(?: \(in (?:ops/sec|ms/op)\))?): "
    r"\(of ([0-9]{1,6}) iterations\)$",
    re.MULTILINE,
)
_SECONDS = re.compile(r"[1-9][0-9]{0,8}")
_STONEWALL = re.compile(r"\bContinue stonewall hit min: [0-9]{1,15} max: ([0-9]{1,15}) avg: ")
_ROW = re.compile(
    r"^   (File [a-z]+) +(\S{1,30}) +(\S{1,30}) +(\S{1,30}) +(\S{1,30})$", re.MULTILINE
)


def parse(text: str) -> list[Reading]:
    """`create`, `stat`, `read` and `remove` of files (IOPS), those that were asked for.

    Raises OutputError: `invalid` if mdtest found wrong data; `generic` if it could not do all.
    """
    said = _said(text)
    rates, times = _tables(text, timed="P" in said)
    items, _ = _work(text, said)
    alone = [phase for phase in PHASES if phase[0] in said]
    found = []
    for _, row, name in alone or PHASES:
        if row not in rates:
            raise OutputError(f"mdtest: no '{row}'")
        rate = _same(row, rates[row])
        if rate == 0:
            raise OutputError(f"mdtest: '{row}' was asked for and not done", "invalid")
        if times:
            if row not in times:
                raise OutputError(f"mdtest: no time of '{row}'")
            seconds = _same(row, times[row])
            if items is not None:
                figures.must_agree(f"mdtest: '{row}'", rate, Decimal(items), seconds)
        found.append(Reading(name, rate, "IOPS"))
    return found


def conditions(text: str) -> dict[str, str]:
    """Version, tasks, nodes, and files of each task, as far as they are known.

    `stonewall` where a time limit (its seconds), and not the command, decided how many files there
    are; `sync` where phases (-Y) or files (-y) are synced within their time.
    """
    try:
        said = _said(text)
        version, tasks, nodes = _launched(text)
        items, stonewall = _work(text, said)
    except OutputError:
        return {}
    synced = [name for letter, name in (("Y", "phases"), ("y", "files")) if letter in said]
    told = {
        "version": version if version.isprintable() else "",
        "tasks": tasks,
        "nodes": nodes,
        "files": str(items // int(tasks)) if items is not None else "",
        "stonewall": stonewall,
        "sync": " and ".join(synced),
    }
    return {key: value for key, value in told.items() if value}


def _said(text: str) -> dict[str, str]:
    """The options of a run that began, ended and had nothing to complain of."""
    text = _HARMLESS.sub("", text)
    if _WRONG in text:
        raise OutputError("mdtest: files do not hold what was written", "invalid")
    if failed := _FAILED.search(text):
        raise OutputError(f"mdtest: {failed[0].strip()}", "generic")
    commands = _COMMAND.findall(text)
    if len(_BEGIN.findall(text)) != 1 or len(commands) != 1:
        raise OutputError("mdtest: no output of one run")
    if not _END.search(text):
        raise OutputError("mdtest: cut off, or did not finish")
    return _options(re.findall(r"'([^']*)'", commands[0]))


def _options(words: list[str]) -> dict[str, str]:
    """Its options of one letter, and their values: -W 30, -W=30, -W30, -FW 30."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not name.startswith("-") or name.startswith("--"):
            continue
        letters = name[1:]
        for letter in letters:
            found[letter] = ""
            if letter in WITH_VALUE:
                glued = letters[1:] if letters[0] == letter else ""
                found[letter] = value if equals else glued or next(rest, "")
                break
    return found


def _launched(text: str) -> tuple[str, str, str]:
    """Version, tasks and nodes. Raises OutputError."""
    rows = _LAUNCHED.findall(text)
    if len(rows) != 1 or int(rows[0][1]) == 0:
        raise OutputError("mdtest: it does not say on how many tasks it ran")
    version, tasks, nodes = rows[0]
    return version, str(int(tasks)), str(int(nodes))


def _work(text: str, said: dict[str, str]) -> tuple[int | None, str]:
    """The files of all tasks, None if nobody knows; and what ended their creation, if not they.

    Raises OutputError.
    """
    tasks, asked = _asked(text)
    hits = _STONEWALL.findall(text)
    if hits:
        most = int(hits[0])  # the others went on until they had as many
        timer = said.get("W", "")
        if len(hits) > 1 or not 0 < most * tasks <= asked or not _SECONDS.fullmatch(timer):
            raise OutputError("mdtest: a stonewall that was not asked for, or more than one")
        return most * tasks, timer
    creates = "C" in said or not {"T", "E", "r"} & set(said)
    return (None, BY_FILE) if "x" in said and not creates else (asked, "")


def _asked(text: str) -> tuple[int, int]:
    """Tasks, and the files that all of them were asked to make. Raises OutputError."""
    rows = _WORK.findall(text)
    if len(rows) != 1:
        raise OutputError("mdtest: it does not say how many files, or several times")
    tasks, files = (int(number) for number in rows[0])
    if str(tasks) != _launched(text)[1] or not files or files % tasks:
        raise OutputError(f"mdtest: {files} files are not the same number for {tasks} tasks")
    return tasks, files


def _tables(text: str, *, timed: bool) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The rows of rates and of times, by their name. Raises OutputError."""
    heads = list(_TABLE.finditer(text))
    if [head[1][:4] for head in heads] != (["rate", "time"] if timed else ["rate"]):
        raise OutputError("mdtest: not one table of rates, and one of times where -P asks for it")
    if any(head[2] != "1" for head in heads):
        raise OutputError(f"mdtest: {heads[0][2]} iterations, of which the table tells none alone")
    ends = [head.start() for head in heads[1:]] + [len(text)]
    found = []
    for head, end in zip(heads, ends, strict=True):
        rows = _ROW.findall(text, head.end(), end)
        if len({row[0] for row in rows}) != len(rows):
            raise OutputError("mdtest: a row twice")
        found.append({row[0]: list(row[1:4]) for row in rows})
    return found[0], found[1] if timed else {}


def _same(row: str, cells: list[str]) -> Decimal:
    """The figure of a single iteration, which is its maximum, minimum and mean."""
    largest, least, mean = (figures.number(f"mdtest: '{row}'", cell) for cell in cells)
    if not largest == least == mean:
        raise OutputError(f"mdtest: '{row}' of one iteration has several values")
    return mean
