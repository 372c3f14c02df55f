"""siteproof availability: Show how long the system, its nodes and services were up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import click

from siteproof import files, nodesets
from siteproof.answers import implausible
from siteproof.answers.attempts import lasting
from siteproof.availability import overview
from siteproof.availability import soak as soaks
from siteproof.availability.definitions import Spans, Uptime, mtbf, overall, scheduled, seconds
from siteproof.availability.overview import (
    COLUMNS,
    FOUR,
    HOUR,
    Overview,
    four_rows,
    minute,
    percent,
    rows,
)
from siteproof.availability.soak import Event, Round, Soak, Speed, Tally
from siteproof.cli import shared
from siteproof.cli.shared import (
    flag,
    forms,
    print_answer,
    print_plain,
    print_some,
    print_table,
    print_wrapped,
    site_of,
    table,
    text_option,
    which_system,
)
from siteproof.errors import ExitCode, UserError
from siteproof.export.documents import Answer, Time, dumps, same
from siteproof.record import availability_log
from siteproof.record.availability_log import EventRecord
from siteproof.record.campaign import since
from siteproof.record.finding import Finding, Kind, Verdict, exit_code
from siteproof.sites import Criterion, Site
from siteproof.sites.machine import refuse_stranger
from siteproof.slurm import client
from siteproof.slurm.records import parse_events
from siteproof.units import count
from siteproof.wording import trends as words
from siteproof.wording.findings import full, warning
from siteproof.wording.verdicts import own

PERIOD = "14d"
OVERLAP = 3600  # seconds: a query begins before the end of the one before it
MAX_LINES = 8  # gaps and findings that are printed
LEFT_OUT = (Kind.NOT_READ, Kind.LINES_BROKEN)  # what could hold a failure


@dataclass(frozen=True)
class Interval:
    """An interval of time.

    begin: Its begin.
    end: Its end, which is not part of it.
    """

    begin: Time
    end: Time


@dataclass(frozen=True)
class SubjectAnswer:
    """The system, a service, gateway, partition or node.

    kind: What it is: system, service, gateway, partition or node.
    name: Its name.
    overall: Up time in per cent of the measured time.
    scheduled: Up time in per cent of the measured time without planned down time.
    unscheduled_hours: Down time outside of planned windows.
    scheduled_hours: Down time within planned windows.
    measured_hours: How many hours of the period were measured.
    failures: Outages outside of planned windows.
    mtbf_hours: Mean time between failures; null without a failure.
    mtbf_bound_hours: Its lower bound at a confidence of 90 %; null without up time.
    down: When it was down, planned or not.
    """

    kind: str
    name: str
    overall: float | None
    scheduled: float | None
    unscheduled_hours: float
    scheduled_hours: float
    measured_hours: float
    failures: int
    mtbf_hours: float | None
    mtbf_bound_hours: float | None
    down: Sequence[Interval]


@dataclass(frozen=True)
class FigureAnswer:
    """A metric that a criterion can name.

    metric: The metric: Availability.name.
    value: Its value over the measured time; null if there is none.
    unit: The unit of the value.
    subject: The system, or the gateway with the largest gap.
    measured_hours: How many hours of the period it rests on.
    interval: The longest interval of the probes, in seconds; 0 without probes.
    finding: Why there is no value, or which hours are missing.
    """

    metric: str
    value: Fraction | None
    unit: str
    subject: str
    measured_hours: float
    interval: int
    finding: Finding | None


@dataclass(frozen=True)
class CriterionOn:
    """A criterion of the site on such a metric.

    id: Its id in criteria.yaml.
    metric: Its metric.
    verdict: PASS, FAIL or INCOMPLETE; null if it decides nothing.
    """

    id: str
    metric: str
    verdict: Verdict | None


@dataclass(frozen=True)
class SoakAnswer:
    """The rounds of a campaign: what failed under load, and the speed over time.

    rounds: Its sessions, in their order.
    node_hours: Hours under load of all nodes together.
    load_hours: The same of each node: from the begin of a round to the end of the last job in which
        it answered.
    failures: Failures by class.
    events: Each of them.
    speeds: Each headline metric over the rounds.
    """

    rounds: Sequence[Round]
    node_hours: float
    load_hours: Mapping[str, float]
    failures: Sequence[Tally]
    events: Sequence[Event]
    speeds: Sequence[Speed]


@dataclass(frozen=True)
class Availability(Answer):
    """How long a system was up: 'siteproof availability --json'.

    samples_of: The period, in words.
    exit_code: 0 the whole period was measured and no criterion is missed; 1 a criterion is missed,
        or something failed in a campaign; 3 hours or answers are missing, or a file was left out.
    begin: Begin of the period.
    end: End of the period.
    period_hours: Length of the period, in hours.
    measured_hours: How many of these hours were measured, of the system as a whole.
    missing: When the system as a whole was not measured.
    definitions: The four availabilities, in per cent of the measured time; null where nothing was
        measured. Of the system as a whole (system_) and of all nodes together (node_): up time of
        the measured time (overall), and of the measured time without planned down time (scheduled).
    subjects: The system, its services, gateways, partitions and nodes.
    figures: The metrics that a criterion can name.
    criteria: The criteria of the site on these metrics.
    findings: What was left out, and why.
    soak: Of a campaign only: its rounds, and what they show.
    """

    begin: Time
    end: Time
    period_hours: float
    measured_hours: float
    missing: Sequence[Interval]
    definitions: Mapping[str, float | None]
    subjects: Sequence[SubjectAnswer]
    figures: Sequence[FigureAnswer]
    criteria: Sequence[CriterionOn]
    findings: Sequence[Finding]
    soak: SoakAnswer | None = None


@click.command()
@which_system
@text_option(
    "--from begin",
    "TIME",
    "Begin of the period: so long before its end, or 2026-11-07T18:00 (UTC).",
    default=PERIOD,
    show_default=True,
)
@text_option("--to end", "TIME", "End of the period; without it, now.")
@text_option(
    "--campaign",
    "NAME",
    "What the sessions of this campaign show as rounds of a soak, in the period that they took.",
)
@flag("--fetch", "First record the node events that Slurm's database has.")
@forms(Availability)
def availability(system: str, begin: str, end: str, campaign: str, fetch: bool, form: str) -> None:
    """Show how long the system, its partitions, nodes and services were up.

    From the results of 'siteproof probe', from Slurm's node events, which --fetch records, and
    from the planned windows of the site (windows.csv). Overall: of the measured time; scheduled:
    without planned down time. What was not measured is neither up nor down.

    --campaign takes the sessions of a campaign as rounds under load. It shows the failures by
    class with the mean time between them, the hours under load, and the speed over time.

    Exit code: 0 the whole period was measured, and each criterion on it is met; 1 a criterion is
    missed, or something failed in the campaign; 2 wrong usage or input; 3 neither, but hours or
    answers are missing or a file was left out.

    \b
    siteproof availability --fetch
    siteproof availability --campaign soak
    siteproof availability --from 2026-11-01 --to 2026-11-15
    """
    site = site_of(system)
    now = datetime.now(UTC)
    at = int(now.timestamp())
    asked = {"--campaign": campaign, "--from": "" if begin == PERIOD else begin, "--to": end}
    if campaign and (asked["--from"] or end):
        what = "a campaign has its own period"
        raise UserError("--campaign", what, hint="Leave out --from and --to")
    sessions = implausible.sessions_of(site) if campaign else None
    jobs = soaks.jobs_of(sessions, campaign, now) if sessions else []
    period = soaks.period(jobs) if jobs else _period(begin, end, now)
    if fetch:
        _fetch(site, period, at)
    soak = soaks.read(site, sessions, jobs, now) if sessions else None
    shared.print_left_out(sessions)
    found = soak.known if soak else overview.read(site, files.perflogs(), period, at)
    answer = _answered(site, found, soak)
    if form == "json":
        click.echo(dumps(answer))
    elif form == "plain" and soak:
        print_plain(words.ROUNDS, map(words.round_row, soak.rounds))
    elif form == "plain":
        print_plain(COLUMNS, rows(found))
    else:
        _print(site, found, answer, asked, soak)
    raise SystemExit(answer.exit_code)


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
    records, _ = availability_log.read_events(files.perflogs(), site.name)
    begin = period[0]
    for record in sorted(records, key=lambda one: one.begin):
        if record.begin <= begin < record.end <= now:
            begin = max(period[0], record.end - OVERLAP)
    nodes = nodesets.of(client.node_states())
    text = client.node_events(begin, now)
    events = parse_events(text)
    if not any(event.registered for event in events.of_cluster):
        what = "lists no registration of this cluster, so nothing is known of its nodes"
        raise UserError("sacctmgr", what, hint="Does slurmdbd know the cluster?")
    record = EventRecord(begin, now, nodes, text)
    availability_log.write_events(files.perflogs(), site.name, record)
    found = count(len(events.of_nodes), "event")
    click.echo(f"recorded: {found} since {minute(begin)} UTC", err=True)


# ---- verdicts


def _code(found: Overview, criteria: Sequence[CriterionOn], soak: Soak | None) -> ExitCode:
    """The criteria decide, or what failed in a soak; a gap, or a file that was left out, leaves the
    answer open.
    """
    every = [one.verdict for one in criteria if one.verdict] + (soak.verdicts if soak else [])
    if found.missing() or any(why.kind in LEFT_OUT for why in found.findings):
        every.append(Verdict.INCOMPLETE)
    return exit_code(every or [Verdict.PASS])


# ---- the terminal


def _print(
    site: Site, found: Overview, answer: Availability, asked: Mapping[str, str], soak: Soak | None
) -> None:
    print_wrapped(f"{site.name}: {answer.samples_of}")
    if found.whole or found.gateways:
        for columns, cells in ((FOUR, four_rows(found)), (COLUMNS, rows(found))):
            heads = [name.replace(", ", "\n", 1) for name in columns]
            print_table(table(heads, cells, right=heads[1:]))
    if soak:
        _print_soak(soak)
    figures = {one.metric: one for one in answer.figures}
    for one in answer.criteria:
        text = _answer(site.criteria[one.id], one.verdict, figures[one.metric])
        print_wrapped(f"{one.id}: {text}")
    gaps = [f"{minute(a)} to {minute(b)} ({_span(b - a)})" for a, b in found.missing()]
    print_some("not measured: ", gaps, MAX_LINES, show=print_wrapped)
    print_some("warning: ", list(map(warning, answer.findings)), MAX_LINES, show=print_wrapped)
    print_answer(*_last_lines(site, found, asked, soak))


def _print_soak(soak: Soak) -> None:
    of_classes = map(words.failure_row, soak.tallies)
    print_table(table(words.FAILURES, of_classes, "Failures", right=words.FAILURES[1:]))
    if soak.speeds:
        of_speeds = map(words.speed_row, soak.speeds)
        print_table(table(words.SPEEDS, of_speeds, "Speed under load", right=words.SPEEDS[1:6]))
    print_some("failed: ", list(map(words.event, soak.events)), MAX_LINES, show=print_wrapped)
    print_some("not whole: ", words.open_rounds(soak), MAX_LINES, show=print_wrapped)


def _answer(criterion: Criterion, verdict: Verdict | None, figure: FigureAnswer) -> str:
    """PASS, 95.83 % of 336 h measured, at least 95 %."""
    value = "no value" if figure.value is None else f"{_number(figure.value)} {figure.unit}"
    hours = _number(figure.measured_hours)
    text = f"{verdict or 'reported only'}, {value} in {hours} h measured"
    if verdict:
        text += f", {criterion.required} required"
    if wanted := criterion.conditions.get(overview.WINDOW_HOURS):
        text += f" in {wanted} h"
    if verdict is Verdict.INCOMPLETE and figure.value is None and figure.finding:
        text += f": {full(figure.finding)}"
    return text


def _number(value: Fraction | float) -> str:
    return f"{float(value):.2f}".removesuffix(".00")


def _last_lines(
    site: Site, found: Overview, asked: Mapping[str, str], soak: Soak | None
) -> tuple[str, str]:
    """The answer and the next command."""
    verdict = own(site.name, "verdict", **(asked if soak else {}))
    if soak:
        more = _more(site, asked, nodes=True) if found.disconnected is None else verdict
        return words.answer(soak), more
    if not (found.services or found.gateways or found.nodes):
        return "nothing was recorded", _more(site, asked, nodes=True)
    share, missing = found.definitions.system_overall, seconds(found.missing())
    up = "" if share is None else f", up for {percent(share)} of the measured time"
    if not missing:
        return f"all {_number(found.period_hours)} h were measured{up}", verdict
    whole = timedelta(hours=found.period_hours)
    answer = f"INCOMPLETE: {_span(missing)} of {lasting(whole)} were not measured{up}"
    nodes = not found.nodes or any(map(found.missing, found.nodes.values()))
    return answer, _more(site, asked, nodes=nodes)


def _more(site: Site, asked: Mapping[str, str], *, nodes: bool) -> str:
    """What records more: Slurm's events of nodes, or a look at the services, each only there."""
    try:
        refuse_stranger(site.name, site.system.recognise)
    except UserError:
        return own(site.name, "verdict")
    if nodes and _has_slurm(site):
        return own(site.name, "availability", "--fetch", **asked)
    return own(site.name, "probe") if site.system.probes else "siteproof sites --keys"


def _span(length: int) -> str:
    return lasting(timedelta(seconds=length)) if length >= 60 else count(length, "second")


def _has_slurm(site: Site) -> bool:
    return any(one.scheduler == "slurm" for one in site.system.partitions.values())


# ---- programs


def _answered(site: Site, found: Overview, soak: Soak | None) -> Availability:
    first, last = map(minute, found.period)
    figures = overview.figures_of(site.name, found)
    criteria = [
        CriterionOn(key, one.metric, overview.verdict_of(one, figures[one.metric]))
        for key, one in site.criteria.items()
        if one.metric in figures and not soak  # their period is the contract's
    ]
    parts = {"system": [(site.name, found.whole)] if found.whole else []}
    for kind in ("services", "gateways", "partitions", "nodes"):
        parts[kind.removesuffix("s")] = list(getattr(found, kind).items())
    of_figure = ("metric", "value", "unit", "subject", "measured_hours")
    shown = None
    if soak:
        shown = SoakAnswer(
            **same(soak, "rounds", "node_hours", "events", "speeds"),
            load_hours={node: seconds(load) / HOUR for node, load in soak.load.items()},
            failures=soak.tallies,
        )
    return Availability(
        *(site.name, f"{f'campaign {soak.name}, ' if soak else ''}{first} to {last} UTC"),
        _code(found, criteria, soak),
        begin=_time(found.period[0]),
        end=_time(found.period[1]),
        period_hours=found.period_hours,
        measured_hours=found.measured_hours(),
        missing=_intervals(found.missing()),
        definitions={name: _share(share) for name, share in vars(found.definitions).items()},
        subjects=[
            _subject(found, kind, name, part) for kind, own in parts.items() for name, part in own
        ],
        figures=[
            FigureAnswer(**same(f, *of_figure), interval=found.interval, finding=f.why)
            for f in figures.values()
        ],
        criteria=criteria,
        findings=soak.findings if soak else found.findings,
        soak=shown,
    )


def _subject(found: Overview, kind: str, name: str, part: Uptime) -> SubjectAnswer:
    between = mtbf(part)
    return SubjectAnswer(
        *(kind, name, _share(overall([part])), _share(scheduled([part]))),
        unscheduled_hours=seconds(part.unscheduled) / HOUR,
        scheduled_hours=seconds(part.scheduled) / HOUR,
        measured_hours=found.measured_hours(part),
        failures=between.failures,
        mtbf_hours=between.mean,
        mtbf_bound_hours=between.bound,
        down=_intervals(part.down),
    )


def _share(share: Fraction | None) -> float | None:
    return None if share is None else float(100 * share)


def _intervals(spans: Spans) -> list[Interval]:
    return [Interval(_time(begin), _time(end)) for begin, end in spans]


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
