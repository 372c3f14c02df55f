"""Stage directories that could not be collected: a small file for each, which verdicts read.

The files are in `perflogs/.set-aside/` until the stage directory is collected. If somebody discards
it, the file stays and records that; so it does for a file of samples of which something is lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError, harmless

FOLDER = ".set-aside"
MAX_FILES = 10_000
LARGEST = 64 * 1024  # bytes
LONGEST = 500  # characters of a reason


@dataclass(frozen=True)
class SetAside:
    """One stage directory, or file of samples, by its path in the data folder.

    system: empty if it is not known. since, discarded: UTC; `discarded` is empty until somebody
    (by) discards it, for a reason.
    """

    stage: str
    system: str
    why: str
    since: str
    discarded: str = ""
    by: str = ""
    reason: str = ""

    def __str__(self) -> str:
        since = f" (since {self.since[:10]})" if self.since else ""
        return harmless(f"{self.stage}: {self.why}{since}")


def key(stage: Path, perflogs: Path) -> str:
    """The name of the file for a path, which does not depend on the data folder."""
    return hashlib.sha256(_inner(stage, perflogs).encode("utf-8", "replace")).hexdigest()[:32]


def note(perflogs: Path, stage: Path, why: UserError, system: str = "") -> None:
    """Set a stage directory aside; no error if that cannot be written, as the caller warns, too."""
    known = _read(perflogs, key(stage, perflogs))
    text = " ".join(why.message.split())
    since = known.since if known else _now()
    new = SetAside(_inner(stage, perflogs), system, harmless(text)[:LONGEST], since)
    if new != known:
        with suppress(OSError, UserError):
            _write(perflogs, stage, new)


def clear(perflogs: Path, stage: Path) -> None:
    """Remove the file of a stage directory that has been collected."""
    with suppress(OSError):
        (perflogs / FOLDER / f"{key(stage, perflogs)}.json").unlink()


def discard(perflogs: Path, path: Path, by: str, reason: str, why: str = "") -> SetAside:
    """Mark a path as discarded; nothing is deleted. Raises OSError and UserError.

    why: what is wrong with it, where that is not recorded yet.
    """
    known = _read(perflogs, key(path, perflogs))
    old = known or SetAside(_inner(path, perflogs), "", harmless(why)[:LONGEST], _now())
    by, reason = harmless(by)[:LONGEST], harmless(reason)[:LONGEST]
    new = replace(old, discarded=_now(), by=by, reason=reason)
    _write(perflogs, path, new)
    return new


def discarded(perflogs: Path) -> dict[str, SetAside]:
    """What was discarded, by its key."""
    return {name: one for name, one in _all(perflogs) if one.discarded}


def of_system(perflogs: Path, system: str) -> list[SetAside]:
    """Those that are not discarded, and are or may be of this system."""
    return [one for _, one in _all(perflogs) if not one.discarded and one.system in ("", system)]


def below(perflogs: Path, folder: Path) -> list[Path]:
    """The stage directories that are set aside at or below a folder."""
    data = perflogs.parent
    stages = [data / one.stage for _, one in _all(perflogs) if not one.discarded]
    return [stage for stage in stages if stage == folder or folder in stage.parents]


def _all(perflogs: Path) -> Iterator[tuple[str, SetAside]]:
    try:
        names = files.names(perflogs / FOLDER, below=perflogs, most=MAX_FILES)
    except FileNotFoundError:
        return
    except UserError as error:  # too many files, or not a folder of a trusted user
        yield (
            "",
            SetAside(f"perflogs/{FOLDER}", "", f"what is set aside is not known: {error.what}", ""),
        )
        return
    for name in names:
        if name.endswith(".json") and not name.startswith("."):
            kept = _read(perflogs, name.removesuffix(".json"))
            if kept:
                yield name.removesuffix(".json"), kept


def _read(perflogs: Path, name: str) -> SetAside | None:
    path = perflogs / FOLDER / f"{name}.json"
    try:
        record = files.read_json(path, below=perflogs, limit=LARGEST)
        texts = all(isinstance(record[known], str) for known in SetAside.__dataclass_fields__)
        return SetAside(**record) if texts else _broken(path)
    except FileNotFoundError:
        return None
    except (UserError, TypeError, KeyError):
        return _broken(path)


def _broken(path: Path) -> SetAside:
    """A file with another content is reported, too."""
    return SetAside(f"perflogs/{FOLDER}/{path.name}", "", "the note itself cannot be read", "")


def _write(perflogs: Path, stage: Path, new: SetAside) -> None:
    path = perflogs / FOLDER / f"{key(stage, perflogs)}.json"
    files.write(path, json.dumps(asdict(new), indent=1).encode(), below=perflogs)


def _inner(stage: Path, perflogs: Path) -> str:
    data = perflogs.parent
    return str(stage.relative_to(data) if stage.is_relative_to(data) else stage)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
