"""What evidence a job's nodes can give that a result is theirs, looked up before it starts."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable

from siteproof.errors import UserError
from siteproof.record.manifest import Origin
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


def settings(origin: Origin) -> dict[str, str]:
    """What a node needs for its credential; nothing where none is required."""
    if not origin.evidence or origin.evidence.startswith("none"):  # empty in a dry run
        return {}
    return {"SITEPROOF_NONCE": origin.nonce, "SITEPROOF_MUNGE": munge.socket()}
