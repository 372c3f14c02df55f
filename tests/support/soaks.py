"""Made-up soaks: rounds of two checks on eight nodes, with failures that are planted.

What is planted is known, so that a test can say what must be found. Round r begins BEGIN + r *
EVERY, and its jobs end 10 and 20 minutes later. The system is that of fleets, with Slurm.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import fleets

from siteproof import locks, nodesets
from siteproof.record import availability_log, clocks, samples
from siteproof.record.availability_log import EventRecord
from siteproof.record.samples import Header, Sample

BEGIN = int(datetime(2026, 11, 7, 18, tzinfo=UTC).timestamp())
EVERY, LASTS = 1800, {"Stream": 600, "Hpl": 1200}  # seconds
METRICS = {"Stream": ("Stream.triad", "MB/s", 100_000), "Hpl": ("Hpl.gflops", "GFLOPS", 2000)}
NODES = fleets.names(8)
CRITERIA = """\
C-TRIAD:
  {description: d, metric: Stream.triad, at_least: 80000 MB/s, source: s, scope: every node,
   max_age: none}
"""

Failures = Mapping[tuple[int, str, str], str]  # by round, node and check: a status


def write_site(folder: Path, criteria: str = CRITERIA) -> None:
    """The site `here`, whose nodes are Slurm's."""
    path = fleets.write_site(folder, criteria=criteria) / "here/system.yaml"
    path.write_text(path.read_text().replace("scheduler: local", "scheduler: slurm"))


def begin(number: int) -> int:
    """When a round began."""
    return BEGIN + number * EVERY


def session(number: int) -> str:
    """The name of a round's session."""
    return f"{datetime.fromtimestamp(begin(number), UTC):%Y%m%dT%H%M%SZ}-{number:07x}"


def write(
    perflogs: Path,
    rounds: int = 40,
    *,
    failures: Failures | None = None,
    slow: Mapping[tuple[int, str, str], float] | None = None,
    without: Collection[tuple[int, str]] = (),
    lost: Collection[int] = (),
    fade: float = 0.0,
    campaign: str = "soak",
) -> None:
    """slow: the share of the level that is left. without: rounds that have no job of a check.

    lost: rounds with a number and nothing else. fade: the share of speed that all lose in the end.
    """
    folder = perflogs / "here" / clocks.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(rounds):
        (folder / locks.name_of(number + 1)).write_text(f"{session(number)}\n")
        for check in METRICS if number not in lost else ():
            if (number, check) not in without:
                left = 1 - fade * number / rounds
                head = _header(number, check, campaign)
                found = _job(head, number, check, failures or {}, slow or {}, left)
                samples.write(perflogs, head, found)


def _header(number: int, check: str, campaign: str) -> Header:
    ended = datetime.fromtimestamp(begin(number) + LASTS[check], UTC)
    return Header(
        *(session(number), "here", "compute", "system", check, str(100 + number)),
        time=ended.isoformat(timespec="seconds"),
        mode="maintenance",
        campaign=campaign,
        expected=fleets.node_set(len(NODES)),
        conditions={"program": check.lower()},
        place=number + 1,
    )


def _job(
    head: Header,
    number: int,
    check: str,
    failures: Failures,
    slow: Mapping[tuple[int, str, str], float],
    left: float,
) -> list[Sample]:
    """A value a node, a failure in its place, or no line at all (`lost`)."""
    metric, unit, level = METRICS[check]
    found = []
    for place, node in enumerate(NODES):
        key = number, node, check
        status = failures.get(key, "ok")
        if status == "ok":
            value = level * left * slow.get(key, 1) * (1 + place / 1000 + number % 3 / 1000)
            found.append(Sample(head, node, metric, Decimal(f"{value:.2f}"), unit))
        elif status != "lost":
            found.append(Sample(head, node, f"{check}.*", status=status, why=f"was {status}"))
    return found


def write_events(
    perflogs: Path,
    outages: Collection[tuple[str, int, int]] = (),
    disconnected: Collection[tuple[int, int]] = (),
    rounds: int = 40,
) -> None:
    """Slurm's record of all rounds. Outages: node, first and last second; disconnected: as well."""
    rows = [f"c||{BEGIN - 86_400}|Unknown||0|Cluster Registered TRES"]
    rows += [f"c||{first}|{last}||1|slurmctld disconnect" for first, last in disconnected]
    rows += [f"c|{node}|{first}|{last}|DOWN|1|crashed" for node, first, last in outages]
    text = "\n".join(rows) + "\n"
    record = EventRecord(BEGIN - 3600, begin(rounds), nodesets.of(NODES), text)
    availability_log.write_events(perflogs, "here", record)
