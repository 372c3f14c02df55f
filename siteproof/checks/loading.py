"""What ReFrame only warns of while it loads and selects checks is refused here, in one line.

ReFrame skips a check file with an error in it, and ends with exit code 0: a check that is missing
would look like a check that passed.

From the sweep files to ReFrame's test classes.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from traceback import format_exception_only
from typing import NoReturn

from reframe.core.builtins import parameter, variable
from reframe.core.meta import make_test

from siteproof import files, installed
from siteproof.errors import ExitCode, UserError, UserErrors, hint
from siteproof.sites import Metric, Site, catalogue
from siteproof.sites.catalogue import Setting
from siteproof.sites.schema import yamlfile
from siteproof.sweeps import caps, reading
from siteproof.sweeps.keys import SWEEPS_ONLY, TOOLS, whole
from siteproof.sweeps.reading import FOLDER, SweepFile, classes

MAX_NUMBER = 10**9  # of a number that -S sets


def report(what: object) -> None:
    """Print it at once on stderr, in addition to what ReFrame prints."""
    for line in str(what).splitlines():
        print(f"siteproof: {line}", file=sys.stderr, flush=True)


class End(SystemExit):
    """The end of the run, and not the exit() of a file of tests."""


def refuse(error: UserError | UserErrors) -> NoReturn:
    """End the whole run; ReFrame catches other exceptions and goes on without the check."""
    report(error)
    raise End(ExitCode.USAGE)


def refuse_number(check: object, name: str, least: int, most: int = MAX_NUMBER) -> None:
    """End the run if a variable of a check is out of range."""
    value = getattr(check, name)
    if not least <= value <= most:
        where = f"-S {type(check).__name__}.{name}"
        refuse(UserError(where, f"{value} is out of range", f"{least} to {most}"))


def refuse_setting(check: object, name: str, setting: Setting) -> None:
    """End the run if a variable of a check is not what the catalogue allows; 0 is the default."""
    value, most = getattr(check, name), setting.most or MAX_NUMBER
    if value and not (setting.allows(f"{value}") and value <= most):
        least = "0" if setting.least <= 1 else f"0, or {setting.least}"
        where = f"-S {type(check).__name__}.{name}"
        refuse(UserError(where, f"{value} is out of range", f"{least} to {most}"))


def mebibytes(check: object, name: str) -> int:
    """A variable in MiB: 64, or a size such as 1GiB. Raises UserError at anything else."""
    text = str(getattr(check, name))
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    value = whole(text, sizes=True)
    if not value or value % files.MIB:
        where = f"-S {type(check).__name__}.{name}"
        raise UserError(where, f"'{text}' is not a size in MiB", "64, 64MiB, 1GiB")
    return value // files.MIB


def refuse_choice(check: object, name: str, allowed: Sequence[str | int]) -> None:
    """End the run if a variable of a check has none of the allowed values."""
    if error := wrong_choice(check, name, allowed):
        refuse(error)


def wrong_choice(check: object, name: str, allowed: Iterable[str | int]) -> UserError | None:
    """The mistake of a variable of a check that has none of the allowed values."""
    value, words = f"{getattr(check, name)}", [f"{one}" for one in allowed]
    where = f"-S {type(check).__name__}.{name}"
    what = f"unknown value '{value}'{hint(value, words)}"
    return None if value in words else UserError(where, what, words)


def promised(
    catalogue: Mapping[str, Metric], clone: Path, without: Collection[str] = ()
) -> dict[Path, set[str]]:
    """The checks that the catalogue lists for each file.

    without: checks that have no test, as the site names nothing that they would run.
    """
    found: dict[Path, set[str]] = {}
    for metric in catalogue.values():
        if metric.is_of_site:  # a centre's own tests end nothing
            continue
        if metric.check and metric.file and metric.check not in SWEEPS_ONLY:
            of_file = found.setdefault(clone / metric.file, set())
            of_file |= {metric.check}.difference(without)
    return found


def report_missing_checks(site: Site, paths: Iterable[str | Path]) -> None:
    """Report which checks a run over these paths lacks: ReFrame skips a missing file silently.

    A file that can be read is loaded, and refused if it lacks its check.
    """
    searched = [Path(path).resolve() for path in paths]
    for one in catalogue.missing(site.catalogue, SWEEPS_ONLY, installed.SUITE).values():
        file = (installed.SUITE / one.file).absolute()
        if one.is_readable or not any(file.is_relative_to(path) for path in searched):
            continue
        if file.is_file():  # no permission: ReFrame would end with its own error
            refuse(UserError(one.file, one.what))
        else:
            report(catalogue.before_run(one, site))


def refuse_broken_file(
    promised: Mapping[Path, set[str]], filename: str, error: BaseException
) -> None:
    """End the run if a file of Siteproof's checks cannot be loaded; report one of other tests."""
    if isinstance(error, End):
        raise error
    line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
    what = f"cannot be loaded: {error}"
    if _is_ours(promised, filename):
        refuse(UserError(f"{filename}{line}", what))
    if not isinstance(error, (SyntaxError, UnicodeDecodeError)):
        what = f"cannot be loaded: {format_exception_only(error)[-1].strip()}"
    report(UserError(f"{filename}{line}", what, hint="Its tests are not run"))


def _is_ours(promised: Mapping[Path, set[str]], filename: str) -> bool:
    """Whether a file is of Siteproof's checks or sweeps, which must be whole."""
    path = Path(filename).resolve()
    return path in promised or path == FOLDER / "sweeps.py"


def refuse_lost_checks(
    promised: Mapping[Path, set[str]],
    filename: str,
    checks: Sequence[object],
    skipped: BaseException | None,
) -> None:
    """End the run if a file lacks a check that the catalogue or a sweep file lists.

    skipped: the error for which ReFrame skips the whole file.
    """
    missing = promised.get(Path(filename).resolve(), set())
    if Path(filename).resolve() == FOLDER / "sweeps.py":
        missing = {file.test for file in reading.load().values()}
    missing = missing - {type(check).__name__ for check in checks}
    if not missing:
        if skipped and not _is_ours(promised, filename):
            refuse_broken_file(promised, filename, skipped)
        return
    what = (
        f"has no check {' and no '.join(sorted(missing))}, which "
        "checks/*/catalogue.yaml or a sweep file lists"
    )
    hint = "Add the class with @rfm.simple_test, or correct what ReFrame's warning above names"
    if isinstance(skipped, ModuleNotFoundError):
        hint = (
            f"Install the Python module {skipped.name} into {sys.prefix} ('make venv' in a "
            "clone installs what Siteproof needs), or remove the import"
        )
    elif skipped:
        hint = "Correct the file"
    if skipped:
        what += f": {format_exception_only(skipped)[-1].strip()}"
    refuse(UserError(filename, what, hint=hint))


def refuse_empty_run(testcases: Sequence[object]) -> None:
    """End the run where the options leave no check to run."""
    if not testcases:
        remedy = "'reframe -c checks/ -l' lists checks, 'reframe -c sweeps/ -l' sweeps; "
        remedy += "use --restore-session without -c"
        refuse(UserError("nothing to run", "the options select no check", hint=remedy))


def make(module: str) -> list[type]:
    """A test for each sweep file, as a class of that module; a mistake in one ends the run."""
    try:
        found = reading.load()
    except (UserError, UserErrors) as error:
        refuse(error)
    return [_test(sweep, module) for sweep in found.values()]


def _test(sweep: SweepFile, module: str) -> type:
    tool = TOOLS[sweep.sweep.tool]
    try:
        base = getattr(import_module(tool.module), tool.check)
    except (ImportError, AttributeError) as error:
        refuse(UserError(yamlfile.shown(sweep.path), f"tool {sweep.sweep.tool}: {error}"))
    body = {
        "descr": sweep.sweep.description,
        "sweep_file": sweep,
        "measures": tool.check,
        "headline": (),
        "walk": parameter(classes(sweep.points)),
        "tags": {"sweep"},
    }
    # Every axis of every tool, so that a cap that is no axis of this sweep can be refused.
    known = set(base.var_space)
    only_caps = [name for name in caps.NAMES if name not in known]
    body |= {name: variable(str, value="") for name in only_caps}
    body["only_caps"] = only_caps
    home = str(Path(inspect.getfile(import_module(tool.module))).parent)
    test: type = make_test(sweep.test, (base,), body, module=module, custom_prefix=home)
    return test
