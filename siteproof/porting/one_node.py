"""What one node of a kind is, from its own output: that of description.sh, or of lscpu.

It is read from a file, or a short job through Slurm prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from siteproof import files, nodesets
from siteproof.errors import OutputError, UserError, harmless
from siteproof.parsers import description
from siteproof.porting.grouping import NewRole
from siteproof.sites.catalogue import FOLDER, Feature
from siteproof.sites.system import is_of_network
from siteproof.slurm import client

SCRIPT = FOLDER / "system/description.sh"
OTHER = Path(__file__).resolve().parents[1] / "checks/on_node/other_tools.sh"
SOURCED = '. "$1/other_tools.sh"'
_FOUND = re.compile(r"^found ([A-Za-z0-9_.-]{1,60})$", re.MULTILINE)
_LSCPU = {
    "Model name": "cpu.model",
    "Socket(s)": "cpu.sockets",
    "Core(s) per socket": "cores_per_socket",
    "Thread(s) per core": "cpu.threads_per_core",
    "CPU(s)": "cpu.threads",
    "Architecture": "kernel.machine",
}


@dataclass(frozen=True)
class OneNode:
    """A node that was looked at. programs: those of checks that are on its PATH; None: unknown."""

    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    programs: frozenset[str] | None = None

    def number(self, name: str) -> int:
        """A field as a whole number; 0 if it is none."""
        text = self.fields.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0

    @property
    def model(self) -> str:
        """The processor's name; empty if it was not read."""
        return " ".join(self.fields.get("cpu.model", "").split())

    @property
    def last_level_cache(self) -> str:
        """All of the highest level together, as a size; empty if it was not read."""
        caches = sorted(n for n in self.fields if re.fullmatch(r"cpu\.cache\.l[2-4]", n))
        text = self.fields[caches[-1]] if caches else ""
        match = re.match(r"([0-9]{1,9})K .*shared by ([0-9,-]+)", text)
        shared = _how_many(match[2]) if match else 0
        if not match or not shared or not self.number("cpu.threads"):
            return ""
        return f"{int(match[1]) * max(1, self.number('cpu.threads') // shared)} KiB"

    @property
    def interfaces(self) -> dict[str, tuple[str, str]]:
        """The devices that are up: speed as Gb/s, or empty, and MTU."""
        found = {}
        for name in self.fields:
            match = re.fullmatch(r"nic\.([A-Za-z0-9_.:-]{1,15})\.operstate", name)
            if not match or self.fields[name] != "up" or match[1] == "lo":
                continue
            speed = re.fullmatch(r"([0-9]{1,9}) Mb/s", self.fields.get(f"nic.{match[1]}.speed", ""))
            rate = f"{int(speed[1]) / 1000:g} Gb/s" if speed and int(speed[1]) > 0 else ""
            found[match[1]] = rate, str(self.number(f"nic.{match[1]}.mtu") or "")
        return found

    @property
    def shared_file_systems(self) -> list[tuple[str, str]]:
        """Mounts that all nodes see, by their kind: (path, kind)."""
        found = []
        for name, value in self.fields.items():
            kind = value.partition(" ")[0]
            if name.startswith("mount./") and is_of_network(kind):
                found.append((name.removeprefix("mount."), kind))
        return found


def read(name: str, text: str) -> OneNode:
    """What a node printed. Raises UserError if it is neither a description nor lscpu's output."""
    if re.search(r"^Architecture:\s", text, re.MULTILINE):
        return OneNode(name, _of_lscpu(text))
    try:
        fields = {one.metric: str(one.value) for one in description.parse(text)}
    except OutputError as error:
        hint = "Save what 'lscpu' prints with LC_ALL=C, or description.sh"
        raise UserError(f"--node {name}", str(error), hint=hint) from None
    programs = frozenset(_FOUND.findall(text)) if "\nfound" in f"\n{text}" else None
    return OneNode(name, fields, programs)


def _of_lscpu(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    values = {label.strip(): harmless(value.strip())[:200] for label, _, value in lines}
    found = {name: values[label] for label, name in _LSCPU.items() if label in values}
    node = OneNode("", found)
    if cores := node.number("cpu.sockets") * node.number("cores_per_socket"):
        found["cpu.cores"] = str(cores)
    return found


def _how_many(processors: str) -> int:
    """The length of a list such as `0-7,64-71`; 0 if it is none."""
    try:
        return len(nodesets.numbers(processors))
    except ValueError:
        return 0


def script(features: Iterable[Feature]) -> str:
    """A shell text that describes the node on which it runs, in a folder of its own there."""
    programs = sorted({program for one in features for program in one.programs})
    text, other = (files.read_named(path).decode() for path in (SCRIPT, OTHER))
    looks = "\n".join(
        f"command -v {name} >/dev/null 2>&1 && echo 'found {name}'" for name in programs
    )
    begin = 'cd "$(mktemp -d)" || exit 1\ntrap \'rm -rf "$PWD"\' EXIT\necho "found none"\n'
    return f"{begin}{looks}\n{text.replace(SOURCED, other)}"


END = "end description"
_REFUSED = re.compile(r"Invalid (?:account|qos)[\w /]*", re.IGNORECASE)  # of every job alike


def through_slurm(
    roles: Iterable[NewRole], features: Mapping[str, Feature], options: Iterable[str]
) -> tuple[dict[str, OneNode], dict[str, str]]:
    """An idle node of each kind of hardware; and of which none could be looked at, with why."""
    found: dict[str, OneNode] = {}
    why: dict[str, str] = {}
    look = ["sh", "-c", script(features.values())]
    states = client.node_states()
    for role in roles:
        if role.hardware in found:
            continue
        idle = [n for n in role.nodes if n in states and states[n].state.idle]
        if not idle:
            why[role.hardware] = "no idle node"
            continue
        words = [f"--partition={role.partition}", *options]
        done = client.on_each(nodesets.of(idle[:1]), words, look, lambda text: text.count(END))
        try:
            found[role.hardware] = read(idle[0], done.stdout)
        except UserError as error:
            printed = " ".join(harmless(done.stderr).split())[:200]
            if refused := _REFUSED.search(printed):
                hint = "'sacctmgr show associations user=$USER' lists yours"
                raise UserError("--describe", f"Slurm refuses: '{refused[0]}'", hint=hint) from None
            why[role.hardware] = f"{idle[0]}: {printed or error.what}"
    return found, why
