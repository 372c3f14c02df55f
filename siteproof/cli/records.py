"""Records for narrow terminals, files and mail: never a cut value or name, at any width."""

from __future__ import annotations

import csv
import itertools
import json
import shlex
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import click
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from siteproof.cli.shared import console, given, print_text
from siteproof.errors import harmless
from siteproof.units import UNITS
from siteproof.wording.looks import look

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
