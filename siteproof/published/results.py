"""What others have published of a system, as tables: one title, columns, rows and a note each.

From the samples that `siteproof import` made; nothing here was measured by us.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from siteproof.published import (
    host_pairs,
    judging,
    landmarks,
    modes,
    retention,
    side_by_side,
    texts,
    transfers,
)
from siteproof.published.figures import Stated
from siteproof.published.judging import Judged
from siteproof.record import samples
from siteproof.record.samples import PUBLISHED, Sample
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
    worked_out = modes.derived(modes.modes(site, published))
    return judging.judge(site, [*published, *worked_out])


def tables(site: Site, found: Iterable[Sample]) -> list[Stated]:
    """All tables that these samples fill; others than published ones are left aside."""
    published = [s for s in found if s.header.mode == PUBLISHED]
    pairs = host_pairs.rows(published)
    days = transfers.cells(published)
    against = judged(site, published)
    told = [
        judging.table(against) if against else None,
        side_by_side.tuning(published),
        judging.units_table(site, published),
        side_by_side.unlike(published),
        landmarks.table(site, published),
        retention.table(site, published),
        retention.of_link(site, published),
        modes.table(site, modes.modes(site, published), published),
        host_pairs.matrix(pairs),
        host_pairs.shares(pairs),
        host_pairs.directions(site, pairs),
        host_pairs.asymmetry(pairs),
        host_pairs.tools(pairs),
        transfers.matrix(days),
        transfers.failures(days),
        side_by_side.of_serial(published),
        side_by_side.rest(published, [one.sample for one in against]),
        *texts.tables(published),
    ]
    return [one for one in told if one is not None]
