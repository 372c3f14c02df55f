"""What shows how long something was up: what probes found, and Slurm's node events.

`perflogs/<system>/probes/DAY.HOST.probes` has a line of JSON a probe and round. A file a day and
host is appended to only, and a line has less than 4 KiB: rounds that run at the same time never mix
their lines. The order of lines in the file shows a clock that was set back.

`perflogs/<system>/node_events/*.events` has node events as sacctmgr printed them, one query a file:
a line of JSON with its period and the nodes that Slurm knew, then the text. It is written whole and
never changed, so that no answer needs slurmdbd later.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from ClusterShell.NodeSet import NodeSet
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from siteproof import files, nodesets
from siteproof.errors import UserError, harmless
from siteproof.record.samples import YEARS

FOLDER, SUFFIX = "probes", ".probes"
LONGEST = 4096  # bytes of a line, which a local file system writes as a whole
LARGEST = files.OUTPUT  # bytes of a day on a host: more than 100 probes each minute
MAX_FILES = 100_000  # of a system: 27 years of probes on ten hosts
MAX_TEXT = 400  # letters of a target or a reason, of at most four bytes each
DAY = 86_400  # seconds: the longest interval
KINDS = ("http", "tcp", "ssh", "mount", "service")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_FILE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})\.([A-Za-z0-9_-]{1,64})\.probes")


def _moment(text: object) -> int:
    """The time of a line, in seconds since 1970."""
    if isinstance(text, str) and _TIME.fullmatch(text):
        moment = datetime.fromisoformat(text)
        if moment.year in YEARS:
            return int(moment.timestamp())
    raise ValueError


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError
    return text


_Name = Annotated[str, Field(pattern=rf"^{NAME.pattern}$")]
_Text = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_printable)]


@dataclass(frozen=True)
class ProbeResult:
    """One line. at: when the probe began, in seconds since 1970; interval, took: in seconds.

    probe: its name in system.yaml. why: the reason, if the service did not answer as it must.
    """

    at: Annotated[int, BeforeValidator(_moment)]
    probe: _Name
    service: _Name
    kind: Annotated[str, Field(pattern=rf"^({'|'.join(KINDS)})$")]
    target: _Text
    ok: Annotated[bool, Field(strict=True)]
    interval: Annotated[int, Field(strict=True, ge=1, le=DAY)]
    took: Annotated[float, Field(strict=True, ge=0, le=DAY)]
    why: _Text = ""

    def line(self) -> bytes:
        """The line of the file, with its line break."""
        plain = asdict(self) | {"at": text_of(self.at), "took": round(self.took, 3)}
        plain |= {key: harmless(str(plain[key]))[:MAX_TEXT] for key in ("target", "why")}
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


_READER = TypeAdapter(ProbeResult)


@dataclass
class ProbeLog:
    """What files of some days hold. hosts: the results of each host in the order of the lines.

    broken: how many lines are not results, by file. refused: the files that could not be read.
    """

    hosts: dict[str, list[ProbeResult]] = field(default_factory=dict)
    broken: dict[Path, int] = field(default_factory=dict)
    refused: list[UserError] = field(default_factory=list)

    @property
    def results(self) -> list[ProbeResult]:
        """The results of all hosts."""
        return [result for found in self.hosts.values() for result in found]


def text_of(at: int) -> str:
    """Seconds since 1970 as a time: 2026-11-21T18:00:00Z."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def host() -> str:
    """The short name of this machine, as it stands in the names of files."""
    name = socket.gethostname().partition(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "_"


def append(perflogs: Path, system: str, result: ProbeResult) -> None:
    """Append a result to the file of its day. Raises OSError and UserError."""
    name = f"{text_of(result.at)[:10]}.{host()}{SUFFIX}"
    path = perflogs / system / FOLDER / name
    files.append(path, result.line(), below=perflogs, limit=LARGEST - LONGEST)


def read(perflogs: Path, system: str, begin: int, end: int) -> ProbeLog:
    """The results of every day that overlaps a period, in seconds since 1970.

    A file that cannot be read is named, and the others are read. Raises UserError if the folder
    cannot be listed.
    """
    log = ProbeLog()
    first, last = text_of(begin)[:10], text_of(end)[:10]

    def wanted(name: str) -> re.Match[str] | None:
        match = _FILE.fullmatch(name)
        return match if match and first <= match[1] <= last else None

    for match, path, text in _texts(perflogs, system, FOLDER, wanted, log.refused):
        found, broken = _results(path, match[1], text)
        log.hosts.setdefault(match[2], []).extend(found)
        if broken:
            log.broken[path] = broken
    return log


def _texts(
    perflogs: Path,
    system: str,
    folder: str,
    wanted: Callable[[str], re.Match[str] | None],
    refused: list[UserError],
) -> Iterator[tuple[re.Match[str], Path, str]]:
    """The files of a folder whose names are wanted; `refused` gets those that cannot be read."""
    top = perflogs / system / folder
    try:
        names = files.names(top, below=perflogs, most=MAX_FILES)
    except FileNotFoundError:
        return
    for match in filter(None, map(wanted, names)):
        path = top / match[0]
        try:
            text = files.read_text(path, below=perflogs, limit=LARGEST)
        except FileNotFoundError:
            continue
        except UserError as error:
            refused.append(error)
        else:
            yield match, path, text


def _results(path: Path, day: str, text: str) -> tuple[list[ProbeResult], int]:
    """The results of a file, and how many of its lines are none."""
    found, broken = [], 0
    for line in filter(None, text.split("\n")):
        result = parse(path, line)
        if result and text_of(result.at)[:10] == day:
            found.append(result)
        else:
            broken += 1
    return found, broken


def parse(where: object, line: str) -> ProbeResult | None:
    """A result from its line; None if it is not one."""
    try:
        record = files.loads(where, line) if len(line) < LONGEST else None
        if isinstance(record, dict) and record.keys() == ProbeResult.__dataclass_fields__.keys():
            return _READER.validate_python(record)
    except (UserError, ValidationError):
        pass
    return None


def last_times(results: Sequence[ProbeResult]) -> dict[str, int]:
    """When each probe ran for the last time, by its name."""
    found: dict[str, int] = {}
    for result in results:
        found[result.probe] = max(result.at, found.get(result.probe, 0))
    return found


def recent(perflogs: Path, system: str, now: datetime) -> ProbeLog:
    """The results of this day and of the day before it."""
    return read(perflogs, system, int((now - timedelta(days=1)).timestamp()), int(now.timestamp()))


EVENTS_FOLDER, EVENTS_SUFFIX = "node_events", ".events"
FORMAT = 1
_EVENTS_FILE = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\.events")


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


def write_events(perflogs: Path, system: str, record: EventRecord) -> Path:
    """Keep a query. Raises OSError and UserError."""
    made = f"{datetime.fromtimestamp(record.end, UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    head = {"format": FORMAT, "begin": record.begin, "end": record.end, "nodes": str(record.nodes)}
    path = perflogs / system / EVENTS_FOLDER / f"{made}{EVENTS_SUFFIX}"
    data = f"{json.dumps(head)}\n{record.text}".encode()
    if len(data) > LARGEST:
        raise UserError(path, "too many events for one file", hint="Fetch a shorter period")
    files.write(path, data, below=perflogs)
    return path


def read_events(perflogs: Path, system: str) -> tuple[list[EventRecord], list[UserError]]:
    """All queries, oldest first, and the files that could not be read.

    Raises UserError if the folder cannot be listed.
    """
    found: list[EventRecord] = []
    refused: list[UserError] = []
    named = _EVENTS_FILE.fullmatch
    for _, path, text in _texts(perflogs, system, EVENTS_FOLDER, named, refused):
        try:
            found.append(_parsed(path, text))
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
