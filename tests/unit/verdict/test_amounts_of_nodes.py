"""Amounts that follow from the fields of a node."""

from fractions import Fraction
from types import SimpleNamespace

import pytest
import shipped

from siteproof.verdict.derived import inventory

NODE = {
    "cpu.sockets": "2",
    "cpu.cores": "8",
    "cpu.threads": "16",
    "memory.total": "1048576 kB",
    "gpu.count": "2",
    "disk.sda.size": "500107862016 B",
    "disk.nvme0n1.size": "1000 B",
    "disk.loop0.size": "5000 B",
    "nic.eth0.pci": "0000:02:00.0",
    "nic.eth0.speed": "10000 Mb/s",
    "nic.eth0.driver": "ixgbe",
    "nic.eth1.pci": "0000:02:00.1",
    "nic.eth1.speed": "10000 Mb/s",
    "nic.eth1.driver": "ixgbe",
    "nic.bond0.speed": "20000 Mb/s",
    "nic.lo.mtu": "65536",
    "cpu.flag.avx": "yes",
    "cpu.flag.sse": "yes",
}


def amount(name, fields, unit="count", **conditions):
    given = SimpleNamespace(
        unit=unit,
        stated=lambda condition: conditions.get(condition, ""),
        site=SimpleNamespace(role_of=lambda node: None),
    )
    of_node, _ = inventory.AMOUNTS[name]
    return of_node(given, "n1", fields)


def without(*names):
    return {name: value for name, value in NODE.items() if name not in names}


def test_amounts_are_in_the_unit_of_the_metric():
    counts = {"cores": 8, "processors": 2, "threads": 16, "gpus": 2, "interfaces": 2}
    assert {name: amount(name, NODE) for name in counts} == counts
    assert amount("memory", NODE, "GiB") == 1
    assert amount("rate", NODE, "Gb/s") == 20
    assert amount("disk", NODE, "B") == 500107863016
    assert amount("disk", NODE, "B", disks_from="1 GB") == 500107862016


def test_what_was_not_read_is_unknown():
    assert amount("rate", without("nic.eth1.speed"), "Gb/s") is None
    for name in ("cores", "threads", "gpus", "memory", "rate", "disk", "driver", "raid"):
        assert amount(name, {}, "B") is None, name
    assert amount("interfaces", {}) == 0
    assert amount("memory", {"memory.total": "much"}, "B") is None
    assert amount("disk", {"disk.sda.size": "much", "disk.sdb.size": "1 B"}, "B") is None


def test_memory_is_that_of_the_dimms_where_they_were_read():
    slots = {
        "memory.dimm.1_A1": "16 GB, DDR4 2133 MT/s, at 2133 MT/s, maker part",
        "memory.dimm.1_A1.serial": "12345678",
        "memory.dimm.2_A2": "16384 MB, DDR4 2133 MT/s, at 2133 MT/s, maker part",
        "memory.dimm.3_A3": "No Module Installed, Unknown Unknown, at Unknown",
    }
    assert amount("memory", NODE | slots, "GiB") == 32


def test_system_disks_are_those_at_a_controller_and_each_mirrored_one_counts():
    disks = {
        "raid.controller0.disk.32:0": "SATA SSD 372.093 GB INTEL SSDSC2BX400G4R Onln",
        "raid.controller0.disk.32:1": "SATA SSD 372.093 GB INTEL SSDSC2BX400G4R Onln",
        "raid.controller0.disk.32:2": "SAS HDD 3.637 TB ST4000NM0023 Onln",
    }
    assert round(amount("system_disk", NODE | disks, "GB")) == 799
    assert round(amount("system_disk", NODE | disks, "GB", disks_below="5 TB")) == 4798
    assert amount("system_disk", NODE, "GB") is None


def ports(names, **changes):
    """Two ports of a blade, each at one of the switches named."""
    found = {}
    for card, name in zip(("em1", "em2"), names, strict=True):
        found[f"nic.{card}.speed"] = "10000 Mb/s"
        found[f"lldp.{card}.switch"] = name
        found[f"lldp.{card}.switch_description"] = "Dell MXL 9.9(0.0)"
    return found | {"lldp.idrac.switch_description": "Dell N3048"} | changes


def oversubscribed(fields):
    given = SimpleNamespace(
        material=SimpleNamespace(descriptions=(fields, {}, fields)),
        site=shipped.site("jetstream-iu"),
        input=lambda metric: metric,
        units=lambda metric: [f"b{n}" for n in range(1, 17)],
        missing=lambda lacking: LookupError(*lacking),
        sample=lambda value, inputs, why: (value, why),
    )
    return list(inventory.oversubscription(given))


def test_oversubscription_is_that_of_the_switch_with_the_most_ports():
    blades = {f"b{n}": ports(("a1", "a2")) for n in range(1, 17)}
    why = "a1, of 2 switches; its uplinks are stated and not measured"
    assert oversubscribed(blades)[0][0] == 2
    moved = blades | {"b2": ports(("a1", "a1"))}
    assert oversubscribed(moved) == [(Fraction(17, 8), why)]


@pytest.mark.parametrize(
    "b3",
    [{}, ports(("a1", "a2"), **{"nic.em2.speed": ""}), {"lldp.em1.switch_description": "N3048"}],
)
def test_oversubscription_needs_the_rate_and_the_switch_of_each_port(b3):
    blades = {f"b{n}": ports(("a1", "a2")) for n in range(1, 17)}
    with pytest.raises(LookupError, match="of b3$"):
        oversubscribed(blades | {"b3": b3})


def test_a_bond_and_the_loopback_are_no_interfaces():
    assert amount("driver", NODE) == "ixgbe"
    assert amount("driver", {**NODE, "nic.eth1.driver": "tg3"}) == "ixgbe tg3"
    assert amount("driver", without("nic.eth1.driver")) is None


def lacking(guest, host):
    fields = {"vm": guest, "host": host}
    given = SimpleNamespace(
        material=SimpleNamespace(descriptions=(fields, {}, fields)),
        criterion=SimpleNamespace(against={"nodes": "hosts"}),
        site=SimpleNamespace(expected=lambda role: ["host"]),
        inputs=["SystemDescription.fields"],
        input=lambda metric: metric,
        units=lambda metric: ["vm"],
        described=lambda node: (fields[node], node),
        sample=lambda value, inputs, why, unit: (unit, value, why),
    )
    return list(inventory.missing_flags(given))


def test_flags_that_a_guest_lacks_are_named():
    guest = {"cpu.flag.sse": "yes", "cpu.flag.hypervisor": "yes"}
    assert lacking(guest, NODE) == [("vm", Fraction(1), "it lacks avx")]
    assert lacking(NODE, NODE) == [("vm", Fraction(0), "it has those of its hosts")]
