"""Amounts that follow from the fields of a node."""

from fractions import Fraction

from siteproof.sites.hardware_read import amounts, drivers, interfaces, missing_flags

NODE = {
    "cpu.cores": "8",
    "cpu.threads": "16",
    "memory.total": "1048576 kB",
    "gpu.count": "2",
    "disk.sda.size": "500107862016 B",
    "disk.nvme0n1.size": "1000 B",
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


def test_amounts_are_in_base_units():
    assert amounts(NODE) == {
        "cores": 8,
        "threads": 16,
        "gpus": 2,
        "memory": 2**30,
        "disk": 500107863016,
        "interfaces": 2,
        "rate": Fraction(20 * 10**9, 8),
    }


def test_what_was_not_read_is_left_out():
    one_unknown = {name: value for name, value in NODE.items() if name != "nic.eth1.speed"}
    assert "rate" not in amounts(one_unknown)
    assert amounts({}) == {"interfaces": 0}
    assert amounts({"memory.total": "much"}) == {"interfaces": 0}


def test_a_bond_and_the_loopback_are_no_interfaces():
    assert interfaces(NODE) == ["eth0", "eth1"]
    assert drivers(NODE) == "ixgbe"
    assert drivers({**NODE, "nic.eth1.driver": "tg3"}) == "ixgbe tg3"
    assert drivers({name: v for name, v in NODE.items() if name != "nic.eth1.driver"}) == ""


def test_flags_that_a_guest_lacks_are_named():
    guest = {"cpu.flag.sse": "yes", "cpu.flag.hypervisor": "yes"}
    assert missing_flags(guest, NODE) == ["avx"]
    assert missing_flags(NODE, NODE) == []
