"""`siteproof accept`: what later measurements are compared with."""

from __future__ import annotations

import getpass
import os

import click

from siteproof import files, sites
from siteproof.cli.shared import print_left_out
from siteproof.compare import accepted
from siteproof.errors import ExitCode, UserError
from siteproof.record.sessions import Sessions
from siteproof.verdict.judgement import judge_samples


@click.command()
@click.argument("name", metavar="CAMPAIGN|SESSION", required=False)
@click.option(
    "--system",
    default="",
    metavar="NAME",
    help="The system; without it, the one that this machine belongs to.",
)
@click.option("--why", default="", metavar="TEXT", help="The reason, for those who come later.")
@click.option("--who", default="", metavar="NAME", help="Who accepts; without it, you.")
@click.option("--despite", is_flag=True, help="Accept although criteria are not kept.")
@click.option("--list", "listed", is_flag=True, help="What was accepted so far.")
def accept(name: str | None, system: str, why: str, who: str, despite: bool, listed: bool) -> None:
    """Accept a campaign or session as the new comparison; 'latest' is the newest one.

    The record is kept with the samples and never changed. Exit code 1: a criterion is neither
    PASS nor PENDING, nor a SKIP by a waiver, not_here or report_only, and there was no --despite.

    \b
    siteproof accept winter-2026 --why "after the firmware update"
    siteproof accept --list
    """
    site = sites.load(system or sites.recognise())
    files.must_exist()
    system = site.system.system
    before = accepted.read_all(files.perflogs(), system)
    if listed:
        _list(before)
        return
    if not name or not why.strip():
        raise UserError(
            "siteproof accept",
            "what is accepted, and why, is not given",
            hint="Give both: siteproof accept CAMPAIGN --why 'TEXT'",
        )
    sessions = Sessions(files.perflogs(), system)
    name = accepted.resolve(name, sessions.headers, before)
    found = sessions.of(accepted.jobs_of(name, sessions.headers))
    judged = judge_samples(site, found, name)
    refused = accepted.in_the_way(judged)
    if refused and not despite:
        click.echo(f"not accepted: {', '.join(refused)}; --despite accepts it nevertheless")
        raise SystemExit(ExitCode.FAIL)
    print_left_out(sessions)
    record = accepted.accept(judged, name, who or user(), why.strip(), files.perflogs())
    click.echo(f"accepted by {record.who}: {name}, {_counts(record)}")


def user() -> str:
    """The name of whoever runs the command."""
    try:
        return os.environ.get("USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _list(before: list[accepted.Acceptance]) -> None:
    for record in before:
        despite = f"; despite {', '.join(record.despite)}" if record.despite else ""
        click.echo(
            f"{record.when[:16]} UTC  {record.name}  by {record.who}: {record.why} "
            f"({_counts(record)}{despite})"
        )
    click.echo(f"the comparison is {before[-1].name}" if before else "nothing accepted yet")


def _counts(record: accepted.Acceptance) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in record.verdicts.items()) or "no criterion"
