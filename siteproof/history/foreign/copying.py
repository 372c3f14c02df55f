"""Import of ReFrame's perflogs and run reports: each is copied unchanged, and only once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError, harmless
from siteproof.history.foreign import figures, formats, layouts
from siteproof.history.foreign.figures import File, Options, content
from siteproof.units import count

_ENDINGS = (".jsonl", figures.ENDING, ".tmp")  # of names that other files have
_OF_REFRAME = (".log", ".json", layouts.NAME)  # in its names: Test.log.h0
_MOSTLY = 0.5  # a file with a larger share of its values in other files is not imported
_PERIOD = 900  # s; the second within it does not depend on the time zone


class State(StrEnum):
    """What an import does with a file; the value is what the command prints."""

    NEW = "new"
    GROWN = "grown"
    SAME = "as it was"
    DOUBLE = "left out"
    EMPTY = "without a figure"


@dataclass
class Content:
    """What a file holds. figures: how many, with failed ones. days: in UTC.

    keys: one for each value, by which the same value is recognised in another file: metric, value
    and job; without a job the second within a quarter of an hour.
    overlap: how many values are there already, and the names of the files with them.
    """

    file: File
    state: State = State.EMPTY
    figures: int = 0
    days: set[str] = field(default_factory=set)
    series: set[int] = field(default_factory=set)
    keys: set[int] = field(default_factory=set)
    overlap: tuple[int, Sequence[str]] = (0, ())


@dataclass
class Import:
    """What an import did, or would do. done: each file.

    skipped: why others of a folder are not imported. unread: how many of these are named as ReFrame
    names its files.
    """

    done: list[Content] = field(default_factory=list)
    skipped: list[UserError] = field(default_factory=list)
    unread: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing of ReFrame's was left out because it cannot be read."""
        return not self.unread and not any(found.file.refused_count for found in self.done)

    def of(self, *states: State) -> list[Content]:
        """The files in one of these states."""
        return [found for found in self.done if found.state in states]


def plan(paths: Sequence[Path], system: str, given: Options, perflogs: Path) -> Import:
    """What an import of these files would do. Raises UserError if nothing may be imported.

    A named file of which no line can be read stops the import; one within a folder is skipped.
    Perflogs come first: a run report of the same runs is then left out.
    """
    done = _find(paths, system, given)
    if not done.done:
        first = [str(error) for error in done.skipped[:1]]
        raise UserError(
            paths[0], "; ".join(["no perflog and no run report of ReFrame to import", *first])
        )
    _refuse_unknown(given, [found.file for found in done.done])
    there = _there(perflogs, system)
    for found in done.done:
        target = perflogs / system / formats.FOLDER / found.file.name
        found.state = _state(found, target, given)
        if found.state is State.NEW and (overlap := _overlap(found.keys, there)):
            found.state, found.overlap = State.DOUBLE, overlap
        if found.state in (State.NEW, State.GROWN):
            there[target] = found.keys
    return done


def keep(done: Import, system: str, given: Options, perflogs: Path) -> None:
    """Copy what is new or has grown. Raises OSError; a repeated import then copies the rest."""
    for found in done.of(State.NEW, State.GROWN):
        target = perflogs / system / formats.FOLDER / found.file.name
        if given != figures.DEFAULT:
            files.write(figures.file_of(target), given.dump(), below=perflogs)
        files.write(target, found.file.content(), below=perflogs)


def _find(paths: Sequence[Path], system: str, given: Options) -> Import:
    """The files of ReFrame, and why others are skipped. Raises UserError.

    A file keeps its name, and one within a folder its name below that.
    """
    found: dict[str, Content] = {}
    done = Import()
    for path in paths:
        others: list[UserError] = []
        for file in _files(path):
            file.site, file.options = system, given
            one = _read_or_skip(file, path, done, others)
            if one and found.setdefault(file.name, one).file.path != file.path:
                raise UserError(
                    file.path,
                    f"another {file.name} is to be imported, too",
                    hint="Import one of them at a time, from a folder above",
                )
        done.skipped += _together(path, others)
    done.done = sorted(found.values(), key=lambda one: one.file.is_report)
    return done


def _read_or_skip(file: File, named: Path, done: Import, others: list[UserError]) -> Content | None:
    """What a file holds; None if it is skipped, with the reason added. Raises UserError.

    named: the path that was given. others: the reasons of files that are none of ReFrame's.
    """
    try:
        return _read(file)
    except UserError as error:
        if file.path == named and not file.session:
            raise
        if file.session:
            error.where += f", session {file.session}"
        if file.session or any(end in file.path.name for end in _OF_REFRAME):
            done.skipped.append(error)
            done.unread += 1
        else:
            others.append(error)
        return None


def _together(folder: Path, others: Sequence[UserError]) -> list[UserError]:
    """Why files of a folder that are none of ReFrame's are skipped, in one line."""
    what = f"skipped {count(len(others), 'other file')}: {layouts.NEITHER}"
    return [UserError(folder, what, error.allowed) for error in others[:1]]


def _files(path: Path) -> Iterator[File]:
    """A file, or those in a folder, with the names that they get.

    Of a results database each session is one. Links within folders are skipped, such as ReFrame's
    latest.json: the files that they lead to are found by themselves.
    """
    if not path.is_dir():
        yield from _sessions(path, path.name)
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path)
        is_hidden = any(part.startswith(".") for part in name.parts)
        if not is_hidden and not file.is_symlink() and file.is_file():
            yield from _sessions(file, str(name))


def _sessions(path: Path, name: str) -> Iterator[File]:
    """The sessions of a results database; another file, or a database with a mistake."""
    try:
        found = layouts.sessions(path)
    except (OSError, UserError):
        found = []
    if not found:
        yield File(path, name)
    for session in found:
        yield File(path, f"{name}/{session}.json", session=session)


def _read(file: File) -> Content:
    """What a file holds. Raises UserError if no line of it can be read, or for its name."""
    found = Content(file)
    for run, samples, _ in formats.rows_of(file):
        found.days.add(f"{run['time']:%Y-%m-%d}")
        found.figures += len(samples)
        found.series |= {sample["series"] for sample in samples}
        moment = run["job"] or run["time"].replace(microsecond=0).timestamp() % _PERIOD
        found.keys |= {hash((s["metric"], s["value"], moment)) for s in samples if s["digits"]}
    if not found.figures and file.refused:
        raise UserError(file.path, f"no line of it can be read; the first: {file.refused[0]}")
    if harmless(file.name) != file.name or file.name.endswith(_ENDINGS):
        raise UserError(
            file.path,
            "a name that imported files cannot have",
            hint=f"Rename it; the name must not end in {', '.join(_ENDINGS)}",
        )
    return found


def _refuse_unknown(given: Options, found: Sequence[File]) -> None:
    """Raises UserError for a system that no file names."""
    known = set[str]().union(*(file.systems | file.others for file in found))
    if unknown := sorted(set(given.systems) - known):
        raise UserError("--only-system", f"no file has the system '{unknown[0]}'", sorted(known))


def _there(perflogs: Path, system: str) -> dict[Path, set[int]]:
    """The keys of what was imported before. The history names files that cannot be read."""
    found: dict[Path, set[int]] = {}
    for path in formats.imported(perflogs, system):
        try:
            file = File(path, path.name, site=system, options=figures.of(path))
            found[path] = _read(file).keys
        except UserError:
            continue
    return found


def _state(found: Content, target: Path, given: Options) -> State:
    """The state of a file, without a look at other files. Raises UserError."""
    path = found.file.path
    if not found.figures:
        return State.EMPTY
    if not target.exists():
        return State.NEW
    before = figures.of(target)
    if before != given:
        raise UserError(
            path, f"it is there already with {before}", hint=f"Use {before}, or remove {target}"
        )
    new, old = found.file.content(), content(target)
    if new == old:
        return State.SAME
    if new.startswith(old):  # ReFrame has appended lines
        return State.GROWN
    raise UserError(
        path,
        "a file of that name and another content is there already",
        hint=f"Use another name, or remove {target}",
    )


def _overlap(new: set[int], there: dict[Path, set[int]]) -> tuple[int, Sequence[str]] | None:
    """The overlap if most values of a file are in others, or most of another's are in it."""
    common = {path: new & keys for path, keys in there.items()}
    is_covered = any(len(keys) > _MOSTLY * len(there[path]) for path, keys in common.items())
    known = set().union(*common.values())
    if not is_covered and len(known) <= _MOSTLY * len(new):
        return None
    return len(known), sorted(path.name for path, keys in common.items() if keys)
