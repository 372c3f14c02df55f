"""What recompute.py finds of the values that a page carries."""

from __future__ import annotations

import contextlib
import hashlib
import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import escape

from siteproof.report import brief, html, recompute, value_tables
from siteproof.report.chapters import criteria, samples
from siteproof.report.material import Material
from siteproof.report.sections import Attached, Report
from siteproof.report.summary import Summary, begin
from siteproof.wording.verdicts import numbers


def page(judged, perflogs=Path("nowhere")):
    """The parts of a page that say what the tables say: first screen, criteria, sheet, jobs."""
    material = Material(judged, perflogs, datetime.now(UTC))
    mark, counts = brief.mark(material), numbers(judged.verdicts)
    shown = [begin.not_met(material)]
    first = Summary(judged.chosen, "now", "1 node", "", mark, counts, answers=shown)
    sections = [criteria.chapter(material)]
    if values := samples.chapter(material):
        sections.append(replace(values, tables=values.tables[:1]))  # the jobs, as those have sums
    made = Report("here", first, sections, value_tables.attached(material))
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


def rows_of(page, table):
    """The rows of a table that a page carries."""
    return recompute.rows_of(recompute.Page(page).files, table)


def changed(page, table, column, change, where=lambda _row: True):
    """The page with another value in one column of a table, and with the sum of that table.

    None if that changes nothing; a change to None takes the row away.
    """
    text, rows = recompute.Page(page).files[table], rows_of(page, table)
    new = [{**row, column: change(row[column])} if where(row) else row for row in rows]
    if new == rows:
        return None
    columns = value_tables.COLUMNS[table]
    lines = [[row[name] for name in columns] for row in new if row[column] is not None]
    return forged(page, table, text, value_tables.as_csv(columns, lines))


def forged(page, table, old, new):
    """The page with another text of a table, and its sum."""
    for made in (address, digest):
        assert made(table, old) in page
        page = page.replace(made(table, old), made(table, new))
    return page


def address(table, text):
    """What a page carries of a table."""
    return str(escape(html.address(Attached(f"{table}.csv", text, ""))[1]))


def digest(_table, text):
    """Its sum on the acceptance sheet, with the places where a line may break."""
    return str(html.breakable(hashlib.sha256(text.encode()).hexdigest()))
