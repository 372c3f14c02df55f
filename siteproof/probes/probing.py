"""One look at a service: http, tcp, ssh, mount. Nothing that a service sends is kept.

A service may be slow, hostile or broken: its answer has limits of bytes and redirects here, and a
limit of time in siteproof.probes.rounds, which waits for none of these functions.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

MAX_REDIRECTS = 5
MAX_BANNER = (
    8192  # bytes that an ssh server may send before its version (RFC 4253, 4.2: some lines)
)
OUR_VERSION = b"SSH-2.0-Siteproof_probe\r\n"
_SPOKEN = ("SSH-2.0-", "SSH-1.99-")  # RFC 4253, 5.1
_SSH_PORT = 22
# An automounter mounts on access, so statvfs comes first. It hangs where the server is dead.
_LOOK = "import os, sys; p = sys.argv[1]; os.statvfs(p); sys.exit(0 if os.path.ismount(p) else 3)"


class NotUp(Exception):
    """The service did not answer as it must; the reason in a few words."""


def look(kind: str, target: str, seconds: float) -> None:
    """Return if the service answers as it must. Raises NotUp.

    kind, target: as in system.yaml. seconds: for each wait; several may follow each other.
    """
    try:
        _KINDS[kind](target, seconds)
    except TimeoutError:
        raise NotUp(f"no answer within {seconds:g} s") from None
    except OSError as error:
        raise NotUp(error.strerror or str(error)) from None
    except (http.client.HTTPException, ValueError) as error:
        raise NotUp(f"answer not understood: {type(error).__name__}") from None


def _http(url: str, seconds: float) -> None:
    """GET; 2xx is up. A body is never read."""
    end = time.monotonic() + seconds
    for _ in range(MAX_REDIRECTS + 1):
        status, location = _get(url, max(end - time.monotonic(), 0.001))
        if 200 <= status < 300:
            return
        if not (300 <= status < 400 and location):
            raise NotUp(f"HTTP status {status}")
        url = urljoin(url, location)
    raise NotUp(f"more than {MAX_REDIRECTS} redirects")


def _get(url: str, seconds: float) -> tuple[int, str]:
    """Status and Location of one answer. Raises what look() turns into NotUp."""
    parts = urlsplit(url)
    kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    if parts.scheme not in kinds or not parts.hostname:
        raise NotUp("redirect to what is not http or https")
    connection = kinds[parts.scheme](parts.hostname, parts.port, timeout=seconds)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        headers = {"User-Agent": "siteproof-probe", "Connection": "close"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Location", "")
    finally:
        connection.close()


def _tcp(target: str, seconds: float) -> None:
    """The port takes a connection."""
    _connected(target, 0, seconds).close()


def _ssh(target: str, seconds: float) -> None:
    """Both sides show their version, as at the start of each session (RFC 4253, 4.2)."""
    end = time.monotonic() + seconds
    with _connected(target, _SSH_PORT, seconds) as connection:
        connection.sendall(OUR_VERSION)
        seen = b""
        while len(seen) < MAX_BANNER:
            connection.settimeout(max(end - time.monotonic(), 0.001))
            part = connection.recv(MAX_BANNER - len(seen))
            seen += part
            for line in seen.split(b"\n")[:-1]:
                if line.startswith(b"SSH-"):
                    return _known_version(line.decode("ascii", "replace"))
            if not part:
                raise NotUp("closed the connection without an ssh version")
    raise NotUp("sent no ssh version")


def _known_version(line: str) -> None:
    if not line.startswith(_SPOKEN):
        raise NotUp(f"ssh version {line[:40].strip()}")


def _connected(target: str, default: int, seconds: float) -> socket.socket:
    parts = urlsplit(f"//{target}")
    return socket.create_connection((parts.hostname or "", parts.port or default), seconds)


def _mount(path: str, seconds: float) -> None:
    """A process of its own looks, as nothing ends a system call on a dead file system."""
    look_there = [sys.executable, "-I", "-S", "-c", _LOOK, path]
    process = subprocess.Popen(
        look_there, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            process.kill()  # and no wait: it ends when the file system answers, or never
        raise TimeoutError from None
    if code:
        raise NotUp("nothing is mounted there" if code == 3 else "cannot be read")


_KINDS: dict[str, Callable[[str, float], None]] = {
    "http": _http,
    "tcp": _tcp,
    "ssh": _ssh,
    "mount": _mount,
}
