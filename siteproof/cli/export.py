"""siteproof export: Write verdicts for other programs: JUnit, OpenMetrics, JSON, SQL."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from siteproof import files
from siteproof.cli import shared
from siteproof.cli.shared import flag, print_left_out, which_answers
from siteproof.export import documents, junit, openmetrics
from siteproof.export.documents import dumps, schema
from siteproof.gate import reports
from siteproof.report.material import Material
from siteproof.verdict.judgement import Judgement, judge_system
from siteproof.wording.verdicts import last_line

ANSWERS = (  # the commands whose answer has a type
    *("verdict", "nodes", "why", "gate", "compare", "trend"),
    *("matrix", "sweep", "describe", "published", "availability"),
)


@click.group()
def export() -> None:
    """Write verdicts and values for other programs.

    Exit code 0: the document was written, whatever the verdict is. For the verdict's exit code
    call 'siteproof verdict'.

    \b
    siteproof export junit --output siteproof.xml
    """


def _document(command: Callable[..., str]) -> Callable[..., Any]:
    """The options of a document, and its way into FILE or to standard output."""

    @wraps(command)
    def write(system: str, since: str, campaign: str, as_of: str, output: str, **more: Any) -> None:
        file = Path(output)
        if output:
            shared.refuse(file)
        judged = judge_system(system, since=since, name=campaign, as_of=as_of, whole=True)
        data = command(judged, **more).encode()  # UTF-8, whatever the terminal's encoding is
        print_left_out(*judged.all_sessions)
        if not output:
            click.echo(data, nl=False)
            return
        shared.write(file, data)
        click.echo(f"{file}: {last_line(judged)}")

    about = "Write to FILE, replaced as a whole; without it, standard output."
    return which_answers(shared.text_option("--output", "FILE", about)(write))


@export.command("junit", short_help="JUnit XML for CI, one case for each criterion.")
@_document
@flag("--per-node", "Also one case for each node of each criterion.")
def _junit(judged: Judgement, per_node: bool) -> str:
    """Write the verdicts as JUnit XML for CI, one case for each criterion.

    A case fails if, and only if, 'siteproof verdict' does not end with 0. FAIL and
    REGRESSED are failures; ERROR and INCOMPLETE are errors; PENDING and SKIP are skipped, and the
    case "every criterion was decided" is an error while anything is INCOMPLETE or PENDING, or SKIP
    without a waiver or not_here.

    The time of a case is that of the jobs that answer it, each since the job before it in its
    session ended.

    \b
    Jenkins, in the pipeline's `post { always { … } }`:
      junit 'siteproof.xml'
    GitLab, in the job; without `when` a failed job keeps no file:
      artifacts:
        when: always
        reports:
          junit: siteproof.xml

    A GitLab job fails by its script only: let the script end with 'siteproof verdict'.

    \b
    siteproof export junit --campaign maintenance-2026-11 --output siteproof.xml
    """
    return junit.text(judged, per_node=per_node)


@export.command("openmetrics", short_help="OpenMetrics text for node_exporter.")
@_document
def _openmetrics(judged: Judgement) -> str:
    """Verdicts, states of nodes and headline values as OpenMetrics text, for monitoring.

    Values are in base units: bytes per second, seconds, operations per second. For node_exporter
    write a file that ends in .prom to the folder of --collector.textfile.directory. node_exporter
    refuses files with timestamps, so times are values of their own.

    docs/alerts.rules.yaml has alert rules for Prometheus.

    \b
    siteproof export openmetrics --output /var/lib/node_exporter/siteproof.prom
    """
    with closing(Material(judged, files.perflogs())) as found:
        found.begin()
        return openmetrics.text(judged, found.fleet, found.now, found.open_changes)


@export.command("json", short_help="One JSON document: verdicts and nodes.")
@_document
def _json(judged: Judgement) -> str:
    """Write all of 'siteproof verdict --json', and the states of all nodes, as one document.

    'siteproof export schema' explains each key.

    \b
    siteproof export json | jq -r '.criteria[] | select(.verdict == "FAIL") | .id'
    """
    return dumps(documents.verdict(judged, reports.fleet(judged))) + "\n"


@export.command("sql", short_help="Samples and answers for PostgreSQL, through psql.")
@shared.which_system
@shared.text_option(
    "--centre", "NAME", "The centre, part of each key: several may write to one database."
)
@shared.text_option(
    "--since", "TIME", "Only samples since TIME: 12h, 7d, 2026-11-21T18:00 (UTC); without it, all."
)
@shared.text_option("--campaign", "NAME", "The answers of this campaign; without it, the newest.")
@flag("--schema", "Only print the statements that make the tables.")
def _sql(system: str, centre: str, since: str, campaign: str, schema: bool) -> None:
    """Write samples, verdicts and states of nodes as what psql reads.

    It is one transaction: all of it or nothing. Rows that are there already are not written again,
    so the same may be sent twice, and from several login nodes at once. --since chooses the
    samples; the answers are those of 'siteproof verdict' and 'siteproof nodes', one for each newest
    session. docs/shared-data.md has the rights that it needs, and queries.

    \b
    siteproof export sql --schema | psql -X centre
    siteproof export sql --centre north --since 7d | psql -X -q centre
    """
    from siteproof.cli.history import start_of  # DuckDB, which the other forms do not need
    from siteproof.export import sql
    from siteproof.history import extract, open_history

    if schema:
        click.echo(sql.create(), nl=False)
        return
    shared.must_give("export sql", {"--centre": centre})
    judged = judge_system(system, name=campaign, whole=True)
    print_left_out(*judged.all_sessions)
    document = documents.verdict(judged, reports.fleet(judged))
    newest = max((s.header for s in judged.samples), key=lambda one: one.order, default=None)
    of = {"centre": centre, "campaign": campaign, "newest": "", "place": 0}
    if newest:
        of |= {"newest": newest.session, "place": newest.place}
    members = [one.site.system.system for one in judged.members.values()]
    wanted = extract.Wanted(members or [judged.site.system.system], since=start_of(since))
    with open_history(files.perflogs(), wanted.systems) as found:
        shared.print_text(*found.refused, title="siteproof: refused: ", err=True)
        views = (extract.rows(found, view, wanted) for view in sql.HISTORY)
        for line in sql.data(document, of, *views):
            sys.stdout.buffer.write(line.encode("utf-8", "replace"))


@export.command("schema", short_help="The JSON Schema of the documents.")
@click.argument("of", type=click.Choice(ANSWERS), default="verdict")
def _schema(of: str) -> None:
    """Print the JSON Schema (2020-12) of what a command prints with --json.

    \b
    siteproof export schema > verdict.schema.json
    siteproof export schema nodes
    """
    click.echo(json.dumps(schema_of(of), indent=1))


def schema_of(command: str) -> dict[str, Any]:
    """The JSON Schema of what a command of ANSWERS prints with --json."""
    loaded = getattr(import_module(f"siteproof.cli.{command}"), command)
    return schema(loaded.callback.answer, command)
