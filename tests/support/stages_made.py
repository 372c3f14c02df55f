"""Stage directories as jobs leave them, from recorded outputs, and ways to damage them."""

from __future__ import annotations

import os
import random
import re
import shutil
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from clone import OUTPUTS

from siteproof.collect.pair_turns import name as turn_name
from siteproof.collect.pair_turns import server_of
from siteproof.record.manifest import NAME, Manifest, Point, folder_of

SESSION, BEGAN = "20261121T120000Z-00001ab", 1795267000
DEAD = 2**22 + 7  # a process that no machine has
NOBODY = 65534
SECRET = "root:$6$secret:19000:0:99999:7:::"
NODES = ("n1", "n2", "n3")


class Made:
    """One job's stage directory below DATA/stage, of a session that is lost."""

    def __init__(self, data: Path, check: str, copy: bool = True, **job: object) -> None:
        self.stages, self.perflogs = data / "stage", data / "perflogs"
        self.stage = self.stages / SESSION / "here/compute/system" / check
        (self.stage / "raw").mkdir(parents=True)
        self.perflogs.mkdir(exist_ok=True)
        self.job = Manifest(
            **{
                "session": SESSION,
                "system": "here",
                "partition": "compute",
                "environment": "system",
                "check": check,
                "mode": "acceptance",
                "expected": ",".join(NODES),
                "jobs": [str(sum(map(ord, check)))],
                "started": BEGAN,
                "limit": 600,
                "pid": DEAD,
                **job,
            }
        )
        self.job.save(self.stage, self.stages if copy else None)

    def result(
        self, name: str, node: str, stdout: str = "", stderr: str = "", **facts: str
    ) -> Path:
        """A result folder, with all that a node says of itself."""
        folder = self.stage / "raw" / name
        folder.mkdir()
        meta = {
            "node": node,
            "host": node,
            "kernel": "6.1.0",
            "job": self.job.jobs[0],
            "cpus": "2",
            "processor": "Test CPU",
            "flags": "fpu sse2 avx2",
            "memory_kib": "16000000",
            "swap_before": "7",
            "limit": "100",
            "start": str(BEGAN + 10),
            "exit": "0",
            "swap_after": "7",
            "end": str(BEGAN + 40),
        }
        (folder / "meta").write_text("".join(f"{k}={v}\n" for k, v in meta.items()))
        (folder / "facts").write_text("".join(f"{k}={v}\n" for k, v in facts.items()))
        (folder / "stdout").write_text(stdout)
        (folder / "stderr").write_text(stderr)
        return folder

    def run(self, folder: Path, number: int, stdout: str, **dims: str) -> None:
        """A run of a result."""
        run = folder / f"run.{number}"
        run.mkdir()
        (run / "dims").write_text("".join(f"{k}={v}\n" for k, v in dims.items()))
        (run / "stdout").write_text(stdout)
        (run / "stderr").write_text("")
        (run / "exit").write_text("0\n")


def recorded(name: str) -> str:
    """A recorded output."""
    return (OUTPUTS / f"{name}.txt").read_text(errors="replace")


def of_nodes(data: Path, check: str = "Stream", copy: bool = True, nodes: int = 3) -> Made:
    """Memory bandwidth of each node."""
    made = Made(
        data,
        check,
        copy,
        metrics=["copy", "triad"],
        parsers={"likwid-bench": "likwid"},
        derive="cpu.stream",
        expected=f"n[1-{nodes}]",
    )
    text = recorded("likwid/5.2.2-copy_and_stream")
    facts = {"program": "likwid-bench", "array_bytes": "80000000", "last_level_cache": "1000"}
    for number in range(1, nodes + 1):
        made.result(f"n{number}", f"n{number}", text, **facts)
    return made


def of_hpl(data: Path, check: str = "Hpl", copy: bool = True) -> Made:
    """HPL on each node."""
    made = Made(data, check, copy, metrics=["gflops"], parsers={"xhpl": "hpl"}, derive="cpu.hpl")
    for node in NODES:
        made.result(node, node, recorded("hpl/2.0-n3000"), program="xhpl")
    return made


def of_descriptions(data: Path, check: str = "SystemDescription", copy: bool = True) -> Made:
    """What each node says of itself: texts that are kept aside."""
    made = Made(
        data,
        check,
        copy,
        metrics=["fields", "unreadable", "digest"],
        parsers={"describe": "description"},
        derive="host.description",
    )
    for node in NODES:
        made.result(node, node, recorded("description/bare_metal"), program="describe")
    return made


def of_pairs(data: Path, check: str = "TcpBandwidth", copy: bool = True) -> Made:
    """Two clients and a server, both directions, at the same time."""
    turns = [(1, "n1", "n3"), (1, "n2", "n3"), (2, "n1", "n3"), (2, "n2", "n3")]
    made = Made(
        data,
        check,
        copy,
        metrics=["throughput"],
        parsers={"iperf3": "iperf3"},
        derive="network.tcp_bandwidth",
        turns=turns,
        together=True,
        conditions={"link": "lan", "pattern": "together", "at_once": "2"},
    )
    for number, (_, client, server) in enumerate(turns):
        made.result(server_of(number), server, program="iperf3")
        folder = made.result(turn_name(number), client, program="iperf3", mtu="9000")
        for place, (way, text) in enumerate((("out", "tcp"), ("in", "tcp_reverse")), 1):
            made.run(folder, place, recorded(f"iperf3/3.12-{text}"), direction=way, streams="1")
    return made


def of_sweep(data: Path, check: str = "Probe_1", copy: bool = True, **facts: object) -> Made:
    """A sweep of three points."""
    values = {"tasks": "1", "tasks_per_node": "1", "api": "POSIX"}
    points = {
        n: Point({**values, "depth": str(2**n)}, ["tasks", "tasks_per_node", "depth"], 1)
        for n in (1, 2, 3)
    }
    made = Made(
        data,
        check,
        copy,
        metrics=["rate"],
        parsers={"dd": "dd"},
        points=points,
        conditions={"sweep": "probe", "sweep_hash": "00"},
        facts=facts,
    )
    for number in points:
        folder = made.result(folder_of(number), "n1", program="dd")
        made.run(folder, 1, "")
        (folder / "run.1/stderr").write_text(recorded("dd/9.1-read_direct"))
    return made


KINDS: tuple[Callable[..., Made], ...] = (of_nodes, of_hpl, of_descriptions, of_pairs, of_sweep)

# ---- damage

NUMBERS = ("9" * 5000, "-1", "0", "1e999", "NaN", "3.5", "99999999999", "-62135596800", "\u0663")
NAMES = ("../../x", "/../../gate", ".", "..", "gate.jsonl", ".x", "a/b", "", "x" * 300, "a\0b")
KEYS = (
    "mode",
    "published",
    "trial",
    "peer",
    "direction",
    "program",
    "node",
    "end",
    "start",
    "exit",
)


def damage(made: Made, seed: int) -> str:
    """Damage a stage directory in one to three ways, which a seed chooses; says how."""
    rng = random.Random(seed)
    return "; ".join(_damage_once(made, rng) for _ in range(rng.choice((1, 1, 2, 3))))


def _damage_once(made: Made, rng: random.Random) -> str:
    """One kind of damage to one file or folder."""
    there = [Path(top) / name for top, _, files in os.walk(made.stage) for name in files]
    there = sorted(p for p in there if p.is_file() and not p.is_symlink())
    there = [path for path in there if path.stat().st_size < 40 << 30]  # no sparse one
    if rng.random() < 0.2:
        folders = [made.stage / "raw", *sorted((made.stage / "raw").glob("*"))]
        folders += sorted(made.stage.glob("raw/*/run.1"))
        path = rng.choice(folders)
        how = rng.choice((_to_link, _to_fifo, _to_file, _rename, _remove, _deep, _many))
    elif there and rng.random() < 0.8:
        path = rng.choice(there)
        if rng.random() < 0.2:
            path = made.stage / NAME if made.stage / NAME in there else path
        how = rng.choice((_bytes, _bytes, _text, _text, _text, _to_link, _to_other, _remove))
    else:
        path = made.stage / rng.choice(("siteproof-collected", "raw/n1/exit", "raw/n1/run.2"))
        how = rng.choice((_to_link, _to_fifo, _to_file))
    if not Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(made.stage)):
        return "nothing"  # a link that damage has made before leads out
    with suppress(OSError):  # what was damaged before may be in the way
        told = how(path, made, rng)
        return f"{path.relative_to(made.stages)} {how.__name__.strip('_')} {told}"
    return "nothing"


def _bytes(path: Path, _made: Made, rng: random.Random) -> str:
    data = bytearray(path.read_bytes() or b"x")
    way = rng.choice(("flip", "cut", "nul", "latin", "twice", "empty", "large"))
    if way == "flip":
        for _ in range(rng.choice((1, 5, 50))):
            data[rng.randrange(len(data))] = rng.randrange(256)
    at = rng.randrange(len(data))
    data = {
        "flip": data,
        "cut": data[:at],
        "nul": data[:at] + b"\0\0" + data[at:],
        "latin": data[:at] + b"\xff\xfe\x80" + data[at:],
        "twice": data + data,
        "empty": bytearray(),
        "large": data + b"A" * 2**20,
    }[way]
    path.write_bytes(data)
    return way


def _text(path: Path, _made: Made, rng: random.Random) -> str:
    text = path.read_bytes().decode("utf-8", "replace")
    way = rng.choice(("number", "line", "key", "keys", "name", "json", "repeat", "value"))
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    numbers = [*re.finditer(r"-?\d+(\.\d+)?", text)]
    if way == "number" and numbers:
        found = rng.choice(numbers)
        text = text[: found.start()] + rng.choice(NUMBERS) + text[found.end() :]
    elif way == "line":
        text = "\n".join(lines[:at] + lines[at + 1 :])
    elif way == "key":
        text += f"{rng.choice(KEYS)}={rng.choice((*NUMBERS, *NAMES))}\n"
    elif way == "keys":
        text += "".join(f"k{n}=v\n" for n in range(3000))
    elif way == "name" and (words := [*re.finditer(r'"[a-z_]{2,12}"|\bn[123]\b|here', text)]):
        found = rng.choice(words)
        text = text[: found.start()] + f'"{rng.choice(NAMES)}"' + text[found.end() :]
    elif way == "json":
        depth = rng.choice((60, 5000))
        text = text.replace("{", "{" + '"a":[' * depth + "]" * depth + ",", 1) + "[" * depth
    elif way == "repeat":
        text = "\n".join(lines[: at + 1] * 2 + lines[at:])
    else:
        text += f"long={'v' * 70_000}\n"
    path.write_bytes(text.encode("utf-8", "replace"))
    return way


def _to_link(path: Path, made: Made, rng: random.Random) -> str:
    others = sorted((made.stage / "raw").glob("*"))
    aims = [
        made.stages.parent / "outside/shadow",
        made.stages.parent / "outside/new",
        made.stages.parent / "outside",
        Path("/dev/zero"),
        Path("/proc/kmsg"),
        Path(path.name),
        rng.choice(others) if others else Path("/"),
    ]
    aim = rng.choice(aims)
    _clear(path)
    path.symlink_to(aim)
    return str(aim)


def _to_other(path: Path, made: Made, rng: random.Random) -> str:
    way = rng.choice(("fifo", "folder", "socket", "sparse", "owner", "mode"))
    if way in ("owner", "mode"):
        if way == "mode" or os.geteuid() != 0:
            path.chmod(0)
        else:
            os.chown(path, NOBODY, NOBODY)
        return way
    _clear(path)
    if way == "fifo":
        os.mkfifo(path)
    elif way == "folder":
        path.mkdir()
    elif way == "socket":
        bound, here = socket.socket(socket.AF_UNIX), Path.cwd()
        os.chdir(path.parent)  # the name of a socket is short
        bound.bind(path.name)
        os.chdir(here)
        bound.close()
    else:
        with path.open("wb") as stream:
            stream.truncate(40 << 30)
    return way


def _to_fifo(path: Path, _made: Made, _rng: random.Random) -> str:
    _clear(path)
    os.mkfifo(path)
    return ""


def _to_file(path: Path, _made: Made, _rng: random.Random) -> str:
    _clear(path)
    path.write_text("x")
    return ""


def _rename(path: Path, _made: Made, rng: random.Random) -> str:
    name = rng.choice((".n1.1", "n1\n", "run.1", "run.99999999", "run.-1", "n9", "00000.server"))
    path.rename(path.with_name(name))
    return name


def _remove(path: Path, _made: Made, _rng: random.Random) -> str:
    _clear(path)
    return ""


def _deep(path: Path, _made: Made, _rng: random.Random) -> str:
    for _ in range(min(60, sys.getrecursionlimit())):
        path = path / "d"
        path.mkdir()
    return ""


def _many(path: Path, _made: Made, _rng: random.Random) -> str:
    for number in range(300):
        (path / f"run.{number}x").mkdir()
    return ""


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
