"""hosts.csv: the host table of a contract, one line a node, as facts of these nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import Field

from siteproof.sites.lint import Around
from siteproof.sites.schema.yamlfile import Document, clip
from siteproof.sites.site_tables import Row
from siteproof.sites.stated import Fact, FactSection

# Sections of the facts of a host table, by the metric that counts the hosts that miss one.
SECTIONS = {
    "wrong_names": "host table: name",
    "wrong_addresses": "host table: address",
    "wrong_systems": "host table: system",
    "wrong_interfaces": "host table: interface",
    "inconsistent": "host table: consistent",
}


class HostRow(Row):
    """A host of the table; an empty cell states nothing."""

    FILE, WHAT, COLUMN, KEY = "hosts.csv", "hosts", "name", ("node",)

    node: str = Field(description="The node, as in the inventory.")
    name: str = Field("", description="Its full name; the node may use the first parts alone.")
    address: str = Field("", description="An address that one of its interfaces has.")
    os: str = Field("", description="Its operating system, a glob: CentOS*5*.")
    interface: str = Field("", description="An interface of the node, by name: eth0.")
    driver: str = Field("", description="The driver of this interface, a glob: tg3.")
    speed: str = Field("", description="The rate of this interface: 1000 Mb/s.")
    source: str = Field(description="The document, and the table in it.")

    def lint(self, document: Document, line: int, around: Around, others: Iterable[Self]) -> None:
        """Note a host that the inventory does not have."""
        nodes = around.inventory
        if nodes is not None and self.node not in nodes:
            document.add((line, "node"), f"'{clip(self.node)}' is not in any role", clip(nodes))


def facts(row: HostRow) -> dict[str, FactSection]:
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
