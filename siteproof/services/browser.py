"""Headless Chromium with the screen of a tablet, steered through a pipe (DevTools protocol).

A pipe, as a port of DevTools would let every user of this machine read what is typed. Chromium
ends when the pipe does, so it never outlives its test.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.errors import UserError
from siteproof.services.steps import Job, StepFailed

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
TABLET = {"width": 1024, "height": 768, "deviceScaleFactor": 2, "mobile": True}
FINGERS = 5  # that a tablet's screen can distinguish
MAX_MESSAGE = 8 * 2**20  # bytes of one message of DevTools
_PART = 64 * 1024
_OPTIONS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--no-proxy-server"),
    *("--disable-dev-shm-usage", "--disable-breakpad", "--disable-crash-reporter", "--mute-audio"),
    *("--log-level=3", "--remote-debugging-pipe"),
)
# DevTools reads file descriptor 3 and writes 4; the shell moves the pipes there.
_PIPED = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null'


class Browser:
    """One page. answers: what is typed into the next prompts of the page; then nothing is."""

    def __init__(self, to: int, back: int, log: Path, seconds: float) -> None:
        self._to, self._back, self._log, self._seconds = to, back, log, seconds
        self._left, self._number, self._session = b"", 0, ""
        self.answers: list[str] = []

    def prepare(self, script: str) -> None:
        """An empty page on a tablet. script: runs in each page before the page's own."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.send("Emulation.setDeviceMetricsOverride", **TABLET)
        self.send("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=FINGERS)
        self.send("Page.enable")
        self.send("Page.addScriptToEvaluateOnNewDocument", source=script)

    def go(self, url: str) -> None:
        """Load a page. Raises StepFailed if that is not possible."""
        if why := self.send("Page.navigate", url=url).get("errorText"):
            raise StepFailed("generic", f"chromium: {why}")

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page; None if it has none."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        return answer.get("result", {}).get("value")

    def send(self, method: str, **words: Any) -> dict[str, Any]:
        """The result of a command. Prompts that come meanwhile are answered."""
        number = self._write(method, words)
        end = time.monotonic() + self._seconds
        while True:
            message = self._read(end)
            if message.get("method") == "Page.javascriptDialogOpening":
                self._answer()
            if message.get("id") != number:
                continue
            if "error" in message:
                raise StepFailed("generic", f"chromium: {method}: {message['error']}")
            result: dict[str, Any] = message.get("result", {})
            return result

    def _answer(self) -> None:
        text = self.answers.pop(0) if self.answers else None
        words = {"accept": text is not None, "promptText": text or ""}
        self._write("Page.handleJavaScriptDialog", words)

    def _write(self, method: str, words: dict[str, Any]) -> int:
        self._number += 1
        command = {"id": self._number, "method": method, "params": words}
        if self._session:
            command["sessionId"] = self._session
        try:
            os.write(self._to, json.dumps(command).encode() + b"\0")
        except BrokenPipeError:
            raise self._ended() from None
        return self._number

    def _read(self, end: float) -> dict[str, Any]:
        """The next message. Raises TimeoutError, StepFailed."""
        while b"\0" not in self._left:
            if len(self._left) > MAX_MESSAGE:
                raise StepFailed("generic", f"chromium sent more than {MAX_MESSAGE} bytes")
            if not select.select([self._back], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError
            part = os.read(self._back, _PART)
            if not part:
                raise self._ended()
            self._left += part
        text, _, self._left = self._left.partition(b"\0")
        try:
            message: dict[str, Any] = files.loads("DevTools", text)
        except UserError:
            raise StepFailed("generic", "chromium: a message is not JSON") from None
        return message

    def _ended(self) -> StepFailed:
        return StepFailed("generic", f"chromium has ended: {_last_line(self._log)}")


@contextmanager
def browser(job: Job) -> Iterator[Browser]:
    """A running browser, with its files in the job's scratch folder. Raises StepFailed."""
    command = next(filter(None, map(shutil.which, NAMES)), None)
    if command is None:
        raise StepFailed("tool_missing", f"{NAMES[0]} is not installed")
    # Chromium makes a socket in TMPDIR, whose path may have 107 characters: so it is relative.
    options = [*_OPTIONS, f"--user-data-dir={job.scratch / 'chromium'}"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")  # it refuses to run as root with one
    log = job.scratch / "chromium.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _PIPED, command, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=job.scratch,
            env={**os.environ, "HOME": str(job.scratch), "TMPDIR": "."},
        )
    assert process.stdin and process.stdout
    try:
        yield Browser(process.stdin.fileno(), process.stdout.fileno(), log, job.seconds)
    finally:
        process.stdin.close()
        process.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(job.seconds / 4)
        process.kill()
        process.wait()


def _last_line(log: Path) -> str:
    """Of the last 4 KiB that Chromium has written on stderr."""
    with log.open("rb") as written:
        written.seek(max(log.stat().st_size - 4096, 0))
        lines = written.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "without a word")
