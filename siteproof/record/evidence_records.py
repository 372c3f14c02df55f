"""What persons have recorded: evidence for criteria that no check answers, and repairs of nodes.

Each record is a file `perflogs/<system>/evidence/<time>.json` or `…/repairs/<time>.json`, which is
never changed or removed. A withdrawal is a record, too. Of the file that shows it the record keeps
name, size and SHA-256. Failures of a node before its repair do not count any more; a repair clears
no failure: only a measurement does.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from siteproof import files, nodesets
from siteproof.errors import UserError, all_harmless
from siteproof.record.clocks import moment_of
from siteproof.record.finding import Finding, note
from siteproof.record.samples import Header

SECONDS = len("2026-11-26T08:00:00")  # of a time in UTC


FORMAT = 1
FOLDER = "evidence"
YES, NO = "yes", "no"
LONGEST = 2000  # characters of a text
LARGEST = 2**33  # bytes of a file that shows it
BLOCK = 2**20


@dataclass(frozen=True, kw_only=True)
class ByPerson:
    """What a person has recorded, in a file of its own.

    recorded: UTC, ISO 8601; it is the record's name, too. who: who recorded it.
    """

    folder: ClassVar[str]
    command: ClassVar[str]
    recorded: str = ""
    who: str = ""

    @property
    def name(self) -> str:
        """The beginning of its file's name."""
        return f"{datetime.fromisoformat(self.recorded):%Y%m%dT%H%M%S.%fZ}"


T = TypeVar("T", bound=ByPerson)


@dataclass(frozen=True)
class Evidence(ByPerson):
    """One record. by: who has shown it. on: the day, ISO 8601. shows: yes, no, or a value.

    withdraws: the name of the record that it takes back, with the reason as its note; empty of
    evidence itself.
    """

    folder, command = FOLDER, "evidence"

    criterion: str
    file: str
    sha256: str
    size: int
    by: str
    on: str
    shows: str
    note: str
    withdraws: str


def hashed(path: Path) -> tuple[str, int]:
    """SHA-256 and size (bytes) of a regular file. Raises UserError."""
    try:
        with files.named(path, LARGEST) as handle:
            digest = hashlib.sha256()
            while block := os.read(handle, BLOCK):
                digest.update(block)
            return digest.hexdigest(), os.fstat(handle).st_size
    except FileNotFoundError:
        raise UserError(path, "does not exist") from None


def write(perflogs: Path, system: str, record: ByPerson) -> Path:
    """Keep a record. Raises OSError if perflogs cannot be written, and UserError."""
    target = perflogs / system / record.folder / f"{record.name}.json"
    keep(target, perflogs, asdict(record))
    return target


def read_all(perflogs: Path, system: str) -> list[Evidence]:
    """All evidence of a system, the oldest first. Raises UserError for a broken record."""
    return read_kind(perflogs, system, Evidence)


def read_kind(perflogs: Path, system: str, kind: type[T]) -> list[T]:
    """Every record of a kind, the oldest first. Raises UserError for a broken one."""
    paths = sorted((perflogs / system / kind.folder).glob("[!.]*.json"))
    return [_read(path, kind) for path in paths]


def path_of(perflogs: Path, header: Header) -> Path:
    """The record's file, where a sample made of it has this header."""
    return perflogs / header.system / FOLDER / f"{header.job}.json"


def withdrawn(records: Sequence[Evidence]) -> dict[str, Evidence]:
    """The withdrawals, by the name of what they take back."""
    return {record.withdraws: record for record in records if record.withdraws}


def shown(records: Sequence[Evidence]) -> list[tuple[Evidence, Evidence | None]]:
    """What was shown, each with the record that has withdrawn it, if any."""
    back = withdrawn(records)
    return [(one, back.get(one.name)) for one in records if not one.withdraws]


def of_criterion(records: Sequence[Evidence], criterion: str) -> list[Evidence]:
    """The evidence of a criterion, without withdrawals; the newest day last."""
    own = [r for r in records if r.criterion == criterion and not r.withdraws]
    return sorted(own, key=lambda record: (record.on, record.recorded))


def day(text: str, where: str) -> date:
    """Read a day such as 2026-11-02. Raises UserError, for one in the future, too."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise UserError(where, f"'{text[:40]}' is not a valid day", "2026-11-02") from None
    if found > datetime.now(UTC).date():
        raise UserError(where, f"{found} is in the future", "today, or before")
    return found


def plain(path: Path, what: str) -> dict[str, Any]:
    """The keys of a record, without control characters. Raises UserError for one of another kind.

    what: of what kind it should be, for the message.
    """
    try:
        record = files.read_json(path, below=path.parents[2])
    except FileNotFoundError as error:
        raise UserError(path, f"cannot be read: {error.strerror}") from None
    if not isinstance(record, dict) or record.pop("siteproof", None) != FORMAT:
        raise UserError(path, f"not {what}, or of another version of the format")
    cleaned: dict[str, Any] = all_harmless(record)
    return cleaned


def keep(target: Path, perflogs: Path, record: Mapping[str, object]) -> None:
    """Write a record's keys. Raises OSError if perflogs cannot be written, and UserError."""
    text = json.dumps({"siteproof": FORMAT, **record}, indent=1)
    files.write(target, f"{text}\n".encode(), below=perflogs, may_replace=lambda _handle: False)


def of_kind(path: Path, kind: Any, what: str) -> dict[str, Any]:
    """The fields of a dataclass, each of its type, from a record. Raises UserError; what: above."""
    record = plain(path, what)
    known = {f.name: str(f.type).partition("[")[0] for f in fields(kind)}
    if {key: type(value).__name__ for key, value in record.items()} != known:
        raise UserError(path, f"not {what}", known)
    return record


def _read(path: Path, of: type[T]) -> T:
    record = of_kind(path, of, f"of 'siteproof {of.command}'")
    for key, value in record.items():
        if isinstance(value, str) and len(value) > LONGEST:
            raise UserError(path, f"'{key}' is too long", f"{LONGEST} characters")
    try:
        found = of(**record)
        date.fromisoformat(record.get("on", found.recorded[:10]))
        if path.stem == found.name:
            return found
    except ValueError:
        pass
    raise UserError(path, "its times or nodes are not valid", f"those of 'siteproof {of.command}'")


def texts(given: dict[str, str]) -> dict[str, str]:
    """Texts without blanks around them. Raises UserError for one that cannot be printed."""
    for name, text in given.items():
        if not text.strip().isprintable() or len(text) > LONGEST:
            allowed = f"printable characters in one line, at most {LONGEST}"
            raise UserError(name, "is not a valid text", allowed)
    return {name: text.strip() for name, text in given.items()}


@dataclass(frozen=True)
class Repair(ByPerson):
    """One record. nodes: a set. by: who has repaired them. ticket: empty if there is none."""

    folder, command = "repairs", "repaired"
    nodes: str
    by: str
    why: str
    ticket: str

    def __post_init__(self) -> None:
        """Raises ValueError for what is not a node set."""
        nodesets.parse(self.nodes)

    def is_before(self, header: Header) -> bool:
        """Whether a job ended after it."""
        return moment_of(header) > datetime.fromisoformat(self.recorded)

    def of_node(self, node: str) -> Finding:
        """That the node was repaired."""
        return note(
            "repaired on {since:day} by {by}: {message}{ticket: (%s)}",
            subject=node,
            since=self.recorded,
            message=self.why,
            by=self.by,
            ticket=self.ticket or None,
        )


def since_repair(repair: Finding | None, why: Finding) -> Finding:
    """A reason, which holds since the repair of its node at most."""
    if repair is None or not why.since or why.since[:SECONDS] >= repair.since[:SECONDS]:
        return why
    details = tuple(detail for detail in why.details if detail[0] != "lasting")
    return replace(why, since=repair.since, alert="", details=details)


def newest_repairs(
    perflogs: Path, system: str, until: datetime | None = None
) -> Mapping[str, Repair]:
    """The last repair of each node. Raises UserError for a broken record. until: not later ones."""
    return {
        node: one
        for one in read_kind(perflogs, system, Repair)
        if until is None or datetime.fromisoformat(one.recorded) <= until
        for node in nodesets.parse(one.nodes)
    }
