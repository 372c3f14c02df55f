"""Import of ReFrame's perflogs and run reports: copied as they are, whole, and only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history.foreign import candidates, formats, source
from siteproof.history.foreign.candidates import Content, File

NEW, GROWN, SAME, DOUBLE, EMPTY = "new", "grown", "as it was", "left out", "without a figure"
_MOSTLY = 0.5  # of a file's figures in another one: it tells of the same runs


@dataclass
class Import:
    """What an import did, or would do.

    done: each file with a word of NEW … EMPTY, and what is told of that. told: of other files.
    """

    done: list[tuple[File, str, str]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def of(self, *words: str) -> list[File]:
        """The files of which one of these words is true."""
        return [file for file, word, _ in self.done if word in words]


def plan(paths: Sequence[Path], system: str, zone: str, perflogs: Path) -> Import:
    """What importing these would do. Raises UserError where nothing may be done.

    A file in which something is refused and nothing can be read ends it all. Perflogs come first:
    what a run report has of the same runs is left out.
    """
    formats.valid_zone(zone)
    found, told = candidates.find(paths)
    if not found:
        raise UserError(
            paths[0], "; ".join(["no perflog and no run report of ReFrame to import", *told[:1]])
        )
    done = Import(told=told)
    there = _there(perflogs, system)
    found.sort(key=lambda f: formats.kind(f.path) == formats.REPORT)
    contents = candidates.read([file.path for file in found], system, zone)
    for file in found:
        _check_name(file)
        target = perflogs / system / formats.FOLDER / file.name
        content = contents[file.path]
        if isinstance(content, UserError):
            raise content
        file.content = content
        if not file.content.figures and file.content.refused:
            raise UserError(
                file.path, "no line of it can be read; the first: " + file.content.refused[0]
            )
        word, why = _state(file, target, zone, there)
        done.done.append((file, word, why))
        if word in (NEW, GROWN):
            there[target] = file.content
    return done


def keep(done: Import, system: str, zone: str, perflogs: Path) -> None:
    """Copy what is new or has grown. Raises OSError. What was cut short is completed next time."""
    for file in done.of(NEW, GROWN):
        target = perflogs / system / formats.FOLDER / file.name
        if zone:
            files.write(formats.zone_file(target), f"{zone}\n".encode(), below=perflogs)
        files.write(target, source.content(file.path), below=perflogs)


def _there(perflogs: Path, system: str) -> dict[Path, Content]:
    """What is kept already. The history names those files that cannot be read."""
    found = candidates.read(list(formats.files(perflogs, system)), system, None)
    return {path: content for path, content in found.items() if isinstance(content, Content)}


def _check_name(file: File) -> None:
    if harmless(file.name) != file.name or file.name.endswith((".jsonl", ".zone", ".tmp")):
        raise UserError(
            file.path,
            "a name that imported files cannot have",
            hint="Rename it; the name must not end in .jsonl, .zone or .tmp",
        )


def _state(file: File, target: Path, zone: str, there: dict[Path, Content]) -> tuple[str, str]:
    """A word for a file, and what is told of it. Raises UserError."""
    if not file.content.figures:
        return EMPTY, ""
    if target.exists():
        _check_zone(file, target, zone)
        if target.stat().st_size == file.path.stat().st_size and (
            candidates.digest(target) == candidates.digest(file.path)
        ):
            return SAME, ""
        if _continues(file.path, target):
            return GROWN, ""
        raise UserError(
            file.path,
            "a file of that name and another content is there already",
            hint=f"Use another name, or remove {target}",
        )
    return _double(file.content, there) or (NEW, "")


def _double(mine: Content, there: dict[Path, Content]) -> tuple[str, str] | None:
    """Whether most of a file's figures are in others, or most of another's are in it."""
    common = {path: mine.keys & content.keys for path, content in there.items()}
    covered = [path for path, keys in common.items() if len(keys) > _MOSTLY * len(there[path].keys)]
    whole = set().union(*common.values())
    if not covered and len(whole) <= _MOSTLY * len(mine.keys):
        return None
    names = sorted(path.name for path, keys in common.items() if keys)
    which = ", ".join(names[:3]) + (f" and {len(names) - 3} more files" if names[3:] else "")
    return DOUBLE, f"{len(whole)} of its {len(mine.keys)} values are there already, from {which}"


def _check_zone(file: File, target: Path, zone: str) -> None:
    before = formats.zone_of(target)
    if (before or "UTC") != (zone or "UTC"):
        raise UserError(
            file.path,
            f"it is there already with times in {before or 'UTC'}",
            hint=f"Use --zone {before or 'UTC'}, or remove {target}",
        )


def _continues(path: Path, target: Path) -> bool:
    """Whether a file begins with all that is kept of it: ReFrame has gone on writing."""
    with source.stream(path) as new, source.stream(target) as old:
        while before := old.read(1 << 20):
            if new.read(len(before)) != before:
                return False
    return True
