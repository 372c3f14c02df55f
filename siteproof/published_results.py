"""What others have published of a system, as tables: one title, columns, rows and a note each.

From the samples that `siteproof import` made; nothing here was measured by us.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from siteproof import (
    landmarks,
    published_changes,
    published_judged,
    published_modes,
    published_pairs,
    published_retention,
    published_transfers,
    published_words,
    samples,
)
from siteproof.analysis.verdict import PUBLISHED
from siteproof.published_figures import Stated
from siteproof.published_judged import Judged
from siteproof.samples import Sample
from siteproof.sites import Site

__all__ = ["Stated", "judged", "stated", "tables"]


def stated(perflogs: Path, system: str) -> list[Sample]:
    """The published samples of a system, the oldest file first. Raises UserError."""
    return [
        sample
        for path in samples.files(perflogs, system)
        if path.parent.name == PUBLISHED
        for sample in samples.read(path)
    ]


def judged(site: Site, found: Iterable[Sample]) -> list[Judged]:
    """Every published figure against every criterion that it speaks of."""
    published = [s for s in found if s.header.mode == PUBLISHED]
    worked_out = published_modes.derived(published_modes.modes(site, published))
    return published_judged.judge(site, [*published, *worked_out])


def tables(site: Site, found: Iterable[Sample]) -> list[Stated]:
    """All tables that these samples fill; others than published ones are left aside."""
    published = [s for s in found if s.header.mode == PUBLISHED]
    pairs = published_pairs.rows(published)
    days = published_transfers.cells(published)
    against = judged(site, published)
    told = [
        published_judged.table(against) if against else None,
        published_changes.tuning(published),
        published_judged.units_table(site, published),
        published_changes.unlike(published),
        landmarks.table(site, published),
        published_retention.table(site, published),
        published_retention.of_link(site, published),
        published_modes.table(site, published_modes.modes(site, published), published),
        published_pairs.matrix(pairs),
        published_pairs.shares(pairs),
        published_pairs.directions(site, pairs),
        published_pairs.asymmetry(pairs),
        published_pairs.tools(pairs),
        published_transfers.matrix(days),
        published_transfers.failures(days),
        published_changes.of_serial(published),
        published_changes.rest(published, [one.sample for one in against]),
        *published_words.tables(published),
    ]
    return [one for one in told if one is not None]
