"""What others have published of the system: nothing here was measured by this suite."""

from __future__ import annotations

from siteproof.published import results
from siteproof.record.samples import PUBLISHED
from siteproof.report.material import Material
from siteproof.report.sections import Section, Table
from siteproof.units import count


def chapter(material: Material) -> Section | None:
    """The tables of the imported figures; nothing, if none were imported."""
    stated = material.sessions.of(lambda header: header.mode == PUBLISHED)
    found = [
        Table(t.columns, t.rows, t.note, title=t.title)
        for t in results.tables(material.site, stated)
        if t.rows
    ]
    if not found:
        return None
    told = count(len(stated), "figure or text", "figures and texts")
    lead = (
        f"{told} that others have published, in "
        f"{count(len(found), 'table')}; nothing here was measured by this suite."
    )
    return Section("results", "Published results", lead, found)
