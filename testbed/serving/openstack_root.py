"""The Debian that OpenStack runs in: packages in the cache, and layers of what was changed."""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from errors import TestbedError

from serving.place import TAIL, Place

PACKAGES = (
    "keystone",
    "glance-api",
    "placement-api",
    "nova-api",
    "nova-conductor",
    "nova-scheduler",
    "cinder-api",
    "cinder-scheduler",
    "python3-neutron",
    "neutron-common",
    "neutron-server",
    "rabbitmq-server",
    "mariadb-server",
    "memcached",
    "uwsgi-core",
    "uwsgi-plugin-python3",
    "python3-openstacksdk",
    "python3-rbd",
    "python3-rados",
    "netbase",
    "procps",
)
LEFT_OUT = (
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/lib/python3/dist-packages/*/tests/*",
)
SOURCE = "$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
# A package is compiled when it is unpacked, one after the other; here all are, at the end.
HOOKS = {
    "setup": 'mkdir -p "$1/usr/sbin"; printf "#!/bin/sh\\nexit 101\\n" >"$1/usr/sbin/policy-rc.d";'
    ' chmod 755 "$1/usr/sbin/policy-rc.d"',
    "essential": 'chroot "$1" dpkg-divert --local --rename --add /usr/bin/py3compile;'
    ' printf "#!/bin/sh\\n" >"$1/usr/bin/py3compile"; chmod 755 "$1/usr/bin/py3compile"',
    "customize": 'chroot "$1" python3 -m compileall -q -j 0 /usr/lib/python3/dist-packages || :',
}
# With `up`, whatever ends it, all that it has started ends, and so do its mounts.
_ALONE = "setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc"
MOUNT = """\
mount -t overlay -o "lowerdir=$2,upperdir=$3,workdir=$4" overlay "$1"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
"""


def packages(cache: Path) -> Path:
    """The folder of a Debian with the packages: some minutes and 2 GB, once.

    It is made of the distribution and the package registry that apt-get uses here.
    """
    system = _system()
    text = json.dumps([PACKAGES, LEFT_OUT, HOOKS, system])
    made = cache / f"debian-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if not made.exists():
        partial = cache / "debian.partial"
        discard(partial)  # of one that was interrupted
        _install(partial, system)
        partial.rename(made)
    return made


def _system() -> str:
    """Debian's code name: of this machine's release, for its registry has that one."""
    lines = Path("/etc/os-release").read_text().splitlines()
    words = dict(line.split("=", 1) for line in lines if "=" in line)
    return words.get("VERSION_CODENAME", "").strip('"')


def _install(folder: Path, system: str) -> None:
    """Raises TestbedError."""
    settings = folder.with_suffix(".apt")
    settings.write_text(_lines(["apt-config", "dump"], "Acquire::"))
    origin = "Debian "
    found = _lines(["apt-get", "indextargets", "--format", SOURCE, "Created-By: Packages"], origin)
    sources = found.replace(origin, "")
    argv = [*_ALONE.split(), "mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory"]
    argv += [f"--aptopt={settings}", "--quiet", "--dpkgopt=force-unsafe-io"]
    argv += [f"--dpkgopt=path-exclude={what}" for what in LEFT_OUT]
    argv += [f"--{when}-hook={what}" for when, what in HOOKS.items()]
    _do([*argv, f"--include={','.join(PACKAGES)}", system, str(folder), "-"], sources)
    settings.unlink()


def _lines(argv: Sequence[str], beginning: str) -> str:
    """Those of a command's output that begin so."""
    return "".join(line for line in _do(argv).splitlines(True) if line.startswith(beginning))


def _do(argv: Sequence[str], given: str = "") -> str:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        argv, input=given, env=env, capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode:
        what = " ".join(done.stderr.split())[-TAIL:]
        raise TestbedError(f"openstack: its packages cannot be installed: {argv[0]}: {what}")
    return done.stdout


def discard(folder: Path) -> None:
    """Remove it, unless something is mounted in it."""
    if folder.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=True)


def mount(place: Place, layers: Sequence[Path], changes: Path) -> Path:
    """A root in the namespaces: layers, the uppermost first, and a folder of what is changed."""
    root = place.folder / "root"
    upper, work = changes / "upper", changes / "work"
    for folder in (root, upper, work):
        folder.mkdir(parents=True, exist_ok=True)
    upper.chmod(0o755)
    lower = ":".join(map(str, layers))
    place.run(["sh", "-ec", MOUNT, "sh", str(root), lower, str(upper), str(work)])
    return seen(place)


def seen(place: Place) -> Path:
    """The root, which is mounted in the namespaces only, as this process reaches it."""
    return Path(f"/proc/{place.bed.pid}/root{place.folder}/root")


def unmount(place: Place, seconds: float = 20) -> None:
    """Undo `mount`, when the programs in it have ended."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            place.run(["umount", "--recursive", str(place.folder / "root")])
        except TestbedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return
