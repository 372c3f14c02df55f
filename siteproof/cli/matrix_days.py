"""`siteproof matrix --daily`: the days of each pair, as in seed 003's matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from fractions import Fraction

from rich.console import Console
from rich.table import Table
from rich.text import Text

from siteproof.analysis.daily import HIGH, LOW, NONE, Cell, rate_class
from siteproof.analysis.matrix import Pair
from siteproof.errors import ExitCode
from siteproof.matrix import by_day, day_unit
from siteproof.samples import Sample
from siteproof.sites import Site

COLOURS = {"-": "bold red", "o": "yellow", "+": "green", "": ""}
DAYS = 7  # that fit beside each other; of more the newest are shown
PAIRS = 40  # that are shown, the worst first
NAMED = 8  # pairs that the last line names


def show(
    console: Console, title: str, site: Site, found: Sequence[Sample], metric: str
) -> ExitCode:
    """Print the days and answer whether a pair was slow or failed on any of them."""
    unit = day_unit(site.catalogue[metric])
    rates = unit == "MB/s"
    days = by_day(site, found, metric)
    dates = sorted({day for held in days.values() for day in held})
    bad = {pair: _worst(held, rates) for pair, held in days.items()}
    table = Table(
        title=f"{title}: {metric}, {unit}, high low average by day (UTC)", title_justify="left"
    )
    table.add_column("from > to", no_wrap=True)
    for day in dates[-DAYS:]:
        table.add_column(str(day), no_wrap=True)
    ranked = sorted(days, key=lambda pair: (-bad[pair], pair))
    for pair in ranked[:PAIRS]:
        table.add_row(
            Text(f"{pair[0]} > {pair[1]}"),
            *(_cell(days[pair].get(day), rates) for day in dates[-DAYS:]),
        )
    console.print(table)
    for text in _notes(days, dates, rates):
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    told = _answer(metric, [pair for pair in ranked if bad[pair]], len(days), rates)
    console.print(told, markup=False, highlight=False, soft_wrap=True)
    return ExitCode.FAIL if any(bad.values()) else ExitCode.PASS


def _mark(value: Fraction, rates: bool) -> str:
    """The class of a rate in a character, as colours alone tell not everybody."""
    if not rates:
        return ""
    return "-" if value < LOW else "o" if value <= HIGH else "+"


def _cell(cell: Cell | None, rates: bool) -> Text:
    """High, low and average, each in the colour of its class; a failure instead of the lowest."""
    if cell is None:
        return Text("")
    if cell.average is None:
        return Text(f"{cell.error} {cell.error} {NONE}", style="magenta")
    text = Text()
    for value in (cell.highest, None if cell.error else cell.lowest, cell.average):
        if value is None:
            text.append(f"{cell.error} ", style="magenta")
        else:
            mark = _mark(value, rates)
            text.append(f"{float(value):.1f}{mark} ", style=COLOURS[mark])
    return text


def _worst(days: dict[date, Cell], rates: bool) -> int:
    """On how many days a pair failed or was slow on the average."""
    return sum(
        bool(c.errors) or c.average is None or rates and c.average < LOW for c in days.values()
    )


def _notes(days: dict[Pair, dict[date, Cell]], dates: Sequence[date], rates: bool) -> list[str]:
    cells = [cell for held in days.values() for cell in held.values()]
    told = []
    if rates:
        classes = Counter(rate_class(c.average) for c in cells if c.average is not None)
        told.append(
            "- below 25, o 25 to 50, + above 50 MB/s; days: "
            + ", ".join(f"{count} {name}" for name, count in classes.most_common())
        )
    errors: Counter[str] = Counter()
    for cell in cells:
        errors.update(cell.errors)
    if errors:
        told.append("failures: " + ", ".join(f"{n} {name}" for name, n in errors.most_common()))
    if len(dates) > DAYS:
        told.append(f"{len(dates) - DAYS} older days are left out; --since chooses")
    if len(days) > PAIRS:
        told.append(f"{len(days) - PAIRS} better pairs are left out")
    return told


def _answer(metric: str, bad: Sequence[Pair], count: int, rates: bool) -> str:
    slow = f"was below {LOW} MB/s or failed" if rates else "failed"
    if not bad:
        return f"{metric}: none of {count} pairs {slow} on any day"
    names = [f"{a}>{b}" for a, b in bad[:NAMED]]
    more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
    return f"{metric}: {slow.removeprefix('was ')} on some day: {', '.join(names)}{more}"
