"""Amounts that follow from the fields of a node. Pure; what was not read is not counted."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from siteproof.sites.read_fields import number_of

Fields = Mapping[str, str]
FLAG = "cpu.flag."
# Fields with one number each: cores, hardware threads, GPUs as counts, memory in bytes.
_ONE = {
    "cores": "cpu.cores",
    "threads": "cpu.threads",
    "gpus": "gpu.count",
    "memory": "memory.total",
}


def amounts(fields: Fields) -> dict[str, Fraction]:
    """cores, threads, gpus, interfaces (count), memory, disk (B), rate (B/s, of all interfaces).

    Without what the node could not read. disk: of all block devices, as the kernel sees them, so a
    RAID controller's virtual disk counts and the disks that it is made of do not.
    """
    found = {}
    for name, field in _ONE.items():
        number = number_of(fields.get(field, ""), field)
        if number:
            found[name] = number.value
    disks = _numbers(fields, "disk.", ".size")
    if disks:
        found["disk"] = sum(disks.values(), Fraction(0))
    cards = interfaces(fields)
    found["interfaces"] = Fraction(len(cards))
    rates = _numbers(fields, "nic.", ".speed")
    if cards and all(card in rates for card in cards):
        found["rate"] = sum((rates[card] for card in cards), Fraction(0))
    return found


def interfaces(fields: Fields) -> list[str]:
    """The network interfaces that are devices, also of virtual machines: no bond, no loopback."""
    return sorted(
        _middle(name) for name in fields if name.startswith("nic.") and name.endswith(".pci")
    )


def drivers(fields: Fields) -> str:
    """The drivers of these interfaces, each once: `virtio_net`. Empty: not read."""
    found = {fields.get(f"nic.{card}.driver", "") for card in interfaces(fields)}
    return " ".join(sorted(found - {""})) if "" not in found else ""


def missing_flags(guest: Fields, host: Fields) -> list[str]:
    """The processor flags that a host has and its guest lacks; `hypervisor` is the guest's own."""
    lacking = {name for name in host if name.startswith(FLAG)} - guest.keys()
    return sorted(name.removeprefix(FLAG) for name in lacking)


def _numbers(fields: Fields, begin: str, end: str) -> dict[str, Fraction]:
    """The numbers of fields such as disk.sda.size, by what is in the middle."""
    found = {}
    for name, value in fields.items():
        number = number_of(value, name)
        if name.startswith(begin) and name.endswith(end) and number:
            found[_middle(name)] = number.value
    return found


def _middle(name: str) -> str:
    return name.partition(".")[2].rpartition(".")[0]
