"""Values that cannot be right (answers/implausible.py) are in no line of a history.

The store keeps them as they were printed. It names the jobs that may have one, and these are judged
by the rule of the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteproof.answers import implausible
from siteproof.record import samples
from siteproof.record.samples import IMPLAUSIBLE
from siteproof.sites import Site

if TYPE_CHECKING:
    from siteproof.history import History

TABLE = "wrong_values"
KEYS = "run, node, metric, trial, dims"  # of a value that is in it
_KINDS = dict.fromkeys(("file", "node", "metric", "dims"), "VARCHAR") | {"trial": "INTEGER"}


def find(site: Site, h: History) -> None:
    """Make the table of all of them in the history, if it is not there yet."""
    from siteproof.history import (
        tables,
        values,  # DuckDB takes long to import
    )

    if h.sql("SELECT 1 FROM duckdb_tables() WHERE table_name = $name", {"name": TABLE}):
        return
    found = [
        (file, sample)
        for file in sorted(values.wrong(site, h))
        for sample in implausible.checked(site, samples.read(h.perflogs / file))
        if sample.status == IMPLAUSIBLE
    ]
    kept: dict[str, list[str] | list[int]] = {
        "file": [file for file, _ in found],
        "node": [sample.node for _, sample in found],
        "metric": [sample.metric for _, sample in found],
        "dims": [tables.canonical(sample.dims) for _, sample in found],
        "trial": [sample.trial for _, sample in found],
    }
    tables.make(h.connection, f"{TABLE}_of_files", _KINDS, kept)
    h.sql(
        f"CREATE TEMP TABLE {TABLE} AS "
        f"SELECT {KEYS} FROM {TABLE}_of_files JOIN live_runs USING (file)"
    )
