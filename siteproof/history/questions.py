"""Example queries of the history, which `siteproof history --help` prints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """An example. sql: a statement as a person would type it."""

    title: str
    sql: str


NODE, SINCE = "n017", "2026-11-01"  # what the examples name
HISTORY = Question(
    "one node's history",
    f"""\
SELECT time, metric, value, unit, status FROM samples
WHERE node = '{NODE}' ORDER BY metric, series, time""",
)
TODAY = Question(
    "the fleet's newest values against its past, node by node, worst first",
    """\
WITH newest AS (SELECT series, max(time)::DATE AS day FROM samples GROUP BY series)
SELECT metric, node, median(base) FILTER (time::DATE = day) AS today,
  median(base) FILTER (time::DATE < day) AS past, round(today / past - 1, 4) AS change
FROM samples JOIN newest USING (series) WHERE status = 'ok' AND node <> ''
GROUP BY series, metric, node HAVING change IS NOT NULL ORDER BY abs(change) DESC""",
)
CHANGED = Question(
    "what has changed since a day by more than 2 % and 3 robust sd",
    f"""\
WITH moved AS (SELECT metric, node, median(base) FILTER (time < '{SINCE}') AS before,
    mad(base) FILTER (time < '{SINCE}') AS mad, median(base) FILTER (time >= '{SINCE}') AS after
  FROM samples WHERE status = 'ok' GROUP BY series, metric, node)
SELECT metric, node, before, after, round(after / before - 1, 4) AS change FROM moved
WHERE abs(after - before) > greatest(0.02 * abs(before), 3 * 1.4826 * mad)
ORDER BY abs(change) DESC""",
)
KERNEL = Question(
    "when the kernel changed",
    """\
SELECT system, provenance ->> 'kernel' AS kernel, min(time) AS first, max(time) AS last
FROM runs GROUP BY ALL ORDER BY first""",
)
ALL = (HISTORY, TODAY, CHANGED, KERNEL)
