"""What others have published about the system; none of it was measured by this suite."""

from __future__ import annotations

from collections.abc import Sequence

from siteproof.compare.published import ratios, results
from siteproof.record.samples import Sample
from siteproof.report.material import Material
from siteproof.report.sections import Section, Table, few
from siteproof.units import count

MAX_SOURCES = 4


def chapter(material: Material) -> Section | None:
    """The tables of the imported values; None if none were imported."""
    tables = results.tables(material.site, material.published)
    found = [
        Table(t.columns, t.rows, t.note, title=t.title, folded=t.title == results.OTHER)
        for t in tables
        if t.rows
    ]
    if not found:
        return None
    lead = f"{_stated(material.published)}; nothing here was measured by this suite."
    return Section("results", "Published results", lead, found)


def _stated(found: Sequence[Sample]) -> str:
    """How many values others have published, of which days, and in which documents."""
    order = sorted(found, key=lambda s: s.header.time)
    first, last = ratios.when(order[0]), ratios.when(order[-1])
    days = dict.fromkeys((first.partition("/")[0], last.rpartition("/")[2]))
    sources = {
        source.partition(", ")[0]
        for s in found
        for source in s.header.provenance.get("source", "").split("; ")
    } - {""}
    number = count(len(found), "value or text", "values and texts")
    by = few(sorted(sources), MAX_SOURCES, "; ") or "no source given"
    return f"{number} of {' to '.join(days)}, by {by}"
