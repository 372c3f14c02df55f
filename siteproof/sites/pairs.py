"""Pairs of nodes that measure a link: which of them, and which at the same time.

The rounds of pattern `all` are the circle method: Lucas, Récréations mathématiques II (1883).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ClusterShell.NodeSet import NodeSet

if TYPE_CHECKING:
    from siteproof.sites import Link, Site

Pair = tuple[str, str]


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
    planned = rounds(link.pattern, servers(site, link), clients(site, link), 0)
    return [pair for together in planned for pair in together]


def directed(site: Site, link: Link) -> list[Pair]:
    """The pairs (sender, receiver) that need a value each: both directions of `planned`."""
    return [
        turn
        for client, server in planned(site, link)
        for turn in ((client, server), (server, client))
    ]


def rounds(pattern: str, servers: NodeSet, clients: NodeSet, seed: object) -> list[list[Pair]]:
    """The pairs (client, server) in turns; each two nodes once, and nobody with itself.

    pattern: as Link.pattern. A turn's pairs share no node, except where all run together.
    seed: what the random turns depend on, such as the session; anything that prints.
    """
    if pattern in ("star", "together"):
        pairs = _star(list(servers), list(clients))
        return [[pair] for pair in pairs] if pattern == "star" else [pairs] if pairs else []
    nodes = list(servers | clients)
    wanted = None
    if pattern != "all":  # a random few of the turns of a random order
        random.Random(str(seed)).shuffle(nodes)
        wanted = int(pattern.partition(":")[2])
    return [
        [_as_client(a, b, servers, clients) for a, b in turn] for turn in _circle(nodes)[:wanted]
    ]


def side_by_side(turns: Sequence[Sequence[Pair]]) -> list[list[Pair]]:
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


def _star(servers: Sequence[str], clients: Sequence[str]) -> list[Pair]:
    """Client i with server i mod n, or with the next one if that is the client itself."""
    found: dict[frozenset[str], Pair] = {}
    for number, client in enumerate(clients):
        turned = (servers[(number + step) % len(servers)] for step in range(len(servers)))
        server = next((server for server in turned if server != client), None)
        if server is not None:
            found.setdefault(frozenset((client, server)), (client, server))
    return list(found.values())


def _circle(nodes: Sequence[str]) -> list[list[Pair]]:
    """Every two of the nodes, in as few turns as possible; in odd company one rests each turn."""
    if len(nodes) < 2:
        return []
    first, *others = [*nodes, *[""] * (len(nodes) % 2)]
    turns = []
    for shift in range(len(others)):
        ring = [first, *others[shift:], *others[:shift]]
        half = len(ring) // 2
        pairs = zip(ring[:half], reversed(ring[half:]), strict=True)
        turns.append([(a, b) for a, b in pairs if a and b])
    return turns


def _as_client(a: str, b: str, servers: NodeSet, clients: NodeSet) -> Pair:
    """Two nodes as client and server, as far as each is only one of both."""
    return (b, a) if a not in clients or b not in servers else (a, b)
