"""One trivial check on every node of a Slurm cluster: ours, and plain `reframe --distribute=all`.

    python3 benchmarks/fan_out.py [--nodes 64,320] [--rounds 3] [--without-plain]

Makes a test bed of each size, which needs root, runs both on it one after the other, and takes it
away. Both read the same files of every node with the same script. In each round stand, one after
the other: `-l` of the same check with the same settings, which is ReFrame's own start; a bare srun
of an empty script, one for each job of ours, on the same nodes and all at once; and our run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from measuring import (
    HERE,
    REFRAME,
    TICK,
    TOP,
    Cost,
    Misuse,
    clean_environment,
    main,
    ours,
    parser,
    read,
    stat_fields,
    table,
    temporary_folder,
)

LIMIT = 15 * 60  # seconds for one side on one size
FEW = 8  # nodes with which the calls of a wider job are compared
MOST = 400  # nodes of a test bed
CLIENTS = ("sacct", "salloc", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
DAEMONS = ("slurmctld", "slurmd", "slurmdbd")
VARIABLE = "SITEPROOF_TESTBED_STATE"
IN_JOB = " in jobs"
CHUNK = 64  # nodes of a job
BEYOND_START, OVER_SRUN = 0.4, 2.0  # the aims: CPU seconds, and a ratio of wall times
AIMS = {"wall time": "20 x", "CPU on the login node": "100 x"}


class Bed:
    """A test bed with a state folder of its own."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.state = Path(f"/run/siteproof-testbed-benchmark-{os.getpid()}")

    def command(self, *words: object) -> list[str]:
        """The command line of `testbed WORDS…`."""
        return [str(word) for word in (TOP / "testbed" / "testbed", *words)]

    @property
    def environment(self) -> dict[str, str]:
        """What makes the command mean this test bed."""
        return os.environ | {VARIABLE: str(self.state)}

    def up(self) -> None:
        """Make it. Raises Misuse with the test bed's own last line."""
        done = subprocess.run(
            self.command("up", self.nodes), env=self.environment, stderr=subprocess.PIPE, text=True
        )
        if done.returncode:
            raise Misuse((done.stderr.strip().splitlines() or ["testbed up failed"])[-1])

    def down(self) -> None:
        """Take it away; a second Ctrl-C does not reach this."""
        subprocess.run(
            self.command("down"),
            env=self.environment,
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, *words: str) -> list[str]:
        """The lines that a command prints on the login node."""
        done = subprocess.run(
            self.command("run", "--", *words),
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        return done.stdout.splitlines()

    def settle(self) -> None:
        """Wait until no job is left and every node is idle."""
        deadline = time.monotonic() + 120
        while self.ask("squeue", "-h") or set(self.ask("sinfo", "-h", "-o", "%T")) != {"idle"}:
            if time.monotonic() > deadline:
                raise Misuse("the test bed does not come to rest")
            time.sleep(1)

    def jobs(self) -> list[float]:
        """CPU seconds of every job that it has ever run, in their order."""
        # Without -X, for which the steps' CPU does not count.
        lines = self.ask("sacct", "-a", "-n", "-P", "-o", "JobIDRaw,TotalCPU", "-S", "2000-01-01")
        jobs = [line.split("|") for line in lines]
        jobs = sorted((int(job), cpu) for job, cpu in jobs if job.isdigit())
        return [seconds(cpu) for _, cpu in jobs]

    def jobs_after(self, count: int) -> list[float]:
        """The same, as soon as the database has `count` jobs with their CPU; it is updated late."""
        deadline = time.monotonic() + 60
        before, now = [], self.jobs()
        while (len(now) < count or now != before) and time.monotonic() < deadline:
            time.sleep(3)
            before, now = now, self.jobs()
        return now

    def daemons(self) -> Counter[str]:
        """CPU seconds of Slurm's daemons so far, by name."""
        taken: Counter[str] = Counter()
        mine = f"SLURM_CONF={self.state}/".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                name = (process / "comm").read_text(encoding="utf-8").strip()
                if name in DAEMONS and mine in (process / "environ").read_bytes():
                    taken[name] += sum(map(int, stat_fields(process.name)[11:15])) / TICK
            except OSError:
                continue  # ended meanwhile
        return taken


def seconds(text: str) -> float:
    """Slurm's [DD-[HH:]]MM:SS[.mmm]."""
    days, _, clock = text.rpartition("-")
    parts = [float(part) for part in clock.split(":")]
    return 86400 * int(days or 0) + sum(60**n * part for n, part in enumerate(reversed(parts)))


@dataclass(frozen=True)
class Run:
    """What one side has taken on one test bed, and to how many nodes it came."""

    cost: Cost
    calls: Counter[str]
    daemons: Counter[str]
    jobs: int
    in_jobs: float
    nodes: int

    @property
    def client_calls(self) -> int:
        """Calls of Slurm's commands on the login node."""
        return sum(count for name, count in self.calls.items() if not name.endswith(IN_JOB))


def benchmark() -> None:
    """Both sides on test beds of all requested sizes."""
    sizes, rounds, with_plain = arguments()
    if os.geteuid() != 0:
        raise Misuse("the test bed needs root")
    for number, nodes in enumerate(sizes):
        with temporary_folder() as folder, running(Bed(nodes)) as bed:
            few = run_ours(bed, folder / "few", min(FEW, nodes))
            taken = [a_round(bed, folder / f"round{n}", nodes) for n in range(rounds)]
            mine = taken[-1].mine
            if with_plain:
                say(f"{nodes} nodes: plain ReFrame, {LIMIT // 60} min at most")
                print(tell(nodes, mine, run_plain(bed, folder / "plain")))
        print(("\n" if number else "") + tell_rounds(nodes, taken))
        print(
            f"Siteproof's client calls, not those in jobs: {few.client_calls} on {FEW} nodes, "
            f"{mine.client_calls} on {nodes}: "
            + ", ".join(f"{count} {name}" for name, count in sorted(mine.calls.items())),
            flush=True,
        )


@dataclass(frozen=True)
class Round:
    """ReFrame's own start, a bare srun, and our run, one after the other."""

    start: Cost
    srun: Cost
    mine: Run


def a_round(bed: Bed, folder: Path, nodes: int) -> Round:
    """One round on the first `nodes` nodes."""
    mine = run_ours(bed, folder, nodes)
    env = environment_of_ours(folder) | {VARIABLE: str(bed.state)}
    bed.settle()
    start = on_login(bed, folder, env, [REFRAME, "-c", TOP / "checks" / "host", "-l"])
    return Round(start, bare_srun(bed, folder, nodes), mine)


def bare_srun(bed: Bed, folder: Path, nodes: int) -> Cost:
    """An empty script on each node, by one srun for each job of ours, all at once."""
    script = folder / "empty.sh"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    lines = []
    for first in range(1, nodes + 1, CHUNK):
        last = min(first + CHUNK - 1, nodes)
        count = last - first + 1
        lines.append(
            f"srun --partition=compute --nodelist=node[{first:03}-{last:03}] --nodes={count} "
            f"--ntasks={count} --ntasks-per-node=1 --exclusive --cpu-bind=none --chdir=/ "
            f"sh {shlex.quote(str(script))} &"
        )
    bed.settle()
    env = clean_environment(folder) | {VARIABLE: str(bed.state)}
    return on_login(bed, folder, env, ["sh", "-c", "\n".join([*lines, "wait"])])


def on_login(bed: Bed, folder: Path, env: Mapping[str, str], command: list[object]) -> Cost:
    """The cost of a command on the login node. Raises Misuse if it cannot be started."""
    result = folder / "cost.json"
    words = [sys.executable, HERE / "measuring.py", result, folder / "log", LIMIT, *command]
    said = subprocess.run(bed.command("run", "--", *words), cwd=folder, env=env)
    if said.returncode or not result.exists():
        raise Misuse(f"'testbed run' ended with {said.returncode}")
    return read(result)


def tell_rounds(nodes: int, taken: list[Round]) -> str:
    """Each round, and the medians with their aims."""
    beyond = [one.mine.cost.cpu - one.start.cpu for one in taken]
    ratios = [one.mine.cost.wall / one.srun.wall for one in taken]
    rows = [
        [
            str(number),
            f"{one.start.cpu:.2f} s",
            f"{one.mine.cost.own:.2f} s",
            f"{one.mine.cost.children:.2f} s",
            f"{more:.2f} s",
            f"{one.srun.wall:.2f} s",
            f"{one.mine.cost.wall:.2f} s",
            f"{ratio:.1f}",
        ]
        for number, (one, more, ratio) in enumerate(zip(taken, beyond, ratios, strict=True), 1)
    ]
    head = [f"{nodes} nodes, round", "CPU of -l", "of the run", "of what it starts", "beyond -l"]
    text = table([*head, "wall of bare srun", "of the run", "ratio"], rows)
    return (
        f"{text}\nmedian: {median(beyond):.2f} s of login CPU beyond ReFrame's own start (aim "
        f"{BEYOND_START} s), {median(ratios):.1f} times the wall of a bare srun (aim "
        f"{OVER_SRUN:.0f})"
    )


def arguments() -> tuple[list[int], int, bool]:
    """The sizes, the rounds, and whether plain ReFrame runs, too. Raises Misuse."""
    options = parser(__doc__)
    options.add_argument("--nodes", default="64,320", help="sizes of the test bed (64,320)")
    options.add_argument("--rounds", type=int, default=3, help="of our run (3)")
    options.add_argument("--without-plain", action="store_true", help="ours only")
    given = options.parse_args()
    text = given.nodes
    sizes = [int(word) for word in text.split(",") if re.fullmatch("[0-9]{1,4}", word)]
    if len(sizes) != len(text.split(",")) or not all(FEW <= size <= MOST for size in sizes):
        raise Misuse(f"--nodes '{text}': numbers from {FEW} to {MOST} with commas between them")
    return sizes, max(1, given.rounds), not given.without_plain


def say(words: str) -> None:
    """What is going on, for who waits."""
    print(f"fan_out: {words}", file=sys.stderr, flush=True)


@contextmanager
def running(bed: Bed) -> Iterator[Bed]:
    """A test bed that is up, and is gone however this ends."""
    say(f"{bed.nodes} nodes: making the test bed")
    try:
        bed.up()
        yield bed
    finally:
        bed.down()


def run_ours(bed: Bed, folder: Path, nodes: int) -> Run:
    """HostParameters on the first `nodes` nodes."""
    folder.mkdir()
    site = folder / "sites" / "testbed"
    shutil.copytree(TOP / "site-config" / "testbed", site)
    text = (site / "system.yaml").read_text(encoding="utf-8")
    text, edits = re.subn(r"node\[001-\d+\]", f"node[001-{nodes:03}]", text)
    if edits != 1:
        raise Misuse("site-config/testbed/system.yaml names its nodes in another way")
    (site / "system.yaml").write_text(text, encoding="utf-8")
    words = ["-c", str(TOP / "checks" / "host"), "-r"]
    env = environment_of_ours(folder)
    return run(bed, folder, env, words, lambda: samples_of(folder / "perflogs"))


def environment_of_ours(folder: Path) -> dict[str, str]:
    """For the site that run_ours has made in this folder."""
    return ours(folder) | {"SITEPROOF_SITES": str(folder / "sites"), "SITEPROOF_SYSTEM": "testbed"}


def samples_of(perflogs: Path) -> int:
    """How many nodes have a figure in the perflogs."""
    lines = [
        line
        for path in perflogs.glob("*/*/*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return sum('"HostParameters.mismatches"' in line for line in lines)


def run_plain(bed: Bed, folder: Path) -> Run:
    """The same script, a case a node, with ReFrame's own means."""
    folder.mkdir()
    env = clean_environment(
        folder,
        RFM_CONFIG_FILES=HERE / "plain" / "settings_slurm.py",
        RFM_PREFIX=folder,
        BENCHMARK_SCRIPTS=TOP / "checks" / "host",
    )
    words = ["-c", str(HERE / "plain" / "host_parameters.py"), "--distribute=all", "-r"]
    return run(bed, folder, env, words, lambda: passed_in(folder / "log"))


def passed_in(log: Path) -> int:
    """How many cases have passed, by ReFrame's summary."""
    return log.read_text(encoding="utf-8", errors="replace").count("[       OK ]")


def run(
    bed: Bed, folder: Path, env: Mapping[str, str], words: list[str], nodes: Callable[[], int]
) -> Run:
    """Run ReFrame on the login node, and count. nodes: how many have a result."""
    bed.settle()
    programs = counting_programs(folder)
    env = {**env, "PATH": f"{programs}:{env['PATH']}"}
    jobs, daemons = len(bed.jobs()), bed.daemons()
    cost = on_login(bed, folder, {**env, VARIABLE: str(bed.state)}, [REFRAME, *words])
    found = nodes()
    if not found:
        lines = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        raise Misuse(f"ReFrame measured nothing: {(lines or ['no output'])[-1]}")
    bed.settle()
    calls = Counter((folder / "calls").read_text(encoding="utf-8").splitlines())
    daemons = bed.daemons() - daemons
    mine = bed.jobs_after(jobs + calls["sbatch"])[jobs:]
    return Run(cost, calls, daemons, len(mine), sum(mine), found)


def counting_programs(folder: Path) -> Path:
    """A folder for PATH in which each of Slurm's commands notes its call first."""
    programs = folder / "programs"
    programs.mkdir()
    (folder / "calls").touch()
    for name in CLIENTS:
        program = programs / name
        real = shutil.which(name)
        if not real:
            continue
        program.write_text(  # our scripts in a job know it by the second name only
            f"#!/bin/sh\njob=${{SLURM_JOB_ID:-${{SITEPROOF_JOB:-}}}}\n"
            f"echo \"{name}${{job:+{IN_JOB}}}\" >>'{folder}/calls'\n"
            f'exec {real} "$@"\n',
            encoding="utf-8",
        )
        program.chmod(0o755)
    return programs


def tell(nodes: int, mine: Run, plain: Run) -> str:
    """The table."""
    rows = [
        compare("wall time", mine.cost.wall, plain.cost.wall, " s"),
        compare("CPU on the login node", mine.cost.cpu, plain.cost.cpu, " s"),
        compare("  ReFrame's process", mine.cost.own, plain.cost.own, " s"),
        compare("  what it starts", mine.cost.children, plain.cost.children, " s"),
        *(
            compare(f"CPU of {name}", mine.daemons[name], plain.daemons[name], " s")
            for name in DAEMONS
        ),
        compare("CPU in the jobs", mine.in_jobs, plain.in_jobs, " s"),
        compare("Slurm jobs", mine.jobs, plain.jobs),
        compare("Slurm client calls", mine.client_calls, plain.client_calls),
        *(
            compare(f"  {name}", mine.calls[name], plain.calls[name])
            for name in sorted(mine.calls | plain.calls)
        ),
        compare("nodes with a result", mine.nodes, plain.nodes),
    ]
    text = table([f"{nodes} nodes", "Siteproof", "plain ReFrame", "ratio", "aim"], rows)
    if plain.cost.cut:
        text += f"\nplain ReFrame was cut off after {LIMIT} s: its figures are too low"
    return text


def compare(what: str, mine: float, plain: float, unit: str = "") -> list[str]:
    """One row of the table."""
    digits = 2 if unit else 0
    ratio = f"{plain / mine:.1f} x" if mine else "-"
    figures = [f"{figure:.{digits}f}{unit}" for figure in (mine, plain)]
    return [what, *figures, ratio, AIMS.get(what, "")]


if __name__ == "__main__":
    main(benchmark)
