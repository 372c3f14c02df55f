"""OpenStack over a fake hypervisor: keystone, glance, placement, nova, neutron and cinder.

Services, scheduler, databases and queues are real; a server of a fake hypervisor only counts as
running, and no packet crosses a network. Two hypervisors make two sites, each a zone.
"""

import fcntl
import hashlib
import http.client
import json
import secrets
import shutil
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from errors import TestbedError, UsageError

from serving import lines, openstack_config, openstack_root
from serving.openstack_config import APIS, DATABASES, SITES
from serving.place import RELAY, Place

WHAT = "OpenStack with a fake hypervisor"
PORT = 5000
PACKAGES = {"mmdebstrap": "mmdebstrap"}
FAULTS = {
    **lines.FAULTS,
    "hang": "connections are taken, and nothing is answered (--value nova: one API)",
    "500": "each request is answered with status 500 (--value nova: one API)",
    "expired-token": "password and tokens are refused (--value 3s: tokens expire so soon)",
    "quota-full": "the project may have no further server, port or volume",
    "server-error": "no hypervisor can start a server, and it ends in ERROR",
    "volume-stuck": "no volume is made, attached or detached: each stays in between",
    "no-host": "the scheduler finds no hypervisor",
}
PARTS = Path(__file__).with_name("openstack_parts")
PACKAGES_OF_PYTHON = "usr/lib/python3/dist-packages"
COPIED = {  # of PARTS, into the packages of Python
    "hypervisor.py": "nova/virt/siteproof.py",
    "volumes.py": "cinder/volume/drivers/siteproof.py",
    "mechanism.py": "siteproof_mechanism.py",
}
ENTRY_POINT = {
    "METADATA": "Metadata-Version: 2.1\nName: siteproof-mechanism\nVersion: 1\n",
    "entry_points.txt": "[neutron.ml2.mechanism_drivers]\nsiteproof = siteproof_mechanism:Driver\n",
}
PROGRAMS = ("nova.cmd.compute", "cinder.cmd.volume")  # whose packages would bring libvirt and tgt
PROGRAM = "#!/usr/bin/python3\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
# Runs a program as the first process of its own PID namespace: with it, all its children end.
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "chroot")
MARIADB = (
    "mariadbd --user=root --bind-address=127.0.0.1 --max-connections=1000 --performance-schema=OFF"
    " --innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=256M --innodb-log-file-size=32M"
)
MEMCACHED = "memcached -u root -l 127.0.0.1 -m 64"
RABBIT = {
    "HOME": "/var/lib/rabbitmq",
    "ERL_EPMD_ADDRESS": "127.0.0.1",
    "RABBITMQ_NODENAME": "rabbit@localhost",
    "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +S 1:1",
}
# A connection is closed after its answer, for uwsgi closes it in the middle of the next request.
WSGI = (
    "uwsgi --plugin python3 --http-socket 127.0.0.1:{port} --wsgi-file /usr/bin/{program}"
    " --processes 2 --enable-threads --master --die-on-term --lazy-apps --buffer-size 65535"
    " --post-buffering 65536 --disable-logging"
)
NEUTRON = (
    "--config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/ml2_conf.ini"
)
DAEMONS = {
    "glance": "glance-api --config-file /etc/glance/glance-api.conf",
    "nova-conductor": "nova-conductor --config-file /etc/nova/nova.conf",
    "neutron": f"neutron-server {NEUTRON}",
    "nova": "nova-api --config-file /etc/nova/nova.conf",
    "nova-scheduler": "nova-scheduler --config-file /etc/nova/nova.conf",
    "cinder": "cinder-api --config-file /etc/cinder/cinder.conf",
    "cinder-scheduler": "cinder-scheduler --config-file /etc/cinder/cinder.conf",
    "cinder-volume": "cinder-volume --config-file /etc/cinder/cinder.conf",
    **{
        f"nova-{site}": f"nova-compute --config-file /etc/nova/nova.conf"
        f" --config-file /etc/nova/{site}.conf"
        for site in SITES
    },
}
SYNCS = (  # each line after the one before it has ended; lines run at the same time
    "keystone-manage db_sync && keystone-manage fernet_setup --keystone-user keystone"
    " --keystone-group keystone",
    "glance-manage --config-file /etc/glance/glance-api.conf db_sync",
    "placement-manage db sync && cinder-manage db sync",
    "nova-manage api_db sync && nova-manage cell_v2 map_cell0 --database_connection"
    " {database}/nova_cell0 && nova-manage db sync && nova-manage cell_v2 create_cell --name=cell1",
    f"neutron-db-manage {NEUTRON} upgrade head",
)
FULL = {  # tables of quotas, and a row of each; the limit is the last column
    "nova_api.quotas (project_id, resource, hard_limit)": "'{project}', 'instances'",
    "neutron.quotas (id, project_id, resource, `limit`)": "UUID(), '{project}', 'port'",
    "cinder.quotas (deleted, project_id, resource, hard_limit)": "0, '{project}', 'volumes'",
}
WAIT = """\
import socket, sys, time
end = time.monotonic() + float(sys.argv[1])
for port in map(int, sys.argv[2:]):
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            if time.monotonic() > end:
                sys.exit(f"nothing listens at port {port}")
            time.sleep(0.1)
"""
MOST = 150  # seconds until a service listens, on a busy machine


def start(place: Place) -> None:
    """All services, over databases that were filled once and are kept in the cache."""
    with _cache(place) as cache:
        base = openstack_root.packages(cache)
        layer = cache / f"cloud-{_digest(base)}"
        if not layer.exists():
            _fill(place, base, layer)
    openstack_root.mount(place, [layer, base], place.folder / "changes")
    _configure(place)
    _serve_below(place)
    _sql(
        place,
        "UPDATE keystone.endpoint SET url = REPLACE(url, '127.0.0.1', "
        f"'{place.address}') WHERE interface = 'public'",
    )
    _serve(place)
    _relay(place)
    for name, project in (("siteproof", "siteproof"), ("admin", "admin")):
        _give_login(place, name, project)


@contextmanager
def _cache(place: Place) -> Iterator[Path]:
    """The folder of what is made once; another bed waits meanwhile."""
    folder = place.cache / "openstack"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _digest(base: Path) -> str:
    """Of all that the filled databases depend on."""
    content = hashlib.sha256(base.name.encode())
    for path in sorted([*PARTS.glob("*.py"), *Path(__file__).parent.glob("openstack*.py")]):
        content.update(path.read_bytes())
    return content.hexdigest()[:12]


# Databases, once


def _fill(place: Place, base: Path, layer: Path) -> None:
    """Make the databases, and enter what an operator enters: a minute."""
    partial = layer.parent / "cloud.partial"
    openstack_root.discard(partial)
    partial.mkdir()
    root = openstack_root.mount(place, [base], partial)
    _copy(root)
    _configure(place)
    _serve_below(place)
    for name in DATABASES:
        _sql(place, f"CREATE DATABASE {name}")
    user = "'openstack'@'127.0.0.1'"
    _sql(place, f"CREATE USER {user} IDENTIFIED BY 'openstack'; GRANT ALL ON *.* TO {user}")
    _sync(place)
    known = _secrets(place)
    _bootstrap(place, known["admin"])
    _serve_keystone(place)
    _listens(place, [5000])
    _seed(place, "people")
    _serve(place)
    _chroot(place, ["nova-manage", "cell_v2", "discover_hosts"])
    _seed(place, "cloud")
    _end(place)
    shutil.rmtree(root / "var/lib/rabbitmq/mnesia")
    openstack_root.unmount(place)
    shutil.rmtree(partial / "upper/run")
    (partial / "upper").rename(layer)
    openstack_root.discard(partial)


def _copy(root: Path) -> None:
    """What Debian's packages do not have."""
    for name, target in COPIED.items():
        shutil.copy(PARTS / name, root / PACKAGES_OF_PYTHON / target)
    entry = root / PACKAGES_OF_PYTHON / "siteproof_mechanism-1.dist-info"
    entry.mkdir()
    for name, text in ENTRY_POINT.items():
        (entry / name).write_text(text)
    for module in PROGRAMS:
        program = root / "usr/local/bin" / module.replace(".cmd.", "-")
        program.write_text(PROGRAM.format(module=module))
        program.chmod(0o755)
    own = root / "etc/siteproof"
    own.mkdir()
    shutil.copy(PARTS / "seed.py", own)
    names = ("admin", "service", "siteproof")
    (own / "secrets").touch(0o600)
    (own / "secrets").write_text(json.dumps({name: secrets.token_hex(16) for name in names}))


def _secrets(place: Place) -> dict[str, str]:
    """Passwords by user."""
    return dict(json.loads((_root(place) / "etc/siteproof/secrets").read_text()))


def _sync(place: Place) -> None:
    """The tables of all databases."""
    begun = "".join(f'( {line} ) & all="$all $!"\n' for line in SYNCS)
    script = begun + 'for one in $all; do wait "$one"; done\n'
    script = script.format(database=openstack_config.DATABASE)
    _chroot(place, ["sh", "-ec", script])


def _bootstrap(place: Place, password: str) -> None:
    argv = ["keystone-manage", "bootstrap", "--bootstrap-region-id", "RegionOne"]
    for interface in ("admin", "internal", "public"):
        argv += [f"--bootstrap-{interface}-url", "http://127.0.0.1:5000/v3"]
    _chroot(place, argv, env={"OS_BOOTSTRAP_PASSWORD": password})


def _seed(place: Place, what: str) -> None:
    catalogue = {
        name: (kind, f"http://127.0.0.1:{port}{path}")
        for name, (port, kind, path) in APIS.items()
        if name != "keystone"  # which has entered itself
    }
    given = {**_secrets(place), "catalogue": catalogue, "zones": SITES}
    argv = ["python3", "/etc/siteproof/seed.py", what]
    _chroot(place, argv, given=json.dumps(given))


# Programs


def _root(place: Place) -> Path:
    return openstack_root.seen(place)


def _chroot(
    place: Place, argv: Sequence[str], *, given: str = "", env: Mapping[str, str] | None = None
) -> str:
    """What a program prints. Raises TestbedError."""
    words = ["chroot", str(place.folder / "root"), *argv]
    return place.bed.run(words, given=given, env=env, timeout=600)


def _sql(place: Place, statement: str) -> list[str]:
    """The lines of its answer."""
    return _chroot(place, ["mariadb", "-N", "-B", "-e", statement]).splitlines()


def _daemon(place: Place, name: str, command: str, env: Mapping[str, str] | None = None) -> None:
    logs = place.folder / "logs"
    logs.mkdir(exist_ok=True)
    argv = [*ALONE, str(place.folder / "root"), *command.split()]
    place.bed.start(argv, logs / name, env)


def _end(place: Place) -> None:
    """All programs, the database in order."""
    place.stop(f"{place.folder}/root [^m]")
    _chroot(place, ["mariadb-admin", "shutdown"])
    place.stop(f"{place.folder}/")


def _configure(place: Place, life: int = openstack_config.LIFE) -> None:
    """Write all settings. life: seconds that a token is valid."""
    root = _root(place)
    for name, text in openstack_config.files(_secrets(place)["service"], life).items():
        path = root / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in openstack_config.FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    names = (root / "etc/hosts", root / "etc/hostname")
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    for path, text in zip(names, (f"127.0.0.1 localhost {host}\n", f"{host}\n"), strict=True):
        path.write_text(text)


def _serve_below(place: Place) -> None:
    """What the services stand on: database, queue, cache."""
    (_root(place) / "run/mysqld").mkdir(exist_ok=True)
    _daemon(place, "rabbitmq", "rabbitmq-server", RABBIT)
    _daemon(place, "mariadb", MARIADB)
    _daemon(place, "memcached", MEMCACHED)
    _listens(place, [3306, 11211])


def _serve_keystone(place: Place) -> None:
    _wsgi(place, "keystone", "keystone-wsgi-public")


def _wsgi(place: Place, name: str, program: str) -> None:
    command = WSGI.format(port=APIS[name][0], program=program)
    logs = place.folder / "logs"
    logs.mkdir(exist_ok=True)
    argv = [*ALONE, str(place.folder / "root"), *command.split()]
    place.bed.start([*argv, "--add-header", "Connection: close"], logs / name)


def _serve(place: Place) -> None:
    """All that is not running yet, until each has reported."""
    begun = _sql(place, "SELECT UTC_TIMESTAMP()")[0]
    if not _runs(place, "keystone-wsgi-public"):
        _serve_keystone(place)
    _wsgi(place, "placement", "placement-api")
    for name, command in DAEMONS.items():
        if command.startswith("nova-compute"):  # it does not try twice to reach them
            _listens(place, [APIS["keystone"][0], APIS["placement"][0], 5672])
        _daemon(place, name, command)
    _listens(place, [port for port, _, _ in APIS.values()])
    _reports(place, begun)


def _runs(place: Place, text: str) -> bool:
    try:
        place.run(["pgrep", "-f", "--", text])
    except TestbedError:
        return False
    return True


def _listens(place: Place, ports: Sequence[int]) -> None:
    """Until something takes connections at each port. Raises TestbedError with the log's end."""
    argv = [sys.executable, "-c", WAIT, str(MOST), *map(str, ports)]
    try:
        place.run(argv, timeout=MOST + 30)
    except TestbedError as error:
        raise TestbedError(f"openstack: {error}") from None


def _reports(place: Place, begun: str) -> None:
    """Until hypervisors and volume service have reported since a time of the database."""
    later = f"WHERE updated_at >= '{begun}' AND `binary` IN"
    statement = (
        f"SELECT host FROM nova.services {later} ('nova-compute', 'nova-conductor',"
        f" 'nova-scheduler') UNION ALL SELECT host FROM cinder.services {later}"
        " ('cinder-volume', 'cinder-scheduler')"
    )
    deadline = time.monotonic() + MOST
    while len(found := _sql(place, statement)) < 4 + len(SITES):
        if time.monotonic() > deadline:
            raise TestbedError(f"openstack: only these have reported: {' '.join(found)}")
        time.sleep(0.3)


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


def _give_login(place: Place, user: str, project: str) -> None:
    facts = {
        "username": user,
        "password": _secrets(place)[user],
        "project": project,
        "user_domain": "Default",
        "project_domain": "Default",
        "region": "RegionOne",
    }
    name = "admin" if user == "admin" else "credentials"
    place.write(name, "".join(f"{key}={value}\n" for key, value in facts.items()))


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
        _expire(place, value)
    elif name == "quota-full":
        _fill_quota(place)
    elif name == "server-error":
        (_root(place) / "etc/siteproof/spawn-fails").touch()
    elif name == "volume-stuck":
        _signal(place, "STOP")
    elif name == "no-host":
        _sql(place, "UPDATE nova.services SET disabled = 1 WHERE `binary` = 'nova-compute'")
    else:
        lines.fault(place, name, value)


def mend(place: Place) -> None:
    """As it was started; servers, volumes and what else was made meanwhile stay."""
    for name in APIS:
        _behave(place, name, "")
    (_root(place) / "etc/siteproof/spawn-fails").unlink(missing_ok=True)
    _signal(place, "CONT")
    _sql(
        place,
        "UPDATE nova.services SET disabled = 0 WHERE `binary` = 'nova-compute';"
        " DELETE FROM nova_api.quotas; DELETE FROM neutron.quotas; DELETE FROM cinder.quotas",
    )
    if place.fault.startswith("expired-token"):
        _life(place, openstack_config.LIFE)
        _set_password(place, _secrets(place)["siteproof"])


def _break_line(place: Place, mode: str, name: str) -> None:
    if not name:
        place.behave(mode)
    elif name in APIS:
        _behave(place, name, mode)
    else:
        (place.folder / "fault").unlink()
        raise UsageError(f"'{name}' is no API; they are: {', '.join(APIS)}")


def _signal(place: Place, name: str) -> None:
    """To cinder-volume's processes."""
    place.run(["pkill", f"-{name}", "-f", "--", "cinder-volume --config-file"])


def _fill_quota(place: Place) -> None:
    project = _sql(place, "SELECT id FROM keystone.project WHERE name = 'siteproof'")[0]
    for table, what in FULL.items():
        _sql(place, f"INSERT INTO {table} VALUES ({what.format(project=project)}, 0)")


def _expire(place: Place, value: str) -> None:
    if value:
        _life(place, _seconds(place, value))
    else:
        _set_password(place, secrets.token_hex(16))


def _seconds(place: Place, text: str) -> int:
    if not text.removesuffix("s").isdecimal():
        (place.folder / "fault").unlink()
        raise UsageError(f"'{text}' is not a valid number of seconds; for example 3s")
    return int(text.removesuffix("s"))


def _life(place: Place, seconds: int) -> None:
    """How long tokens are valid that are issued from now on; memcached forgets older ones."""
    _configure(place, seconds)
    place.stop(f"{place.folder}/root uwsgi .*keystone-wsgi-public")
    place.stop("memcached -u root")
    _daemon(place, "memcached", MEMCACHED)
    _serve_keystone(place)
    _listens(place, [PORT, 11211])


def _set_password(place: Place, password: str) -> None:
    """Of the test bed's user, whose tokens end with the password before it."""
    token = _token(place)
    found = _asked(place, token, "GET", "users?name=siteproof")
    user = found["users"][0]["id"]
    _asked(place, token, "PATCH", f"users/{user}", {"user": {"password": password}})
    place.stop("memcached -u root")  # in which services remember tokens for some minutes
    _daemon(place, "memcached", MEMCACHED)
    _listens(place, [11211])


def _token(place: Place) -> str:
    """Of the administrator."""
    user = {"name": "admin", "domain": {"id": "default"}, "password": _secrets(place)["admin"]}
    identity = {"methods": ["password"], "password": {"user": user}}
    project = {"name": "admin", "domain": {"id": "default"}}
    body = {"auth": {"identity": identity, "scope": {"project": project}}}
    with _answer(place, "", "POST", "auth/tokens", body) as answer:
        return str(answer.headers["X-Subject-Token"])


def _asked(place: Place, token: str, method: str, path: str, body: object = None) -> dict[str, Any]:
    with _answer(place, token, method, path, body) as answer:
        return dict(json.loads(answer.read()))


def _answer(place: Place, token: str, method: str, path: str, body: object) -> Any:
    """Of keystone. Raises TestbedError."""
    request = urllib.request.Request(
        f"http://{place.address}:{PORT}/v3/{path}",
        method=method,
        headers={"Content-Type": "application/json", **({"X-Auth-Token": token} if token else {})},
        data=None if body is None else json.dumps(body).encode(),
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(request, timeout=30)
    except OSError as error:
        raise TestbedError(f"openstack: keystone: {error}") from None
