"""`siteproof import`: figures that others have published become samples."""

from __future__ import annotations

from pathlib import Path

import click

from siteproof import data, imported, sites
from siteproof.errors import UserError
from siteproof.imported import Import
from siteproof.sites import published


@click.command("import")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--system", default="", metavar="NAME",
              help="Only figures of this system; without FILE, its published.csv.")
def import_(file: Path | None, system: str) -> None:
    """Make samples of the figures in FILE, a CSV of older or published results.

    Without FILE it is the published.csv of the system's folder. The columns are explained by
    'siteproof sites --keys'. A file with a mistake changes nothing. What is imported shows in
    compare and in histories, and answers no criterion on what nodes reach.

    \b
    siteproof import --system jetstream-tacc
    siteproof import older-results.csv
    """
    if file is None:
        site = sites.load(system or sites.recognise())
        file, system = site.folder / published.NAME, site.name
        if not file.exists():
            raise UserError("import", f"site {system} has no {published.NAME}", "a FILE")
    rows = imported.read(file, system)
    data.must_exist()
    done = imported.keep(file, rows.values(), data.perflogs())
    for word, paths in (("new", done.new), ("changed", done.changed),
                        ("no longer in it, to be removed by hand", done.obsolete)):
        for path in paths:
            click.echo(f"{word}: {path.relative_to(data.folder())}")
    click.echo(_answer(file, done))


def _answer(file: Path, done: Import) -> str:
    counts = {"new": done.new, "changed": done.changed, "as they were": done.same}
    told = ", ".join(f"{len(paths)} {word}" for word, paths in counts.items() if paths)
    figures = "1 figure" if done.figures == 1 else f"{done.figures} figures"
    return f"{file.name}: {figures}; files of samples: {told}"
