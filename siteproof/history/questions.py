"""Example queries of the history, which `siteproof history --help` prints; and Ctrl-C."""

from __future__ import annotations

import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

AGAIN = 0.1  # s; DuckDB ignores an interrupt that comes before its query has started


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


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Within it SIGINT interrupts a query of the connection; then KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(receiver, connection), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        sender.close()  # the watcher then reads an end, and returns
        watcher.join()
        receiver.close()


def _watch(receiver: socket.socket, connection: duckdb.DuckDBPyConnection) -> None:
    """Interrupt the connection, again and again, once SIGINT has come."""
    is_interrupted = False
    while True:
        ready, _, _ = select.select([receiver], [], [], AGAIN if is_interrupted else None)
        if ready:
            number = receiver.recv(1)
            if not number:
                return
            is_interrupted = is_interrupted or number[0] == signal.SIGINT
        if is_interrupted:
            connection.interrupt()
