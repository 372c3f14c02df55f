"""The ReFrame settings of a centre: read for `siteproof port` and `import`, and kept in our runs.

ReFrame's own loader reads them. A settings.py is code of the user: both commands run it as the user
who calls them, and never as root.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from siteproof import files
from siteproof.errors import UserError, harmless, hint

CODE, DATA = (".py",), (".json", ".yaml", ".yml")
OTHERS = ("autodetect_methods", "general", "modes", "storage")  # sections that are only named
HANDLERS = ("handlers", "handlers_perflog")
# General options that change no run, only what is reported of it. The others, and modes, could set
# what siteproof.checks.options refuses.
REPORTING = (
    *("compress_report", "perf_info_level", "report_file", "report_junit"),
    *("table_format", "table_format_delim"),
)
COMPILERS = ("cc", "cxx", "ftn")  # where an environment names none, ReFrame has Cray's names
LONGEST = 300  # characters of an error in the settings
MAX_VALUES = 100_000  # values in them: YAML can name one value many times over


@dataclass(frozen=True)
class Settings:
    """One system of a settings file, as plain data.

    environments: by partition, those of its `environs` that are defined for it. sections: others
    that the file has. unknown: keys that ReFrame does not have, or values that it does not take.
    launchers: those that the file itself registers.
    """

    file: Path
    system: Mapping[str, Any]
    environments: Mapping[str, Mapping[str, Mapping[str, Any]]]
    sections: tuple[str, ...]
    unknown: tuple[str, ...]
    launchers: frozenset[str]


def read(path: Path, name: str = "") -> Settings:
    """One system of a file: that of the name, else that of this host as ReFrame finds it.

    Raises UserError for what ReFrame would refuse.
    """
    config = _loaded(path)
    others = tuple(part for part in OTHERS if part in config)
    others += ("logging",) if _has_handlers(config) else ()
    found = config["systems"][:-1]  # the last is ReFrame's
    chosen = _chosen(path, config, [one["name"] for one in found], name)
    system = next(one for one in found if one["name"] == chosen)
    system = _tried(path, lambda: _plain(system))
    config["systems"][:] = [system]
    unknown = list(_without_unknown(config, system))
    _validate(path, config)
    _refuse_twice(path, system)
    defaults = {key: config.schema["defaults"][f"environments/{key}"] for key in COMPILERS}
    offered: dict[str, dict[str, Any]] = {}
    for partition in system["partitions"]:
        config.select_subconfig(f"{system['name']}:{partition['name']}", ignore_resolve_errors=True)
        known = _tried(path, lambda: _plain(config["environments"]))
        defined = {one["name"]: one for one in known}
        names = [one for one in partition.get("environs", []) if one in defined]
        offered[partition["name"]] = {one: defaults | defined[one] for one in names}
    return Settings(path, system, offered, others, tuple(unknown), _own_launchers(system))


def format_in(path: Path) -> str:
    """The `format` of the perflogs that a file has, with its `format_perfvars` once.

    Raises UserError.
    """
    config = _loaded(path)
    from reframe.core.settings import site_configuration

    try:
        found = _formats(config) - _formats(site_configuration)
    except (LookupError, AttributeError, TypeError):
        raise UserError(path, "its 'logging' is not as in the settings of ReFrame") from None
    if len(found) == 1:
        return found.pop()
    what = f"{len(found)} formats of its own in the 'filelog' of 'logging: handlers_perflog'"
    raise UserError(path, what, ["exactly one"], hint="Give the format itself")


def _formats(config: Any) -> set[str]:
    return {
        handler["format"].replace("%(check_perfvalues)s", handler.get("format_perfvars", ""))
        for section in config["logging"]
        for handler in section.get("handlers_perflog", ())
        if handler["type"] == "filelog" and "format" in handler
    }


def _loaded(path: Path) -> Any:
    """The file and ReFrame's own settings, joined by ReFrame. Raises UserError."""
    if path.suffix not in CODE + DATA:
        raise UserError(path, "is not a file of ReFrame settings", [*CODE, *DATA])
    if not path.exists():
        raise UserError(path, "no such file")
    files.read_named(path)  # no pipe, and of the size of a file that people write
    if path.suffix in CODE and os.geteuid() == 0:
        what, remedy = "is a program, which is not run as root", "Run the command as yourself"
        raise UserError(path, what, hint=remedy)
    from reframe.core.config import load_config

    with redirect_stdout(sys.stderr):  # what the file prints is not the answer
        config = _tried(path, lambda: load_config(str(path)))
    known = config.schema["properties"]
    _refuse_huge(path, [config[section] for section in known if section in config])
    return config


def _refuse_huge(path: Path, values: list[Any]) -> None:
    """Raise a UserError for settings that would fill the memory, or have no end."""
    for _ in range(MAX_VALUES):
        if not values:
            return
        one = values.pop()
        if isinstance(one, Mapping):
            values += one.values()
        elif isinstance(one, list | tuple):
            values += one
    raise UserError(
        path, "has too many values", f"at most {MAX_VALUES}, each counted where it is named"
    )


def _tried(path: Path, step: Callable[[], Any]) -> Any:
    """What a step of ReFrame gives; whatever the file does wrong is one line. Raises UserError."""
    try:
        return step()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        cause = error.__cause__ or error  # ReFrame wraps some
        raise UserError(_place(path, cause), _words(cause)) from None


def _place(path: Path, error: BaseException) -> str:
    """The file, and the last of its lines that led to the error."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{path}:{error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == path.absolute()
    ]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _words(error: BaseException) -> str:
    text = " ".join(harmless(str(error).replace("\n", " ")).split())
    if isinstance(error, KeyError):
        text = f"there is no {text}"
    return f"cannot be read: {type(error).__name__}: {text}"[:LONGEST].removesuffix(": ")


def _has_handlers(config: Any) -> bool:
    """Whether the file has a log of its own: ReFrame's own settings have some as well."""
    from reframe.core.settings import site_configuration

    [own] = site_configuration["logging"]
    return any(one.get(key, own[key]) != own[key] for one in config["logging"] for key in HANDLERS)


def _chosen(path: Path, config: Any, names: list[str], wanted: str) -> str:
    """The name of a system. Raises UserError."""
    if wanted and wanted not in names:
        what = f"has no system '{wanted[:40]}'{hint(wanted, names)}"
        remedy = "Tests name the system, so the site has its name"
        raise UserError(path, what, names, remedy)
    from siteproof.checks import adapter  # it imports ReFrame

    here: str = wanted or _tried(path, lambda: adapter.system_of_this_host(config))
    if here not in names:
        raise UserError(path, "no system has a pattern that fits this host", names, "Name one")
    return here


def _without_unknown(config: Any, system: dict[str, Any]) -> Iterable[str]:
    """Take out, and name, what ReFrame's schema does not have: it may be of an older ReFrame."""
    schema = config.schema["properties"]
    of_system = schema["systems"]["items"]["properties"]
    of_partition = of_system["partitions"]["items"]["properties"]
    yield from _cut(system, of_system, "")
    known = of_system["modules_system"]["enum"]
    if (loads := system.get("modules_system", known[0])) not in known:
        system["modules_system"] = "envmod" if "envmod" in known else "tmod4"
        what = f"this ReFrame has no '{loads}'; {system['modules_system']} is written"
        yield f"modules_system: {what}"
    for partition in system.get("partitions", []):
        place = f"partitions/{partition.get('name')}/"
        yield from _cut(partition, of_partition, place)
        launcher = partition.get("launcher")
        if isinstance(launcher, str) and not _registered(launcher):
            other = "local" if partition.get("scheduler") == "local" else "srun"
            partition["launcher"] = other
            yield f"{place}launcher: this ReFrame has no '{harmless(launcher)[:40]}'; it is {other}"
    for one in config["environments"]:
        of_environment = schema["environments"]["items"]["properties"]
        yield from _cut(one, of_environment, f"environments/{one.get('name')}/")


def _refuse_twice(path: Path, system: Mapping[str, Any]) -> None:
    """Raise a UserError for a partition that is there twice."""
    names = [one["name"] for one in system["partitions"]]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise UserError(path, f"systems/{system['name']}/partitions: '{name}' a second time")


def _own_launchers(system: Mapping[str, Any]) -> frozenset[str]:
    launchers = {one["launcher"] for one in system["partitions"]}
    return frozenset(one for one in launchers if not _registered(one).startswith("reframe."))


def _registered(launcher: str) -> str:
    """The module of a launcher, which the settings may have registered; "" if there is none."""
    from reframe.core.backends import getlauncher
    from reframe.core.exceptions import ConfigError

    try:
        return str(getlauncher(launcher).__module__)
    except ConfigError:
        return ""


def _cut(entry: dict[str, Any], known: Mapping[str, Any], place: str) -> Iterable[str]:
    for key in sorted(entry.keys() - known.keys()):
        del entry[key]
        yield f"{place}{harmless(str(key))[:40]}: ReFrame has no such key"


def _validate(path: Path, config: Any) -> None:
    """Raise a UserError with the place of what ReFrame's schema refuses."""
    from reframe.core.exceptions import ConfigError

    try:
        config.validate()
    except ConfigError as error:
        cause: Any = error.__cause__
        place = "/".join(_keys(config, getattr(cause, "absolute_path", ())))
        what = harmless(getattr(cause, "message", str(error)))[:LONGEST]
        raise UserError(path, f"{place}: {what}" if place else what) from None


def _keys(entry: Any, path: Iterable[str | int]) -> Iterable[str]:
    """The steps to a value, each part of a list by its name, if it has one."""
    for step in path:
        entry = entry[step]
        named = isinstance(step, int) and isinstance(entry, Mapping) and "name" in entry
        yield harmless(str(entry["name"] if named else step))[:40]


def _plain(value: Any) -> Any:
    """The same as plain data: anything else is its text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def joined(own: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Our own settings with the logs, the storage and the reports of a centre's.

    earlier: what ReFrame has read before, for our system. All else is the site's.
    """
    [general], [storage] = own["general"], own["storage"]
    [given], [stored] = earlier.get("general", [{}]), earlier.get("storage", [{}])
    reporting = {key: given[key] for key in REPORTING if key in given}
    return {
        **own,
        "general": [{**general, **reporting}],
        "storage": [{**storage, **stored}],
        "logging": [_logging(own["logging"][0], earlier["logging"][0])],
    }


def _logging(own: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The handlers of both, but for ReFrame's own and what would print all twice."""
    from reframe.core.settings import site_configuration

    [builtin] = site_configuration["logging"]
    joined = dict(own)
    for key in HANDLERS:
        added = [one for one in theirs.get(key, []) if one not in builtin[key]]
        joined[key] = [*own[key], *(one for one in added if one.get("type") != "stream")]
    return joined


def logs_one_record(earlier: Mapping[str, Any]) -> bool:
    """Whether a centre's perflogs have one record a test, and not one a variable."""
    [given] = earlier["logging"]
    return not (given.get("perflog_multiline") or given.get("perflog_compat"))
