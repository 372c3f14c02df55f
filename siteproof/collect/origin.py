"""Whether a result is of its node: what a job asks for as evidence, and what a credential proves.

docs/threat-model.md lists what this proves, and what root on a node can still forge.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from siteproof import nodesets
from siteproof.collect.raw import Raw
from siteproof.errors import OutputError, UserError
from siteproof.record.manifest import Manifest, Origin
from siteproof.slurm import client, munge

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


def check(folder: Path, node: str, left: Raw, job: Manifest) -> str:
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
