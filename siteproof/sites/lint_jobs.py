"""Mistakes in what shapes jobs: modules that nothing loads, options of checks, verbatim blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from siteproof.sites import job_keys
from siteproof.sites.schema.shapes import near
from siteproof.sites.schema.yamlfile import Document, Loc, clip
from siteproof.sites.system import Environment, Partition, System

# Keys of ReFrame in a verbatim block, by its place: those for which the site has a key, of this or
# another name (OTHER_NAMES), which may not be given, too; those without which nothing works; and
# those of ReFrame alone.
_OF_JOBS = ("features", "modules", "env_vars", "variables", "prepare_cmds")
REPLACED: dict[str, tuple[str, ...]] = {
    "system": ("descr",),
    "partitions": (
        *("descr", "access", "launcher", *_OF_JOBS, "max_jobs", "time_limit", "extras"),
        *("resources", "container_platforms"),
    ),
    "environments": _OF_JOBS,
}
NEVER: dict[str, dict[str, str]] = {
    "system": {
        "name": "system",
        "hostnames": "recognise",
        "modules_system": "modules_system",
        "partitions": "partitions",
        "prefix": "SITEPROOF_DATA",
        "stagedir": "SITEPROOF_DATA",
        "outputdir": "SITEPROOF_DATA",
    },
    "partitions": {"name": "partitions", "scheduler": "scheduler", "environs": "environments"},
    "environments": {"name": "environments"},
}
VERBATIM: dict[str, tuple[str, ...]] = {
    "system": (
        *("resourcesdir", "sched_options", "max_local_jobs"),
        *("modules", "env_vars", "variables"),
    ),
    "partitions": ("processor", "devices", "sched_options"),
    "environments": (
        *("cc", "cxx", "ftn", "nvcc", "cppflags", "cflags", "cxxflags", "fflags", "ldflags"),
        *("extras", "resources", "target_systems"),
    ),
}


def lint_jobs(document: Document, system: System) -> None:
    """Check the keys of job_keys.py, and the blocks that ReFrame gets unchanged."""
    _block(document, (), "system", system)
    nothing_loads = system.modules_system == "nomod" and not document.spoilt(("modules_system",))
    parts: Iterable[tuple[str, Mapping[str, Partition | Environment]]] = (
        ("partitions", system.partitions),
        ("environments", system.environments),
    )
    for section, found in parts:
        for name, one in found.items():
            _block(document, (section, name), section, one)
            if one.modules and nothing_loads:
                what = f"nothing loads module '{clip(one.modules[0])}'"
                remedy = "Name it at the top of the file: 'modules_system: lmod'"
                document.add((section, name, "modules"), what, hint=remedy)
    for name, partition in system.partitions.items():
        loc = ("partitions", name)
        _options(document, (*loc, "access"), partition.access, step=False)
        _options(document, (*loc, "srun_options"), partition.srun_options, step=True)


def _options(document: Document, loc: Loc, options: Iterable[str], *, step: bool) -> None:
    for option in options:
        later = (part for part in option.split()[1:] if part.startswith("-"))
        names = map(job_keys.job_option, (option, *later))
        if any(job_keys.is_of_checks(name, step=step) for name in names):
            document.add(loc, f"'{clip(option)}' is set by the check", hint="Remove it")


def _block(
    document: Document, loc: Loc, place: str, given: System | Partition | Environment
) -> None:
    """Check a verbatim block: each key is ReFrame's, and no other key sets the same."""
    replaced, never = REPLACED[place], NEVER[place]
    for key in given.reframe:
        here = (*loc, "reframe", key)
        if key in never:
            document.add(here, f"'{clip(key)}' is set by `{never[key]}`", hint="Remove it")
        elif key in replaced:
            own = given.OTHER_NAMES.get(key, key)
            if own in given.model_fields_set and key not in ("descr", "access"):
                what = f"'{clip(key)}' replaces `{own}`, which is also given"
                document.add(here, what, hint=f"Give `{own}` alone")
        elif key not in VERBATIM[place]:
            allowed = [*VERBATIM[place], *replaced]
            close = near(document, here, key, allowed)
            document.add(here, f"ReFrame has no key '{clip(key)}'{close}", allowed)
