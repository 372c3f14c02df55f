"""OpenStack over a fake hypervisor: keystone, glance, placement, nova, neutron and cinder.

Services, scheduler, databases and queues are real; a server of a fake hypervisor only counts as
running, and no packet crosses a network. Two hypervisors make two sites, each a zone.
"""

import fcntl
import http.client
import json
import secrets
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from errors import TestbedError, UsageError

from serving import lines, openstack_fill, openstack_root, openstack_run
from serving.openstack_config import APIS, SITES
from serving.place import RELAY, Place

WHAT = "OpenStack with a fake hypervisor"
PORT = 5000
PACKAGES = {"mmdebstrap": "mmdebstrap"}
FAULTS = {
    **lines.FAULTS,
    "hang": "connections are taken, and nothing is answered (--value nova: one API)",
    "500": "each request is answered with status 500 (--value nova: one API)",
    "expired-token": "the password and all tokens are refused",
    "quota-full": "the project may have no further server, port or volume",
    "server-error": "no hypervisor can start a server, and it ends in ERROR",
    "volume-stuck": "no volume is made, attached or detached: each stays in between",
    "no-host": "the scheduler finds no hypervisor with room for a server",
}
ROOM = "UPDATE placement.inventories SET max_unit = {}"  # what one server may have of a host
PROJECT = "SELECT id FROM keystone.project WHERE name = 'siteproof'"
FULL = {  # tables of quotas, and a row of each; the limit is the last column
    "nova_api.quotas (project_id, resource, hard_limit)": "'{project}', 'instances'",
    "neutron.quotas (id, project_id, resource, `limit`)": "UUID(), '{project}', 'port'",
    "cinder.quotas (deleted, project_id, resource, hard_limit)": "0, '{project}', 'volumes'",
}


def start(place: Place) -> None:
    """All services, over databases that were filled once and are kept in the cache."""
    with _cache(place) as cache:
        base = openstack_root.packages(cache)
        layer = cache / f"cloud-{openstack_fill.digest(base)}"
        if not layer.exists():
            openstack_fill.fill(place, base, layer)
    openstack_root.mount(place, [layer, base], place.folder / "changes")
    openstack_run.configure(place)
    openstack_run.serve_below(place)
    openstack_run.sql(
        place,
        "UPDATE keystone.endpoint SET url = REPLACE(url, '127.0.0.1', "
        f"'{place.address}') WHERE interface = 'public'",
    )
    openstack_run.serve_keystone(place)
    openstack_run.serve(place)
    _relay(place)
    _give_login(place, "credentials", "siteproof")
    _give_login(place, "admin", "admin")
    _wait_for_room(place)


@contextmanager
def _cache(place: Place) -> Iterator[Path]:
    """The folder of what is made once; another bed waits meanwhile."""
    folder = place.cache / "openstack"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


# As its users meet it


def _relay(place: Place) -> None:
    """In front of each API; all do what the place's mode is, unless one has a mode of its own."""
    place.behave("")
    for name, (port, _, _) in APIS.items():
        mode = place.folder / f"mode-{name}"
        mode.symlink_to("mode")
        argv = [sys.executable, str(RELAY), place.address, str(port), str(port), str(mode)]
        place.daemon(argv)
        place.wait(port)


def _behave(place: Place, name: str, mode: str) -> None:
    """One API's relay; empty: as the others."""
    own = place.folder / f"mode-{name}"
    own.unlink()
    if mode:
        own.write_text(mode)
    else:
        own.symlink_to("mode")


def _give_login(place: Place, file: str, user: str) -> None:
    """A file with what a user enters; the project has the user's name."""
    facts = {
        "username": user,
        "password": openstack_run.passwords(place)[user],
        "project": user,
        "user_domain": "Default",
        "project_domain": "Default",
        "region": "RegionOne",
    }
    place.write(file, "".join(f"{key}={value}\n" for key, value in facts.items()))


def probe(place: Place) -> None:
    """Each API has an answer to anybody."""
    for name, (port, _, _) in APIS.items():
        connection = http.client.HTTPConnection(place.address, port, timeout=10)
        try:
            connection.request("GET", "/")
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise TestbedError(f"{name} does not answer: {error or type(error).__name__}") from None
        finally:
            connection.close()
        if status not in (200, 300):
            raise TestbedError(f"{name} answers with status {status}")


def facts(place: Place) -> dict[str, dict[str, object]]:
    """One cloud with two zones."""
    entry: dict[str, object] = {
        "kind": "openstack",
        "address": f"http://{place.address}:{PORT}/v3",
        "credentials": f"{place.folder}/credentials",
        "image": "siteproof-menu",
        "flavor": "tiny",
        "resize_flavor": "small",
        "zone": SITES[0],
        "other_zone": SITES[1],
    }
    return {"openstack": entry}


# Faults


def fault(place: Place, name: str, value: str) -> None:
    """Make it go wrong."""
    if name in ("500", "hang"):
        _break_line(place, name, value)
    elif name == "expired-token":
        _set_password(place, secrets.token_hex(16))
    elif name == "quota-full":
        _fill_quota(place)
    elif name == "server-error":
        (openstack_run.root(place) / "etc/siteproof/spawn-fails").touch()
    elif name == "volume-stuck":
        _signal(place, "STOP")
    elif name == "no-host":
        openstack_run.sql(place, ROOM.format(0))
    else:
        lines.fault(place, name, value)


def mend(place: Place) -> None:
    """As it was started; servers, volumes and what else was made meanwhile stay."""
    for name in APIS:
        _behave(place, name, "")
    (openstack_run.root(place) / "etc/siteproof/spawn-fails").unlink(missing_ok=True)
    _signal(place, "CONT")
    for statement in (ROOM.format("total"), *(f"DELETE FROM {table.split()[0]}" for table in FULL)):
        openstack_run.sql(place, statement)
    if place.fault == "expired-token":
        _set_password(place, openstack_run.passwords(place)["siteproof"])


def _break_line(place: Place, mode: str, name: str) -> None:
    if not name:
        place.behave(mode)
    elif name in APIS:
        _behave(place, name, mode)
    else:
        (place.folder / "fault").unlink()
        raise UsageError(f"'{name}' is no API; they are: {', '.join(APIS)}")


def _signal(place: Place, name: str) -> None:
    """To cinder-volume, and not to what waits for it, which could not end then."""
    place.run(["pkill", f"-{name}", "-f", "--", "^/usr/bin/python3 [^ ]*cinder-volume"])


def _fill_quota(place: Place) -> None:
    project = openstack_run.sql(place, PROJECT)[0]
    for table, what in FULL.items():
        openstack_run.sql(place, f"INSERT INTO {table} VALUES ({what.format(project=project)}, 0)")


def _set_password(place: Place, password: str) -> None:
    """Of the test bed's user, whose tokens end with the password before it."""
    token = _token(place)
    found = _asked(place, token, "GET", "users?name=siteproof")
    user = found["users"][0]["id"]
    _asked(place, token, "PATCH", f"users/{user}", {"user": {"password": password}})
    place.stop("memcached -u root")  # in which services remember tokens for some minutes
    openstack_run.daemon(place, "memcached", openstack_run.MEMCACHED.split())
    openstack_run.listens(place, "memcached")


def _wait_for_room(place: Place) -> None:
    """Until the scheduler of volumes knows where there is room; before, each volume is an error."""
    project = openstack_run.sql(place, "SELECT id FROM keystone.project WHERE name = 'admin'")[0]
    token, port = _token(place), APIS["cinder"][0]
    for _ in range(120):
        with _answer(
            place, token, "GET", f"{project}/scheduler-stats/get_pools", None, port
        ) as answer:
            if json.loads(answer.read())["pools"]:
                return
        time.sleep(0.5)
    raise TestbedError("cinder: the scheduler knows no room for volumes")


def _token(place: Place) -> str:
    """Of the administrator."""
    password = openstack_run.passwords(place)["admin"]
    user = {"name": "admin", "domain": {"id": "default"}, "password": password}
    identity = {"methods": ["password"], "password": {"user": user}}
    project = {"name": "admin", "domain": {"id": "default"}}
    body = {"auth": {"identity": identity, "scope": {"project": project}}}
    with _answer(place, "", "POST", "auth/tokens", body) as answer:
        return str(answer.headers["X-Subject-Token"])


def _asked(place: Place, token: str, method: str, path: str, body: object = None) -> dict[str, Any]:
    with _answer(place, token, method, path, body) as answer:
        return dict(json.loads(answer.read()))


def _answer(
    place: Place, token: str, method: str, path: str, body: object, port: int = PORT
) -> Any:
    """Of keystone, or of another API. Raises TestbedError."""
    request = urllib.request.Request(
        f"http://{place.address}:{port}/v3/{path}",
        method=method,
        headers={"Content-Type": "application/json", **({"X-Auth-Token": token} if token else {})},
        data=None if body is None else json.dumps(body).encode(),
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(request, timeout=30)
    except OSError as error:
        raise TestbedError(f"openstack: keystone: {error}") from None
