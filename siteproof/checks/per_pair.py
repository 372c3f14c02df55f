"""PerPairCheck: a link of the site measured between two nodes at a time, all in one job.

Every node walks the same timetable by its own clock (pair.sh): no node waits for a word of another,
so a dead one costs its own pairs and no more. A job is never cut into chunks, as pairs would be
lost between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from reframe.core.builtins import parameter, run_after, run_before, variable

from siteproof import collect, collect_pairs, pairs
from siteproof.checks import contract, contract_pairs, loading, session, slurm
from siteproof.checks.job import LOCAL, JobCheck
from siteproof.errors import UserError
from siteproof.fleet import nodeset
from siteproof.samples import Sample
from siteproof.sites.model import PATTERN, PATTERNS

FIRST_PORT = 5301  # of a turn's server; a server of several clients takes the ports above it
BY_TURNS = "1s"  # a time limit that nobody has set: it follows from the timetable
LAUNCH = 10  # seconds from the batch script's begin until every node walks the timetable
AROUND = 8  # seconds of a turn that are not the client's: server's lead, late clocks, the end
SPARE = 60  # seconds after the last turn

Turn = tuple[int, str, str]  # trial, client, server


def names() -> list[str]:
    """The site's links; one without a name stands for none, and SKIPs."""
    return list(session.current().site.system.links) or [""]


class PerPairCheck(JobCheck, special=True):
    """One quantity between two nodes, for every pair that the link's pattern asks for.

    A check says, beside what JobCheck asks for, by mode: `seconds_of_turn` that a client takes for
    all of its runs, and `trials_of` each pair; the trials follow each other in time. `patterns`:
    those in which it makes sense; a link of another pattern is measured as a star.
    Its script is run as client (SIDE=client; PEER, ADDRESS, PORT) and as server (SIDE=server;
    PORT), which is ended when the turn is over.
    """

    link = parameter(names())
    pattern = variable(str, value="")  # instead of the link's
    trials = variable(int, value=0)  # 0: by the mode
    time_limit = BY_TURNS

    runs_on_node = "pair.sh"
    shared_scripts = ("account.sh", "network.sh")
    seconds_of_turn: dict[str, int] = {}
    trials_of: dict[str, int] = {"quick": 1, "maintenance": 1, "acceptance": 3}
    patterns = ("star", "all", "random", "together")

    # ---- which pairs

    def places(self) -> list[str]:
        """The link's partition; all of them where there is nothing to measure, to say so."""
        site = session.current().site
        self.over = site.system.links.get(self.link)
        self.rounds: list[list[pairs.Pair]] = []
        self.none = "no pair was asked for" if self.over else "the site names no links"
        if not self.over:
            return list(site.system.partitions)
        self.trials = self.trials or self.trials_of[self.mode]
        if self.pattern and not PATTERN.fullmatch(self.pattern):
            what = f"unknown pattern '{self.pattern}'"
            loading.refuse(UserError("-S pattern", what, PATTERNS))
        given = self.pattern or self.over.pattern
        self.pattern = given if given.partition(":")[0] in self.patterns else "star"
        try:
            self.rounds = self.lay_rounds()
        except UserError as error:  # nodes that have no part in this link
            self.none = str(error)
        self.limit_time()
        return [self.over.partition]

    def lay_rounds(self) -> list[list[pairs.Pair]]:
        """Rounds of pairs (client, server) that run at the same time. Raises UserError."""
        site = session.current().site
        servers, clients = pairs.servers(site, self.over), pairs.clients(site, self.over)
        chosen = slurm.select(self.nodes, servers | clients, {})
        by_client = self.pattern in ("star", "together")
        laid = pairs.rounds(self.pattern, servers, clients, session.current().name)
        kept = [[(client, server) for client, server in together
                 if client in chosen and (by_client or server in chosen)] for together in laid]
        return [together for together in kept if together]

    def limit_time(self) -> None:
        """The timetable's length; a limit that somebody has set stays, and cuts it."""
        if self.seconds() == 1:
            self.time_limit = f"{self.length(len(self.rounds) * self.trials)}s"

    def turn(self) -> int:
        """Seconds from one round to the next."""
        return self.seconds_of_turn[self.mode] + AROUND

    def length(self, rounds: int) -> int:
        """Seconds that a job of so many rounds takes."""
        return self.launch() + rounds * self.turn() + SPARE

    def launch(self) -> int:
        """Seconds until every node walks the timetable."""
        return LAUNCH + len({end for together in self.rounds for pair in together for end in pair}
                            ) // 20

    @run_after("setup")
    def skip_without_slurm(self) -> None:
        """A second node can be had from Slurm only."""
        if self.where.scheduler == LOCAL:
            self.skip("a pair needs two nodes, and this partition has no Slurm")

    def expected_nodes(self) -> NodeSet:
        """Both ends of every pair."""
        if not self.rounds:
            self.skip(self.none)
        return nodeset(end for together in self.rounds for pair in together for end in pair)

    def plan_of_its_kind(self) -> dict[str, object]:
        """The turns in the order of time, and what all of them were measured under."""
        self.turns: list[Turn] = [
            (trial if self.trials > 1 else 0, *pair) for trial in range(1, self.trials + 1)
            for together in self.rounds for pair in together
        ]
        each = [number for number, together in enumerate(self.rounds) for _ in together]
        self.round_of = [trial * len(self.rounds) + number
                         for trial in range(self.trials) for number in each]
        at_once = max(map(len, self.rounds))
        conditions = {"link": self.link, "pattern": self.pattern, "at_once": str(at_once)}
        return {"turns": self.turns, "conditions": conditions,
                "together": self.pattern == "together"}

    # ---- the timetable

    def write_work(self, missing: bool) -> None:
        """The timetable: all turns whose ends can take part, or only those without a result."""
        stage = Path(self.stagedir)
        left = self.unmeasured() if missing else list(range(len(self.turns)))
        able = self.again if missing else self.asked
        left = [n for n in left if set(self.turns[n][1:]) <= set(able)]
        lines = []
        for number, together in enumerate(self.in_rounds(left)):
            taken: dict[str, int] = {}
            for turn in together:
                _, client, server = self.turns[turn]
                port = FIRST_PORT + taken.setdefault(server, 0)
                taken[server] += 1
                lines.append(f"{number} {collect_pairs.name(turn)} {client} {server} {port} "
                             f"{self.over.address_of(server)}")
        (stage / "timetable").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def in_rounds(self, turns: Sequence[int]) -> list[list[int]]:
        """The turns that run at the same time, in the order of time, without empty rounds."""
        found: dict[int, list[int]] = {}
        for turn in turns:
            found.setdefault(self.round_of[turn], []).append(turn)
        return [found[number] for number in sorted(found)]

    def unmeasured(self) -> list[int]:
        """The turns without a result."""
        there = collect.measured(Path(self.stagedir))
        return [n for n in range(len(self.turns)) if collect_pairs.name(n) not in there]

    def measured(self) -> set[str]:
        """The nodes that have done all of their turns, as client and as server."""
        there = collect.measured(Path(self.stagedir))
        waiting = set()
        for number, (_, client, server) in enumerate(self.turns):
            if collect_pairs.name(number) not in there:
                waiting.add(client)
            if collect_pairs.server_of(number) not in there:
                waiting.add(server)
        return set(self.expected_nodes()) - waiting

    @run_before("run")
    def place_begin(self) -> None:
        """The batch script says when round 0 begins: no clock but the nodes' own counts."""
        self.prerun_cmds = [f"echo $(($(date +%s) + {self.launch()})) >begin"]

    def settings(self) -> dict[str, str]:
        """The length of a turn, and what the site says of the link."""
        values = {"SITEPROOF_TURN": str(self.turn()),
                  "SECONDS_OF_TURN": str(self.seconds_of_turn[self.mode])}
        if self.over.mtu:
            values["LINK_MTU"] = str(self.over.mtu)
        return values

    def facts(self) -> dict[str, object]:
        """What the site says of the link: speed in b/s, MTU in bytes, round trip in seconds."""
        over = self.over
        known = {"speed": over.speed and over.speed.to("b/s"), "mtu": over.mtu,
                 "round_trip": over.round_trip and over.round_trip.to("s")}
        return {key: str(value) for key, value in known.items() if value}

    # ---- a second job

    def worth_another_job(self, measured: set[str], ended: str) -> NodeSet:
        """The ends of the turns without a result, where both can take a job now."""
        able = super().worth_another_job(measured, ended)
        if not able:
            return able
        turns = [self.turns[n] for n in self.unmeasured()]
        ends = nodeset(end for turn in turns for end in turn[1:])
        try:
            dead = slurm.unusable(ends, slurm.node_states(ends)) if ends else {}
        except UserError:
            return NodeSet(resolver=RESOLVER_NOGROUP)
        self.again = nodeset(
            end for turn in turns if not set(turn[1:]) & set(dead) for end in turn[1:])
        return self.again

    def parts_missing(self, failed: Sequence[Sample]) -> str:
        """One line: how many turns gave a figure, and what became of the others."""
        return contract_pairs.tell_failed(failed, len(self.turns))

    def compared(self, metric: str) -> list[tuple[str, float, str, contract.Reference]]:
        """The worst pair, and the worst against its client."""
        return contract_pairs.headline(
            self.site, type(self).__name__, metric, self.mode, getattr(self, "samples", []),
            {turn[1:] for turn in self.turns},
        )
