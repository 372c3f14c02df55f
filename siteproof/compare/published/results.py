"""What others have published of a system, as tables: one title, columns, rows and a note each.

From the samples that `siteproof import` made; nothing here was measured by us.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from siteproof.compare.published import comparisons, judging, listing, ratios
from siteproof.compare.published.judging import Judged
from siteproof.compare.published.table_cells import Table
from siteproof.record import samples
from siteproof.record.samples import PUBLISHED, Sample
from siteproof.sites import Site

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
    return judging.judge(site, [*published, *comparisons.worked_out(site, published)])


def tables(site: Site, found: Iterable[Sample]) -> list[Table]:
    """All tables that these samples fill; measured samples are ignored."""
    published = [s for s in found if s.header.mode == PUBLISHED]
    worked_out = comparisons.worked_out(site, published)
    against = judging.judge(site, [*published, *worked_out])
    shown = [
        judging.table(against) if against else None,
        comparisons.table(site, published),
        ratios.table(site, [*published, *worked_out]),
        listing.failures(published),
        listing.values(site, published, [one.sample for one in against]),
    ]
    return [table for table in shown if table is not None]
