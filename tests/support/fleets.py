"""Made-up fleets: a site of any size, samples of it, and the judgement on them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from siteproof import sites
from siteproof.answers import attempts, expected
from siteproof.answers.criterion import judge
from siteproof.record import samples, series, value_table
from siteproof.record.samples import Header, Sample
from siteproof.record.value_table import ValueTable
from siteproof.verdict.judgement import Judgement
from siteproof.verdict.others import Missed

START = datetime(2026, 11, 1, tzinfo=UTC)
SYSTEM = """\
system: here
description: A fleet for tests
recognise: {{fallback: true}}
nodes:
  compute: {{set: '{nodes}'}}
partitions:
  compute: {{description: All, role: compute, scheduler: local, environments: [system]}}
environments:
  system: {{description: Installed}}
{more}
"""


def write_site(folder: Path, count: int = 8, more: str = "", criteria: str = "{}\n") -> Path:
    """A site named `here` in a folder of sites."""
    where = folder / "here"
    where.mkdir(parents=True, exist_ok=True)
    (where / "system.yaml").write_text(SYSTEM.format(nodes=node_set(count), more=more))
    (where / "criteria.yaml").write_text(criteria)
    (where / "baselines.yaml").write_text("{}\n")
    return folder


def load(folder: Path, monkeypatch, **keys) -> sites.Site:
    monkeypatch.setenv("SITEPROOF_SITES", str(write_site(folder, **keys)))
    return sites.load("here")


def names(count: int) -> list[str]:
    """The nodes, each name with as many digits as the last."""
    width = max(3, len(str(count)))
    return [f"n{number:0{width}}" for number in range(1, count + 1)]


def node_set(count: int) -> str:
    """The same as a set."""
    every = names(count)
    return f"n[{every[0][1:]}-{every[-1][1:]}]"


def header(run: int, check: str = "Stream", **keys) -> Header:
    """A session a number, a day after the other."""
    moment = (START + timedelta(days=run)).isoformat(timespec="seconds")
    return Header(
        **{
            "session": f"s{run:04}",
            "system": "here",
            "partition": "compute",
            "environment": "system",
            "check": check,
            "job": "1",
            "time": moment,
            "mode": "maintenance",
            "conditions": {"program": "stream"},
            **keys,
        }
    )


def run_of(
    values: Mapping[str, float],
    run: int = 1,
    metric: str = "Stream.triad",
    unit: str = "MB/s",
    **keys,
) -> list[Sample]:
    """One session: a value a node."""
    head = header(run, metric.partition(".")[0], **keys)
    return [
        Sample(head, node, metric, Decimal(f"{value:.2f}"), unit) for node, value in values.items()
    ]


def broken(
    node: str, status: str, run: int = 1, why: str = "because", check: str = "Stream", **keys
) -> Sample:
    return Sample(header(run, check, **keys), node, f"{check}.*", status=status, why=why)


def judged(site: sites.Site, found: Iterable[Sample]) -> Judgement:
    """The judgement on samples, whichever session they are of."""
    found = list(found)
    missed = Missed(site, found)
    verdicts = [
        judge(name, criterion, found, expected.nodes(site, criterion), explain=missed.why)
        for name, criterion in site.criteria.items()
    ]
    failed = attempts.of_samples(site, found)
    tried = [sample.header for sample in found]
    return Judgement(site, "all of it", verdicts, found, [], [], failed=failed, tried=tried)


def past_of(site: sites.Site, found: Iterable[Sample]) -> ValueTable:
    """The values among samples, as states.report takes them."""
    return value_table.of_samples(found, series.speeds(site))


def good(run: int = 1, **keys) -> list[Sample]:
    """Eight nodes that are alike."""
    return run_of(dict.fromkeys(names(8), 100), run, **keys)


CRITERIA = """\
C-TRIAD:
  {description: d, metric: Stream.triad, at_least: 60 MB/s, source: s, scope: every node,
   max_age: none}
"""


def furnish(world):
    """A world with a site of eight nodes and one criterion; `keep` writes samples."""
    write_site(world.sites, criteria=CRITERIA)
    world.data.mkdir()

    def keep(found):
        for head in {s.header.session + s.header.check: s.header for s in found}.values():
            samples.write(world.data / "perflogs", head, [s for s in found if s.header == head])

    world.keep = keep
    world.ask = lambda *words, **v: world.inside(*words, "--system", "here", **v)
    world.records = lambda: sorted((world.data / "perflogs/here/accepted").glob("*"))
    return world


class Fleet:
    """Nodes that differ from each other for good, and from run to run: half of the variance each.

    cv: the coefficient of variation of one run over all nodes. bad: the share of nodes that lack
    `deficit` in the runs from `since` on.
    """

    def __init__(
        self,
        count: int,
        cv: float,
        seed: int,
        bad: float = 0.0,
        deficit: float = 0.0,
        since: int = 0,
    ) -> None:
        self.chance = random.Random(f"{count} {cv} {seed} {bad} {deficit}")
        self.names, self.part, self.since = names(count), cv / 2**0.5, since
        self.level = {n: 10_000 * self.chance.gauss(1, self.part) for n in self.names}
        self.bad = set(self.chance.sample(self.names, round(bad * count)))
        self.deficit = deficit

    def runs(self, first: int, last: int) -> list[Sample]:
        """The sessions from first to last."""
        return [
            s
            for run in range(first, last + 1)
            for s in run_of({n: self._value(n, run) for n in self.names}, run)
        ]

    def _value(self, node: str, run: int) -> float:
        lost = self.deficit if node in self.bad and run >= self.since else 0.0
        return self.level[node] * self.chance.gauss(1, self.part) * (1 - lost)
