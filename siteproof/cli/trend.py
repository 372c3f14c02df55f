"""siteproof trend: Show what changed over the years, when, and what else changed then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import click
import numpy as np
from rich.table import Table

from siteproof import files, history
from siteproof import trend as trends
from siteproof.analysis.steps import POWER
from siteproof.cli import shared
from siteproof.errors import ExitCode, UserError, harmless, hint
from siteproof.export.documents import Answer, dumps, same
from siteproof.history import History
from siteproof.history.extract import Wanted
from siteproof.record import campaign
from siteproof.record.finding import Finding
from siteproof.record.pair_units import grouped
from siteproof.record.series import alike
from siteproof.sites import Site
from siteproof.trend import Alert, Line, Survey
from siteproof.trend import alerts as acks
from siteproof.trend.alerts import AckFile, Rhythm
from siteproof.trend.gaps import Sensitivity
from siteproof.units import count
from siteproof.wording import trends as wording
from siteproof.wording.findings import full, fulls, number
from siteproof.wording.in_bounds_unit import shown_in


def _of_changes(command: Callable[..., Any]) -> Callable[..., Any]:
    """What acknowledging and its withdrawal take: ID..., --system, --why and --by."""
    about = "The reason, required: it is kept with the change."
    for option in (
        click.pass_context,
        shared.text_option("--by who", "NAME", "Who acknowledges; without it, you."),
        shared.text_option("--why", "TEXT", about),
        shared.which_system,
        click.argument("ids", metavar="ID...", nargs=-1, required=True),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class Trends(Answer):
    """What changed over the years: 'siteproof trend --json'.

    exit_code: 0 nothing proven got worse; 1 something did and is not acknowledged; 3 no history is
        long enough.
    lines: How many series there are, one for each node and metric.
    runs: How many runs they have together.
    long_enough: How many series are long enough to be judged.
    fleet: Changes of a whole role; each has the findings of what else changed then.
    alerts: Steps of single nodes; each has the findings of what else changed then.
    drifts: Slow changes.
    acknowledged: Changes that somebody has acknowledged.
    seasons: Patterns by day or week.
    sensitivity: How small a change could have been found in each series with a probability of 0.9.
        scatter: coefficient of variation of a typical node. smallest: share of the level, by how
        long the change has lasted: 3 or 10 runs, or half of all (lasting); null: too few runs.
    gaps: The same as findings, a sentence each, for people.
    findings: What could not be judged, and wrong clocks.
    """

    lines: int
    runs: int
    long_enough: int
    fleet: Sequence[Mapping[str, Any]]
    alerts: Sequence[Mapping[str, Any]]
    drifts: Sequence[Mapping[str, Any]]
    acknowledged: Sequence[Mapping[str, Any]]
    seasons: Sequence[Mapping[str, Any]]
    sensitivity: Sequence[Mapping[str, Any]]
    gaps: Sequence[str]
    findings: Sequence[Finding]


@click.group(invoke_without_command=True)
@shared.which_system
@shared.text_option("--since", "TIME", "Only changes since TIME: 12h, 7d, 2026-11-21 (UTC).")
@shared.metric_option("Only this metric.")
@shared.text_option("--node", "NODE", "Only series of this node.", shell_complete=shared.by_node)
@shared.flag("--sensitivity", "Show how small a change could have been found.")
@shared.flag("--all whole", "Show every change, and what was not judged.")
@shared.forms(Trends)
@click.pass_context
def trend(
    context: click.Context,
    system: str,
    since: str,
    metric: str,
    node: str,
    sensitivity: bool,
    whole: bool,
    form: str,
) -> None:
    """Show what changed in the history of every metric and node, and what else changed then.

    A change is at least 2 %, and certain: five standard errors of the levels before and after it.
    What lasted up to 20 runs is an episode. A change of the whole fleet is shown once. 'past' is
    what recovered, or a loss that ended a gain of single nodes. Exit code 0: nothing got worse; 1:
    something did, and nobody has acknowledged it; 3: nothing is proven to be worse, but something
    is provisional, or the history is too short.

    The change of a node is without what the whole fleet did and without rhythms of the week; 'as
    measured' is the change between the two levels that are shown, where it is another.

    \b
    siteproof trend --since 30d
    siteproof trend why k7q2mx
    siteproof trend ack k7q2mx --why "firmware 2.3, vendor informed"
    """
    context.obj = system
    if context.invoked_subcommand:
        if since or metric or node or sensitivity or whole or form:
            where = f"siteproof trend {context.invoked_subcommand}"
            options = "--since, --metric, --node, --sensitivity, --all, --json and --plain"
            raise UserError(where, f"takes none of {options}", hint="Only --system goes with it")
        return
    now = datetime.now(UTC)
    start = campaign.since(since, now) if since else None
    with opened(system) as (site, h):
        # A link has no sample of its own, nor has the system.
        nodes = [] if node in {"", *site.system.links, site.name} else [node]
        Wanted(metrics=[metric] if metric else [], nodes=nodes).must_be_known(h)
        with shared.bar("looking") as progress:
            seen = trends.survey(site, h, since=start, metric=metric, node=node, progress=progress)
    code = exit_code(seen)
    if form == "json":
        click.echo(dumps(_answer(site, seen, code, since)))
    elif sensitivity:
        show_sensitivity(site, seen, form)
    elif form == "plain":
        changes = [*chain(*_parts(seen)), *seen.acknowledged]
        shared.print_plain(wording.COLUMNS, [wording.plain(site, alert) for alert in changes])
    else:
        show(site, seen, {"--since": since, "--node": node}, whole=whole)
    raise SystemExit(code)


@trend.command(short_help="Acknowledge changes, each with its reason.")
@_of_changes
def ack(context: click.Context, ids: tuple[str, ...], system: str, why: str, who: str) -> None:
    """Acknowledge changes: they are no longer alerts, and a new control region begins there.

    The acknowledgement is kept with the samples and never edited; 'unack' withdraws it.

    \b
    siteproof trend ack k7q2mx --why "firmware 2.3, vendor informed"
    """
    shared.must_give("trend ack", {"--why": why})
    with opened(system or context.obj) as (site, h):
        seen = trends.survey(site, h)
    alerts = [_find([*seen.all], name, seen.acknowledged) for name in ids]
    _keep(site, alerts, "acknowledged", who, why)


@trend.command(short_help="Withdraw acknowledgements.")
@_of_changes
def unack(context: click.Context, ids: tuple[str, ...], system: str, why: str, who: str) -> None:
    """Withdraw acknowledgements: the changes are alerts again.

    \b
    siteproof trend unack k7q2mx --why "it was not the firmware"
    """
    shared.must_give("trend unack", {"--why": why})
    site = shared.site_of(system or context.obj)
    known = acks.standing(acks.acknowledgements(files.perflogs(), site.name))
    _keep(site, [_find(known, name) for name in ids], "taken back", who, why)


def _keep(site: Site, alerts: Iterable[Alert], what: str, who: str, why: str) -> None:
    given = (who or files.user(), why.strip())
    for alert in alerts:
        back = what == "taken back"
        done = acks.acknowledge(files.perflogs(), site.name, alert, *given, takes_back=back)
        click.echo(f"{what} by {done.who}: {wording.sentence(site, alert)}")


@trend.command(short_help="Show the evidence for one change.")
@click.argument("name", metavar="ID")
@shared.which_system
@click.pass_context
def why(context: click.Context, name: str, system: str) -> None:
    """Show the evidence for one change: the runs around it, and what else changed then.

    \b
    siteproof trend why k7q2mx
    """
    with opened(system or context.obj) as (site, h):
        seen = trends.survey(site, h)
        # That of a node that is bad may be of its metric alone.
        of_metrics = [alert for of_metric in seen.dates.values() for alert in of_metric]
        alert = _find([*seen.all, *seen.acknowledged, *of_metrics], name)
        lines = [
            line
            for line in trends.history_of(site, h, alert.metric)
            if alike(line.series, alert.series)
        ]
    acked = acks.acknowledgements(files.perflogs(), site.name)
    explain(site, alert, lines, [r for r in acked if r.alert.id == alert.id])
    shared.print_answer("", wording.after(site.name, alert))


@contextmanager
def opened(system: str) -> Iterator[tuple[Site, History]]:
    """The site and its history, brought up to date."""
    site = shared.site_of(system)
    with (
        shared.bar("reading") as progress,
        history.open_history(files.perflogs(), [site.system.system], progress=progress) as h,
    ):
        yield site, h


def _find(chosen: Sequence[Alert], name: str, done: Iterable[Alert] = ()) -> Alert:
    """The alert of an id. done: those that are acknowledged already. Raises UserError."""
    by_id = {alert.id.lower(): alert for alert in reversed(chosen)}
    if found := by_id.get(name.lower()):
        return found
    if any(alert.id.lower() == name.lower() for alert in done):
        hint_ = "'siteproof trend unack' takes that back"
        raise UserError("ID", f"'{name}' is acknowledged already", hint=hint_)
    known = list(dict.fromkeys(a.id for a in chosen))
    raise UserError("ID", f"no change '{name}'{hint(name, known)}", known[:12])


MAX_LINES = 40  # changes of each part; --all has all of them
AROUND = 8  # runs on each side of a change that are shown
MAX_NODES = 12  # of one change whose runs are shown by themselves


def exit_code(seen: Survey) -> ExitCode:
    """1: something proven is worse; 3: only provisional, or too little history."""
    worse = [alert for alert in seen.all if alert.open]
    if any(not alert.provisional for alert in worse):
        return ExitCode.FAIL
    return ExitCode.INCOMPLETE if worse or not seen.long_enough else ExitCode.PASS


def show(site: Site, seen: Survey, asked: Mapping[str, str], *, whole: bool) -> None:
    """A record a change, what was not judged, then the answer. whole: every line."""
    shared.print_text(f"{site.name}: what changed")
    parts = _parts(seen)
    shown = list(chain(*(part if whole else part[:MAX_LINES] for part in parts)))
    entries = [shared.Entry(wording.head(one), wording.phrases(site, one)) for one in shown]
    shared.print_records(entries)
    if more := sum(map(len, parts)) - len(shown):
        shared.print_text(f"{count(more, 'more change')}; --all lists them")
    acked = (wording.acknowledged(site, one) for one in seen.acknowledged)
    shared.print_wrapped(*acked, title="acknowledged: ")
    shared.print_wrapped(*fulls(seen.clocks), title="warning: ")
    remarks = list(_remarks(seen))
    if remarks and not whole:
        remarks = [f"{count(len(remarks), 'remark')}; --all lists them"]
    shared.print_wrapped(*remarks)
    shared.print_answer(*wording.last_lines(site.name, seen, asked))


def _remarks(seen: Survey) -> Iterator[str]:
    """Patterns that come again, what was not judged, and what could have been found."""
    for rhythm in seen.seasons:
        yield f"swings: {wording.swing(rhythm)}"
    for gap in wording.gaps(seen.gaps):
        yield f"not judged: {gap}"
    if seen.sensitivity:
        yield f"{wording.sensitivity(seen.sensitivity)}; --sensitivity has each series"


def show_sensitivity(site: Site, seen: Survey, form: str) -> None:
    """The smallest changes that could have been found, a row a series."""
    columns = ("metric", "role", "nodes", "runs", "scatter", *wording.LASTS)
    rows = [wording.sensitivity_cells(one) for one in seen.sensitivity]
    if form:
        shared.print_plain(columns, rows)
        return
    shared.print_table(shared.table(columns, rows, f"{site.name}: found with {POWER:.0%}"))
    shared.print_wrapped(wording.sensitivity(seen.sensitivity))


def _parts(seen: Survey) -> list[list[Alert]]:
    """The fleet's steps, what is worse, drift, what is provisional, and then what is no harm."""
    steps = [a for a in seen.alerts if not a.provisional]
    parts = [
        [a for a in seen.fleet if not a.provisional],
        [a for a in steps if a.open],
        seen.drifts,
        [a for a in (*seen.fleet, *seen.alerts) if a.provisional],
        [a for a in steps if not a.open],
    ]
    return [part for part in parts if part]


def explain(site: Site, alert: Alert, lines: Sequence[Line], acked: Sequence[AckFile]) -> None:
    """One change: what, between which runs, under which conditions, and the runs around it."""
    shared.print_wrapped(wording.sentence(site, alert))
    shared.print_text(*(f"  {name:12} {text}" for name, text in wording.evidence(alert)))
    for one in acked:
        name = "taken back" if one.takes_back else "acknowledged"
        shared.print_text(f"  {name:12} {one.ack.when[:16]} UTC by {one.ack.who}: {one.ack.why}")
    if alert.made_good:
        shared.print_text(f"  {'as before':12} since {alert.made_good}")
    if alert.ends:
        shared.print_text(f"  {'ends':12} the gain of {alert.ends}; now as the other nodes")
    if any(line.node in alert.nodes for line in lines):
        shared.print_table(_runs(site, alert, lines))
    else:
        shared.print_text("  the runs themselves are no longer in the history")


def _runs(site: Site, alert: Alert, lines: Sequence[Line]) -> Table:
    """The runs around a change: a column for each node, and one for the median of all others."""
    columns, (unit, factor) = _columns(alert, lines), shown_in(site, alert)
    of_alert = [line.times for line in lines if line.node in alert.nodes]
    times = np.unique(np.concatenate(of_alert))
    at = int(np.searchsorted(times, np.datetime64(alert.first_after.time)))
    first, rows = max(0, at - AROUND), []
    for moment in times[first : at + AROUND]:
        time = str(moment.astype("datetime64[m]")).replace("T", " ")
        rows.append([time, *(_median(lines, moment, factor) for lines in columns.values())])
    title = f"{alert.series_name}, {unit}"
    runs = shared.table(["run, UTC", *columns], rows, title, right=columns, whole=["run, UTC"])
    for place, row in enumerate(runs.rows, start=first):
        row.style = "bold" if place >= at else ""
    return runs


def _median(lines: Iterable[Line], moment: np.datetime64, factor: float) -> str:
    found = [value for line in lines for value in line.values[line.times == moment]]
    return number(float(np.median(found)) * factor) if found else "-"


def _columns(alert: Alert, lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines of each column, by its heading."""
    of_alert = [line for line in lines if line.node in alert.nodes]
    others = [line for line in lines if line.node not in alert.nodes]
    columns = grouped((line.node, line) for line in of_alert)  # several of a node that are alike
    if alert.of_fleet or len(of_alert) > MAX_NODES:
        columns = {f"median of {len(of_alert)}": of_alert}
    if others:
        columns[f"median of {len(others)} others"] = others
    return columns


def _answer(site: Site, seen: Survey, code: ExitCode, since: str) -> Trends:
    """Everything for programs."""

    def head(of: Rhythm | Sensitivity) -> dict[str, Any]:
        return {**same(of, "metric", "role", "nodes"), "series": of.series_name}

    chosen = f"changes since {since}" if since else "the whole history"
    return Trends(
        *(site.name, chosen, code, seen.series, seen.points, seen.long_enough),
        fleet=list(map(_plain, seen.fleet)),
        alerts=list(map(_plain, seen.alerts)),
        drifts=list(map(_plain, seen.drifts)),
        acknowledged=list(map(_plain, seen.acknowledged)),
        seasons=[
            {**head(one), "name": wording.pattern(one), "size": _number(one.size)}
            for one in seen.seasons
        ],
        sensitivity=[
            {
                **head(one),
                **same(one, "runs", "scatter"),
                "smallest": {last: _number(size) for last, size in one.smallest.items()},
            }
            for one in seen.sensitivity
        ],
        gaps=[*wording.gaps(seen.gaps), *map(harmless, fulls(seen.clocks))],
        findings=[*seen.gaps, *seen.clocks],
    )


def _plain(alert: Alert) -> dict[str, Any]:
    plain = {key: _number(value) for key, value in acks.as_record(alert).items()}
    return plain | {
        "changed": list(map(full, alert.changed)),
        "findings": alert.changed,
        **same(alert, "open", "improved"),
        "ack": alert.ack and same(alert.ack, "who", "why", "when"),
    }


def _number(value: Any) -> Any:
    """A number with the digits in which processors of all kinds agree."""
    return float(f"{value:.12g}") if isinstance(value, float) else value
