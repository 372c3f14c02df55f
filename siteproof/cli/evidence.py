"""siteproof evidence: Record what a person has shown, for criteria that nothing else answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from siteproof import files
from siteproof.cli import shared
from siteproof.cli.shared import print_answer, print_rows, print_wrapped
from siteproof.errors import UserError, UserErrors
from siteproof.record import evidence_records
from siteproof.record.evidence_records import Evidence
from siteproof.sites import Site, site_tables
from siteproof.sites.lint import belongs_to
from siteproof.sites.site_tables import Step
from siteproof.units import count
from siteproof.verdict import others
from siteproof.wording.verdicts import own


@click.command()
@click.argument("criterion", metavar="ID", required=False, shell_complete=shared.by_criterion)
@shared.which_system
@shared.text_option("--file", "FILE", "The file that shows it.")
@shared.author("Who has shown it")
@shared.text_option("--on", "DAY", "The day, such as 2026-11-02.")
@shared.text_option("--shows", "yes|no|VALUE", "yes, no, or a value with its unit.")
@shared.text_option("--note", "TEXT", "What was done, or why it is withdrawn.")
@shared.text_option("--withdraw", "NAME", "Withdraw a record; give --note.")
@shared.flag("--list listed", "List the records, and which are due.")
@shared.forms()
def evidence(
    criterion: str | None, system: str, withdraw: str, listed: bool, form: str, **given: str
) -> None:
    """Record what a person has shown, for a criterion with 'answered_by: evidence'.

    Of the metrics Evidence.undone and Evidence.hours the value is read from the file, without
    --shows: CSV, a line a step, with the columns system, step, begin, end, done (yes or no), note.

    The record keeps name, size and SHA-256 of the file, and is never changed; keep the file. It
    counts until it is withdrawn, or older than the criterion's max_age. Evidence never answers a
    criterion that a check or a derivation can answer.

    \b
    siteproof evidence JS-4.5-DESKTOP --file desktop.png --by "J. Doe" --on 2026-11-02
        --shows yes --note "Xfce on an iPad, 20 minutes"
    siteproof evidence --withdraw 20261102T101500.000000Z --note "of the wrong system"
    siteproof evidence --list
    """
    site = shared.site_of(system, whole=True)
    by = given["by"] or files.user()
    before = evidence_records.read_all(files.perflogs(), site.system.system)
    now = datetime.now(UTC)
    if form:
        print_rows(COLUMNS, _rows(before), form)
        return
    if listed:
        _list(site, before)
        return
    if withdraw:
        record = _withdrawal(before, withdraw, by, given["note"])
    else:
        record = _record(site, criterion or "", **{**given, "by": by})
    record = replace(record, recorded=now.isoformat(timespec="microseconds"), who=files.user())
    evidence_records.write(files.perflogs(), site.system.system, record)
    what = f"withdrawn: {withdraw}, of" if withdraw else "recorded for"
    print_answer(
        f"{what} {record.criterion}: {record.name}",
        own(site.system.system, "why", record.criterion),
    )


def _record(
    site: Site, criterion: str, file: str, by: str, on: str, shows: str, note: str
) -> Evidence:
    """A new record. Raises UserError for what is missing or not valid."""
    shared.must_give("evidence", {"ID": criterion, "--file": file})
    others.refused(site, criterion)
    if (metric := site.criteria[criterion].metric) in OF_STEPS:
        if shows:
            raise UserError("--shows", f"{metric} is read from the file", hint="Leave it out")
        steps = _steps(Path(file), site.system.system)
        shows, note = OF_STEPS[metric](steps), "; ".join(filter(None, [note, _summary(steps)]))
    shared.must_give("evidence", {"--by": by, "--on": on, "--shows": shows})
    others.value_of(site, site.criteria[criterion], shows)
    texts = evidence_records.texts({"--by": by, "--note": note, "--shows": shows})
    day = evidence_records.day(on, "--on")
    path = Path(file)
    name = evidence_records.texts({"--file": path.name})["--file"]
    digest, size = evidence_records.hashed(path)
    what = (texts["--by"], day.isoformat(), texts["--shows"], texts["--note"])
    return Evidence(criterion, name, digest, size, *what, withdraws="")


def _steps(path: Path, system: str) -> list[Step]:
    """The steps of a procedure, in a file of this system. Raises UserErrors."""
    document, rows = site_tables.read(path, Step)
    for line, row in rows.items():
        belongs_to(document, (line, "system"), "a step", row.system, system)
    if not rows and not document.count:
        document.add((), "no step")
    if document.count:
        raise UserErrors(document.sorted_mistakes())
    return list(rows.values())


def _summary(steps: Sequence[Step]) -> str:
    """How many steps were done in which time, and which were not."""
    failed = [one.step for one in steps if one.done == "no"]
    done = f"{len(steps) - len(failed)} of {count(len(steps), 'step')} in {_hours(steps)}"
    return f"{done}, not done: {', '.join(failed)}" if failed else done


def _undone(steps: Sequence[Step]) -> str:
    return f"{sum(one.done == 'no' for one in steps)} count"


def _hours(steps: Sequence[Step]) -> str:
    return f"{sum(one.hours for one in steps):.2f} h"


OF_STEPS = {"Evidence.undone": _undone, "Evidence.hours": _hours}


def _withdrawal(before: list[Evidence], name: str, by: str, note: str) -> Evidence:
    """A record that takes another one back. Raises UserError."""
    known = {one.name: one for one, back in evidence_records.shown(before) if not back}
    if name not in known:
        raise UserError("--withdraw", f"no record '{name[:40]}' is valid", list(known) or "none")
    shared.must_give("evidence", {"--note": note})
    texts = evidence_records.texts({"--by": by, "--note": note})
    return replace(known[name], note=texts["--note"], by=texts["--by"], withdraws=name)


def _rows(before: Sequence[Evidence]) -> Iterator[tuple[object, ...]]:
    """The records in their order."""
    for one, back in evidence_records.shown(before):
        what = (one.name, one.criterion, one.shows, one.by, one.on)
        yield (*what, one.file, one.size, one.sha256, one.note, back.note if back else "")


COLUMNS = (
    *("record", "criterion", "shows", "by", "on"),
    *("file", "bytes", "sha256", "note", "withdrawn"),
)


def _list(site: Site, before: list[Evidence]) -> None:
    """The records in their order, then the criteria for which one is due."""
    shown = evidence_records.shown(before)
    for record, back in shown:
        state = f"; withdrawn by {back.by}: {back.note}" if back else ""
        print_wrapped(
            f"{record.name}  {record.criterion}: {record.shows} by {record.by} on {record.on}, "
            f"{record.file} ({record.size} B, SHA-256 {record.sha256}) {record.note}{state}"
        )
    valid = {one.criterion for one, back in shown if not back}
    wanted = [key for key, one in site.criteria.items() if one.answered_by == "evidence"]
    due = [key for key in wanted if key not in valid]
    answer = f"{len(wanted) - len(due)} of {len(wanted)} criteria have evidence; due: "
    following = ("why", due[0]) if due else ("verdict",)
    print_answer(answer + (", ".join(due) or "none"), own(site.system.system, *following))
