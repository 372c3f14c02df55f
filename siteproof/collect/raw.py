"""What a node leaves in its result folder, read and nothing more.

meta, facts            KEY=VALUE lines: the node's own account, and what its script noted
stdout, stderr         of the measuring script
run.1/, run.2/ …       of each command that the script gave to `run` (account.sh): dims
                       (KEY=VALUE lines), stdout, stderr, exit
origin                 munge's credential over the digest of all these (siteproof.collect.raw)

Whether a result is of its node: what a job asks for as evidence, and what a credential proves.

docs/threat-model.md lists what this proves, and what root on a node can still forge.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from siteproof import files, nodesets
from siteproof.errors import OutputError, UserError, harmless
from siteproof.record.manifest import Manifest, Origin
from siteproof.slurm import client, munge

ENDED, KILLED = 124, 137  # exit codes of coreutils' timeout; of anything killed, the second
MAX_RUNS = 10_000  # commands of one result
MAX_FILES = MAX_RUNS + 1000  # in one result folder, with what the script itself left there
MAX_RESULTS = 300_000  # in raw/, with half-written ones
MAX_BYTES = 4 * files.OUTPUT  # of all outputs of one result
MAX_KEYS = 500  # in one file of KEY=VALUE lines
LONGEST_KEY, LONGEST_VALUE = 200, 16384  # characters; a processor has some 2,500 of flags
_RUN = re.compile(r"run\.([1-9][0-9]{0,5})")


@dataclass(frozen=True)
class Execution:
    """One command that a script ran. exit: its code; None where it never ended."""

    dims: Mapping[str, str]
    exit: int | None
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Raw:
    """What one node left: its own account (meta), the script's facts, its output, its runs.

    origin: its credential, or why it has none. digest: of what was read, as account.sh makes it.
    """

    meta: Mapping[str, str]
    facts: Mapping[str, str]
    stdout: str
    stderr: str
    runs: Sequence[Execution] = field(default_factory=tuple)
    origin: str = ""
    digest: str = ""

    def number(self, key: str) -> int:
        """A whole number of the node's own account. Raises OutputError."""
        text = self.meta.get(key, "")
        number = whole(text)
        if number is None:
            raise OutputError(f"the node's own account has {key} '{text[:20]}'")
        return number


@dataclass(frozen=True)
class Stage:
    """A job's stage directory, and the owner of the files in it."""

    path: Path
    owner: int

    @staticmethod
    def of(path: Path) -> Stage:
        """Raises UserError where it is missing, or not a folder."""
        try:
            return Stage(path, files.owner(path))
        except FileNotFoundError:
            raise UserError(path, "the stage directory is missing") from None

    def result(self, name: str) -> Result:
        """A result folder, such as a node's; it need not be there."""
        return Result(self, self.path / "raw" / name)

    def has(self, name: str) -> bool:
        """Whether there is a result, even a broken one. Raises files.Unread."""
        return files.exists(self.path / "raw" / name)

    def names(self, wanted: Collection[str]) -> set[str]:
        """Those of the wanted results that are there."""
        try:
            found = files.names(self.path / "raw", below=self.path, most=MAX_RESULTS)
        except FileNotFoundError:
            return set()
        except files.Unread:
            raise
        except UserError:  # too many files: each by its name
            return {name for name in wanted if self.has(name)}
        return set(found).intersection(wanted)


class Result:
    """One result folder, as something untrusted left it."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder = stage, folder
        self.left = MAX_BYTES  # to be read yet
        self.sums: dict[str, str] = {}  # of each file that was read, by its name
        self._meta: dict[str, str] | None = None

    def names(self) -> list[str]:
        """What is in it. Raises OutputError, and files.Unread."""
        try:
            return files.names(self.folder, below=self.stage.path, most=MAX_FILES)
        except (OSError, UserError) as error:
            raise _unreadable(self.folder.name, error) from None

    def text(self, *parts: str, limit: int = files.OUTPUT) -> str:
        """A file of it. Raises OutputError, and files.Unread."""
        try:
            data = files.read(
                self.folder.joinpath(*parts),
                below=self.stage.path,
                limit=min(limit, self.left),
                owners={self.stage.owner},
            )
        except (OSError, UserError) as error:
            raise _unreadable("/".join(parts), error) from None
        self.left -= len(data)
        self.sums["/".join(parts)] = hashlib.sha256(data).hexdigest()
        return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")

    def digest(self) -> str:
        """Of the lines that sha256sum prints of what was read, in the order of the names."""
        lines = "".join(f"{self.sums[name]}  {name}\n" for name in sorted(self.sums))
        return hashlib.sha256(lines.encode()).hexdigest()

    def meta(self) -> dict[str, str]:
        """The node's own account, read once. Raises OutputError."""
        if self._meta is None:
            self._meta = self.pairs("meta")
        return self._meta

    def pairs(self, *parts: str) -> dict[str, str]:
        """The KEY=VALUE lines of a file of it. Raises OutputError."""
        text = self.text(*parts, limit=files.ACCOUNT)
        found: dict[str, str] = {}
        for line in text.split("\n"):
            key, equals, value = line.partition("=")
            if not equals:
                continue
            key, value = harmless(key).strip(), harmless(value).strip()
            if len(key) > LONGEST_KEY or len(value) > LONGEST_VALUE:
                raise OutputError(
                    f"{'/'.join(parts)}: '{key[:40]}' is longer than {LONGEST_VALUE} characters"
                )
            found[key] = value
            if len(found) > MAX_KEYS:
                raise OutputError(f"{'/'.join(parts)}: more than {MAX_KEYS} keys")
        return found


def read(result: Result) -> Raw:
    """A whole result folder. Raises OutputError for a file that is none, and files.Unread."""
    meta, facts = result.meta(), result.pairs("facts")
    stdout, stderr = result.text("stdout"), result.text("stderr")
    found = {int(match[1]): match[0] for match in map(_RUN.fullmatch, result.names()) if match}
    if len(found) > MAX_RUNS:
        raise OutputError(f"{len(found)} runs in one result, at most {MAX_RUNS} are read")
    runs = [_run(result, found[number]) for number in sorted(found)]
    digest = result.digest()
    origin = ""
    if files.exists(result.folder / "origin"):
        origin = result.text("origin", limit=files.ACCOUNT).strip()
    return Raw(meta, facts, stdout, stderr, runs, origin, digest)


def whole(text: str) -> int | None:
    """A whole number of at most 19 digits; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _run(result: Result, name: str) -> Execution:
    written = ""
    if files.exists(result.folder / name / "exit"):
        written = result.text(name, "exit", limit=files.ACCOUNT).strip()
    dims, texts = result.pairs(name, "dims"), (result.text(name, f) for f in ("stdout", "stderr"))
    return Execution(dims, whole(written), *texts)


def _unreadable(name: str, error: OSError | UserError) -> Exception:
    if isinstance(error, files.Unread):  # not the node's fault, and not for good
        return error
    why = error.what if isinstance(error, UserError) else error.strerror
    return OutputError(f"result cannot be read: {name}: {why}", "generic")


BY_MUNGE = "auth/munge"


def of_job(nodes: Iterable[str], wanted: str, *, slurm: bool) -> Origin:
    """What the results of these nodes must bear. wanted: `origin` of the site's partition."""
    nonce = secrets.token_hex(16)
    try:
        if why := _why_none(wanted, slurm):
            return Origin(f"none: {why}", nonce)
        login, hosts = munge.own(), client.hosts()
    except UserError as error:
        return Origin(f"none: {error}", nonce)
    known = {node: sorted({node, *hosts.get(node, [])}) for node in nodes}
    is_node = any(socket.gethostname() in names for names in known.values())
    address = "" if login.of_no_host or is_node else login.address
    return Origin(wanted, nonce, os.getuid(), address, known)


def _why_none(wanted: str, slurm: bool) -> str:
    """Why the nodes need no credential; empty: they need one. Raises UserError."""
    if not slurm:
        return "no Slurm"
    if wanted == "none":
        return "the site requires none"
    known_by = client.settings().get("AuthType", "unknown")
    return "" if known_by == BY_MUNGE else f"Slurm's AuthType is {known_by}"


def settings_of(origin: Origin) -> dict[str, str]:
    """What a node needs for its credential; nothing where none is required."""
    if not origin.evidence or origin.evidence.startswith("none"):  # empty in a dry run
        return {}
    return {"SITEPROOF_NONCE": origin.nonce, "SITEPROOF_MUNGE": munge.socket()}


UNPROVEN = "munge, node unproven"
BROKEN = "generic"  # the status of a node if the result is of another one
NO_NODE = ""  # a value of several nodes together
FORMAT = "siteproof"  # the first word in a node's credential


def walker(left: Raw, job: Manifest) -> str:
    """The node that has walked to a sweep's point, by its own account. Raises OutputError."""
    node = left.meta.get("node", "")
    if job.origin.evidence and node not in _nodes(job.expected):
        raise OutputError(
            f"its account is of '{node[:80]}', which is not a node of the job", BROKEN
        )
    return node


def check_origin(folder: Path, node: str, left: Raw, job: Manifest) -> str:
    """The evidence that a node has made this result. Raises OutputError if it has not.

    folder: of the result; its name is part of the node's credential.
    """
    _must_call_itself(node, left.meta, job)
    if job.origin.evidence not in ("munge", "user"):
        return job.origin.evidence
    if not left.origin.startswith("MUNGE:"):
        why = left.origin.removeprefix("none: ") or "it left none"
        raise OutputError(
            f"no credential of {node}: {why}; 'origin: none' of its partition in system.yaml "
            "needs none",
            BROKEN,
        )
    try:
        credential = munge.read(left.origin)
    except munge.Forged as error:
        raise OutputError(f"the credential is not genuine: {error}", BROKEN) from None
    except UserError as error:
        return f"munge, not checked: {error}"
    _must_say(credential.message, folder.name, node, left, job)
    if credential.uid != job.origin.uid:
        raise OutputError(
            f"the credential is of user {credential.uid}, the job of user {job.origin.uid}", BROKEN
        )
    return _of_host(credential, node, job.origin)


def of_all(each: Iterable[tuple[str, str]]) -> str:
    """The evidence of a job's results in one text. each: node and what `check` returned."""
    found: dict[str, set[str]] = {}
    for node, proof in each:
        if proof:
            found.setdefault(proof, set()).add(node)
    if len(found) <= 1:
        return next(iter(found), "")
    return "; ".join(
        f"{proof}: {nodesets.of(nodes - {NO_NODE})}" for proof, nodes in sorted(found.items())
    )


def _must_call_itself(node: str, meta: Mapping[str, str], job: Manifest) -> None:
    """Raises OutputError where the node's own account is of another node."""
    named = meta.get("node", "" if job.origin.evidence else node)
    if named != node:
        raise OutputError(f"its account is of node '{named[:80]}'", BROKEN)
    host = meta.get("host", "").partition(".")[0]
    known = job.origin.hosts.get(node, [node])
    if host not in (node, *known) and host in _nodes(job.expected):
        raise OutputError(f"it was made on {host}", BROKEN)


def _must_say(said: str, name: str, node: str, left: Raw, job: Manifest) -> None:
    """Raises OutputError where a credential belongs to another result than this."""
    words = said.split()
    parts = {
        "format": FORMAT,
        "job": job.origin.nonce,
        "node": node,
        "folder": name,
        "content": left.digest,
    }
    if len(words) != len(parts):
        raise OutputError("the credential does not belong to a result", BROKEN)
    for part, found in zip(parts, words, strict=True):
        if found != parts[part]:
            raise OutputError(f"the credential has another {part} than the result", BROKEN)


def _of_host(credential: munge.Credential, node: str, origin: Origin) -> str:
    """The evidence of a genuine credential. Raises OutputError where another host has made it."""
    names = origin.hosts.get(node, [node])
    if any(credential.address in _addresses(name) for name in names):
        return "munge"
    elsewhere = origin.login and credential.address == origin.login
    if origin.evidence == "user" or credential.of_no_host or elsewhere:
        return UNPROVEN
    raise OutputError(
        f"the credential was made on {credential.address}, which is not {node}; 'origin: user' of "
        "its partition in system.yaml, if munged there knows another address than Slurm",
        BROKEN,
    )


@functools.cache
def _nodes(expected: str) -> frozenset[str]:
    return frozenset(nodesets.parse(expected))


@functools.cache
def _addresses(name: str) -> frozenset[str]:
    try:
        found = socket.getaddrinfo(name, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return frozenset([name])
    return frozenset([name, *(str(where[0]) for *_, where in found)])
