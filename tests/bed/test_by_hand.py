"""Each tool by hand and by its check, in turns: the ratio of their values, and its 95 % interval.

    make by-hand

SITEPROOF_BY_HAND names a folder of programs that no distribution has: xhpl, stream, ior, mdtest.
The ratio is not asserted, as a busy machine is no defect: a tool that did not run, and a check
that runs another command than the one by hand, are.
"""

import math
import os
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from clone import TOP, wait_for

pytestmark = pytest.mark.long

ON_NODE = TOP / "siteproof/checks/on_node"
TURNS = int(os.environ.get("SITEPROOF_TURNS", "5"))
T = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 8: 2.36, 10: 2.26}  # Student, 95 %, by turns
PROGRAMS = os.environ.get("SITEPROOF_BY_HAND", "")
PATH = f"{PROGRAMS}:{os.environ['PATH']}" if PROGRAMS else os.environ["PATH"]
AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_plm": "isolated",
    "OMPI_MCA_btl": "self,vader",
}
FIO = "fio --output-format=json --filename=test.1 --size=64m --direct=1 --ioengine=psync"
FIO += " --iodepth=1 --end_fsync=1 --randrepeat=0 --name=read --rw=randread --bs=4k"
FIO += " --time_based --runtime=3"
IPERF3 = "iperf3 -c 127.0.0.1 -p 5311 -t 8 -O 1 -P 1 -J"  # of which a busy machine loses some .1 s
NUTTCP = "nuttcp -t -P 5312 -p 9312 -T 8 -N 1 -fparse 127.0.0.1"


def which(*names):
    """The first program that is there, or a skip that names them."""
    for name in names:
        if shutil.which(name, path=PATH):
            return name
    pytest.skip(f"NOT RUN BY HAND: no {' or '.join(names)} (SITEPROOF_BY_HAND)")


def value(tool, text, metric, what):
    """The value of a metric in what a tool printed."""
    found = [
        r for r in import_module(f"siteproof.parsers.{tool}").parse(text) if r.metric == metric
    ]
    assert len(found) == 1, (what, text[:500])
    return float(found[0].value)


@dataclass
class Node:
    """A node's own folder, in which a check's script runs as node.sh runs it."""

    folder: Path
    settings: dict

    def run(self, script, logged=""):
        """Standard output, the command lines of the logged program, and the node's folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        stage, mine, shims = (self.folder / n for n in ("stage", "node", "shims"))
        for each in (stage, mine, shims):
            each.mkdir(parents=True)
        for file in ON_NODE.glob("*.sh"):
            shutil.copy(file, stage)
        shutil.copy(TOP / script, stage / "measure.sh")
        cores = len(os.sched_getaffinity(0))
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
        (mine / "meta").write_text(
            f"node=here\ncpus={cores}\nmemory_kib={memory}\nmemory_given_kib={memory}\n"
        )
        (mine / "facts").touch()
        log = self.folder / "log"
        if logged:
            shim, real = shims / logged, shutil.which(logged, path=PATH)
            shim.write_text(f'#!/bin/sh\necho "{logged} $*" >>{log}\nexec {real} "$@"\n')
            shim.chmod(0o755)
        (mine / "turns").mkdir()
        (stage / "turns").mkdir()
        words = '. "$1/account.sh"; . "$1/network.sh"; . "$1/mpi.sh"; . "$1/measure.sh"'
        env = os.environ | {"PATH": f"{shims}:{PATH}", "LC_ALL": "C", **self.settings}
        done = subprocess.run(
            ["sh", "-c", words, "measure", stage],
            cwd=mine,
            env=env,
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        lines = log.read_text().splitlines() if log.exists() else []
        return done.stdout, lines, mine


def by_hand(words, folder, **env):
    """Standard output of a command, by hand."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        words, cwd=folder, env=os.environ | {"PATH": PATH, "LC_ALL": "C"} | env, text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_turns(hand, check):
    """Values (hand, check) of each turn; who begins alternates."""
    found = []
    for turn in range(TURNS):
        first, second = (hand, check) if turn % 2 else (check, hand)
        one, other = first(), second()
        found.append((one, other) if turn % 2 else (other, one))
    return found


def show(name, pairs, capsys):
    """One line: the geometric mean of check by hand, its interval, and both medians."""
    logs = [math.log(check / hand) for hand, check in pairs]
    middle = statistics.fmean(logs)
    n = len(logs)
    half = T.get(n, 2.1) * statistics.stdev(logs) / math.sqrt(n) if n > 1 else math.inf
    low, high = math.exp(middle - half), math.exp(middle + half)
    hands, checks = (statistics.median(each) for each in zip(*pairs, strict=True))
    load = os.getloadavg()[0]
    with capsys.disabled():
        print(
            f"\n{name:24} check/hand {math.exp(middle):5.3f} ({low:5.3f} to {high:5.3f}), "
            f"{n} turns, medians {checks:.5g} and {hands:.5g}, load {load:.1f}"
        )


@pytest.mark.tool("fio")
def test_fio(tmp_path_factory, capsys):
    which("fio")
    disk = Path("/var/tmp") / f"siteproof-by-hand-{os.getpid()}"
    disk.mkdir()
    node = Node(
        tmp_path_factory.mktemp("fio") / "n",
        {"FS_PATH": str(disk), "FS_KIND": "any", "FS_SHARED": "no", "NEEDED": "1", "TEST": "hand",
         "NODES": "here", "AT_ONCE": "1", "TURN": "600", "TOGETHER": "1", "MEBIBYTES": "64",
         "DEPTH": "1", "DURATION": "3", "SITEPROOF_LIMIT": "600", "SITEPROOF_ATTEMPT": "1",
         "SITEPROOF_SECRET": "x"},
    )  # fmt: skip
    commands = []

    def check():
        _, lines, folder = node.run("checks/storage/random_io.sh", "fio")
        commands[:] = [line for line in lines if "--rw=randread --bs=4k" in line]
        return value("fio", (folder / "run.2/stdout").read_text(), "read", "check")

    def hand():
        return value("fio", by_hand(FIO.split(), disk / "hand"), "read", "by hand")

    try:
        pairs = in_turns(hand, check)
    finally:
        shutil.rmtree(disk)
    assert [sorted(line.split()) for line in commands] == [sorted(FIO.split())]
    show("fio randread 4k", pairs, capsys)


@pytest.mark.parametrize(
    ("tool", "command", "server"),
    [
        pytest.param("iperf3", IPERF3, "iperf3 -s -p 5311", marks=pytest.mark.tool("iperf3")),
        pytest.param(
            "nuttcp", NUTTCP, "nuttcp -S --nofork -P 5312", marks=pytest.mark.tool("nuttcp")
        ),
    ],
)
def test_tcp(tool, command, server, tmp_path, capsys):
    which(tool)
    port = server.split()[-1]
    serving = subprocess.Popen(
        server.split(), env=os.environ | {"PATH": PATH}, stdout=subprocess.DEVNULL
    )
    node = Node(
        tmp_path / "n",
        {"SIDE": "client", "ADDRESS": "127.0.0.1", "PORT": port, "PROGRAM": tool, "STREAMS": "1",
         "SECONDS_OF_RUN": "8", "OMIT": "1"},
    )  # fmt: skip
    commands = []

    def check():
        _, lines, folder = node.run("checks/network/tcp_bandwidth.sh", tool)
        commands[:] = lines[:1]
        return value(tool, (folder / "run.1/stdout").read_text(), "throughput", "check")

    def hand():
        return value(tool, by_hand(command.split(), tmp_path / "h"), "throughput", "by hand")

    try:
        wait_for(lambda: serving.poll() is None and listens(int(port)))
        pairs = in_turns(hand, check)
    finally:
        serving.terminate()
        serving.wait()
    assert [line.split() for line in commands] == [command.split()]
    show(f"{tool} TCP, 1 stream", pairs, capsys)


def listens(port):
    """Whether something on this machine listens there, without a connection to it."""
    wanted = f":{port:04X}"
    tables = [Path("/proc/net/tcp").read_text(), Path("/proc/net/tcp6").read_text()]
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return any(row[1].endswith(wanted) and row[3] == "0A" for row in rows)


@pytest.mark.tool("STREAM 5.10")
def test_stream(tmp_path, capsys):
    which("stream")
    cores = len(os.sched_getaffinity(0))
    node = Node(tmp_path / "n", {"CORES": str(cores)})
    threads = {"OMP_NUM_THREADS": str(cores), "OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    found = []

    def check():
        # Nothing in its way: the check looks into the program before it takes it for STREAM.
        out, _, folder = node.run("checks/cpu/stream.sh")
        found[:] = [import_module("siteproof.parsers.stream").conditions(out)]
        assert "program=stream\n" in (folder / "facts").read_text()
        return value("stream", out, "triad", "check")

    def hand():
        out = by_hand(["stream"], tmp_path / "h", **threads)
        found.append(import_module("siteproof.parsers.stream").conditions(out))
        return value("stream", out, "triad", "by hand")

    pairs = in_turns(hand, check)
    assert found[0] == found[-1]
    show("STREAM triad", pairs, capsys)


# ---- HPL

NUMBERS = (5, 7, 10, 11)  # lines of HPL.dat, from 0: N, NB, P, Q


def problem(text):
    return [text.splitlines()[at].split()[0] for at in NUMBERS]


def solve(program, folder, template, n, grid, threads, library=""):
    """GFLOPS of a problem by hand. template: the check's input, with other numbers."""
    folder.mkdir(exist_ok=True)
    (folder / "hpccoutf.txt").unlink(missing_ok=True)
    lines = template.splitlines()
    for at, number in zip(NUMBERS, (n, *grid), strict=True):
        lines[at] = f"{number} "
    name = "HPL.dat" if program == "xhpl" else "hpccinf.txt"
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    env = AS_ROOT | {
        name: str(threads)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    }
    ranks = grid[1] * grid[2]
    words = ["mpirun", "--bind-to", "none" if threads > 1 else "core", "-np", str(ranks)]
    words += [
        "env",
        *([f"LD_PRELOAD={library}", "MKL_THREADING_LAYER=SEQUENTIAL"] if library else []),
    ]
    out = by_hand([*words, program], folder, **env)
    text = out if program == "xhpl" else (folder / "hpccoutf.txt").read_text()
    return value("hpl" if program == "xhpl" else "hpcc", text, "gflops", "by hand")


@pytest.mark.tool("HPL (xhpl)")
@pytest.mark.parametrize(
    "blas", ["the default BLAS", pytest.param("MKL", marks=pytest.mark.tool("Intel MKL"))]
)
def test_hpl(blas, tmp_path, capsys):
    program = which("xhpl", "hpcc")
    mkl = next(iter(sorted((TOP / ".mkl/lib").glob("libmkl_rt.so*"))), "")
    if blas == "MKL" and not mkl:
        pytest.skip("HPL ON MKL NOT RUN BY HAND: no .mkl ('make mkl')")
    cores = len(os.sched_getaffinity(0))
    n = 4000 if program == "xhpl" else 1500
    settings = {"N": str(n), "NB": "192", "CORES": str(cores), "CLONE_MKL": str(TOP / ".mkl")}
    node = Node(tmp_path / "n", settings | ({"BLAS": "mkl"} if blas == "MKL" else {}))
    last = {}

    def check():
        out, _, folder = node.run("checks/cpu/hpl.sh")
        name = "HPL.dat" if program == "xhpl" else "hpccinf.txt"
        last["input"] = (folder / name).read_text()
        facts = (folder / "facts").read_text().split()
        last["threads"] = int(next(f for f in facts if f.startswith("threads="))[8:])
        return value("hpl" if program == "xhpl" else "hpcc", out, "gflops", "check")

    check()  # the first run reads libraries from the disk
    _, nb, p, q = map(int, problem(last["input"]))
    library = str(mkl) if blas == "MKL" else ""
    grid, threads = (nb, p, q), last["threads"]
    assert p * q * threads == cores

    def hand():
        return solve(program, tmp_path / "h", last["input"], n, grid, threads, library)

    show(f"HPL ({program}), {blas}", in_turns(hand, check), capsys)
    if program != "xhpl" or blas == "MKL":
        return
    # What an expert would try; the fastest of them, in turns with the check.
    tried = [((nb, 1, ranks), cores // ranks) for nb in (96, 128, 192, 256) for ranks in {1, cores}]
    rates = {
        (grid, threads): max(
            solve(program, tmp_path / "h", last["input"], n, grid, threads) for _ in range(2)
        )
        for grid, threads in tried
    }
    grid, threads = max(rates, key=rates.get)
    name = f"HPL, best by hand (NB {grid[0]}, {grid[2]}x{threads})"
    show(name, in_turns(hand_of(program, tmp_path, last, n, grid, threads), check), capsys)


def hand_of(program, folder, last, n, grid, threads):
    return lambda: solve(program, folder / "h", last["input"], n, grid, threads)


# ---- IOR and mdtest, of a folder that the variable names

MPI = {"TASKS": "2", "TASKS_PER_NODE": "2", "NODE_COUNT": "1", "NODES": "here", "SWEEP_SRUN": ""}


@pytest.mark.parametrize(
    ("tool", "points", "words", "metric", "run"),
    [
        pytest.param(
            "ior",
            {"POINT_BLOCK": "67108864", "POINT_TRANSFER": "1048576", "SERVER_MEMORY": ""},
            "-a POSIX -F -t 1048576 -b 67108864 -s 1 -k -g -G 1978 -O summaryFormat=JSON -w -e",
            "write", 1, marks=pytest.mark.tool("IOR"),
        ),
        pytest.param(
            "mdtest",
            {"POINT_FILES": "2000"},
            "-C -F -P -n 2000 -u -L -G 1978",
            "create", 1, marks=pytest.mark.tool("mdtest"),
        ),
    ],
)  # fmt: skip
def test_storage_of_many_tasks(tool, points, words, metric, run, tmp_path, capsys):
    program = which(tool)
    disk = Path("/var/tmp") / f"siteproof-by-hand-{tool}-{os.getpid()}"
    disk.mkdir()
    folder = tmp_path / "n"
    node = Node(
        folder,
        {**MPI, **AS_ROOT, **points, "FS_PATH": str(disk), "FS_KIND": "any", "FS_SHARED": "yes",
         "TEST": "hand", "TOGETHER": "1", "LAUNCH": "", "SITEPROOF_MPI": "", "POINT_NUMBER": "1",
         "POINT_FOLDER": str(folder / "node"), "SWEEP_STAGE": str(folder / "stage"),
         "SITEPROOF_LIMIT": "600", "SITEPROOF_ATTEMPT": "1", "SITEPROOF_SECRET": "x",
         "SITEPROOF_JOB": "", "POINT_API": "POSIX"},
    )  # fmt: skip
    commands = []
    target = {"ior": "-o", "mdtest": "-d"}[tool]

    def check():
        script = TOP / f"checks/storage/{tool}.sh"
        whole = tmp_path / f"{tool}.sh"
        whole.write_text(f'. "$1/launch.sh"\n{script.read_text()}')
        _, lines, mine = node.run(whole, tool)
        commands[:] = lines
        return value(tool, (mine / f"run.{run}/stdout").read_text(), metric, "check")

    def hand():
        where = disk / "hand"
        where.mkdir()
        env = AS_ROOT | {
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1",
        }
        name = "test.1" if tool == "ior" else "test.tree"
        line = ["mpirun", "-np", "2", program, *words.split(), target, str(where / name)]
        if tool == "ior":
            line += ["-O", f"saveRankPerformanceDetailsCSV={where}/test.ranks"]
        try:
            out = by_hand(line, tmp_path / "h", **env)
            if tool == "ior":
                out += (where / "test.ranks").read_text()
        finally:
            shutil.rmtree(where)
        time.sleep(0.2)
        return value(tool, out, metric, "by hand")

    try:
        pairs = in_turns(hand, check)
    finally:
        shutil.rmtree(disk)
    own = set(commands[0].split()[1:])
    assert {word for word in words.split() if word not in own} == set(), (words, commands[0])
    show(f"{tool} {metric}, 2 tasks", pairs, capsys)
