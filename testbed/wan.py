"""Two sites joined by one long link: every packet between them crosses it.

The room is the router of both sites. What comes from a node of one site for a node of the other
goes, by a rule of its own, into one end of the link, leaves it at the other, and only then
follows the common routes. The link is a veth pair with netem where the kernel has that, else two
taps and a program of ours between them, wan.c.
"""

import fcntl
import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import links
import network
import values
from errors import TestbedError, UsageError
from state import ENVIRONMENT, State

DEFAULT = "50ms,10gbit"
_ENDS = {"a": "wan-a", "b": "wan-b"}
_HOPS = {"a": "169.254.1.1", "b": "169.254.1.2"}
_MACS = {"a": "02:00:00:00:00:0a", "b": "02:00:00:00:00:0b"}
_TABLES = {"a": 101, "b": 102}
_SOURCE = Path(__file__).parent / "wan.c"
_BURST = 10_000  # packets that a tap holds while the program is not on a CPU
_LEAST_QUEUE = 1 << 18  # bytes: four of the kernel's biggest packets
_SMALL_PACKET = 500  # bytes, for netem, which counts packets

_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_CSUM, _TSO4, _TSO6, _TSO_ECN = 1, 2, 4, 8


@dataclass(frozen=True)
class Wan:
    """rtt in ms, rate in bit/s, loss from 0 to 1 each way."""

    rtt: float
    rate: int
    loss: float = 0

    @property
    def product(self) -> int:
        """Bytes that fill the link for a round trip; its queue is as long."""
        return round(self.rtt / 1000 * self.rate / 8)


def parse(text: str) -> Wan:
    """RTT,RATE or RTT,RATE,LOSS."""
    words = text.split(",")
    if len(words) not in (2, 3):
        raise UsageError(f"'{text}' is not a valid WAN; for example 50.5ms,10gbit")
    loss = values.percent(words[2]) if len(words) == 3 else 0
    return Wan(values.milliseconds(words[0]), values.rate(words[1]), loss)


def check() -> None:
    """Raises UsageError if this machine can make no WAN."""
    if not _has_netem() and not _compiler():
        raise UsageError("two sites need netem in the kernel or a C compiler (Debian: gcc)")


def start(state: State) -> None:
    """From within the room, before the nodes are there."""
    wan = parse(state.settings.wan or DEFAULT)
    if _has_netem():
        _start_netem(wan)
    else:
        _start_program(state, wan)
    lines = []
    for here, there in (("a", "b"), ("b", "a")):
        lines += [
            f"link set {_ENDS[here]} address {_MACS[here]} mtu {network.MTU} addrgenmode none",
            f"link set {_ENDS[here]} txqueuelen {_BURST} up",
            f"neigh add {_HOPS[there]} lladdr {_MACS[there]} dev {_ENDS[here]} nud permanent",
            f"route add {network.subnet(there)} via {_HOPS[there]} dev {_ENDS[here]} onlink"
            f" table {_TABLES[here]}",
            f"rule add pref 10 iif {_ENDS[here]} lookup main",
            f"rule add pref 20 from {network.subnet(here)} to {network.subnet(there)}"
            f" lookup {_TABLES[here]}",
        ]
    network.ip_batch(lines)
    if wan.loss:
        for end in _ENDS.values():
            _must(["ip", "link", "set", "dev", end, "gso_max_segs", "1"])
            _must(["tc", "qdisc", "add", "dev", end, "clsact"])
            _must(links.loss_filter(end, wan.loss))


def is_alive(state: State) -> bool:
    """Whether its program, if it needs one, runs: that holds a lock as long as it lives."""
    try:
        lock = os.open(_lock_file(state), os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _start_netem(wan: Wan) -> None:
    network.ip_batch([f"link add {_ENDS['a']} type veth peer name {_ENDS['b']}"])
    packets = 1000 + 2 * wan.product // _SMALL_PACKET
    for end in _ENDS.values():
        words = f"tc qdisc add dev {end} root netem limit {packets}"
        _must(f"{words} delay {wan.rtt / 2 * 1000:.0f}us rate {wan.rate}bit".split())


def _start_program(state: State, wan: Wan) -> None:
    program = state.path / "wan"
    _must([_compiler() or "cc", "-O2", "-pthread", "-o", str(program), str(_SOURCE)])
    taps = [_open_tap(end) for end in _ENDS.values()]
    lock = os.open(_lock_file(state), os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX)
    words = [*taps, round(wan.rtt / 2 * 1e6), wan.rate, max(wan.product, _LEAST_QUEUE)]
    with (state.log / "wan.log").open("w") as log:
        subprocess.Popen(
            [program, *map(str, words)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT,
            pass_fds=(*taps, lock), start_new_session=True,
        )  # fmt: skip
    for fd in (*taps, lock):
        os.close(fd)


def _open_tap(name: str) -> int:
    """A tap that takes big TCP packets whole, to be cut up where they leave the machine."""
    tap = os.open("/dev/net/tun", os.O_RDWR)
    flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    fcntl.ioctl(tap, _TUNSETOFFLOAD, _CSUM | _TSO4 | _TSO6 | _TSO_ECN)
    return tap


def _lock_file(state: State) -> Path:
    return state.path / "wan.lock"


def _compiler() -> str | None:
    return shutil.which("cc", path=ENVIRONMENT["PATH"])


def _has_netem() -> bool:
    """Tried on the loopback of a network namespace that is gone afterwards."""
    words = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return subprocess.run(words, capture_output=True, env=ENVIRONMENT).returncode == 0


def _must(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        raise TestbedError(f"{Path(words[0]).name}: {' '.join(done.stderr.split())}")
