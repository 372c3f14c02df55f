"""The timetable of a job over pairs: who measures with whom, when, and on which port.

A round begins every `seconds + AROUND` seconds by each node's own clock. In it the server begins at
once, the client LEAD seconds later, or up to LATE after that. Both end before the next round, even
if their clocks differ by SKEW.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.checks import selection
from siteproof.errors import UserError
from siteproof.sites import Link, Site, pairs
from siteproof.sites.pairs import Pair, Rounds
from siteproof.slurm.records import Node

FIRST_PORT = 5301  # of a turn's server; a server of several clients takes ports above it
PORTS = 16  # that a server may use for one client: nuttcp takes one for each stream
LAUNCH = 10  # seconds from the batch script's begin until every node walks the timetable
A_SECOND = 20  # nodes that Slurm launches in one more second
SKEW = 2  # seconds by which two nodes' clocks may differ
LEAD = SKEW + 1  # seconds that a server has to be ready
LATE = 2  # seconds after which a client no longer begins: the next round needs the nodes
KILL = 2  # seconds that a program may take to end
AROUND = LEAD + LATE + SKEW + KILL
SPARE = 120  # seconds after the last round; if they are left, there may be a second job

Turn = tuple[int, str, str]  # trial, client, server


@dataclass(frozen=True)
class Timetable:
    """Rounds of pairs that measure at the same time, several times over.

    trials: of each pair; they follow each other in time. seconds: that a client needs for a turn.
    """

    rounds: Rounds
    trials: int
    seconds: int

    @cached_property
    def turns(self) -> list[Turn]:
        """Each pair's turns in the order of time; of one trial, its number is 0."""
        return [
            (trial if self.trials > 1 else 0, *pair)
            for trial in range(1, self.trials + 1)
            for together in self.rounds
            for pair in together
        ]

    @cached_property
    def ends(self) -> NodeSet:
        """All nodes that take part."""
        return nodesets.of(sorted(pairs.ends(self.rounds)))

    @property
    def at_once(self) -> int:
        """How many pairs measure at the same time, at most."""
        return pairs.at_once(self.rounds)

    @property
    def turn(self) -> int:
        """Seconds from one round to the next."""
        return self.seconds + AROUND

    @property
    def launch(self) -> int:
        """Seconds until every node walks the timetable."""
        return LAUNCH + len(self.ends) // A_SECOND

    @property
    def length(self) -> int:
        """Seconds that a job over all turns takes."""
        return self.length_of(len(self.rounds) * self.trials)

    def length_of(self, rounds: int) -> int:
        """Seconds that a job of this many rounds takes."""
        return self.launch + rounds * self.turn + SPARE

    def lines(
        self, left: Iterable[int], name: Callable[[int], str], address: Callable[[str], str]
    ) -> list[str]:
        """ROUND TURN CLIENT SERVER PORT ADDRESS of these turns, as pair.sh reads it.

        left: their numbers. Rounds without any are left out.
        """
        by_round: dict[int, list[int]] = {}
        for turn in sorted(left):
            by_round.setdefault(self._round_of[turn], []).append(turn)
        lines = []
        for number, together in enumerate(by_round.values()):
            ports: dict[str, count[int]] = {}  # each server's, that are free in this round
            for turn in together:
                _, client, server = self.turns[turn]
                port = next(ports.setdefault(server, count(FIRST_PORT, PORTS)))
                lines.append(f"{number} {name(turn)} {client} {server} {port} {address(server)}")
        return lines

    @cached_property
    def _round_of(self) -> list[int]:
        each = [number for number, together in enumerate(self.rounds) for _ in together]
        return [
            trial * len(self.rounds) + number for trial in range(self.trials) for number in each
        ]


def rounds(
    site: Site,
    link: Link,
    pattern: str,
    spec: str,
    seed: object,
    states: Mapping[str, Node] | None = None,
    *,
    light: bool = False,
    most: int = 0,
) -> Rounds:
    """The rounds of a link, as far as `-S nodes=SPEC` selects them. Raises UserError.

    light: what is measured loads the network so little that pairs of a star need no turns of their
    own, as long as they share no node. most: pairs in a round; 0: no limit, which a pattern whose
    pairs all run together never has.

    spec: all, missing (all, of which the check takes its own), idle (pairs of two idle nodes), a
    count (the first so many clients of idle pairs), or nodes: a client brings its server along,
    where each has one. states: of the nodes, from Slurm; without them, all are idle.
    """
    servers, clients = pairs.servers(site, link), pairs.clients(site, link)
    laid = pairs.rounds(pattern, servers, clients, seed)
    if light and pattern == "star":
        laid = pairs.side_by_side(laid)
    if most and pattern != "together":
        laid = pairs.few_at_once(laid, most)
    if spec in ("all", nodesets.MISSING):
        return laid
    if selection.needs_states(spec):
        return _idle(laid, spec, states)
    chosen = selection.select(spec, site.system.inventory, {})
    by_client, names = pattern in ("star", "together"), set(chosen)
    kept = _kept(laid, lambda pair: pair[0] in names and (by_client or pair[1] in names))
    if not kept:
        ends = nodesets.of(sorted(pairs.ends(laid)))
        raise UserError(selection.OPTION, f"{chosen} has no pair of this link", str(ends))
    return kept


def _idle(laid: Rounds, spec: str, states: Mapping[str, Node] | None) -> list[list[Pair]]:
    """The pairs of which both nodes are idle, of a count those of the first so many clients."""
    idle = {n for n in pairs.ends(laid) if not states or n in states and states[n].state.idle}
    kept = _kept(laid, idle.issuperset)
    if not kept:
        raise UserError(selection.OPTION, "no pair has two idle nodes", "all")
    if spec == "idle":
        return kept
    clients = list(dict.fromkeys(client for together in kept for client, _ in together))
    wanted = selection.count_of(spec)
    if not 0 < wanted <= len(clients):
        what = f"{wanted} clients requested, {len(clients)} have an idle pair"
        raise UserError(selection.OPTION, what, f"all, idle, 1 to {len(clients)}, or a node set")
    first = {*clients[:wanted]}
    return _kept(kept, lambda pair: pair[0] in first)


def _kept(laid: Rounds, wanted: Callable[[Pair], bool]) -> list[list[Pair]]:
    kept = [[pair for pair in together if wanted(pair)] for together in laid]
    return [together for together in kept if together]
