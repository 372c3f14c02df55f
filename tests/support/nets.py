"""Made-up networks: a site with links, and samples of its pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from fleets import header

from siteproof import sites
from siteproof.record.samples import Sample

METRIC = "TcpBandwidth.throughput"
SYSTEM = """\
system: here
description: A network for tests
recognise: {{fallback: true}}
nodes:
  compute: {{set: 'n[1-{count}]'}}
  service: {{set: 's[1-3]'}}
  everything: {{set: 'n[1-{count}],s[1-3]', overlaps: [compute, service]}}
partitions:
  compute: {{description: All, role: everything, scheduler: slurm, environments: [system]}}
environments:
  system: {{description: Installed}}
links:
  lan: {{description: Ethernet, partition: compute, servers: '{servers}', clients: compute,
         pattern: '{pattern}', speed: 10 Gb/s{more}}}
  wan: {{description: Far away, partition: compute, servers: 's3', clients: 'n[1-2]'}}
"""
TCP = """\
C-TCP: {description: TCP, metric: TcpBandwidth.throughput, subject: pair, links: [lan],
        at_least: 9 Gb/s, source: contract}
"""


def write_site(
    folder: Path,
    count: int = 6,
    pattern: str = "star",
    servers: str = "s1",
    criteria: str = TCP,
    waivers: str = "",
    baselines: str = "{}\n",
    more: str = "",
) -> Path:
    """A site named `here` with links lan and wan in a folder of sites. more: keys of lan."""
    where = folder / "here"
    where.mkdir(parents=True, exist_ok=True)
    text = SYSTEM.format(count=count, pattern=pattern, servers=servers, more=more)
    (where / "system.yaml").write_text(text)
    (where / "criteria.yaml").write_text(criteria)
    (where / "baselines.yaml").write_text(baselines)
    if waivers:
        (where / "waivers.yaml").write_text(waivers)
    return folder


def load(folder: Path, monkeypatch, **keys) -> sites.Site:
    """The site, with a catalogue in which every metric has its check."""
    monkeypatch.setenv("SITEPROOF_SITES", str(write_site(folder, **keys)))
    site = sites.load("here")
    checked = {
        name: entry.model_copy(update={"check": name.partition(".")[0]})
        for name, entry in site.catalogue.items()
    }
    return replace(site, catalogue=checked)


def head(run: int = 1, link: str = "lan", check: str = "TcpBandwidth", **keys):
    """A job that measured a link. An empty link is left out."""
    told = {"link": link} if link else {}
    conditions = {"program": "iperf3", "pattern": "star", "at_once": "1", **told}
    return header(run, check, **{"conditions": conditions, **keys})


def ok(
    pair: str,
    value: object,
    run: int = 1,
    trial: int = 0,
    metric: str = METRIC,
    unit: str = "Gb/s",
    dims: Mapping[str, str] | None = None,
    **keys,
) -> Sample:
    """One figure of a pair written as `sender>receiver`."""
    sender, receiver = pair.split(">")
    return Sample(
        head(run, check=metric.partition(".")[0], **keys),
        sender,
        metric,
        Decimal(str(value)),
        unit,
        trial=trial,
        dims={"peer": receiver, **(dims or {})},
    )


def failed(
    pair: str,
    status: str = "timeout",
    run: int = 1,
    why: str = "because",
    check: str = "TcpBandwidth",
    **keys,
) -> Sample:
    """A pair `client>server` that gave no figure."""
    client, server = pair.split(">")
    return Sample(
        head(run, check=check, **keys),
        client,
        f"{check}.*",
        status=status,
        why=why,
        dims={"peer": server},
    )


def star(
    value: object = 9.4,
    count: int = 6,
    server: str = "s1",
    run: int = 1,
    slow: Mapping[str, float] | None = None,
    **keys,
) -> list[Sample]:
    """Every client with the server in both directions; slow: the value of a pair, or of a node."""
    found = []
    for client in (f"n{number}" for number in range(1, count + 1)):
        for pair in (f"{client}>{server}", f"{server}>{client}"):
            told = (slow or {}).get(pair, (slow or {}).get(client, value))
            found.append(ok(pair, told, run, **keys))
    return found
