"""A virtual machine under QEMU in a network of its own, and the bare path beside it.

Two network namespaces without names: `near` has a nuttcp server, one end of a veth ("bare") and
one tap for each card of the guest; `far` has the other end of the veth. All processes die with
the one that started them, whatever ends it, and the namespaces and devices go with them.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from qemu_boot import EXIT, READY, Boot

DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
LIFETIME = 170  # seconds that a lab may last, with all that is measured in it
BOOTING = 90  # seconds; an idle machine takes 5
# Each way into the guest: model of the card, and who moves its packets.
CARDS = {
    "virtio": ("virtio-net-pci", "off"),
    "e1000": ("e1000", "off"),
    "vhost": ("virtio-net-pci", "on"),
}
NETS = {"bare": 0, "virtio": 1, "e1000": 2, "vhost": 3}
# The congestion control that every kernel has and allows everywhere, so that all ways have one.
SAME_TCP = "echo reno >/proc/sys/net/ipv4/tcp_congestion_control"
MACHINE = "-accel tcg,thread=multi -machine q35 -cpu max -smp 1 -m 256"


class GuestError(Exception):
    """The guest, or what should lead to it, failed."""


class Lab:
    """The two namespaces. near, far: a process in each; pids: of all that was started."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.deadline = time.monotonic() + LIFETIME
        self.pids: list[int] = []
        self.near, self.far = self._namespace(), self._namespace()
        self.inside(
            self.near,
            "ip",
            "link",
            "add",
            "bare",
            "type",
            "veth",
            "peer",
            "name",
            "bare",
            "netns",
            str(self.far),
        )
        for pid, end in ((self.near, 1), (self.far, 2)):
            self.inside(pid, "ip", "link", "set", "lo", "up")
            self.up(pid, "bare", end)
            self.inside(pid, "sh", "-c", SAME_TCP)
        self.start("nsenter", "-t", str(self.near), "-n", "nuttcp", "-S", "--nofork")
        self._wait_for_port(5000)

    def start(self, *words: str, **options) -> subprocess.Popen:
        """Start a program that ends with the lab, at the latest."""
        process = subprocess.Popen([*DIES_WITH_US, *words], **options)
        self._stack.callback(_end, process)
        self.pids.append(process.pid)
        return process

    def inside(self, pid: int, *words: str) -> str:
        """What a command says in the namespace of a process; it has to succeed."""
        left = max(0.1, self.deadline - time.monotonic())
        done = subprocess.run(
            [*DIES_WITH_US, "nsenter", "-t", str(pid), "-n", *words],
            text=True,
            capture_output=True,
            timeout=min(30, left),
        )
        if done.returncode:
            raise GuestError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def up(self, pid: int, device: str, end: int) -> None:
        """Give a device the address of its net and start it."""
        self.inside(pid, "ip", "addr", "add", address(device, end) + "/24", "dev", device)
        self.inside(pid, "ip", "link", "set", device, "up")

    def received(self) -> Mapping[str, int]:
        """Bytes that each device of `near` has received."""
        rows = Path(f"/proc/{self.near}/net/dev").read_text()
        return {name: int(count) for name, count in re.findall(r"(\w+): *(\d+)", rows)}

    def _namespace(self) -> int:
        holder = self.start(
            "unshare", "--net", "sh", "-c", f"echo; exec sleep {LIFETIME}", stdout=subprocess.PIPE
        )
        if holder.stdout.readline() != b"\n":
            raise GuestError("unshare --net made no namespace")
        return holder.pid

    def _wait_for_port(self, port: int) -> None:
        for _ in range(100):
            tables = [Path(f"/proc/{self.near}/net/{name}") for name in ("tcp", "tcp6")]
            if any(f":{port:04X} " in path.read_text() for path in tables if path.exists()):
                return
            time.sleep(0.1)
        raise GuestError(f"no server listens on port {port}")


class Guest:
    """A virtual machine. drivers: what drives each of its cards, as its own kernel says."""

    def __init__(self, lab: Lab, boot: Boot, *cards: str) -> None:
        self._lab, self._text = lab, ""
        words = [
            "qemu-system-x86_64",
            *MACHINE.split(),
            "-nodefaults",
            "-display",
            "none",
            "-serial",
            "stdio",
            "-no-reboot",
            "-kernel",
            str(boot.kernel),
            "-initrd",
            str(boot.initramfs),
            "-append",
            "console=ttyS0 quiet loglevel=1 panic=-1",
        ]
        for card in cards:
            model, vhost = CARDS[card]
            lab.inside(lab.near, "ip", "tuntap", "add", "dev", card, "mode", "tap", "vnet_hdr")
            lab.up(lab.near, card, 1)
            words += [
                "-netdev",
                f"tap,id={card},ifname={card},script=no,downscript=no,vhost={vhost}",
                "-device",
                f"{model},netdev={card},mac={_mac(card)},romfile=",
            ]
        self._qemu = lab.start(
            "nsenter",
            "-t",
            str(lab.near),
            "-n",
            *words,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if (done := self._answer(BOOTING))[0] != READY:
            raise GuestError(f"the guest did not boot: {done}")
        self.run(SAME_TCP)
        self.drivers = {
            card: self.run(f"address {_mac(card)} {address(card, 2)}/24").strip() for card in cards
        }

    def run(self, line: str, seconds: float = 30) -> str:
        """What a line of sh says in the guest; it has to succeed."""
        self._qemu.stdin.write(line.encode() + b"\n")
        code, text = self._answer(seconds)
        if code:
            raise GuestError(f"guest: {line}: exit {code}: {text}")
        return text

    def uptime(self) -> float:
        """Seconds since the boot, by the guest's clock."""
        return float(self.run("cat /proc/uptime").split()[0])

    def _answer(self, seconds: float) -> tuple[int, str]:
        """Exit code and output of one command."""
        until = min(time.monotonic() + seconds, self._lab.deadline)
        while not (end := re.search(rf"^{EXIT} (\d+)\r?\n", self._text, re.MULTILINE)):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._qemu.stdout], [], [], left)[0]:
                raise GuestError(f"the guest did not answer in time: {self._text[-500:]}")
            read = os.read(self._qemu.stdout.fileno(), 65536)
            if not read:
                raise GuestError(f"the guest ended: {self._text[-500:]}")
            self._text += read.decode(errors="replace")
        said, self._text = self._text[: end.start()], self._text[end.end() :]
        return int(end[1]), said


@contextmanager
def lab() -> Iterator[Lab]:
    """A lab, of which nothing is left afterwards."""
    with ExitStack() as stack:
        yield Lab(stack)


def address(net: str, end: int) -> str:
    """IPv4 address of an end of one of NETS: 1 near, 2 far or the guest."""
    return f"10.99.{NETS[net]}.{end}"


def _mac(card: str) -> str:
    return f"52:54:00:00:00:0{NETS[card]}"


def _end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
