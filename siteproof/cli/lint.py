"""`siteproof lint`: every mistake in the descriptions of the systems, at once."""

from __future__ import annotations

import json

import click

from siteproof.cli.sites import FILES
from siteproof.errors import ExitCode, UserError
from siteproof.sites import manual
from siteproof.sites.site import find, lint_sites, names
from siteproof.spack import lint_envs as software
from siteproof.sweeps import reading as sweeps


@click.command()
@click.argument("systems", metavar="[SYSTEM]...", nargs=-1)
@click.option("--schema", is_flag=True, help="Print the JSON schema of the files instead.")
def lint(systems: tuple[str, ...], schema: bool) -> None:
    """Check the files of SYSTEM, or of all systems and sweeps; exit code 2 if there is a mistake.

    \b
    siteproof lint
    siteproof lint testbed
    siteproof lint --schema > site.schema.json
    """
    if schema:
        click.echo(json.dumps(manual.schema(FILES), indent=2))
        return
    chosen = [find(name, "lint") for name in systems] or names(broken=True)
    swept, wrong = ([], []) if systems else sweeps.lint(chosen)
    mistakes = [*wrong, *lint_sites(chosen), *software.everything(), *software.sites(chosen)]
    for mistake in mistakes:
        click.echo(f"siteproof: {mistake}")
    click.echo(_answer(chosen, swept, mistakes))
    raise SystemExit(ExitCode.USAGE if mistakes or not chosen else ExitCode.PASS)


def _answer(chosen: list[str], swept: list[str], mistakes: list[UserError]) -> str:
    files = {mistake.where.rpartition(":")[0] for mistake in mistakes}
    if mistakes:
        return f"{_count(len(mistakes), 'mistake')} in {_count(len(files), 'file')}"
    told = [_count(len(chosen), "site"), *([_count(len(swept), "sweep")] if swept else [])]
    return f"{', '.join(told)}, no mistake" if chosen else "no site to check"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
