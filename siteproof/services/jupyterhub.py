"""JupyterHub as a user meets it: a server, a kernel, a notebook whose result is known, and its end.

A server cannot have any name (1 to 30 lower case letters, digits and hyphens since JupyterHub 6),
so its mark is among its `user_options`, which the hub keeps and lists. It keeps those of a default
server for the user's next start, too: so they hold the time after which a start is not ours. Cells
are executed one after the other, over the websocket of the kernel.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import secrets
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

import websocket

from siteproof import files
from siteproof.errors import UserError
from siteproof.services.steps import PREFIX, Job, Kind, StepFailed, Steps, marked
from siteproof.services.web import MAX_BODY, Answer, ask, connected, explain, refused, succeed

MAX_RECEIVED = 4 * 2**20  # bytes that a kernel may send
MAX_REASON = 120  # characters of an error in a cell


class _Limited(websocket.WebSocket):
    """A websocket that takes no more than MAX_RECEIVED bytes: the library takes any."""

    received = 0

    def _recv(self, size: int) -> bytes:
        part: bytes = super()._recv(size)  # type: ignore[no-untyped-call]
        self.received += len(part)
        if self.received > MAX_RECEIVED:
            raise StepFailed(f"the kernel sent more than {MAX_RECEIVED} bytes")
        return part


def executed(
    url: str, connection: socket.socket, headers: Mapping[str, str], cells: list[str]
) -> str:
    """What cells print, executed over a connection that is made. Raises StepFailed."""
    channel = _Limited()
    try:
        lines = [f"{name}: {value}" for name, value in headers.items()]
        channel.connect(url, header=lines, socket=connection, redirect_limit=0)  # type: ignore[no-untyped-call]
        return "".join(_cell(channel, cell) for cell in cells)
    except websocket.WebSocketTimeoutException:
        raise TimeoutError from None
    except websocket.WebSocketBadStatusException as error:
        raise refused(error.status_code, "websocket") from None
    except websocket.WebSocketException as error:
        raise StepFailed(f"the kernel's websocket: {type(error).__name__}") from None


def _cell(channel: websocket.WebSocket, code: str) -> str:
    """What one cell prints: all has come when the kernel is idle, and has replied."""
    request = uuid.uuid4().hex
    header = {
        "msg_id": request,
        "msg_type": "execute_request",
        "session": request,
        "username": "siteproof",
        "version": "5.3",
    }
    content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    channel.send(json.dumps({**message, "channel": "shell"}))
    printed, replied, idle = "", False, False
    while not (replied and idle):
        kind, content = answer_to(request, channel.recv())
        if kind == "stream" and content.get("name") == "stdout":
            printed += str(content.get("text", ""))
        replied = replied or kind == "execute_reply"
        idle = idle or (kind == "status" and content.get("execution_state") == "idle")
        if kind == "error" or content.get("status") == "error":
            what = f"{content.get('ename')}: {content.get('evalue')}"
            raise StepFailed(f"a cell of the notebook failed: {what[:MAX_REASON]}")
    return printed


def answer_to(request: str, text: str | bytes) -> tuple[str, dict[str, Any]]:
    """The kind and the content of a kernel's message; ("", {}) if it answers another request."""
    try:
        message = files.loads("the kernel's message", text)
        if message["parent_header"].get("msg_id") != request:
            return "", {}
        kind, content = message["header"]["msg_type"], message["content"]
    except (UserError, LookupError, TypeError, AttributeError):
        raise StepFailed("a message of the kernel is not understood") from None
    if not (isinstance(kind, str) and isinstance(content, dict)):
        raise StepFailed("a message of the kernel is not understood")
    return kind, content


ROUNDS = 100_000  # of a hash in the notebook: some .1 s
MAX_FOLDER = 16 * MAX_BODY  # bytes of the listing of a user's folder: some 50 000 files
_OPTION, _BEFORE = "siteproof", "siteproof_before"  # of a server: the mark; seconds since 1970
_START = 30  # seconds until the hub has begun to start a server
_PAUSE = 0.25  # seconds between two looks
_KERNEL = re.compile(r"[0-9A-Za-z-]{1,64}")


class Server(NamedTuple):
    """One server of the user, as the hub lists it.

    name: empty for the default one. mark: of the test that has started it; empty: not ours.
    active: it runs, starts or ends.
    """

    name: str
    mark: str
    ready: bool
    active: bool


def test(job: Job, steps: Steps) -> None:
    """From the login to the end of the server, each step timed."""
    hub = _Hub(job)
    steps.condition(protocol="JupyterHub REST")
    with steps.step("login"):
        answer = hub.must("GET", "/hub/api/", what="version")
        hub.servers()
    steps.condition(tool=f"JupyterHub {_text(answer.json(), 'version')}")
    with steps.step("spawn"):
        server = hub.spawn(_clock(answer))
    with steps.step("kernel"):
        place = f"{hub.path(server)}/api/kernels"
        kernel = _text(hub.must("POST", place, {"name": "python3"}, "kernel").json(), "id")
        if not _KERNEL.fullmatch(kernel):
            raise StepFailed("the kernel has no id")
    with steps.step("notebook"):
        _compute(hub, server, f"{place}/{kernel}/channels")
    with steps.step("stop"):
        hub.must("DELETE", _file(hub, server, f"{job.mark}.ipynb"), what="delete the notebook")
        hub.stop(server)


def found(job: Job) -> list[str]:
    """The marks of our servers, after the names of the notebooks in their user's folder."""
    hub = _Hub(job)
    started = [one for one in hub.servers() if one.mark]
    names = {name for one in started if one.ready for name in _notebooks(hub, one.name)}
    return [*sorted(names), *sorted({one.mark for one in started})]


def remove(job: Job, name: str) -> None:
    """Remove a notebook by any of our servers, or stop a server."""
    hub = _Hub(job)
    started = [one for one in hub.servers() if one.mark]
    if name.endswith(".ipynb"):
        for one in [one for one in started if one.ready][:1]:
            answer = hub.ask("DELETE", _file(hub, one.name, name))
            if answer.status != http.client.NOT_FOUND:
                succeed(answer, "delete the notebook")
        return
    for one in started:
        if one.mark == name:
            hub.stop(one.name)


def listed(model: object) -> list[Server]:
    """The servers in what a hub answers about a user. Raises StepFailed."""
    found = model.get("servers") if isinstance(model, dict) else None
    if not isinstance(found, dict):
        raise StepFailed("the answer about the user has no servers")
    return [_server(name, one) for name, one in found.items() if isinstance(one, dict)]


def failure(events: bytes) -> str:
    """Why a server has not started, after a colon, of the events of its start; or nothing."""
    reason = ""
    for line in events.decode("utf-8", "replace").splitlines():
        if line.startswith("data:"):
            event = Answer(200, {}, line.removeprefix("data:").encode())
            reason = event.reason or reason
    return reason


def notebook(cells: list[str]) -> dict[str, Any]:
    """A notebook of version 4.5."""
    made: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "source": cell,
            "outputs": [],
            "execution_count": None,
        }
        for number, cell in enumerate(cells)
    ]
    return {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def task(seed: str) -> tuple[list[str], str]:
    """The cells of a notebook which nobody can have computed before, and what it must print."""
    cells = [
        f"import hashlib\ndigest = b'{seed}'",
        f"for _ in range({ROUNDS}):\n    digest = hashlib.sha256(digest).digest()",
        "print(digest.hex())",
    ]
    digest = seed.encode()
    for _ in range(ROUNDS):
        digest = hashlib.sha256(digest).digest()
    return cells, digest.hex()


@dataclass(frozen=True)
class _Hub:
    job: Job

    def ask(self, method: str, path: str, body: object = None, most: int = MAX_BODY) -> Answer:
        sent = None if body is None else json.dumps(body).encode()
        headers = {**self.authorization, "Content-Type": "application/json"}
        url = self.job.service.address.rstrip("/") + path
        return ask(self.job, method, url, body=sent, headers=headers, most=most)

    def must(
        self, method: str, path: str, body: object = None, what: str = "", most: int = MAX_BODY
    ) -> Answer:
        return succeed(self.ask(method, path, body, most), what)

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"token {self.job.secret('token')}"}

    @property
    def user(self) -> str:
        return f"/hub/api/users/{quote(self.job.service.user, safe='@~')}"

    def path(self, server: str) -> str:
        """Where a server of the user is."""
        return f"/user/{quote(self.job.service.user, safe='@~')}/{server}".rstrip("/")

    def servers(self) -> list[Server]:
        answer = self.ask("GET", f"{self.user}?include_stopped_servers=1")
        if answer.status == 404:
            raise StepFailed(f"no user {self.job.service.user} that the token may see", "login")
        return listed(succeed(answer, "user").json())

    def spawn(self, now: float) -> str:
        """Start a server; its name. It is the user's default one, if the hub allows no other.

        now: by the hub's clock, in seconds since 1970.
        """
        options = {_OPTION: self.job.mark, _BEFORE: now + _START}
        name = PREFIX + hashlib.sha256(self.job.mark.encode()).hexdigest()[:20]
        answer = self.ask("POST", f"{self.user}/servers/{name}", options)
        if answer.status == 400 and "not enabled" in answer.reason:
            name = ""
            if any(one.active for one in self.servers()):
                raise StepFailed(f"a server of {self.job.service.user} already runs")
            answer = self.ask("POST", f"{self.user}/server", options)
        succeed(answer, "start")
        self.job.wait(lambda: self._starting(name), _PAUSE)
        return name

    def _starting(self, name: str) -> str:
        server = next((one for one in self.servers() if one.name == name), None)
        if server is None or not server.active:
            reason = failure(self.ask("GET", f"{self.server(name)}/progress").body)
            raise StepFailed(f"the server has not started{reason}")
        return "" if server.ready else "the server is still starting"

    def server(self, name: str) -> str:
        """A server of the user in the hub's API."""
        return f"{self.user}/servers/{name}" if name else f"{self.user}/server"

    def stop(self, name: str) -> None:
        """Stop a server, and have the hub forget it. One that is gone is no error."""

        def still() -> str:
            if not any(one.name == name and (name or one.active) for one in self.servers()):
                return ""
            # the hub refuses it while the server starts
            self.ask("DELETE", self.server(name), {"remove": True} if name else None)
            return "the server has not stopped"

        self.job.wait(still, _PAUSE)


def _compute(hub: _Hub, server: str, channels: str) -> None:
    """Upload a notebook, get it back, execute its cells, compare what it prints."""
    cells, expected = task(secrets.token_hex(16))
    path = _file(hub, server, f"{hub.job.mark}.ipynb")
    hub.must("PUT", path, {"type": "notebook", "content": notebook(cells)}, "upload")
    kept = _sources(hub.must("GET", path, what="get the notebook").json())
    if kept != cells:
        raise StepFailed("the notebook is not as it was uploaded", "checksum")
    parts = urlsplit(hub.job.service.address.rstrip("/") + channels)
    url = urlunsplit(parts._replace(scheme=parts.scheme.replace("http", "ws")))
    with connected(hub.job, parts) as connection:
        printed = executed(url, connection, hub.authorization, kept)
    if printed.strip() != expected:
        why = f"the notebook printed '{printed.strip()[:80]}', expected '{expected[:16]}...'"
        raise StepFailed(why, "checksum")


def _file(hub: _Hub, server: str, name: str) -> str:
    return f"{hub.path(server)}/api/contents/{quote(name, safe='')}"


def _notebooks(hub: _Hub, server: str) -> list[str]:
    """The notebooks of tests in the user's folder; none if the server does not list it."""
    answer = hub.ask("GET", f"{hub.path(server)}/api/contents/?type=directory", most=MAX_FOLDER)
    if not 200 <= answer.status < 300:
        return []
    folder = answer.json()
    entries = folder.get("content") if isinstance(folder, dict) else None
    names = [_text(one, "name") for one in entries] if isinstance(entries, list) else []
    return [name for name in names if name.endswith(".ipynb") and marked(name)]


def _sources(model: object) -> list[str]:
    content = model.get("content") if isinstance(model, dict) else None
    cells = content.get("cells") if isinstance(content, dict) else None
    return [_text(cell, "source") for cell in cells] if isinstance(cells, list) else []


def _server(name: str, model: dict[str, Any]) -> Server:
    options = model.get("user_options")
    mark = _text(options, _OPTION)
    ready = model.get("ready") is True
    active = ready or bool(model.get("pending"))
    is_ours = marked(mark) and (name or active and _started_by_us(model))
    return Server(name, mark if is_ours else "", ready, active)


def _started_by_us(model: dict[str, Any]) -> bool:
    before = model["user_options"].get(_BEFORE)
    try:
        started = datetime.fromisoformat(_text(model, "started"))
    except ValueError:
        return False
    started = started if started.tzinfo else started.replace(tzinfo=UTC)
    return isinstance(before, int | float) and started.timestamp() < before


def _clock(answer: Answer) -> float:
    """When the hub has answered, by its own clock, in seconds since 1970."""
    try:
        return parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (LookupError, ValueError):
        return time.time()


def _text(model: object, key: str) -> str:
    value = model.get(key) if isinstance(model, dict) else None
    return value if isinstance(value, str) else ""


KINDS = {"jupyterhub": Kind(test, found, remove, explain)}
