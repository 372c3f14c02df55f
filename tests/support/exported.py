"""A made-up judgement with every verdict, for what is exported to other tools."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from fleets import broken, header, load, names, run_of

from siteproof.nodes import states
from siteproof.record.samples import Sample
from siteproof.verdict import judgement

NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)
NASTY = 'a"b\\c\x1b[31m\x00<&>]]>\n\ud800\ufffe é→'
LINE = "  {{description: {0}, metric: {1}, source: contract 1, {2}}}\n"
EVERY = {  # a criterion of each verdict
    "C-PASS": ("Memory is fast", "Stream.triad", "at_least: 60 MB/s, scope: every node"),
    "C-FAIL": ("Memory is very fast", "Stream.triad", "at_least: 100 MB/s, scope: every node"),
    "C-ERROR": ("Small reads", "RandomIo.read", "at_least: 1 MB/s, scope: every node"),
    "C-SKIP": ("Flops are told", "Hpl.gflops", "report_only: for the record"),
    "C-INCOMPLETE": ("Disks read", "BlockStorage.read", "at_least: 1 MB/s, scope: every node"),
    "C-PENDING": (
        "Days without a stop",
        "BlockStorage.undirected",
        "at_least: 1 MB/s, subject: system",
    ),
    "C-REGRESSED": ("Disks write", "BlockStorage.write", "at_least: 1 MB/s, scope: every node"),
}
USUAL = """\
system: here
U-WRITE: {metric: BlockStorage.write, at_least: 100 MB/s, source: us, taken: 2026-01-01}
"""


def criteria(*chosen: str) -> str:
    told = "".join(f"{key}:\n{LINE.format(*EVERY[key])}" for key in chosen or EVERY)
    return told or "{}\n"


def site(folder, monkeypatch, *chosen, text=None, **keys):
    load(folder, monkeypatch, criteria=text or criteria(*chosen), **keys)
    (folder / "here/baselines.yaml").write_text(USUAL)
    return judgement.sites.load("here")


def measured(count=8, why="because"):
    """One run: node 2 has slow memory, and node 3 no small reads."""
    nodes = names(count)
    small = {node: 3 for node in nodes if node != "n003"}
    return [
        *run_of({**dict.fromkeys(nodes, 110.5), "n002": 70}),
        *run_of(small, metric="RandomIo.read"),
        broken("n003", "generic", why=why, check="RandomIo"),
        *run_of(dict.fromkeys(nodes, 50), metric="BlockStorage.write"),
    ]


def judged(where, found=None):
    return judgement.judge_samples(where, measured() if found is None else found, "all of it")


def report(one):
    return states.report(one)


def sample(metric, value, unit, node="n001", **keys):
    return Sample(header(1, metric.partition(".")[0], **keys), node, metric, Decimal(value), unit)
