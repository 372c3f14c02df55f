"""The tools that a sweep may use, each with its class and its axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from siteproof.units import size


@dataclass(frozen=True)
class Axis:
    """What a tool lets a sweep vary.

    kind: number (whole), size (bytes, or with a unit) or word. words: those allowed; empty: all.
    needed: the tool has no default. one: a run gives all values up to it by itself.
    """

    kind: Literal["number", "size", "word"]
    sentence: str
    words: tuple[str, ...] = ()
    needed: bool = False
    one: bool = False


@dataclass(frozen=True)
class Tool:
    """A program in its class of checks. module: where the class is, below the clone.

    plain: the class also runs without a sweep, under checks/.
    """

    module: str
    check: str
    sentence: str
    axes: Mapping[str, Axis] = field(default_factory=dict)
    plain: bool = False
    for_knobs: tuple[str, ...] = ()  # axes that only give a fixed knob its numbers
    tasks: str = "1"  # if a sweep sets none: a number, or the axis that has it
    amount: str = ""  # the axis that `-S size` caps, where none is called size

    @property
    def all_axes(self) -> dict[str, Axis]:
        """Those of all tools, and its own."""
        return {**COMMON, **self.axes}


COMMON = {
    "tasks": Axis("number", "Ranks in all; 1, if not given."),
    "tasks_per_node": Axis("number", "Ranks on each node; 1, if not given."),
}
_REQUEST = Axis("size", "Bytes of a request.", needed=True)
_MESSAGE = Axis("size", "Bytes of a message; one run gives all sizes up to it.", one=True)

TOOLS = {
    "ior": Tool(
        "checks.storage.ior",
        "Ior",
        "Bandwidth of a file system from many ranks.",
        {
            "api": Axis("word", "How files are written.", ("POSIX", "MPIIO")),
            "layout": Axis(
                "word",
                "One file a task; one for all; one in which requests alternate.",
                ("file_a_task", "shared", "interleaved"),
            ),
            "transfer": _REQUEST,
            "block": Axis("size", "Bytes that a task writes.", needed=True),
            "reorder": Axis("word", "Whether a task reads what another node wrote.", ("yes", "no")),
        },
        plain=True,
        amount="block",
    ),
    "mdtest": Tool(
        "checks.storage.mdtest",
        "Mdtest",
        "Rates of metadata from many ranks.",
        {
            "variant": Axis(
                "word", "easy: a folder a task; hard: one folder for all.", ("easy", "hard")
            ),
            "files": Axis("number", "Files of a task.", needed=True),
        },
        plain=True,
    ),
    "fio": Tool(
        "checks.storage.fio_sweep",
        "FioSweep",
        "Requests of one node to a file system.",
        {
            "block": _REQUEST,
            "depth": Axis("number", "Requests at a time."),
            "pattern": Axis(
                "word",
                "What is read or written.",
                ("randread", "randwrite", "read", "write"),
                needed=True,
            ),
        },
    ),
    "messages": Tool(
        "checks.network.message_sweep",
        "MessageSweep",
        "Messages of MPI by size.",
        {"size": _MESSAGE},
    ),
    "collectives": Tool(
        "checks.network.collectives",
        "Collectives",
        "Collectives of MPI by number of ranks.",
        {"size": _MESSAGE},
        plain=True,
    ),
    "tcp": Tool(
        "checks.network.tcp_sweep",
        "TcpSweep",
        "TCP between two nodes.",
        {
            "streams": Axis("number", "Connections at a time."),
            "window": Axis("size", "Bytes of the socket buffers; the system's own, if not given."),
            "seconds": Axis("number", "Seconds of a run."),
            "buffer": Axis(
                "size", "Largest socket buffer; for fixed knobs: '4096 87380 {buffer}'."
            ),
        },
        for_knobs=("buffer",),
        tasks="2",
    ),
    "lst": Tool(
        "checks.network.lnet",
        "Lnet",
        "LNET selftest between clients and servers.",
        {
            "clients": Axis("number", "Nodes that ask: the first of the job.", needed=True),
            "servers": Axis(
                "number", "Nodes that answer: the first that serve the file system.", needed=True
            ),
            "concurrency": Axis("number", "Requests of each client at a time; 8, if not given."),
            "size": _REQUEST,
            "direction": Axis("word", "What the clients do.", ("read", "write"), needed=True),
        },
        tasks="clients",
        plain=True,
    ),
    "openstack": Tool(
        "checks.service.cloud_sweep",
        "Cloud",
        "Virtual machines that a cloud runs at a time.",
        {
            "servers": Axis("number", "Servers that are requested, and are to run.", needed=True),
            "batch": Axis("number", "Servers of a request, at most; 1, if not given."),
            "rate": Axis(
                "word", "Requests a minute: a number, or unlimited, which it is if not given."
            ),
            "networks": Axis("number", "Networks over which they are spread; 1, if not given."),
        },
    ),
}

SWEEPS_ONLY = {tool.check for tool in TOOLS.values() if not tool.plain}
_ALL = [item for tool in TOOLS.values() for item in tool.all_axes.items()]
SIZES = {name for name, axis in _ALL if axis.kind == "size"}
OF_ONE_RUN = {
    tool.check: {name for name, axis in tool.all_axes.items() if axis.one}
    for tool in TOOLS.values()
}


def shown(name: str, value: str) -> str:
    """An axis with its value as printed: block 4 KiB, depth 16."""
    return f"{name} {size(int(value)) if name in SIZES and value.isdigit() else value}"
