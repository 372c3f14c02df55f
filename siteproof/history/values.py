"""The values of some jobs from the store, as columns, and the jobs whose files must be read.

The store keeps what was printed. A value that cannot be right (siteproof.answers.implausible), and
a program that is missing on some nodes of a job only, are failures, which the rows alone do not
show: `wrong` and `missing` name the jobs that may have one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from siteproof.answers import implausible
from siteproof.errors import UserError
from siteproof.history import History, open_history, tables, warn
from siteproof.record import series
from siteproof.record.pair_units import OF_GPU, PEER
from siteproof.record.samples import NOT_RUN, TOOL_MISSING, Header, Sample
from siteproof.record.value_table import NO_VALUES, NOBODY, ValueTable, in_unit
from siteproof.sites import Site

if TYPE_CHECKING:
    from siteproof.history import History


ANY_PEER = "|".join((PEER, *OF_GPU))
# One metric at one point: the peers of a job are put together, once its nodes are.
_WRONG = f"""
    SELECT DISTINCT file FROM (
        SELECT run, max(most) AS most, min(least) AS least,
            any_value(CASE WHEN pair THEN of_pairs ELSE of_nodes END) AS highest
        FROM (SELECT run, metric, dims, max(value * factor) AS most, min(value * factor) AS least,
                  contains(dims, '"{PEER}":') AS pair,
                  regexp_replace(dims, '"({ANY_PEER})":"[^"]*",?', '', 'g') AS point
              FROM stored WHERE status = 'ok' AND isfinite(value) GROUP BY run, metric, dims)
        JOIN (VALUES {{limits}}) AS l(metric, of_nodes, of_pairs) USING (metric)
        GROUP BY run, metric, point, pair)
    JOIN live_runs USING (run) WHERE system = $system AND source = 'siteproof'
        AND (most > {implausible.FACTOR} * least OR most > highest)"""
_WITHOUT_PROGRAM = f"""
    SELECT file FROM stored JOIN live_runs USING (run)
    WHERE system = $system AND source = 'siteproof' GROUP BY file
    HAVING bool_or(status = '{TOOL_MISSING}') AND bool_or(status NOT IN {NOT_RUN})"""


def wrong(site: Site, h: History) -> set[str]:
    """The files below perflogs of jobs that may have a value that cannot be right."""
    limits = [
        "('{}', '{}'::DOUBLE, '{}'::DOUBLE)".format(name, *implausible.lowest(site, name))
        for name in series.speeds(site)
    ]
    return _files(site, h, _WRONG.format(limits=", ".join(limits))) if limits else set()


def missing(site: Site, h: History) -> set[str]:
    """The files of jobs in which some nodes lack a program that others have run."""
    return _files(site, h, _WITHOUT_PROGRAM)


def _files(site: Site, h: History, query: str) -> set[str]:
    return {file for (file,) in h.sql(query, {"system": site.system.system})}


_PAIR = f"contains(dims, '\"{PEER}\":')"
_GOOD = "status = 'ok' AND kind <> 'text' AND node <> ''"
_JOBS = {"file": "VARCHAR"}
_METRICS = {"metric": "VARCHAR", "own_unit": "VARCHAR"}
# Within a file a series has one mode, so all conditions that decide are the same.
_KINDS = f"""
CREATE OR REPLACE TEMP TABLE kinds AS
SELECT row_number() OVER (ORDER BY file, series, unit, pair) - 1 AS number, *
FROM (SELECT file, series, unit, {_PAIR} AS pair, unit = own_unit AS is_own,
             min(metric) AS metric, min(dims) AS dims, min(conditions) AS conditions
      FROM samples JOIN jobs USING (file) JOIN metrics USING (metric)
      WHERE {_GOOD} GROUP BY file, series, unit, {_PAIR}, is_own)"""
_ROWS = f"""
CREATE OR REPLACE TEMP VIEW rows AS
SELECT number::INTEGER AS number, is_own, node, value, s.digits,
       CASE WHEN pair THEN s.dims ->> '$.{PEER}' END AS peer
FROM (SELECT *, {_PAIR} AS pair FROM samples WHERE {_GOOD}) s
JOIN kinds USING (file, series, unit, pair)"""
_NAMES = """
CREATE OR REPLACE TEMP TABLE names AS
SELECT name, (row_number() OVER (ORDER BY name) - 1)::INTEGER AS place
FROM (SELECT node AS name FROM rows UNION SELECT peer FROM rows WHERE peer IS NOT NULL)"""
_COLUMNS = f"""
SELECT number, n.place AS node, coalesce(p.place, {NOBODY})::INTEGER AS peer, {{value}} AS value
FROM rows JOIN names n ON n.name = node LEFT JOIN names p ON p.name = peer
WHERE {{which}}"""


_FAILED = """
SELECT file, node, metric, status, why, trial, dims FROM samples JOIN jobs USING (file)
WHERE status <> 'ok'"""


def failures(
    perflogs: Path, site: Site, jobs: Mapping[str, Header]
) -> tuple[list[Sample], set[str]]:
    """The samples without a value of some jobs, and the files of these; as `read`."""
    try:
        with open_history(perflogs, [site.system.system], only=jobs.keys()) as history:
            there = _those_there(history, site, jobs)
            found = [
                Sample(jobs[file], node, metric, None, "", status, why, trial, json.loads(dims))
                for file, node, metric, status, why, trial, dims in history.sql(_FAILED)
            ]
            return found, there
    except (UserError, OSError, duckdb.Error) as error:
        warn(f"the history is not used: {str(error).splitlines()[0]}")
        return [], set()


def _those_there(history: History, site: Site, jobs: Mapping[str, Header]) -> set[str]:
    """The files of jobs that the store has as they count, also as its table `jobs`."""
    there = {file for (file,) in history.sql("SELECT file FROM runs")} & jobs.keys()
    there -= wrong(site, history) | missing(site, history)
    tables.make(history.connection, "jobs", _JOBS, {"file": sorted(there)})
    return there


def read(
    perflogs: Path, site: Site, jobs: Mapping[str, Header], metrics: Mapping[str, str]
) -> tuple[ValueTable, set[str]]:
    """The values of some jobs of a system, and the files that the store has as they count.

    jobs: by file below perflogs. metrics: those that count, each with the unit of its values.
    No file where the store cannot be used: its user reads them all, which only takes longer.
    """
    try:
        with open_history(perflogs, [site.system.system], only=jobs.keys()) as history:
            return _read(history, site, jobs, metrics)
    except (UserError, OSError, duckdb.Error) as error:
        warn(f"the history is not used: {str(error).splitlines()[0]}")
        return NO_VALUES, set()


def _read(
    history: History, site: Site, jobs: Mapping[str, Header], metrics: Mapping[str, str]
) -> tuple[ValueTable, set[str]]:
    there = _those_there(history, site, jobs)
    tables.make(
        history.connection,
        "metrics",
        _METRICS,
        {"metric": [*metrics], "own_unit": [*metrics.values()]},
    )
    for command in (_KINDS, _ROWS, _NAMES):
        history.sql(command)
    kinds = history.sql("SELECT file, metric, dims, conditions, unit FROM kinds ORDER BY number")
    names = [name for (name,) in history.sql("SELECT name FROM names ORDER BY place")]
    own = history.columns(_COLUMNS.format(value="value", which="is_own"))
    other = history.columns(_COLUMNS.format(value="digits", which="NOT is_own"))
    converted = [
        in_unit(Decimal(digits), kinds[number][-1], metrics[kinds[number][1]])
        for number, digits in zip(other["number"].tolist(), other["value"].tolist(), strict=True)
    ]
    kind, node, peer = (
        np.concatenate((own[column], other[column])).astype(np.int32)
        for column in ("number", "node", "peer")
    )
    value = np.concatenate((np.asarray(own["value"], dtype=float), converted))
    shared = [_kind(jobs[file], *texts) for file, *texts, _ in kinds]
    return ValueTable(shared, names, kind, node, peer, value), there


def _kind(header: Header, metric: str, dims: str, conditions: str) -> Sample:
    """What values share: a sample without node, peer and value."""
    plain = {k: v for k, v in json.loads(dims).items() if k != PEER}
    return Sample(header, "", metric, dims=plain, own_conditions=json.loads(conditions))
