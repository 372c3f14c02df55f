"""Faults of a node's one link and of what its kernel does with packets.

Each `do` returns what its `undo` has to know. The link has two ends: eth0 on the node, and one
named as the node in the room.
"""

import subprocess

import network
import node
import values
from errors import TestbedError, UsageError
from state import ENVIRONMENT, State

_QUEUE = 0.02  # seconds of a capped link's queue
_LEAST_BURST = 32_768  # bytes: three packets of 9000 bytes
_MOST_SEGMENTS = 65_535  # the kernel's default
_BUFFERS = ("tcp_rmem", "tcp_wmem")


def cap(state: State, name: str, value: str) -> None:
    """A token bucket at both ends."""
    bits = values.rate(value)
    burst = max(_LEAST_BURST, bits // 8 // 1000)
    limit = burst + round(bits / 8 * _QUEUE)
    _at_both_ends(state, name, f"tc qdisc add dev LINK root tbf rate {bits}bit "
                               f"burst {burst} limit {limit}")  # fmt: skip


def uncap(state: State, name: str, _before: object) -> None:
    """As before."""
    _at_both_ends(state, name, "tc qdisc del dev LINK root")


def lose(state: State, name: str, value: str) -> None:
    """Drop packets at random where they come in, at both ends.

    Not where they go out: there TCP would be told, and send them again as if nothing were lost.
    """
    # A big TCP packet, to be cut up later, would be lost as a whole. So there shall be none.
    _at_both_ends(state, name, "ip link set dev LINK gso_max_segs 1")
    _at_both_ends(state, name, "tc qdisc add dev LINK clsact")
    _at_both_ends(state, name, "", *loss_filter("LINK", values.percent(value)))


def loss_filter(device: str, share: float) -> list[str]:
    """The tc command for a filter of four instructions that drops a share of what comes in.

    Kernels for test machines lack netem and the action 'random', but not classic BPF.
    """
    threshold = round(share * (2**32 - 1))
    # Load a random number of 32 bits; above the threshold: no opinion (-1), else: drop (2).
    code = f"4,32 0 0 4294963256,37 1 0 {threshold},6 0 0 2,6 0 0 4294967295"
    return ["tc", "filter", "add", "dev", device, "ingress", "bpf", "da", "bytecode", code]


def unlose(state: State, name: str, _before: object) -> None:
    """As before."""
    _at_both_ends(state, name, "tc qdisc del dev LINK clsact")
    _at_both_ends(state, name, f"ip link set dev LINK gso_max_segs {_MOST_SEGMENTS}")


def set_mtu(state: State, name: str, value: str) -> None:
    """At the node's end only: what comes in and is bigger is lost without a word."""
    node.must_run(state, name, ["ip", "link", "set", "eth0", "mtu", str(values.mtu(value))])


def unset_mtu(state: State, name: str, _before: object) -> None:
    """As before."""
    set_mtu(state, name, str(network.MTU))


def set_sysctl(state: State, name: str, value: str) -> list[list[str]]:
    """Returns path and old value."""
    return _write(state, name, [values.sysctl(value)])


def shrink_buffers(state: State, name: str, value: str) -> list[list[str]]:
    """Least, default and most of TCP's two buffers. Returns paths and old values."""
    most = values.size(value)
    least = min(4096, most)
    triple = f"{least} {min(16_384, most)} {most}"
    return _write(state, name, [(f"/proc/sys/net/ipv4/{file}", triple) for file in _BUFFERS])


def restore_sysctls(state: State, name: str, before: list[list[str]]) -> None:
    """As before."""
    _write(state, name, [(path, value) for path, value in before])


def _write(state: State, name: str, settings: list[tuple[str, str]]) -> list[list[str]]:
    """Set sysctls. Returns what they were. Raises UsageError for one that this kernel lacks."""
    for path, _ in settings:
        if node.run(state, name, ["test", "-w", path]).returncode:
            raise UsageError(f"{path}: this kernel has no such sysctl for a node to set")
    before = [[path, node.must_run(state, name, ["cat", path]).strip()] for path, _ in settings]
    for path, value in settings:
        node.must_run(state, name, ["dd", f"of={path}", "conv=notrunc", "status=none"], value)
    return before


def _at_both_ends(state: State, name: str, line: str, *more: str) -> None:
    """Run a command at eth0 on the node, and at the room's end of the same link.

    line: words with blanks between; more: words that may have blanks in them.
    """
    words = [*line.split(), *more]
    node.must_run(state, name, [word.replace("LINK", "eth0") for word in words])
    words = [word.replace("LINK", name) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        raise TestbedError(f"{words[0]}: {' '.join(done.stderr.split())}")
