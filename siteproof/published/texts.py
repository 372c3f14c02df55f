"""What others state in words: how a system is described and set, and what they claim of it."""

from __future__ import annotations

from collections.abc import Iterable

from siteproof import units
from siteproof.published.figures import Stated, figure, when
from siteproof.record.samples import Sample

TITLES = {
    "description": ("Published description", "field"),
    "parameter": ("Published settings of hosts", "parameter"),
    "claim": ("Published claims without a figure", "about"),
}


def tables(samples: Iterable[Sample]) -> list[Stated]:
    """Description, settings and claims, as far as there are any."""
    held: dict[str, list[Sample]] = {}
    for sample in samples:
        check, _, kind = sample.metric.partition(".")
        if sample.status == "ok" and units.kind(sample.unit) == "text" and check == "Stated":
            held.setdefault(kind, []).append(sample)
    return [_table(kind, held[kind]) for kind in TITLES if kind in held]


def _table(kind: str, samples: list[Sample]) -> Stated:
    title, key = TITLES[kind]
    with_nodes = any(s.node for s in samples)
    rows = [
        ((s.node,) if with_nodes else ()) + (s.own_conditions.get(key, ""), figure(s), when(s))
        for s in samples
    ]
    columns = (("node",) if with_nodes else ()) + (key, "as stated", "date")
    return Stated(title, columns, rows, "As printed; nothing of it was measured here.")
