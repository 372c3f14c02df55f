"""Evidence: what a person has shown, for criteria that neither a check nor a derivation answers.

Each record is a file `perflogs/<system>/evidence/<time>.json`, which is never changed or removed. A
withdrawal is a record, too. Of the file that shows it the record keeps name, size and SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.record.samples import Header

FORMAT = 1
FOLDER = "evidence"
YES, NO = "yes", "no"
LONGEST = 2000  # characters of a text
LARGEST = 2**33  # bytes of a file that shows it
BLOCK = 2**20


@dataclass(frozen=True)
class Evidence:
    """One record. by: who has shown it. on: the day, ISO 8601. shows: yes, no, or a value.

    recorded: UTC, ISO 8601; it is the record's name, too. who: who recorded it. withdraws: the name
    of the record that it takes back, with the reason as its note; empty of evidence itself.
    """

    criterion: str
    file: str
    sha256: str
    size: int
    by: str
    on: str
    shows: str
    note: str
    recorded: str
    who: str
    withdraws: str

    @property
    def name(self) -> str:
        """How a withdrawal names it, and the beginning of its file's name."""
        return f"{datetime.fromisoformat(self.recorded):%Y%m%dT%H%M%S.%fZ}"


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


def write(perflogs: Path, system: str, record: Evidence) -> Path:
    """Keep a record. Raises OSError if perflogs cannot be written, and UserError."""
    target = perflogs / system / FOLDER / f"{record.name}.json"
    text = json.dumps({"siteproof": FORMAT, **asdict(record)}, indent=1)
    files.write(target, f"{text}\n".encode(), below=perflogs, may_replace=lambda _handle: False)
    return target


def read_all(perflogs: Path, system: str) -> list[Evidence]:
    """Every record of a system, the oldest first. Raises UserError for a broken one."""
    return [_read(path) for path in sorted((perflogs / system / FOLDER).glob("[!.]*.json"))]


def path_of(perflogs: Path, header: Header) -> Path:
    """The record's file, where a sample made of it has this header."""
    return perflogs / header.system / FOLDER / f"{header.job}.json"


def withdrawn(records: Sequence[Evidence]) -> dict[str, Evidence]:
    """The withdrawals, by the name of what they take back."""
    return {record.withdraws: record for record in records if record.withdraws}


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


def _read(path: Path) -> Evidence:
    record = files.read_json(path, below=path.parents[2])
    known = {f.name: f.type for f in fields(Evidence)}
    if not isinstance(record, dict) or record.pop("siteproof", None) != FORMAT:
        raise UserError(path, "not evidence, or of another version of the format")
    if record.keys() != known.keys():
        raise UserError(path, "not evidence", known)
    for key, kind in known.items():
        value = record[key]
        if type(value).__name__ != kind or isinstance(value, str) and len(value) > LONGEST:
            raise UserError(path, f"'{key}' is not a valid {kind}")
    plain: dict[str, Any] = {k: harmless(v) if isinstance(v, str) else v for k, v in record.items()}
    found = Evidence(**plain)
    try:
        right = path.stem == found.name and date.fromisoformat(found.on)
    except ValueError:
        right = False
    if not right:
        raise UserError(path, "its times are not valid", "those that 'siteproof evidence' writes")
    return found
