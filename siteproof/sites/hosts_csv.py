"""hosts.csv: the host table of a contract, one line a node, as facts of these nodes.

The first line names the columns, in any order; lines that begin with # are remarks. What a column
means is written once, in `HostRow`.
"""

from __future__ import annotations

from pathlib import Path

from ClusterShell.NodeSet import NodeSet
from pydantic import Field

from siteproof.schema import csvfile
from siteproof.schema.yamlfile import Document, clip
from siteproof.sites.key_types import Model
from siteproof.sites.stated import Fact, FactSection

NAME = "hosts.csv"
# Sections of the facts of a host table, by the metric that counts the hosts that miss one.
SECTIONS = {
    "wrong_names": "host table: name",
    "wrong_addresses": "host table: address",
    "wrong_systems": "host table: system",
    "wrong_interfaces": "host table: interface",
    "inconsistent": "host table: consistent",
}


class HostRow(Model):
    """A host of the table; an empty cell states nothing."""

    system: str = Field(description="The site's name.")
    node: str = Field(description="The node, as in the inventory.")
    name: str = Field("", description="Its full name; the node may use the first parts alone.")
    address: str = Field("", description="An address that one of its interfaces has.")
    os: str = Field("", description="Its operating system, a glob: CentOS*5*.")
    interface: str = Field("", description="An interface of the node, by name: eth0.")
    driver: str = Field("", description="The driver of this interface, a glob: tg3.")
    speed: str = Field("", description="The rate of this interface: 1000 Mb/s.")
    source: str = Field(description="The document, and the table in it.")


Hosts = dict[str, dict[str, FactSection]]


def read(path: Path, system: str, inventory: NodeSet | None) -> tuple[Document, Hosts]:
    """The facts of each node of the table, and the file with its mistakes."""
    document = Document(path)
    found: Hosts = {}
    for line, row in csvfile.validated(document, HostRow, "name"):
        if row.system != system:
            document.add((line, "system"), f"a host of '{clip(row.system)}'", system)
        elif row.node in found:
            document.add((line, "node"), f"'{clip(row.node)}' twice", "each node once")
        elif inventory is not None and row.node not in inventory:
            document.add((line, "node"), f"'{clip(row.node)}' is not in any role", clip(inventory))
        else:
            found[row.node] = _facts(row)
    return document, found


def _facts(row: HostRow) -> dict[str, FactSection]:
    """A section for each thing that the table states of a host."""
    nic = f"nic.{row.interface or '*'}"
    stated: list[tuple[str, str, Fact]] = []
    if row.name:
        parts = row.name.split(".")
        names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        stated.append(("wrong_names", "host.name", Fact(one_of=names)))
    if row.address:
        stated.append(("wrong_addresses", "address.*", Fact(exact=row.address, count=1)))
    if row.os:
        stated.append(("wrong_systems", "os.release", Fact(pattern=[row.os])))
    if row.driver:
        stated.append(("wrong_interfaces", f"{nic}.driver", Fact(pattern=[row.driver])))
    if row.speed:
        stated.append(("wrong_interfaces", f"{nic}.speed", Fact(exact=row.speed)))
    if row.name or row.address:
        stated.append(("inconsistent", "dns.consistent", Fact(exact="yes")))
    found: dict[str, FactSection] = {}
    for metric, field, fact in stated:
        section = SECTIONS[metric]
        fields = dict(found[section].fields) if section in found else {}
        found[section] = FactSection(source=row.source, fields={**fields, field: fact})
    return found
