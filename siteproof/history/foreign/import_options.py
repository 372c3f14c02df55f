"""How a file of plain ReFrame is read, as a person said at its import; kept next to the copy."""

from __future__ import annotations

import json
import zoneinfo
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError
from siteproof.history.foreign import layouts
from siteproof.history.foreign.origins import Origin

ENDING = ".import"  # of the file with the options of an imported file


@dataclass(frozen=True)
class Options:
    """What was given. Raises UserError for a zone or a format that is none.

    zone: of times without a zone; empty: UTC. format: of lines above which no line of names is:
    a name in `layouts.PRESETS`, or ReFrame's format string. systems: names in the file whose lines
    count. tests: patterns of the classes that count, with * and ?. An empty one selects all.
    """

    zone: str = ""
    format: str = ""
    systems: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.zone and self.zone not in zoneinfo.available_timezones():
            raise UserError(
                "--zone",
                f"'{self.zone[:40]}' is not a time zone",
                "a name such as Europe/Zurich, or UTC",
            )
        if self.format:
            layouts.of_format(self.format)

    def takes(self, origin: Origin) -> bool:
        """Whether lines of this origin are imported."""
        if self.systems and origin.system_in_file not in self.systems:
            return False
        return not self.tests or any(fnmatchcase(origin.header.check, one) for one in self.tests)

    def __str__(self) -> str:
        """As they are typed."""
        given = {
            "--zone": [self.zone],
            "--format": [self.format],
            "--only-system": self.systems,
            "--only-test": self.tests,
        }
        words = [f"{name} '{text}'" for name, texts in given.items() for text in texts if text]
        return " ".join(words) or "no option"

    def dump(self) -> bytes:
        """The content of the file that is kept next to an imported one."""
        return f"{json.dumps(asdict(self))}\n".encode()


DEFAULT = Options()


def file_of(path: Path) -> Path:
    """The file with the options of an imported file."""
    return path.with_name(path.name + ENDING)


def of(path: Path) -> Options:
    """The options with which a file was imported. Raises UserError."""
    place = file_of(path)
    try:
        kept = files.loads(place, content(place, files.ACCOUNT))
    except FileNotFoundError:
        return DEFAULT
    except OSError as error:
        raise UserError(place, f"cannot be read: {error.strerror}") from None
    match kept:
        case {"zone": str(zone), "format": str(form), "systems": [*systems], "tests": [*tests]}:
            if all(isinstance(text, str) for text in (*systems, *tests)):
                return Options(zone, form, tuple(systems), tuple(tests))
    raise UserError(place, "not the options of an import", list(asdict(DEFAULT)))


def content(path: Path, limit: int = files.SAMPLES) -> bytes:
    """All of a file: a copy below perflogs, or one that a person imports.

    Below perflogs its owner must be trusted, and no link is followed. Raises OSError, UserError.
    """
    top = files.perflogs()
    if path.is_relative_to(top):
        return files.read(path, below=top, limit=limit)
    return files.read_named(path, limit)
