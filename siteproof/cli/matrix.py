"""siteproof matrix: Show every pair of nodes, and the node or link that explains bad pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median

import click
from rich.text import Text

from siteproof import sites
from siteproof.analysis.attribution import ASYMMETRIC, Pair, asymmetries
from siteproof.answers import implausible
from siteproof.cli import shared
from siteproof.cli.shared import print_answer, print_plain, print_table, print_wrapped, table
from siteproof.errors import ExitCode
from siteproof.export.documents import Answer, dumps, plain, same
from siteproof.links import matrix as made
from siteproof.links.matrix import Matrix, by_day, day_unit
from siteproof.links.transfers import NONE, Grade, Grades
from siteproof.record.finding import Finding, Kind
from siteproof.record.samples import Sample
from siteproof.sites import Site
from siteproof.units import count, with_unit
from siteproof.wording.findings import per_cent, sentence
from siteproof.wording.verdicts import own

WHOLE = 14  # nodes of a matrix that is shown whole; of a larger one, what is bad
STAR = 41  # nodes of a star that is shown whole: a line a client
MAX_PAIRS_LISTED = 20  # bad ones, the worst first
FEW = 5  # pairs whose directions differ, and pairs without a value, that are named
MARKS = {made.BAD: "*", made.WARNED: "o", made.TOO_FEW: "~"}  # after a value
STYLES = {made.BAD: "bold red", made.WARNED: "yellow", made.TOO_FEW: "blue"}


Cells = tuple[list[str], list[tuple[object, ...]]]  # the columns, and the cells of each row
COLUMNS = ("name", "link", "from", "to", "value", "unit", "state", "status")
DAILY_COLUMNS = ("from", "to", "day", "unit", "highest", "lowest", "average", "errors")


@dataclass(frozen=True)
class PairState:
    """A pair that has a value or should have one.

    from_: The sender, or the client.
    to: The receiver, or the server.
    value: The median of the trials of its newest job; null without one.
    bad: Whether it is far below the others, misses its criterion or failed.
    state: good, worth a look (not above the link's `warn`), bad, failed, missing, or too few to
        judge: fewer than four pairs, none of them far from the others, and no bound.
    status: Why it failed, such as timeout; only of a pair that failed.
    """

    from_: str
    to: str
    value: float | None
    bad: bool
    state: str
    status: str = ""


@dataclass(frozen=True)
class OneMatrix:
    """The pairs of a link under one set of conditions.

    name: The metric with its dimensions.
    link: The link of system.yaml.
    unit: The unit of the values.
    decided: Whether a bad value can be recognised; without a criterion a count cannot.
    groups: The groups of system.yaml, or pairs of them, that explain bad pairs.
    pairs: Each pair.
    """

    name: str
    link: str
    unit: str
    decided: bool
    groups: Sequence[str]
    pairs: Sequence[PairState]


@dataclass(frozen=True)
class PairDay:
    """A day (UTC) of a pair.

    from_: The sender, or the client.
    to: The receiver, or the server.
    day: The day.
    unit: The unit of the values.
    highest: The highest value; null without one.
    lowest: The lowest value; null without one.
    average: The mean of the values; null without one.
    errors: How many measurements failed, by status.
    warn: The link's `warn`: an average that is not above it is worth a look; null without one.
    critical: The link's `critical`: a lower average is bad; null without one.
    """

    from_: str
    to: str
    day: str
    unit: str
    highest: Fraction | None
    lowest: Fraction | None
    average: Fraction | None
    errors: Mapping[str, int]
    warn: Fraction | None
    critical: Fraction | None

    @property
    def grades(self) -> Grades:
        """The thresholds."""
        return Grades(self.warn, self.critical, self.unit)

    @property
    def slow(self) -> bool:
        """Whether the pair was slow on average."""
        return self.grades.grade(self.average) is Grade.CRITICAL

    @property
    def bad(self) -> bool:
        """Whether the pair failed, or was slow on average."""
        return bool(self.errors) or self.average is None or self.slow


@dataclass(frozen=True)
class Matrices(Answer):
    """The pairs of nodes of a metric: 'siteproof matrix METRIC --json'.

    exit_code: 0 no bad pair; 1 some pair is bad; 3 some pair, or all, have no value, or a record
        cannot be read.
    metric: The metric that was named.
    matrices: One for each link and set of conditions; empty with --daily.
    days: With --daily: each day of each pair.
    findings: Which nodes are responsible, which pairs are bad, and which have no value.
    """

    metric: str
    matrices: Sequence[OneMatrix]
    days: Sequence[PairDay]
    findings: Sequence[Finding]


@click.command()
@click.argument("metric", shell_complete=shared.by_pair_metric)
@shared.which_samples
@shared.text_option("--link", "NAME", "Only this link of system.yaml.")
@shared.flag("--daily", "High, low and average of each pair, day by day.")
@shared.forms(Matrices)
def matrix(
    metric: str, system: str, since: str, campaign: str, link: str, daily: bool, form: str
) -> None:
    """Show METRIC of every pair of nodes, and which nodes explain the bad pairs.

    A pair is bad if it is far worse than the others, misses its criterion, or could not be
    measured. A node explains bad pairs if most of its pairs are bad, with peers that are good with
    others. Exit code 1: a pair is bad; 3: a pair has no value, or nothing decides what is bad, or
    the record of a newer job cannot be read.

    \b
    siteproof matrix TcpBandwidth.throughput --link lan
    siteproof matrix TcpBandwidth.throughput --daily --since 7d
    """
    site = sites.load(system or sites.recognise())
    sessions = implausible.sessions_of(site)
    found, chosen = made.select(
        site, sessions, metric, link, since=since, name=campaign, days=daily
    )
    days = _days(site, found, metric) if daily else []
    matrices = [] if daily else made.collect(site, found, metric)
    shared.print_left_out(sessions)
    code = _exit_code(matrices, days)
    if code is ExitCode.PASS and made.is_lost(sessions, metric, found):
        code = ExitCode.INCOMPLETE
    system, title = site.name, f"{site.name}: {chosen}"
    if form == "json":
        every, whys = list(map(_one_matrix, matrices)), _findings(metric, matrices, days)
        click.echo(dumps(Matrices(system, chosen, code, metric, every, days, whys)))
    elif form:
        _print_rows(matrices, days, daily=daily)
    else:
        answers = [_show_days(title, metric, days)] if days else [_show(title, m) for m in matrices]
        *before, answer = answers or [f"{metric}: no pair was measured, {chosen}"]
        print_wrapped(*before)
        asked = {"--since": since, "--campaign": campaign}
        print_answer(answer, own(system, *_next(matrices), **asked))
    raise SystemExit(code)


def _next(matrices: Sequence[Matrix]) -> Sequence[str]:
    """Why the first node or pair of a link is bad; else the verdict."""
    for one in (one for one in matrices if one.link):
        nodes = [culprit.node for culprit in one.blame.culprits]
        for subject in (*nodes, *map(">".join, one.blame.links)):
            return "why", subject
    return ("verdict",)


def _print_rows(matrices: Sequence[Matrix], days: Sequence[PairDay], *, daily: bool) -> None:
    """A row a pair, or a pair and day."""
    columns, rows = DAILY_COLUMNS if daily else COLUMNS, list(map(plain, days))
    for one in map(_one_matrix, matrices):
        head = same(one, "name", "link", "unit")
        rows += [head | plain(pair) for pair in one.pairs]
    print_plain(columns, [[row.get(name) for name in columns] for row in rows])


def _one_matrix(one: Matrix) -> OneMatrix:
    """What is known of each pair."""
    bad = one.blame.bad
    failed = {pair: sample.status for pair, sample in one.failed.items()}
    pairs = [
        PairState(*pair, one.values.get(pair), pair in bad, one.state(pair), failed.get(pair, ""))
        for pair in sorted({*one.values, *one.failed, *one.missing})
    ]
    return OneMatrix(**same(one, "name", "link", "unit", "decided", "groups"), pairs=pairs)


def _exit_code(matrices: Sequence[Matrix], days: Sequence[PairDay]) -> ExitCode:
    """Whether a pair is bad, or was slow or failed on any day; INCOMPLETE without any pair."""
    if any(day.bad for day in days) or any(m.blame.bad or m.blame.culprits for m in matrices):
        return ExitCode.FAIL
    undecided = any(m.missing or not m.decided or _too_few(m) for m in matrices)
    return ExitCode.INCOMPLETE if undecided or not (matrices or days) else ExitCode.PASS


def _too_few(one: Matrix) -> bool:
    return any(one.state(pair) == made.TOO_FEW for pair in one.values)


def _in_words(one: Matrix) -> str:
    """Which nodes explain the bad pairs, in one line."""
    head = f"{one.title}: "
    if not one.decided:
        return f"{head}no criterion decides which of {len(one.values)} pairs are bad"
    nodes, links = [str(c) for c in one.blame.culprits], one.blame.alone
    if len(links) > FEW:
        links = [*links[:FEW], f"{len(links) - FEW} more"]
    parts = [sentence(block) for block in made.blocks(one)]
    parts += [f"explained by groups: {', '.join(one.groups)}"] if one.groups else []
    parts += [f"explained by: {', '.join(nodes)}"] if nodes else []
    parts += [f"bad pairs that no node explains: {', '.join(links)}"] if links else []
    tail = f"; {count(len(one.missing), 'pair')} without a value" if one.missing else ""
    if not parts and _too_few(one):
        parts = [f"{count(len(one.values), 'pair')}, too few to judge without a bound"]
    return head + ("; ".join(parts) or "no bad pair") + tail


def _show(title: str, one: Matrix) -> str:
    """The table, what explains it and what is missing. Returns the answer."""
    known = {*one.values, *one.failed, *one.missing}
    nodes = sorted({node for pair in known for node in pair}, key=_natural)
    head = f"{title}: {one.title}, {one.unit}"
    star = all((a in one.hubs) != (b in one.hubs) for a, b in known)
    whole = len(nodes) <= (STAR if star else WHOLE)
    if whole:
        _show_all(head, one, known, star=star)
    if one.between:
        groups = [(*pair, _value(value, one.unit)) for pair, value in one.between.items()]
        print_table(table(("group", "group", "the better quarter of the pairs between"), groups))
    if one.blame.bad:
        _bad("bad pairs" if whole else f"{head}; bad pairs", one)
    counts = f"{count(len(one.values), 'pair')} of {count(len(nodes), 'node')}"
    typical = f", median {_value(median(one.values.values()), one.unit)}" if one.values else ""
    bad = f", {len(one.blame.bad)} bad" if one.blame.bad else ""
    print_wrapped(counts + typical + bad)
    _asymmetry(one)
    without = [f"{'>'.join(pair)}: {sentence(why)}" for pair, why in sorted(one.missing.items())]
    shared.print_some("", without, FEW, show=print_wrapped)
    return _in_words(one)


def _show_all(head: str, one: Matrix, known: set[Pair], *, star: bool) -> None:
    print_wrapped(head if star else f"{head}; rows send")
    columns, rows = _star(one, known) if star else _senders(one, known)
    print_table(table(columns, rows, right=columns[2 if star else 1 :], whole=[""]))


def _star(one: Matrix, known: set[Pair]) -> Cells:
    """A row a client: to its server, and from it where values have a direction."""
    pairs = sorted(
        {(b, a) if a in one.hubs else (a, b) for a, b in known},
        key=lambda pair: (_natural(pair[0]), pair),
    )
    columns = ["client", "server", "client > server", "server > client"]
    return columns, [(*pair, _cell(one, pair), _cell(one, pair[::-1])) for pair in pairs]


def _senders(one: Matrix, known: set[Pair]) -> Cells:
    """A row a sender: to each receiver."""
    receivers = sorted({b for _, b in known}, key=_natural)
    return ["", *(f">{node}" for node in receivers)], [
        (sender, *(_cell(one, (sender, receiver)) for receiver in receivers))
        for sender in sorted({a for a, _ in known}, key=_natural)
    ]


def _cell(one: Matrix, pair: Pair) -> Text:
    """A value, marked where it is bad; why there is none; blank where none is expected."""
    if pair in one.failed:
        return Text(one.failed[pair].status, style="bold red")
    if pair in one.values:
        state = one.state(pair)
        return Text(f"{one.values[pair]:.4g}{MARKS.get(state, '')}", style=STYLES.get(state, ""))
    return Text("?" if pair in one.missing else "", style="yellow")


def _bad(title: str, one: Matrix) -> None:
    """The culprits with all of their pairs in a row each, then links; the worst first.

    Nothing where a block of nodes, named below, explains all of them.
    """
    rows: list[Sequence[object]] = []
    for culprit in one.blame.culprits[:MAX_PAIRS_LISTED]:
        pairs = count(sum(culprit.node in pair for pair in one.blame.bad), "bad pair")
        share = "-" if culprit.deficit < 0 else per_cent(culprit.deficit)
        rows.append(("", "", pairs, share, Text(str(culprit), style="bold red")))
    links = one.blame.links
    for pair, deficit in list(links.items())[:MAX_PAIRS_LISTED]:
        failed = one.failed.get(pair)
        value = failed.status if failed else _value(one.values[pair], one.unit)
        share = "-" if failed or deficit < 0 else per_cent(deficit)
        rows.append((*pair, value, share, "this link"))
    columns = ("from", "to", "value", "worse than the others by", "explained by")
    if rows:
        print_wrapped(title)
        print_table(table(columns, rows))
    lists = (links, one.blame.culprits)
    if left := sum(max(len(found) - MAX_PAIRS_LISTED, 0) for found in lists):
        print_wrapped(f"{left} more are not shown, see --json")
    for (a, b), sample in sorted(one.failed.items())[:FEW]:
        print_wrapped(f"{a}>{b}: {sample.status}: {sample.why}")


def _asymmetry(one: Matrix) -> None:
    """Where the two directions of a pair differ."""
    found = asymmetries(one.values, one.better)
    if not found:
        return
    different = {better: share for better, share in found.items() if share > ASYMMETRIC}
    text = f"directions differ by {per_cent(median(found.values()))} in the median"
    if different:
        text += f", {count(len(different), 'pair')} by more than {per_cent(ASYMMETRIC)}"
    print_wrapped(text)
    for better, share in list(different.items())[:FEW]:
        worse = better[::-1]
        both = f"{'>'.join(better)} {_value(one.values[better], one.unit)}, {'>'.join(worse)}"
        print_wrapped(f"{both} {one.values[worse]:.4g}: {per_cent(share)} apart")


def _value(value: float, unit: str) -> str:
    return with_unit(f"{value:.4g}", unit)


def _natural(node: str) -> tuple[str, int, str]:
    """n2 before n10."""
    stem = node.rstrip("0123456789")
    return stem, int(node[len(stem) :] or 0), node


COLOURS = {Grade.CRITICAL: "bold red", Grade.WARN: "yellow", Grade.GOOD: "green", Grade.NONE: ""}
DAYS = 7  # that fit next to each other; of more the newest are shown
PAIRS = 40  # that are shown, the worst first
MAX_PAIRS_NAMED = 8  # in the last line


def _days(site: Site, found: Sequence[Sample], metric: str) -> list[PairDay]:
    """Each day of each pair."""
    unit = day_unit(site.catalogue[metric])
    return [
        PairDay(
            *(*pair, f"{day}", unit, cell.highest, cell.lowest, cell.average, cell.errors),
            *(cell.grades.warn, cell.grades.critical),
        )
        for pair, days in by_day(site, found, metric).items()
        for day, cell in days.items()
    ]


def _findings(metric: str, matrices: Sequence[Matrix], days: Sequence[PairDay]) -> list[Finding]:
    """Why pairs are bad or have no value; the failures and the slow days of each pair."""
    found = [why for one in matrices for why in made.findings(one)]
    base = Finding(Kind.SLOW_DAY, check=metric.partition(".")[0], metric=metric)
    for one in days:
        here = replace(base, subject=f"{one.from_}>{one.to}", since=one.day)
        found += [replace(here, kind=Kind.NO_VALUE, status=status) for status in one.errors]
        if one.average is not None and one.critical is not None and one.slow:
            value, bound = f"{float(one.average):.1f}", f"{float(one.critical):g} {one.unit}"
            found.append(replace(here, value=value, unit=one.unit, bound=bound))
    return found


def _show_days(title: str, metric: str, days: Sequence[PairDay]) -> str:
    """A row a pair, the worst first; what is not shown. Returns the answer."""
    pairs: dict[Pair, dict[str, PairDay]] = {}
    for one in days:
        pairs.setdefault((one.from_, one.to), {})[one.day] = one
    bad = {pair: sum(day.bad for day in of_pair.values()) for pair, of_pair in pairs.items()}
    dates = sorted({one.day for one in days})
    ranked = sorted(pairs, key=lambda pair: (-bad[pair], pair))
    rows = [
        (" > ".join(pair), *(_day_cell(pairs[pair].get(day)) for day in dates[-DAYS:]))
        for pair in ranked[:PAIRS]
    ]
    columns = ["from > to", *dates[-DAYS:]]
    head = f"{title}: {metric}, {days[0].unit}, high low average by day (UTC)"
    print_table(table(columns, rows, head, whole=columns))
    print_wrapped(*_notes(days))
    left_out = ("older day", len(dates) - DAYS), ("better pair", len(pairs) - PAIRS)
    for what, number in left_out:
        if number > 0:
            print_wrapped(f"{count(number, what)} not shown, see --json")
    named = [f"{a}>{b}" for a, b in ranked if bad[a, b]]
    # Without a threshold nothing is known to be slow.
    was = "was slow or failed" if any(day.critical is not None for day in days) else "failed"
    if not named:
        return f"{metric}: none of {len(pairs)} pairs {was} on any day"
    more = f" and {len(named) - MAX_PAIRS_NAMED} more" if len(named) > MAX_PAIRS_NAMED else ""
    names = ", ".join(named[:MAX_PAIRS_NAMED])
    return f"{metric}: {was.removeprefix('was ')} on some day: {names}{more}"


def _day_cell(day: PairDay | None) -> Text:
    """High, low and average, each in the colour of its class; a failure instead of the lowest."""
    if day is None:
        return Text("")
    error = next(iter(day.errors), "")
    if day.average is None:
        return Text(f"{error} {error} {NONE}", style="magenta")
    text = Text()
    for value in (day.highest, None if error else day.lowest, day.average):
        if value is None:
            text.append(f"{error} ", style="magenta")
        else:
            grade = day.grades.grade(value)
            text.append(f"{float(value):.1f}{grade.sign} ", style=COLOURS[grade])
    return text


def _notes(days: Sequence[PairDay]) -> Iterator[str]:
    """How many days are in which class, and how often what failed."""
    for grades in dict.fromkeys(day.grades for day in days):
        found = Counter(grades.grade(day.average) for day in days if day.grades == grades)
        counts = Counter({grades.words(one): number for one, number in found.items() if one})
        if grades.legend:
            yield f"{grades.legend}; days: {_most(counts)}"
    if errors := sum((Counter(day.errors) for day in days), Counter[str]()):
        yield f"failures: {_most(errors)}"


def _most(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())
