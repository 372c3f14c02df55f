"""Pairs of nodes that measure a link: which of them, and which at the same time.

The rounds of pattern `all` are the circle method: Lucas, Récréations mathématiques II (1883).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from ClusterShell.NodeSet import NodeSet

from siteproof.sites import Link, Site

Pair = tuple[str, str]
Rounds = Sequence[Sequence[Pair]]  # the pairs of a round measure at the same time


def servers(site: Site, link: Link) -> NodeSet:
    """The nodes that answer on a link."""
    return site.system.members(link.servers)


def clients(site: Site, link: Link) -> NodeSet:
    """The nodes that ask on a link."""
    return site.system.members(link.clients)


def planned(site: Site, link: Link) -> list[Pair]:
    """The pairs (client, server) that the pattern fixes in advance, each two nodes once.

    Empty for random pairs: nobody knows them before they are measured.
    """
    if link.pattern.startswith("random:"):
        return []
    turns = rounds(link.pattern, servers(site, link), clients(site, link), 0)
    return [pair for together in turns for pair in together]


def directed(site: Site, link: Link) -> list[Pair]:
    """The pairs (sender, receiver) that need a value each: both directions of `planned`."""
    pairs = planned(site, link)
    return [turn for a, b in pairs for turn in ((a, b), (b, a))]


@dataclass(frozen=True)
class Circle(Sequence[list[Pair]]):
    """Every two of the nodes, in as few turns as possible; in odd company one rests each turn.

    A turn is made when it is read: 10,000 nodes have 50 million pairs.
    """

    nodes: tuple[str, ...]
    servers: frozenset[str]
    clients: frozenset[str]

    def __len__(self) -> int:
        return (len(self.nodes) - 1) | 1 if len(self.nodes) > 1 else 0

    @overload
    def __getitem__(self, turn: int) -> list[Pair]: ...

    @overload
    def __getitem__(self, turn: slice) -> list[list[Pair]]: ...

    def __getitem__(self, turn: int | slice) -> list[Pair] | list[list[Pair]]:
        if isinstance(turn, slice):
            return [self._turn(number) for number in range(len(self))[turn]]
        return self._turn(range(len(self))[turn])

    def _turn(self, shift: int) -> list[Pair]:
        first, *others = [*self.nodes, *[""] * (len(self.nodes) % 2)]
        ring = [first, *others[shift:], *others[:shift]]
        half = len(ring) // 2
        facing = zip(ring[:half], reversed(ring[half:]), strict=True)
        # As client and server, as far as each is only one of both.
        turned = (
            (b, a) if a not in self.clients or b not in self.servers else (a, b) for a, b in facing
        )
        return [pair for pair in turned if all(pair)]


def rounds(pattern: str, servers: NodeSet, clients: NodeSet, seed: object) -> Rounds:
    """The pairs (client, server) in turns; each two nodes once, and nobody with itself.

    pattern: as Link.pattern. A turn's pairs share no node, except where all run together.
    seed: what the random turns depend on, such as the session; anything that prints.
    """
    if pattern in ("star", "together"):
        pairs = _star(list(servers), list(clients))
        return [[pair] for pair in pairs] if pattern == "star" else [pairs] if pairs else []
    nodes = list(servers | clients)
    if pattern != "all":
        random.Random(str(seed)).shuffle(nodes)
    circle = Circle(tuple(nodes), frozenset(servers), frozenset(clients))
    # a random few: the first turns of a random order
    return circle if pattern == "all" else circle[: int(pattern.partition(":")[2])]


def across(nodes: Sequence[str], most: int) -> list[list[Pair]]:
    """Rounds of pairs of the first half of the nodes with the second; of an odd number one rests.

    At most so many of the rounds in which each meets each of the other half, evenly spaced.
    """
    half = len(nodes) // 2
    return [
        [(nodes[number], nodes[half + (number + shift) % half]) for number in range(half)]
        for shift in range(0, half, max(1, -(-half // most)))
    ]


def ends(rounds: Rounds) -> set[str]:
    """All nodes that take part."""
    if isinstance(rounds, Circle):
        return set(rounds.nodes) if len(rounds) else set()
    return {end for together in rounds for pair in together for end in pair}


def at_once(rounds: Rounds) -> int:
    """How many pairs measure at the same time, at most."""
    if isinstance(rounds, Circle):
        return len(rounds.nodes) // 2
    return max(map(len, rounds), default=0)


def count(rounds: Rounds) -> int:
    """How many pairs there are."""
    if isinstance(rounds, Circle):
        return len(rounds) * at_once(rounds)
    return sum(map(len, rounds))


def side_by_side(turns: Rounds) -> list[list[Pair]]:
    """The same pairs, each as early as both of its nodes are free: a star of many servers is short.

    For what does not load the network; the pairs of a round share no node.
    """
    free: dict[str, int] = {}
    found: list[list[Pair]] = []
    for client, server in (pair for together in turns for pair in together):
        first = max(free.get(client, 0), free.get(server, 0))
        free[client] = free[server] = first + 1
        found += [[] for _ in range(first + 1 - len(found))]
        found[first].append((client, server))
    return found


def few_at_once(turns: Rounds, most: int) -> Rounds:
    """The same pairs, of which at most so many measure at the same time."""
    if at_once(turns) <= most:
        return turns
    return [pairs[first : first + most] for pairs in turns for first in range(0, len(pairs), most)]


def _star(servers: Sequence[str], clients: Sequence[str]) -> list[Pair]:
    """Client i with server i mod n, or with the next one if that is the client itself."""
    found: dict[frozenset[str], Pair] = {}
    for number, client in enumerate(clients):
        turned = (servers[(number + step) % len(servers)] for step in range(len(servers)))
        server = next((server for server in turned if server != client), None)
        if server is not None:
            found.setdefault(frozenset((client, server)), (client, server))
    return list(found.values())
