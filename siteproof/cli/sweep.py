"""`siteproof sweep`: what a parallel sweep found, as tables, sentences and a figure."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from siteproof import data, manifest, sites, sweep_report, sweep_runs
from siteproof.cli import sweep_records, sweep_show
from siteproof.errors import ExitCode, UserError, UserErrors
from siteproof.samples import Sample
from siteproof.sessions import Sessions
from siteproof.sites.shape import hint
from siteproof.sweep_report import SweepReport
from siteproof.sweeps import files
from siteproof.sweeps.files import SweepFile

PICTURES = (".svg", ".png")


@click.command()
@click.argument("name", required=False)
@click.option(
    "--system",
    default="",
    metavar="NAME",
    help="The system; without it, the one that this machine belongs to.",
)
@click.option("--session", default="", metavar="ID", help="The run of this session.")
@click.option("--campaign", default="", metavar="NAME", help="The runs of this campaign.")
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="[SYSTEM:]SESSION",
    help="Another run beside it; may be repeated.",
)
@click.option("--figure", default="", metavar="FILE", help="Draw it: FILE.svg or FILE.png.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="For programs: a line a point.")
def sweep(
    name: str | None,
    system: str,
    session: str,
    campaign: str,
    others: tuple[str, ...],
    figure: str,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Say what the sweep NAME found: the highest value, the plateau, decline, and what bounds it.

    Without NAME, list the sweeps. Exit code 1: some point failed; 3: points are missing, or all.

    \b
    siteproof sweep ior_tasks
    siteproof sweep ior_tasks --figure ior.svg --with 20261120T180000Z-1f2e
    """
    if figure and Path(figure).suffix not in PICTURES:
        raise UserError("--figure", f"'{figure}' is no picture", "FILE.svg, FILE.png")
    if as_json and as_csv:
        raise UserError("--csv", "beside --json", "one of the two")
    known, documents = files.examine()
    data.must_exist()
    if name is None:
        if session or campaign or others or figure or as_csv or as_json:
            raise UserError("NAME", "no sweep is named", known or "none yet")
        sweep_show.names(known, _history(system))
        return
    broken = [e for d in documents if d.path.stem == name for e in d.sorted_mistakes()]
    if broken:
        raise UserErrors(broken)
    reports = _reports(name, known, system, session, campaign)
    beside = [r for other in others for r in _beside(name, known, system, other)]
    if not reports:
        begun = any(
            stage.name.startswith(f"{files.camel_case(name)}_")
            for stage in manifest.pending(data.stages())
        )
        click.echo(
            f"{name}: begun, and no point is a sample yet: 'siteproof collect' takes over "
            "what was interrupted"
            if begun
            else f"{name}: not measured yet: reframe -c sweeps/ -n {files.camel_case(name)} -r"
        )
        raise SystemExit(ExitCode.INCOMPLETE)
    if figure:
        sweep_show.draw(Path(figure), [*reports, *beside])
    code = _exit_code(reports)
    if as_json:
        click.echo(json.dumps(sweep_records.record(name, [*reports, *beside], code), indent=1))
    elif as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            sweep_records.cells([*reports, *beside])
        )
    else:
        sweep_show.tell(name, reports, beside)
    raise SystemExit(code)


def _history(system: str) -> list[Sample]:
    sessions = Sessions(data.perflogs(), system or sites.recognise())
    return sessions.of(lambda header: sweep_runs.SWEEP in header.conditions)


def _reports(
    name: str, known: dict[str, SweepFile], system: str, session: str, campaign: str
) -> list[SweepReport]:
    """The runs that were asked for; none where it was never run. Raises UserError."""
    site = sites.load(system or sites.recognise())
    runs = sweep_runs.collect(_history(site.system.system))
    mine = [run for run in runs if run.name == name]
    if name not in known and not mine:
        names = sorted({*known, *(run.name for run in runs)})
        raise UserError("NAME", f"no sweep '{name}'{hint(name, names)}", names or "none yet")
    if not mine and not (session or campaign):
        return []
    chosen = sweep_runs.choose(mine, session=session, campaign=campaign)
    return [r for run in chosen for r in sweep_report.reports(site, run, known.get(name))]


def _beside(name: str, known: dict[str, SweepFile], system: str, text: str) -> list[SweepReport]:
    """A run to compare with, given as SESSION or SYSTEM:SESSION. Raises UserError."""
    other, _, session = text.rpartition(":")
    if not session:
        raise UserError("--with", f"'{text}' names no session", "SESSION, SYSTEM:SESSION")
    try:
        return _reports(name, known, other or system, session, "")
    except UserError as error:
        if error.where != "--session":
            raise
        raise UserError("--with", error.what, error.allowed) from None


def _exit_code(reports: Sequence[SweepReport]) -> ExitCode:
    codes = {report.exit_code for report in reports}
    return next((c for c in (ExitCode.FAIL, ExitCode.INCOMPLETE) if c in codes), ExitCode.PASS)
