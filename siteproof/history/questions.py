"""Questions that people ask of a history, as SQL: the examples of `siteproof history --help`."""

from __future__ import annotations

import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

AGAIN = 0.1  # s; DuckDB forgets an interrupt that comes before its question is at work


@dataclass(frozen=True)
class Question:
    """An example. sql: a statement as a person would type it, with the names of `asked` in it."""

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
    "the fleet's newest figures against its past, node by node, worst first",
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


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """While this lasts, SIGINT interrupts what the connection does; then KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread alone
        return
    heard, told = socket.socketpair()
    told.setblocking(False)
    before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)

    def wait() -> None:
        asked = False
        while True:
            ready, _, _ = select.select([heard], [], [], AGAIN if asked else None)
            if ready:
                number = heard.recv(1)
                if not number:
                    return
                asked = asked or number[0] == signal.SIGINT
            if asked:
                connection.interrupt()

    watcher = threading.Thread(target=wait, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        told.close()  # the watcher reads the end
        watcher.join()
        heard.close()
