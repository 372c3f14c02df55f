"""Are faults found and named with their cause, and no healthy node accused?

    python3 benchmarks/proof.py [--minutes 12] [--only WORDS] [--pairs 5] [--clean 3] [--long]

Makes a test bed, which needs root, breaks it in one way after the other, measures it with the quick
checks, and asks `siteproof nodes` and `siteproof describe`. What time does not allow is named.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fan_out import VARIABLE, Bed
from measuring import REFRAME, TOP, Misuse, main, ours, parser, table, temporary_folder

CHECKS = "HostParameters|SystemDescription|Health"
NEVER = ("Hpl.", "Stream.")  # not run by these checks, so that every node lacks them
BAD = ("FAILED", "SLOW", "ODD", "UNSTABLE")
LIMIT = 240  # seconds for one session
JOB = "80s"  # for one job, so that one with a dead node ends before the session
DEAD = r"did not answer|node_lost|not.respond|down|timeout"
CONFIGURATION = {  # fault: what has to stand in a reason, or in a line of `siteproof describe`
    "wrong-mtu": r"nic\.eth0\.mtu",
    "wrong-sysctl": r"sysctl\.net\.ipv4\.tcp_window_scaling",
    "small-buffers": r"sysctl\.net\.ipv4\.tcp_[rw]mem",
    "wrong-memory": r"memory\.total",
    "other-kernel": r"sysctl\.kernel\.osrelease",
    "other-package": r"package\.munge",
    "full-disk": r"mount\./tmp",
}
DEATHS = {name: DEAD for name in ("killed-slurmd", "power-loss", "hung")}
DEATHS["flapping"] = rf"{DEAD}|slurmd restarted|no slurmd"
CAUSES = CONFIGURATION | DEATHS
UNSEEN = ("capped-link", "lossy-link", "slow-disk", "little-memory")  # for other checks
QUOTA = 0.05  # cores of every node in the runs with a slow one
PROBLEM = 2000  # Hpl.n there; a smaller one takes few periods of the quota, and its figures jump
REPETITIONS = 10
TOLD = 4  # nodes whose reasons are shown
HEAD = ("trial", "node", "cause", "others accused", "others without value", "seconds")


@dataclass(frozen=True)
class Answer:
    """What Siteproof prints about one campaign. said: by node, its reasons and its lines."""

    states: Mapping[str, str]
    said: Mapping[str, str]
    lacking: Sequence[str]
    suspects: Sequence[str] = ()
    deficits: Mapping[str, float] = field(default_factory=dict)

    def accused(self, *guilty: str) -> list[str]:
        """Nodes that are accused and have no fault."""
        return [node for node, state in self.states.items() if state in BAD and node not in guilty]


@dataclass(frozen=True)
class Row:
    """One trial. named, caused: of how many faults; lacking: nodes without fault and value."""

    trial: str
    kind: str
    faults: int
    named: int
    caused: int
    accused: Sequence[str]
    lacking: Sequence[str]
    seconds: float
    note: str = ""

    @property
    def cells(self) -> list[str]:
        """Its row of the table."""

        def share(count: int) -> str:
            return "-" if not self.faults else f"{count} of {self.faults}"

        return [
            self.trial,
            share(self.named),
            share(self.caused),
            str(len(self.accused)),
            str(len(self.lacking)),
            f"{self.seconds:.0f}",
        ]


class Proof:
    """The test bed, its site and its data, which are new for every trial."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self.bed, self.folder = bed, folder
        self.nodes = [f"node{number:03}" for number in range(1, bed.nodes + 1)]
        self.sites = folder / "sites"
        self.trials = 0
        shutil.copytree(TOP / "site-config" / "testbed", self.sites / "testbed")
        system = self.sites / "testbed" / "system.yaml"
        text, edits = re.subn(
            r"node\[001-\d+\]", f"node[001-{bed.nodes:03}]", system.read_text(encoding="utf-8")
        )
        if edits != 1:
            raise Misuse("site-config/testbed/system.yaml names its nodes in another way")
        system.write_text(text, encoding="utf-8")

    def new(self) -> Path:
        """An empty data folder."""
        self.trials += 1
        data = self.folder / f"trial-{self.trials}"
        data.mkdir()
        return data

    def on_login(self, data: Path, *words: object, **more: str) -> str:
        """The output of a command on the login node."""
        env = ours(data) | {"SITEPROOF_SITES": str(self.sites), "SITEPROOF_SYSTEM": "testbed"}
        done = subprocess.run(
            self.bed.command("run", "--", *words),
            env=env | more | {VARIABLE: str(self.bed.state)},
            cwd=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        return done.stdout

    def siteproof(self, data: Path, *words: str) -> str:
        """The output of the siteproof command."""
        return self.on_login(data, REFRAME.parent / "siteproof", *words)

    def measure(self, data: Path, *options: object, campaign: str = "proof") -> bool:
        """Run the checks; False if the session had to be ended."""
        out = self.on_login(
            data,
            "timeout",
            "-s",
            "INT",
            "-k",
            30,
            LIMIT,
            REFRAME,
            "-c",
            TOP / "checks",
            "-r",
            "--mode",
            "quick",
            *options,
            SITEPROOF_CAMPAIGN=campaign,
        )
        ended = "session stopped" not in out and "Ran " in out
        if not ended:
            self.siteproof(data, "collect")
        return ended

    def ask(self, data: Path, *ignored: str) -> Answer:
        """What Siteproof prints about all of a data folder; raises Misuse if it prints nothing."""
        text = self.siteproof(data, "nodes", "--campaign", "proof", "--json")
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError:
            raise Misuse(f"siteproof nodes: {(text.strip().splitlines() or [''])[-1]}") from None
        lines = self.siteproof(data, "describe", "--campaign", "proof", "--all").splitlines()
        said = {
            n["node"]: "\n".join(
                [*n["reasons"], *(line for line in lines if f"odd: {n['node']}: " in line)]
            )
            for n in found["nodes"]
        }
        lacking = [
            n["node"]
            for n in found["nodes"]
            if any(r.endswith(": no value") and not r.startswith(ignored) for r in n["reasons"])
        ]
        deficits = {
            n["node"]: m["deficit"]
            for n in found["nodes"]
            for name, m in n["metrics"].items()
            if name == "Hpl.gflops"
        }
        return Answer(
            {n["node"]: n["state"] for n in found["nodes"]},
            said,
            lacking,
            [n["node"] for n in found["nodes"] if n["suspect"]],
            deficits,
        )

    def break_(self, fault: str, *nodes: str, value: object = None) -> None:
        """Inject a fault. Raises Misuse."""
        words = ["fault", fault, *nodes, *(["--value", value] if value is not None else [])]
        self._testbed(*words)

    def mend(self, *nodes: str) -> None:
        """Undo all faults, and wait until all nodes are idle."""
        self.on_login(self.folder, "scancel", "--user=root")
        self._testbed("mend", *nodes)
        self.bed.settle()

    def _testbed(self, *words: object) -> None:
        done = subprocess.run(
            self.bed.command(*words),
            env=self.bed.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            raise Misuse((done.stderr.strip().splitlines() or [f"testbed {words[0]} failed"])[-1])

    # Trials

    def clean(self, number: int) -> Row:
        """Nothing is wrong."""
        begun, data = time.monotonic(), self.new()
        self.measure(data, "-n", CHECKS)
        answer = self.ask(data, *NEVER)
        return Row(
            f"clean {number}",
            "clean",
            0,
            0,
            0,
            answer.accused(),
            answer.lacking,
            time.monotonic() - begun,
            _told(answer, answer.accused()),
        )

    def broken(self, kind: str, faults: Mapping[str, str]) -> Row:
        """A fault on each of some nodes."""
        begun, data = time.monotonic(), self.new()
        for node, fault in faults.items():
            self.break_(fault, node)
        ended = self.measure(data, "-n", CHECKS, "-S", f"time_limit={JOB}")
        answer, taken = self.ask(data, *NEVER), time.monotonic() - begun
        self.mend(*faults)
        named = [node for node in faults if answer.states.get(node) in BAD]
        caused = [n for n in named if re.search(CAUSES[faults[n]], answer.said[n], re.I)]
        others = [node for node in answer.lacking if node not in faults]
        accused = answer.accused(*faults)
        told = _told(answer, [*faults, *accused]) + ("" if ended else f"; ended after {LIMIT} s")
        trial = " + ".join(f"{fault} {node}" for node, fault in faults.items())
        return Row(trial, kind, len(faults), len(named), len(caused), accused, others, taken, told)

    def slow(self, share: float, repetitions: int) -> Row:
        """All nodes have a small quota of the processors, and one still less."""
        begun, data, victim = time.monotonic(), self.new(), self.nodes[4]
        others = [node for node in self.nodes if node != victim]
        hpl = ("-n", "^Hpl", "-S", f"Hpl.n={PROBLEM}")
        self.break_("slow-cpu", *others, value=QUOTA)
        if repetitions > 1:  # the node's own past, while nothing was wrong
            self.break_("slow-cpu", victim, value=QUOTA)
            for _ in range(repetitions):
                self.measure(data, *hpl, campaign="before")
            self._testbed("mend", victim)
        self.break_("slow-cpu", victim, value=round(QUOTA * (1 - share), 4))
        ended = all([self.measure(data, *hpl) for _ in range(repetitions)])
        answer, taken = self.ask(data, "Stream.", "Host"), time.monotonic() - begun
        self.mend(*self.nodes)
        found = answer.states.get(victim) == "SLOW"
        told = f"{victim} is {answer.deficits.get(victim, 0):.0%} below the median; "
        told += f"suspects: {' '.join(answer.suspects) or 'none'}; {_told(answer, [victim])}"
        told += "" if ended else f"; a session was ended after {LIMIT} s"
        name = f"{share:.0%} slower, {repetitions} run{'s' if repetitions > 1 else ''}"
        return Row(
            name,
            "slow",
            1,
            int(found),
            int(found),
            answer.accused(victim),
            [n for n in answer.lacking if n != victim],
            taken,
            told,
        )


def _told(answer: Answer, nodes: Sequence[str]) -> str:
    """The state and the first reason of each node."""
    return "; ".join(
        f"{n} {answer.states.get(n)}: {answer.said.get(n, '').partition(chr(10))[0]}"
        for n in nodes[:TOLD]
    ) + ("; …" if len(nodes) > TOLD else "")


def benchmark() -> None:
    """All trials, as far as time allows."""
    given = arguments()
    if os.geteuid() != 0:
        raise Misuse("the test bed needs root")
    begun = time.monotonic()
    with temporary_folder() as folder, running(Bed(given.nodes)) as bed:
        proof = Proof(bed, folder)
        rows, left = carry_out(proof, list(trials(proof, given)), begun + 60 * given.minutes)
    print(tell(rows, left, time.monotonic() - begun), flush=True)


def arguments() -> argparse.Namespace:
    """The options. Raises Misuse."""
    options = parser(__doc__)
    add = partial(options.add_argument, type=int)
    add("--minutes", default=0, help="begin no trial later than that (12; 120 with --long)")
    add("--nodes", default=16, help="size of the test bed (16)")
    add("--pairs", default=5, help="random pairs of faults (5)")
    add("--clean", default=-1, help="campaigns without a fault (3; 20 with --long)")
    add("--seed", default=1, help="of the random pairs (1)")
    options.add_argument(
        "--only",
        default="",
        metavar="WORDS",
        help="trials with one of these words in their names, such as clean,slow",
    )
    options.add_argument("--long", action="store_true", help="also 10 %% slower in 10 paired runs")
    given = options.parse_args()
    given.minutes = given.minutes or (120 if given.long else 12)
    if not 8 <= given.nodes <= 64 or min(given.minutes, given.pairs, given.clean + 1) < 0:
        raise Misuse("--nodes: 8 to 64; the other numbers: not below 0")
    if given.clean < 0:
        given.clean = 20 if given.long else 3
    return given


def say(words: str) -> None:
    """What is going on, for who waits."""
    print(f"proof: {words}", file=sys.stderr, flush=True)


@contextmanager
def running(bed: Bed) -> Iterator[Bed]:
    """A test bed that is up, and is gone however this ends."""
    say(f"making a test bed of {bed.nodes} nodes")
    try:
        bed.up()
        yield bed
    finally:
        bed.down()


Trial = tuple[str, Callable[[], Row]]


def trials(proof: Proof, given: argparse.Namespace) -> Iterator[Trial]:
    """Name and work of each trial; those that take longest come last."""
    dice, wanted = random.Random(given.seed), [w for w in given.only.split(",") if w]
    for name, work in _all_trials(proof, given, dice):
        if not wanted or any(word in name for word in wanted):
            yield name, work


def _all_trials(proof: Proof, given: argparse.Namespace, dice: random.Random) -> Iterator[Trial]:
    for number in range(1, given.clean + 1):
        yield f"clean {number}", partial(proof.clean, number)
    alone = {fault: dice.choice(proof.nodes) for fault in CAUSES}
    pairs = [
        (dice.sample(proof.nodes, 2), dice.sample(sorted(CAUSES), 2)) for _ in range(given.pairs)
    ]
    for kind, faults in (("configuration", CONFIGURATION), ("death", DEATHS)):
        for fault in faults:
            yield f"{kind}: {fault}", partial(proof.broken, kind, {alone[fault]: fault})
        if kind == "configuration":
            yield "slow: 30 %, one run", partial(proof.slow, 0.3, 1)
        for number, (nodes, names) in enumerate(pairs, 1):
            if (kind == "death") == any(name in DEATHS for name in names):  # a death takes minutes
                yield (
                    f"pair {number}: {' + '.join(names)}",
                    partial(proof.broken, "pair", dict(zip(nodes, names, strict=True))),
                )
    if given.long:
        yield (f"slow: 10 %, {REPETITIONS} paired runs", partial(proof.slow, 0.1, REPETITIONS))


def carry_out(proof: Proof, todo: Sequence[Trial], end: float) -> tuple[list[Row], list[str]]:
    """The rows, and the trials that could not be begun or did not come to an end."""
    rows: list[Row] = []
    left: list[str] = []
    for number, (name, work) in enumerate(todo, 1):
        if time.monotonic() > end:
            left.append(name)
            continue
        try:
            rows.append(work())
        except Misuse as error:
            left.append(f"{name} ({error})")
            say(f"{number} of {len(todo)}: {name}: no answer: {error}")
            with suppress(Misuse):  # the next trial would report it
                proof.mend(*proof.nodes)
            continue
        row = rows[-1]
        say(
            f"{number} of {len(todo)}: {name}: named {row.named} of {row.faults}, cause "
            f"{row.caused}, others accused {len(row.accused)}, {row.seconds:.0f} s  [{row.note}]"
        )
    return rows, left


def tell(rows: Sequence[Row], left: Sequence[str], seconds: float) -> str:
    """The table, what it comes to, and what was not seen."""
    lines = [table(HEAD, [row.cells for row in rows]), ""]
    for kind in dict.fromkeys(row.kind for row in rows):
        mine = [row for row in rows if row.kind == kind]
        faults = sum(row.faults for row in mine)
        found = (
            f"{sum(r.named for r in mine)} of {faults} faulty nodes named, "
            f"{sum(r.caused for r in mine)} with the cause; "
            if faults
            else ""
        )
        lines.append(
            f"{kind}: {len(mine)} campaigns: {found}false accusations: "
            f"{sum(len(row.accused) for row in mine)}"
        )
    wordless = Counter(row.trial for row in rows for _ in row.lacking)
    for trial, count in wordless.items():
        lines.append(f"without a value, though healthy: {count} nodes in '{trial}'")
    lines += [f"missed: {row.trial}: {row.note}" for row in rows if row.caused < row.faults]
    lines.append(f"not tried here: {', '.join(UNSEEN)}")
    lines.append(f"not reached: {'; '.join(left) or 'nothing'}")
    lines.append(f"{len(rows)} campaigns in {seconds / 60:.1f} min")
    return "\n".join(lines)


if __name__ == "__main__":
    main(benchmark)
