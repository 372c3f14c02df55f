"""What others have published about the system; none of it was measured by this suite."""

from __future__ import annotations

from siteproof.published import results
from siteproof.record.samples import PUBLISHED
from siteproof.report.material import Material
from siteproof.report.sections import Section, Table, filled
from siteproof.units import count


def chapter(material: Material) -> Section | None:
    """The tables of the imported values; None if none were imported."""
    stated = material.sessions.of(lambda header: header.mode == PUBLISHED)
    tables = results.tables(material.site, stated)
    found = filled(*(Table(t.columns, t.rows, t.note, title=t.title) for t in tables))
    if not found:
        return None
    lead = (
        f"{count(len(stated), 'value or text', 'values and texts')} that others have published, in "
        f"{count(len(found), 'table')}; nothing here was measured by this suite."
    )
    return Section("results", "Published results", lead, found)
