"""rsync over ssh: files there and back. Its far end has a shell, which does all else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from siteproof.services import ssh, transfers
from siteproof.services.steps import Job
from siteproof.services.transfers import File

_DF = re.compile(r"(?:.*\s)?[0-9]+\s+[0-9]+\s+([0-9]+)\s+[0-9]+%\s.*")
_VERSION = re.compile(r"rsync +version +v?([0-9][0-9.]*)")


class Rsync:
    """A folder at the far end, by one connection."""

    protocol = "rsync"

    def __init__(self, job: Job) -> None:
        self._job, self._ssh = job, ssh.Ssh.by_key(job)
        self._folder = shlex.quote(job.service.folder)
        match = _VERSION.match(transfers.version(["rsync", "--version"]))
        self.tool = f"rsync {match[1] if match else ''}, {self._ssh.tool}"

    def close(self) -> None:
        """End the connection, if there is one."""
        self._ssh.close()

    def login(self) -> None:
        """Connect once, and enter the folder."""
        self._ssh.login()
        self._ssh.printed(f"cd {self._folder}")

    def free(self) -> int | None:
        """What df at the far end reports."""
        return free(self._ssh.command(f"cd {self._folder} && df -Pk .").out)

    def make(self) -> None:
        """Make the folder of what is put."""
        self._ssh.printed(f"cd {self._folder} && mkdir -p {self._job.mark}")

    def put(self, files: Sequence[Path]) -> None:
        """Write files by one rsync."""
        self._run([file.name for file in files], f"{self._job.scratch}/", self._far())

    def get(self, names: Sequence[str], into: Path) -> None:
        """Read files by one rsync."""
        self._run(names, self._far(), f"{into}/")

    def differing(self, files: Sequence[File]) -> list[str] | None:
        """What sha256sum at the far end prints."""
        return self._ssh.differing(f"{self._job.service.folder}/{self._job.mark}", files)

    def names(self) -> list[str]:
        """What is ours in the folder."""
        return transfers.ours(self._ssh.printed(f"cd {self._folder} && ls -1").splitlines())

    def remove(self, name: str) -> None:
        """Remove a folder of ours; what is gone is no error."""
        self._ssh.printed(f"cd {self._folder} && rm -rf -- {name}")

    def _far(self) -> str:
        return f"{ssh.FAR}:{self._job.service.folder}/{self._job.mark}/"

    def _run(self, names: Sequence[str], source: str, target: str) -> None:
        """Copy files by their names. Whole: what is at the target never makes a rate better."""
        login = f"ssh -F {shlex.quote(f'{self._ssh.config}')}"
        argv = ["rsync", "--whole-file", "--protect-args", "--files-from=-", "-e", login]
        ended = transfers.run(
            self._job,
            [*argv, "--", source, target],
            text="".join(f"{name}\n" for name in names),
            env=self._ssh.env,
            most=transfers.largest(self._job),
        )
        if ended.code:
            raise ssh.refused(ended.errors or f"rsync: exit code {ended.code}")


_KIND = transfers.Kind(Rsync)
test, found, remove = _KIND.test, _KIND.found, _KIND.remove


def free(text: str) -> int | None:
    """Available bytes of `df -Pk`: KiB in its fourth column. None: no such table."""
    for line in text.splitlines()[1:]:
        if match := _DF.fullmatch(line):
            return int(match[1]) * 1024
    return None
