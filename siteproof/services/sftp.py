"""SFTP: files there and back by OpenSSH's sftp, in one session.

A far end with a shell computes its checksums itself; one with SFTP alone gives the files back.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from siteproof.services import ssh, transfers
from siteproof.services.steps import Job, StepFailed
from siteproof.services.transfers import ANSWER, File

_END = "Local working directory:"  # what `lpwd` prints: the commands before it have ended
_ECHO = "sftp> "
_DF = re.compile(r"\s*(?:[0-9]+\s+){2}([0-9]+)\s+[0-9]+\s+[0-9]+%")


class Sftp:
    """A session of sftp in the folder of the site. login: what it goes through."""

    def __init__(self, job: Job, login: ssh.Ssh, protocol: str = "sftp") -> None:
        self._job, self._ssh, self.protocol = job, login, protocol
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = job.scratch / "sftp_errors"
        self._said = 0
        self.tool = login.tool

    def close(self) -> None:
        """End the session and the connection, if there are any."""
        if self._process:
            self._process.kill()
            self._process.communicate()
        self._ssh.close()

    def login(self) -> None:
        """Connect once, and begin the session."""
        self._ssh.login()
        self.begin()

    def begin(self) -> None:
        """Begin a session in the site's folder, by a connection of its own if there is none."""
        argv = ["sftp", "-F", f"{self._ssh.config}", "-b", "-", ssh.FAR]
        most = transfers.largest(self._job)
        with self._errors.open("wb") as stderr, transfers.files_of_at_most(most):
            self._process = ssh.start(argv, self._ssh.env, stderr, pipes=True, at=self._job.scratch)
        self.ask(f"cd {quoted(self._job.service.folder)}")

    def ask(self, command: str, doing: str = "") -> list[str]:
        """What a command prints. Raises StepFailed if it fails: sftp then ends."""
        if not self._process:
            self.begin()
        self._said = self._errors.stat().st_size  # of commands before, whose failure is none
        assert self._process and self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(f"{command}\nlpwd\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended(doing or command) from None
        lines: list[str] = []
        left = ANSWER
        while line := self._process.stdout.readline(left):
            text = line.decode(errors="replace").rstrip("\n")
            # The name of our scratch folder, which no file at the far end can have by chance.
            if text == f"{_END} {os.path.realpath(self._job.scratch)}":
                return lines
            if not text.startswith(_ECHO):
                lines.append(text)
            left -= len(line)
            if left <= 0:
                raise StepFailed("generic", f"more than {ANSWER} bytes in answer to '{command}'")
        raise self._ended(doing or command)

    def _ended(self, doing: str) -> StepFailed:
        if self._process:
            self._process.communicate()
        return ssh.refused(transfers.beginning(self._errors, self._said), doing)

    def free(self) -> int | None:
        """By the extension statvfs; None: the server has not got it."""
        return free("\n".join(self.ask("-df .")))

    def make(self) -> None:
        """Make the folder of what is put."""
        self.ask(f"-mkdir {self._job.mark}")

    def put(self, files: Sequence[Path]) -> None:
        """Write files, one after the other."""
        for file in files:
            far = f"{self._job.mark}/{file.name}"
            self.ask(f"put {quoted(f'{file}')} {far}", f"put {file.name}")

    def get(self, names: Sequence[str], into: Path) -> None:
        """Read files, one after the other."""
        for name in names:
            far = f"{self._job.mark}/{name}"
            self.ask(f"get {far} {quoted(f'{into / name}')}", f"get {name}")

    def differing(self, files: Sequence[File]) -> list[str] | None:
        """What sha256sum at the far end prints, if there is a shell."""
        return self._ssh.differing(f"{self._job.service.folder}/{self._job.mark}", files)

    def names(self) -> list[str]:
        """What is ours in the folder."""
        return transfers.ours(self.ask("ls -1"))

    def remove(self, name: str) -> None:
        """Remove a folder of ours; what is gone is no error."""
        self.ask(f"-rm {name}")  # a link of that name goes itself; of a folder this fails
        self.ask(f"-rm {name}/*")
        self.ask(f"-rmdir {name}")


_KIND = transfers.Kind(lambda job: Sftp(job, ssh.Ssh.by_key(job)))
test, found, remove = _KIND.test, _KIND.found, _KIND.remove


def quoted(path: str) -> str:
    """A path in a command of sftp."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def free(text: str) -> int | None:
    """Available bytes of `df` of sftp: KiB in its third column. None: no such table."""
    for line in text.splitlines():
        if match := _DF.fullmatch(line):
            return int(match[1]) * 1024
    return None
