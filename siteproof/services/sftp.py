"""Files there and back over ssh: by OpenSSH's sftp, with a key or a ticket of Kerberos; by rsync.

A far end with a shell computes its checksums itself; one with SFTP alone gives the files back. The
ticket is got by the site's keytab, is kept in the scratch folder of the test, and ends with it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from siteproof.services import ssh, transfers
from siteproof.services.steps import Job, StepFailed, Steps, private
from siteproof.services.transfers import ANSWER, File

_END = "Local working directory:"  # what `lpwd` prints: the commands before it have ended
_ECHO = "sftp> "
# The rows of `df` of sftp and of `df -Pk`, with the KiB that are available.
_SFTP_DF = re.compile(r"\s*(?:[0-9]+\s+){2}([0-9]+)\s+[0-9]+\s+[0-9]+%")
_DF = re.compile(r"(?:.*\s)?[0-9]+\s+[0-9]+\s+([0-9]+)\s+[0-9]+%\s.*")
_RSYNC = re.compile(r"rsync +version +v?([0-9][0-9.]*)")
_AUTH = (
    "PreferredAuthentications gssapi-with-mic",
    "GSSAPIAuthentication yes",
    "PubkeyAuthentication no",
)
_DELEGATE = "GSSAPIDelegateCredentials"
_DEFAULT = re.compile(r"^Default principal: (\S+)$", re.MULTILINE)
# What a user calls "I cannot get in"; all else of kinit is a fault of the service.
_LOGIN = re.compile(
    "Preauthentication failed|Password incorrect|not found in Kerberos database|expired"
    "|revoked|no suitable keys|Key table|keytab|Clock skew"
)


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
            self._process = ssh.start(
                argv, self._ssh.env, stderr, self._job.scratch, subprocess.PIPE
            )
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
                raise StepFailed(f"more than {ANSWER} bytes in answer to '{command}'")
        raise self._ended(doing or command)

    def _ended(self, doing: str) -> StepFailed:
        if self._process:
            self._process.communicate()
        return ssh.refused(transfers.beginning(self._errors, self._said), doing)

    def free(self) -> int | None:
        """By the extension statvfs; None: the server has not got it."""
        return free(_SFTP_DF, "\n".join(self.ask("-df .")))

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


def quoted(path: str) -> str:
    """A path in a command of sftp."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def free(row: re.Pattern[str], text: str) -> int | None:
    """Available bytes in a table of df. row: the pattern of its row. None: no such table."""
    for line in text.splitlines():
        if match := row.fullmatch(line):
            return int(match[1]) * 1024
    return None


class Rsync:
    """A folder at the far end, by one connection; its shell does all but the copies."""

    protocol = "rsync"

    def __init__(self, job: Job) -> None:
        self._job, self._ssh = job, ssh.Ssh.by_key(job)
        self._far = f"{ssh.FAR}:{job.service.folder}/{job.mark}/"
        self._folder = shlex.quote(job.service.folder)
        match = _RSYNC.match(transfers.version(["rsync", "--version"]))
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
        return free(_DF, self._ssh.command(f"cd {self._folder} && df -Pk .").out)

    def make(self) -> None:
        """Make the folder of what is put."""
        self._ssh.printed(f"cd {self._folder} && mkdir -p {self._job.mark}")

    def put(self, files: Sequence[Path]) -> None:
        """Write files by one rsync."""
        self._run([file.name for file in files], f"{self._job.scratch}/", self._far)

    def get(self, names: Sequence[str], into: Path) -> None:
        """Read files by one rsync."""
        self._run(names, self._far, f"{into}/")

    def differing(self, files: Sequence[File]) -> list[str] | None:
        """What sha256sum at the far end prints."""
        return self._ssh.differing(f"{self._job.service.folder}/{self._job.mark}", files)

    def names(self) -> list[str]:
        """What is ours in the folder."""
        return transfers.ours(self._ssh.printed(f"cd {self._folder} && ls -1").splitlines())

    def remove(self, name: str) -> None:
        """Remove a folder of ours; what is gone is no error."""
        self._ssh.printed(f"cd {self._folder} && rm -rf -- {name}")

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


def test(job: Job, steps: Steps) -> None:
    """A ticket, and files to the service and back."""
    with steps.step("ticket"):
        ticket(job)
    with closing(_client(job)) as client:
        transfers.transfer(job, steps, client)
    if job.service.forward:
        with steps.step("forward"):  # of the ticket to the far end, for the same principal
            far = ssh.Ssh(job, (*_AUTH, f"{_DELEGATE} yes"), _env(job))
            if principal(far.printed("klist")) != job.service.principal:
                why = f"the far end has no ticket of {job.service.principal}"
                raise StepFailed(why, "login")


def ticket(job: Job) -> None:
    """Get one by the keytab, and see that it is there and whose it is."""
    service = job.service
    private("keytab", service.keytab)
    argv = ["kinit", "-f" if service.forward else "-F", "-k", "-t", service.keytab]
    got = transfers.run(job, [*argv, "--", service.principal], env=_env(job))
    if got.code:
        raise no_ticket(got.errors)
    shown = transfers.run(job, ["klist"], env=_env(job))
    if principal(shown.out) != service.principal:
        raise StepFailed(f"klist shows no ticket of {service.principal}", "login")


def principal(text: str) -> str:
    """Whose tickets klist shows; empty: nobody's."""
    match = _DEFAULT.search(text)
    return match[1] if match else ""


def no_ticket(text: str) -> StepFailed:
    """Why kinit gave no ticket, by what it wrote."""
    why = (text.strip().splitlines() or ["kinit ended without a ticket"])[-1]
    return StepFailed(why, "login" if _LOGIN.search(why) else "generic")


def _client(job: Job) -> Sftp:
    return Sftp(job, ssh.Ssh(job, (*_AUTH, f"{_DELEGATE} no"), _env(job)), "sftp by Kerberos")


def _client_with_ticket(job: Job) -> Sftp:
    ticket(job)
    return _client(job)


def _env(job: Job) -> dict[str, str]:
    """Where the tools of Kerberos find the ticket and, if the site has one, its configuration."""
    config = {"KRB5_CONFIG": job.service.krb5_config} if job.service.krb5_config else {}
    cache = {"KRB5CCNAME": f"FILE:{job.scratch}/ticket"}
    return {**os.environ, **cache, **config, "LC_ALL": "C"}


KINDS = {
    "sftp": transfers.kind(lambda job: Sftp(job, ssh.Ssh.by_key(job))),
    "rsync": transfers.kind(Rsync),
    "kerberos": replace(transfers.kind(_client_with_ticket), test=test),
}
