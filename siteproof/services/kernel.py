"""A kernel of Jupyter: cells are executed one after the other, over its websocket."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Mapping
from typing import Any

import websocket

from siteproof import files
from siteproof.errors import UserError
from siteproof.services.asking import refused
from siteproof.services.steps import StepFailed

MAX_RECEIVED = 4 * 2**20  # bytes that a kernel may send
MAX_REASON = 120  # characters of an error in a cell


class _Limited(websocket.WebSocket):
    """A websocket that takes no more than MAX_RECEIVED bytes: the library takes any."""

    received = 0

    def _recv(self, size: int) -> bytes:
        part: bytes = super()._recv(size)  # type: ignore[no-untyped-call]
        self.received += len(part)
        if self.received > MAX_RECEIVED:
            raise StepFailed("generic", f"the kernel sent more than {MAX_RECEIVED} bytes")
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
        raise StepFailed("generic", f"the kernel's websocket: {type(error).__name__}") from None


def _cell(channel: websocket.WebSocket, code: str) -> str:
    """What one cell prints: all has come when the kernel is idle, and has replied."""
    request = uuid.uuid4().hex
    channel.send(json.dumps(_execute(request, code)))
    printed, replied, idle = "", False, False
    while not (replied and idle):
        kind, content = answer_to(request, channel.recv())
        if kind == "stream" and content.get("name") == "stdout":
            printed += str(content.get("text", ""))
        replied = replied or kind == "execute_reply"
        idle = idle or (kind == "status" and content.get("execution_state") == "idle")
        if kind == "error" or content.get("status") == "error":
            what = f"{content.get('ename')}: {content.get('evalue')}"
            raise StepFailed("generic", f"a cell of the notebook failed: {what[:MAX_REASON]}")
    return printed


def answer_to(request: str, text: str | bytes) -> tuple[str, dict[str, Any]]:
    """The kind and the content of a kernel's message; ("", {}) if it answers another request."""
    try:
        message = files.loads("the kernel's message", text)
        if message["parent_header"].get("msg_id") != request:
            return "", {}
        kind, content = message["header"]["msg_type"], message["content"]
    except (UserError, LookupError, TypeError, AttributeError):
        raise StepFailed("generic", "a message of the kernel is not understood") from None
    if not (isinstance(kind, str) and isinstance(content, dict)):
        raise StepFailed("generic", "a message of the kernel is not understood")
    return kind, content


def _execute(request: str, code: str) -> dict[str, Any]:
    header = {
        "msg_id": request,
        "msg_type": "execute_request",
        "session": request,
        "username": "siteproof",
        "version": "5.3",
    }
    content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
    return {
        "header": header,
        "parent_header": {},
        "metadata": {},
        "channel": "shell",
        "content": content,
    }
