"""Random faults, campaign after campaign: what is lost, hangs, or is left behind?

    python3 benchmarks/marathon.py [--campaigns 10] [--seed 1] [--only FAULT] [--table]

Makes a test bed of 32 nodes, which needs root. A campaign is an evening after maintenance with one
to three random faults: of nodes (all that 'testbed fault' lists), of slurmctld, of the login side,
of people. Then everything but the nodes is mended, and the evening is repeated; then the nodes are
mended, tested again and released. After both, Slurm's own answers, the perflogs and the commands'
--json are asked:

  measured    each node has samples, or a finding that says why not
  hangs       no command took longer than its limit
  left over   no job, no process, no reservation but the quarantine and a colleague's, no comment
  sick        no node with a fault that the checks see is in service (proof.py has what they see)
  healthy     no other node is out of service, but what a colleague took
  people      a colleague's drain, reservation, comment and reason are as they were
  files       no sample twice, no line cut short, nothing left to collect
  answers     --json is JSON and knows all nodes; no traceback

Each campaign that has ended is a line of --state, and what happened in it is in a folder next to
that; with violations its data, too. An interrupted run continues with the campaign that it was at.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mishaps
from fan_out import VARIABLE, Bed
from measuring import TOP, Misuse, main, ours, parser, temporary_folder
from mishaps import CLASS, IN_JOB, Cluster, Mishap, processes, serves
from proof import CAUSES

NODES = 32
CHECKS = "HostParameters|SystemDescription|Health"
OPTIONS = ("--", "-n", CHECKS, "-S", "time_limit=80s")  # a job with a dead node ends soon
EVENING, RETEST, RELEASE, ASK = 480, 300, 120, 120  # seconds until a command counts as hanging
SETTLE = 120  # seconds until what a killed command has left must be over
RETESTS = 4  # the first sees that slurmd was mended; then three in a row decide
SPREAD = 20  # seconds of an evening within which a fault begins
QUARANTINE = "siteproof-compute"
CRITERIA = """TB-PARAMETERS:
  description: Every node is configured as the site says
  metric: HostParameters.mismatches
  at_most: 0 count
  conditions: {mode: [quick]}
  source: test bed
"""
HEAD = ("session", "job", "check", "campaign")


@dataclass
class Campaign:
    """One evening, what is done to it, and what was seen.

    sick: the fault of each node that has one. colleague: nodes that people took. hands: of a node,
    the fields that people have set.
    """

    cluster: Cluster
    number: int
    data: Path
    begun: float = field(default_factory=time.monotonic)
    sick: dict[str, str] = field(default_factory=dict)
    colleague: set[str] = field(default_factory=set)
    hands: dict[str, dict[str, str]] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)
    commands: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def name(self) -> str:
        """As the user knows it."""
        return f"marathon-{self.number}"

    @property
    def mark(self) -> str:
        """In the environment of all its processes."""
        return f"SITEPROOF_DATA={self.data}"

    def wait(self, seconds: float) -> bool:
        """Sleep, but not longer than the evening lasts; whether it is over."""
        return self.over.wait(seconds)

    def note(self, words: str) -> None:
        """What happened, with its time."""
        self.events.append(f"{time.monotonic() - self.begun:6.1f} s  {words}")

    def wrong(self, words: str) -> None:
        """A violation."""
        self.note(f"VIOLATION {words}")
        self.violations.append(words)

    def edited(self, node: str, fields: Mapping[str, str]) -> None:
        """A person has set these fields."""
        self.hands.setdefault(node, {}).update(fields)

    def taken(self, nodes: set[str]) -> None:
        """A person has taken these nodes out of service."""
        self.colleague |= nodes

    # What a user runs

    def evening(self) -> None:
        """The script, from the first measurement to the nodes that may go back."""
        words = ("--campaign", self.name, "--mode", "quick", "--apply", *OPTIONS)
        self.run(EVENING, TOP / "sbatch" / "evening", *words)

    def siteproof(self, limit: float, *words: str) -> tuple[int, str]:
        """A command about this campaign: its exit code and what it prints on stdout."""
        program = TOP / ".venv" / "bin" / "siteproof"
        return self.run(limit, program, words[0], "--campaign", self.name, *words[1:])

    def ask(self, command: str) -> dict[str, Any]:
        """Its --json."""
        code, text = self.siteproof(ASK, command, "--json")
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError:
            self.wrong(f"answers: 'siteproof {command} --json' ended with {code} without JSON")
            return {}
        return found

    def run(self, limit: float, *words: object) -> tuple[int, str]:
        """A command on the login node, within a limit."""
        self.commands += 1
        out = self.cluster.folder / f"{self.number}.{self.commands}.out"
        told = " ".join(str(word) for word in words[:7]).removeprefix(f"{TOP}/")
        self.note(f"$ {told} ({out.name})")
        with out.open("w") as stdout, out.with_suffix(".err").open("w") as stderr:
            process = subprocess.Popen(
                self.cluster.bed.command("run", "--", *words),
                env=self.environment(),
                cwd=TOP,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                self.wrong(f"hangs: '{told}' did not end within {limit} s")
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
        text = out.read_text(encoding="utf-8", errors="replace")
        said = out.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
        if "Traceback (most" in text + said:
            self.wrong(f"answers: a traceback of '{told}' in {out.name}")
        self.note(f"  exit code {process.returncode} of {out.name}")
        return process.returncode, text

    def environment(self) -> dict[str, str]:
        """Of the user on this test bed."""
        sites = {"SITEPROOF_SITES": str(self.cluster.folder / "sites")}
        bed = {VARIABLE: str(self.cluster.bed.state), "SITEPROOF_SYSTEM": "testbed"}
        return ours(self.data) | sites | bed | self.more


# A campaign


def drawn(table: Sequence[Mishap], dice: random.Random, only: str) -> list[Mishap]:
    """One to three; a kind with many faults is not favoured."""
    kinds = Counter(mishap.kind for mishap in table)
    weights = [1 / kinds[mishap.kind] for mishap in table]
    count = dice.choice((1, 2, 2, 3))
    chosen = [dice.choice([mishap for mishap in table if only in mishap.name])] if only else []
    while len(chosen) < count:
        [mishap] = dice.choices(table, weights)
        if mishap.kind == "node" or mishap not in chosen:
            chosen.append(mishap)
    return chosen


def carry_out(campaign: Campaign, chosen: Sequence[Mishap], dice: random.Random) -> None:
    """The evening with its faults, its repetition, the mended nodes; looks after both."""
    cluster = campaign.cluster
    threads = [
        threading.Thread(target=strike, args=(campaign, mishap, *when))
        for mishap, *when in moments(campaign, chosen, dice)
    ]
    if any(mishap.strike is mishaps.clock for mishap in chosen):
        campaign.more = cluster.wrong_clock
    for thread in threads:
        thread.start()
    campaign.evening()
    campaign.over.set()
    for thread in threads:
        thread.join()
    cluster.mend_login()
    campaign.note("all but the nodes is mended")
    campaign.evening()
    look(campaign, campaign.sick)
    for node in campaign.sick:
        cluster.testbed("mend", node)
    campaign.note("the nodes are mended")
    for _ in range(RETESTS):
        campaign.siteproof(RETEST, "gate", "--retest", "--apply", *OPTIONS)
        campaign.siteproof(RELEASE, "gate", "--release", "--apply")
        if QUARANTINE not in cluster.reservations():
            break
    look(campaign, {})
    look_at_files(campaign)


def moments(
    campaign: Campaign, chosen: Sequence[Mishap], dice: random.Random
) -> Iterator[tuple[Mishap, str, float, random.Random]]:
    """Each with its node, the seconds after which it begins, and dice of its own."""
    nodes = dice.sample(campaign.cluster.names, len(chosen))
    for mishap, node in zip(chosen, nodes, strict=True):
        begins = dice.uniform(0, SPREAD)
        if mishap.kind == "node":
            campaign.sick[node] = mishap.name
            begins *= dice.randint(0, 1)  # half of them are there before
        elif mishap.kind == "people" and campaign.sick and dice.random() < 0.5:
            node = dice.choice(sorted(campaign.sick))
        yield mishap, node, begins, random.Random(dice.random())


def strike(
    campaign: Campaign, mishap: Mishap, node: str, begins: float, dice: random.Random
) -> None:
    """One fault, at its moment; one of a node comes in any case."""
    if campaign.wait(begins) and mishap.kind != "node":
        campaign.note(f"{mishap.name}: the evening was over before")
        return
    on = f" on {node}" if mishap.kind in ("node", "people") else ""
    campaign.note(f"{mishap.kind}: {mishap.name}{on}")
    try:
        mishap.strike(campaign, node, dice)
    except Misuse as error:
        campaign.note(f"{mishap.name} could not be: {error}")
        campaign.sick.pop(node, None)


# What was left


def look(campaign: Campaign, sick: Mapping[str, str]) -> None:
    """Slurm's own answers about all nodes, beside those of the commands."""
    when = "with sick nodes" if sick else "at the end"
    wait_for_rest(campaign, when)
    states = look_at_answers(campaign, when)
    reservations, nodes = campaign.cluster.reservations(), campaign.cluster.nodes()
    for name in reservations.keys() - {QUARANTINE, CLASS}:
        campaign.wrong(f"left over {when}: reservation {name}")
    reserved = {node for members in reservations.values() for node in members}
    served = {name for name, node in nodes.items() if serves(node)} - reserved
    for name, node in nodes.items():
        told = [node["State"], node.get("Reason", ""), node.get("Comment", ""), states.get(name)]
        told = f"{name}: {', '.join(filter(None, told))}"
        if name not in served and name not in campaign.colleague and name not in sick:
            campaign.wrong(f"healthy {when}: out of service: {told}")
        # An UNSTABLE node goes back with a remark.
        if name in served and sick.get(name) in CAUSES and states.get(name) != "UNSTABLE":
            campaign.wrong(f"sick {when}: {sick[name]} is in service: {told}")
        if name in served and node.get("Comment", "").startswith("siteproof"):
            campaign.wrong(f"left over {when}: a comment on a node in service: {told}")
        if name in campaign.colleague and name in served:
            campaign.wrong(f"people {when}: what a colleague took is in service: {told}")
        for key, value in campaign.hands.get(name, {}).items():
            if not node.get(key, "").startswith(value):
                campaign.wrong(f"people {when}: {key} was '{value}': {told}")


def wait_for_rest(campaign: Campaign, when: str) -> None:
    """No job, and no process on the login node."""
    deadline = time.monotonic() + SETTLE
    while left := campaign.cluster.bed.ask("squeue", "-h", "-o", "%j %T %r") or [
        f"process {pid}" for pid in processes(campaign.mark, "", IN_JOB)
    ]:
        if time.monotonic() > deadline:
            campaign.wrong(f"left over {when}: {'; '.join(left)}")
            return
        time.sleep(1)


def look_at_answers(campaign: Campaign, when: str) -> dict[str, str]:
    """The state of each node; each has samples or a finding, and the gate decides on it."""
    found = {node["node"]: node for node in campaign.ask("nodes").get("nodes", [])}
    for name in sorted(set(campaign.cluster.names) - found.keys()):
        campaign.wrong(f"measured {when}: {name} is not among the nodes")
    with_samples = {s["node"] for s in samples(campaign) if s["campaign"] == campaign.name}
    for name, node in found.items():
        if name not in with_samples and not node["findings"]:
            campaign.wrong(f"measured {when}: {name} has neither sample nor finding")
    campaign.ask("verdict")
    ruled = {node["node"] for node in campaign.ask("gate").get("nodes", [])}
    if ruled != found.keys():
        campaign.wrong(f"answers {when}: only nodes or gate have {sorted(ruled ^ found.keys())}")
    return {name: node["state"] for name, node in found.items()}


def samples(campaign: Campaign) -> Iterator[dict[str, Any]]:
    """All of the perflogs, each with what its header says; a line that is not JSON is wrong."""
    for path in sorted((campaign.data / "perflogs").glob("testbed/*/*.jsonl")):
        try:
            head, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        except ValueError as error:
            campaign.wrong(f"files: {path.name}: {error}")
            continue
        yield from ({**{key: head.get(key) for key in HEAD}, **line} for line in lines)


def look_at_files(campaign: Campaign) -> None:
    """Nothing twice, nothing cut short, nothing left to collect."""
    code, said = campaign.run(ASK, TOP / ".venv" / "bin" / "siteproof", "collect")
    if code or "nothing left to collect" not in said:
        campaign.wrong(f"files: collect ended with {code}: {(said.splitlines() or [''])[-1]}")
    for path in filter(Path.is_file, (campaign.data / "perflogs").rglob("*")):
        text = path.read_bytes()  # that of a gate which had nothing to do is empty
        if path.suffix in (".jsonl", ".log") and text and not text.endswith(b"\n"):
            campaign.wrong(f"files: {path.name} ends within a line")
    keys = Counter(
        json.dumps({key: value for key, value in sample.items() if key not in ("value", "why")})
        for sample in samples(campaign)
    )
    for key in (key for key, count in keys.items() if count > 1):
        campaign.wrong(f"files: twice: {key}")


# The marathon


def benchmark() -> None:
    """The campaigns that are next, on one test bed."""
    given = arguments()
    if given.table:
        print(markdown(records(given.state)))
        return
    if os.geteuid() != 0:
        raise Misuse("the test bed needs root")
    given.state.parent.mkdir(parents=True, exist_ok=True)
    with given.state.open("a", encoding="utf-8") as state, temporary_folder() as folder:
        try:
            fcntl.flock(state, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Misuse(f"another marathon writes {given.state}") from None
        done = [record["campaign"] for record in records(given.state) if of(record, given)]
        first = max(done, default=0) + 1
        describe_site(folder / "sites" / "testbed")
        with Cluster(Bed(NODES), folder).running() as cluster:
            for number in range(first, first + given.campaigns):
                record = one(cluster, number, given)
                state.write(json.dumps(record) + "\n")
                state.flush()
                say(markdown([record]).splitlines()[-1])
                restore(cluster)


def arguments() -> argparse.Namespace:
    """The options. Raises Misuse."""
    options = parser(__doc__)
    state = TOP / "output" / "marathon.jsonl"
    add = options.add_argument
    add("--campaigns", type=int, default=10, metavar="N", help="so many more (10)")
    add("--seed", type=int, default=1, help="of the faults and their moments (1)")
    add("--only", default="", metavar="FAULT", help="each campaign has one with this in its name")
    add("--state", type=Path, default=state, help="what has been done (output/marathon.jsonl)")
    add("--table", action="store_true", help="print what has been done as Markdown; run nothing")
    given = options.parse_args()
    names = [mishap.name for mishap in mishaps.table()]
    if not any(given.only in name for name in names):
        raise Misuse(f"--only '{given.only}' is in no fault: {', '.join(names)}")
    if given.campaigns < 1:
        raise Misuse("--campaigns: above 0")
    return given


def of(record: Mapping[str, Any], given: argparse.Namespace) -> bool:
    """Whether a campaign was one of this series."""
    return bool(record["seed"] == given.seed and record["only"] == given.only)


def say(words: str) -> None:
    """What is going on, for who waits."""
    print(f"marathon: {words}", file=sys.stderr, flush=True)


def describe_site(site: Path) -> None:
    """The test bed's own, of this size, with a criterion that the quick checks answer."""
    shutil.copytree(TOP / "site-config" / "testbed", site)
    text = (site / "system.yaml").read_text(encoding="utf-8")
    text = re.sub(r"node\[001-\d+\]", f"node[001-{NODES:03}]", text)
    (site / "system.yaml").write_text(text, encoding="utf-8")
    (site / "criteria.yaml").write_text(CRITERIA, encoding="utf-8")


def one(cluster: Cluster, number: int, given: argparse.Namespace) -> dict[str, Any]:
    """A campaign and its record."""
    dice = random.Random(f"{given.seed}/{number}/{given.only}")
    chosen = drawn(mishaps.table(), dice, given.only)
    say(f"{number}: {', '.join(mishap.name for mishap in chosen)}")
    campaign = Campaign(cluster, number, cluster.disk / f"data-{number}")
    campaign.data.mkdir()
    try:
        carry_out(campaign, chosen, dice)
    except (Misuse, OSError) as error:
        campaign.wrong(f"test bed: {error}")
    record = {
        "seed": given.seed,
        "only": given.only,
        "campaign": number,
        "faults": [mishap.name for mishap in chosen],
        "minutes": round((time.monotonic() - campaign.begun) / 60, 1),
        "violations": campaign.violations,
    }
    kept = given.state.with_suffix("") / f"{given.seed}{given.only}.{number}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    (kept / "events").write_text("\n".join(campaign.events) + "\n", encoding="utf-8")
    for output in cluster.folder.glob(f"{number}.*"):
        shutil.move(output, kept)
    if campaign.violations:
        shutil.copytree(campaign.data, kept / "data", symlinks=True)
    shutil.rmtree(campaign.data, ignore_errors=True)
    return record


def restore(cluster: Cluster) -> None:
    """The test bed as it was, or a new one."""
    try:
        cluster.restore()
    except Misuse as error:
        say(f"a new test bed: {error}")
        cluster.bed.down()
        cluster.bed.up()


def records(state: Path) -> list[dict[str, Any]]:
    """The campaigns that have ended."""
    with suppress(FileNotFoundError):
        return [json.loads(line) for line in state.read_text(encoding="utf-8").splitlines()]
    return []


def markdown(done: Sequence[Mapping[str, Any]]) -> str:
    """A row a campaign."""
    rows = ["| seed | campaign | faults | min | violations |", "|---|---:|---|---:|---|"]
    for r in done:
        wrong = "; ".join(r["violations"]).replace("|", "/") or "none"
        series = f"{r['seed']} {r['only']}".strip()
        cells = [series, r["campaign"], ", ".join(r["faults"]), r["minutes"], wrong]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main(benchmark)
