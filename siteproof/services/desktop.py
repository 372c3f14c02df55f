"""A desktop as a user with a tablet meets it: VNC's greeting, and noVNC's first picture.

The address is the page of noVNC, or host:port of a VNC server, for which noVNC is served on this
machine. The password is typed into the page: it is in no address and in no list of processes. The
greeting is the first words of VNC, its version and security types (RFC 6143, 7.1).

The picture is that of headless Chromium with the screen of a tablet, steered through a pipe
(DevTools protocol), as a port of DevTools would let every user of this machine read what is typed.
Chromium ends when the pipe does, so it never outlives its test.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from siteproof import files
from siteproof.errors import UserError
from siteproof.services import web
from siteproof.services.steps import SHARE, Job, Kind, StepFailed, Steps

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
            raise StepFailed(f"chromium: {why}")

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
                text = self.answers.pop(0) if self.answers else None
                words = {"accept": text is not None, "promptText": text or ""}
                self._write("Page.handleJavaScriptDialog", words)
            if message.get("id") != number:
                continue
            if "error" in message:
                raise StepFailed(f"chromium: {method}: {message['error']}")
            result: dict[str, Any] = message.get("result", {})
            return result

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
                raise StepFailed(f"chromium sent more than {MAX_MESSAGE} bytes")
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
            raise StepFailed("chromium: a message is not JSON") from None
        return message

    def _ended(self) -> StepFailed:
        with self._log.open("rb") as log:
            log.seek(max(self._log.stat().st_size - 4096, 0))
            lines = [line.strip() for line in log.read().decode("utf-8", "replace").split("\n")]
        lines = [line for line in lines if line]
        return StepFailed(f"chromium has ended: {(lines or ['without a word'])[-1]}")


@contextmanager
def browser(job: Job) -> Iterator[Browser]:
    """A running browser, with its files in the job's scratch folder. Raises StepFailed."""
    command = next(filter(None, map(shutil.which, NAMES)), None)
    if command is None:
        raise StepFailed(f"{NAMES[0]} is not installed", "tool_missing")
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


MAX_REASON = 200  # bytes of the server's own words
_VERSION = re.compile(rb"RFB ([0-9]{3})\.([0-9]{3})\n")
_LENGTH = 12  # bytes of a version
_CLOSED = "the VNC server has closed the connection"
_MINORS = (3, 7, 8)  # of the versions that there are; others are answered with one of these
_TYPES = {  # registered at IANA, those that servers use most
    1: "None",
    2: "VNC Authentication",
    16: "Tight",
    18: "TLS",
    19: "VeNCrypt",
}


def greeted(connection: socket.socket) -> tuple[str, str]:
    """The version of a server of VNC, such as RFB 3.8, and its security types.

    Raises StepFailed, TimeoutError.
    """
    theirs = version(_received(connection, _LENGTH))
    minor = max(known for known in _MINORS if (3, known) <= max(theirs, (3, 3)))
    connection.sendall(b"RFB 003.%03d\n" % minor)
    if minor == 3:  # the server decides
        (kind,) = struct.unpack(">I", _read(connection, 4))
        types = bytes([kind]) if kind < 256 else b""
    else:
        types = _read(connection, _read(connection, 1)[0])
    if types.strip(b"\0"):
        return f"RFB 3.{minor}", ", ".join(_TYPES.get(kind, f"type {kind}") for kind in types)
    (length,) = struct.unpack(">I", _read(connection, 4))
    reason = _read(connection, min(length, MAX_REASON)).decode("utf-8", "replace")
    raise StepFailed(f"the VNC server refuses the connection: {reason}", "login")


def version(line: bytes) -> tuple[int, int]:
    """The version in a server's first line. Raises StepFailed."""
    match = _VERSION.fullmatch(line)
    if not line:
        raise StepFailed(_CLOSED)
    if match is None:
        begin = line.decode("utf-8", "replace").strip()
        raise StepFailed(f"this is not a VNC server: it sent '{begin}'")
    return int(match[1]), int(match[2])


def _read(connection: socket.socket, size: int) -> bytes:
    data = _received(connection, size)
    if len(data) < size:
        raise StepFailed(_CLOSED)
    return data


def _received(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer at the end of the connection."""
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


NOVNC = ("/usr/share/novnc", "/usr/share/webapps/novnc", "/usr/local/share/novnc", "/opt/noVNC")
# Pixels that differ from the commonest colour, for a picture not to be blank: the server draws the
# mouse pointer into it for a screen without a mouse, and that has up to 32 x 32.
FEWEST_PIXELS = 32 * 32 + 1
_PAUSE = 0.5  # seconds between two looks, each of which keeps noVNC from drawing

# noVNC reports all that happens to its page by events, which this keeps.
_LISTEN = """
window.siteproof = [];
window.CustomEvent = class extends CustomEvent {
  constructor(type, words) {
    super(type, words);
    if (["connect", "disconnect", "securityfailure", "credentialsrequired"].includes(type))
      window.siteproof.push([type, String((words && words.detail && words.detail.reason) || "")]);
  }
};
"""
# The largest canvas within the screen: colours that are drawn in it, and pixels of all but one.
_LOOK = """
(() => {
  const canvas = [...document.querySelectorAll("canvas")].filter((one) => {
    const {left, top, width, height} = one.getBoundingClientRect();
    return width > 0 && height > 0 && left < innerWidth && top < innerHeight;
  }).sort((one, other) => other.width * other.height - one.width * one.height)[0];
  const seen = {events: window.siteproof || [], colours: 0, pixels: 0};
  const drawing = canvas && canvas.getContext("2d");
  if (!drawing) return seen;
  const counts = new Map();
  const all = drawing.getImageData(0, 0, canvas.width, canvas.height).data;
  for (const pixel of new Uint32Array(all.buffer))
    if (pixel >>> 24) counts.set(pixel, (counts.get(pixel) || 0) + 1);
  let most = 0, drawn = 0;
  for (const count of counts.values()) { drawn += count; most = Math.max(most, count); }
  return {...seen, colours: counts.size, pixels: drawn - most};
})()
"""
# The page of noVNC with buttons: its own dialogs. vnc_lite.html asks by a prompt instead.
_CONNECT = """
(() => {
  const button = document.querySelector("#noVNC_connect_button");
  if (button && button.checkVisibility() && !window.siteproof.length) button.click();
})()
"""
_TYPE = """
((password) => {
  const input = document.querySelector("#noVNC_password_input");
  const button = input && input.form && input.form.querySelector("[type=submit]");
  if (!button) return false;
  input.value = password;
  button.click();
  return true;
})(%s)
"""


@dataclass(frozen=True)
class Look:
    """What the page shows: its colours, the pixels of all but the commonest, events by name."""

    colours: int
    pixels: int
    events: dict[str, str]

    @property
    def is_blank(self) -> bool:
        """Whether nobody would see anything in it."""
        return self.colours < 2 or self.pixels < FEWEST_PIXELS


def test(job: Job, steps: Steps) -> None:
    """The greeting or the page; then the seconds to the first picture that is not blank."""
    with steps.step("handshake"):
        protocol, tool = _greeted(job)
    steps.condition(protocol=protocol, tool=tool)
    with ExitStack() as opened:
        with steps.step("browser"):
            page = opened.enter_context(browser(job))
            url = opened.enter_context(_served(job))
            page.prepare(_LISTEN)
        with steps.step("frame"):
            colours = _first_picture(job, page, url)
        steps.value("colours", colours, "count")


def seen(value: object) -> Look:
    """What the script in the page has returned: it is a page's, and may be anything."""
    found = value if isinstance(value, dict) else {}
    events = found.get("events")
    pairs = [one for one in events if _is_event(one)] if isinstance(events, list) else []
    numbers = [found.get(key) for key in ("colours", "pixels")]
    colours, pixels = (one if isinstance(one, int) else 0 for one in numbers)
    return Look(colours, pixels, dict(pairs))


def _is_event(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value)


def _greeted(job: Job) -> tuple[str, str]:
    if "://" in job.service.address:
        web.succeed(web.page(job)[1], "GET")
        return "noVNC", "noVNC"
    place = urlsplit(f"//{job.service.address}")
    where = (place.hostname or "", place.port or 0)
    with socket.create_connection(where, job.seconds) as server:
        return greeted(server)


@contextmanager
def _served(job: Job) -> Iterator[str]:
    """The page of noVNC: the service's own, or one that is served here for its VNC server."""
    if "://" in job.service.address:
        yield job.service.address
        return
    command = shutil.which("websockify")
    folder = next(filter(Path.is_dir, map(Path, NOVNC)), None)
    if command is None or folder is None:
        missing = "noVNC" if command else "websockify"
        raise StepFailed(f"{missing} is not installed: only the handshake was made", "tool_missing")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = f"127.0.0.1:{port}"
    process = subprocess.Popen(
        [command, "--web", str(folder), place, job.service.address],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        job.wait(lambda: _not_yet(process, port), _PAUSE)
        yield f"http://{place}/vnc_lite.html?scale=true"
    finally:
        process.terminate()
        process.wait()


def _not_yet(process: subprocess.Popen[bytes], port: int) -> str:
    """That websockify does not listen; empty if it does. Raises StepFailed: it has ended."""
    if process.poll() is not None:
        raise StepFailed("websockify has ended")
    with suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()
        return ""
    return "websockify does not listen"


def _first_picture(job: Job, page: Browser, url: str) -> int:
    """The colours of the first picture that is not blank. Raises StepFailed."""
    password = job.secret("password") if job.service.password else ""
    page.answers = [password] if password else []
    page.go(url)
    again = time.monotonic() + SHARE * job.seconds / 3
    typed, colours = False, 0

    def still() -> str:
        nonlocal again, typed, colours
        look = seen(page.evaluate(_LOOK))
        if not look.is_blank and "connect" in look.events:
            colours = look.colours
            return ""
        _must_go_on(look, bool(password))
        if not look.events and time.monotonic() > again:
            page.go(url)  # one of its many scripts has not arrived: a user loads it again, too
            again = math.inf
        elif not look.events:
            page.evaluate(_CONNECT)
        elif "credentialsrequired" in look.events and not typed:
            typed = page.evaluate(_TYPE % json.dumps(password)) is True
        return (
            "the picture is still blank" if "connect" in look.events else "noVNC has no connection"
        )

    job.wait(still, _PAUSE)
    return colours


def _must_go_on(look: Look, has_password: bool) -> None:
    """Raises StepFailed if noVNC has given up."""
    if "securityfailure" in look.events:
        why = look.events["securityfailure"] or "without a reason"
        raise StepFailed(f"the VNC server refuses the login: {why}", "login")
    if "credentialsrequired" in look.events and not has_password:
        raise StepFailed("the VNC server asks for a password, and the site has none", "login")
    if "disconnect" in look.events:
        had = "after" if "connect" in look.events else "before"
        raise StepFailed(f"noVNC lost the VNC server {had} the login")


KINDS = {"desktop": Kind(test, explain=web.explain)}
