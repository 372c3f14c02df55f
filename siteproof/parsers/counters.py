"""Counters of nodes, read each second by counters.sh: text in, bytes of each second out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise

from siteproof.errors import OutputError
from siteproof.parsers import Reading

END = "end of counters"
MAX_SECONDS = 100_000  # of one node
GAP = 30  # seconds without a line, after which nothing is known

_NODE = re.compile(r"node (\S{1,200}) network (\S{1,200}) storage (\S{1,200})")
_LINE = re.compile(r"([0-9]{1,12}) ([0-9]{1,20}) ([0-9]{1,20}|-)")


@dataclass
class Node:
    """A node's counters. network, storage: what the counter is of; nodes may share one.

    times: seconds since 1970. carried, stored: bytes at each; stored is empty without a counter.
    """

    name: str
    network: str
    storage: str
    times: list[int] = field(default_factory=list)
    carried: list[int] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)


def nodes(text: str) -> list[Node]:
    """The nodes of an output. Raises OutputError where it is cut off, or a line is not of it."""
    lines = text.splitlines()
    if lines.count(END) != 1 or lines[-1] != END:
        raise OutputError(f"counters: not one whole output that ends with '{END}'")
    found: list[Node] = []
    for line in lines[:-1]:
        if named := _NODE.fullmatch(line):
            found.append(Node(named[1], named[2], named[3]))
        elif (numbers := _LINE.fullmatch(line)) and found:
            _add(found[-1], *numbers.groups())
        else:
            raise OutputError(f"counters: a line that is none of counters: {line[:40]!r}")
    names = [node.name for node in found]
    if not names or len(set(names)) != len(names):
        raise OutputError("counters: no node, or a node twice")
    return found


def parse(text: str) -> list[Reading]:
    """`seconds` (s), how long each node was read (dimension `node`).

    Raises OutputError where a counter fell, or was not read for 30 seconds.
    """
    found = nodes(text)
    for node in found:
        _must_be_whole(node)
    return [
        Reading("seconds", Decimal(node.times[-1] - node.times[0]), "s", {"node": node.name})
        for node in found
    ]


def of_each_second(
    times: Iterable[int], values: Iterable[int], begin: int, end: int
) -> dict[int, float]:
    """Bytes in each second from begin to before end: a difference is spread over its seconds."""
    found: dict[int, float] = dict.fromkeys(range(begin, end), 0.0)
    for (before, low), (after, high) in pairwise(zip(times, values, strict=True)):
        for second in range(before, after):
            if second in found:
                found[second] += (high - low) / (after - before)
    return found


def _must_be_whole(node: Node) -> None:
    """Raises OutputError."""
    if len(node.times) < 2:
        raise OutputError(f"counters: {len(node.times)} values of a node, at least 2 are needed")
    if min(_steps(node.times)) <= 0 or max(_steps(node.times)) > GAP:
        raise OutputError("counters: a node was not read each second", "invalid")
    if min([*_steps(node.carried), *_steps(node.stored)]) < 0:
        raise OutputError("counters: a counter fell", "invalid")


def _steps(counts: list[int]) -> list[int]:
    return [after - before for before, after in pairwise(counts)]


def _add(node: Node, second: str, carried: str, stored: str) -> None:
    if node.times and int(second) == node.times[-1]:
        return  # twice within one second
    if len(node.times) >= MAX_SECONDS:
        raise OutputError(f"counters: more than {MAX_SECONDS} values of a node")
    node.times.append(int(second))
    node.carried.append(int(carried))
    if stored != "-":
        node.stored.append(int(stored))
