"""sshd with keys: sftp, and rsync over ssh."""

import subprocess
from pathlib import Path

from serving import lines
from serving.place import Place

WHAT = "sftp and rsync: OpenSSH's sshd"
PORT, BEHIND = 22, 2022
PACKAGES = {"sshd": "openssh-server", "ssh": "openssh-client", "rsync": "rsync"}
FAULTS = {
    **lines.FAULTS,
    "wrong-host-key": "the server shows another host key",
    "refused-key": "the user's key is not accepted any more",
    "full-disk": "the folder has almost no room",
    "wrong-checksum": "each file is altered when it is written",
}


def start(place: Place) -> None:
    """Keys, configuration, sshd."""
    for name in ("host", "other", "user"):
        keygen(place.folder / name)
    (place.folder / "incoming").mkdir()
    place.write("authorized", (place.folder / "user.pub").read_text())
    place.write("known_hosts", known_hosts(place, PORT))
    serve(place, "host")
    place.relay(PORT, BEHIND)


def serve(place: Place, key: str) -> None:
    """sshd with this host key, in place of one that runs."""
    conf = place.write(
        "sshd.conf",
        f"""\
Port {BEHIND}
ListenAddress 127.0.0.1
HostKey {place.folder}/{key}
PidFile none
AuthorizedKeysFile {place.folder}/authorized
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
Subsystem sftp internal-sftp
""",
    )
    place.stop(f"sshd -D -f {conf}")
    place.daemon(["/usr/sbin/sshd", "-D", "-f", str(conf), "-e"])
    place.wait_inside(BEHIND)


def probe(place: Place) -> None:
    """The greeting of sshd."""
    place.hear(PORT, b"SSH-2.0-")


def facts(place: Place) -> dict[str, dict[str, object]]:
    """Two services of one server."""
    common = {
        "address": f"root@{place.address}:{PORT}",
        "folder": f"{place.folder}/incoming",
        "key": f"{place.folder}/user",
        "known_hosts": f"{place.folder}/known_hosts",
    }
    return {"sftp": {"kind": "sftp", **common}, "rsync": {"kind": "rsync", **common}}


def fault(place: Place, name: str, value: str) -> None:
    """Make it go wrong."""
    folder = place.folder / "incoming"
    if lines.fault(place, name, value):
        return
    if name == "wrong-host-key":
        serve(place, "other")
    elif name == "refused-key":
        place.write("authorized", "")
    elif name == "full-disk":
        place.fill(folder)
    elif name == "wrong-checksum":
        place.corrupt(folder)


def mend(place: Place) -> None:
    """As it was started."""
    place.spare(place.folder / "incoming")
    place.empty(place.folder / "incoming")
    place.write("authorized", (place.folder / "user.pub").read_text())
    serve(place, "host")


def keygen(path: Path) -> None:
    """A key pair without passphrase."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def known_hosts(place: Place, port: int) -> str:
    """The line of the host key, as ssh looks it up."""
    name = place.address if port == 22 else f"[{place.address}]:{port}"
    return f"{name} {' '.join((place.folder / 'host.pub').read_text().split()[:2])}\n"
