"""What several subcommands share: options, --output FILE, progress on a terminal, listings."""

from __future__ import annotations

import csv
import itertools
import json
import os
import shlex
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from siteproof import files, sites
from siteproof.errors import UserError, UserErrors, harmless, hint
from siteproof.record.sessions import Sessions
from siteproof.sites import Site, catalogue
from siteproof.sweeps import reading
from siteproof.units import UNITS
from siteproof.wording.findings import look

SET_ASIDE = "set aside, not collected: "  # how a line on a broken stage directory begins
OPEN_TO_ALL = "everybody may write to it and remove results; 'chmod o-w' prevents that"
SLOW = 1.0  # seconds before progress is printed
WIDTH = 80  # columns where the output is no terminal, and none are given
MAX_FILES_NAMED = 50  # files that were left out


@contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Gives what shows `word: 40 % of 120`; nothing without a terminal, and no trace at the end."""
    from rich.progress import Progress, TextColumn  # imported only if needed, as it takes a while

    shown = TextColumn("{task.description}: {task.percentage:3.0f} % of {task.total}")
    screen, start = Console(stderr=True), time.monotonic()
    bars = Progress(shown, console=screen, transient=True, redirect_stdout=False)
    bars.disable = not screen.is_terminal
    with bars:
        task = bars.add_task(label, visible=False)

        def show(done: int, of: int) -> None:
            slow = time.monotonic() - start > SLOW
            bars.update(task, completed=done, total=of, visible=slow)

        yield show


def console() -> Console:
    """The terminal; where the output goes to a file or a pipe, as wide as COLUMNS."""
    screen = Console()
    if screen.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        return screen
    return Console(width=WIDTH)


def print_text(*lines: str, title: str = "", err: bool = False) -> None:
    """Lines as they are, without control characters that a tool or a node wrote.

    title: what each line begins with.
    """
    for line in lines:
        click.echo(harmless(f"{title}{line}"), err=err)


def print_some(
    title: str,
    lines: Sequence[str],
    most: int,
    option: str = "--json",
    *,
    show: Callable[..., None] = print_text,
) -> None:
    """The first lines of a list, how many more there are, and the option that prints them."""
    show(*lines[:most], title=title)
    if len(lines) > most:
        show(f"{title}{len(lines) - most} more, see {option}")


Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _completer(names: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Completion of a word by these names; a site with a mistake completes nothing."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        try:
            return [name for name in names(ctx) if name.startswith(incomplete)]
        except (UserError, UserErrors, OSError):
            return []

    return complete


def _site(ctx: click.Context) -> Site:
    return sites.load(ctx.params.get("system") or sites.recognise(), whole=True)


def _subjects(ctx: click.Context) -> list[str]:
    site = _site(ctx)
    return [*site.criteria, *site.system.inventory]


by_system = _completer(lambda _: sites.names())
by_system_to_copy = _completer(lambda _: sites.names_to_copy())
by_metric = _completer(lambda _: catalogue.read()[0])
by_pair_metric = _completer(
    lambda _: (name for name, one in catalogue.read()[0].items() if one.of_pairs)
)
by_criterion = _completer(lambda ctx: _site(ctx).criteria)
by_node = _completer(lambda ctx: _site(ctx).system.inventory)
by_subject = _completer(_subjects)
by_sweep = _completer(lambda _: reading.examine()[0])
by_environment = _completer(lambda ctx: _site(ctx).system.environments)
by_mode = _completer(lambda _: catalogue.MODES)
by_service = _completer(lambda ctx: _site(ctx).system.probes)


def text_option(names: str, metavar: str, about: str, **keys: Any) -> Callable[..., Any]:
    """An option that takes a text, empty without it. names: `--by`, or `--by who`: its variable."""
    return click.option(*names.split(), metavar=metavar, help=about, **{"default": "", **keys})


def flag(names: str, about: str) -> Callable[..., Any]:
    """An option without a value. names: `--all`, or `--all whole`: its variable."""
    return click.option(*names.split(), is_flag=True, help=about)


def applies(about: str) -> Callable[..., Any]:
    """--apply: a command without it shows what it would do, and changes nothing."""
    return flag("--apply", f"{about}; without it, only show what would be done.")


def author(about: str) -> Callable[..., Any]:
    """--by: who states what is recorded."""
    return text_option("--by", "NAME", f"{about}; without it, you.")


def given(context: click.Context, without: Collection[str] = ()) -> list[tuple[str, ...]]:
    """The words of the command line, each option with its value. without: those left out."""
    found: list[tuple[str, ...]] = []
    for one in context.command.params:
        name = one.name or ""
        source = context.get_parameter_source(name)
        if source is ParameterSource.COMMANDLINE and name not in without:
            found += _as_given(one, context.params[name])
    return found


def _as_given(one: click.Parameter, value: Any) -> Iterator[tuple[str, ...]]:
    """An option or argument as it is given on a command line."""
    option = one.opts[:1] if isinstance(one, click.Option) else []
    for each in value if isinstance(value, tuple) else [value]:
        yield (*option,) if each is True else (*option, str(each))


def repeated(names: str, metavar: str, about: str) -> Callable[..., Any]:
    """An option that may be given several times."""
    about = f"{about}; may be repeated."
    return click.option(*names.split(), multiple=True, metavar=metavar, help=about)


def metric_option(about: str) -> Callable[..., Any]:
    """--metric: of which metric."""
    return text_option("--metric", "METRIC", about, shell_complete=by_metric)


which_system = text_option(
    "--system",
    "NAME",
    "The system; without it, the system that this machine belongs to.",
    shell_complete=by_system,
)
_SINCE = text_option(
    "--since", "TIME", "Only sessions since TIME: 12h, 7d, 2026-11-21T18:00 (UTC)."
)
_CAMPAIGN = text_option(
    "--campaign",
    "NAME",
    "Only sessions of this campaign; NAME@DAY if the name was used again later.",
)
_AS_OF = text_option(
    "--as-of", "TIME", "Answer with what was known at TIME: 2026-11-21T18:00 (UTC), 7d."
)


def which_samples(command: Callable[..., Any]) -> Callable[..., Any]:
    """--system, --since and --campaign: which samples are meant."""
    for option in (_CAMPAIGN, _SINCE, which_system):
        command = option(command)
    return command


def which_answers(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and --as-of: where the newest answer counts, and its age."""
    return which_samples(_AS_OF(command))


plain_option = click.option(
    "--plain",
    "form",
    flag_value="plain",
    help="For programs and spreadsheets: a line a row, cells separated by tabs.",
)


ROWS = "a list of JSON objects, with the columns of --plain as keys"


def json_option(answer: type | None = None, about: str = ROWS) -> Callable[..., Any]:
    """--json as `form`: of an answer that 'siteproof export schema' explains, else of `about`."""

    def option(command: Any) -> Any:
        of_schema = f"one JSON object; 'siteproof export schema {command.__name__}' explains it"
        command.answer = answer
        text = f"For programs: {of_schema if answer else about}."
        return click.option("--json", "form", flag_value="json", default="", help=text)(command)

    return option


def forms(answer: type | None = None, about: str = ROWS) -> Callable[..., Any]:
    """--json, as above, and --plain: the form of the answer, which is text without both."""
    return lambda command: json_option(answer, about)(plain_option(command))


def site_of(system: str, *, whole: bool = False) -> Site:
    """The site of a system, or of this machine, whose data exist. Raises UserError.

    whole: one that consists of other systems will do, too.
    """
    site = sites.load(system or sites.recognise(), whole=whole)
    files.must_exist()
    return site


def must_give(command: str, given: Mapping[str, str]) -> None:
    """Raises UserError for words of a command that are missing, or only blanks."""
    if missing := [name for name, text in given.items() if not text.strip()]:
        what = f"missing: {', '.join(missing)}"
        raise UserError(command, what, hint=f"'siteproof {command} --help' shows what is allowed")


def refuse_unknown(where: str, kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raises UserError for a name that is not known, with the one that it resembles."""
    for name in names:
        if name not in known:
            raise UserError(where, f"no {kind} '{name}'{hint(name, known)}", known)


def print_left_out(*each: Sessions | None, aside: bool = True) -> None:
    """Print the files that were left out, and the folders to which everybody may write.

    aside: print the stage directories that could not be collected, too.
    """
    for sessions in filter(None, each):
        left_out = sessions.left_out
        shown = map(str, left_out[:MAX_FILES_NAMED])
        print_text(*shown, title="siteproof: left out: ", err=True)
        if len(left_out) > MAX_FILES_NAMED:
            more = len(left_out) - MAX_FILES_NAMED
            click.echo(f"siteproof: left out: {more} more files", err=True)
        for path in sessions.open_to_all:
            click.echo(f"siteproof: warning: {path}: {OPEN_TO_ALL}", err=True)
        stages = sessions.set_aside if aside else ()
        print_text(*stages, title=f"siteproof: {SET_ASIDE}", err=True)


def refuse(file: Path) -> None:
    """A file that could not be written is refused before the work is done. Raises UserError."""
    target = file.resolve()
    if target.is_dir():
        raise UserError("--output", f"{file} is a folder", "a file")
    if not target.parent.is_dir():
        what = f"folder {target.parent} does not exist"
        raise UserError("--output", what, "a file in an existing folder")


def refuse_strangers(top: Path) -> None:
    """Refuse a folder in which others could replace what is made in it. Raises UserError."""
    if not top.exists():
        return
    found, user = top.stat(), os.geteuid()
    is_shared = bool(found.st_mode & stat.S_IWGRP) and user != 0  # by a group of operators
    if found.st_mode & stat.S_IWOTH:
        raise UserError(top, "everybody may write to it", hint="Run 'chmod o-w' on it")
    if found.st_uid not in (0, user) and not is_shared:
        owner = files.name_of(found.st_uid)
        raise UserError(top, f"belongs to {owner}", hint=f"Choose another folder, or be {owner}")


def write(file: Path, data: bytes) -> None:
    """Whole or not at all. A device or pipe gets it as it is; a link stays one. Raises OSError."""
    target = file.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(data)
    else:
        files.write(target, data, below=target.parent)


# ---- Records for narrow terminals, files and mail: never a cut value or name, at any width.

GAP = "  "
MUCH = 10_000  # columns in which any table has room
INDENT = 6  # of the lines below the first
MAX_ALIGNED = 30  # a longer cell does not widen its column
STYLES = {
    "bad": "bold red",
    "warn": "bold yellow",
    "open": "yellow",
    "good": "green",
    "none": "dim",
}


@dataclass(frozen=True)
class Entry:
    """Its first line in cells, and phrases for the lines below.

    style: of that line, as rich names it; without one, its first cell has that of its state.
    """

    head: Sequence[str]
    phrases: Sequence[str] = ()
    style: str = ""


def print_records(records: Sequence[Entry]) -> None:
    """The records, their first cells in columns."""
    screen = console()
    widths: dict[int, int] = {}
    for record in records:
        for at, text in enumerate(record.head):
            if len(text) <= MAX_ALIGNED:
                widths[at] = max(widths.get(at, 0), len(text))
    for record in records:
        for line in _lines(record, widths, screen.width):
            screen.print(line, soft_wrap=True, highlight=False)


def table(
    columns: Iterable[str],
    rows: Iterable[Sequence[object]],
    title: str = "",
    right: Collection[str] = (),
    whole: Collection[str] = (),
) -> Table:
    """A table of texts as they are.

    right: the columns that end where numbers do. whole: those that are never broken.
    """
    named = Text(title) if title else None
    made = Table(title=named, title_justify="left", box=None, pad_edge=False)
    for name in columns:
        side: JustifyMethod = "right" if name in right else "left"
        made.add_column(Text(name), overflow="fold", justify=side, no_wrap=name in whole)
    for row in rows:
        made.add_row(*map(_styled, row))
    return made


def style_of(text: str) -> str:
    """The style of a text that is a state; empty for any other."""
    return STYLES.get(look(text), "")


def _styled(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell), style_of(str(cell)))


def print_table(table: Table) -> None:
    """A table; a record a row where that is too wide."""
    screen = console()
    if Console(width=MUCH).measure(table).maximum <= screen.width:
        screen.print(table)
        return
    if table.title:
        print_wrapped(_text(table.title))
    names = [_text(column.header) for column in table.columns]
    columns = [map(_text, column.cells) for column in table.columns]
    print_records([_row(names, row) for row in zip(*columns, strict=True)])


def _row(names: Sequence[str], cells: Sequence[str]) -> Entry:
    """A row of a table as a record: name and state, the other cells with their columns' names."""
    state = len(cells) > 2 and cells[1][:1].isalpha() and len(cells[1]) <= MAX_ALIGNED
    first = 2 if state else 1
    named = zip(names[first:], cells[first:], strict=True)
    phrases = [f"{name} {cell}" for name, cell in named if cell not in ("", "-")]
    return Entry(cells[:first], phrases, "bold")


def _text(cell: object) -> str:
    """A cell of a table as it is printed."""
    text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    return ", ".join(text.plain.splitlines())


def print_plain(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A header and a line a row, separated by tabs; no cell holds a tab or a line's end."""
    for row in (columns, *rows):
        texts = ("" if cell is None else harmless(str(cell)) for cell in row)
        click.echo("\t".join(" ".join(text.split()) for text in texts))


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[object]], form: str) -> None:
    """Rows for programs, one by one: as --json, --csv or --plain prints them."""
    if form == "plain":
        print_plain(columns, rows)
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(itertools.chain([columns], rows))
    else:
        sys.stdout.write("[")
        for number, row in enumerate(rows):
            record = json.dumps(dict(zip(columns, row, strict=True)), default=str)
            sys.stdout.write(f"{',' if number else ''}\n{record}")
        sys.stdout.write("\n]\n")


def print_wrapped(*lines: str, title: str = "", err: bool = False) -> None:
    """Long lines in lines of the terminal's width, those after the first indented.

    title: what each of them begins with.
    """
    for line in lines:
        text, width = harmless(f"{title}{line}"), console().width
        first = _broken(text, width)[0]
        rest = text[len(first) :].strip()
        print_text(first, *wrapped([rest] if rest else [], width), err=err)


def print_answer(text: str, command: str = "", err: bool = False) -> None:
    """The last lines: the answer, wrapped, and the next command, never broken, as it is to copy."""
    text, following = harmless(text), f"next: {harmless(command)}" if command else ""
    in_one = "; ".join(filter(None, (text, following)))
    if len(in_one) <= console().width:
        click.echo(in_one, err=err)
        return
    if text:
        print_wrapped(text, err=err)
    if following:
        click.echo(following, err=err)


def print_unapplied(context: click.Context, answer: str, err: bool = False) -> None:
    """The last lines of a command that acts with --apply only, called without it."""
    name = context.command_path.split()[1:]
    command = ["siteproof", *name, *itertools.chain(*given(context)), "--apply"]
    print_answer(f"{answer}; nothing was changed", shlex.join(command), err)


def _lines(record: Entry, widths: dict[int, int], width: int) -> list[Text]:
    """The lines of a record."""
    lines = [Text()]
    for at, text in enumerate(record.head):
        style = record.style or ("" if at else style_of(text.partition(",")[0]))
        for part in _broken(harmless(text), max(width - INDENT, 20)):
            if lines[-1].cell_len + len(part) > width and lines[-1].plain.strip():
                lines.append(Text(" " * INDENT))
            lines[-1].append(part, style=style)
        lines[-1].append(" " * max(widths.get(at, 0) - len(text), 0) + GAP)
    lines += map(Text, wrapped(record.phrases, width))
    for line in lines:
        line.rstrip()
    return lines


def wrapped(phrases: Iterable[str], width: int) -> list[str]:
    """Phrases in indented lines; one too long for a line is broken after a comma or at a blank."""
    lines: list[str] = []
    room = max(width - INDENT, 20)
    for phrase in phrases:
        if lines and len(lines[-1]) + len(GAP) + len(phrase) <= room:
            lines[-1] += GAP + phrase
            continue
        lines += _broken(harmless(phrase), room)
    return [" " * INDENT + line for line in lines]


def _broken(phrase: str, room: int) -> list[str]:
    """A phrase in lines of this length; a word with no comma stays whole."""
    lines: list[str] = [""]
    for piece in _pieces(phrase):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > room:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _pieces(phrase: str) -> list[str]:
    """Words with the blank that follows, and in long words the parts that end with a comma.

    A number and its unit are one word.
    """
    pieces: list[str] = []
    for text in phrase.split(" "):
        if pieces and text.rstrip(",;:)") in UNITS and pieces[-1].strip(" (")[-1:].isdigit():
            pieces[-1] += f"{text} "
            continue
        parts = text.split(",") if len(text) > MAX_ALIGNED else [text]
        pieces += [f"{part}," for part in parts[:-1]]
        pieces.append(f"{parts[-1]} ")
    return pieces
