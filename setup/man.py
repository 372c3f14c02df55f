"""The man pages: siteproof(1) and one for each command, made of what click knows of it.

setup/man.py [DIR]    into DIR; else into .venv/share/man/man1, where man finds them after
                      '. ./activate'
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from siteproof import __version__, cli

PLAIN = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
)
OPTION = re.compile(r"(?:\\-){1,2}[a-z]\w*(?:\\-\w+)*")
CODE = re.compile(r"Exit code:? ")
KEPT = "\b\n"  # click's mark of a block whose lines are kept: the examples


def commands(
    command: click.Command, words: list[str], parent: click.Context | None = None
) -> Iterator[tuple[list[str], click.Context]]:
    """A command and those below it: the words that call it, and its context."""
    context = click.Context(
        command, info_name=words[-1], parent=parent, help_option_names=["-h", "--help"]
    )
    yield words, context
    for name, below in _below(context).items():
        yield from commands(below, [*words, name], context)


def page(words: list[str], context: click.Context, day: str) -> str:
    """The man page of a command, in roff; day: as 2026-11-21."""
    command, below = context.command, _below(context)
    prose, codes, examples = _parts(command)
    title, usage = "-".join(words), _plain(" ".join(command.collect_usage_pieces(context)))
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    others = {"siteproof", "-".join(words[:-1]), *(f"{title}-{name}" for name in below)}
    lines = [
        f'.TH {_plain(title.upper())} 1 {day} "siteproof {__version__}" Siteproof',
        ".ad l",
        *(".SH NAME", rf"{_plain(title)} \- {_plain(_sentence(words, command)).rstrip('.')}"),
        *(".SH SYNOPSIS", rf"\fB{_plain(' '.join(words))}\fR " + usage.replace("|", r"|\:")),
        *(".SH DESCRIPTION", "\n.PP\n".join(map(_marked, prose))),
        *_items("OPTIONS", [one.get_help_record(context) or ("", "") for one in options]),
        *_items(
            "COMMANDS", [(name, _sentence([*words, name], one)) for name, one in below.items()]
        ),
    ]
    if codes:
        lines += [".SH EXIT STATUS", "\n.br\n".join(map(_marked, codes))]
    if examples:
        lines += [".SH EXAMPLES", ".EX", *map(_plain, examples), ".EE"]
    if see := sorted(others - {"", title}):
        lines += [".SH SEE ALSO", ",\n".join(rf"\%\fB{_plain(name)}\fR(1)" for name in see)]
    return "\n".join(lines) + "\n"


def write(folder: Path) -> int:
    """Write every page, and remove those of commands that are gone; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("siteproof*.1"):
        old.unlink()
    day = time.strftime("%F", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    found = list(commands(cli.group, ["siteproof"]))
    for words, context in found:
        (folder / f"{'-'.join(words)}.1").write_text(page(words, context, day), encoding="utf-8")
    return len(found)


def _below(context: click.Context) -> dict[str, click.Command]:
    """The commands of a group by name, without those that are hidden."""
    group = context.command
    if not isinstance(group, click.Group):
        return {}
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: one for name, one in found.items() if one and not one.hidden}


def _parts(command: click.Command) -> tuple[list[str], list[str], list[str]]:
    """Of a help text: its paragraphs, its exit codes, and the lines of its examples."""
    prose: list[str] = []
    codes: list[str] = []
    examples: list[str] = []
    for text in map(inspect.cleandoc, (command.help or "", command.epilog or "")):
        for block in text.split("\n\n"):
            if block.startswith(KEPT):
                examples += [*[""][: len(examples)], *block.removeprefix(KEPT).splitlines()]
                continue
            before, *after = CODE.split(" ".join(block.split()))
            prose += [before.strip()] if before else []
            codes += [code for part in after for code in re.split(r"; (?=\d)", part)]
    return prose, codes, examples


def _items(title: str, found: list[tuple[str, str]]) -> list[str]:
    """A section of names with their meanings; none without a name."""
    lines = [f".TP\n{_marked(name)}\n{_marked(meaning)}" for name, meaning in found]
    return [f".SH {title}", *lines] if lines else []


def _sentence(words: list[str], command: click.Command) -> str:
    known = cli.COMMANDS if len(words) == 2 else {}
    return known.get(words[-1]) or command.get_short_help_str(limit=400)


def _marked(text: str) -> str:
    """A text whose options are bold."""
    return OPTION.sub(r"\\fB\g<0>\\fR", _plain(text))


def _plain(text: str) -> str:
    """A text in which nothing has a meaning for roff."""
    first = r"\&" if text.startswith(".") else ""
    return first + text.translate(PLAIN)


if __name__ == "__main__":
    there = Path(sys.argv[1] if sys.argv[1:] else Path(sys.prefix) / "share/man/man1")
    print(f"siteproof: {write(there)} man pages in {there}")
