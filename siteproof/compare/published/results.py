"""What others have published of a system, as tables: one title, columns, rows and a note each.

From the samples that `siteproof import` made; nothing here was measured by us.

Figures that others have published, as samples: one file a campaign, date and check.

They are marked by their mode, `published`, and by the condition of the same name: the kind of the
value. They can show that a criterion is missed, never that one is met
(answers/published_values.py).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from itertools import chain, count
from pathlib import Path

from siteproof import files, sites, units
from siteproof.answers import published_values as published
from siteproof.answers.published_values import Outcome
from siteproof.compare.published import ratios
from siteproof.compare.published.ratios import (
    Table,
    is_number,
    name,
    number,
    pair,
    shown,
    shown_all,
    statistic,
    when,
)
from siteproof.errors import UserError, UserErrors
from siteproof.record import samples
from siteproof.record.pair_units import LINK, PEER, grouped
from siteproof.record.samples import PUBLISHED, Header, Sample
from siteproof.sites import Criterion, Site, site_tables
from siteproof.sites.lint import Around, reference
from siteproof.sites.promise import SIGNS
from siteproof.sites.schema import yamlfile
from siteproof.sites.schema.yamlfile import Document
from siteproof.sites.site import SYSTEM
from siteproof.sites.site_tables import Published, period
from siteproof.units import convert, round_to

__all__ = ["Table", "judged", "read", "tables"]


def read(perflogs: Path, system: str) -> list[Sample]:
    """The published samples of a system, the oldest file first. Raises UserError."""
    return [
        sample
        for path in samples.files(perflogs, system)
        if path.parent.name == PUBLISHED
        for sample in samples.read(path)
    ]


def judged(site: Site, found: Iterable[Sample]) -> list[Judged]:
    """Every published or worked out value with every criterion that covers it."""
    published = [s for s in found if s.header.mode == PUBLISHED]
    return judge(site, [*published, *ratios.worked_out(site, published)])


def tables(site: Site, found: Iterable[Sample]) -> list[Table]:
    """All tables that these samples fill; measured samples are ignored."""
    published = [s for s in found if s.header.mode == PUBLISHED]
    worked_out = ratios.worked_out(site, published)
    against = judge(site, [*published, *worked_out])
    shown = [
        against_criteria(against) if against else None,
        ratios.differences(site, published),
        ratios.table(site, [*published, *worked_out]),
        failed(published),
        other_values(site, published, [one.sample for one in against]),
    ]
    return [table for table in shown if table is not None]


class Answer(StrEnum):
    """Whether a value keeps a criterion; the worst first."""

    MISSES = "misses"
    OPEN = "undecided"
    KEEPS = "keeps"


SINGLE = "one value"
DESCRIBED = "Inventory."
BINARY = {"MB": "MiB", "GB": "GiB", "TB": "TiB", "PB": "PiB", "kB": "KiB"}


@dataclass(frozen=True)
class Judged:
    """A published value and a criterion of its metric."""

    sample: Sample
    criterion_id: str
    criterion: Criterion
    outcome: Outcome
    other: Outcome | None  # the same digits in the unit that the tool itself prints
    other_unit: str = ""

    @property
    def answer(self) -> Answer:
        """Whether the value keeps the criterion."""
        if self.outcome.keeps is None:
            return Answer.OPEN
        return Answer.KEEPS if self.outcome.keeps or self.as_printed else Answer.MISSES

    @property
    def as_printed(self) -> str:
        """The unit in which a total is the promised one, rounded to the printed digits; or nothing.

        40 TB of memory are 40960 GiB: memory is counted in powers of 1024, whatever is printed.
        """
        bound, digits = self.criterion.bound, self.sample.number
        if self.criterion.kind != "equals" or not bound or units.kind(self.sample.unit) != "size":
            return ""
        step = Fraction(10) ** int(digits.as_tuple().exponent)
        for unit in (self.sample.unit, self.other_unit):
            if unit and round_to(bound.quantity.to(unit), step) == Fraction(digits):
                return unit
        return ""


def other_unit(site: Site, sample: Sample) -> str:
    """What the tool prints where the source prints its decimal name: MiB/s for MB/s; or nothing."""
    metric = site.catalogue.get(sample.metric)
    size, slash, rest = sample.unit.partition("/")
    binary = BINARY.get(size, "") + slash + rest
    own = metric.unit.partition("/")[0] if metric else ""
    return binary if size in BINARY and own in BINARY.values() else ""


def judge(site: Site, samples: Iterable[Sample]) -> list[Judged]:
    """Each published value with each criterion that covers it; what misses comes first."""
    of_metric = grouped((sample.metric, sample) for sample in samples if is_number(sample))
    found = []
    for key, criterion in site.criteria.items():
        roles = {role: site.hardware_of(role) for role in site.roles_of(criterion)}
        facts = published.facts_of(roles)
        for sample in of_metric.get(criterion.metric, ()):
            outcome, unit = published.outcome(criterion, sample, facts), other_unit(site, sample)
            if outcome is not None:
                other = published.outcome(criterion, sample, facts, unit) if unit else None
                found.append(Judged(sample, key, criterion, outcome, other, unit))
    return sorted(found, key=_order)


def _order(one: Judged) -> tuple[object, ...]:
    """What misses first, and what the system does before what it is."""
    described = one.sample.metric.startswith(DESCRIBED)
    return list(Answer).index(one.answer), described, one.criterion_id, one.sample.header.time


def remarks(judged: Judged) -> list[str]:
    """What a reader must know of the comparison."""
    found = []
    sample, outcome, criterion = judged.sample, judged.outcome, judged.criterion
    if outcome.by_rounding:
        found.append(f"only by rounding to the {criterion.rounding_rule}")
    if not outcome.keeps and judged.as_printed:
        found.append(f"{sample.value} {judged.as_printed} is what the bound is, rounded as printed")
    elif judged.other and judged.other.keeps != outcome.keeps:
        exact = convert(sample.number, judged.other_unit, sample.unit)
        verb = "keep" if judged.other.keeps else "miss"
        found.append(
            f"read as {judged.other_unit} it would be {number(exact)} {sample.unit}, and {verb} it"
        )
    if outcome.keeps and not published.own(criterion, sample):
        found.append("per-node values not published")
    if outcome.not_stated:
        found.append(f"not stated: {', '.join(outcome.not_stated)}")
    return found


def against_criteria(judged: Sequence[Judged]) -> Table:
    """Each comparison with a criterion."""
    rows = [
        (
            j.answer.value,
            j.criterion_id,
            f"{statistic(j.sample)} {shown(j.sample)}".removeprefix(f"{SINGLE} "),
            f"{SIGNS[j.criterion.kind]} {j.criterion.bound}"
            + (f", {j.criterion.rounding_rule}" if j.criterion.step else ""),
            " ".join(filter(None, (when(j.sample), j.sample.header.campaign))),
            pair(j.sample) or j.sample.metric,
            "; ".join(remarks(j)),
        )
        for j in judged
    ]
    columns = ("answer", "criterion", "value", "bound", "date and campaign", "of", "remarks")
    note = (
        "A mean or maximum that misses shows that some node misses; one that keeps decides nothing "
        "where the values of each node, pair or instance are not published."
    )
    return Table("Published values against the criteria", columns, rows, note)


OTHER = "Other published values and texts"
OTHERS = ("metric", "value", "it is a", "date", "campaign", "in the tool's unit")


def other_values(site: Site, samples: Iterable[Sample], judged: Collection[Sample]) -> Table | None:
    """Every value and text that no criterion covers; ranges and trials in one line."""
    seen = {id(sample) for sample in judged}
    alike = grouped(
        ((name(sample), statistic(sample), when(sample), sample.header.campaign), sample)
        for sample in samples
        if id(sample) not in seen
    )
    rows = [
        (metric, shown_all(found), *others, in_tools_unit(site, found[0]))
        for (metric, *others), found in sorted(alike.items())
    ]
    note = (
        "No criterion of the site has a bound for them. Values of several statistics are not one "
        "series: a maximum after a mean is no rise. Where a source prints MB/s and the tool itself "
        "MiB/s, the last column is the value if the digits are the tool's."
    )
    return Table(OTHER, OTHERS, rows, note) if rows else None


def in_tools_unit(site: Site, sample: Sample) -> str:
    """The value if its digits are in the unit that the tool prints; empty where that is the same.

    The Jetstream acceptance report prints MB/s in its tables and MiB/s in its figures.
    """
    unit = other_unit(site, sample)
    if not unit or not is_number(sample) or units.kind(sample.unit) != "rate":
        return ""
    exact = convert(sample.number, unit, sample.unit)
    more = 100 * (convert(1, unit, sample.unit) - 1)
    return f"{number(exact, 5)} {sample.unit}, +{float(more):.2f} %"


def failed(samples: Iterable[Sample]) -> Table | None:
    """How many results of each metric and place are values, and how many failed in which way."""
    found = grouped(((sample.metric, pair(sample)), sample.status) for sample in samples)
    statuses = sorted({status for own in found.values() for status in own} - {"ok"})
    rows = [
        (metric, place, *(str(own.count(status)) for status in ("ok", *statuses)))
        for (metric, place), own in sorted(found.items())
        if set(own) != {"ok"}
    ]
    columns = ("metric", "of", "values", *statuses)
    note = "A failure is not a value of zero. Status 'parse': the text has lost what was printed."
    return Table("Published failures", columns, rows, note) if rows else None


_BREAKS = re.compile(r"[^A-Za-z0-9_-]+")  # what no job's name has


class State(StrEnum):
    """What an import did with a file below perflogs; the value is what the command prints."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "unchanged"
    OBSOLETE = "no longer in the CSV, remove it by hand"


MADE = (State.NEW, State.CHANGED, State.SAME)


def read_published(path: Path, system: str = "") -> dict[int, Published]:
    """The figures of a file by their line, of one system or of all. Raises UserErrors."""
    document, rows = site_tables.read(path, Published)
    by_system: dict[str, dict[int, Published]] = {}
    for line, row in rows.items():
        reference(document, (line, "system"), row.system, "system", sites.names())
        by_system.setdefault(row.system, {})[line] = row
    if system:
        rows = by_system.get(system, {})
        if not rows and not document.mistakes:
            document.add((), f"no value of {system}", sorted(by_system))
    elif not rows and not document.mistakes:
        document.add((), "no value", hint="Add a line below that of the columns")
    for system_of_site in by_system.keys() & set(sites.names()):
        _lint(document, by_system[system_of_site], system_of_site)
    if document.mistakes:
        raise UserErrors(document.sorted_mistakes())
    return rows


def _lint(document: Document, rows: dict[int, Published], name: str) -> None:
    site = sites.load(name)
    around = Around(site.catalogue, site.system, yamlfile.read(site.folder / SYSTEM))
    for line, row in rows.items():
        row.lint(document, line, around, rows.values())


def keep(path: Path, rows: Iterable[Published], perflogs: Path) -> tuple[int, dict[Path, State]]:
    """Write the figures of a file below perflogs; how many they are, and what became of each file.

    Raises OSError, UserError. Each file is written whole or not at all. An import that was cut
    short is completed by the next one, and one that has been done before changes nothing.
    """
    made = list(_samples(path, rows))
    for head, found in made:
        _refuse_twice(path, head, found, perflogs)
    done = {}
    for head, found in made:
        target = samples.path_of(perflogs, head)
        done[target] = _write(target, samples.dump(head, found), perflogs)
    obsolete = dict.fromkeys(_obsolete(path, done.keys()), State.OBSOLETE)
    return sum(len(found) for _, found in made), done | obsolete


def _write(target: Path, text: bytes, perflogs: Path) -> State:
    """Write a file, unless an earlier import has. Raises OSError, UserError."""
    state = State.NEW
    if files.exists(target):
        state = State.CHANGED
        if files.read(target, below=perflogs, limit=files.SAMPLES) == text:
            return State.SAME
    files.write(target, text, below=perflogs)
    return state


def _refuse_twice(path: Path, head: Header, found: Iterable[Sample], perflogs: Path) -> None:
    """A figure under two files' names would be two values, and one value is no repetition."""
    target = samples.path_of(perflogs, head)
    keys = {_key(sample) for sample in found}
    for file in sorted(set(target.parent.glob(f"{head.session}.{head.check}.*.jsonl")) - {target}):
        for one in samples.read(file):
            if one.header.mode == PUBLISHED and _key(one) in keys:
                what = f"{one.metric} of {head.campaign or head.time} was imported before, from"
                raise UserError(
                    path,
                    f"{what} {one.header.provenance.get('imported')}",
                    hint=f"Import the file under that name, or remove {file}",
                )


def _key(sample: Sample) -> tuple[object, ...]:
    _, _, *place = sample.key  # without session and job
    conditions = tuple(sorted(sample.own_conditions.items()))
    return (*place, sample.value, sample.unit, sample.status, conditions)


def _samples(path: Path, rows: Iterable[Published]) -> Iterator[tuple[Header, list[Sample]]]:
    """Each file's header and samples."""
    files: dict[tuple[str, str, str, str], list[Published]] = {}
    order: dict[tuple[str, date], dict[str, int]] = {}  # a day's campaigns, as the file has them
    for row in rows:
        check = row.metric.partition(".")[0]
        files.setdefault((row.system, row.campaign, row.date, check), []).append(row)
        day = order.setdefault((row.system, period(row.date)[1]), {})
        day.setdefault(row.campaign, len(day))
    for (system, campaign, days, check), found in files.items():
        after = order[system, period(days)[1]][campaign]
        head = _header(path, check, found, timedelta(seconds=after))
        taken, free = defaultdict[object, set[int]](set), defaultdict[object, Iterator[int]](count)
        kept = []
        for row in sorted(found, key=lambda row: row.trial is None):  # those with a place first
            for sample in _of_row(head, row):
                trial = _trial(row.trial, taken[sample.key], free[sample.key])
                kept.append(replace(sample, trial=trial))
        yield head, kept


def _trial(stated: int | None, taken: set[int], free: Iterator[int]) -> int:
    """The trial that the source gives, or the next one, as two figures may not share one."""
    wanted = [stated - 1] if stated else []
    trial = next(trial for trial in chain(wanted, free) if trial not in taken)
    taken.add(trial)
    return trial


def _header(path: Path, check: str, rows: Sequence[Published], after: timedelta) -> Header:
    """What a file's samples share. after: how long after midnight, to keep the file's order."""
    first, last = period(rows[0].date)
    campaign = rows[0].campaign
    provenance = {
        "imported": path.name,
        "date": rows[0].date,
        "source": "; ".join(dict.fromkeys(r.source for r in rows)),
    }
    return Header(
        session=f"{first:%Y%m%d}T000000Z-{campaign or PUBLISHED}",
        system=rows[0].system,
        partition=PUBLISHED,
        environment=PUBLISHED,
        check=check,
        job=_BREAKS.sub("-", path.stem),
        time=(datetime.combine(last, time.min, UTC) + after).isoformat(),
        mode=PUBLISHED,
        campaign=campaign,
        provenance={key: text for key, text in provenance.items() if text},
    )


def _of_row(head: Header, row: Published) -> Iterator[Sample]:
    """A figure is one sample, a range are two: its ends; a failure is one without a value."""
    conditions, dims = dict(row.conditions), {}
    if row.peer:
        dims[PEER] = row.peer
    elif not row.node and LINK in conditions:  # of the link as a whole, as our own samples say it
        dims[LINK] = conditions.pop(LINK)
    bare = Sample(
        head,
        row.node,
        row.metric,
        unit=row.unit,
        dims=dims,
        own_conditions={**conditions, PUBLISHED: row.statistic},
        why=row.note,
    )
    if row.status != "ok":
        printed_as = f"printed as '{row.value}'" if row.value else ""
        why = "; ".join(filter(None, (printed_as, row.note)))
        yield replace(bare, unit="", status=row.status, why=why)
    elif units.kind(row.unit) == "text":
        yield replace(bare, value=row.value)
    else:
        for digits, stated in site_tables.parts(row.value):
            own = {**bare.own_conditions, **({site_tables.STATED: stated} if stated else {})}
            yield replace(bare, value=Decimal(digits), own_conditions=own)


def _obsolete(path: Path, kept: Set[Path]) -> list[Path]:
    """Files of an earlier import of such a file, which no line of it yields any more.

    kept: those that it yields, in the systems that it covers.
    """
    near = {file for target in kept for file in target.parent.glob("[!.]*.jsonl")}
    return sorted(
        file
        for file in near - kept
        if any(s.header.provenance.get("imported") == path.name for s in samples.read(file)[:1])
    )
