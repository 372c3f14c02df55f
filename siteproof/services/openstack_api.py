"""A cloud by its API, with openstacksdk: the login, waiting for a state, and what tests have left.

Errors of the libraries become StepFailed. Every answer that is not a stream has a limit. Names and
messages of the cloud are data. A guest in a virtual machine is used by ssh: with a key of the test,
and the host keys of its console, which cloud-init prints there between two lines; nothing else is
accepted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import openstack
import requests
from keystoneauth1 import exceptions as auth_errors
from openstack import exceptions
from openstack.connection import Connection
from requests.adapters import HTTPAdapter

from siteproof.services.ssh import Ssh
from siteproof.services.steps import PREFIX, Job, Kind, StepFailed, Steps, lines_there, marked

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
        address = address_of(self._server.addresses)
        if not address:
            raise StepFailed("the server has no address")
        service = self._cloud.job.service
        scratch = self._cloud.job.scratch / f"guest-{self._server.id}"
        scratch.mkdir(exist_ok=True)
        known = scratch / "known_hosts"
        known.write_text("".join(f"{address} {key}\n" for key in keys))
        at = f"[{address}]" if ":" in address else address
        changes = {"address": f"{service.guest_user}@{at}", "known_hosts": f"{known}", "key": ""}
        job = replace(self._cloud.job, service=service.model_copy(update=changes), scratch=scratch)
        auth = ("PreferredAuthentications publickey", f'IdentityFile "{self._key}"')
        with closing(Ssh(job, auth)) as shell:
            self._cloud.until(lambda: _stands(shell), bool)
            return shell.printed(command, text)

    def write(self, token: str) -> None:
        """Change the guest's own disk."""
        self.run(f"cat > {CHANGED} && sync", token)

    def must_have(self, token: str) -> None:
        """Raises StepFailed unless the guest's disk has the change."""
        if self.run(f"cat {CHANGED}").strip() != token:
            raise StepFailed("the change is not in the guest", "checksum")

    def volume(self, volume: str, token: str, *, write: bool) -> None:
        """Write to a volume, or read what was written there. token: 32 hexadecimal digits."""
        if not _ID.fullmatch(volume) or not _TOKEN.fullmatch(token):
            raise StepFailed("the volume's identifier is not a UUID")
        device = f"/dev/disk/by-id/virtio-{volume[:20]}"
        wait = f"for i in $(seq 10); do test -e {device} && break; sleep 1; done"
        if write:
            self.run(f"{wait}; sudo -n dd of={device} conv=fsync", token)
        elif self.run(f"{wait}; sudo -n head -c {len(token)} {device}").strip() != token:
            raise StepFailed("the volume has not what was written to it", "checksum")

    def _keys(self) -> list[str]:
        shown = self._cloud.api.compute.get_server_console_output(self._server)
        return host_keys(f"{shown.get('output') or ''}")


def address_of(networks: Any) -> str:
    """The first address of a server, a floating one before others; empty: it has none."""
    every = networks.values() if isinstance(networks, dict) else ()
    found = [one for net in every for one in net if isinstance(one, dict)]
    found.sort(key=lambda one: one.get("OS-EXT-IPS:type") != "floating")
    known = (f"{one.get('addr')}" for one in found)
    return next((one for one in known if re.fullmatch(r"[0-9A-Fa-f:.]{3,45}", one)), "")


def _stands(shell: Ssh) -> bool:
    """Whether the guest takes a login now; it may still boot."""
    try:
        shell.login()
    except StepFailed as error:
        if error.status == "login":
            raise
        return False
    return True


PAUSE = 0.5  # seconds between two looks at a state: the resolution of all times
ANSWER = 64 * (1 << 20)  # bytes of an answer; 1000 servers in detail are 3 MB
MAX_THINGS = 20_000  # things of a kind that are looked at
# Of a server, a port, an image, a volume or its snapshot.
BAD = (
    *("error", "killed", "deleted", "pending_delete"),
    *("error_deleting", "error_extending", "error_restoring"),
)
FAKE = "FAKE CONSOLE OUTPUT"  # what nova's fake driver gives as each server's console
_PUBLIC = ("username", "project", "user_domain", "project_domain", "region")
_LATE = (exceptions.ResourceTimeout, auth_errors.ConnectTimeout, requests.Timeout)
NOT_ALLOWED = exceptions.SDKException, auth_errors.ClientException  # or the cloud has no such thing
ERRORS = (StepFailed, *NOT_ALLOWED, requests.RequestException)
# What a test creates, in the order in which it can be removed: the service of the API, and its
# functions that list and delete it.
THINGS = {
    "servers": ("compute", "servers", "delete_server"),
    "volume snapshots": ("block_storage", "snapshots", "delete_snapshot"),
    "volumes": ("block_storage", "volumes", "delete_volume"),
    "images": ("image", "images", "delete_image"),
    "networks": ("network", "networks", "delete_network"),
    "key pairs": ("compute", "keypairs", "delete_keypair"),
}
_THING = re.compile(rf"(\S+) \(({'|'.join(THINGS)})\)")


class _Limited(HTTPAdapter):
    """Takes no answer that is longer than ANSWER, unless it is streamed."""

    def send(
        self, request: requests.PreparedRequest, stream: bool = False, *args: Any, **how: Any
    ) -> requests.Response:
        answer = super().send(request, True, *args, **how)
        if not stream:
            body = answer.raw.read(ANSWER + 1, decode_content=True)
            if len(body) > ANSWER:
                raise StepFailed(f"an answer has more than {ANSWER} bytes")
            answer._content = body
        return answer


class Cloud:
    """The cloud of a service, as the user of its credentials. Methods raise StepFailed."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @cached_property
    def api(self) -> Connection:
        """openstacksdk's connection; nothing is read from its configuration or the environment."""
        given = self.job.pairs(shown=_PUBLIC)
        region = given.pop("region", None)
        auth = _login(given) | {"auth_url": self.job.service.address}
        secret = "application_credential_secret" in auth
        made = openstack.connect(
            load_yaml_config=False,
            load_envvars=False,
            app_name="siteproof",
            auth_type="v3applicationcredential" if secret else "password",
            auth=auth,
            region_name=region,
            identity_api_version="3",
            cacert=self.job.service.certificates or None,
            api_timeout=self.job.seconds,
        )
        made.session.redirect = False  # a token goes to the places of the catalogue only
        made.session.session.trust_env = False  # no .netrc, no proxy
        for scheme in ("http://", "https://"):
            made.session.session.mount(scheme, _Limited())
        return made

    def until(self, look: Callable[[], Any], done: Callable[[Any], bool]) -> Any:
        """Look at a thing until it is as it should be; it fails in a state that is bad.

        The time limit is the step's. Raises StepFailed.
        """
        while True:
            seen = look()
            if done(seen):
                return seen
            if f"{getattr(seen, 'status', '')}".lower() in BAD:
                raise StepFailed(fault(seen))
            time.sleep(PAUSE)

    def server_is(self, server: Any, status: str) -> Any:
        """Wait for a server's status, such as ACTIVE, with nothing under way any more."""
        return self.until(
            lambda: self.api.compute.get_server(server.id),
            lambda seen: seen.status == status and not seen.task_state,
        )

    def becomes(self, get: Callable[[str], Any], thing: Any, status: str) -> Any:
        """Wait for the status of another thing than a server. get: as it is now, by its id."""
        return self.until(lambda: get(thing.id), lambda seen: seen.status == status)

    def hypervisor(self, server: Any) -> str:
        """fake; the type, to those who may see it; else 'not shown'."""
        with suppress(*NOT_ALLOWED):
            shown = self.api.compute.get_server_console_output(server, length=10)
            if FAKE in f"{shown.get('output')}":
                return "fake"
        with suppress(*NOT_ALLOWED):
            every = islice(self.api.compute.hypervisors(), MAX_THINGS)
            kinds = {f"{one.hypervisor_type}" for one in every}
            if len(kinds) == 1 and "None" not in kinds:
                return kinds.pop().lower()
        return "not shown"

    def things(self, kind: str) -> list[Any]:
        """All things of a kind, of THINGS, that tests have created in the project."""
        own = self.api.current_project_id  # an administrator sees others', too
        chosen: dict[str, dict[str, Any]] = {
            "servers": {"name": f"^{PREFIX}"},
            "images": {"owner": own},
            "networks": {"project_id": own},
        }
        service, listing, _ = THINGS[kind]
        name = service.replace("_", "-")
        where: dict[str, Any] = {
            "region_name": self.api.config.get_region_name() or None,
            "interface": "public",
        }
        if not self.api.session.get_endpoint(service_type=name, **where):
            return []
        found = getattr(getattr(self.api, service), listing)(**chosen.get(kind, {}))
        return [one for one in islice(found, MAX_THINGS) if marked(f"{one.name}")]

    def found(self) -> list[str]:
        """MARK (KIND) of all that tests have left, in the order of removal."""
        names = []
        for kind in THINGS:
            own = {marked(f"{one.name}") for one in self.things(kind)}
            names += sorted(f"{PREFIX}{one[0]}-{one[1]} ({kind})" for one in own if one)
        return names

    def remove(self, name: str) -> None:
        """Remove the things of one kind that one test has created, and wait until all are gone."""
        match = _THING.fullmatch(name)
        if not match:
            raise StepFailed(f"'{name[:60]}' is not a name that a test has given")
        own, kind = marked(match[1]), match[2]
        service, _, delete = THINGS[kind]

        def left() -> list[Any]:
            return [one for one in self.things(kind) if marked(f"{one.name}") == own]

        failed = ""
        for one in left():
            try:
                getattr(getattr(self.api, service), delete)(one)
            except ERRORS as error:
                failed = failed or f"{kind}: {explain(error)}"
        if failed:
            raise StepFailed(failed)
        self.until(left, lambda seen: not seen)


def _login(given: dict[str, str]) -> dict[str, str]:
    """The lines of the credentials as keystoneauth names them. Raises StepFailed."""
    if "application_credential_id" in given:
        names = ("application_credential_id", "application_credential_secret")
        wanted = {name: name for name in names}
    else:
        wanted = {
            "username": "username",
            "password": "password",
            "project_name": "project",
            "user_domain_name": "user_domain",
            "project_domain_name": "project_domain",
        }
        given = {"user_domain": "Default", "project_domain": "Default", **given}
    lines_there(given, wanted.values())
    return {name: given[line] for name, line in wanted.items()}


def fault(seen: Any) -> str:
    """Why a thing is in a bad state, in the cloud's own words."""
    named = f"{type(seen).__name__.lower()} is {seen.status}"
    found = getattr(seen, "fault", None)
    message = found.get("message") if isinstance(found, dict) else None
    return f"{named}: {message}" if message else named


def explain(error: Exception) -> Exception:
    """What the libraries raise, as StepFailed; a time limit of theirs as TimeoutError."""
    if isinstance(error, _LATE):
        return TimeoutError()
    if isinstance(error, StepFailed) or not isinstance(error, ERRORS):
        return error
    code = getattr(error, "status_code", None) or getattr(error, "http_status", None)
    details = f"{getattr(error, 'details', None) or error}".strip()
    no_login = auth_errors.MissingAuthPlugin | auth_errors.AuthorizationFailure
    if isinstance(code, int) and code >= 400:
        return StepFailed(f"HTTP status {code}: {details}", "login" if code == 401 else "generic")
    return StepFailed(details, "login" if isinstance(error, no_login) else "generic")


def kinds(test: Callable[[Any, Steps], None]) -> dict[str, Kind]:
    """The kind of clouds, with one of its tests."""
    return {
        "openstack": Kind(
            test,
            found=lambda job: Cloud(job).found(),
            remove=lambda job, name: Cloud(job).remove(name),
            explain=explain,
        )
    }
