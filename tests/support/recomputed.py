"""What recompute.py finds of the values that a page carries."""

from __future__ import annotations

import contextlib
import csv
import io
from datetime import UTC, datetime
from pathlib import Path

from siteproof.report import recompute, value_tables
from siteproof.report.material import Material


def texts(judged, perflogs=Path("nowhere")):
    """The tables of a judgement, as CSV."""
    material = Material(judged, perflogs, datetime.now(UTC))
    rows = value_tables.Tables(material).rows()
    return {
        name: value_tables.as_csv(value_tables.COLUMNS[name], found) for name, found in rows.items()
    }


def again(found, shown=None):
    """How many criteria differ, and what was printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        differing = recompute.recompute(found, shown or {})
    return differing, out.getvalue()


def must_agree(judged, perflogs=Path("nowhere")):
    """Raises AssertionError where the verdict, a count or a unit's verdict differs."""
    differing, printed = again(texts(judged, perflogs))
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
