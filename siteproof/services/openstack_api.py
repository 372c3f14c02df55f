"""A cloud by its API, with openstacksdk: the login, waiting for a state, and what tests have left.

Errors of the libraries become StepFailed. Every answer that is not a stream has a limit. Names and
messages of the cloud are data.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from typing import Any

import openstack
import requests
from keystoneauth1 import exceptions as auth_errors
from openstack import exceptions
from openstack.connection import Connection
from requests.adapters import HTTPAdapter

from siteproof.services.steps import PREFIX, Job, StepFailed, marked

PAUSE = 0.5  # seconds between two looks at a state: the resolution of all times
ANSWER = 64 * (1 << 20)  # bytes of an answer; 1000 servers in detail are 3 MB
MAX_THINGS = 20_000  # things of a kind that are looked at
FAKE = "FAKE CONSOLE OUTPUT"  # what nova's fake driver gives as each server's console
_PUBLIC = ("username", "project", "user_domain", "project_domain", "region")
_LATE = (exceptions.ResourceTimeout, auth_errors.ConnectTimeout, requests.Timeout)
# What a test creates, in the order in which it can be removed.
KINDS = ("servers", "volume snapshots", "volumes", "images", "networks", "key pairs")
_THING = re.compile(rf"(\S+) \(({'|'.join(KINDS)})\)")


class _Limited(HTTPAdapter):
    """Takes no answer that is longer than ANSWER, unless it is streamed."""

    def send(
        self, request: requests.PreparedRequest, stream: bool = False, *args: Any, **how: Any
    ) -> requests.Response:
        answer = super().send(request, True, *args, **how)
        if not stream:
            body = answer.raw.read(ANSWER + 1, decode_content=True)
            if len(body) > ANSWER:
                raise StepFailed("generic", f"an answer has more than {ANSWER} bytes")
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
        for scheme in ("http://", "https://"):
            made.session.session.mount(scheme, _Limited())
        return made

    def until(
        self, look: Callable[[], Any], done: Callable[[Any], bool], *, bad: Iterable[str] = ()
    ) -> Any:
        """Look at a thing until it is as it should be; it fails in a state that is bad.

        The time limit is the step's. Raises StepFailed.
        """
        while True:
            seen = look()
            if done(seen):
                return seen
            status = f"{getattr(seen, 'status', '')}".lower()
            if status in bad:
                raise StepFailed("generic", f"{fault(seen)}")
            time.sleep(PAUSE)

    def server_is(self, server: Any, status: str) -> Any:
        """Wait for a server's status, such as ACTIVE, with nothing under way any more."""
        return self.until(
            lambda: self.api.compute.get_server(server.id),
            lambda seen: seen.status == status and not seen.task_state,
            bad=("error",),
        )

    def hypervisor(self, server: Any) -> str:
        """fake; the type, to those who may see it; else 'not shown'."""
        with _allowed():
            shown = self.api.compute.get_server_console_output(server, length=10)
            if FAKE in f"{shown.get('output')}":
                return "fake"
        with _allowed():
            kinds = {f"{one.hypervisor_type}" for one in self._first(self.api.compute.hypervisors)}
            if len(kinds) == 1 and "None" not in kinds:
                return kinds.pop().lower()
        return "not shown"

    def _first(self, listing: Callable[..., Iterable[Any]], **how: Any) -> list[Any]:
        return list(islice(listing(**how), MAX_THINGS))

    def things(self, kind: str) -> list[Any]:
        """All things of a kind, of KINDS, that tests have created in the project."""
        api, own = self.api, self.api.current_project_id  # an administrator sees others', too
        listings: dict[str, Callable[[], list[Any]]] = {
            "servers": lambda: self._first(api.compute.servers, name=f"^{PREFIX}"),
            "volume snapshots": lambda: self._first(api.block_storage.snapshots),
            "volumes": lambda: self._first(api.block_storage.volumes),
            "images": lambda: self._first(api.image.images, owner=own),
            "networks": lambda: self._first(api.network.networks, project_id=own),
            "key pairs": lambda: self._first(api.compute.keypairs),
        }
        with explained():
            if not api.session.get_endpoint(service_type=_SERVICES[kind], **self._where):
                return []
            return [one for one in listings[kind]() if marked(f"{one.name}")]

    @property
    def _where(self) -> dict[str, Any]:
        return {"region_name": self.api.config.get_region_name() or None, "interface": "public"}

    def found(self) -> list[str]:
        """MARK (KIND) of all that tests have left, in the order of removal."""
        names = []
        for kind in KINDS:
            own = (_mark(one) for one in self.things(kind))
            marks = sorted({f"{PREFIX}{one[0]}-{one[1]}" for one in own if one})
            names += [f"{mark} ({kind})" for mark in marks]
        return names

    def remove(self, name: str) -> None:
        """Remove the things of one kind that one test has created, and wait until all are gone."""
        match = _THING.fullmatch(name)
        if not match:
            raise StepFailed("generic", f"'{name[:60]}' is no name of what a test has created")
        own, kind = marked(match[1]), match[2]

        def left() -> list[Any]:
            return [one for one in self.things(kind) if _mark(one) == own]

        failed = ""
        for one in left():
            try:
                with explained():
                    self._delete(kind, one)
            except StepFailed as error:
                failed = failed or f"{kind}: {error}"
        if failed:
            raise StepFailed("generic", failed)
        self.until(left, lambda seen: not seen)

    def _delete(self, kind: str, one: Any) -> None:
        api = self.api
        if kind == "servers":
            api.compute.delete_server(one)
        elif kind == "volume snapshots":
            api.block_storage.delete_snapshot(one)
        elif kind == "volumes":
            api.block_storage.delete_volume(one)
        elif kind == "images":
            api.image.delete_image(one)
        elif kind == "networks":
            api.network.delete_network(one)
        else:
            api.compute.delete_keypair(one)


_SERVICES = {
    "servers": "compute",
    "volume snapshots": "block-storage",
    "volumes": "block-storage",
    "images": "image",
    "networks": "network",
    "key pairs": "compute",
}


def _mark(one: Any) -> tuple[str, str] | None:
    return marked(f"{one.name}")


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
    for line in wanted.values():
        if line not in given:
            raise StepFailed("login", f"credentials: no line {line}=…")
    return {name: given[line] for name, line in wanted.items()}


def fault(seen: Any) -> str:
    """Why a thing is in a bad state, in the cloud's own words."""
    named = f"{type(seen).__name__.lower()} is {seen.status}"
    found = getattr(seen, "fault", None)
    message = found.get("message") if isinstance(found, dict) else None
    return f"{named}: {message}" if message else named


@contextmanager
def _allowed() -> Iterator[None]:
    """Passes over what this user may not see, or what the cloud does not have."""
    with suppress(exceptions.SDKException, auth_errors.ClientException):
        yield


@contextmanager
def explained() -> Iterator[None]:
    """Turns what the libraries raise into StepFailed; a time limit of theirs into TimeoutError."""
    try:
        yield
    except _LATE:
        raise TimeoutError from None
    except (
        exceptions.SDKException,
        auth_errors.ClientException,
        requests.RequestException,
    ) as error:
        raise _reason(error) from None


def _reason(error: Exception) -> StepFailed:
    code = getattr(error, "status_code", None) or getattr(error, "http_status", None)
    details = f"{getattr(error, 'details', None) or error}".strip()
    if code == 401:
        return StepFailed("login", f"HTTP status 401: {details}")
    if isinstance(code, int) and code >= 400:
        return StepFailed("generic", f"HTTP status {code}: {details}")
    if isinstance(error, auth_errors.MissingAuthPlugin | auth_errors.AuthorizationFailure):
        return StepFailed("login", details)
    return StepFailed("generic", details)
