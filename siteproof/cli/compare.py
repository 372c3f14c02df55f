"""siteproof compare: Compare two campaigns, value by value."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from ClusterShell.NodeSet import NodeSet

from siteproof import files
from siteproof.analysis.before_after import Effect
from siteproof.cli.shared import (
    Entry,
    flag,
    forms,
    print_answer,
    print_left_out,
    print_plain,
    print_records,
    print_text,
    print_wrapped,
    site_of,
    which_system,
)
from siteproof.compare import accepted, comparison
from siteproof.compare.accepted import Acceptance, LastTime
from siteproof.compare.comparison import Comparison, Row
from siteproof.errors import ExitCode, UserError
from siteproof.export.documents import Answer, dumps, same
from siteproof.record import campaign
from siteproof.record.finding import Finding
from siteproof.record.pair_units import grouped
from siteproof.record.samples import Header, Sample
from siteproof.report.sections import few
from siteproof.sites import Site
from siteproof.units import with_unit
from siteproof.verdict import judgement
from siteproof.wording.findings import about, change, full, sentence
from siteproof.wording.in_bounds_unit import levels
from siteproof.wording.tallies import units
from siteproof.wording.verdicts import own

COLUMNS = (
    *("state", "metric", "a", "b", "unit", "change", "noise", "nodes", "worst nodes", "remark"),
)


@dataclass(frozen=True)
class MetricChange:
    """A metric of a role.

    metric: The metric with its dimensions.
    role: The role of the nodes.
    unit: The unit of a and b.
    a: The median of the nodes in A.
    b: The median of the same nodes in B.
    change: From a to b, as a share of a.
    noise: The typical scatter, as a share.
    verdict: same, better, worse, or what else it is.
    nodes: The nodes that both have measured.
    worst: The nodes and pairs (a>b) that lost most by themselves, and how much; null of a count
        that was 0.
    as_others: Those nodes of worst that were better than the others in A, and are as the others in
        B: 'siteproof nodes' does not name them.
    """

    metric: str
    role: str
    unit: str
    a: float
    b: float
    change: float | None
    noise: float | None
    verdict: str
    nodes: NodeSet
    worst: Mapping[str, float | None]
    as_others: NodeSet


@dataclass(frozen=True)
class Compared(Answer):
    """Two campaigns, value by value: 'siteproof compare A B --json'.

    exit_code: 0 nothing is worse; 1 something is; 3 nothing could be compared.
    a: The first campaign or session.
    b: The second one.
    rows: Each metric and role.
    not_comparable: Roles that are not comparable. A sentence each, for people.
    only_in_a: Metrics that only A has. A sentence each, for people.
    only_in_b: Metrics that only B has. A sentence each, for people.
    changed: What else changed. A sentence each, for people.
    findings: What differs between the two: what is not comparable, what only one has, what has
        changed.
    """

    a: str
    b: str
    rows: Sequence[MetricChange]
    not_comparable: Sequence[str]
    only_in_a: Sequence[str]
    only_in_b: Sequence[str]
    changed: Sequence[str]
    findings: Sequence[Finding]


MAX_NAMED = 3  # of what holds of the same nodes; --all has all of it
MAX_WORST = 8  # nodes and pairs of a metric; --plain has all of them


@click.command()
@click.argument("a", required=False)
@click.argument("b", required=False)
@which_system
@flag("--all whole", "Show what is the same, too, and every line.")
@forms(Compared)
def compare(a: str | None, b: str | None, system: str, whole: bool, form: str) -> None:
    """Compare B with A: campaigns, sessions, or the words accepted, latest, previous.

    Without both, what 'siteproof verdict' judges is compared with what was accepted before it, or
    with the last that measured the same, as on the page of 'siteproof report'; without B it is the
    latest. A node that lost and is 'now as the others' was better than these in A; 'siteproof
    nodes' does not name it. Exit code 1: a metric is worse; 3: no metric is in both, or one is not
    comparable.

    \b
    siteproof compare before-firmware after-firmware
    siteproof compare accepted latest
    """
    site = site_of(system)
    record = judgement.Record.of(site)
    jobs = record.headers
    before = accepted.read_all(files.perflogs(), site.system.system)
    if a:
        names = [accepted.resolve(name, jobs, before) for name in (a, b or accepted.LATEST)]
        if names[0] == names[1]:
            raise UserError("compare", f"A and B are both {names[0]}", accepted.names(jobs)[-8:])
        first, second = (record.samples(accepted.jobs_of(name, jobs)) for name in names)
    else:
        names, first, second = _as_on_the_page(site, record, before)
    result = comparison.compare(site, first, second, files.perflogs())
    print_left_out(record.sessions)
    print_text(*map(full, record.sessions.clock_findings), title="siteproof: ", err=True)
    code = _exit_code(result, record)
    if form == "json":
        click.echo(dumps(_answer_of(site, result, names, code)))
    elif form == "plain":
        _print_plain(site, result)
    else:
        _print(site, result, names, _next(site, names if a else (), result, whole=whole), whole)
    raise SystemExit(code)


def _as_on_the_page(
    site: Site, record: judgement.Record, before: Sequence[Acceptance]
) -> tuple[list[str], list[Sample], list[Sample]]:
    """The names and samples of what is judged now, and of the last time. Raises UserError."""
    if not record.headers:
        raise UserError("compare", campaign.NOTHING, hint=campaign.MEASURE)
    judged = judgement.judge_system(site.system.system)
    last, own = _last_time(judged, record.headers, before)
    if last is None:
        what = "there is no earlier measurement to compare with"
        raise UserError("compare", what, hint="Name A and B to compare any two")
    now = own[0] if len(own) == 1 else judged.chosen
    return [last.name, now], record.samples(last.holds), list(judged.samples)


def _last_time(
    judged: judgement.Judgement, headers: Sequence[Header], before: Sequence[Acceptance]
) -> tuple[LastTime | None, list[str]]:
    """What is compared with what is judged, and the names of what is judged."""
    sessions = {sample.header.session for sample in judged.samples}
    own = accepted.names([header for header in headers if header.session in sessions])
    return accepted.last_time(headers, sessions, before), own


def against(judged: judgement.Judgement) -> tuple[str, str] | None:
    """The last time that what is judged can be compared with, and the command for it."""
    headers = judged.sessions.headers if judged.sessions else []
    system = judged.site.system.system
    last, own = _last_time(judged, headers, accepted.read_all(files.perflogs(), system))
    if last is None or len(own) > 1 and (judged.campaign or judged.late or judged.past):
        return None
    names = [last.name, own[0]] if len(own) == 1 else []
    return last.name, shlex.join(["siteproof", "compare", *names, "--system", system])


def _exit_code(result: Comparison, record: judgement.Record) -> ExitCode:
    if any(map(_is_worse, result.rows)):
        return ExitCode.FAIL
    unknown = record.sessions.unread or result.not_comparable  # one of them may be worse
    return ExitCode.PASS if result.rows and not unknown else ExitCode.INCOMPLETE


def _print(site: Site, result: Comparison, names: Sequence[str], command: str, whole: bool) -> None:
    """A record a metric that differs, what only one of them has, and the answer."""
    print_text(f"A: {names[0]}, B: {names[1]}")
    rows = [r for r in result.rows if whole or r.change.effect is not Effect.SAME or r.worst]
    print_records([_shown(site, row) for row in rows])
    for title, found in _lists(result).items():
        print_wrapped(*(map(full, found) if whole else _folded(found)), title=f"{title}: ")
    if alone := _fell(result):
        print_wrapped(f"fell by themselves: {alone}")
    print_answer(_answer(result), command)


def _lists(result: Comparison) -> dict[str, Sequence[Finding]]:
    """What only one of them has, or what is not a value, by title."""
    return {
        "not comparable": result.not_comparable,
        "only in A": result.only_a,
        "only in B": result.only_b,
        "changed": result.changed,
    }


def _cells(site: Site, row: Row) -> tuple[str, ...]:
    """The cells of COLUMNS between state and remark."""
    of_both = levels(site, row.name, row.change.before, row.change.after, row.unit)
    noise = "unknown" if row.change.one_value else f"{row.change.noise:.1%}".replace("%", " %")
    worst = ", ".join(_worst(row))
    return (row.name, *of_both, change(row.change.change), noise, str(row.nodes), worst)


def _worst(row: Row) -> list[str]:
    """The nodes and pairs that lost most, each with how much."""
    return [f"{node} {change(by)}" for node, by in row.worst]


def _shown(site: Site, row: Row) -> Entry:
    """State, metric, from and to, and change; below it the nodes, and the worst of them."""
    name, a, b, unit, by, noise, nodes, _ = _cells(site, row)
    head = [_state(row), name, f"{a} -> {with_unit(b, unit)}", by]
    worst = few(_worst(row), MAX_WORST)
    phrases = [f"noise {noise}", nodes, *([f"worst {worst}"] if worst else [])]
    phrases += [f"now as the others: {row.as_others}"] if row.as_others else []
    return Entry(head, phrases)


def _state(row: Row) -> str:
    """What became of the median, and of how many nodes or pairs it hides that they are worse."""
    hidden = row.worst and row.change.effect is not Effect.WORSE
    return f"{row.change.text}, {len(row.worst)} worse" if hidden else row.change.text


def _folded(found: Sequence[Finding]) -> Iterator[str]:
    """A line for all that holds of the same nodes: the first of it, and how much more there is."""
    for whys in grouped((why.subject, why) for why in found).values():
        more = len(whys) - MAX_NAMED
        yield "; ".join(map(full, whys[:MAX_NAMED])) + (f"; {more} more" if more > 0 else "")


def _next(site: Site, names: Sequence[str], result: Comparison, *, whole: bool) -> str:
    """The command for more: since when a metric is worse; else everything, or the report."""
    words = ["compare", *names, "--all"] if not whole else ["report"]
    if worse := list(filter(_is_worse, result.rows)):
        words = ["trend", "--metric", worse[0].name.partition(" ")[0]]
    return own(site.system.system, *words)


def _is_worse(row: Row) -> bool:
    return row.change.effect is Effect.WORSE or bool(row.worst)


def _print_plain(site: Site, result: Comparison) -> None:
    """A line a metric, then a line for each that only one of them has."""
    rows: list[tuple[str, ...]] = [(row.change.text, *_cells(site, row), "") for row in result.rows]
    empty = ("",) * 5
    for title, found in _lists(result).items():
        rows += [(title, about(why), *empty, why.subject, "", sentence(why)) for why in found]
    print_plain(COLUMNS, rows)


def _answer(result: Comparison) -> str:
    """How many metrics are worse, better and the same, and how many hide nodes that are worse."""
    if not result.rows:
        return "no metric is in both"
    counts = {change: sum(r.change.effect is change for r in result.rows) for change in Effect}
    text = f"from A to B: {', '.join(f'{n} {change}' for change, n in counts.items() if n)}"
    hidden = sum(bool(r.worst) for r in result.rows if r.change.effect is not Effect.WORSE)
    return f"{text}; single nodes or pairs are worse in {hidden} of these" if hidden else text


def _fell(result: Comparison) -> str:
    """Nodes and pairs that lost more than the others."""
    return units(dict.fromkeys(node for row in result.rows for node, _ in row.worst))


def _answer_of(site: Site, result: Comparison, names: Sequence[str], code: int) -> Compared:
    """The answer for programs."""
    a, b = names
    lists = {title.lower().replace(" ", "_"): found for title, found in _lists(result).items()}
    texts: dict[str, Any] = {name: list(map(full, found)) for name, found in lists.items()}
    return Compared(
        *(site.system.system, f"A: {a}, B: {b}", code, a, b, list(map(_of_metric, result.rows))),
        **texts,
        findings=[why for found in lists.values() for why in found],
    )


def _of_metric(row: Row) -> MetricChange:
    return MetricChange(
        **same(row, "role", "unit", "nodes", "as_others"),
        **same(row.change, "change", "noise"),
        metric=row.name,
        a=row.change.before,
        b=row.change.after,
        verdict=row.change.text,
        worst=dict(row.worst),
    )
