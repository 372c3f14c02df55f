"""Import of ReFrame's perflogs and run reports: each is copied unchanged, and only once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history.foreign import candidates, formats, import_options, source
from siteproof.history.foreign.candidates import Candidate, Content
from siteproof.history.foreign.import_options import Options

_ENDINGS = (".jsonl", import_options.ENDING, ".tmp")  # of names that other files have
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

    done: list[tuple[Candidate, State]] = field(default_factory=list)
    overlaps: dict[Path, Overlap] = field(default_factory=dict)
    skipped: list[UserError] = field(default_factory=list)

    def of(self, *states: State) -> list[Candidate]:
        """The files in one of these states."""
        return [file for file, state in self.done if state in states]


def plan(paths: Sequence[Path], system: str, given: Options, perflogs: Path) -> Import:
    """What an import of these files would do. Raises UserError if nothing may be imported.

    A named file of which no line can be read stops the import; one within a folder is skipped.
    Perflogs come first: a run report of the same runs is then left out.
    """
    found, skipped = candidates.find(paths, given)
    if not found:
        first = [str(error) for error in skipped[:1]]
        raise UserError(
            paths[0], "; ".join(["no perflog and no run report of ReFrame to import", *first])
        )
    done = Import(skipped=skipped)
    there = _there(perflogs, system)
    found.sort(key=lambda file: formats.kind(file.path, given) == formats.REPORT)
    for file in found:
        file.content = candidates.read(file.path, system, given)
    _refuse_unknown(given, [file.content for file in found])
    for file in found:
        _check_name(file)
        if not file.content.figures and file.content.refused:
            _skip(file, paths, skipped)
            continue
        target = perflogs / system / formats.FOLDER / file.name
        state = _state(file, target, given)
        overlap = _overlap(file.content, there) if state is State.NEW else None
        if overlap:
            done.overlaps[file.path] = overlap
            state = State.DOUBLE
        done.done.append((file, state))
        if state in (State.NEW, State.GROWN):
            there[target] = file.content
    return done


def _refuse_unknown(given: Options, contents: Iterable[Content]) -> None:
    """Raises UserError for a system that no file names."""
    files_ = [content.file for content in contents]
    known = set[str]().union(*(file.systems | file.others for file in files_))
    if unknown := sorted(set(given.systems) - known):
        raise UserError("--only-system", f"no file has the system '{unknown[0]}'", sorted(known))


def keep(done: Import, system: str, given: Options, perflogs: Path) -> None:
    """Copy what is new or has grown. Raises OSError; a repeated import then copies the rest."""
    for file in done.of(State.NEW, State.GROWN):
        target = perflogs / system / formats.FOLDER / file.name
        if given != import_options.DEFAULT:
            files.write(import_options.file_of(target), given.dump(), below=perflogs)
        files.write(target, source.content(file.path), below=perflogs)


def _there(perflogs: Path, system: str) -> dict[Path, Content]:
    """What was imported before. The history names files of it that cannot be read."""
    found: dict[Path, Content] = {}
    for path in formats.files(perflogs, system):
        try:
            found[path] = candidates.read(path, system, import_options.of(path))
        except UserError:
            continue
    return found


def _skip(file: Candidate, paths: Sequence[Path], skipped: list[UserError]) -> None:
    """Skip a file of which no line can be read; raise the reason if somebody named it."""
    first = file.content.refused[0]
    error = UserError(file.path, f"no line of it can be read; the first: {first}")
    if file.path in paths:
        raise error
    skipped.append(error)


def _check_name(file: Candidate) -> None:
    if harmless(file.name) != file.name or file.name.endswith(_ENDINGS):
        raise UserError(
            file.path,
            "a name that imported files cannot have",
            hint=f"Rename it; the name must not end in {', '.join(_ENDINGS)}",
        )


def _state(file: Candidate, target: Path, given: Options) -> State:
    """The state of a file, without a look at other files. Raises UserError."""
    if not file.content.figures:
        return State.EMPTY
    if not target.exists():
        return State.NEW
    before = import_options.of(target)
    if before != given:
        raise UserError(
            file.path,
            f"it is there already with {before}",
            hint=f"Use {before}, or remove {target}",
        )
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


def _continues(path: Path, target: Path) -> bool:
    """Whether a file begins with the whole imported copy: ReFrame has appended lines."""
    with source.stream(path) as new, source.stream(target) as old:
        while before := old.read(1 << 20):
            if new.read(len(before)) != before:
                return False
    return True
