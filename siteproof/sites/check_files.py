"""The Python files of checks: whether they hold those of the catalogue, and the features they name.

They are read as text: no check is imported, nor ReFrame, which takes a second.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siteproof import files
from siteproof.errors import UserError
from siteproof.installed import SUITE
from siteproof.sites import catalogue
from siteproof.sites.catalogue import Metric
from siteproof.sites.schema.yamlfile import Document, shown

if TYPE_CHECKING:
    from siteproof.sites.site import Site

MAX_BYTES = 1_000_000
MAX_NAMES = 6  # in one message


class Loss(Enum):
    """Why a file does not hold a check, as a sentence to which the file is the subject."""

    MISSING = "does not exist"
    UNREADABLE = "{}"  # read_named has said what it is: a folder, too large, not for this user
    NOT_PYTHON = "is not valid Python{}"
    NO_CLASS = "has no class {}"
    NO_TEST = "has {} without @rfm.simple_test"


@dataclass(frozen=True)
class Lost:
    """A check that is not in its file. file: below the clone. elsewhere: the file that has it."""

    check: str
    file: str
    loss: Loss
    detail: str = ""
    elsewhere: str = ""

    @property
    def what(self) -> str:
        """The reason, to be printed after the file's name."""
        return self.loss.value.format(self.detail)

    @property
    def is_readable(self) -> bool:
        """Whether there is a file, which ReFrame will load."""
        return self.loss not in (Loss.MISSING, Loss.UNREADABLE)

    def __str__(self) -> str:
        return f"{self.file} {self.what}"


def lost(table: Mapping[str, Metric], bare: Collection[str], root: Path = SUITE) -> dict[str, Lost]:
    """The checks whose files do not hold them, by name.

    bare: checks that are no tests by themselves, but classes of which sweeps make tests.
    """
    found = {}
    for check, file in {m.check: m.file for m in table.values() if m.check and m.file}.items():
        if not file.startswith("checks/"):  # sweeps.py makes its classes while it is loaded
            continue
        if loss := _loss(root / file, check, bare):
            found[check] = Lost(check, file, *loss, _elsewhere(root, check, bare))
    return found


def missing(
    table: Mapping[str, Metric], bare: Collection[str], root: Path = SUITE
) -> dict[str, Lost]:
    """Those of them that no other file holds, so that nothing measures their metrics."""
    return {name: one for name, one in lost(table, bare, root).items() if not one.elsewhere}


def lint(
    chosen: Iterable[Site],
    sweeps: Mapping[str, Collection[str]],
    bare: Collection[str],
    root: Path = SUITE,
) -> list[UserError]:
    """A mistake for each lost check: what it measures, and which sites and sweeps need it.

    sweeps: the sweeps of each check.
    """
    table, documents, _ = catalogue.read()
    sites, mistakes = list(chosen), []
    for check, one in lost(table, bare, root).items():
        metrics = [name for name, metric in table.items() if metric.check == check]
        what = f"{one}, so nothing measures {_shortened(metrics)}"
        hint = f"Restore the file, or name the one that has the test class {check}"
        if one.elsewhere:
            what, hint = str(one), f"Name {one.elsewhere}, which has {check}"
        if needed := _needed(sites, check, sweeps.get(check, ())):
            what += f"; needed by {', '.join(needed)}"
        where = _where(documents, metrics[0])
        mistakes.append(UserError(where, f"{what} in {metrics[0]}.file", hint=hint))
    return mistakes


def before_run(one: Lost, site: Site) -> str:
    """The line that a run prints that lacks a check."""
    ids = [key for key, promise in site.criteria.items() if _check(promise.metric) == one.check]
    if not ids:
        return f"warning: {one}: {one.check} is not run; no criterion of {site.name} needs it"
    return f"{one}: {one.check} is not run, so nothing new answers {_shortened(ids)} of {site.name}"


def _needed(sites: Iterable[Site], check: str, sweeps: Collection[str]) -> list[str]:
    found = []
    for site in sites:
        promises = [*site.criteria.items(), *site.baselines.items()]
        if ids := [key for key, promise in promises if _check(promise.metric) == check]:
            found.append(f"{_shortened(ids)} of {site.name}")
    return [*found, f"the sweeps {_shortened(sweeps)}"] if sweeps else found


def _check(metric: str) -> str:
    return metric.partition(".")[0]


def _shortened(names: Collection[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MAX_NAMES} more" if len(listed) > MAX_NAMES else ""
    return ", ".join(listed[:MAX_NAMES]) + more


def _where(documents: Iterable[Document], metric: str) -> str:
    document = next(d for d in documents if metric in (d.data or {}))
    return f"{shown(document.path)}:{document.line((metric, 'file'))}"


def _elsewhere(root: Path, check: str, bare: Collection[str]) -> str:
    for path in sorted((root / "checks").rglob("*.py")):
        if _loss(path, check, bare) is None:
            return str(path.relative_to(root))
    return ""


@cache
def declared(path: Path, check: str) -> Mapping[str, Any]:
    """What the body of a check's class states by itself: its features, patterns and the like.

    Empty where the file does not hold it, which `lint` reports.
    """
    if _loss(path, check, [check]) is not None:
        return {}
    body = ast.parse(files.read_named(path, MAX_BYTES)).body
    stated = next(s for s in reversed(body) if isinstance(s, ast.ClassDef) and s.name == check).body
    found = {}
    for line in stated:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            with suppress(ValueError):  # not a literal
                found[line.targets[0].id] = ast.literal_eval(line.value)
    return found


def _loss(path: Path, check: str, bare: Collection[str]) -> tuple[Loss, str] | None:
    """Why a file does not hold a check, with a detail; None if it does."""
    try:
        body = ast.parse(files.read_named(path, MAX_BYTES)).body
    except FileNotFoundError:
        return Loss.MISSING, ""
    except UserError as error:
        return Loss.UNREADABLE, error.what
    except SyntaxError as error:
        return Loss.NOT_PYTHON, f" (line {error.lineno or 1}: {error.msg})"
    except (ValueError, RecursionError, MemoryError):  # a NUL byte, or endless brackets
        return Loss.NOT_PYTHON, ""
    classes = [s for s in body if isinstance(s, ast.ClassDef) and s.name == check]
    if not classes:
        return Loss.NO_CLASS, check
    if check not in bare and not classes[-1].decorator_list:
        return Loss.NO_TEST, check
    return None


MAX_FILES = 2_000  # Python files of a centre's own checks


def features_of(folder: Path) -> set[str]:
    """The features that the Python files of a folder name, in valid_prog_environs or `features`.

    The files are read as text. A file that is not valid Python names none: a run reports it.
    """
    found: set[str] = set()
    for path in sorted(folder.rglob("*.py"))[:MAX_FILES]:
        try:
            tree = ast.parse(files.read_named(path, MAX_BYTES))
        except (OSError, UserError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        found.update(_named(tree))
    return found


def _named(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_features(node):
            yield from _texts(node.value)
        elif isinstance(node, ast.Compare):  # 'mkl' in self.current_environ.features
            if any(ast.unparse(side).endswith("features") for side in node.comparators):
                yield from _texts(node.left)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (part[1:] for part in node.value.split() if part.startswith("+"))


def _is_features(node: ast.Assign | ast.AnnAssign) -> bool:
    """Whether it is `features = …` of a class, or `self.features = …`."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [ast.unparse(target).rpartition(".")[2] for target in targets]
    return "features" in names


def _texts(node: ast.AST | None) -> Iterator[str]:
    for below in ast.walk(node) if node else ():
        if isinstance(below, ast.Constant) and isinstance(below.value, str):
            yield below.value
