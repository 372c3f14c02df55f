"""The guest in a virtual machine, by ssh: with a key of the test, and the host keys of its console.

cloud-init prints the host keys to the console between two lines; nothing else is accepted.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from siteproof.services.openstack_api import Cloud
from siteproof.services.ssh import Ssh
from siteproof.services.steps import StepFailed

CHANGED = "/var/tmp/siteproof"  # the file of a guest that a test writes
_BLOCK = re.compile(
    r"-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----", re.DOTALL
)
_KEY = re.compile(r"(?:ssh|ecdsa)-[a-z0-9-]{3,30} [A-Za-z0-9+/=]{20,2000}")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TOKEN = re.compile(r"[0-9a-f]{32}")


def host_keys(console: str) -> list[str]:
    """The host keys that a guest prints to its console, without their comments."""
    block = _BLOCK.search(console)
    return _KEY.findall(block[1]) if block else []


class Guest:
    """The guest of a server. Methods raise StepFailed."""

    def __init__(self, cloud: Cloud, server: Any, key: Path) -> None:
        self._cloud, self._server, self._key = cloud, server, key

    def run(self, command: str, text: str = "") -> str:
        """What a command prints; the login waits until the guest takes it."""
        keys = self._cloud.until(self._keys, bool)
        address = self._address()
        service = self._cloud.job.service
        scratch = self._cloud.job.scratch / f"guest-{self._server.id}"
        scratch.mkdir(exist_ok=True)
        known = scratch / "known_hosts"
        known.write_text("".join(f"{address} {key}\n" for key in keys))
        at = f"[{address}]" if ":" in address else address
        changes = {"address": f"{service.guest_user}@{at}", "known_hosts": f"{known}", "key": ""}
        job = replace(self._cloud.job, service=service.model_copy(update=changes), scratch=scratch)
        auth = ("PreferredAuthentications publickey", f'IdentityFile "{self._key}"')
        with Ssh(job, auth) as shell:
            self._cloud.until(lambda: _stands(shell), bool)
            return shell.printed(command, text)

    def write(self, token: str) -> None:
        """Change the guest's own disk."""
        self.run(f"cat > {CHANGED} && sync", token)

    def must_have(self, token: str) -> None:
        """Raises StepFailed unless the guest's disk has the change."""
        if self.run(f"cat {CHANGED}").strip() != token:
            raise StepFailed("checksum", "the change is not in the guest")

    def volume(self, volume: str, token: str, *, write: bool) -> None:
        """Write to a volume, or read what was written there. token: 32 hexadecimal digits."""
        if not _ID.fullmatch(volume) or not _TOKEN.fullmatch(token):
            raise StepFailed("generic", "the volume's identifier is no UUID")
        device = f"/dev/disk/by-id/virtio-{volume[:20]}"
        wait = f"for i in $(seq 10); do test -e {device} && break; sleep 1; done"
        if write:
            self.run(f"{wait}; sudo -n dd of={device} conv=fsync", token)
        elif self.run(f"{wait}; sudo -n head -c {len(token)} {device}").strip() != token:
            raise StepFailed("checksum", "the volume has not what was written to it")

    def _keys(self) -> list[str]:
        shown = self._cloud.api.compute.get_server_console_output(self._server)
        return host_keys(f"{shown.get('output') or ''}")

    def _address(self) -> str:
        """The first address of the server, a floating one before others."""
        found = [one for net in self._server.addresses.values() for one in net]
        found.sort(key=lambda one: one.get("OS-EXT-IPS:type") != "floating")
        if not found:
            raise StepFailed("generic", "the server has no address")
        address = f"{found[0].get('addr')}"
        if not re.fullmatch(r"[0-9A-Fa-f:.]{3,45}", address):
            raise StepFailed("generic", "the server's address is none")
        return address


def _stands(shell: Ssh) -> bool:
    """Whether the guest takes a login now; it may still boot."""
    try:
        shell.login()
    except StepFailed as error:
        if error.status == "login":
            raise
        return False
    return True
