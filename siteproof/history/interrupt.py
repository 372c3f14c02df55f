"""Ctrl-C ends a question at once; DuckDB alone looks for it when a thread has ended its task."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb


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
        while number := heard.recv(1):
            if number[0] == signal.SIGINT:
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
