"""A system of a centre's ReFrame settings as the parts of a site; what has no counterpart is named.

Partitions and environments keep their names, as tests ask for them by name. A value that no key of
a site takes goes unchanged into the block `reframe:`, where there is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from siteproof.checks.centre_settings import Settings
from siteproof.errors import harmless
from siteproof.porting.access import SLURM, Notes, options
from siteproof.porting.grouping import Grouped, NewRole
from siteproof.porting.new_site import Sections, gpus, marked
from siteproof.sites.job_keys import VERBATIM, is_of_checks
from siteproof.sites.key_types import TARGETS
from siteproof.sites.system import Environment, Hardware, Partition

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
    written: list[str] = []
    host = _host_role(settings, grouped)
    for one in settings.system["partitions"]:
        if roles := _roles(one, grouped, host, notes, is_first=not (grouped.roles or written)):
            written += _partition(one, *roles, environments.of(one), notes)
            if one["launcher"] in settings.launchers:
                what = "only runs that read this file as well have it: docs/porter.md"
                notes.missing.append(f"partitions/{one['name']}/launcher: {what}")
    notes.missing += settings.unknown
    for name in settings.sections:
        if name in OF_RUNS:
            notes.kept.append(f"{name}: in runs that read this file as well: docs/porter.md")
        else:
            notes.missing.append(f"{name}: {ELSEWHERE[name]}")
    local = any(one["scheduler"] == "local" for one in settings.system["partitions"])
    if local and grouped.roles:
        what = "this host, which a criterion without `nodes:` covers as well"
        notes.kept.append(f"nodes/{host}: {what}")
    return Sections(
        head=list(_head(settings, cluster, notes)),
        hardware=_hardware(settings, grouped, notes),
        nodes=[f"  {host}:", f"    set: {HOST}  # where 'reframe' is called"] if local else [],
        partitions=written,
        environments=environments.lines,
    )


def _roles(
    entry: Mapping[str, Any], grouped: Grouped, host: str, notes: Notes, *, is_first: bool
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


def _host_role(settings: Settings, grouped: Grouped) -> str:
    """The name of the role of this host."""
    local = [one["name"] for one in settings.system["partitions"] if one["scheduler"] == "local"]
    name = local[0] if local else "login"
    return f"{name}-host" if name in {one.name for one in grouped.roles} else name


def _head(settings: Settings, cluster: str, notes: Notes) -> Iterator[str]:
    system = settings.system
    yield f"description: {_described(system)}"
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
        yield f"reframe: {_yaml(verbatim)}"


def _recognise(system: Mapping[str, Any], cluster: str, notes: Notes) -> str:
    """By the cluster's name; without it by the patterns, which ReFrame compares with the beginning.

    A pattern with a domain cannot be compared with the short name of a host.
    """
    if cluster:
        return f"{{cluster: {_yaml(cluster)}}}"
    usable = []
    for pattern in system["hostnames"]:
        if _WITH_DOMAIN.search(pattern) or _ANY_HOST.fullmatch(pattern):
            what = f"'{pattern}' cannot be compared with a short host name"
            notes.missing.append(f"hostnames: {what}")
        else:
            usable.append(pattern)
    if not usable:
        return f"{{hostname: {marked('a pattern that the short names of its login hosts match')}}}"
    return f"{{hostname: {_yaml('(?:' + '|'.join(usable) + ').*')}}}"


def _partition(
    entry: Mapping[str, Any],
    roles: Sequence[str],
    own: Sequence[str],
    environments: Sequence[str],
    notes: Notes,
) -> Iterator[str]:
    place = f"partitions/{entry['name']}"
    slurm = entry["scheduler"] in SLURM
    if entry["scheduler"] == "squeue":
        notes.kept.append(f"{place}/scheduler: 'squeue' is slurm, which asks sacct")
    yield f"  {entry['name']}:"
    yield f"    description: {_described(entry)}"
    yield f"    role: {_yaml(roles)}"
    if list(own) != list(roles):
        yield f"    measures: {_yaml(own)}  # the others are measured in another partition, or not"
    yield f"    scheduler: {'slurm' if slurm else 'local'}"
    if slurm and (access := list(_access(entry, place, notes))):
        yield f"    access: {_yaml(access)}"
    yield f"    environments: {_yaml(environments)}"
    taken, verbatim = _converted(entry, _OF_PARTITIONS, _fits_partition, place, notes)
    if taken.get("launcher") == ("srun" if slurm else "local"):
        del taken["launcher"]
    verbatim |= {"sched_options": entry["sched_options"]} if entry.get("sched_options") else {}
    yield from _keys(taken, verbatim)


def _access(entry: Mapping[str, Any], place: str, notes: Notes) -> Iterator[str]:
    for option in options(entry.get("access", [])):
        if option.name and is_of_checks(option.name):
            notes.missing.append(f"{place}/access: '{option}': each check sets it itself")
        elif _fits_partition({"access": [str(option)]}):
            yield str(option)
        else:
            notes.missing.append(f"{place}/access: '{option}' is not an option of sbatch")


def _keys(taken: Mapping[str, Any], verbatim: Mapping[str, Any]) -> Iterator[str]:
    for key, value in taken.items():
        yield f"    {key}: {_yaml(value)}"
    if verbatim:
        yield f"    reframe: {_yaml(verbatim)}"


def _described(entry: Mapping[str, Any]) -> str:
    """What a system or a partition is, in one line."""
    return _yaml(harmless(" ".join(entry.get("descr", "").split())) or entry["name"])


def _yaml(value: Any) -> str:
    """Data in one line of YAML, of which JSON is a part."""
    return json.dumps(value, ensure_ascii=False)


# ---- keys of ReFrame, the site's key, and the value in its form


def _same(value: Any) -> Any:
    return value


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
    default_first = sorted(given, key=lambda one: not one.get("default", False))
    return _each_once((one["type"], _platform(one)) for one in default_first)


def _platform(given: Mapping[str, Any]) -> dict[str, Any]:
    variables = _variables(given.get("env_vars", []))
    return {"modules": given.get("modules", []), "variables": variables}


def _limit(text: str) -> str:
    """`1d2h` in seconds. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(text)
    days, hours, minutes, seconds = (int(one or 0) for one in found.groups())
    return f"{((days * 24 + hours) * 60 + minutes) * 60 + seconds} s"


Form = Callable[[Any], Any]
_OF_BOTH: dict[str, tuple[str, Form]] = {
    "modules": ("modules", _same),
    "prepare_cmds": ("prepare_cmds", _same),
    "env_vars": ("variables", _variables),
}
_OF_PARTITIONS = _OF_BOTH | {
    "launcher": ("launcher", _same),
    "max_jobs": ("max_jobs", int),
    "time_limit": ("time_limit", _limit),
    "features": ("features", _in_order),
    "extras": ("extras", _same),
    "resources": ("resources", _resources),
    "container_platforms": ("container_platforms", _platforms),
}


def _converted(
    entry: Mapping[str, Any],
    keys: Mapping[str, tuple[str, Form]],
    fits: Callable[[Mapping[str, Any]], bool],
    place: str,
    notes: Notes,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values under the site's keys, and those that only `reframe:` takes."""
    taken, verbatim = {}, {}
    for theirs, (key, form) in keys.items():
        if not (value := entry.get(theirs)):
            continue
        found = _formed(form, value)
        if found and fits({key: found}):
            taken[key] = found
        else:
            verbatim[theirs] = value
            notes.kept.append(f"{place}/{theirs}: unchanged under `reframe:`, as no key takes it")
    return taken, verbatim


def _formed(form: Form, value: Any) -> Any:
    """The value in the form of a site's key; None: it has none."""
    try:
        return form(value)
    except ValueError:
        return None


def _fits_partition(keys: Mapping[str, Any]) -> bool:
    return _fits(Partition, {"description": "", "role": "any", **keys})


def _fits(model: type[Partition] | type[Environment] | type[Hardware], keys: Any) -> bool:
    """Whether a site may have these keys."""
    try:
        model.model_validate(keys)
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
        self.lines: list[str] = []
        self._settings, self._features, self._notes = settings, features, notes
        self._written: dict[str, Mapping[str, Any]] = {}

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

    def _name(self, name: str, entry: Mapping[str, Any], partition: str) -> str:
        """Its own name; another one where this name has other software on another partition."""
        own = {key: value for key, value in entry.items() if key not in ("name", "target_systems")}
        if self._written.setdefault(name, own) != own:
            what = f"differs on {partition}: {name}-{partition}, by which tests must ask for it"
            self._notes.missing.append(f"environments/{name}: {what}")
            name = f"{name}-{partition}"
            self._written[name] = own
        if not any(line == f"  {name}:" for line in self.lines):
            self.lines += self._entry(name, own)
        return name

    def _entry(self, name: str, entry: Mapping[str, Any]) -> Iterator[str]:
        place = f"environments/{name}"
        taken, verbatim = _converted(entry, _OF_BOTH, _fits_environment, place, self._notes)
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
        yield f"  {name}:"
        yield f"    description: {_yaml(f'{name} of {self._settings.file.name}')}"
        yield from _keys(taken, verbatim)


def _fits_environment(keys: Mapping[str, Any]) -> bool:
    return _fits(Environment, {"description": "", **keys})


# ---- hardware


def _hardware(settings: Settings, grouped: Grouped, notes: Notes) -> dict[str, list[str]]:
    """What the settings state of each kind of node, by that of the partition of its first role."""
    entries = {one["name"]: one for one in settings.system["partitions"]}
    for name, one in entries.items():
        if one["scheduler"] == "local" and (one.get("processor") or one.get("devices")):
            what = "the hardware of this host is not in the site"
            notes.missing.append(f"partitions/{name}/processor, devices: {what}")
    found: dict[str, list[str]] = {}
    for role in grouped.roles:
        if role.hardware not in found:
            found[role.hardware] = list(_of_role(role, entries[role.partition], notes))
    return found


def _of_role(role: NewRole, entry: Mapping[str, Any], notes: Notes) -> Iterator[str]:
    place = f"partitions/{entry['name']}"
    processor = entry.get("processor") or {}
    if (target := processor.get("arch")) in TARGETS:
        yield f"    target: {target}"
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
    if devices:
        yield f"    devices: {_yaml(devices)}"
