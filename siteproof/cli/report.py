"""`siteproof report`: everything about a system on one page that opens anywhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click

from siteproof.cli import shared
from siteproof.cli.shared import print_left_out, which_answers
from siteproof.errors import UserError
from siteproof.report import assemble, html, markdown, material

PAGES = {".html": html.page, ".htm": html.page, ".md": markdown.page}
SLOW = 2  # seconds after which progress is printed


@click.command()
@which_answers
@click.option(
    "--output",
    default="",
    metavar="FILE",
    help="FILE.html, or FILE.md for Markdown; without it, SYSTEM-DAY.html in this folder.",
)
def report(system: str, since: str, campaign: str, as_of: str, output: str) -> None:
    """Write everything known about a system on one page: verdict, nodes, changes and figures.

    The HTML page needs no other file and no network. Exit code 0: the page was written, whatever
    the verdict is. For the verdict's exit code call 'siteproof verdict'.

    \b
    siteproof report --campaign winter-2026
    siteproof report --since 30d --output winter.md
    """
    ending = Path(output).suffix.lower() or ".html"
    if ending not in PAGES:
        raise UserError("--output", f"'{output}' is not a page", "FILE.html, FILE.md")
    if output:
        shared.refuse(Path(output))
    read = material.gather(system, since=since, name=campaign, as_of=as_of, progress=_progress())
    with closing(read) as found:
        day = found.judged.as_of if as_of and found.judged.as_of else found.now
        target = Path(output or f"{found.system}-{day:%Y-%m-%d}.html")
        shared.refuse(target)
        text = PAGES[ending](assemble.build(found), found.now)
        print_left_out(found.sessions)
        shared.write(target, text.encode("utf-8", "backslashreplace"))
    click.echo(f"{target}: {_size(len(text.encode()))}, {found.judged.chosen}")


def _progress() -> Callable[[str], None]:
    """Prints what is done on stderr, once it takes long."""
    start = time.monotonic()

    def show(line: str) -> None:
        if time.monotonic() - start > SLOW:
            print(f"report: {line}", file=sys.stderr, flush=True)

    return show


def _size(size: int) -> str:
    """`0.4 MB`, and of a small page `37 kB`."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
