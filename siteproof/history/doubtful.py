"""Jobs of which the rows alone do not show what counts: their files must be read.

The store keeps what was printed. A value that cannot be right (siteproof.answers.implausible), and
a program that is missing on some nodes of a job only, are failures; this names the jobs that may
have one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteproof.answers import implausible
from siteproof.record import series
from siteproof.record.pair_units import PEER
from siteproof.record.samples import NOT_RUN, TOOL_MISSING
from siteproof.sites import Site

if TYPE_CHECKING:
    from siteproof.history import History

# One metric at one point: the peers of a job are put together.
_WRONG = f"""
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
_MISSING = f"""
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
    return _files(site, h, _MISSING)


def _files(site: Site, h: History, query: str) -> set[str]:
    return {file for (file,) in h.sql(query, {"system": site.system.system})}
