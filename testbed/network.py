"""A routed network: every node has one link, to the room, which is the router.

No bridge: one broadcast domain of 320 nodes overflows the kernel's one ARP table. With a link
and a /32 address each, a node has one neighbour.
"""

import subprocess
from pathlib import Path

from errors import TestbedError
from state import ENVIRONMENT, LOGIN, State

MTU = 9000
GATEWAY = "169.254.0.1"
_PER_SUBNET = 250
_SITES = {"a": 77, "b": 78}


def address(state: State, node: str) -> str:
    """10.77.0.1 for the login node, from 10.77.1.1 on for the others; at site b 10.78."""
    if node == LOGIN:
        return "10.77.0.1"
    index = state.names().index(node)
    return f"10.{_SITES[state.site(node)]}.{index // _PER_SUBNET + 1}.{index % _PER_SUBNET + 1}"


def subnet(site: str) -> str:
    """All addresses of a site."""
    return f"10.{_SITES[site]}.0.0/16"


def ip_batch(lines: list[str], *, force: bool = False) -> None:
    """Run many `ip` commands in one process. force: go on after a line that fails."""
    command = ["ip", *(["-force"] if force else []), "-batch", "-"]
    done = subprocess.run(
        command, input="\n".join(lines) + "\n", text=True, capture_output=True, env=ENVIRONMENT
    )
    if done.returncode and not force:
        raise TestbedError(f"ip: {' '.join(done.stderr.split())}")


def write_hosts(state: State) -> None:
    """The /etc/hosts that all nodes see."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    lines += [f"{address(state, node)} {node}" for node in [LOGIN, *state.names()]]
    (state.path / "hosts").write_text("\n".join(lines) + "\n")


def start_router() -> None:
    """Let the room, which this process is in, pass packets on."""
    ip_batch(["link set lo up"])
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")


def make_taps(nodes: list[str]) -> None:
    """Make the links of guests, from within the room; the guest sets up its own end."""
    for node in nodes:
        ip_batch([f"tuntap add dev {node} mode tap vnet_hdr", f"link set {node} mtu {MTU}"])


def connect_node(state: State, node: str) -> None:
    """Make and set up the node's link, from within its network namespace.

    The other end, named as the node, goes to the room: process 1 as this process sees it.
    """
    ip_batch(
        [
            f"link add eth0 mtu {MTU} type veth peer name {node} mtu {MTU} netns 1",
            "link set lo up",
            "link set eth0 up",
            f"addr add {address(state, node)}/32 dev eth0",
            f"route add {GATEWAY} dev eth0 scope link",
            f"route add default via {GATEWAY} dev eth0 src {address(state, node)}",
        ]
    )


def connect_router(state: State, nodes: list[str]) -> None:
    """Set up the room's ends of the nodes' links, from within the room."""
    lines = []
    for node in nodes:
        lines.append(f"link set {node} up")
        lines.append(f"addr add {GATEWAY}/32 dev {node}")
        lines.append(f"route add {address(state, node)}/32 dev {node}")
    ip_batch(lines)


def disconnect(nodes: list[str]) -> None:
    """Remove the nodes' links, from within the room, if they are there."""
    ip_batch([f"link del {node}" for node in nodes], force=True)
