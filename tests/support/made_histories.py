"""Random histories of a small system as plain data, and how they become a site and perflogs.

FEATURES switches what happens in them. A check that no criterion names has failures only: what it
owes where other nodes have a value depends on the sessions that are judged, which the plain rule
does not choose.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path

from plain_answers import STRICTER, Criterion, History, Job, Line, Waiver, without_wrong_values

from siteproof import locks
from siteproof.record import descriptions, samples
from siteproof.record.samples import Header, Sample

FEATURES = frozenset(
    (
        *("absent", "ages", "boards", "broken", "conditions", "damage", "environments", "gone"),
        *("implausible", "interrupted", "jobs", "lost_lines", "modes", "other_metric"),
        *(
            "pairs",
            "partitions",
            "partly_absent",
            "points",
            "services",
            "small",
            "trials",
            "two_criteria",
            "waivers",
            "whole",
        ),
    )
)
METRICS = {"Stream": ("Stream.triad", "MB/s"), "Hpl": ("Hpl.gflops", "GFLOPS")}
UNPROMISED = "Hpl.share_of_peak"  # where no criterion names the check
LINK, TCP = "lan", "TcpBandwidth.throughput"
AGGREGATE = "TcpBandwidth.aggregate"  # of a link as a whole
RATE, SERVICES = "Service.rate", ("mirror", "portal")
DESCRIPTION, FIELDS = "SystemDescription", "SystemDescription.fields"
UNITS = {
    **dict(METRICS.values()),
    UNPROMISED: "%",
    TCP: "Gb/s",
    AGGREGATE: "Gb/s",
    FIELDS: "count",
    RATE: "MB/s",
}
OTHER = "Stream.copy"  # which no criterion names
# By check: of the machine, so that another one is no other setting, which the plain rule lacks.
CONDITIONS = {"Stream": "version", "Hpl": "blas_version"}
PROGRAMS = {
    "Stream": "stream",
    "Hpl": "xhpl",
    "TcpBandwidth": "iperf3",
    DESCRIPTION: "sh",
    "Service": "rsync",
}
BOUND, GOOD, BAD = 100, 101, 99.5  # no node is SLOW by so little
BANDWIDTH, TOO_MUCH = 1000, 2000  # of the memory, and what cannot be right
SITE = """\
system: here
description: A history for tests
recognise: {{fallback: true}}
nodes:
  compute: {{set: '{nodes}', hardware: blade}}
hardware:
  blade: {{memory_bandwidth: {bandwidth} MB/s}}
partitions:
  compute: {{description: All, role: compute, scheduler: slurm, environments: [system, gnu]}}
  debug: {{description: All, role: compute, scheduler: slurm, measures: [], environments: [system]}}
environments:
  system: {{description: Installed}}
  gnu: {{description: GNU}}
"""
LINKS = """\
links:
  {link}: {{description: Ethernet, partition: compute, servers: '{server}', clients: compute}}
"""
FAILURES = ("invalid", "checksum", "timeout", "parse", "killed", "generic", "node_lost", "login")


class Chance:
    """A source of a history's choices. metrics: of each check, that which has its values."""

    def __init__(self, source: random.Random, features: frozenset[str]) -> None:
        self.features = features
        self.metrics = {check: metric for check, (metric, _) in METRICS.items()}
        self.choice, self.randint, self.sample = source.choice, source.randint, source.sample
        self.randrange, self.uniform = source.randrange, source.uniform

    def one_in(self, count: int, feature: str) -> bool:
        """Whether something happens that is rare, if it may happen at all."""
        return self.randrange(count) == 0 and feature in self.features


def made(source: random.Random, features: frozenset[str] = FEATURES) -> History:
    """A history without what is not among the features."""
    chance = Chance(source, features)
    while True:
        history = _drawn(chance)
        if allowed(history):
            return history


def _drawn(chance: Chance) -> History:
    nodes = tuple(f"n{number:03}" for number in range(1, chance.randint(2, 5) + 1))
    criteria = [_criterion(chance, "C-ONE", "Stream")]
    if chance.one_in(2, "two_criteria"):
        criteria.append(_criterion(chance, "C-TWO", chance.choice(["Stream", "Hpl"])))
    chance.metrics = {check: metric for check, (metric, _) in METRICS.items()}
    if all(one.metric != METRICS["Hpl"][0] for one in criteria) and chance.randrange(8):
        chance.metrics["Hpl"] = UNPROMISED
    pairs = _pairs(nodes) if chance.one_in(6, "pairs") else ()
    if pairs:
        one = _criterion(chance, "C-LAN", "Stream")
        criteria.append(replace(one, metric=TCP, link=LINK, conditions=()))
    whole = bool(pairs) and chance.one_in(2, "whole")
    if whole:
        of_link = replace(criteria[-1], name="C-WHOLE", metric=AGGREGATE, whole=True)
        criteria.append(replace(of_link, modes=chance.choice([STRICTER[1:], STRICTER])))
    services = tuple(SERVICES[: chance.randint(1, 2)]) if chance.one_in(6, "services") else ()
    if services:
        one = _criterion(chance, "C-SERVICE", "Stream")
        criteria.append(replace(one, metric=RATE, services=services, conditions=()))
    jobs = []
    day = chance.randint(1, 29) / 10 + 0.05  # never near an oldest age
    is_described = chance.one_in(3, "boards")
    new_boards = {node: chance.randint(2, 6) for node in nodes if chance.one_in(2, "boards")}
    for place in range(chance.randint(1, 6), 0, -1):  # the newest first
        jobs += _session(chance, place, day, nodes, pairs)
        if is_described and chance.randrange(3):
            jobs.append(_description(place, day, nodes, new_boards))
        if whole and chance.randrange(2):
            jobs.append(_of_whole(chance, place, day))
        used = [name for name in SERVICES if services and chance.randrange(3)]
        jobs += [_of_service(chance, place, day, name) for name in used]
        day += chance.choice([0.3, 1, 4]) if "ages" in chance.features else 0.1
    waivers = [_waiver(chance, nodes, criteria)] if chance.one_in(3, "waivers") else []
    return History(
        {"compute": nodes, "debug": nodes},
        ("system", "gnu"),
        ("Stream", "Hpl", "TcpBandwidth", "Service", DESCRIPTION),
        tuple(criteria),
        tuple(waivers),
        tuple(sorted(jobs, key=lambda job: job.order)),
        {LINK: pairs} if pairs else {},
        limits=(("Stream", BANDWIDTH),),
    )


def _pairs(nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Each node but the first with the first, in both directions."""
    first, *others = nodes
    return tuple(pair for one in others for pair in (f"{one}>{first}", f"{first}>{one}"))


def allowed(history: History) -> bool:
    """Whether each headline value, and each interruption, is of a check that a criterion names."""
    history = without_wrong_values(history)
    promised = {one.metric for one in history.criteria}
    checks = {name.partition(".")[0] for name in promised}
    headlines = {metric for metric, _ in METRICS.values()} - promised
    return not any(
        line.metric in headlines or line.status == "interrupted" and job.check not in checks
        for job in history.jobs
        for line in job.lines
    )


def _criterion(chance: Chance, name: str, check: str) -> Criterion:
    modes = chance.choice([STRICTER, STRICTER[1:], STRICTER[2:]])
    if "modes" not in chance.features:
        modes = STRICTER[1:]
    age = chance.choice([None, 3, 7]) if "ages" in chance.features else None
    conditions = ((CONDITIONS[check], "4"),) if chance.one_in(5, "conditions") else ()
    return Criterion(name, METRICS[check][0], BOUND, modes, age, conditions)


def _waiver(chance: Chance, nodes: tuple[str, ...], criteria: list[Criterion]) -> Waiver:
    names = ["all", *(one.name for one in criteria), *(one.metric for one in criteria), OTHER]
    some = tuple(sorted(chance.sample(nodes, chance.randint(1, len(nodes)))))
    wrong = tuple(chance.sample(["invalid", "checksum"], chance.randint(0, 2)))
    return Waiver(some, chance.choice(names), wrong, chance.choice([-1, 5, 30]))


def _session(
    chance: Chance, place: int, day: float, nodes: tuple[str, ...], pairs: tuple[str, ...]
) -> list[Job]:
    mode = chance.choice(STRICTER) if chance.one_in(3, "modes") else "maintenance"
    count = chance.randint(2, 3) if chance.one_in(3, "jobs") else 1
    jobs = [_job(chance, place, number, day, mode, nodes) for number in range(1, count + 1)]
    if pairs and chance.randrange(3):
        lines, readable = _of_pairs(chance, pairs), not chance.one_in(12, "damage")
        rest = "system", "compute", nodes, lines, (), readable
        jobs.append(Job(place, count + 1, "TcpBandwidth", day, mode, *rest))
    return jobs


def _description(place: int, day: float, nodes: tuple[str, ...], new_boards: dict[str, int]) -> Job:
    """What nodes report of themselves. new_boards: since which session a node has another one."""
    boards = tuple((node, f"B{place >= new_boards.get(node, place + 1):d}") for node in nodes)
    lines = tuple(Line(node, FIELDS, "ok", 1) for node in nodes)
    rest = "maintenance", "system", "compute", nodes, lines
    return Job(place, 9, DESCRIPTION, day, *rest, boards=boards)


def _of_whole(chance: Chance, place: int, day: float) -> Job:
    job = _of_service(chance, place, day, LINK)
    points = ("1", "4") if chance.one_in(3, "points") else ("1",)
    lines = [
        replace(
            line, metric=line.metric.replace(RATE, AGGREGATE).replace("Service", "TcpBandwidth")
        )
        for line in job.lines
    ]
    if lines[0].status == "ok":
        lines = [
            replace(lines[0], point=point, value=chance.choice([BAD, GOOD])) for point in points
        ]
    return replace(job, number=7, check="TcpBandwidth", lines=tuple(lines))


def _of_service(chance: Chance, place: int, day: float, name: str) -> Job:
    mode = chance.choice(STRICTER) if chance.one_in(3, "modes") else "maintenance"
    status = "ok"
    for other, count, feature in (
        (chance.choice(FAILURES), 4, "broken"),
        ("interrupted", 8, "interrupted"),
        ("tool_missing", 8, "absent"),
    ):
        status = other if chance.one_in(count, feature) else status
    metric = RATE if status == "ok" else "Service.*"
    lines = (Line("", metric, status, BAD if chance.randrange(6) == 0 else GOOD),)
    readable = not chance.one_in(12, "damage")
    rest = mode, "system", "compute", (), lines, (), readable, name
    return Job(place, 4 + (*SERVICES, LINK).index(name), "Service", day, *rest)


def _of_pairs(chance: Chance, pairs: tuple[str, ...]) -> tuple[Line, ...]:
    """What a job has of them; a failure is that of both directions."""
    found: list[Line] = []
    absent = chance.one_in(12, "absent")
    for forth, back in zip(pairs[::2], pairs[1::2], strict=True):
        node, _, peer = forth.partition(">")
        status = "ok"
        if chance.one_in(5, "broken"):
            status = chance.choice(FAILURES)
        elif chance.one_in(12, "interrupted"):
            status = "interrupted"
        if absent or status != "ok":
            status = "tool_missing" if absent else status
            found.append(Line(node, "TcpBandwidth.*", status, peer=peer))
        elif not chance.one_in(8, "small"):
            trials = chance.choice([0, 3]) if chance.one_in(3, "trials") else 0
            points = ("1", "4") if chance.one_in(3, "points") else ("1",)
            for trial, point in product(range(min(1, trials), trials + 1), points):
                for sender, receiver in (forth.split(">"), back.split(">")):
                    value = BAD if chance.randrange(6) == 0 else GOOD
                    found.append(Line(sender, TCP, "ok", value, trial, receiver, point))
    return tuple(found)


def _job(
    chance: Chance, place: int, number: int, day: float, mode: str, nodes: tuple[str, ...]
) -> Job:
    check = chance.choice(["Stream", "Stream", "Hpl"])
    own = nodes
    if chance.one_in(3, "small"):
        own = tuple(sorted(chance.sample(nodes, chance.randint(1, len(nodes)))))
    partition = "debug" if chance.one_in(5, "partitions") else "compute"
    environment = "gnu" if partition == "compute" and chance.one_in(5, "environments") else "system"
    if chance.one_in(30, "gone"):
        environment = "gone"
    conditions = (
        ((CONDITIONS[check], chance.choice("448")),) if "conditions" in chance.features else ()
    )
    lines = _lines(chance, check, own)
    readable = not chance.one_in(12, "damage")
    rest = environment, partition, own, lines, conditions, readable
    return Job(place, number, check, day, mode, *rest)


def _lines(chance: Chance, check: str, nodes: tuple[str, ...]) -> tuple[Line, ...]:
    whole = f"{check}.*"
    if chance.one_in(12, "absent"):
        return tuple(Line(node, whole, "tool_missing") for node in nodes)
    if chance.one_in(12, "broken"):
        status = chance.choice(FAILURES)
        return tuple(Line(node, whole, status) for node in nodes)
    found: list[Line] = []
    for node in nodes:
        if chance.one_in(5, "broken"):
            found.append(Line(node, whole, chance.choice(FAILURES)))
        elif chance.one_in(40, "partly_absent"):
            found.append(Line(node, whole, "tool_missing"))
        elif chance.one_in(12, "interrupted"):
            found.append(Line(node, whole, "interrupted"))
        elif not chance.one_in(15, "lost_lines"):
            found += _values(chance, check, node)
    return tuple(found)


def _values(chance: Chance, check: str, node: str) -> list[Line]:
    metric = chance.metrics[check]
    trials = chance.choice([1, 3]) if chance.one_in(3, "trials") else 1
    found, status = [], chance.choice(FAILURES)
    for trial in range(1, trials + 1):
        value = BAD if chance.randrange(6) == 0 else GOOD
        if check == "Stream" and chance.one_in(25, "implausible"):
            value = TOO_MUCH
        found.append(Line(node, metric, "ok", value, trial if trials > 1 else 0))
        if chance.one_in(10, "trials") and trials > 1:
            found[-1] = Line(node, metric, status, 0, trial)
    if check == "Stream" and chance.one_in(6, "other_metric"):
        found.append(Line(node, OTHER, chance.choice(["ok", *FAILURES[:3]]), GOOD))
    return found


# ---- on the disk


def write(history: History, folder: Path) -> None:
    """The history as a site and as perflogs, in place of all that was there."""
    site, perflogs = folder / "sites/here", folder / "perflogs"
    shutil.rmtree(perflogs, ignore_errors=True)
    site.mkdir(parents=True, exist_ok=True)
    nodes = history.nodes
    system = SITE.format(nodes=",".join(nodes), bandwidth=BANDWIDTH)
    if history.pairs:
        system += LINKS.format(link=LINK, server=nodes[0])
    (site / "system.yaml").write_text(system)
    (site / "baselines.yaml").write_text("{}\n")
    (site / "criteria.yaml").write_text("".join(map(_criterion_text, history.criteria)))
    waivers = [_waiver_text(number, one) for number, one in enumerate(history.waivers)]
    (site / "waivers.yaml").write_text("".join(waivers) or "{}\n")
    now = datetime.now(UTC)
    for name in (*history.partitions, ".sessions"):
        (perflogs / "here" / name).mkdir(parents=True)
    for job in history.jobs:
        (perflogs / "here/.sessions" / locks.name_of(job.place)).write_text(f"s{job.place:04}\n")
        _write_job(perflogs, job, now)


def _criterion_text(one: Criterion) -> str:
    unit = UNITS[one.metric]
    units = f"subject: pair, links: [{one.link}]" if one.link else "scope: every node"
    units = f"subject: system, links: [{one.link}]" if one.whole else units
    units = "subject: service, scope: system" if one.services else units
    age = "none" if one.max_age is None else f"{one.max_age:g}d"
    conditions = {"mode": list(one.modes), **dict(one.conditions)}
    conditions |= {"service": list(one.services)} if one.services else {}
    rest = f"source: s, max_age: {age}, conditions: {conditions}"
    return (
        f"{one.name}: {{description: d, metric: {one.metric}, {units}, "
        f"at_least: {one.bound:g} {unit}, {rest}}}\n"
    )


def _waiver_text(number: int, one: Waiver) -> str:
    expires = datetime.now(UTC).date() + timedelta(days=one.day)
    return (
        f"W{number}: {{nodes: '{','.join(one.nodes)}', waives: {one.waives}, problem: p, owner: o,"
        f" wrong_answers: {list(one.wrong_answers)}, expires: {expires}}}\n"
    )


def _write_job(perflogs: Path, job: Job, now: datetime) -> None:
    header = Header(
        f"s{job.place:04}",
        "here",
        job.partition,
        job.environment,
        job.check,
        str(job.number),
        (now - timedelta(days=job.day, minutes=-job.number)).isoformat(timespec="seconds"),
        job.mode,
        "",
        ",".join(job.expected),
        {"program": PROGRAMS[job.check], **_conditions(job), **dict(job.conditions)},
        {},
        job.place,
    )
    if job.boards:
        fields = {node: {"system.board.serial": serial} for node, serial in job.boards}
        descriptions.write(perflogs, header, fields)
    data = samples.dump(header, [_sample(header, line) for line in job.lines])
    if not job.readable:
        data = data[:20] + b"\xff" + data[21:]
    samples.path_of(perflogs, header).write_bytes(data)


def _conditions(job: Job) -> dict[str, str]:
    if job.service in SERVICES:
        return {"service": job.service}
    of_link = {"link": LINK, "pattern": "star", "at_once": "1"}
    return of_link if job.check == "TcpBandwidth" else {}


def _sample(header: Header, line: Line) -> Sample:
    dims = {"peer": line.peer} if line.peer else {}
    if header.check == "TcpBandwidth" and not line.node:
        dims = {"link": LINK}
    if line.status != "ok":
        rest = {"status": line.status, "why": "because", "trial": line.trial, "dims": dims}
        return Sample(header, line.node, line.metric, **rest)
    if line.peer or "link" in dims:
        dims["streams"] = line.point or "1"
    unit = UNITS.get(line.metric) or METRICS[header.check][1]
    value = Decimal(str(line.value))
    return Sample(header, line.node, line.metric, value, unit, trial=line.trial, dims=dims)
