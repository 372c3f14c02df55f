"""The program that looks after a node's health: a text for sh, made of what the site states.

Each text of the site is one quoted word of the program, so that no shell runs it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from fractions import Fraction

from siteproof import files
from siteproof.errors import UserError
from siteproof.installed import SUITE
from siteproof.sites.bought import sections_of_role
from siteproof.sites.key_types import Health, blanks
from siteproof.sites.site import Site
from siteproof.sites.stated import NODE, Fact
from siteproof.sites.system import Hardware
from siteproof.units import Quantity

BODY = SUITE / "siteproof" / "checks" / "on_node" / "health_program.sh"
# The kernel keeps 1.6 % of a node's memory for its pages, and firmware and crash kernel more. Less
# than a module of 24 is missing then.
LEAST_MEMORY, KEPT = Fraction(97, 100), 256 * 1024  # KiB
MAX_PROCESSORS = 10**6
_DMI = "/sys/class/dmi/id/"
# Where the kernel shows a field of `siteproof describe`, as checks/system/description.sh reads it.
FILES = {
    **{f"bios.{name}": f"{_DMI}bios_{name}" for name in ("vendor", "version", "date", "release")},
    "bios.ec_firmware_release": f"{_DMI}ec_firmware_release",
    "kernel.release": "/proc/sys/kernel/osrelease",
}
_HCA = ("ib.", ".fw_ver")

Call = tuple[str, ...]  # a function of health_program.sh, and its words


def text(site: Site, role: str) -> str:
    """The program for the nodes of a role.

    Raises UserError if there is no such role, or nothing that a program could look at.
    """
    rules = site.system.health.get(role) or Health()
    hardware = list(_of_hardware(site.hardware_of(role)))
    of_site = (*_mounts(site, role), *_ports(site, role), *_versions(site, role))
    calls = [*hardware, *of_site, *_of_rules(rules)]
    if not calls:
        what = f"nothing is stated of role '{role}' that a node can be compared with"
        raise UserError(site.name, f"{what}. Add 'hardware' or limits of 'health' to system.yaml")
    lines = [
        "#!/bin/sh",
        f"# The health of a node of role {role} of {site.name}: for Slurm's HealthCheckProgram,",
        "# Prolog or Epilog. Made by 'siteproof health' from the site: do not edit.",
        f"spool={shlex.quote(rules.spool.rstrip('/'))}",
        f"drain={'yes' if rules.drain else 'no'}",
        "stated() {",
        *(f"    {shlex.join(call)}" for call in calls),
        "}",
        "",
    ]
    body = files.read_named(BODY, files.MIB).decode()
    return "\n".join(lines) + body.partition("\n")[2]  # without shellcheck's line


def _kib(size: Quantity) -> int:
    return int(size.to("B") / 1024)


def _of_hardware(hardware: Hardware) -> Iterator[Call]:
    if hardware.memory:
        least = int(_kib(hardware.memory) * LEAST_MEMORY) - KEPT
        yield "memory", str(max(least, 0)), str(hardware.memory)
    if hardware.cores:
        threads = hardware.threads_per_core
        low = hardware.cores * (threads or 1)
        yield "processors", str(low), str(low if threads else MAX_PROCESSORS)
    for name, nic in hardware.nics.items():
        rate = int(nic.speed.to("b/s") / 10**6) if nic.speed else 0
        yield "interface", name, str(rate), str(nic.mtu or 0)
    if hardware.gpus:
        yield "gpus", str(hardware.gpus)


def _mounts(site: Site, role: str) -> Iterator[Call]:
    for there in site.system.file_systems.values():
        if there.used_by(role) and there.kind != "any":
            path = there.path.rstrip("/") or "/"
            yield "mount_of", _as_in_mounts(path), _as_in_mounts(there.kind)


def _as_in_mounts(text: str) -> str:
    """A text as /proc/mounts has it, and no control character as it is."""
    return "".join(f"\\{ord(c):03o}" if c in " \\#" or not c.isprintable() else c for c in text)


def _ports(site: Site, role: str) -> Iterator[Call]:
    """The InfiniBand device of each link that has nodes of the role."""
    nodes = site.system.nodes[role].nodes
    for link in site.system.links.values():
        ends = site.system.members(link.servers) | site.system.members(link.clients)
        if link.device and nodes & ends:
            device, _, port = link.device.partition(":")
            rate = int(link.speed.to("b/s") / 10**9) if link.speed else 0
            yield "infiniband", device, port or "1", str(rate)


def _versions(site: Site, role: str) -> Iterator[Call]:
    fields: dict[str, Fact] = {}
    for section in sections_of_role(site, role).values():
        fields |= section.fields
    for name, fact in fields.items():
        globs = _globs(fact)
        if (file := _file_of(name)) and globs and fact.count is None:
            yield "version", name, file, *globs


def _file_of(name: str) -> str:
    device = name.removeprefix(_HCA[0]).removesuffix(_HCA[1])
    if name == device.join(_HCA) and device.replace("_", "").isalnum():
        return f"/sys/class/infiniband/{device}/fw_ver"
    return FILES.get(name, "")


def _globs(fact: Fact) -> list[str]:
    """The values as patterns of a shell; none where the rule is a number, or names the node."""
    found = [re.sub(r"([*?\[\]\\])", r"\\\1", one) for one in fact.texts]
    found = found or [glob.replace("\\", r"\\") for glob in fact.pattern or ()]
    return [blanks(one) for one in found if NODE not in one]


def _of_rules(rules: Health) -> Iterator[Call]:
    given = rules.model_dump(exclude_none=True)
    memory_errors = [f"{kind}_memory_errors" for kind in ("corrected", "uncorrected")]
    if given.keys() & set(memory_errors):
        yield "memory_errors", *(str(given.get(name, "")) for name in memory_errors)
    for name in ("file_system_errors", "zombies", "leftover_processes"):
        if name in given:
            yield name, str(given[name])
    if rules.clock_offset:
        yield "clock_offset", str(int(rules.clock_offset.to("us"))), str(rules.clock_offset)
    for path, size in rules.free.items():
        yield "free", path, str(_kib(size)), str(size)
