"""Import of ReFrame's perflogs and run reports: each is copied unchanged, and only once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history.foreign import candidates, chosen_lines, formats, source
from siteproof.history.foreign.candidates import Content, File
from siteproof.history.foreign.chosen_lines import ALL, Only

_ENDINGS = (".jsonl", ".zone", ".only", ".tmp")  # of names that other files have
_MOSTLY = 0.5  # a file with a larger share of its values in other files is not imported


class State(StrEnum):
    """What an import does with a file; the value is what the command prints."""

    NEW = "new"
    GROWN = "grown"
    SAME = "as it was"
    DOUBLE = "left out"
    EMPTY = "without a figure"


@dataclass(frozen=True)
class Overlap:
    """The values of a file that are there already. files: the names of the files with them."""

    values: int
    of: int
    files: Sequence[str]


@dataclass
class Import:
    """What an import did, or would do.

    done: each file and its state. overlaps: of files in state DOUBLE, by path. skipped: others.
    """

    done: list[tuple[File, State]] = field(default_factory=list)
    overlaps: dict[Path, Overlap] = field(default_factory=dict)
    skipped: list[UserError] = field(default_factory=list)

    def of(self, *states: State) -> list[File]:
        """The files in one of these states."""
        return [file for file, state in self.done if state in states]


def plan(paths: Sequence[Path], system: str, zone: str, perflogs: Path, only: Only = ALL) -> Import:
    """What an import of these files would do. Raises UserError if nothing may be imported.

    A file of which no line can be read stops the import. Perflogs come first: a run report of the
    same runs is then left out.
    """
    formats.valid_zone(zone)
    found, skipped = candidates.find(paths)
    if not found:
        first = [str(error) for error in skipped[:1]]
        raise UserError(
            paths[0], "; ".join(["no perflog and no run report of ReFrame to import", *first])
        )
    done = Import(skipped=skipped)
    there = _there(perflogs, system)
    found.sort(key=lambda f: formats.kind(f.path) == formats.REPORT)
    contents = candidates.read([file.path for file in found], system, zone, only)
    _refuse_unknown(only, contents.values())
    for file in found:
        _check_name(file)
        content = file.content = _readable(file.path, contents[file.path])
        target = perflogs / system / formats.FOLDER / file.name
        state = _state(file, target, zone, only)
        overlap = _overlap(content, there) if state is State.NEW else None
        if overlap:
            done.overlaps[file.path] = overlap
            state = State.DOUBLE
        done.done.append((file, state))
        if state in (State.NEW, State.GROWN):
            there[target] = content
    return done


def _refuse_unknown(only: Only, contents: Iterable[Content | UserError]) -> None:
    """Raises UserError for a system that no file names."""
    known = set[str]()
    for content in contents:
        if isinstance(content, Content):
            known |= content.systems | content.others
    if unknown := sorted(set(only.systems) - known):
        raise UserError("--only-system", f"no file has the system '{unknown[0]}'", sorted(known))


def keep(done: Import, system: str, zone: str, perflogs: Path, only: Only = ALL) -> None:
    """Copy what is new or has grown. Raises OSError; a repeated import then copies the rest."""
    for file in done.of(State.NEW, State.GROWN):
        target = perflogs / system / formats.FOLDER / file.name
        if zone:
            files.write(formats.zone_file(target), f"{zone}\n".encode(), below=perflogs)
        if only:
            files.write(chosen_lines.file_of(target), only.dump(), below=perflogs)
        files.write(target, source.content(file.path), below=perflogs)


def _there(perflogs: Path, system: str) -> dict[Path, Content]:
    """What was imported before. The history names files of it that cannot be read."""
    found = candidates.read(list(formats.files(perflogs, system)), system, None)
    return {path: content for path, content in found.items() if isinstance(content, Content)}


def _readable(path: Path, content: Content | UserError) -> Content:
    """Raises UserError if nothing in the file can be read."""
    if isinstance(content, UserError):
        raise content
    if not content.figures and content.refused:
        raise UserError(path, "no line of it can be read; the first: " + content.refused[0])
    return content


def _check_name(file: File) -> None:
    if harmless(file.name) != file.name or file.name.endswith(_ENDINGS):
        raise UserError(
            file.path,
            "a name that imported files cannot have",
            hint=f"Rename it; the name must not end in {', '.join(_ENDINGS)}",
        )


def _state(file: File, target: Path, zone: str, only: Only) -> State:
    """The state of a file, without a look at other files. Raises UserError."""
    if not file.content.figures:
        return State.EMPTY
    if not target.exists():
        return State.NEW
    _check_zone(file, target, zone)
    _check_selection(file, target, only)
    if candidates.same(target, file.path):
        return State.SAME
    if _continues(file.path, target):
        return State.GROWN
    raise UserError(
        file.path,
        "a file of that name and another content is there already",
        hint=f"Use another name, or remove {target}",
    )


def _overlap(new: Content, there: dict[Path, Content]) -> Overlap | None:
    """The overlap if most values of a file are in others, or most of another's are in it."""
    common = {path: new.keys & content.keys for path, content in there.items()}
    covered = [path for path, keys in common.items() if len(keys) > _MOSTLY * len(there[path].keys)]
    known = set().union(*common.values())
    if not covered and len(known) <= _MOSTLY * len(new.keys):
        return None
    names = sorted(path.name for path, keys in common.items() if keys)
    return Overlap(len(known), len(new.keys), names)


def _check_zone(file: File, target: Path, zone: str) -> None:
    before = formats.zone_of(target)
    if (before or "UTC") != (zone or "UTC"):
        raise UserError(
            file.path,
            f"it is there already with times in {before or 'UTC'}",
            hint=f"Use --zone {before or 'UTC'}, or remove {target}",
        )


def _check_selection(file: File, target: Path, only: Only) -> None:
    before = chosen_lines.of(target)
    if before != only:
        raise UserError(
            file.path,
            f"it is there already with {before or 'all of its lines'}",
            hint=f"Use {before or 'no --only-system and --only-test'}, or remove {target}",
        )


def _continues(path: Path, target: Path) -> bool:
    """Whether a file begins with the whole imported copy: ReFrame has appended lines."""
    with source.stream(path) as new, source.stream(target) as old:
        while before := old.read(1 << 20):
            if new.read(len(before)) != before:
                return False
    return True
