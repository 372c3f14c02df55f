"""`siteproof availability`: how long the system, its nodes and services were up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import click
from ClusterShell.NodeSet import NodeSet
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from siteproof import files, nodesets, sites
from siteproof.availability import overview, window_figures
from siteproof.availability.definitions import Uptime, mtbf, overall, scheduled
from siteproof.availability.from_slurm import minute
from siteproof.availability.intervals import Spans, seconds
from siteproof.availability.overview import HOUR, Overview
from siteproof.availability.subject_rows import COLUMNS, FOUR, four_rows, percent, rows
from siteproof.availability.window_figures import WindowFigure
from siteproof.cli.records import (
    plain_option,
    print_answer,
    print_plain,
    print_table,
    print_wrapped,
)
from siteproof.cli.shared import json_option, print_some, which_system
from siteproof.errors import ExitCode, UserError
from siteproof.export import documents
from siteproof.judge.age import lasting
from siteproof.record import event_log
from siteproof.record.campaign import since
from siteproof.record.event_log import EventRecord
from siteproof.record.finding import Kind
from siteproof.severity import Verdict, exit_code
from siteproof.sites import Criterion, Site
from siteproof.sites.machine import refuse_stranger
from siteproof.slurm import client
from siteproof.slurm.node_events import parse_events
from siteproof.units import count
from siteproof.wording.findings import full, warning
from siteproof.wording.verdicts import own

PERIOD = "14d"
OVERLAP = 3600  # seconds: a query begins before the end of the one before it
MAX_LINES = 8  # gaps and findings that are printed
LEFT_OUT = (Kind.NOT_READ, Kind.LINES_BROKEN)  # what could hold a failure


@click.command()
@which_system
@click.option(
    "--from",
    "begin",
    default=PERIOD,
    show_default=True,
    metavar="TIME",
    help="Begin of the period: so long before its end, or 2026-11-07T18:00 (UTC).",
)
@click.option("--to", "end", default="", metavar="TIME", help="End of the period; without it, now.")
@click.option(
    "--fetch", is_flag=True, help="First record the node events that Slurm's database has."
)
@json_option("availability")
@plain_option
def availability(
    system: str, begin: str, end: str, fetch: bool, as_json: bool, plain: bool
) -> None:
    """Show how long the system, its partitions, nodes and services were up.

    From the results of 'siteproof probe', from Slurm's node events, which --fetch records, and
    from the planned windows of the site (windows.csv). Overall: of the measured time; scheduled:
    without planned down time. What was not measured is neither up nor down.

    Exit code: 0 the whole period was measured, and each criterion on it is met; 1 a criterion is
    missed; 2 wrong usage or input; 3 no criterion is missed, but hours are missing or a file was
    left out.

    \b
    siteproof availability --fetch
    siteproof availability --from 2026-11-01 --to 2026-11-15
    """
    site = sites.load(system or sites.recognise())
    files.must_exist()
    now = datetime.now(UTC)
    period = _period(begin, end, now)
    if fetch:
        _fetch(site, period, int(now.timestamp()))
    found = overview.read(site, files.perflogs(), period, int(now.timestamp()))
    figures = window_figures.of_overview(site.name, found)
    verdicts = _verdicts(site, figures)
    code = _code(found, [verdict for _, verdict in verdicts.values()])
    if as_json:
        click.echo(documents.dumps(_record(site.name, found, figures, verdicts, code)))
    elif plain:
        print_plain(COLUMNS, rows(found))
    else:
        _print(site, found, figures, verdicts)
    raise SystemExit(code)


def _period(begin: str, end: str, now: datetime) -> tuple[int, int]:
    """Begin and end in seconds since 1970. Raises UserError."""
    last = since(end, now, "--to") if end else now
    first = since(begin, last, "--from")
    if last - first < timedelta(seconds=1):
        raise UserError("--from", f"'{begin}' is not before the end", "a time before --to")
    if first.timestamp() < 0:
        raise UserError("--from", f"'{begin}' is before 1970")
    return int(first.timestamp()), int(last.timestamp())


# ---- Slurm's node events


def _fetch(site: Site, period: tuple[int, int], now: int) -> None:
    """Record what Slurm's database has of the period, from the last record on. Raises UserError."""
    refuse_stranger(site.name, site.system.recognise)
    if not _has_slurm(site):
        raise UserError("--fetch", f"no partition of {site.name} has 'scheduler: slurm'")
    records, _ = event_log.read(files.perflogs(), site.name)
    begin = period[0]
    for record in sorted(records, key=lambda one: one.begin):
        if record.begin <= begin < record.end <= now:
            begin = max(period[0], record.end - OVERLAP)
    nodes = _known_nodes()
    text = client.node_events(begin, now)
    if not any(event.registered for event in parse_events(text).of_cluster):
        what = "lists no registration of this cluster, so nothing is known of its nodes"
        raise UserError("sacctmgr", what, hint="Does slurmdbd know the cluster?")
    try:
        event_log.write(files.perflogs(), site.name, EventRecord(begin, now, nodes, text))
    except OSError as error:
        where = files.perflogs() / site.name / event_log.FOLDER
        raise UserError(where, f"cannot be written: {error.strerror}") from None
    events = count(len(parse_events(text).of_nodes), "event")
    click.echo(f"recorded: {events} since {minute(begin)} UTC", err=True)


def _known_nodes() -> NodeSet:
    return nodesets.of(client.node_states())


# ---- verdicts

Verdicts = Mapping[str, tuple[Criterion, Verdict | None]]


def _verdicts(site: Site, figures: Mapping[str, WindowFigure]) -> Verdicts:
    """Each criterion on a figure, and its verdict; None if it decides nothing."""
    return {
        key: (criterion, window_figures.verdict_of(criterion, figures[criterion.metric]))
        for key, criterion in site.criteria.items()
        if criterion.metric in figures
    }


def _code(found: Overview, verdicts: Sequence[Verdict | None]) -> ExitCode:
    """The criteria decide; a gap, or a file that was left out, leaves the answer open."""
    every = [verdict for verdict in verdicts if verdict]
    if found.missing() or any(why.kind in LEFT_OUT for why in found.findings):
        every.append(Verdict.INCOMPLETE)
    return exit_code(every or [Verdict.PASS])


# ---- the terminal


def _print(
    site: Site, found: Overview, figures: Mapping[str, WindowFigure], verdicts: Verdicts
) -> None:
    first, last = map(minute, found.period)
    print_wrapped(f"{site.name}: {first} to {last} UTC")
    if found.whole or found.gateways:
        print_table(_table(FOUR, four_rows(found)))
        print_table(_table(COLUMNS, rows(found)))
    for key, (criterion, verdict) in verdicts.items():
        print_wrapped(f"{key}: {_answer(criterion, verdict, figures[criterion.metric])}")
    gaps = [f"{minute(a)} to {minute(b)} ({_span(b - a)})" for a, b in found.missing()]
    print_some("not measured: ", gaps, MAX_LINES, show=print_wrapped)
    print_some("warning: ", list(map(warning, found.findings)), MAX_LINES, show=print_wrapped)
    print_answer(*_last_lines(site, found))


def _table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in columns:
        is_first = name == columns[0]
        head = name.replace(", ", "\n", 1)
        table.add_column(head, overflow="fold", justify="left" if is_first else "right")
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def _answer(criterion: Criterion, verdict: Verdict | None, figure: WindowFigure) -> str:
    """PASS, 95.83 % of 336 h measured, at least 95 %."""
    value = "no value" if figure.value is None else f"{_number(figure.value)} {figure.unit}"
    hours = _number(figure.measured_hours)
    text = f"{verdict or 'reported only'}, {value} in {hours} h measured"
    if verdict:
        text += f", {criterion.required} required"
    wanted = criterion.conditions.get(window_figures.WINDOW_HOURS)
    if verdict is Verdict.INCOMPLETE and wanted:
        text += f" in {wanted} h"
    if verdict is Verdict.INCOMPLETE and figure.value is None and figure.why:
        text += f": {full(figure.why)}"
    return text


def _number(value: Fraction | float) -> str:
    return f"{float(value):.2f}".removesuffix(".00")


def _last_lines(site: Site, found: Overview) -> tuple[str, str]:
    """The answer and the next command."""
    if not (found.services or found.gateways or found.nodes):
        return "nothing was recorded", _more(site, nodes=True)
    share, missing = found.definitions.system_overall, seconds(found.missing())
    up = "" if share is None else f", up for {percent(share)} of the measured time"
    if not missing:
        answer = f"all {_number(found.period_hours)} h were measured{up}"
        return answer, own(site.name, "", "verdict")
    whole = timedelta(hours=found.period_hours)
    answer = f"INCOMPLETE: {_span(missing)} of {lasting(whole)} were not measured{up}"
    nodes = not found.nodes or any(map(found.missing, found.nodes.values()))
    return answer, _more(site, nodes=nodes)


def _more(site: Site, *, nodes: bool) -> str:
    """What records more: Slurm's events of nodes, or a look at the services, each only there."""
    try:
        refuse_stranger(site.name, site.system.recognise)
    except UserError:
        return own(site.name, "", "verdict")
    if nodes and _has_slurm(site):
        return own(site.name, "", "availability", "--fetch")
    return own(site.name, "", "probe") if site.system.probes else "siteproof sites --keys"


def _span(length: int) -> str:
    return lasting(timedelta(seconds=length)) if length >= 60 else count(length, "second")


def _has_slurm(site: Site) -> bool:
    return any(one.scheduler == "slurm" for one in site.system.partitions.values())


# ---- programs


def _record(
    system: str,
    found: Overview,
    figures: Mapping[str, WindowFigure],
    verdicts: Verdicts,
    code: ExitCode,
) -> dict[str, Any]:
    four = found.definitions
    first, last = map(minute, found.period)
    parts = {"system": [(system, found.whole)] if found.whole else []}
    for kind in ("services", "gateways", "partitions", "nodes"):
        parts[kind.removesuffix("s")] = list(getattr(found, kind).items())
    return {
        **documents.head(system, f"{first} to {last} UTC"),
        "exit_code": int(code),
        "begin": _time(found.period[0]),
        "end": _time(found.period[1]),
        "period_hours": found.period_hours,
        "measured_hours": found.measured_hours(),
        "missing": _spans(found.missing()),
        "definitions": {name: _share(getattr(four, name)) for name in vars(four)},
        "subjects": [
            _subject(found, kind, name, part) for kind, own in parts.items() for name, part in own
        ],
        "figures": [_figure(figure) for figure in figures.values()],
        "criteria": [
            {"id": key, "metric": criterion.metric, "verdict": verdict}
            for key, (criterion, verdict) in verdicts.items()
        ],
        "findings": [why.record() for why in found.findings],
    }


def _subject(found: Overview, kind: str, name: str, part: Uptime) -> dict[str, Any]:
    between = mtbf(part)
    return {
        "kind": kind,
        "name": name,
        "overall": _share(overall([part])),
        "scheduled": _share(scheduled([part])),
        "unscheduled_hours": seconds(part.unscheduled) / HOUR,
        "scheduled_hours": seconds(part.scheduled) / HOUR,
        "measured_hours": found.measured_hours(part),
        "failures": between.failures,
        "mtbf_hours": between.mean,
        "mtbf_bound_hours": between.bound,
        "down": _spans(part.down),
    }


def _figure(figure: WindowFigure) -> dict[str, Any]:
    return {
        "metric": figure.metric,
        "value": None if figure.value is None else float(figure.value),
        "unit": figure.unit,
        "subject": figure.subject,
        "measured_hours": figure.measured_hours,
        "interval": figure.interval,
        "finding": figure.why and figure.why.record(),
    }


def _share(share: Fraction | None) -> float | None:
    return None if share is None else float(100 * share)


def _spans(spans: Spans) -> list[dict[str, str]]:
    return [{"begin": _time(begin), "end": _time(end)} for begin, end in spans]


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
