"""ssh to a service: one connection, with the site's key and host keys alone; a refusal has a name.

All that follows the login goes through that connection (a "master"), so that no rate has a login
in it. It stays in our process group: ssh's own background mode would outlive a test that is killed.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from siteproof.services.steps import Job, StepFailed, private
from siteproof.services.transfers import (
    ANSWER,
    Ended,
    File,
    beginning,
    files_of_at_most,
    run,
    version,
)  # fmt: skip

FAR = "far"  # what ssh's configuration calls the service
CONNECTION_LOST = 255  # exit code of ssh: its own errors, not those of the command
PAUSE = 0.005  # seconds between two looks at whether the connection stands
_SHA256 = re.compile(r"([0-9a-f]{64})  (.+)")
# What OpenSSH writes of what a user would call "I cannot get in", the most telling first.
_LOGIN = (
    re.compile(r"^Load key|Permissions .* are too open"),
    re.compile(r"Permission denied \([a-z,-]+\)|Too many authentication failures"),
    re.compile(r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key is known|Host key verification"),
)
_TIMEOUT = re.compile(r"timed out")
_NOISE = re.compile(r"@*|Control socket connect.*|mux_client.*|muxclient.*|Connection closed\.?")


class Ssh:
    """A login by ssh. auth: lines of its configuration for that. env: what tools need."""

    def __init__(self, job: Job, auth: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.job = job
        self.tool = version(["ssh", "-V"]).partition(" ")[0].strip(",\n")  # OpenSSH_9.2p1
        self.env = {**os.environ, **(env or {}), "LC_ALL": "C"}
        self.config = job.scratch / "ssh_config"
        self._master: subprocess.Popen[bytes] | None = None
        self.config.write_text(config(job, auth))

    @classmethod
    def by_key(cls, job: Job) -> Ssh:
        """With the site's key."""
        auth = ("PreferredAuthentications publickey", f"IdentityFile {_path(job.service.key)}")
        return cls(job, auth)

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._master:
            self._master.kill()
            self._master.wait()
            (self.job.scratch / "ssh").unlink(missing_ok=True)

    def login(self) -> None:
        """Connect, and keep the connection. Raises StepFailed."""
        if self.job.service.key:
            private("key", self.job.service.key)
        errors = self.job.scratch / "ssh_errors"
        socket = self.job.scratch / "ssh"
        with errors.open("wb") as stderr, files_of_at_most(ANSWER):
            argv = ["ssh", "-F", f"{self.config}", "-M", "-N", FAR]
            self._master = start(argv, self.env, stderr, self.job.scratch)
        while not socket.exists():
            if self._master.poll() is not None:
                raise refused(beginning(errors))
            time.sleep(PAUSE)

    def command(self, command: str, text: str = "") -> Ended:
        """Run a command of the far end's shell. Raises StepFailed if that end is not reached."""
        argv = ["ssh", "-F", f"{self.config}", FAR, command]
        ended = run(self.job, argv, text=text, env=self.env)
        if ended.code == CONNECTION_LOST:
            raise refused(ended.errors)
        return ended

    def printed(self, command: str, text: str = "") -> str:
        """What a command prints. Raises StepFailed if it fails."""
        ended = self.command(command, text)
        if ended.code:
            raise refused(ended.errors or ended.out or f"exit code {ended.code}", command)
        return ended.out

    def differing(self, folder: str, files: Sequence[File]) -> list[str] | None:
        """The files of a folder with another checksum; None: no shell there, or no sha256sum."""
        names = "".join(f"{file.path.name}\n" for file in files)
        ended = self.command(f"cd {shlex.quote(folder)} && xargs sha256sum --", names)
        sums = checksums(ended.out)
        if ended.code or len(sums) != len(files):
            return None
        return [file.path.name for file in files if sums.get(file.path.name) != file.sha256]


def config(job: Job, auth: Sequence[str]) -> str:
    """The configuration of ssh for a service: nothing else of this machine's counts."""
    user, host, port = parts(job.service.address)
    lines = [
        f"Host {FAR}",
        f"HostName {host}",
        *([f"User {user}"] if user else []),
        *([f"Port {port}"] if port else []),
        "BatchMode yes",
        "StrictHostKeyChecking yes",
        f"UserKnownHostsFile {_path(job.service.known_hosts)}",
        "GlobalKnownHostsFile /dev/null",
        "UpdateHostKeys no",
        "IdentitiesOnly yes",
        "IdentityAgent none",
        "ConnectionAttempts 1",
        f"ConnectTimeout {max(int(job.seconds), 1)}",
        "LogLevel ERROR",
        "Compression no",
        "ClearAllForwardings yes",
        "ControlMaster no",
        f"ControlPath {_path(f'{job.scratch}/ssh')}",
        *auth,
    ]
    return "\n".join(lines) + "\n"


def parts(address: str) -> tuple[str, str, str]:
    """User, host and port of user@host:port; empty where it has none."""
    try:  # the schema does not test what is in brackets
        found = urlsplit(f"//{address}")
    except ValueError:
        raise StepFailed(f"'{address}' is not an address") from None
    return found.username or "", found.hostname or "", f"{found.port or ''}"


def _path(path: str) -> str:
    """A path as ssh's configuration wants it."""
    return '"' + path.replace("%", "%%") + '"'


def start(
    argv: Sequence[str],
    env: Mapping[str, str],
    errors: IO[bytes],
    at: Path,
    talk: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a tool in a folder. talk: its input and output. Raises StepFailed if it is missing."""
    try:
        return subprocess.Popen(argv, stdin=talk, stdout=talk, stderr=errors, env=env, cwd=at)
    except FileNotFoundError:
        raise StepFailed(f"'{argv[0]}' is not installed", "tool_missing") from None


def refused(text: str, doing: str = "") -> StepFailed:
    """Why ssh, or what it has started, has ended, by what it wrote. doing: what for."""
    lines = [line.strip(" @\r") for line in text.splitlines()]
    for pattern in _LOGIN:
        if said := [line for line in lines if pattern.search(line)]:
            return StepFailed(said[0], "login")
    if said := [line for line in lines if _TIMEOUT.search(line)]:
        return StepFailed(said[0], "timeout")
    said = [line for line in lines if not _NOISE.fullmatch(line)] or ["the connection was closed"]
    return StepFailed(": ".join(filter(None, [doing, "; ".join(said[-2:])])))


def checksums(text: str) -> dict[str, str]:
    """File to checksum, as sha256sum prints them."""
    matches = (_SHA256.fullmatch(line) for line in text.splitlines())
    return {match[2]: match[1] for match in matches if match}


MAX_BANNER = 8192  # bytes that a server may send before its version (RFC 4253, 4.2: some lines)
OUR_VERSION = b"SSH-2.0-Siteproof_probe\r\n"
SPOKEN = ("SSH-2.0-", "SSH-1.99-")  # RFC 4253, 5.1
PORT = 22


def greeting(target: str, seconds: float) -> str:
    """The version that a server shows, when it has seen ours (RFC 4253, 4.2); empty: it shows none.

    target: a host or host:port. seconds: for all of it. Raises OSError, TimeoutError among them.
    """
    end = time.monotonic() + seconds
    with connected(target, PORT, seconds) as connection:
        connection.sendall(OUR_VERSION)
        seen = b""
        while len(seen) < MAX_BANNER:
            connection.settimeout(max(end - time.monotonic(), 0.001))
            part = connection.recv(MAX_BANNER - len(seen))
            seen += part
            for line in seen.split(b"\n")[:-1]:
                if line.startswith(b"SSH-"):
                    return line.decode("ascii", "replace")
            if not part:
                break
    return ""


def connected(target: str, default: int, seconds: float) -> socket.socket:
    """A connection to a host or host:port. Raises OSError."""
    parts = urlsplit(f"//{target}")
    return socket.create_connection((parts.hostname or "", parts.port or default), seconds)
