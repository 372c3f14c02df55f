"""The options of Slurm in a centre's ReFrame settings: which nodes each partition has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.checks.centre_settings import Settings
from siteproof.slurm.configured import ConfiguredNode, ConfiguredPartition

SLURM = ("slurm", "squeue")
_LONG = {  # of sbatch, by their letters
    "A": "account", "C": "constraint", "M": "clusters", "p": "partition", "q": "qos",
    "w": "nodelist", "x": "exclude",
}  # fmt: skip


@dataclass
class Notes:
    """What is not carried over as it is, each as `place: what`.

    kept: under `reframe:`, unchanged, or in another form. missing: without a counterpart.
    """

    kept: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Option:
    """An option of sbatch: its long name, or its letter, and its value, which may be empty.

    Without a name: a word that is not an option.
    """

    name: str
    value: str

    def __str__(self) -> str:
        if not self.name:
            return self.value
        if len(self.name) == 1:
            return f"-{self.name} {self.value}".strip()
        value = f'"{self.value}"' if re.search(r"\s", self.value) else self.value
        return f"--{self.name}={value}" if value else f"--{self.name}"


def options(access: Iterable[str]) -> Iterator[Option]:
    """The options in `access`: several in a text, letters, and values behind a blank."""
    parts: list[str] = []
    for text in access:
        try:
            parts += shlex.split(text.strip().removeprefix("#SBATCH"))
        except ValueError:
            parts.append(text)
    while parts:
        part = parts.pop(0)
        if not part.startswith("-"):
            yield Option("", part)
            continue
        if part.startswith("--"):
            name, equals, value = part[2:].partition("=")
        else:
            letter, value = part[1:2], part[2:].removeprefix("=")
            name, equals = _LONG.get(letter, letter), value
        if not equals and parts and not parts[0].startswith("-"):
            value = parts.pop(0)
        yield Option(name, value)


def needs_slurm(settings: Settings) -> bool:
    """Whether a partition of the system runs jobs of Slurm."""
    return any(one["scheduler"] in SLURM for one in settings.system["partitions"])


def reached(
    settings: Settings,
    nodes: Mapping[str, ConfiguredNode],
    partitions: Mapping[str, ConfiguredPartition],
    cluster: str,
    notes: Notes,
) -> dict[str, ConfiguredPartition]:
    """Each partition of the settings that Slurm has nodes for, as if slurm.conf had it.

    cluster: whose nodes and partitions these are, or "".
    """
    found = {}
    for one in settings.system["partitions"]:
        if one["scheduler"] not in SLURM:
            continue
        place = f"partitions/{one['name']}/access"
        chosen = {option.name: option.value for option in options(one.get("access", []))}
        clusters = chosen.get("clusters", "all")
        if cluster and not {cluster, "all"} & set(clusters.split(",")):
            what = f"--clusters={clusters}, and what was listed is {cluster}: it is left out"
            notes.missing.append(f"{place}: {what}")
            continue
        used = list(_used(chosen.get("partition"), partitions, place, notes))
        members = nodesets.of(name for part in used for name in part.nodes & nodesets.of(nodes))
        members = _narrowed(members, chosen, nodes, place, notes)
        if members:
            found[one["name"]] = replace(used[0], name=one["name"], nodes=members)
        else:
            notes.missing.append(f"{place}: no node of Slurm, so the partition is left out")
    return found


def _used(
    wanted: str | None, partitions: Mapping[str, ConfiguredPartition], place: str, notes: Notes
) -> Iterator[ConfiguredPartition]:
    """The partitions of Slurm that jobs go to: those of the option, else the default one."""
    if wanted is None:
        yield from (one for one in partitions.values() if one.default)
        return
    for name in wanted.split(","):
        if name in partitions:
            yield partitions[name]
        else:
            notes.missing.append(f"{place}: Slurm has no partition '{name}'")


def _narrowed(
    members: NodeSet,
    chosen: Mapping[str, str],
    nodes: Mapping[str, ConfiguredNode],
    place: str,
    notes: Notes,
) -> NodeSet:
    """The nodes that the other options of `access` leave."""
    if constraint := chosen.get("constraint"):
        if re.fullmatch(r"[\w.:+-]+(?:[&|,][\w.:+-]+)*", constraint):
            members = nodesets.of(n for n in members if _has(nodes[n].features, constraint))
        else:
            what = f"the nodes of --constraint={constraint} are not known: correct `nodes`"
            notes.missing.append(f"{place}: {what}")
    for name, keep in (("nodelist", True), ("exclude", False)):
        if name not in chosen:
            continue
        try:
            named = nodesets.parse(chosen[name])
        except ValueError as error:
            notes.missing.append(f"{place}: --{name}: {error}")
            continue
        members = members & named if keep else members - named
    return members


def _has(features: Collection[str], constraint: str) -> bool:
    """Whether a node has what Slurm's `a|b` or `a&b` asks for."""
    every = (part.split("|") for part in re.split("[&,]", constraint))
    return all(any(one in features for one in either) for either in every)
