"""PerPairCheck: a link of the site measured between two nodes at a time, all in one job.

Every node walks the same timetable by its own clock (pair.sh): no node waits for another,
so a dead one costs its own pairs and no more. A job is never cut into chunks, as pairs would be
lost between them.

UdpCheck: what checks of UDP between two nodes share: programs, runs in order, their script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ClusterShell.NodeSet import NodeSet
from reframe.core.builtins import parameter, run_after, variable

from siteproof import nodesets
from siteproof.checks import loading, missing, progress, selection, session, timetable
from siteproof.checks.job import DERIVED_LIMIT, LOCAL, JobCheck
from siteproof.checks.timetable import Timetable
from siteproof.collect import pair_turns, stages
from siteproof.errors import UserError
from siteproof.parsers import iperf3, nuttcp
from siteproof.record.manifest import OfItsKind
from siteproof.record.samples import Sample
from siteproof.sites.catalogue import MODES
from siteproof.sites.pairs import Rounds
from siteproof.sites.system import PATTERN, PATTERNS
from siteproof.slurm import client
from siteproof.slurm.records import Node, unusable


def names() -> list[str]:
    """The site's links; one without a name stands for none, and SKIPs."""
    return list(session.current().site.system.links) or [""]


ONE: Mapping[str, int] = dict.fromkeys(MODES, 1)  # values of a setting, by mode
THREE: Mapping[str, int] = {"quick": 1, "maintenance": 1, "acceptance": 3}
NO_LIMIT: Mapping[str, int] = dict.fromkeys(MODES, 0)


class PerPairCheck(JobCheck, special=True):
    """One quantity between two nodes, for every pair of the link's pattern.

    A check defines, in addition to what JobCheck needs, by mode: `seconds_of_turn` that a client
    takes for all of its runs; the `trials` of each pair follow each other in time.
    `patterns`: those in which it makes sense; a link of another pattern is measured as a star.
    Its script is run as client (SIDE=client; PEER, ADDRESS, PORT) and as server (SIDE=server;
    PORT), which is ended when the turn is over.
    """

    link = parameter(names())
    pattern = variable(str, value="")  # instead of the link's
    trials = variable(int, value=0)  # 0: by the criteria or the mode
    at_once = variable(int, value=0)  # pairs in a round at most; 0: by criteria, or the pattern's
    time_limit = DERIVED_LIMIT

    runs_on_node = "pair.sh"
    shared_scripts: tuple[str, ...] = ("account.sh", "network.sh")
    seconds_of_turn: dict[str, int] = {}
    by_mode: Mapping[str, Mapping[str, Any]] = {"trials": THREE, "at_once": NO_LIMIT}
    patterns: tuple[str, ...] = ("star", "all", "random", "together")
    light = variable(bool, value=False)  # so little load that pairs of a star run side by side

    # ---- which pairs

    def places(self) -> list[str]:
        """The link's partition; all of them, to SKIP, where nothing can be measured."""
        site = session.current().site
        self.by_turns = self.derives_limit()
        self.none = "the site names no links"
        self.table = Timetable([], 1, 0)
        if not self.link:
            return list(site.system.partitions)
        self.over = site.system.links[self.link]
        self.trials = int(self.value_of("trials"))
        self.at_once = int(self.value_of("at_once"))
        if self.pattern and not PATTERN.fullmatch(self.pattern):
            what = f"unknown pattern '{self.pattern}'"
            loading.refuse(UserError("-S pattern", what, PATTERNS))
        given = self.pattern or self.over.pattern
        self.pattern = given if given.partition(":")[0] in self.patterns else "star"
        if not selection.needs_states(self.nodes):
            try:  # a node that the site does not have
                selection.select(self.nodes, site.system.inventory)
            except UserError as error:
                loading.refuse(error)
        self.lay_turns({})
        return [self.over.partition]

    def turn(self) -> int:
        """Seconds of a turn, by the mode."""
        return self.seconds_of_turn[self.mode]

    def where_of(self) -> dict[str, str]:
        """Only criteria on this link are answered."""
        emulated = {"emulated": self.over.emulated} if self.over.emulated else {}
        return {"link": self.link, **emulated}

    def known_before(self) -> dict[str, str]:
        """With what the timetable decides."""
        return {**super().known_before(), **self.laid()}

    def laid(self) -> dict[str, str]:
        """Conditions that follow from the timetable."""
        return {"pattern": self.pattern, "at_once": str(self.table.at_once)}

    def lay_turns(self, states: dict[str, Node]) -> None:
        """The timetable, and a time limit as long; a limit that -S sets stays, and cuts it.

        Without a turn, `none` has the reason.
        """
        active = session.current()
        rounds: Rounds = []
        try:
            which = self.over, self.pattern, self.nodes, active.name, states
            rounds = timetable.rounds(active.site, *which, light=self.light, most=self.at_once)
            self.none = "the link has no pair"
            if self.nodes == nodesets.MISSING:
                rounds = self.lacking_of(rounds)
                self.none = "nothing is missing"
            elif active.continued:
                rounds = self.lacking_of(rounds, restored=True) or rounds
        except UserError as error:  # nodes outside this link, or busy ones
            self.none = str(error)
        self.table = Timetable(rounds, self.trials, self.turn())
        if self.by_turns:
            self.time_limit = f"{self.table.length}s"

    def lacking_of(self, laid: Rounds, *, restored: bool = False) -> Rounds:
        """The rounds of pairs that lack an answer; of all at once, all if one does."""
        site = session.current().site
        each = [pair for together in laid for pair in together]
        lacks = missing.pairs(site, self.link, each, self.planned(), restored=restored)
        if self.pattern == "together" and lacks:
            return laid
        left = [[pair for pair in together if pair in lacks] for together in laid]
        kept = [together for together in left if together]
        ends = nodesets.of(end for together in kept for pair in together for end in pair)
        self.lacking = {self.over.partition: str(ends)}
        return kept

    @run_after("init")
    def refuse_unknown_program(self) -> None:
        """A name that no parser reads is a mistake, and not a missing tool."""
        if getattr(self, "program", ""):
            loading.refuse_choice(self, "program", list(self.parsers))

    @run_after("setup")
    def keep_complete_pairs(self) -> None:
        """Only nodes with a turn whose other end can take part, too, are worth a job."""
        able = set(self.usable)
        self.usable = nodesets.of(
            end for turn in self.table.turns if set(turn[1:]) <= able for end in turn[1:]
        )
        if not self.usable and set(self.plan.lost) == set(self.plan.spared):
            reason = next(map(": ".join, self.plan.lost.items()), "no pair is left")
            self.skip(f"no pair can be measured: {reason}")

    @run_after("setup")
    def skip_without_slurm(self) -> None:
        """Only Slurm can start a second node."""
        if self.where.scheduler == LOCAL:
            self.skip("a pair needs two nodes, and this partition has no Slurm")

    def expected_nodes(self) -> NodeSet:
        """Both ends of every pair."""
        if self.link and not self.is_dry_run() and selection.needs_states(self.nodes):
            # Decided once: this session's own first job makes the nodes busy.
            self.lay_turns(client.first_look())
        if not self.table.rounds:
            self.skip(self.none)
        return self.table.ends

    def plan_of_its_kind(self) -> OfItsKind:
        """The turns in the order of time, and what all of them were measured under."""
        together, conditions = self.pattern == "together", {**self.where_of(), **self.laid()}
        return {"turns": self.table.turns, "conditions": conditions, "together": together}

    def nodes_on(self, partition: str) -> int:
        """Both ends of every pair."""
        return len(self.table.ends)

    # ---- the timetable

    def write_work(self, missing: bool) -> None:
        """The timetable: all turns whose ends can take part, or only those without a result."""
        left = self.unmeasured() if missing else range(len(self.table.turns))
        able = set(self.nodes_of_job)
        left = [n for n in left if set(self.table.turns[n][1:]) <= able]
        lines = self.table.lines(left, pair_turns.name, self.over.address_of)
        self.place("timetable", lines)
        if missing and self.by_turns:  # not only what the first job has left of its time
            rounds = len({line.partition(" ")[0] for line in lines})
            self.time_limit = f"{self.table.length_of(rounds)}s"
        # The batch script writes when round 0 begins: no clock but the nodes' own counts.
        begin = "begin.2" if missing else "begin.1"
        self.prerun_cmds = [f"echo $(($(date +%s) + {self.table.launch})) >{begin}"]

    def unmeasured(self) -> list[int]:
        """The turns that a second job could measure."""
        stage = Path(self.stagedir)
        return [n for n in range(len(self.table.turns)) if pair_turns.worth_repeating(stage, n)]

    def measured(self) -> set[str]:
        """The nodes of which nothing more is to come: their turns are over, or others are dead."""
        ends = pair_turns.name, pair_turns.server_of
        folders = [end(number) for number in range(len(self.table.turns)) for end in ends]
        there = stages.measured(Path(self.stagedir), folders)
        return set(self.usable) - pair_turns.waiting(self.table.turns, there, self.watcher.down())

    def has_measured(self, node: str) -> bool:
        """Whether the client of each of its turns has measured."""
        stage = Path(self.stagedir)
        return all(
            stages.succeeded(stage, pair_turns.name(number))
            for number, turn in enumerate(self.table.turns)
            if node in turn[1:]
        )

    def settings(self) -> dict[str, str]:
        """The length of a turn, and the link's MTU if the site has one."""
        return {
            "SITEPROOF_TURN": str(self.table.turn),
            "SITEPROOF_LEAD": str(timetable.LEAD),
            "SITEPROOF_LATE": str(timetable.LATE),
            "SITEPROOF_KILL": str(timetable.KILL),
            "SECONDS_OF_TURN": str(self.table.seconds),
            **({"LINK_MTU": str(self.over.mtu)} if self.over.mtu else {}),
        }

    def facts(self) -> dict[str, object]:
        """The link in the site: speed in b/s, MTU in bytes, round trip in seconds."""
        over = self.over
        known = {
            "speed": over.speed and over.speed.to("b/s"),
            "mtu": over.mtu,
            "round_trip": over.round_trip and over.round_trip.to("s"),
        }
        return {key: str(value) for key, value in known.items() if value}

    # ---- a second job

    def worth_another_job(self, measured: set[str], ended: str) -> NodeSet:
        """The ends of the turns without a result, where both can take a job now."""
        able = super().worth_another_job(measured, ended)
        turns = [self.table.turns[n][1:] for n in self.unmeasured()] if able else []
        ends = nodesets.of(end for turn in turns for end in turn)
        try:
            dead = unusable(ends, client.node_states(ends)) if ends else {}
        except UserError:
            return nodesets.of()
        return nodesets.of(end for turn in turns if not {*turn} & {*dead} for end in turn)

    def parts_missing(self, failed: Sequence[Sample]) -> str:
        """One line: how many turns gave a value, and how the others ended."""
        lost = {(s.node, s.dims["peer"], s.trial) for s in failed if "peer" in s.dims}
        turns = len(self.table.turns)
        return f"{len(lost)} measurements failed, in {turns} turns. {progress.failures(failed)}"


WINDOW = 4 * 2**20  # bytes of the sockets' buffers: the -w4m of the contracts' commands
FILL = "fill"  # the datagram that fills the MTU
POWER = "power"  # nuttcp's default: 8192 B, halved until it fits; 1024 B at an MTU of 1500
AROUND_RUN = 4  # seconds that a tool needs in addition to those it sends; nuttcp takes 2 to 3


class UdpRun(NamedTuple):
    """One run in one direction.

    kind: what it is for. mbps: the requested rate; 0: no limit. burst: packets sent in a row.
    window: bytes; 0: the host's default. until_loss: after a loss no further run is of use.
    """

    kind: str
    seconds: int
    datagram: str = FILL
    mbps: int = 0
    burst: int = 1
    window: int = WINDOW
    until_loss: bool = False

    def line(self) -> str:
        """As the script reads it."""
        *fields, until_loss = self
        return " ".join(map(str, [*fields, "until_loss" if until_loss else "always"]))


class UdpCheck(PerPairCheck, special=True):
    """A check defines which `runs()` it makes in either direction, in the mode that was chosen."""

    tags = {"network"}
    script = "udp_runs.sh"
    parsers = {"nuttcp": nuttcp, "iperf3": iperf3}
    patterns = ("star", "all", "random")  # on a shared uplink, full rates only lose
    by_mode = {**PerPairCheck.by_mode, "trials": ONE}  # the median of several would hide a loss

    program = variable(str, value="")  # nuttcp, iperf3; empty: the first that can do it

    def runs(self) -> list[UdpRun]:
        """The runs of one direction, in the order of time."""
        raise NotImplementedError

    def turn(self) -> int:
        """All runs, in both directions."""
        return 2 * sum(run.seconds + AROUND_RUN for run in self.runs())

    def settings(self) -> dict[str, str]:
        """The runs, one a line, and by which program."""
        lines = [run.line() for run in self.runs()]
        return {
            **super().settings(),
            "PROGRAM": self.program,
            "RUNS": "\n".join(lines),
            "AROUND_RUN": str(AROUND_RUN),
        }
