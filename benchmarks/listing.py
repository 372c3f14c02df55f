"""CPU that `reframe -c checks/ -l` takes, compared with ReFrame with nothing to load, in one run.

python3 benchmarks/listing.py [--rounds 7]
python3 benchmarks/listing.py --nodes 10000,40000 [--links star,random:3] [--old COMMIT]

With --nodes: `siteproof plan`, `-l` and `--dry-run` once each for a site of so many nodes, and the
same with the suite of an old commit, which is ended after three minutes or at 8 GB. What both print
of 1,000 nodes must be the same, but for the rows of the plan.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from statistics import median

from measuring import (
    REFRAME,
    TOP,
    Cost,
    Misuse,
    clean_environment,
    main,
    measure,
    must,
    ours,
    parser,
    table,
    temporary_folder,
    worktree,
)

AIM = 1.5  # seconds of CPU
SITES = ("thishost", "jetstream-iu")
AIMS_OF_NODES = {10_000: 5, 40_000: 20}  # seconds of CPU
MOST_MEMORY = 500  # MB
LIMIT, LIMIT_OF_MEMORY = 180, 8 * 10**9  # seconds and bytes of an old version's command
COMPARED = 1_000  # nodes with which the outputs are compared
COMMANDS = {"plan": ["plan"], "-l": ["-l"], "dry run": ["--dry-run"]}
VARIES = re.compile(
    r"^ .*\n|^.*(?:Started|Finished|session|/var/tmp|at most, if|[│┃─━]).*\n|\x1b\[[0-9;]*m", re.M
)
BARE = "ReFrame, no check, built-in settings"


def benchmark() -> None:
    """Measure in turns, and print medians."""
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=7, help="of each, in turns (7)")
    options.add_argument("--nodes", default="", help="sizes of a site instead: 10000,40000")
    options.add_argument("--links", default="star,random:3", help="patterns (star,random:3)")
    options.add_argument("--old", default="", help="commit to compare with")
    given = options.parse_args()
    if given.nodes:
        large_sites([int(n) for n in given.nodes.split(",")], given.links.split(","), given.old)
        return
    rounds = max(1, given.rounds)
    with temporary_folder() as folder:
        taken = {name: [] for name in (BARE, *SITES)}
        for turn in range(rounds + 1):
            for name in taken:
                cpu = listing(folder, name)
                if turn:  # the first one fills the caches
                    taken[name].append(cpu)
    bare = median(taken[BARE])
    rows = [
        [
            name,
            f"{median(cpu):.2f} s",
            f"{min(cpu):.2f} to {max(cpu):.2f}",
            f"{median(cpu) / bare:.1f} x",
            "" if name == BARE else f"{AIM} s",
        ]
        for name, cpu in taken.items()
    ]
    print(table(["listing the checks", "CPU", "range", "of bare", "aim"], rows))


def large_sites(sizes: Sequence[int], links: Sequence[str], old: str) -> None:
    """Measure each command on each site, old and new, and compare their outputs."""
    with temporary_folder() as folder, ExitStack() as stack:
        clones = {"new": TOP}
        if old:
            clones = {"old": stack.enter_context(worktree(old, folder / "old")), **clones}
        rows = []
        for nodes, link, what in product([COMPARED, *sizes], links, COMMANDS):
            costs = {}
            for name, clone in clones.items():
                costs[name] = on_site(folder, clone, nodes, link, what)
                (folder / "log").rename(folder / f"{name}.log")
            if nodes == COMPARED and old:
                compare(folder, f"{what} of {nodes} nodes, {link}")
            rows.append(
                [f"{what}, {nodes} nodes, {link}"]
                + [cell for cost in costs.values() for cell in cells(cost)]
                + [f"{AIMS_OF_NODES[nodes]} s, {MOST_MEMORY} MB" if nodes in AIMS_OF_NODES else ""]
            )
            print(*rows[-1], sep="  ", flush=True)
    head = [f"{name} {what}" for name in clones for what in ("CPU", "memory")]
    print(table(["on the login node", *head, "aim"], rows))


def on_site(folder: Path, clone: Path, nodes: int, link: str, what: str) -> Cost:
    """The cost of a command for the test bed's site with so many nodes and another link."""
    sites = folder / f"sites-{nodes}-{link}"
    if not sites.exists():
        made = shutil.copytree(TOP / "site-config" / "testbed", sites / "testbed") / "system.yaml"
        text = made.read_text(encoding="utf-8")
        names = f"node[{1:0{len(str(nodes))}}-{nodes}]"
        text = text.replace("node[001-008]", names).replace("servers: node001", "servers: compute")
        text = text.replace("    mtu: 9000\n\npart", f"    mtu: 9000\n    pattern: {link}\n\npart")
        made.write_text(text, encoding="utf-8")
    data = folder / "data"
    data.mkdir(exist_ok=True)
    env = ours(data, clone, SITEPROOF_SYSTEM="testbed", PYTHONPATH=clone)
    env["SITEPROOF_SITES"] = str(sites)
    program = (
        [REFRAME.with_name("siteproof")] if what == "plan" else [REFRAME, "-c", clone / "checks"]
    )
    limit = ["prlimit", f"--as={LIMIT_OF_MEMORY}"]
    return measure([*limit, *program, *COMMANDS[what]], env, folder / "log", LIMIT)


def cells(cost: Cost) -> Iterator[str]:
    """CPU and memory; of a command that was ended or failed, more than that."""
    more = "> " if cost.cut or cost.code else ""
    yield f"{more}{cost.cpu:.1f} s"
    yield f"{more}{cost.memory:.0f} MB"


def compare(folder: Path, what: str) -> None:
    """Both must have printed the same, in any order of the test cases."""
    texts = [(folder / f"{name}.log").read_text(encoding="utf-8") for name in ("old", "new")]
    old, new = (sorted(VARIES.sub("", text).splitlines()) for text in texts)
    if old != new:
        first = sorted(set(old) ^ set(new))[:2]
        raise Misuse(f"{what}: the outputs differ, for example in {first}")


def listing(folder: Path, name: str) -> float:
    """CPU seconds of one listing: of a site's checks, or of an empty folder."""
    log = folder / "log"
    if name == BARE:
        (folder / "empty").mkdir(exist_ok=True)
        command = [REFRAME, "-c", folder / "empty", "-l"]
        env = clean_environment(folder)
    else:
        command = [REFRAME, "-c", TOP / "checks", "-l", "--system", name]
        env = ours(folder)
    return must(measure(command, env, log), log, f"listing of {name}").cpu


if __name__ == "__main__":
    main(benchmark)
