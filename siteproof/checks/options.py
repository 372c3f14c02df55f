"""ReFrame's options: those that have no effect here, or lose a result, are refused in one line.

What the sweeps of a run cost at most: printed before anything is submitted, or refused.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from reframe.core.logging import getlogger

from siteproof.checks import loading
from siteproof.checks.selection import TOO_FEW, UNSHARED
from siteproof.errors import UserError, hint
from siteproof.record.manifest import KNOB
from siteproof.record.pair_units import grouped
from siteproof.sites import Site, job_keys
from siteproof.sites.catalogue import MODES
from siteproof.sweeps import caps
from siteproof.sweeps.keys import Sweep
from siteproof.units import count

_DATA = "SITEPROOF_DATA names the folder of all data"
_NODES = "Use -S nodes=..., with all, idle, a count, or a node set"
_MODULES = "Name it in system.yaml: 'modules_system: lmod'"


@dataclass(frozen=True)
class _Refused:
    """An option that no run can honour. variable: of the environment, with the same effect."""

    option: str
    what: str
    hint: str = ""
    variable: str = ""


# By the name under which ReFrame keeps the value.
_NEVER = {
    "stage": _Refused("--stage", "lost sessions would not be found there", _DATA, "RFM_STAGE_DIR"),
    "output": _Refused("--output", "reports belong in the data folder", _DATA, "RFM_OUTPUT_DIR"),
    "perflogdir": _Refused(
        "--perflogdir", "samples would not be written there", _DATA, "RFM_PERFLOG_DIR"
    ),
    "timestamp": _Refused(
        "--timestamp", "each session already has its own folder", "", "RFM_TIMESTAMP_DIRS"
    ),
    "clean_stagedir": _Refused(
        "--dont-restage", "output of an earlier job would count", "", "RFM_CLEAN_STAGEDIR"
    ),
    "save_log_files": _Refused(
        "--save-log-files",
        "the log is already in output/ of the data folder",
        "",
        "RFM_SAVE_LOG_FILES",
    ),
    "skip_sanity_check": _Refused("--skip-sanity-check", "no samples would be collected"),
    "hooks": _Refused("--disable-hook", "a check without its hooks is not valid"),
    "distribute": _Refused("--distribute", "every node measures itself in one job", _NODES),
    "flex_alloc_nodes": _Refused("--flex-alloc-nodes", "checks name their nodes", _NODES),
    "flex_alloc_strict": _Refused(
        "--flex-alloc-strict", "checks name their nodes", _NODES, "RFM_FLEX_ALLOC_STRICT"
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


def refuse(given: Any, site: Site) -> None:
    """Raise UserError for what a run on this site cannot honour.

    given: ReFrame's options as it has read them, variables of the environment included.
    """
    if given.mode and given.mode not in MODES:
        raise UserError("--mode", f"unknown mode '{given.mode}'", MODES)
    if (mode := mode_of(given, site)) not in MODES:
        raise UserError("-S mode", f"unknown mode '{mode}'", MODES)
    on_command_line = vars(given.cmd_options)
    if on_command_line.get("prefix") is not None:  # RFM_PREFIX may be for the user's own tests
        raise UserError("--prefix", "has no effect here", hint=_DATA)
    table = dict(_NEVER)
    if site.system.modules_system == "nomod":
        table |= _WITHOUT_MODULES
    for name, refused in table.items():
        if _is_changed(name, getattr(given, name, None)):
            where = _given_by(name, refused, on_command_line)
            raise UserError(where, refused.what, hint=refused.hint)
    name, known = (given.system or "").partition(":")[2], site.system.partitions
    if name and name not in known:
        what = f"no partition '{name}'{hint(name, known)}"
        raise UserError(f"--system {given.system}", what, known)
    _refuse_environments(given.prgenv or (), site)
    _refuse_without_value("-S", given.vars)
    _refuse_without_value("-P", given.parameterize)
    for option in given.job_options or ():
        _refuse_job_option(option, site)


def mode_of(given: Any, site: Site) -> str:
    """The mode of the run, for tests that have no variable for it."""
    for setting in reversed(given.vars or ()):
        name, _, value = setting.partition("=")
        if name == "mode":
            return str(value)
    return str(given.mode or site.system.mode)


def _is_changed(name: str, value: object) -> bool:
    """Whether a value of an option differs from ReFrame's default."""
    if name == "clean_stagedir":
        return value is False
    return value not in (None, False, "", [])


def _given_by(name: str, refused: _Refused, on_command_line: Mapping[str, Any]) -> str:
    """The option, or the variable of the environment where only that gives it."""
    value = on_command_line.get(name)
    # The option --timestamp may have no value.
    has_option = value is not None if name == "timestamp" else bool(value)
    if not has_option and refused.variable in os.environ:
        return refused.variable
    return refused.option


def _refuse_without_value(option: str, settings: Iterable[str] | None) -> None:
    for setting in settings or ():
        if "=" not in setting:
            raise UserError(f"{option} {setting}", "no value", f"{setting}=VALUE")


def _refuse_environments(patterns: Iterable[str], site: Site) -> None:
    """Each -p must match an environment; ReFrame matches from the beginning of a name."""
    for pattern in patterns:
        known = site.system.environments
        try:
            found = any(re.match(pattern, name) for name in known)
        except re.error as error:
            raise UserError(f"-p {pattern}", f"not a regular expression: {error}", known) from None
        if not found:
            raise UserError(f"-p {pattern}", f"no environment{hint(pattern, known)}", known)


def _refuse_job_option(option: str, site: Site) -> None:
    name = job_keys.job_option(option)
    if all(partition.scheduler == "local" for partition in site.system.partitions.values()):
        raise UserError(f"-J {name}", f"no scheduler at site {site.name}")
    if job_keys.is_of_checks(name):
        instead = "Use -S nodes=... or -S time_limit=...; -J is for account, reservation and qos"
        raise UserError(f"-J {name}", "is set by the check", hint=instead)


def of_jobs(given: Iterable[str] | None) -> list[str]:
    """What -J passes on, as words of a command line; ReFrame writes them into a script."""
    found = []
    for option in given or ():
        name, _, value = option.partition("=")
        if option.startswith("#") and not option.startswith("#SBATCH"):
            continue  # of another scheduler
        if option.startswith(("-", "#")):
            found += shlex.split(option.removeprefix("#SBATCH"))
        elif len(name) == 1:
            found += [f"-{name}", value] if value else [f"-{name}"]
        else:
            found.append(f"--{option}")
    return found


def refuse_unknown(
    given: Any, promised: Iterable[str], checks: Sequence[Any], options: Iterable[str]
) -> None:
    """Raise UserError for -S, -P, -n, -x and -T that match no check; ReFrame ignores them.

    promised: all names of checks. checks: those that were loaded. options: names set by -S.
    """
    names = {*promised, *(type(check).__name__ for check in checks)}
    variables: dict[str, set[str]] = {}
    for check in checks:
        kind = type(check)
        variables.setdefault(kind.__name__, set()).update(kind.var_space, kind.param_space.params)
    for name in options:
        _refuse_of_sweep(name, checks)
        if not name.startswith("_rfm"):
            _refuse_variable("-S", name, names, variables)
    if not given:
        return
    for setting in given.parameterize or ():
        _refuse_variable("-P", setting.partition("=")[0], names, variables)
    if checks:
        shown = names | {check.display_name.replace(" ", "") for check in checks}
        tags = {tag for check in checks for tag in check.tags}
        _refuse_unmatched("-n", given.names, shown, "no such check", names)
        _refuse_unmatched("-x", given.exclude_names, shown, "no such check", names)
        _refuse_unmatched("-T", given.exclude_tags, tags, "no check has this tag", tags)


def _refuse_of_sweep(name: str, checks: Sequence[Any]) -> None:
    """Refuse a knob, and what is no variable of a sweep that is named, with what may be capped."""
    if any(name in type(check).var_space for check in checks):
        return
    for check in checks:
        file = getattr(check, "sweep_file", None)
        if file and (what := _not_of_sweep(name, type(check), file.sweep)):
            raise UserError(f"-S {name}", what, caps.names_of(file.sweep))


def _not_of_sweep(name: str, kind: Any, sweep: Sweep) -> str:
    """Why -S cannot set it in this sweep's test; empty if it can, or another one may be meant.

    The last part of a knob's name (`mtu`) counts as its name.
    """
    scope, _, rest = name.partition(".")
    test = kind.__name__
    variable = rest if scope == test else name
    if variable in kind.var_space:
        return ""
    turned = {one for one in {*sweep.varied, *sweep.fixed} if one.startswith(KNOB)}
    if variable in turned | {knob.rpartition(".")[2] for knob in turned}:
        return f"{test} cannot be capped by a knob"
    if scope == test:
        return f"{test} has no such variable{hint(variable, caps.names_of(sweep))}"
    return ""


def _refuse_variable(
    option: str, name: str, names: Iterable[str], variables: Mapping[str, set[str]]
) -> None:
    """variables: of each loaded check. -S without a check's name sets it in all that have it."""
    scope, dot, variable = name.partition(".")
    where = f"{option} {name}"
    if not dot:
        known = set().union({"mode"}, *variables.values())  # a plain test has no mode of its own
        if variables and name not in known:
            raise UserError(where, f"no check has this variable{hint(name, known)}")
    elif scope not in names:
        raise UserError(where, f"no check '{scope}'{hint(scope, names)}", sorted(names))
    elif scope in variables and variable not in variables[scope]:
        near = hint(variable, variables[scope])
        raise UserError(where, f"{scope} has no such variable{near}")


def _matches(pattern: str, known: Iterable[str]) -> bool:
    """Whether a pattern matches; what is not a plain pattern is left to ReFrame."""
    return pattern.startswith("/") or "@" in pattern or found_in(pattern, known)


def found_in(pattern: str, known: Iterable[str]) -> bool:
    """Whether a pattern is found in a name, or is none that Python reads."""
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


@dataclass
class Cost:
    """All jobs of one sweep. nodes: of the widest one; why: of points that are left out."""

    points: int = 0
    jobs: int = 0
    nodes: int = 0
    node_hours: float = 0.0
    left_out: int = 0
    above_caps: int = 0
    why: str = TOO_FEW

    def __str__(self) -> str:
        text = (
            f"{count(self.points, 'point')} in {count(self.jobs, 'job')}, on "
            f"{count(self.nodes, 'node')} at most, {self.node_hours:.1f} node-hours at most"
        )
        if self.left_out:
            text += f"; {count(self.left_out, 'point')} left out, {self.why}"
        if self.above_caps:
            text += f"; {count(self.above_caps, 'point')} above the caps of -S, not measured"
        return text


def of(costs: Iterable[Sequence[float]]) -> Cost:
    """The cost of jobs. costs: each one's nodes, seconds, points, points left out,
    points above the caps, and bytes written.
    """
    total = Cost()
    for nodes, seconds, points, left_out, above_caps, _ in costs:
        total.left_out += int(left_out)
        total.above_caps += int(above_caps)
        if points:
            total.jobs += 1
            total.points += int(points)
            total.nodes = max(total.nodes, int(nodes))
            total.node_hours += nodes * seconds / 3600
    return total


def refuse_above(site: Site, testcases: Sequence[Any]) -> None:
    """End a run that may take more node-hours than the site's budget of its mode."""
    for mode, budget in site.system.budgets.items():
        of_mode = (case for case in testcases if getattr(case.check, "mode", "") == mode)
        hours = sum(_node_hours(case) for case in of_mode)
        where = f"{site.name}/system.yaml: budgets"
        _refuse_beyond(budget, where, f"a run in mode {mode}", hours)


def _refuse_beyond(budget: float | Decimal, where: str, what: str, hours: float) -> None:
    if hours > budget:
        what = f"{what} may take {hours:.1f} node-hours, the budget is {budget}"
        remedy = "Run a part of it (-n, -S nodes), or give a larger budget"
        loading.refuse(UserError(where, what, hint=remedy))


def _node_hours(case: Any) -> float:
    """What a test takes at most; none of what a plain test, or one on this host, takes is known."""
    if case.check.local:
        return 0.0
    if hasattr(case.check, "costs"):
        nodes, seconds, *_ = _case_cost(case)
        return nodes * seconds / 3600
    if not hasattr(case.check, "nodes_on") or case.partition.name in case.check.unoffered:
        return 0.0
    return float(case.check.nodes_on(case.partition.name) * case.check.seconds() / 3600)


def report_costs(testcases: Sequence[Any]) -> None:
    """Print what the sweeps of a run cost; one beyond its budget ends the run."""
    of_sweeps = [case for case in testcases if hasattr(case.check, "sweep_file")]
    for refused in filter(None, (case.check.refused for case in of_sweeps)):
        loading.refuse(refused)
    for name, cases in grouped((type(case.check).__name__, case) for case in of_sweeps).items():
        cost = of(_case_cost(case) for case in cases)
        places = filter(None, (getattr(case.check, "there", None) for case in cases))
        if not all(there.shared for there in places):
            cost.why = UNSHARED
        file, of_budget = cases[0].check.sweep_file, ""
        if file and file.sweep.budget is not None:
            budget, of_budget = file.sweep.budget, f" (budget {file.sweep.budget})"
            _refuse_beyond(budget, f"{file.path.name}: budget", "the sweep", cost.node_hours)
        getlogger().info(f"{name}: {cost}{of_budget}")


def _case_cost(case: Any) -> tuple[float, ...]:
    """As `cost_on` of the check; the seconds follow a time limit that -S sets."""
    check = case.check
    nodes, seconds, *points = check.costs[case.partition.fullname]
    return nodes, seconds if check.by_points else check.seconds(), *points
