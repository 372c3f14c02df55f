"""Pairs day by day: high, low and average with their grades, what failed, and a year of each pair.

As the daily matrix of the ExTENCI Lustre-WAN project, which others have published, and as
`siteproof matrix METRIC --daily` prints it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import product

from siteproof.links import matrix, transfers
from siteproof.links.transfers import NONE, Cell, Grade, Pair
from siteproof.record.pair_units import link_of, of_pairs
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.report.chapters.matrix import headlines
from siteproof.report.figure import marked
from siteproof.report.material import Material
from siteproof.report.sections import Drawn, Marked, Section, Table
from siteproof.sites import Site
from siteproof.units import count

DAYS = 7  # that have a column, the newest
YEAR = 365  # days of a strip
MAX_ROWS = 40  # pairs of a table, the worst first
MAX_PAIRS, MAX_JOBS = 1000, 3000  # that are read: of more, `siteproof matrix` has them
LOOKS = {Grade.CRITICAL: "bad", Grade.WARN: "warn", Grade.GOOD: "good", Grade.NONE: "none"}
STRIP = {Grade.CRITICAL: "bad", Grade.WARN: "slow", Grade.GOOD: "ok", Grade.NONE: "ok"}
FAILED = "failed"
COUNTS = (*filter(None, Grade), FAILED)


@dataclass(frozen=True)
class Mesh:
    """The days of each pair of one quantity. command: prints them; empty for published ones."""

    title: str
    unit: str
    pairs: Mapping[Pair, Mapping[date, Cell]]
    command: str = ""


def chapter(material: Material) -> Section | None:
    """A table for each quantity and link that several days have, and for all transfers."""
    found = list(_measured(material))
    if pairs := transfers.published_days(material.site, material.published):
        found.append(Mesh("Transfers, as published", transfers.UNIT, pairs))
    if not found:
        return None
    every = [days.values() for one in found for days in one.pairs.values()]
    bad = sum(any(map(_is_bad, cells)) for cells in every)
    number = count(len(every), "pair")
    lead = f"{number} day by day (UTC); {bad} failed or were critical on some day."
    return Section("daily", "Pairs day by day", lead, [_table(one) for one in found])


def _measured(material: Material) -> Iterator[Mesh]:
    site, own = material.site, material.judged.samples
    names = list(headlines(site, {s.metric for s in own if of_pairs(s)}))
    of_year = _of_year(material, {name.partition(".")[0] for name in (*names, transfers.RATE)})
    moved = matrix.by_day(site, of_year, transfers.RATE)
    command = f"siteproof matrix {{}} --daily --system {material.system}"
    if moved:
        yield Mesh("Transfers", transfers.UNIT, moved, command.format(transfers.RATE))
    yield from _links(site, of_year, names, command)


def _links(
    site: Site, of_year: Sequence[Sample], names: Sequence[str], command: str
) -> Iterator[Mesh]:
    """Each metric over each link, where several days have it."""
    for name, link in product(names, site.system.links):
        here = [s for s in of_year if of_pairs(s) and link_of(s) in ("", link)]
        pairs = matrix.by_day(site, here, name)
        several = len({day for days in pairs.values() for day in days}) > 1
        if several and len(pairs) <= MAX_PAIRS:
            told = f"{command.format(name)} --link {link}"
            yield Mesh(f"{name} over {link}", matrix.day_unit(site.catalogue[name]), pairs, told)


def _of_year(material: Material, checks: set[str]) -> list[Sample]:
    """The samples of these checks, of a year before the newest job."""
    jobs = [h for h in material.sessions.headers if h.check in checks and h.mode != PUBLISHED]
    jobs = sorted(jobs, key=lambda job: job.time)[-MAX_JOBS:]
    if not jobs:
        return []
    first = datetime.fromisoformat(jobs[-1].time) - timedelta(days=YEAR)
    wanted = {id(job) for job in jobs if datetime.fromisoformat(job.time) >= first}
    return material.sessions.of(lambda job: id(job) in wanted)


def _is_bad(cell: Cell) -> bool:
    return bool(cell.errors) or cell.grade is Grade.CRITICAL


def _table(one: Mesh) -> Table:
    """A row a pair: the last days, then a strip and counts of all days of a year."""
    last = max(day for days in one.pairs.values() for day in days)
    known = sorted({day for days in one.pairs.values() for day in days})[-DAYS:]
    order = sorted(one.pairs, key=lambda p: (-sum(map(_is_bad, one.pairs[p].values())), p))
    rows = [_row(pair, one.pairs[pair], known, last) for pair in order]
    legends = {cell.grades.legend: None for days in one.pairs.values() for cell in days.values()}
    note = (
        f"High, low and average of a day, in {one.unit}. A failure is in the place of the lowest. "
        f"The strip has a bar for each of {YEAR} days to {last}: the higher, the worse."
    )
    note = " ".join([note, *(f"{legend}." for legend in legends if legend)])
    columns = ("from > to", *map(str, known), f"{YEAR} days", *COUNTS)
    return Table(
        columns, rows, note, numeric=COUNTS, title=one.title, most=MAX_ROWS, command=one.command
    )


def _row(
    pair: Pair, days: Mapping[date, Cell], known: Sequence[date], last: date
) -> tuple[str, ...]:
    grades = Counter(FAILED if cell.errors else str(cell.grade) for cell in days.values())
    counts = [str(grades[name]) if grades[name] else "-" for name in COUNTS]
    words = ", ".join(f"{number} {name or 'measured'}" for name, number in grades.items())
    bars = [""] * YEAR
    for day, cell in days.items():
        if (ago := (last - day).days) < YEAR:
            bars[-1 - ago] = FAILED if cell.errors else STRIP[cell.grade]
    name = " > ".join(pair)
    strip = Drawn(marked.year(f"{name}: {words}", bars), words)
    return (name, *(_cell(days.get(day)) for day in known), strip, *counts)


def _cell(cell: Cell | None) -> Marked:
    """High, low and average, each with the sign and look of its grade."""
    if cell is None:
        return Marked([])
    if cell.average is None:
        return Marked([(cell.error, "open"), (NONE, "open")])
    shown = (cell.highest, None if cell.error else cell.lowest, cell.average)
    parts = []
    for value in shown:
        grade = cell.grades.grade(value)
        text = (cell.error or "-") if value is None else f"{float(value):.1f}{grade.sign}"
        parts.append((text, "open" if value is None else LOOKS[grade]))
    return Marked(parts)
