"""siteproof import: Import published results, or perflogs of plain ReFrame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from siteproof import files, sites
from siteproof.checks import centre_settings
from siteproof.cli.shared import (
    applies,
    print_answer,
    print_text,
    print_unapplied,
    repeated,
    text_option,
)
from siteproof.compare.published import results
from siteproof.errors import ExitCode, UserError
from siteproof.history.foreign import copying
from siteproof.history.foreign.copying import Content, State
from siteproof.history.foreign.figures import DEFAULT, LeftOut, Options
from siteproof.history.foreign.layouts import PRESETS
from siteproof.sites.site_tables import Published
from siteproof.units import count
from siteproof.wording.verdicts import own

MAX_REFUSED = 20  # lines
_CSV = ".csv"
_MAX_NAMES = 3  # files with the same values
_KEPT = (State.NEW, State.GROWN, State.SAME)


@dataclass(frozen=True)
class Done:
    """The answer of an import, whether all was read, and whether --apply has anything to do."""

    answer: str
    is_whole: bool = True
    is_new: bool = True


@click.command("import")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@text_option(
    "--system",
    "NAME",
    "The system that was measured. Of a CSV, only its values are imported; without "
    "PATH, its published.csv.",
)
@text_option(
    "--zone",
    "ZONE",
    "Time zone of ReFrame's times without a zone, such as Europe/Zurich; without it, UTC.",
)
@text_option(
    "--format format_",
    "FORMAT",
    "Format of ReFrame's perflogs without a line of names: "
    f"{', '.join(PRESETS)}, the string in its settings, or the PATH of these: .py (which is run), "
    ".yaml or .json.",
)
@repeated(
    "--only-system only_systems",
    "NAME",
    "Of ReFrame's files, import only lines that name this system",
)
@repeated(
    "--only-test only_tests",
    "PATTERN",
    "Of ReFrame's files, import only tests of this name, with * and ?",
)
@applies("Import")
@click.pass_context
def import_(
    context: click.Context,
    paths: Sequence[Path],
    system: str,
    zone: str,
    format_: str,
    only_systems: tuple[str, ...],
    only_tests: tuple[str, ...],
    apply: bool,
) -> None:
    """Import published or older results, or perflogs of plain ReFrame.

    PATH is a CSV file (NAME.csv), whose columns 'siteproof sites --keys' explains; or a perflog or
    a run report of ReFrame, or its results.db, whose sessions are run reports; or a folder of
    these. A perflog begins with a line of names, as ReFrame 4 writes it; of another one, --format
    names the columns. Without PATH, the published.csv of the system is imported. A file with a
    mistake, or without any readable line, changes nothing; in a folder it is named, and the others
    are imported. Imported values appear in 'siteproof compare', 'history' and 'published'. They
    cannot meet a criterion, but can show that one is missed.

    Exit code: 0 all was read; 3 a file or a line of ReFrame's cannot be read; 2 wrong usage or
    input, or nothing to import.

    \b
    siteproof import --system jetstream-tacc --apply
    siteproof import older-results.csv
    siteproof import ~/reframe/perflogs --system jetstream-tacc --zone America/Chicago
    siteproof import ~/2021/perflogs --system jetstream-tacc --format 3.x
    siteproof import ~/perflogs --system jetstream-tacc --only-system tacc --only-test 'Stream*'
    """
    if not paths:
        paths, system = _own(system)
    options = Options(zone, _format(format_), only_systems, only_tests)
    done = _brought(paths, system, options, apply)
    if apply:
        print_answer(done.answer, own(system, "history") if system else "siteproof history")
    elif done.is_new:
        print_unapplied(context, done.answer)
    else:
        print_answer(f"{done.answer}; there is nothing to change")
    if not done.is_whole:
        raise SystemExit(ExitCode.INCOMPLETE)


def _format(given: str) -> str:
    """The format itself, where a settings file of ReFrame is given. Raises UserError."""
    if Path(given).suffix not in (*centre_settings.CODE, *centre_settings.DATA) or "%(" in given:
        return given
    return centre_settings.format_in(Path(given))


def _own(system: str) -> tuple[list[Path], str]:
    """What the site publishes, and its name. Raises UserError."""
    site = sites.load(system or sites.recognise())
    path = site.folder / Published.FILE
    if not path.exists():
        what = f"site {site.name} has no {Published.FILE}"
        raise UserError("import", what, hint="Give the PATH of a file")
    return [path], site.name


def _brought(paths: Sequence[Path], system: str, given: Options, apply: bool) -> Done:
    """What was done with files of one kind, or would be. Raises UserError."""
    for path in paths:
        if not path.exists():
            raise UserError(path, "no such file or folder")
    logs = [path for path in paths if path.is_dir() or (path.is_file() and path.suffix != _CSV)]
    if logs and len(logs) < len(paths):
        what = "CSV files and files of ReFrame together"
        raise UserError("import", what, hint="Import one kind at a time")
    if logs:
        return _logs(logs, system, given, apply)
    if given != DEFAULT:
        raise UserError(str(given), "a CSV file has no tests of ReFrame", hint="Remove the option")
    *before, answer = [_csv(path, system, apply) for path in paths]
    print_text(*before)
    return Done(answer)


def _csv(file: Path, system: str, apply: bool) -> str:
    """What was done with a file, or would be."""
    rows = results.read_published(file, system)
    files.must_exist()
    if not apply:
        return f"{file.name}: {count(len(rows), 'value')}"
    figures, done = results.keep(file, rows.values(), files.perflogs())
    for path, state in done.items():
        if state is not results.State.SAME:
            click.echo(f"{state}: {path.relative_to(files.folder())}")
    made = Counter(done.values())
    shown = ", ".join(f"{made[state]} {state}" for state in results.MADE if made[state])
    return f"{file.name}: {count(figures, 'value')}; files of samples: {shown}"


# ---- of ReFrame


def _logs(paths: Sequence[Path], system: str, given: Options, apply: bool) -> Done:
    """What was done with files of ReFrame, or would be. Raises UserError."""
    if system not in sites.names():
        what = f"unknown system '{system}'" if system else "required for files of ReFrame"
        raise UserError("--system", what, sites.names())
    files.must_exist()
    done = copying.plan(paths, system, given, files.perflogs())
    if apply:
        copying.keep(done, system, given, files.perflogs())
    print_text(*map(str, done.skipped))
    print_text(*(f"{found.state}: {found.file.name}{_content(found)}" for found in done.done))
    _remarks(done.of(*_KEPT), system)
    left_out = sum((found.file.left_out for found in done.done), Counter[LeftOut]())
    for which in LeftOut:
        if left_out[which]:
            click.echo(f"not imported: {count(left_out[which], 'line')} {which}")
    return Done(_total(done), done.is_whole, bool(done.of(State.NEW, State.GROWN)))


def _content(found: Content) -> str:
    if found.state is State.EMPTY:
        return ""
    if found.state is not State.DOUBLE:
        return f": {_figures([found])}"
    known, names = found.overlap
    which, more = ", ".join(names[:_MAX_NAMES]), len(names) - _MAX_NAMES
    if more > 0:
        which += f" and {count(more, 'more file')}"
    return f": {known} of its {len(found.keys)} values were imported before, from {which}"


def _figures(kept: Sequence[Content]) -> str:
    figures = sum(found.figures for found in kept)
    series = set().union(*(found.series for found in kept))
    days = set().union(*(found.days for found in kept))
    return f"{count(figures, 'value')} of {len(series)} series, {min(days)} to {max(days)}"


def _remarks(kept: Sequence[Content], system: str) -> None:
    """What a person should know of the files that are kept."""
    for name in sorted({name for found in kept for name in found.file.systems} - {system}):
        click.echo(f"system {name} of the files is imported as {system}; the conditions name it")
    notes = Counter(note for found in kept for note in found.file.notes)
    print_text(*(f"{note}, in {count(number, 'file')}" for note, number in sorted(notes.items())))
    refused = [line for found in kept for line in found.file.refused][:MAX_REFUSED]
    print_text(*refused, title="refused: ")
    if more := _refused(kept) - len(refused):
        click.echo(f"refused: {count(more, 'more line')}")


def _total(done: copying.Import) -> str:
    kept = done.of(*_KEPT)
    words = ", ".join(f"{len(done.of(state))} {state}" for state in State if done.of(state))
    if not kept:
        return f"no value; files: {words}"
    return f"{_figures(kept)}; {count(_refused(kept), 'line')} refused; files: {words}"


def _refused(kept: Sequence[Content]) -> int:
    return sum(found.file.refused_count for found in kept)
