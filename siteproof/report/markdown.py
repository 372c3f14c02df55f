"""A report as Markdown: the same sections, with a table in the place of each figure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from siteproof.report.sections import Figure, Numbering, Report, Section, Table, when

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")
_LIST = re.compile(r"^(\d+)([.)])(?=\s)|^([-+])(?=\s)")
_ADDRESS = re.compile(r"(?i)\b(https?|ftp|www)(?=[:.])|@")


def page(report: Report, now: datetime) -> str:
    """The page. now: when it is made."""
    numbers = Numbering(report)
    lines = [f"# {text(report.system)}: {report.summary.mark}", ""]
    shown = report.summary  # its numbers; the chapters have most of the rest
    cards = [
        (str(one.number), ", ".join(filter(None, (one.label, one.note)))) for one in shown.cards
    ]
    title = f"{shown.what}, {shown.when}, {shown.nodes}: {shown.counts}"
    first = Table(("number", "of what"), cards, "; ".join(shown.problems), ("number",), title)
    for table in (first, *shown.answers):
        lines += _table(table, numbers)
    for sentence in filter(None, (shown.sentence, shown.conditions)):
        lines += [text(sentence), ""]
    for step in shown.steps:
        words = f"  # {step.what}" if step.what else ""
        lines += [f"    {' '.join(step.command.split())}{words}", ""]
    for section in report.sections:
        lines += _section(section, numbers, 2)
    made = f"Made by Siteproof on {when(now)} from the samples below perflogs and the site's files."
    return "\n".join([*lines, "---", "", f"{made} Times are UTC.", ""])


def text(plain: str) -> str:
    """A text that Markdown shows as it is, in one line: no markup, no HTML, no link of its own."""
    plain = _SPECIAL.sub(r"\\\1", " ".join(plain.split()).replace("&", "&amp;"))
    plain = _ADDRESS.sub(lambda m: f"{m[0][:-1]}&#{ord(m[0][-1])};", plain)
    return _LIST.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", plain)


def _section(section: Section, numbers: Numbering, level: int) -> Iterator[str]:
    place = numbers.sections[section.name]
    yield from (_anchor(place.anchor), "")
    yield from (f"{'#' * min(level, 6)} {text(place.label)}", "")
    if section.lead:
        yield from (text(section.lead), "")
    if section.points:
        yield from (*(f"- {text(point)}" for point in section.points), "")
    for table in section.filled:
        yield from _table(table, numbers)
    for figure in section.figures:
        yield from _figure(figure, numbers)
    for part in section.sections:
        yield from _section(part, numbers, level + 1)


def _figure(figure: Figure, numbers: Numbering) -> Iterator[str]:
    place = numbers.figures[figure.name]
    yield from (_anchor(place.anchor), "")
    yield from (f"**{place.label}.** {text(figure.title)}. {text(figure.caption)}", "")
    yield from _table(figure.table, numbers)


def _table(table: Table, numbers: Numbering) -> Iterator[str]:
    table = numbers.shown(table)
    if table.title:
        yield from (f"{_anchor(table.name)}*{text(table.title)}*", "")
    if table.rows:
        yield _row([text(column) for column in table.columns])
        yield _row(["--:" if column in table.numeric else ":--" for column in table.columns])
        for row, name in zip(table.rows, table.ids or [""] * len(table.rows), strict=True):
            first, *cells = [_cell(cell, numbers) for cell in row]
            yield _row([_anchor(name) + first, *cells])
        yield ""
    if table.note:
        yield from (text(table.note), "")


def _anchor(name: str) -> str:
    return f'<a id="{name}"></a>' if name else ""


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: str, numbers: Numbering) -> str:
    links = [f"[{text(place.label)}](#{place.anchor})" for place in numbers.refer(cell)]
    return ", ".join(links) or text(cell)
