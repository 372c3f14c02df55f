"""Ceph: a monitor, a manager and three OSDs on files, with a pool of block volumes."""

import time
import uuid

from errors import TestbedError

from serving.place import Place

WHAT = "Ceph: block volumes (RBD) of three OSDs"
PORT = 3300
PACKAGES = {
    "/usr/bin/ceph": "ceph-common",
    "/usr/bin/ceph-mon": "ceph-mon",
    "/usr/bin/ceph-mgr": "ceph-mgr",
    "/usr/bin/ceph-osd": "ceph-osd",
}
OSDS = 3
POOL, VOLUME = "volumes", "first"
SIZE = 1024  # MiB of the volume
OSD_SIZE = 4 << 30  # bytes of each OSD's file, which takes no room until it is written to
PATIENCE = 90  # seconds until all OSDs are up
FAULTS = {
    "osd-down": "one OSD of three is dead; what reads or writes there waits",
    "osds-down": "all OSDs are dead; what reads or writes a volume waits",
    "full": "the pool takes no more data; what writes waits",
}
# One copy of each object: all OSDs share this machine's disk. No authentication, as nothing but
# this machine reaches it.
CONFIGURATION = """\
[global]
fsid = {fsid}
mon host = {address}
public network = {address}/32
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 16
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 1
mon data avail warn = 1
auth allow insecure global id reclaim = false
run dir = {folder}/run
admin socket = {folder}/run/$name.$pid.asok
log file = {folder}/$name.log
mon data = {folder}/mon
mgr data = {folder}/mgr
[client]
admin socket =
log file = /dev/null
[osd]
osd data = {folder}/osd.$id
osd objectstore = bluestore
bluestore block create = true
bluestore block size = {size}
osd memory target = 939524096
osd fast shutdown = true
bluestore fsck on mount = false
"""


def start(place: Place) -> None:
    """The daemons, and a pool with one volume."""
    fsid = str(uuid.uuid4())
    text = CONFIGURATION.format(
        fsid=fsid, address=place.address, folder=place.folder, size=OSD_SIZE
    )
    place.write("ceph.conf", text, 0o644)
    for name in ("run", "mon", "mgr"):
        (place.folder / name).mkdir()
    address = f"[v2:{place.address}:{PORT},v1:{place.address}:6789]"
    places = str(place.folder / "monmap")
    place.run(["monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, places])
    place.run(_words(place, "ceph-mon", "--mkfs", "-i", "a", "--monmap", places))
    place.daemon(_words(place, "ceph-mon", "-i", "a", "-f"))
    place.wait(PORT)
    place.daemon(_words(place, "ceph-mgr", "-i", "a", "-f"))
    for number in range(OSDS):
        _make_osd(place, number)
    _wait_for_osds(place, OSDS)
    _ceph(place, "osd", "pool", "create", POOL)
    _ceph(place, "osd", "pool", "application", "enable", POOL, "rbd")
    rbd = ("rbd", "create", f"{POOL}/{VOLUME}", "--size", str(SIZE))
    place.run(_words(place, *rbd, "--image-feature", "layering"))


def _make_osd(place: Place, number: int) -> None:
    own = str(uuid.uuid4())
    _ceph(place, "osd", "new", own)
    (place.folder / f"osd.{number}").mkdir()
    place.run(_words(place, "ceph-osd", "-i", str(number), "--mkfs", "--osd-uuid", own))
    _start_osd(place, number)


def _start_osd(place: Place, number: int) -> None:
    place.daemon(_words(place, "ceph-osd", "-i", str(number), "-f"))


def _words(place: Place, program: str, *words: str) -> list[str]:
    return [program, "-c", configuration(place), *words]


def configuration(place: Place) -> str:
    """Where clients find it, such as `rbd -c`, and QEMU by rbd:volumes/first:conf=…"""
    return str(place.folder / "ceph.conf")


def _ceph(place: Place, *words: str) -> str:
    return place.run(_words(place, "ceph", "--connect-timeout", "10", *words))


def _wait_for_osds(place: Place, number: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while _ups(place) != number:
        if time.monotonic() > deadline:
            raise TestbedError(f"ceph: {_ups(place)} of {number} OSDs are up: {place.tail()}")
        time.sleep(0.5)


def _ups(place: Place) -> int:
    """OSDs that are up, by `N osds: N up (since …), N in (since …)`."""
    words = _ceph(place, "osd", "stat").split()
    return int(words[words.index("up") - 1]) if "up" in words else 0


def probe(place: Place) -> None:
    """A volume's description can be read, which OSDs have."""
    place.run(_words(place, "rbd", "info", f"{POOL}/{VOLUME}"), timeout=20)


def facts(_place: Place) -> dict[str, dict[str, object]]:
    """None: it serves the guests of `testbed`, by its configuration, and no check."""
    return {}


def fault(place: Place, name: str, _value: str) -> None:
    """Make it go wrong."""
    if name == "full":
        _ceph(place, "osd", "pool", "set-quota", POOL, "max_bytes", "1")
        return
    dead = range(1 if name == "osd-down" else OSDS)
    for number in dead:
        place.stop(f"ceph-osd -c {configuration(place)} -i {number} ")
        _ceph(place, "osd", "down", str(number))


def mend(place: Place) -> None:
    """As it was started."""
    _ceph(place, "osd", "pool", "set-quota", POOL, "max_bytes", "0")
    for number in range(OSDS):
        place.stop(f"ceph-osd -c {configuration(place)} -i {number} ")
        _start_osd(place, number)
    _wait_for_osds(place, OSDS)
