"""What `siteproof matrix` says of made networks of which the truth is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
from made_noise import Random
from made_sites import PROVENANCE, Floats, MadeSite, times
from scoring import Cells, Page, Told, percent

from siteproof.record import samples
from siteproof.record.samples import Header, Sample

METRIC = "TcpBandwidth.throughput"
USUAL = 9.4  # Gb/s
ONE_SIDED_SD, LOGNORMAL_SD, T3_SD = 0.7135, 0.484, 1.134  # robust sd of the kinds of noise
REMAINS = (0.98, 0.9, 0.7, 0.5, 0.2, 0.02)  # of the typical rate: losses of a part of it
SIZES = (3, 4, 6, 8, 16)
FEW = (4, 6, 8, 16, 24)
TAILS = (4, 6, 8, 16, 24, 48)
LINK = (
    "  {role}: {{description: d, partition: all, servers: {role}, clients: {role}, pattern: all}}\n"
)


@dataclass
class Net:
    """A link of its own. planted: pairs and nodes that are slow; kind and loss name the row."""

    role: str
    nodes: list[str]
    values: dict[tuple[str, str], float]
    bad_pairs: set[tuple[str, str]] = field(default_factory=set)
    bad_nodes: set[str] = field(default_factory=set)
    row: str = ""
    loss: float = 0.0
    block: bool = False  # a trunk or leaf: no node is at fault
    exact: bool = False  # the bad nodes and no others must be named
    by_pair: bool = False  # of a clean link each pair counts, not the link as a whole


@dataclass
class Network:
    """A site of many links."""

    site: MadeSite
    nets: list[Net] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """The site and one session."""
        links = "".join(LINK.format(role=net.role) for net in self.nets)
        groups = "".join(f"  {name}: '{nodes}'\n" for name, nodes in self.groups.items())
        self.site.more = "links:\n" + links + (f"groups:\n{groups}" if groups else "")
        self.site.write(folder)
        for number, net in enumerate(self.nets):
            head = self._header(net, number)
            found = [
                Sample(head, a, METRIC, Decimal(f"{value:.4g}"), "Gb/s", dims={"peer": b})
                for (a, b), value in net.values.items()
            ]
            path = samples.path_of(folder / "perflogs", head)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(samples.dump(head, found))

    def _header(self, net: Net, number: int) -> Header:
        moment = self.site.times[-1]
        return Header(
            session=f"{moment:%Y%m%dT%H%M%SZ}-0000001",
            system=self.site.system,
            partition="all",
            environment="system",
            check="TcpBandwidth",
            job=str(number + 1),
            time=moment.isoformat(timespec="seconds"),
            mode="maintenance",
            conditions={"program": "iperf3", "pattern": "all", "at_once": "1", "link": net.role},
            provenance=PROVENANCE,
            place=1,
        )


def new(chance: Random, name: str) -> Network:
    """An empty site."""
    return Network(MadeSite(name, times("1", 1, chance), links=True))


def one_sided(chance: Random, size: int) -> Floats:
    """An exponential loss."""
    return -chance.exponential(1 / ONE_SIDED_SD, size)


def lognormal(chance: Random, size: int) -> Floats:
    """A lognormal loss with a sigma of .5."""
    return (1 - chance.lognormal(0, 0.5, size)) / LOGNORMAL_SD


def heavy_tails(chance: Random, size: int) -> Floats:
    """Student's t with three degrees of freedom."""
    return chance.standard_t(3, size) / T3_SD


# Each gives losses (below 0) whose robust sd is 1.
NOISES: dict[str, Callable[[Random, int], Floats]] = {
    "normal": lambda chance, size: chance.standard_normal(size),
    "one-sided": one_sided,
    "lognormal": lognormal,
    "t(3)": heavy_tails,
}


def net(
    made: Network, chance: Random, size: int, cv: float, alike: float = 0.0, noise: str = "normal"
) -> Net:
    """One more link of so many nodes. alike: the share of the variance that is of the nodes."""
    role = f"net{len(made.nets)}"
    part = made.site.add_role(role, size)
    nodes = made.site.nodes[part]
    ends = {node: chance.standard_normal(2) * np.sqrt(alike / 2) for node in nodes}
    own = NOISES[noise](chance, size * (size - 1)) * np.sqrt(1 - alike)
    values = {
        (a, b): USUAL * max(0.01, 1 + cv * (ends[a][0] + ends[b][1] + own[number]))
        for number, (a, b) in enumerate(permutations(nodes, 2))
    }
    made.nets.append(Net(role, nodes, values))
    return made.nets[-1]


def lose(one: Net, pairs: set[tuple[str, str]], loss: float) -> None:
    """These pairs are slower."""
    for pair in pairs:
        one.values[pair] *= 1 - loss
    one.bad_pairs |= pairs
    one.loss = loss


Plane = Callable[[Random, int], Iterator[Network]]


def one_pair(chance: Random, rounds: int) -> Iterator[Network]:
    """One direction of one pair, by nodes and CV."""
    made = new(chance, "pair")
    for cv in (0.01, 0.05, 0.1):
        for size in SIZES:
            for number in range(rounds * len(REMAINS)):
                one = net(made, chance, size, cv)
                one.row = f"{size} nodes, CV {percent(cv)}"
                lose(one, {(one.nodes[0], one.nodes[1])}, 1 - REMAINS[number % len(REMAINS)])
    yield made


def one_node(chance: Random, rounds: int) -> Iterator[Network]:
    """All pairs of one node, by nodes and CV."""
    made = new(chance, "node")
    for cv in (0.01, 0.05, 0.1):
        for size in SIZES[1:]:
            for number in range(rounds * len(REMAINS)):
                one = net(made, chance, size, cv)
                one.row = f"{size} nodes, CV {percent(cv)}"
                slow = one.nodes[0]
                lose(one, {p for p in one.values if slow in p}, 1 - REMAINS[number % len(REMAINS)])
                one.bad_nodes = {slow}
    yield made


def trunk(chance: Random, rounds: int) -> Iterator[Network]:
    """The pairs between two parts of a network, with and without groups in system.yaml."""
    for grouped in (True, False):
        made = new(chance, "trunk-groups" if grouped else "trunk")
        for small, large in ((2, 6), (4, 4), (4, 12), (8, 8)):
            for number in range(rounds * len(REMAINS)):
                one = net(made, chance, small + large, 0.05)
                leaf = set(one.nodes[:small])
                lose(
                    one,
                    {p for p in one.values if len(leaf & set(p)) == 1},
                    1 - REMAINS[number % len(REMAINS)],
                )
                one.block, one.row = True, f"{small} + {large} nodes"
                one.row += ", groups" if grouped else ""
                if grouped:
                    for name, nodes in (("a", one.nodes[:small]), ("b", one.nodes[small:])):
                        made.groups[f"{one.role}{name}"] = f"n[{nodes[0][1:]}-{nodes[-1][1:]}]"
        yield made


def clean(chance: Random, rounds: int) -> Iterator[Network]:
    """Nothing is slow: by nodes, CV, and the share of variance that is of the nodes."""
    made = new(chance, "clean")
    for size in SIZES:
        for cv in (0.02, 0.1):
            for alike in (0.0, 0.5, 0.9):
                for _ in range(8 * rounds):
                    one = net(made, chance, size, cv, alike)
                    one.row = f"{size} nodes, CV {percent(cv)}, alike {alike:g}"
    yield made


def few_nodes(chance: Random, rounds: int) -> Iterator[Network]:
    """One or two bad nodes, which must be named and no others: by nodes, CV and kind of noise."""
    made = new(chance, "few")
    for size, bad, cv in product(FEW, (1, 2), (0.02, 0.05)):
        if 2 * bad >= size:
            continue
        for noise, left, _ in product(NOISES, (0.7, 0.5), range(rounds)):
            one = net(made, chance, size, cv, noise=noise)
            one.row = f"{bad} of {size} nodes, CV {percent(cv)}"
            slow = set(one.nodes[:bad])
            lose(one, {p for p in one.values if slow & set(p)}, 1 - left)
            one.bad_nodes, one.exact = slow, True
    yield made


def tails(chance: Random, rounds: int) -> Iterator[Network]:
    """Nothing is slow, and the noise is not normal: which share of the pairs is bad."""
    for noise in tuple(NOISES)[1:]:
        made = new(chance, f"tails-{noise.strip(')').replace('(', '')}")
        for size in TAILS:
            for number in range(rounds * max(1, TAILS[-1] // size)):
                one = net(made, chance, size, (0.02, 0.1)[number % 2], noise=noise)
                one.row, one.by_pair = f"{size} nodes, {noise}", True
        yield made


PLANES: dict[str, Plane] = {
    "pair": one_pair,
    "node": one_node,
    "few nodes": few_nodes,
    "trunk": trunk,
    "clean": clean,
    "tails": tails,
}


def score(made: Network, answer: dict[str, Any], cells: Cells, page: Page) -> None:
    """Compare with the truth: an item is a pair that is bad, or a node that is accused."""
    by_link = {one["link"]: one for one in answer["matrices"]}
    accused: dict[str, set[str]] = {}
    blocks: set[str] = set()
    for found in answer["findings"]:
        link = str(found.get("details", {}).get("link", ""))
        if found["kind"] == "explains_pairs":
            accused.setdefault(link, set()).add(found["subject"])
        elif found["kind"] == "block_slow":
            blocks.add(link)
    for one in made.nets:
        pairs = by_link.get(one.role, {"pairs": []})["pairs"]
        bad = {(p["from"], p["to"]) for p in pairs if p["bad"]}
        named = accused.get(one.role, set())
        told = _told(one, bad, named, one.role in blocks)
        for of_cell in [pair in bad for pair in one.values] if one.by_pair else [told]:
            cells.add(one.row, one.loss, of_cell)
        if one.loss and not told:
            text = f"{len(bad & one.bad_pairs)} of {len(one.bad_pairs)} pairs bad"
            page.miss(one.row, one.loss, f"{one.role}: {text}, accused {sorted(named)}")
        page.told[Told.RIGHT] += len(bad & one.bad_pairs)
        for pair in sorted(bad - one.bad_pairs):
            page.add(Told.FALSE, f"{one.role} ({one.row}): pair {pair}")
        for node in sorted(named - one.bad_nodes):
            page.add(Told.FALSE, f"{one.role} ({one.row}, {one.loss:.0%}): node {node}")


def _told(one: Net, bad: set[tuple[str, str]], named: set[str], block: bool) -> bool:
    """Whether what was planted is named; of a clean link, whether anything is."""
    if not one.bad_pairs:
        return bool(bad or named or block)
    if one.block:
        return block
    if one.exact:
        return one.bad_nodes == named
    return one.bad_nodes <= named if one.bad_nodes else one.bad_pairs <= bad
