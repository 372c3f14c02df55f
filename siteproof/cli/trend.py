"""`siteproof trend`: what changed over the years, where, and what else changed there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from siteproof import campaign, data, history, sites
from siteproof import trend as trends
from siteproof.cli import trend_show
from siteproof.cli.accept import user
from siteproof.cli.progress import bar
from siteproof.errors import UserError
from siteproof.history import History
from siteproof.series import alike
from siteproof.sites import Site
from siteproof.trend import Alert, Survey, acks

_system = click.option(
    "--system",
    default="",
    metavar="NAME",
    help="The system; without it, the one that this machine belongs to.",
)
_why = click.option(
    "--why", default="", metavar="TEXT", help="The reason, for those who come later."
)
_who = click.option("--who", default="", metavar="NAME", help="Who says so; without it, you.")


@click.group(invoke_without_command=True)
@_system
@click.option(
    "--since",
    default="",
    metavar="TIME",
    help="Tell only changes since then: 12h, 7d, 2026-11-21 (UTC).",
)
@click.option("--metric", default="", metavar="METRIC", help="Only this figure.")
@click.option("--node", default="", metavar="NODE", help="Only what this node took part in.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
@click.pass_context
def trend(
    context: click.Context, system: str, since: str, metric: str, node: str, as_json: bool
) -> None:
    """Tell what changed in the history of every figure and node, and what changed there.

    A step must be 2 % and three times the usual scatter; what the whole fleet did is told once.
    Exit code 0: nothing got worse; 1: something did, and nobody has acknowledged it; 3: nothing
    proven got worse, but something is provisional, or the history is too short.

    \b
    siteproof trend --since 30d
    siteproof trend why k7q2mx
    siteproof trend ack k7q2mx --why "firmware 2.3, vendor informed"
    """
    context.obj = system
    if context.invoked_subcommand:
        if since or metric or node or as_json:
            raise UserError(
                f"siteproof trend {context.invoked_subcommand}",
                "takes none of --since, --metric, --node and --json",
                "--system",
            )
        return
    now = datetime.now(UTC)
    start = campaign.since(since, now) if since else None
    with _opened(system) as (site, h):
        _known_metric(site, h, metric)
        _known_node(site, h, node)
        with bar("looking") as told:
            seen = trends.survey(site, h, since=start, metric=metric, node=node, told=told)
    code = trend_show.exit_code(seen)
    if as_json:
        click.echo(json.dumps(trend_show.record(site, seen, code), indent=1))
    else:
        trend_show.show(site, seen)
    raise SystemExit(code)


@trend.command(short_help="Acknowledge changes, each with its reason.")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@_system
@_why
@_who
@click.pass_context
def ack(context: click.Context, ids: tuple[str, ...], system: str, why: str, who: str) -> None:
    """Acknowledge changes: they are known, and from there on a new control region begins.

    The record is kept beside the samples and never changed; 'unack' takes it back.

    \b
    siteproof trend ack k7q2mx --why "firmware 2.3, vendor informed"
    """
    _must_say_why("siteproof trend ack", why)
    with _surveyed(system or context.obj) as (site, seen):
        for alert in [_find(seen, name, acknowledged=False) for name in ids]:
            done = acks.write(
                data.perflogs(), site.system.system, alert, who or user(), why.strip()
            )
            click.echo(f"acknowledged by {done.who}: {trend_show.sentence(alert)}")


@trend.command(short_help="Take acknowledgements back.")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@_system
@_why
@_who
@click.pass_context
def unack(context: click.Context, ids: tuple[str, ...], system: str, why: str, who: str) -> None:
    """Take acknowledgements back: the changes are alerts again.

    \b
    siteproof trend unack k7q2mx --why "it was not the firmware"
    """
    _must_say_why("siteproof trend unack", why)
    site = _site(system or context.obj)
    standing = acks.standing(acks.read_all(data.perflogs(), site.system.system))
    for alert in [_find(Survey(acknowledged=standing), name, acknowledged=True) for name in ids]:
        done = acks.write(
            data.perflogs(), site.system.system, alert, who or user(), why.strip(), takes_back=True
        )
        click.echo(f"taken back by {done.who}: {trend_show.sentence(alert)}")


@trend.command(short_help="Show everything behind one change.")
@click.argument("name", metavar="ID")
@_system
@click.pass_context
def why(context: click.Context, name: str, system: str) -> None:
    """Show everything behind one change: the runs around it, and what else changed there.

    \b
    siteproof trend why k7q2mx
    """
    with _opened(system or context.obj) as (site, h):
        seen = trends.survey(site, h)
        alert = _find(seen, name)
        lines = [
            line
            for line in trends.history_of(site, h, alert.metric)
            if alike(line.series, alert.series)
        ]
    records = acks.read_all(data.perflogs(), site.system.system)
    trend_show.explain(alert, lines, [r for r in records if r.alert.id == alert.id])


def _site(system: str) -> Site:
    site = sites.load(system or sites.recognise())
    data.must_exist()
    return site


@contextmanager
def _opened(system: str) -> Iterator[tuple[Site, History]]:
    """The site and its history, brought up to date."""
    site = _site(system)
    with (
        bar("reading") as told,
        history.open_history(data.perflogs(), [site.system.system], told=told) as h,
    ):
        yield site, h


@contextmanager
def _surveyed(system: str) -> Iterator[tuple[Site, Survey]]:
    with _opened(system) as (site, h):
        yield site, trends.survey(site, h)


def _known_metric(site: Site, h: History, metric: str) -> None:
    if metric and metric not in (names := _measured(site, h, "metric")):
        raise UserError("--metric", f"no value of '{metric}' in the history", names or "none yet")


def _known_node(site: Site, h: History, node: str) -> None:
    """A node, a link or the system itself: the places that an alert may be of."""
    if not node:
        return
    names = [*_measured(site, h, "node"), *site.system.links, site.system.system]
    if node not in names:
        raise UserError("--node", f"no sample is of '{node}'", f"a name such as {names[0]}")


def _measured(site: Site, h: History, column: str) -> list[str]:
    """What there is of a column of `samples` beside values."""
    return [
        row[0]
        for row in h.sql(
            f"SELECT DISTINCT {column} FROM samples WHERE system = ? AND status = 'ok' "
            f"AND {column} <> '' ORDER BY ALL",
            [site.system.system],
        )
    ]


def _find(seen: Survey, name: str, *, acknowledged: bool | None = None) -> Alert:
    """The alert of an id. Raises UserError."""
    chosen: list[Alert] = [] if acknowledged else list(seen.all)
    chosen += seen.acknowledged if acknowledged in (None, True) else []
    for alert in chosen:
        if alert.id.lower() == name.lower():
            return alert
    if acknowledged is False and any(a.id.lower() == name.lower() for a in seen.acknowledged):
        raise UserError("ID", f"'{name}' is acknowledged already", "'siteproof trend unack'")
    known = [a.id for a in chosen][:12]
    raise UserError("ID", f"no change '{name}'", known or "none: nothing changed")


def _must_say_why(command: str, text: str) -> None:
    if not text.strip():
        raise UserError(command, "why is not given", '--why "TEXT"')
