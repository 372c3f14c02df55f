"""What the nodes of a large fleet leave in an evening: results of one machine, many times over.

The checks run once on this machine, in quick mode; what they leave in their stage directories is
the pattern of every node's. Each node has its own name and values, which differ as in
tests/support/years.py. Of the nodes 5 % leave nothing, a broken output or a failure, and 2 % are
slow. The sessions of the days before are samples alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from measuring import TOP

sys.path[:0] = [str(TOP), str(TOP / "tests" / "support")]

import fleets  # noqa: E402  # a test's own site
import numpy as np  # noqa: E402
import stages_made  # noqa: E402

from siteproof import nodesets  # noqa: E402
from siteproof.checks.selection import CHUNK  # noqa: E402
from siteproof.collect import stages  # noqa: E402
from siteproof.record import manifest, samples  # noqa: E402
from siteproof.record.manifest import Manifest  # noqa: E402
from siteproof.record.samples import Header, Sample  # noqa: E402
from siteproof.sites import pairs  # noqa: E402

CHECKS = ("HostParameters", "SystemDescription", "Stream", "Hpl", "RandomIo")
NO_PAST = ("SystemDescription",)  # its texts are beside the samples, and nobody compares old ones
# What a tool prints of its rates and times: a node's are all scaled by one number.
RATES = {
    "Stream": r"(?<=MByte/s:\t\t)(?P<rate>[\d.]+)|(?<=Time:\t\t\t)(?P<time>[\d.e+-]+)",
    "Hpl": r"(?<= )(?P<rate>\d\.\d+e[+-]\d\d)(?=\n)|(?<= )(?P<time>\d+\.\d\d)(?= +\d\.\d+e)",
    "RandomIo": r'(?P<rate>(?<="bw_bytes" : )\d+|(?<="iops" : )[\d.]+)'
    r'|(?<="runtime" : )(?P<time>\d+)',
}
OF_PAIR = re.compile(r'(?<="bytes":\t)\d+|(?<="bits_per_second":\t)[\d.e+]+')
LINK = """
links:
  lan: {{description: all nodes, partition: compute, servers: '{servers}', clients: compute,
    pattern: '{pattern}'}}
"""
PAIRS = """\
C-PAIR: {description: made up, metric: TcpBandwidth.throughput, subject: pair, links: [lan],
  at_least: 8 Gb/s, conditions: {mode: [maintenance]}, source: made up}
"""
SCATTER, OWN = 0.01, 0.005  # standard deviations from run to run, and of a node for good
SLOW, VERY_SLOW = 0.93, 0.75  # of the fleet's rate: below its sisters, below the contract
BOUND = 0.85  # of the recorded rate: what the contract promises
PROMISED = ("MB/s", "GFLOPS")
LIMIT = 600  # seconds of a job
DEAD = 2**22 + 7  # a process that no machine has
SESSION = "{:%Y%m%dT%H%M%SZ}-{:07x}"


@dataclass(frozen=True)
class Fleet:
    """The nodes, and which of them have what fault."""

    names: Sequence[str]
    lost: frozenset[str] = field(init=False)
    failed: frozenset[str] = field(init=False)
    cut: frozenset[str] = field(init=False)
    rates: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        def every(step: int, first: int) -> frozenset[str]:
            return frozenset(self.names[first::step])

        set_ = object.__setattr__
        set_(self, "lost", every(40, 7))  # 2.5 %
        set_(self, "failed", every(50, 11))  # 2 %
        set_(self, "cut", every(200, 13))  # 0.5 %
        rates = dict.fromkeys(every(100, 17), SLOW) | dict.fromkeys(every(100, 19), VERY_SLOW)
        set_(self, "rates", rates)


@dataclass(frozen=True)
class Result:
    """The files of one recorded result by their path in it, and the job that it is of."""

    job: Manifest
    host: str
    texts: dict[str, str]

    @staticmethod
    def of(stage: Path) -> Result:
        """What this machine has left in a stage directory."""
        job = manifest.load(stage)
        folder = next((stage / "raw").iterdir())
        paths = [path for path in folder.rglob("*") if path.is_file()]
        texts = {str(path.relative_to(folder)): path.read_text() for path in paths}
        return Result(job, job.host, texts)

    def write(self, folder: Path, node: str, job: str, began: int, rate: float) -> None:
        """The same of another node."""
        folder.mkdir()
        for path in {str(Path(name).parent) for name in self.texts} - {"."}:
            (folder / path).mkdir()
        for name, text in self.texts.items():
            (folder / name).write_text(
                _account(text, node, job, began)
                if name == "meta"
                else self._scaled(text.replace(f" = {self.host}\n", f" = {node}\n"), rate)
            )

    def _scaled(self, text: str, rate: float) -> str:
        def own(match: re.Match[str]) -> str:
            return _times(match[0], rate if match["rate"] else 1 / rate)

        found = RATES.get(self.job.check)
        return re.sub(found, own, text) if found else text


def _times(digits: str, rate: float) -> str:
    if digits.isdigit():
        return str(round(int(digits) * rate))
    return f"{float(digits) * rate:.6g}" if "e" not in digits else f"{float(digits) * rate:.5e}"


def _account(text: str, node: str, job: str, began: int) -> str:
    own = {"node": node, "host": node, "job": job, "start": str(began), "end": str(began + 60)}
    rows = (line.partition("=") for line in text.splitlines())
    return "".join(f"{key}={own.get(key, value)}\n" for key, _, value in rows)


def jobs(count: int) -> Iterator[tuple[int, Sequence[str]]]:
    """The nodes of each job of a check, as the checks divide them."""
    names = fleets.names(count)
    for number, begin in enumerate(range(0, count, CHUNK)):
        yield number, names[begin : begin + CHUNK]


def write_stages(data: Path, recorded: Sequence[Result], count: int, now: datetime) -> None:
    """The stage directories of an evening whose session has ended before it could collect."""
    fleet = Fleet(fleets.names(count))
    session = SESSION.format(now, 0xE)
    began = int(now.timestamp())
    chance = np.random.default_rng(1)
    for place, result in enumerate(recorded):
        rates = 1 + chance.standard_normal(count) * SCATTER
        for number, nodes in jobs(count):
            job = str(100_000 * (1 + place) + number)
            name = f"{result.job.check}_{number}"
            stage = data / "stage" / session / "here/compute/system" / name
            (stage / "raw").mkdir(parents=True)
            _manifest(result.job, session, nodes, job, began).save(stage, data / "stage")
            for at, node in enumerate(nodes, number * CHUNK):
                if node not in fleet.lost:
                    rate = float(rates[at]) * fleet.rates.get(node, 1.0)
                    result.write(stage / "raw" / node, node, job, began + 5, rate)
                    _damage(fleet, stage / "raw" / node, result.job.check)


def _manifest(
    job: Manifest, session: str, nodes: Sequence[str], number: str, began: int
) -> Manifest:
    own = {
        "session": session,
        "system": "here",
        "partition": "compute",
        "environment": "system",
        "mode": "maintenance",
        "expected": str(nodesets.of(nodes)),
        "scheduler": "slurm",
        "jobs": [number],
        "started": began,
        "limit": LIMIT,
        "pid": DEAD,
        "place": 0,
    }
    return Manifest(**{**vars(job), **own})


def _damage(fleet: Fleet, folder: Path, check: str) -> None:
    node = folder.name
    if node in fleet.failed and check == "Hpl":
        meta = (folder / "meta").read_text()
        (folder / "meta").write_text(meta.replace("\nexit=0\n", "\nexit=1\n"))
    if node in fleet.cut and check == "Stream":
        text = (folder / "stdout").read_text()
        (folder / "stdout").write_text(text[: len(text) // 2])


def write_past(
    data: Path, recorded: Sequence[Result], count: int, days: int, now: datetime, dead: int = 0
) -> list[Sample]:
    """A session a day before; what the recorded results give as samples, on one node.

    dead: in so many of the last days nothing is known of 5 % of the nodes.
    """
    of_node = [sample for result in recorded for sample in samples_of(data / "one", result, now)]
    numbers = [s for s in of_node if s.header.check not in NO_PAST and s.status == "ok"]
    heads = {s.header.check: s.header for s in numbers}
    chance = np.random.default_rng(2)
    own = 1 + chance.standard_normal((len(numbers), count)) * OWN
    unknown = frozenset(fleets.names(count)[3::20])
    for day in range(days):
        without = unknown if days - day <= dead else frozenset()
        moment = now - timedelta(days=days - day)
        values = own * (1 + chance.standard_normal(own.shape) * SCATTER)
        for check, head in heads.items():
            mine = [(n, s) for n, s in enumerate(numbers) if s.header.check == check]
            for number, nodes in jobs(count):
                first = number * CHUNK
                lines = [
                    _line(sample, node, float(values[row, first + at]))
                    for at, node in enumerate(nodes)
                    if node not in without
                    for row, sample in mine
                ]
                header = _header(head, moment, day, f"{1000 + day}{number:04}", nodes)
                path = samples.path_of(data / "perflogs", header)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(samples.dump(header, []) + "".join(lines).encode())
    return of_node


def samples_of(folder: Path, result: Result, now: datetime) -> list[Sample]:
    """What collecting one node's result gives."""
    began = int((now - timedelta(hours=1)).timestamp())
    stage = folder / "stage" / result.job.check
    (stage / "raw").mkdir(parents=True)
    (folder / "perflogs").mkdir(exist_ok=True)
    job = _manifest(result.job, SESSION.format(now, 1), ["n1"], "1", began)
    job.save(stage)
    result.write(stage / "raw" / "n1", "n1", "1", began + 5, 1.0)
    return stages.collect(stage, folder / "perflogs", job=job)


def _header(head: Header, moment: datetime, day: int, job: str, nodes: Sequence[str]) -> Header:
    own = {
        "session": SESSION.format(moment, day),
        "time": moment.replace(microsecond=0).isoformat(),
        "job": job,
        "expected": str(nodesets.of(nodes)),
    }
    return Header(**{**vars(head), **own})


def _line(sample: Sample, node: str, rate: float) -> str:
    value = str(sample.value)
    if sample.header.check in RATES and value.replace(".", "").isdigit():
        value = f"{float(value) * rate:.2f}"
    record = {"node": node, "metric": sample.metric, "value": value, "unit": sample.unit}
    rest = {"why": sample.why, "dims": sample.dims, "conditions": sample.own_conditions}
    return json.dumps(record | {k: v for k, v in rest.items() if v}, separators=(",", ":")) + "\n"


def write_site(folder: Path, count: int, measured: Sequence[Sample]) -> None:
    """The site of the fleet, with criteria on rates of the recorded results."""
    rates = {s.metric: s for s in measured if s.unit in PROMISED and not s.dims}
    criteria = "".join(
        f"C-{number}: {{description: made up, metric: {sample.metric}, scope: every node, "
        f"nodes: [compute], at_least: {float(sample.number) * BOUND:.6g} {sample.unit}, "
        "conditions: {mode: [maintenance]}, source: made up}\n"
        for number, sample in enumerate(rates.values())
    )
    fleets.write_site(folder, count=count, criteria=criteria)
    _with_slurm(folder)


def _with_slurm(sites: Path) -> None:
    path = sites / "here" / "system.yaml"
    slurm = "scheduler: slurm, access: ['--partition=compute']"
    path.write_text(path.read_text().replace("scheduler: local", slurm))


def write_pairs(data: Path, count: int, pattern: str, now: datetime) -> None:
    """A site with a link, and the stage directory of a job over its pairs; 5 % left nothing."""
    names = fleets.names(count)
    star = pattern == "star"
    link = LINK.format(pattern=pattern, servers=names[0] if star else "compute")
    fleets.write_site(data / "sites", count=count, more=link, criteria=PAIRS)
    _with_slurm(data / "sites")
    everybody = nodesets.of(names)
    servers = nodesets.of(names[:1]) if star else everybody
    laid = pairs.rounds(pattern, servers, everybody, 1)
    turns = [(0, client, server) for together in laid for client, server in together]
    made = stages_made.Made(
        data,
        "TcpBandwidth",
        metrics=["throughput"],
        parsers={"iperf3": "iperf3"},
        derive="tcp.tcp_bandwidth",
        turns=turns,
        expected=str(everybody),
        mode="maintenance",
        scheduler="slurm",
        started=now.timestamp(),
        conditions={"link": "lan", "pattern": pattern, "at_once": str(pairs.at_once(laid))},
    )
    rates = 1 + np.random.default_rng(3).standard_normal((len(turns), 2)) * SCATTER
    texts = [stages_made.recorded(f"iperf3/3.12-{name}") for name in ("tcp", "tcp_reverse")]
    for number, (_, client, server) in enumerate(turns):
        made.result(stages_made.server_of(number), server, program="iperf3")
        if number % 20 == 7:
            continue
        folder = made.result(stages_made.turn_name(number), client, program="iperf3", mtu="9000")
        for at, way in enumerate(("out", "in")):
            rate = float(rates[number, at]) * (SLOW if number % 100 == 17 else 1.0)
            text = OF_PAIR.sub(lambda m, rate=rate: _times(m[0], rate), texts[at])
            made.run(folder, at + 1, text, direction=way, streams="1")


def now() -> datetime:
    """The evening: an hour ago, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
