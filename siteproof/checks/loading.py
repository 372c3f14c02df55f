"""What ReFrame only warns of while it loads and selects checks is a refusal here, in one line.

ReFrame skips a check file with an error in it, and ends with exit code 0: a check that is gone
would look like a check that passed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from reframe.frontend.executors import Runner
from reframe.frontend.loader import RegressionCheckLoader

from siteproof.errors import ExitCode, UserError, UserErrors
from siteproof.sites import Metric
from siteproof.sites.shape import hint
from siteproof.sweeps import files
from siteproof.sweeps.files import FOLDER
from siteproof.sweeps.tools import TOOLS


def refuse(error: UserError | UserErrors) -> NoReturn:
    """End the whole run; ReFrame catches other exceptions and goes on without the check."""
    for line in str(error).splitlines():
        print(f"siteproof: {line}", file=sys.stderr)
    raise SystemExit(ExitCode.USAGE)


def refuse_number(check: object, name: str, least: int, most: int = 10**9) -> None:
    """End the run where a variable of a check is set to a number that it cannot be."""
    value = getattr(check, name)
    if not least <= value <= most:
        where = f"-S {type(check).__name__}.{name}"
        refuse(UserError(where, f"{value} cannot be", f"{least} to {most}"))


def refuse_word(check: object, name: str, allowed: Sequence[str]) -> None:
    """End the run where a variable of a check is set to a word that it cannot be."""
    word = getattr(check, name)
    if word not in allowed:
        where = f"-S {type(check).__name__}.{name}"
        refuse(UserError(where, f"unknown '{word}'{hint(word, allowed)}", allowed))


def refuse_lost_checks(catalogue: Mapping[str, Metric], clone: Path) -> None:
    """From now on, a file without the checks that the catalogue lists for it ends the run."""
    promised: dict[Path, set[str]] = {}
    sweeps_only = {tool.check for tool in TOOLS.values() if not tool.plain}
    for metric in catalogue.values():
        if metric.check and metric.file and metric.check not in sweeps_only:
            promised.setdefault(clone / metric.file, set()).add(metric.check)
    original = RegressionCheckLoader.load_from_file

    def load_from_file(self: Any, filename: str, force: bool = False) -> list[Any]:
        try:
            checks: list[Any] = original(self, filename, force)
        except (SyntaxError, UnicodeDecodeError, ValueError, TypeError) as error:
            line = f":{error.lineno}" if getattr(error, "lineno", None) else ""
            refuse(UserError(f"{filename}{line}", f"cannot be loaded: {error}"))
        missing = promised.get(Path(filename).resolve(), set())
        if Path(filename).resolve() == FOLDER / "sweeps.py":
            missing = {file.test for file in files.load().values()}
        missing = missing - {type(check).__name__ for check in checks}
        if missing:
            refuse(
                UserError(
                    filename,
                    f"yields no {' and no '.join(sorted(missing))}, which "
                    "checks/*/catalogue.yaml or a sweep file promises; ReFrame's warning above says "
                    "why",
                )
            )
        return checks

    RegressionCheckLoader.load_from_file = load_from_file


def refuse_unknown_variables(catalogue: Mapping[str, Metric]) -> None:
    """From now on, `-S Chekc.variable=…` ends the run: ReFrame would go on without a word.

    Of a wrong variable of a right check it warns itself.
    """
    promised = {metric.check for metric in catalogue.values() if metric.check}
    original = RegressionCheckLoader.load_all

    def load_all(self: Any, force: bool = False) -> list[Any]:
        checks: list[Any] = original(self, force)
        names = promised | {type(check).__name__ for check in checks}
        for option in self._external_vars:
            scope, dot, _ = option.partition(".")
            if dot and scope not in names:
                what = f"no check '{scope}'{hint(scope, names)}"
                refuse(UserError(f"-S {option}", what, sorted(names)))
        return checks

    RegressionCheckLoader.load_all = load_all


def refuse_empty_runs() -> None:
    """From now on, options that leave no check to run end the run; ReFrame calls that PASSED."""
    original = Runner.runall

    def runall(self: Any, testcases: Sequence[Any], *rest: Any) -> Any:
        if not testcases:
            refuse(
                UserError(
                    "nothing to run",
                    "the options leave no check",
                    "those that "
                    "'reframe -c checks/ -l' lists, or '-c sweeps/ -l'; --restore-session "
                    "goes without -c",
                )
            )
        return original(self, testcases, *rest)

    Runner.runall = runall
