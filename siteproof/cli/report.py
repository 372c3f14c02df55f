"""siteproof report: Write everything known about a system on one page, HTML or Markdown."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click

from siteproof import files, installed
from siteproof.cli import shared
from siteproof.cli.shared import (
    flag,
    print_answer,
    print_left_out,
    print_text,
    print_wrapped,
    text_option,
    which_answers,
)
from siteproof.errors import UserError, UserErrors
from siteproof.record.clocks import moment_of
from siteproof.record.sessions import Sessions
from siteproof.report import brief, html, markdown, material, web_folder
from siteproof.report.material import Material
from siteproof.report.summary import begin
from siteproof.sites import Site
from siteproof.sites import site as sites
from siteproof.units import count
from siteproof.verdict.judgement import Judgement

PAGES = {".html": html.page, ".htm": html.page, ".md": markdown.page}
ROUNDS = 5  # in which pages are looked at again that others replaced meanwhile
SLOW = 2  # seconds after which progress is printed


@click.command()
@which_answers
@text_option(
    "--output",
    "FILE",
    "FILE.html, or FILE.md for Markdown; without it, SYSTEM-DAY-CAMPAIGN.html in this folder, "
    "with the day of the newest value; without a campaign, with its session. A colleague's file is "
    "not replaced.",
)
@flag("--brief short", "Print one paragraph, and write no page.")
@text_option(
    "--site folder",
    "DIR",
    "Keep a folder for a web server: an index, and the page of each campaign. Only pages whose "
    "samples, criteria or records of people have changed are made again.",
)
def report(folder: str, output: str, short: bool, **which: str) -> None:
    """Write everything known about a system on one page: verdict, nodes, changes and figures.

    The HTML page needs no other file and no network. Exit code 0: the page was written, whatever
    the verdict is. For the verdict's exit code call 'siteproof verdict'.

    \b
    siteproof report --campaign winter-2026
    siteproof report --since 30d --output winter.md
    siteproof report --brief | mail -s "maintenance" hpc-ops@example.org
    siteproof report --site /srv/www/siteproof
    """
    if folder:
        given = [output, short, which["since"], which["campaign"], which["as_of"]]
        if any(given):
            raise UserError("--site", "keeps the pages of all campaigns", "--site with --system")
        _keep(Path(folder).absolute(), which["system"])
    else:
        _report(output, short, **which)


def _report(
    output: str, short: bool, *, system: str, since: str, campaign: str, as_of: str
) -> None:
    """One page, or its paragraph."""
    if short and output:
        raise UserError("--brief", "writes no page", "--brief without --output")
    ending = Path(output).suffix.lower() or ".html"
    if ending not in PAGES:
        raise UserError("--output", f"'{output}' is not a page", "FILE.html, FILE.md")
    if output:
        shared.refuse(Path(output))
    read = material.gather(system, since=since, name=campaign, as_of=as_of, progress=_progress())
    with closing(read) as found:
        if short:
            print_left_out(*found.judged.all_sessions)
            _print_brief(found)
            return
        target = Path(output or f"{found.system}-{_day(found, as_of)}{_of_what(found.judged)}.html")
        shared.refuse(target)
        if not output:
            _refuse_foreign(target)
        text = PAGES[ending](begin.assemble(found), found.now)
        print_left_out(*found.judged.all_sessions)
        shared.write(target, text.encode("utf-8", "backslashreplace"))
    click.echo(f"{target}: {_size(len(text.encode()))}, {found.judged.chosen}")


def _keep(folder: Path, system: str) -> None:
    """Make the pages of a folder that are not as they would be made now."""
    shared.refuse_strangers(folder)
    if folder.exists() and not folder.is_dir():
        raise UserError("--site", f"{folder} is not a folder")
    _refuse_inputs(folder)
    web_folder.refuse_foreign(folder)
    site = shared.site_of(system, whole=True)
    kept = _Kept(folder, site)
    for _ in range(ROUNDS):
        if kept.is_done():
            break
    print_left_out(*kept.sessions)
    if kept.errors:
        raise UserErrors(kept.errors)
    click.echo(f"{folder / web_folder.INDEX}: {kept.counts()}")


def _refuse_inputs(folder: Path) -> None:
    """Refuse a folder of what pages are made from, or above it. Raises UserError."""
    made_from, own = (files.perflogs(), files.stages(), sites.folder()), folder.resolve()
    for top in made_from:
        if own.is_relative_to(top.resolve()):
            what = f"{folder} is in {top}, from which the pages are made"
            raise UserError("--site", what, hint="Name a folder that has nothing else")
    for below in (*made_from, installed.SUITE):
        if below.resolve().is_relative_to(own):
            what = f"{folder} holds {below}, and not pages alone"
            raise UserError("--site", what, hint="Name a folder that has nothing else")


class _Kept:
    """The pages of a system in a folder. errors: why some could not be made."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder, self.site = folder, site
        self.errors: list[UserError] = []
        self.sessions: list[Sessions] = []
        self.made, self.all = 0, 0

    def is_done(self) -> bool:
        """Make each page that is not current; false if another operator made one meanwhile."""
        before = web_folder.read(self.folder)
        self.errors = []
        self.sessions = [
            Sessions(files.perflogs(), name) for name in self.site.members or [self.site.name]
        ]
        pages = web_folder.listed(self.site, self.sessions)
        self.all = len(pages)
        done = [self._is_put(page, before.get(page.file)) for page in pages]
        web_folder.settle(self.folder, self.site.name, before, {page.file for page in pages})
        return all(done)

    def _is_put(self, page: web_folder.Page, before: web_folder.Page | None) -> bool:
        """Whether a page is current; false if another operator put one in its place."""
        if web_folder.is_current(self.folder, before, page):
            return True
        if web_folder.read(self.folder).get(page.file) != before:
            return False
        try:
            found = material.gather(self.site.name, name=page.asked)
            with closing(found):
                built = begin.assemble(found)
                text = html.page(built, found.now).encode("utf-8", "backslashreplace")
        except (UserError, UserErrors) as error:
            self.errors += error.errors if isinstance(error, UserErrors) else [error]
            return True
        if not web_folder.put(self.folder, page.of(built, text, found.now), text, before):
            return False
        self.made += 1
        print_text(f"{page.file}: {_size(len(text))}, {found.judged.chosen}")
        return True

    def counts(self) -> str:
        """How many pages there are, and how many were made."""
        return f"{count(self.all, 'page')} of {self.site.name}, {self.made} made"


def _print_brief(found: Material) -> None:
    """The paragraph: in a pipe one line, on a screen as wide as that, with the command unbroken."""
    text = brief.text(found)
    if not found.judged.samples:
        waiting = count(len(found.judged.verdicts), "criterion", "criteria")
        answer = f"{found.system}: {found.judged.chosen}; {waiting}, nothing to report"
        print_answer(answer, text.rpartition(" Next: ")[2])
        return
    if not sys.stdout.isatty():
        click.echo(text)
        return
    words, following, command = text.rpartition(" Next: ")
    print_wrapped(words)
    click.echo(f"{following.strip()} {command}")


def _day(found: Material, as_of: str) -> str:
    """The day of the newest value that is judged, or as of which it is; today without one."""
    newest = max((moment_of(sample.header) for sample in found.judged.samples), default=found.now)
    return f"{found.judged.as_of if as_of and found.judged.as_of else newest:%Y-%m-%d}"


def _of_what(judged: Judgement) -> str:
    """`-winter-2026`: the campaign, else the newest session that counts, for a file's name."""
    session = ""
    if judged.sessions:
        counts = {sample.header.session for sample in judged.samples}
        newest_first = reversed(judged.sessions.headers)
        session = next((head.session for head in newest_first if head.session in counts), "")
    name = re.sub(r"[^A-Za-z0-9._-]", "_", judged.campaign or session)
    return f"-{name}" if name else ""


def _refuse_foreign(target: Path) -> None:
    """A page of somebody else stays. Raises UserError."""
    if target.exists() and (owner := target.stat().st_uid) != os.geteuid():
        what = f"exists and belongs to {files.name_of(owner)}"
        raise UserError(target, what, hint="--output FILE names another file")


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
