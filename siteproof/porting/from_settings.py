"""A system of a centre's ReFrame settings as the parts of a site; what has no counterpart is named.

Partitions and environments keep their names, as tests ask for them by name. A value that no key of
a site takes goes unchanged into the block `reframe:`, where there is one.

The options of Slurm in a centre's ReFrame settings: which nodes each partition has.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ClusterShell.NodeSet import NodeSet

from siteproof import nodesets
from siteproof.checks.centre_settings import Settings
from siteproof.errors import harmless
from siteproof.porting.grouping import Grouped, NewRole
from siteproof.porting.new_site import Keys, Sections, gpus, in_line, marked
from siteproof.sites.job_keys import VERBATIM, is_of_checks
from siteproof.sites.key_types import TARGETS, Model
from siteproof.sites.system import Environment, Hardware, Partition
from siteproof.slurm.configured import ConfiguredNode, ConfiguredPartition

HOST = "localhost"  # the node of partitions without a scheduler
OWN_ENVIRONMENT = "system"
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_WITH_DOMAIN = re.compile(r"\\?\.[A-Za-z]")  # a.b, a\.b: part of a long host name
_ANY_HOST = re.compile(r"(?:\.\*|\^|\$)*")
ELSEWHERE = {
    **dict.fromkeys(
        ("prefix", "stagedir", "outputdir"), "$SITEPROOF_DATA names the folder of results"
    ),
    "max_local_jobs": "1, as two jobs on a host disturb each other",
    "autodetect_methods": "`recognise` says which machine it is",
    "general": "only what concerns reports is kept, in runs that read this file as well",
    "modes": "`--mode` names a mode of Siteproof",
}
OF_RUNS = ("logging", "storage")


def sections(
    settings: Settings, grouped: Grouped, cluster: str, features: Collection[str], notes: Notes
) -> Sections:
    """The parts of system.yaml. features: those that Siteproof's checks know."""
    environments = _Environments(settings, features, notes)
    written: dict[str, Keys] = {}
    local = [one["name"] for one in settings.system["partitions"] if one["scheduler"] == "local"]
    host = _host_role(local, grouped)
    for one in settings.system["partitions"]:
        if roles := _roles(one, grouped, host, notes, is_first=not (grouped.roles or written)):
            written[one["name"]] = _partition(one, *roles, environments.of(one), notes)
            if one["launcher"] in settings.launchers:
                what = "only runs that read this file as well have it: docs/porter.md"
                notes.missing.append(f"partitions/{one['name']}/launcher: {what}")
    notes.missing += settings.unknown
    for name in settings.sections:
        if name in OF_RUNS:
            notes.kept.append(f"{name}: in runs that read this file as well: docs/porter.md")
        else:
            notes.missing.append(f"{name}: {ELSEWHERE[name]}")
    if local and grouped.roles:
        what = "this host, which a criterion without `nodes:` covers as well"
        notes.kept.append(f"nodes/{host}: {what}")
    return Sections(
        head=list(_head(settings, cluster, notes)),
        hardware=_hardware(settings, grouped, notes),
        nodes=[f"  {host}:", f"    set: {HOST}  # where 'reframe' is called"] if local else [],
        partitions=written,
        environments=environments.written,
    )


def _roles(
    entry: Keys, grouped: Grouped, host: str, notes: Notes, *, is_first: bool
) -> tuple[list[str], list[str]] | None:
    """A partition's roles, and those that it measures; None: it is left out.

    is_first: nothing else measures this host.
    """
    name, scheduler = entry["name"], entry["scheduler"]
    if scheduler == "local":
        return [host], [host] if is_first else []
    if scheduler not in SLURM:
        what = f"scheduler '{scheduler}': Siteproof has Slurm, or local; it is left out"
        notes.missing.append(f"partitions/{name}: {what}")
    roles = [role for role in grouped.roles if name in (role.partition, *role.others)]
    measured = [role.name for role in roles if role.partition == name]
    return ([role.name for role in roles], measured) if roles else None


def _host_role(local: Sequence[str], grouped: Grouped) -> str:
    """The name of the role of this host."""
    name = next(iter(local), "login")
    return f"{name}-host" if name in {one.name for one in grouped.roles} else name


def _head(settings: Settings, cluster: str, notes: Notes) -> Iterator[str]:
    system = settings.system
    yield f"description: {in_line(_described(system))}"
    yield f"recognise: {_recognise(system, cluster, notes)}"
    yield "mode: quick  # until criteria.yaml holds the contract; then maintenance"
    if (loads := system.get("modules_system", "nomod")) != "nomod":
        yield f"modules_system: {loads}"
    verbatim = {}
    for key, value in system.items():
        if key in ELSEWHERE:
            notes.missing.append(f"{key}: {ELSEWHERE[key]}")
        elif key in VERBATIM["system"] and key != "variables" and value:
            verbatim[key] = value
    if verbatim:
        yield f"reframe: {in_line(verbatim)}"


def _recognise(system: Mapping[str, Any], cluster: str, notes: Notes) -> str:
    """By the cluster's name; without it by the patterns, which ReFrame compares with the beginning.

    A pattern with a domain cannot be compared with the short name of a host.
    """
    if cluster:
        return f"{{cluster: {in_line(cluster)}}}"
    usable = []
    for pattern in system["hostnames"]:
        if _WITH_DOMAIN.search(pattern) or _ANY_HOST.fullmatch(pattern):
            what = f"'{pattern}' cannot be compared with a short host name"
            notes.missing.append(f"hostnames: {what}")
        else:
            usable.append(pattern)
    if not usable:
        return f"{{hostname: {marked('a pattern that the short names of its login hosts match')}}}"
    return f"{{hostname: {in_line('(?:' + '|'.join(usable) + ').*')}}}"


def _partition(
    entry: Keys, roles: Sequence[str], own: Sequence[str], environments: Sequence[str], notes: Notes
) -> Keys:
    place = f"partitions/{entry['name']}"
    slurm = entry["scheduler"] in SLURM
    if entry["scheduler"] == "squeue":
        notes.kept.append(f"{place}/scheduler: 'squeue' is slurm, which asks sacct")
    keys: dict[str, Any] = {"description": _described(entry), "role": roles}
    if list(own) != list(roles):
        keys["measures"] = own
    keys["scheduler"] = "slurm" if slurm else "local"
    if slurm and (access := list(_access(entry, place, notes))):
        keys["access"] = access
    keys["environments"] = environments
    taken, verbatim = _converted(entry, _OF_PARTITIONS, Partition, place, notes)
    if taken.get("launcher") == ("srun" if slurm else "local"):
        del taken["launcher"]
    if entry.get("sched_options"):
        verbatim["sched_options"] = entry["sched_options"]
    return keys | taken | ({"reframe": verbatim} if verbatim else {})


def _access(entry: Keys, place: str, notes: Notes) -> Iterator[str]:
    for option in options(entry.get("access", [])):
        if option.name and is_of_checks(option.name):
            notes.missing.append(f"{place}/access: '{option}': each check sets it itself")
        elif _fits(Partition, {"access": [str(option)]}):
            yield str(option)
        else:
            notes.missing.append(f"{place}/access: '{option}' is not an option of sbatch")


def _described(entry: Keys) -> str:
    """What a system or a partition is, in one line."""
    return harmless(" ".join(entry.get("descr", "").split())) or entry["name"]


# ---- keys of ReFrame, the site's key, and the value in its form


def _each_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping. Raises ValueError where a name is there twice."""
    listed = list(pairs)
    found = dict(listed)
    if len(found) != len(listed):
        raise ValueError("a name twice")
    return found


def _in_order(given: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(given))


def _variables(pairs: Sequence[tuple[str, Any]]) -> dict[str, str]:
    return _each_once((name, str(value)) for name, value in pairs)


def _resources(given: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    return _each_once((one["name"], one.get("options", [])) for one in given)


def _platforms(given: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = []
    for one in sorted(given, key=lambda one: not one.get("default", False)):
        variables = _variables(one.get("env_vars", []))
        found.append((one["type"], {"modules": one.get("modules", []), "variables": variables}))
    return _each_once(found)


def _limit(text: str) -> str:
    """`1d2h` in seconds. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(text)
    days, hours, minutes, seconds = (int(one or 0) for one in found.groups())
    return f"{((days * 24 + hours) * 60 + minutes) * 60 + seconds} s"


Form = Callable[[Any], Any]
_OF_BOTH: dict[str, tuple[str, Form]] = {
    "modules": ("modules", list),
    "prepare_cmds": ("prepare_cmds", list),
    "env_vars": ("variables", _variables),
}
_OF_PARTITIONS = _OF_BOTH | {
    "launcher": ("launcher", str),
    "max_jobs": ("max_jobs", int),
    "time_limit": ("time_limit", _limit),
    "features": ("features", _in_order),
    "extras": ("extras", dict),
    "resources": ("resources", _resources),
    "container_platforms": ("container_platforms", _platforms),
}


def _converted(
    entry: Keys,
    keys: Mapping[str, tuple[str, Form]],
    model: type[Partition] | type[Environment],
    place: str,
    notes: Notes,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values under the site's keys, and those that only `reframe:` takes."""
    taken, verbatim = {}, {}
    for theirs, (key, form) in keys.items():
        if not (value := entry.get(theirs)):
            continue
        try:
            found = form(value)
        except ValueError:
            found = None
        if found and _fits(model, {key: found}):
            taken[key] = found
        else:
            verbatim[theirs] = value
            notes.kept.append(f"{place}/{theirs}: unchanged under `reframe:`, as no key takes it")
    return taken, verbatim


NEEDED: Mapping[type[Model], Keys] = {
    Partition: {"description": "", "role": "any"},
    Environment: {"description": ""},
    Hardware: {},
}


def _fits(model: type[Model], keys: Keys) -> bool:
    """Whether a site may have these keys."""
    try:
        model.model_validate({**NEEDED[model], **keys})
    except ValueError:
        return False
    return True


# ---- environments


_ADDED = (
    f"environments/{OWN_ENVIRONMENT}: for Siteproof's checks; tests for every environment run in it"
)


class _Environments:
    """The environments of all partitions, each written once."""

    def __init__(self, settings: Settings, features: Collection[str], notes: Notes) -> None:
        notes.kept.append(_ADDED)
        self.written: dict[str, Keys] = {}
        self._settings, self._features, self._notes = settings, features, notes
        self._theirs: dict[str, Keys] = {}

    def of(self, partition: Mapping[str, Any]) -> list[str]:
        """The names of a partition's environments in the site."""
        name, found = partition["name"], []
        defined = self._settings.environments[name]
        for one in dict.fromkeys(partition.get("environs", [])):
            if one in defined:
                found.append(self._name(one, defined[one], name))
            else:
                what = f"environment '{one}' is not defined for it"
                self._notes.missing.append(f"partitions/{name}/environs: {what}")
        return found if OWN_ENVIRONMENT in found else [*found, OWN_ENVIRONMENT]

    def _name(self, name: str, entry: Keys, partition: str) -> str:
        """Its own name; another one where this name has other software on another partition."""
        own = {key: value for key, value in entry.items() if key not in ("name", "target_systems")}
        if self._theirs.setdefault(name, own) != own:
            what = f"differs on {partition}: {name}-{partition}, by which tests must ask for it"
            self._notes.missing.append(f"environments/{name}: {what}")
            name = f"{name}-{partition}"
            self._theirs[name] = own
        if name not in self.written:
            self.written[name] = self._entry(name, own)
        return name

    def _entry(self, name: str, entry: Keys) -> Keys:
        place = f"environments/{name}"
        taken, verbatim = _converted(entry, _OF_BOTH, Environment, place, self._notes)
        offered = _in_order(entry.get("features", []))
        if set(offered) <= set(self._features):
            taken |= {"features": offered} if offered else {}
        else:
            verbatim["features"] = offered
            what = "unchanged under `reframe:`: Siteproof's checks do not know them all"
            self._notes.kept.append(f"{place}/features: {what}")
        for key in VERBATIM["environments"]:
            if key in entry and entry[key] not in ([], {}):
                verbatim[key] = entry[key]
        keys = {"description": f"{name} of {self._settings.file.name}", **taken}
        return keys | ({"reframe": verbatim} if verbatim else {})


# ---- hardware


def _hardware(settings: Settings, grouped: Grouped, notes: Notes) -> dict[str, Keys]:
    """What the settings state of each kind of node, by that of the partition of its first role."""
    entries = {one["name"]: one for one in settings.system["partitions"]}
    for name, one in entries.items():
        if one["scheduler"] == "local" and (one.get("processor") or one.get("devices")):
            what = "the hardware of this host is not in the site"
            notes.missing.append(f"partitions/{name}/processor, devices: {what}")
    found: dict[str, Keys] = {}
    for role in grouped.roles:
        if role.hardware not in found:
            found[role.hardware] = _of_role(role, entries[role.partition], notes)
    return found


def _of_role(role: NewRole, entry: Keys, notes: Notes) -> Keys:
    place = f"partitions/{entry['name']}"
    processor = entry.get("processor") or {}
    keys: dict[str, Any] = {}
    if (target := processor.get("arch")) in TARGETS:
        keys["target"] = target
    elif target:
        notes.missing.append(f"{place}/processor/arch: '{target}' is not a name of archspec")
    threads = role.kind.sockets * role.kind.cores_per_socket * role.kind.threads_per_core
    if processor.get("num_cpus", threads) != threads:
        what = f"{processor['num_cpus']}, and Slurm has {threads}, which the site states"
        notes.missing.append(f"{place}/processor/num_cpus: {what}")
    devices = {}
    for one in entry.get("devices") or []:
        kind = one.get("type", "")
        count = one.get("num_devices") or (gpus(role.kind) if kind == "gpu" else 0)
        known = {key: one[key] for key in ("arch", "model") if one.get(key)}
        if kind and _fits(Hardware, {"devices": {kind: {"count": count, **known}}}):
            devices[kind] = {"count": count, **known}
        else:
            notes.missing.append(f"{place}/devices: how many '{kind}' a node has is not stated")
    return keys | ({"devices": devices} if devices else {})


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
