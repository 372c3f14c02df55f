"""The programs of OpenStack in their root: daemons, commands, statements to the database."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from errors import TestbedError

from serving import openstack_config, openstack_root
from serving.openstack_config import APIS, SITES
from serving.place import TAIL, Place

# Runs a program as the first process of its own PID namespace: with it, all its children end.
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "chroot")
MARIADB = (
    "mariadbd --user=root --bind-address=127.0.0.1 --max-connections=1000 --performance-schema=OFF"
    " --innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=256M --innodb-log-file-size=32M"
)
MEMCACHED = "memcached -u root -l 127.0.0.1 -m 64"
RABBITMQ = "rabbitmq-server"
RABBITMQ_SETTINGS = {
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
}
HYPERVISOR = "nova-compute --config-file /etc/nova/nova.conf --config-file"
WAIT = """\
import socket, sys, time
port, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while True:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        break
    except OSError:
        if time.monotonic() > end:
            sys.exit("nothing listens")
        time.sleep(0.1)
"""
PORTS = {"mariadb": 3306, "memcached": 11211, "rabbitmq": 5672}
PORTS |= {name: port for name, (port, _, _) in APIS.items()}
PATIENCE = 150  # seconds until a service listens, on a busy machine


def root(place: Place) -> Path:
    """As this process reaches it."""
    return openstack_root.seen(place)


def passwords(place: Place) -> dict[str, str]:
    """By user."""
    return dict(json.loads((root(place) / "etc/siteproof/secrets").read_text()))


def chroot(
    place: Place, argv: Sequence[str], *, given: str = "", env: Mapping[str, str] | None = None
) -> str:
    """What a program prints. Raises TestbedError."""
    words = ["chroot", str(place.folder / "root"), *argv]
    return place.bed.run(words, given=given, env=env, timeout=600)


def sql(place: Place, statement: str) -> list[str]:
    """The lines of its answer."""
    return chroot(place, ["mariadb", "-N", "-B", "-e", statement]).splitlines()


def configure(place: Place) -> None:
    """Write all settings."""
    top = root(place)
    for name, text in openstack_config.files(passwords(place)["service"]).items():
        path = top / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in openstack_config.FOLDERS:
        (top / name).mkdir(parents=True, exist_ok=True)
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    (top / "etc/hosts").write_text(f"127.0.0.1 localhost {host}\n")


def serve_below(place: Place) -> None:
    """What the services stand on: database, queue, cache."""
    (root(place) / "run/mysqld").mkdir(exist_ok=True)
    daemon(place, "rabbitmq", RABBITMQ.split(), RABBITMQ_SETTINGS)
    daemon(place, "mariadb", MARIADB.split())
    daemon(place, "memcached", MEMCACHED.split())
    listens(place, "mariadb", "memcached")


def serve_keystone(place: Place) -> None:
    """It alone; what is entered first needs no other service."""
    _wsgi(place, "keystone", "keystone-wsgi-public")


def serve(place: Place) -> None:
    """All other services, until each has reported."""
    begun = sql(place, "SELECT UTC_TIMESTAMP()")[0]
    _wsgi(place, "placement", "placement-api")
    listens(place, "rabbitmq")  # who does not reach it waits longer after each try
    for name, command in DAEMONS.items():
        daemon(place, name, command.split())
    listens(place, "keystone", "placement")  # a hypervisor does not try twice to reach them
    for site in SITES:
        daemon(place, f"nova-{site}", [*HYPERVISOR.split(), f"/etc/nova/{site}.conf"])
    listens(place, *APIS)
    _reports(place, begun)


def daemon(
    place: Place, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None
) -> None:
    """Start it, with a log of its name."""
    logs = place.folder / "logs"
    logs.mkdir(exist_ok=True)
    place.bed.start([*ALONE, str(place.folder / "root"), *argv], logs / name, env)


def _wsgi(place: Place, name: str, program: str) -> None:
    command = WSGI.format(port=PORTS[name], program=program)
    daemon(place, name, [*command.split(), "--add-header", "Connection: close"])


def end(place: Place) -> None:
    """End all programs, the database in order."""
    place.stop(f"{place.folder}/root [^m]")
    chroot(place, ["mariadb-admin", "shutdown"])
    place.stop(f"{place.folder}/")


def listens(place: Place, *names: str) -> None:
    """Until each takes connections. Raises TestbedError with the end of its log."""
    for name in names:
        argv = [sys.executable, "-c", WAIT, str(PORTS[name]), str(PATIENCE)]
        try:
            place.run(argv, timeout=PATIENCE + 30)
        except TestbedError:
            raise TestbedError(f"openstack: {name} does not listen: {_tail(place, name)}") from None


def _tail(place: Place, name: str) -> str:
    with suppress(OSError):
        text = (place.folder / "logs" / name).read_text(errors="replace")
        return " ".join(text.split())[-TAIL:]
    return "no log"


def _reports(place: Place, begun: str) -> None:
    """Until hypervisors and volume service have reported since a time of the database."""
    later = f"WHERE updated_at >= '{begun}' AND `binary` IN"
    statement = (
        f"SELECT host FROM nova.services {later} ('nova-compute', 'nova-conductor',"
        f" 'nova-scheduler') UNION ALL SELECT host FROM cinder.services {later}"
        " ('cinder-volume', 'cinder-scheduler')"
    )
    deadline = time.monotonic() + PATIENCE
    while len(found := sql(place, statement)) < 4 + len(SITES):
        if time.monotonic() > deadline:
            raise TestbedError(f"openstack: only these have reported: {' '.join(found)}")
        time.sleep(0.5)
