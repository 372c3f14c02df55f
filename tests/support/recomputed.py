"""What recompute.py finds of the values that a page carries."""

from __future__ import annotations

import contextlib
import csv
import io
from datetime import UTC, datetime
from pathlib import Path

from siteproof.report import html, recompute, sheet, value_tables
from siteproof.report.chapters import criteria
from siteproof.report.material import Material
from siteproof.report.sections import Report
from siteproof.report.summary import Summary, begin, contract_lines


def texts(judged, perflogs=Path("nowhere")):
    """The tables of a judgement, as CSV."""
    material = Material(judged, perflogs, datetime.now(UTC))
    rows = value_tables.Tables(material).rows()
    return {
        name: value_tables.as_csv(value_tables.COLUMNS[name], found) for name, found in rows.items()
    }


def page(judged, perflogs=Path("nowhere")):
    """The parts of a page that say what the tables say: first screen, criteria, sheet, tables."""
    material = Material(judged, perflogs, datetime.now(UTC))
    mark, counts = begin.mark(material), criteria.counts(material)
    lines, note = contract_lines.lines(material)
    first = Summary(judged.chosen, "now", "1 node", "", mark, counts, [], lines, note)
    sections = [criteria.chapter(material), sheet.section(material)]
    made = Report("here", "", [], first, sections, value_tables.attached(material))
    return html.page(made, material.now)


def again(page):
    """How much differs, and what was printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        differing = recompute.recompute(page)
    return differing, out.getvalue()


def must_agree(judged, perflogs=Path("nowhere")):
    """Raises AssertionError where anything that the page states differs."""
    differing, printed = again(page(judged, perflogs))
    assert not differing, printed


def changed(found, table, column, change, where=lambda _row: True):
    """The tables with another value in one column; None if that changes nothing."""
    rows = list(csv.DictReader(io.StringIO(found[table], newline="")))
    new = [{**row, column: change(row[column]) if where(row) else row[column]} for row in rows]
    if new == rows:
        return None
    columns = value_tables.COLUMNS[table]
    lines = ([row[name] for name in columns] for row in new)
    out = io.StringIO()
    csv.writer(out).writerows([columns, *lines])
    return {**found, table: out.getvalue()}
