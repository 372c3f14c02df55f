"""`siteproof trend`: what changed over the years, where, and what else changed there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from siteproof import files, history, sites
from siteproof import trend as trends
from siteproof.cli.accept import user
from siteproof.cli.shared import bar, which_system
from siteproof.errors import ExitCode, UserError, harmless
from siteproof.history import History
from siteproof.record import campaign
from siteproof.record.series import alike
from siteproof.sites import Site
from siteproof.trend import Alert, Line, Survey, acks
from siteproof.trend.alerts import CONFIRMS
from siteproof.trend.finds import SHORTEST
from siteproof.units import count, with_unit
from siteproof.wording.findings import full, fulls

_why = click.option(
    "--why", default="", metavar="TEXT", help="The reason, required: it is kept with the change."
)
_who = click.option("--who", default="", metavar="NAME", help="Who acknowledges; without it, you.")


@click.group(invoke_without_command=True)
@which_system
@click.option(
    "--since",
    default="",
    metavar="TIME",
    help="Only changes since TIME: 12h, 7d, 2026-11-21 (UTC).",
)
@click.option("--metric", default="", metavar="METRIC", help="Only this metric.")
@click.option("--node", default="", metavar="NODE", help="Only series of this node.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
@click.pass_context
def trend(
    context: click.Context, system: str, since: str, metric: str, node: str, as_json: bool
) -> None:
    """Show what changed in the history of every metric and node, and what else changed then.

    A step is at least 2 % and three times the typical scatter. A change of the whole fleet is shown
    once. Exit code 0: nothing got worse; 1: something did, and nobody has acknowledged it; 3:
    nothing is proven to be worse, but something is provisional, or the history is too short.

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
                hint="Only --system goes with it",
            )
        return
    now = datetime.now(UTC)
    start = campaign.since(since, now) if since else None
    with _opened(system) as (site, h):
        _known_metric(site, h, metric)
        _known_node(site, h, node)
        with bar("looking") as told:
            seen = trends.survey(site, h, since=start, metric=metric, node=node, told=told)
    code = exit_code(seen)
    if as_json:
        click.echo(json.dumps(record(site, seen, code), indent=1))
    else:
        show(site, seen)
    raise SystemExit(code)


@trend.command(short_help="Acknowledge changes, each with its reason.")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@which_system
@_why
@_who
@click.pass_context
def ack(context: click.Context, ids: tuple[str, ...], system: str, why: str, who: str) -> None:
    """Acknowledge changes: they are no longer alerts, and a new control region begins there.

    The acknowledgement is kept with the samples and never edited; 'unack' withdraws it.

    \b
    siteproof trend ack k7q2mx --why "firmware 2.3, vendor informed"
    """
    _must_say_why("siteproof trend ack", why)
    with _surveyed(system or context.obj) as (site, seen):
        for alert in [_find(seen, name, acknowledged=False) for name in ids]:
            done = acks.write(
                files.perflogs(), site.system.system, alert, who or user(), why.strip()
            )
            click.echo(f"acknowledged by {done.who}: {sentence(alert)}")


@trend.command(short_help="Withdraw acknowledgements.")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@which_system
@_why
@_who
@click.pass_context
def unack(context: click.Context, ids: tuple[str, ...], system: str, why: str, who: str) -> None:
    """Withdraw acknowledgements: the changes are alerts again.

    \b
    siteproof trend unack k7q2mx --why "it was not the firmware"
    """
    _must_say_why("siteproof trend unack", why)
    site = _site(system or context.obj)
    standing = acks.standing(acks.read_all(files.perflogs(), site.system.system))
    for alert in [_find(Survey(acknowledged=standing), name, acknowledged=True) for name in ids]:
        done = acks.write(
            files.perflogs(), site.system.system, alert, who or user(), why.strip(), takes_back=True
        )
        click.echo(f"taken back by {done.who}: {sentence(alert)}")


@trend.command(short_help="Show the evidence for one change.")
@click.argument("name", metavar="ID")
@which_system
@click.pass_context
def why(context: click.Context, name: str, system: str) -> None:
    """Show the evidence for one change: the runs around it, and what else changed then.

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
    records = acks.read_all(files.perflogs(), site.system.system)
    explain(alert, lines, [r for r in records if r.alert.id == alert.id])


def _site(system: str) -> Site:
    site = sites.load(system or sites.recognise())
    files.must_exist()
    return site


@contextmanager
def _opened(system: str) -> Iterator[tuple[Site, History]]:
    """The site and its history, brought up to date."""
    site = _site(system)
    with (
        bar("reading") as told,
        history.open_history(files.perflogs(), [site.system.system], told=told) as h,
    ):
        yield site, h


@contextmanager
def _surveyed(system: str) -> Iterator[tuple[Site, Survey]]:
    with _opened(system) as (site, h):
        yield site, trends.survey(site, h)


def _known_metric(site: Site, h: History, metric: str) -> None:
    if metric and metric not in (names := _measured(site, h, "metric")):
        raise UserError("--metric", f"no value of '{metric}' in the history", names)


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
        raise UserError(
            "ID",
            f"'{name}' is acknowledged already",
            hint="'siteproof trend unack' takes that back",
        )
    known = [a.id for a in chosen][:12]
    raise UserError("ID", f"no change '{name}'", known)


def _must_say_why(command: str, text: str) -> None:
    if not text.strip():
        raise UserError(command, "why is not given", hint="Give the reason: --why 'TEXT'")


WIDTH = 132  # columns where nobody looks at a terminal
MOST = 40  # rows of a table, and lines of a list; --json has all of them
CAUSES = 4  # lines of what else changed; 'trend why' has all of them
WHOLE = ("id", "figure", "between, UTC")  # columns that are not wrapped
COLUMNS = (
    "id",
    "what",
    "figure",
    "where",
    "from -> to",
    "change, certain",
    "between, UTC",
    "what else changed",
)
AROUND = 8  # runs on each side of a change that are shown
NODES = 12  # of one change whose runs are shown by themselves


def exit_code(seen: Survey) -> ExitCode:
    """1: something proven is worse; 3: only provisional, or too little history."""
    worse = [alert for alert in seen.all if alert.open]
    if any(not alert.provisional for alert in worse):
        return ExitCode.FAIL
    return ExitCode.INCOMPLETE if worse or not seen.long_enough else ExitCode.PASS


def show(site: Site, seen: Survey) -> None:
    """Everything: one table of changes, then what was not judged, then the answer."""
    console = _console()
    _table(console, site, seen)
    _list(console, "swings", [str(rhythm) for rhythm in seen.seasons])
    _list(console, "acknowledged", [_acknowledged(alert) for alert in seen.acknowledged])
    _list(console, "not judged", seen.gaps)
    _list(console, "warning", fulls(seen.clocks))
    _line(console, _last_line(site, seen))


def _parts(seen: Survey) -> list[list[Alert]]:
    """The fleet's steps, what is worse, drift, what is provisional, and then what is no harm."""
    steps = [a for a in seen.alerts if not a.provisional]
    return [
        [a for a in seen.fleet if not a.provisional],
        [a for a in steps if a.open],
        seen.drifts,
        [a for a in (*seen.fleet, *seen.alerts) if a.provisional],
        [a for a in steps if not a.open],
    ]


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def _line(console: Console, text: str) -> None:
    console.print(harmless(text), markup=False, highlight=False, soft_wrap=True)


def _table(console: Console, site: Site, seen: Survey) -> None:
    parts = [part for part in _parts(seen) if part]
    if not parts:
        return
    table = Table(title=Text(f"{site.system.system}: what changed"), title_justify="left")
    for name in COLUMNS:
        table.add_column(name, overflow="fold", no_wrap=name in WHOLE)
    for part in parts:
        for alert in part[:MOST]:
            last = alert is part[min(len(part), MOST) - 1]
            table.add_row(*map(_text, _cells(alert)), style=_style(alert), end_section=last)
    console.print(table)
    if more := sum(max(0, len(part) - MOST) for part in parts):
        _line(console, f"{more} more, see --json")


def _text(cell: str) -> Text:
    return Text("\n".join(harmless(line) for line in cell.split("\n")))


def _style(alert: Alert) -> str:
    if alert.open:
        return "yellow" if alert.provisional else "bold red"
    return "green" if alert.improved else ""


def _cells(alert: Alert) -> tuple[str, ...]:
    return (
        alert.id,
        _what(alert),
        alert.series_name,
        _where(alert),
        f"{figure(alert.before)} -> {with_unit(figure(alert.after), alert.unit)}",
        _change(alert),
        f"{alert.last_before}\n{alert.first_after}",
        "; ".join(_causes(alert)),
    )


def _what(alert: Alert) -> str:
    if alert.provisional:
        return f"provisional: {min(alert.n_after, CONFIRMS - 1)} of {CONFIRMS} runs"
    word = _word(alert) + (" drift" if alert.kind == "drift" else "")
    return f"{word}, made good {alert.made_good}" if alert.made_good else word


def _where(alert: Alert) -> str:
    if alert.of_fleet:
        return f"whole fleet: {alert.place}, {len(alert.nodes)} nodes"
    return alert.place if str(alert.nodes) == alert.place else f"{alert.place}: {alert.nodes}"


def _change(alert: Alert) -> str:
    return f"{share(alert.relative)}, {alert.confidence.replace('above ', '>')}"


def figure(value: float) -> str:
    """A figure in five digits, without an exponent as long as one can read it."""
    return f"{float(f'{value:.5g}'):.10g}"


def share(change: float) -> str:
    """A change in per cent with its sign; from nothing there is none."""
    return f"{change:+.1%}".replace("%", " %") if isfinite(change) else "from 0"


def _causes(alert: Alert) -> list[str]:
    told = list(map(full, alert.changed[:CAUSES]))
    more = len(alert.changed) - len(told)
    return told + ([f"{more} more, see 'trend why'"] if more > 0 else [])


def _list(console: Console, title: str, lines: Sequence[str]) -> None:
    for line in lines[:MOST]:
        _line(console, f"{title}: {line}")
    if len(lines) > MOST:
        _line(console, f"{title}: {len(lines) - MOST} more, see --json")


def _acknowledged(alert: Alert) -> str:
    assert alert.ack is not None
    return f"{sentence(alert)}; by {alert.ack.who} on {alert.ack.when[:10]}: {alert.ack.why}"


def sentence(alert: Alert) -> str:
    """A change in one line."""
    return harmless(
        f"{alert.id} {alert.series_name} of {alert.nodes} ({alert.place}): "
        f"{figure(alert.before)} -> {with_unit(figure(alert.after), alert.unit)}, "
        f"{share(alert.relative)}, "
        f"since {alert.last_before if alert.kind == 'drift' else alert.first_after}"
    )


def _last_line(site: Site, seen: Survey) -> str:
    held = f"{count(seen.series, 'line')} with {count(seen.points, 'run')} of {site.system.system}"
    if not seen.long_enough:
        return f"{held}: too little history, a step needs {SHORTEST} runs of a node"
    worse = [a for a in seen.all if a.open]
    proven = sum(not a.provisional for a in worse)
    told = "nothing proven got worse"
    if proven:
        told = f"{count(proven, 'change')} for the worse that nobody has acknowledged"
    rest = len(worse) - proven
    return f"{held}: {told}" + (f", {rest} provisional" if rest else "")


def explain(alert: Alert, lines: Sequence[Line], records: Sequence[acks.Record]) -> None:
    """One change: what, between which runs, under which conditions, and the runs around it."""
    console = _console()
    _line(console, sentence(alert))
    asked = ", ".join(f"{k} {v}" for k, v in alert.series.conditions) or "none"
    for name, text in (
        ("kind", f"{alert.kind}, {_word(alert)}; {alert.confidence}"),
        (
            "runs",
            f"{alert.n_before} before, {alert.n_after} after"
            + (f"; provisional until {CONFIRMS} confirm" if alert.provisional else ""),
        ),
        ("last before", f"{alert.last_before} UTC, session {alert.last_before.session}"),
        ("first after", f"{alert.first_after} UTC, session {alert.first_after.session}"),
        ("environment", alert.environment),
        ("conditions", asked),
        *(("changed", full(why)) for why in alert.changed),
        *(
            (
                ("taken back" if r.takes_back else "acknowledged"),
                f"{r.ack.when[:16]} UTC by {r.ack.who}: {r.ack.why}",
            )
            for r in records
        ),
        *((("made good", f"since {alert.made_good}"),) if alert.made_good else ()),
    ):
        _line(console, f"  {name:12} {text}")
    _runs(console, alert, lines)


def _word(alert: Alert) -> str:
    if alert.worse:
        return "worse"
    return "better" if alert.improved else "other"


def _runs(console: Console, alert: Alert, lines: Sequence[Line]) -> None:
    """The runs around a change: a column a node, and beside them the median of all others."""
    mine = [line for line in lines if line.node in alert.nodes]
    others = [line for line in lines if line.node not in alert.nodes]
    if alert.of_fleet or len(mine) > NODES:
        columns = [(f"median of {len(mine)}", mine)]
    else:
        columns = [(line.node, [line]) for line in mine]
    columns += [(f"median of {len(others)} others", others)] if others else []
    if not mine:
        _line(console, "  the runs themselves are no longer in the history")
        return
    times = np.unique(np.concatenate([line.times for line in mine]))
    at = int(np.searchsorted(times, np.datetime64(alert.first_after.time)))
    table = Table(title=Text(f"{alert.series_name}, {alert.unit}"), title_justify="left")
    table.add_column("run, UTC", no_wrap=True)
    for name, _ in columns:
        table.add_column(Text(name), justify="right")
    for place, moment in list(enumerate(times))[max(0, at - AROUND) : at + AROUND]:
        values = [_median(held, moment) for _, held in columns]
        table.add_row(
            str(moment.astype("datetime64[m]")).replace("T", " "),
            *values,
            style="bold" if place >= at else "",
            end_section=place == at - 1,
        )
    console.print(table)


def _median(lines: Iterable[Line], moment: np.datetime64) -> str:
    found = [value for line in lines for value in line.values[line.times == moment]]
    return figure(float(np.median(found))) if found else "-"


def record(site: Site, seen: Survey, code: ExitCode) -> dict[str, Any]:
    """Everything for programs."""
    return {
        "system": site.system.system,
        "exit_code": int(code),
        "lines": seen.series,
        "runs": seen.points,
        "long_enough": seen.long_enough,
        "fleet": [_plain(a) for a in seen.fleet],
        "alerts": [_plain(a) for a in seen.alerts],
        "drifts": [_plain(a) for a in seen.drifts],
        "acknowledged": [_plain(a) for a in seen.acknowledged],
        "seasons": [
            {
                "metric": r.metric,
                "series": r.series_name,
                "role": r.role,
                "nodes": str(r.nodes),
                "name": r.name,
                "size": _number(r.size),
            }
            for r in seen.seasons
        ],
        "gaps": [harmless(line) for line in (*seen.gaps, *fulls(seen.clocks))],
    }


def _plain(alert: Alert) -> dict[str, Any]:
    plain = {key: _number(value) for key, value in acks.as_record(alert).items()}
    ack = alert.ack and {"who": alert.ack.who, "why": alert.ack.why, "when": alert.ack.when}
    changed = {
        "changed": list(map(full, alert.changed)),
        "findings": [why.record() for why in alert.changed],
    }
    return plain | changed | {"open": alert.open, "improved": alert.improved, "ack": ack}


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value
