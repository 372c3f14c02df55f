"""Values that cannot be right (answers/implausible.py) are in no line of a history.

The store keeps them as they were printed. It names the jobs that may have one, and these are judged
by the rule of the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from siteproof.answers import implausible
from siteproof.record import samples, series
from siteproof.record.pair_units import PEER
from siteproof.record.samples import IMPLAUSIBLE, Sample
from siteproof.sites import Site

if TYPE_CHECKING:
    from siteproof.history import History

TABLE = "wrong_values"
KEYS = "run, node, metric, trial, dims"  # of a value that is in it
_KINDS = dict.fromkeys(("file", "node", "metric", "dims"), "VARCHAR") | {"trial": "INTEGER"}
# One metric at one point: the peers of a job are put together.
_DOUBTFUL = f"""
    SELECT DISTINCT file FROM (
        SELECT run, max(base) AS most, min(base) AS least,
            any_value(CASE WHEN point = dims THEN of_nodes ELSE of_pairs END) AS highest
        FROM (SELECT run, metric, dims, value * factor AS base,
                  regexp_replace(dims, '"{PEER}":"[^"]*"', '') AS point
              FROM stored WHERE status = 'ok' AND isfinite(value))
        JOIN (VALUES {{limits}}) AS l(metric, of_nodes, of_pairs) USING (metric)
        GROUP BY run, metric, point, point = dims)
    JOIN live_runs USING (run) WHERE system = $system AND source = 'siteproof'
        AND (most > {implausible.FACTOR} * least OR most > highest)"""


def find(site: Site, h: History, metric: str) -> None:
    """Make the table of all of them in the history, or of those in jobs with a metric."""
    from siteproof.history import rows, tables  # DuckDB takes long to import

    found = list(_found(site, h, metric))
    kept: dict[str, list[str] | list[int]] = {
        "file": [file for file, _ in found],
        "node": [sample.node for _, sample in found],
        "metric": [sample.metric for _, sample in found],
        "dims": [rows.canonical(sample.dims) for _, sample in found],
        "trial": [sample.trial for _, sample in found],
    }
    tables.make(h.connection, f"{TABLE}_of_files", _KINDS, kept)
    h.sql(
        f"CREATE OR REPLACE TEMP TABLE {TABLE} AS "
        f"SELECT {KEYS} FROM {TABLE}_of_files JOIN live_runs USING (file)"
    )


def _found(site: Site, h: History, metric: str) -> Iterator[tuple[str, Sample]]:
    """Each with its file below perflogs."""
    check = metric.partition(".")[0]
    limits = [
        "('{}', '{}'::DOUBLE, '{}'::DOUBLE)".format(name, *implausible.lowest(site, name))
        for name in series.speeds(site)
        if check in ("", name.partition(".")[0])
    ]
    if not limits:
        return
    query = _DOUBTFUL.format(limits=", ".join(limits))
    for (file,) in h.sql(query, {"system": site.system.system}):
        of_job = implausible.checked(site, samples.read(h.perflogs / file))
        yield from ((file, sample) for sample in of_job if sample.status == IMPLAUSIBLE)
