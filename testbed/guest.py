"""Nodes that are virtual machines: QEMU in the node's namespaces, without KVM.

A guest sees this machine's files at their paths, as every node does, and has a kernel, /tmp,
/dev/shm and a network card of its own. QEMU itself is in the room's network, where one end of the
guest's link is a tap that is named as the node; so it can reach a Ceph on the login node.
"""

import socket
import subprocess
from pathlib import Path

import cgroups
import guestboot
import network
import node
from errors import TestbedError, UsageError
from state import ENVIRONMENT, State

# Each way into a guest: the model of its card, and whether this machine's kernel moves its packets.
CARDS = {
    "virtio": ("virtio-net-pci", "off"),
    "vhost": ("virtio-net-pci", "on"),
    "e1000": ("e1000", "off"),
}
_VHOST = Path("/dev/vhost-net")
PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "dpkg-deb": "dpkg",
}
MEMORY = 768  # MiB
_PATIENCE = 30  # seconds for QEMU's monitor
_PROMPT = b"(qemu) "
_MACHINE = (
    "-accel tcg,thread=multi -machine pc -cpu max -smp 1 -nodefaults -display none -no-reboot"
)


def parse(text: str, names: list[str]) -> dict[str, str]:
    """Which nodes are guests, with what card. Raises UsageError."""
    guests = {}
    for part in text.split(","):
        name, _, card = part.partition(":")
        if name not in names or name in guests or card not in CARDS:
            cards = " or ".join(CARDS)
            raise UsageError(f"--guests: '{part}' is not NODE:CARD, each node once, {cards}")
        guests[name] = card
    if "vhost" in guests.values() and not _VHOST.exists():
        raise UsageError(f"--guests: vhost needs {_VHOST}, which this machine does not have")
    return guests


def prepare(state: State) -> None:
    """Link what guests boot into the state folder, while there is a network to fetch it by."""
    if any(set(str(path)) & set(" :") for path in node.hidden(state)):
        raise UsageError("--share: a path that a guest sees has no blank and no colon")
    files = guestboot.boot_files()
    _kernel(state).symlink_to(files.kernel)
    _initramfs(state).symlink_to(files.initramfs)


def _kernel(state: State) -> Path:
    return state.path / "guest.kernel"


def _initramfs(state: State) -> Path:
    return state.path / "guest.initramfs"


def boot(state: State, name: str, start: str) -> None:
    """Start the machine. Returns before it has booted.

    start: what its first process runs at the end of the boot, as a script of sh.
    """
    state.node_file(name, "start").write_text(f"{start}while :; do sleep 1; done\n")
    cgroups.join(state, name)
    words = ["nsenter", "-t", str(node.pid(state, name)), "-m", "-u", "-i", "-p", "--"]
    log = (state.log / f"qemu.{name}.log").open("ab")
    with log:
        subprocess.Popen(
            [*words, "qemu-system-x86_64", *_options(state, name)],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )


def _options(state: State, name: str) -> list[str]:
    line = {
        "console": "ttyS0",
        "panic": "-1",
        "node": name,
        "address": network.address(state, name),
        "gateway": network.GATEWAY,
        "mtu": str(network.MTU),
        "munge": f"{state.path}/munge",
        "spool": f"{state.data}/spool",
        "shares": ":".join(map(str, node.hidden(state))),
        "start": str(state.node_file(name, "start")),
    }
    card, vhost = CARDS[state.settings.guests[name]]
    return [
        *_MACHINE.split(),
        *("-name", name, "-m", str(MEMORY)),
        *("-kernel", str(_kernel(state)), "-initrd", str(_initramfs(state))),
        *("-append", " ".join(["quiet", *(f"{key}={value}" for key, value in line.items())])),
        *("-serial", f"file:{state.log}/console.{name}.log"),
        *("-monitor", f"unix:{_monitor(state, name)},server=on,wait=off"),
        *_share("root", "/"),
        *_share("usr", "/usr"),
        *("-netdev", f"tap,id=net,ifname={name},script=no,downscript=no,vhost={vhost}"),
        *("-device", f"{card},netdev=net,mac={_mac(state, name)},romfile="),
    ]


def _share(tag: str, path: str) -> list[str]:
    local = f"local,id={tag},path={path},security_model=passthrough,multidevs=remap"
    return ["-fsdev", local, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def _mac(state: State, name: str) -> str:
    number = state.names().index(name) + 1
    return f"52:54:00:00:{number // 256:02x}:{number % 256:02x}"


def _monitor(state: State, name: str) -> Path:
    return state.node_file(name, "monitor")


def attach(state: State, name: str, source: str) -> None:
    """Give a guest a disk: a file, or a volume of Ceph in QEMU's words."""
    _command(state, name, f"drive_add 0 if=none,id=disk,format=raw,cache=none,file={source}")
    _command(state, name, "device_add virtio-blk-pci,drive=disk,id=disk")


def detach(state: State, name: str) -> None:
    """Take it away."""
    _command(state, name, "device_del disk")


def _command(state: State, name: str, line: str) -> None:
    """A line for QEMU's monitor, which prints nothing, or "OK", where it succeeds."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as monitor:
        monitor.settimeout(_PATIENCE)
        try:
            monitor.connect(str(_monitor(state, name)))
            _answer(monitor)
            monitor.sendall(f"{line}\n".encode())
            answer = _answer(monitor)
        except OSError as error:
            raise TestbedError(f"{name}: QEMU does not answer: {error}") from None
    # It echoes the line, with the codes of a terminal.
    said = answer.decode(errors="replace").replace("\r", "").partition("\n")[2].strip()
    if said not in ("", "OK"):
        raise TestbedError(f"{name}: {said}")


def _answer(monitor: socket.socket) -> bytes:
    """All that comes until the prompt."""
    heard = b""
    while not heard.endswith(_PROMPT):
        part = monitor.recv(4096)
        if not part:
            raise OSError("it has ended")
        heard += part
    return heard.removesuffix(_PROMPT)
