"""ReFrame's options: one that would do nothing here, or lose a result, is refused in one line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from siteproof.errors import UserError
from siteproof.schema.shapes import hint
from siteproof.sites import Site
from siteproof.sites.catalogue import MODES

_DATA = "SITEPROOF_DATA names the folder of all data"
_NODES = "Use -S nodes=..., with all, idle, a count, or a node set"
_MODULES = "Name it in system.yaml: 'reframe: {modules_system: ...}'"


@dataclass(frozen=True)
class _Refused:
    """What no run of ours can honour. variable: of the environment, which says the same."""

    option: str
    what: str
    hint: str = ""
    variable: str = ""


# By the name under which ReFrame keeps the value.
_NEVER = {
    "stage": _Refused("--stage", "a lost session would not be found there", _DATA, "RFM_STAGE_DIR"),
    "output": _Refused("--output", "reports lie in the data folder", _DATA, "RFM_OUTPUT_DIR"),
    "perflogdir": _Refused("--perflogdir", "samples would not go there", _DATA, "RFM_PERFLOG_DIR"),
    "timestamp": _Refused(
        "--timestamp", "a session has its own folder already", "", "RFM_TIMESTAMP_DIRS"
    ),
    "clean_stagedir": _Refused(
        "--dont-restage", "an earlier job's output would count", "", "RFM_CLEAN_STAGEDIR"
    ),
    "save_log_files": _Refused(
        "--save-log-files",
        "the log lies in the data folder's output/ already",
        "",
        "RFM_SAVE_LOG_FILES",
    ),
    "skip_sanity_check": _Refused("--skip-sanity-check", "nothing would be collected"),
    "hooks": _Refused("--disable-hook", "a check without its hooks proves nothing"),
    "distribute": _Refused("--distribute", "every node measures itself in one job", _NODES),
    "flex_alloc_nodes": _Refused("--flex-alloc-nodes", "the nodes are named", _NODES),
    "flex_alloc_strict": _Refused(
        "--flex-alloc-strict", "the nodes are named", _NODES, "RFM_FLEX_ALLOC_STRICT"
    ),
}
_WITHOUT_MODULES = {
    name: _Refused(option, "the site has no modules system", _MODULES, variable)
    for name, option, variable in (
        ("user_modules", "--module", "RFM_USER_MODULES"),
        ("unload_modules", "--unload-module", "RFM_UNLOAD_MODULES"),
        ("module_mappings", "--map-module", "RFM_MODULE_MAPPINGS"),
        ("module_map_file", "--module-mappings", "RFM_MODULE_MAP_FILE"),
        ("module_paths", "--module-path", ""),
        ("purge_env", "--purge-env", "RFM_PURGE_ENVIRONMENT"),
        ("non_default_craype", "--non-default-craype", "RFM_NON_DEFAULT_CRAYPE"),
    )
}
# What a check's job says itself, and what hides the job from ReFrame: sbatch's options.
_JOBS_LETTERS = "wFNxnatDoeWQ"
_JOBS_WORDS = (
    "nodelist", "nodefile", "nodes", "exclude", "ntasks", "ntasks-per-node", "array", "time",
    "time-min", "chdir", "output", "error", "requeue", "test-only", "wait", "wrap", "parsable",
    "quiet",
)  # fmt: skip


def refuse(given: Any, site: Site) -> None:
    """Raise UserError for what a run on this site cannot honour.

    given: ReFrame's options as it has read them, variables of the environment included.
    """
    if given.mode and given.mode not in MODES:
        raise UserError("--mode", f"unknown mode '{given.mode}'", MODES)
    if vars(given.cmd_options).get("prefix") is not None:  # the variable is many a user's own
        raise UserError("--prefix", "does nothing, as each folder is named", hint=_DATA)
    without = site.system.reframe.get("modules_system", "nomod") == "nomod"
    for name, refused in {**_NEVER, **(_WITHOUT_MODULES if without else {})}.items():
        if _changes(name, getattr(given, name, None)):
            said = vars(given.cmd_options).get(name)
            where = refused.option if said or name == "timestamp" and said is not None else ""
            where = where or (refused.variable if refused.variable in os.environ else "")
            raise UserError(where or refused.option, refused.what, hint=refused.hint)
    _refuse_partition(given.system or "", site)
    _refuse_environments(given.prgenv or (), site)
    for option, words in (("-S", given.vars), ("-P", given.parameterize)):
        for word in words or ():
            if "=" not in word:
                raise UserError(f"{option} {word}", "no value", f"{word}=VALUE")
    for word in given.job_options or ():
        _refuse_job_option(word, site)


def _changes(name: str, value: object) -> bool:
    """Whether a value of an option is another than ReFrame's own."""
    if name == "clean_stagedir":
        return value is False
    return value not in (None, False, "", [])


def _refuse_partition(system: str, site: Site) -> None:
    name = system.partition(":")[2]
    known = site.system.partitions
    if name and name not in known:
        raise UserError(f"--system {system}", f"no partition '{name}'{hint(name, known)}", known)


def _refuse_environments(patterns: Iterable[str], site: Site) -> None:
    """Each -p must be that of an environment; ReFrame looks for its pattern at a name's begin."""
    for pattern in patterns:
        known = site.system.environments
        try:
            found = any(re.match(pattern, name) for name in known)
        except re.error as error:
            raise UserError(f"-p {pattern}", f"is no pattern: {error}", known) from None
        if not found:
            raise UserError(f"-p {pattern}", f"no environment{hint(pattern, known)}", known)


def _refuse_job_option(word: str, site: Site) -> None:
    name = job_option(word)
    if all(partition.scheduler == "local" for partition in site.system.partitions.values()):
        raise UserError(f"-J {name}", f"no scheduler on {site.name} that could take it")
    known = _JOBS_LETTERS if len(name) == 1 else _JOBS_WORDS
    if any(one.startswith(name) for one in known):
        instead = "Use -S nodes=... or -S time_limit=...; -J is for account, reservation and qos"
        raise UserError(f"-J {name}", "is the check's to say", hint=instead)


def job_option(word: str) -> str:
    """The name in what -J passes on: a letter, or a word that Slurm may let be shortened."""
    said = word.removeprefix("#SBATCH").strip()
    name = re.split(r"[=\s]", said.lstrip("-"), maxsplit=1)[0]
    return name[:1] if said.startswith("-") and not said.startswith("--") else name


def of_jobs(words: Iterable[str] | None) -> list[str]:
    """What -J passes on, as words of a command line; ReFrame writes them into a script."""
    found = []
    for word in words or ():
        name, _, value = word.partition("=")
        if word.startswith("#") and not word.startswith("#SBATCH"):
            continue  # of another scheduler
        if word.startswith(("-", "#")):
            found += shlex.split(word.removeprefix("#SBATCH"))
        else:
            found += [f"-{name}", *([value] if value else [])] if len(name) == 1 else [f"--{word}"]
    return found


def refuse_unknown(
    given: Any, promised: Iterable[str], checks: Sequence[Any], options: Iterable[str]
) -> None:
    """Raise UserError for -S, -P, -n, -x and -T that speak of no check; ReFrame ignores them.

    promised: all names of checks. checks: those that were loaded. options: names set by -S.
    """
    names = {*promised, *(type(check).__name__ for check in checks)}
    variables: dict[str, set[str]] = {}
    for check in checks:
        kind = type(check)
        variables.setdefault(kind.__name__, set()).update(kind.var_space, kind.param_space)
    for name in options:
        if not name.startswith("_rfm"):
            _refuse_variable("-S", name, names, variables)
    for word in (given.parameterize or ()) if given else ():
        _refuse_variable("-P", word.partition("=")[0], names, variables)
    if given and checks:
        shown = names | {check.display_name.replace(" ", "") for check in checks}
        tags = {tag for check in checks for tag in check.tags}
        unknown = "no check is called so"
        if any(_matches(p, shown) for p in given.names or ()):  # or none is left: refused later
            _refuse_unmatched("-n", given.names, shown, unknown, names)
        _refuse_unmatched("-x", given.exclude_names, shown, unknown, names)
        _refuse_unmatched("-T", given.exclude_tags, tags, "no check has such a tag", tags)


def _refuse_variable(
    option: str, name: str, names: Iterable[str], variables: Mapping[str, set[str]]
) -> None:
    scope, dot, variable = name.partition(".")
    if dot and scope not in names:
        raise UserError(
            f"{option} {name}", f"no check '{scope}'{hint(scope, names)}", sorted(names)
        )
    if dot and scope in variables and variable not in variables[scope]:
        near = hint(variable, variables[scope])
        raise UserError(f"{option} {name}", f"{scope} has no such variable{near}")
    known = set().union(*variables.values())
    if not dot and variables and scope not in known:
        raise UserError(f"{option} {name}", f"no check has this variable{hint(scope, known)}")


def _matches(pattern: str, known: Iterable[str]) -> bool:
    """Whether a pattern finds something; what is no plain pattern is left to ReFrame."""
    if pattern.startswith("/") or "@" in pattern:
        return True
    try:
        return any(re.search(pattern, name) for name in known)
    except re.error:
        return True


def _refuse_unmatched(
    option: str,
    patterns: Iterable[str] | None,
    among: Iterable[str],
    what: str,
    known: Iterable[str],
) -> None:
    for pattern in patterns or ():
        if not _matches(pattern, among):
            near = hint(pattern, known)
            raise UserError(f"{option} {pattern}", f"{what}{near}", sorted(known))
