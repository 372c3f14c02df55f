"""What others have published of a system, as tables: one title, columns, rows and a note each.

From the samples that `siteproof import` made; nothing here was measured by us.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from siteproof.analysis.verdict import PUBLISHED
from siteproof.samples import Sample
from siteproof.sites import Site


class Stated(NamedTuple):
    """One table. Each cell is a text; figures carry their unit there or in the column's name."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def tables(site: Site, samples: Iterable[Sample]) -> list[Stated]:
    """All tables that these samples fill; others than published ones are left aside."""
    stated = [s for s in samples if s.header.mode == PUBLISHED]
    return [_figures(stated)] if stated else []


def _figures(stated: Sequence[Sample]) -> Stated:
    rows = [
        (s.header.provenance.get("date", ""), s.metric, f"{s.value} {s.unit}",
         s.own_conditions.get(PUBLISHED, ""))
        for s in stated if s.status == "ok"
    ]
    return Stated("Published figures", ("date", "metric", "figure", "it is a"), rows, "")
