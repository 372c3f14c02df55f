"""siteproof accept: Accept a campaign: later ones are compared with it."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from siteproof import files
from siteproof.cli import shared
from siteproof.cli.shared import print_answer, print_rows, print_wrapped
from siteproof.compare import accepted
from siteproof.errors import ExitCode
from siteproof.verdict.judgement import Background, Record, judge_samples
from siteproof.wording.verdicts import own

COLUMNS = ("campaign", "when", "who", "why", "verdicts", "despite")


@click.command()
@click.argument("name", metavar="CAMPAIGN|SESSION", default="")
@shared.which_system
@shared.text_option("--why", "TEXT", "The reason, required: it is kept in the record.")
@shared.author("Who accepts")
@shared.flag("--despite", "Accept although something stands in the way.")
@shared.flag("--list listed", "List what was accepted so far.")
@shared.forms()
def accept(
    name: str, system: str, why: str, by: str, despite: bool, listed: bool, form: str
) -> None:
    """Accept a campaign or session: later ones are compared with it.

    'latest' is the newest one. Every criterion must be PASS or PENDING, or not count (waiver,
    not_here, report_only), and every check must have ended well on each node. Otherwise nothing is
    accepted and the exit code is 1, unless --despite is given. The record is kept with the samples
    and never changed.

    \b
    siteproof accept winter-2026 --why "after the firmware update"
    siteproof accept --list
    """
    site = shared.site_of(system)
    system = site.system.system
    before = accepted.read_all(files.perflogs(), system)
    if form:
        print_rows(COLUMNS, map(_row, before), form)
        return
    if listed:
        _list(system, before)
        return
    shared.must_give("accept", {"CAMPAIGN": name, "--why": why})
    record = Record.of(site)
    sessions = record.sessions
    name = accepted.resolve(name, sessions.headers, before)
    is_of_it = accepted.jobs_of(name, sessions.headers)
    found = sessions.of(is_of_it)
    with_it = Background.of(site, record, datetime.now(UTC), sessions.headers)
    with_it = with_it.with_tried(site, record, list(filter(is_of_it, sessions.headers)))
    judged = judge_samples(site, found, name, background=with_it)
    refused = accepted.in_the_way(judged)
    if refused and not despite:
        despite_it = "to accept nevertheless, add --despite"
        answer = f"not accepted for {system}: {', '.join(refused)}; {despite_it}"
        print_answer(answer, own(system, "verdict"))
        raise SystemExit(ExitCode.FAIL)
    shared.print_left_out(sessions)
    kept = accepted.accept(judged, name, by or files.user(), why.strip(), files.perflogs())
    answer = f"accepted for {system} by {kept.who}: {name}, {_counts(kept)}"
    print_answer(answer, own(system, "accept", "--list"))


def _list(system: str, before: list[accepted.Acceptance]) -> None:
    for record in before:
        despite = f"; despite {', '.join(record.despite)}" if record.despite else ""
        print_wrapped(
            f"{record.when[:16]} UTC  {record.name}  by {record.who}: {record.why} "
            f"({_counts(record)}{despite})"
        )
    compared = f"later ones are compared with {before[-1].name}" if before else ""
    print_answer(compared or "nothing accepted yet", own(system, "verdict"))


def _row(record: accepted.Acceptance) -> tuple[str, ...]:
    despite = ", ".join(record.despite)
    return (record.name, record.when, record.who, record.why, _counts(record), despite)


def _counts(record: accepted.Acceptance) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in record.verdicts.items()) or "no criterion"
