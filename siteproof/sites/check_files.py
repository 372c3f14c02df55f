"""The files of the checks that the catalogue names: whether they still hold them.

They are read as text: no check is imported, nor ReFrame, which takes a second.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError
from siteproof.schema.yamlfile import Document, shown
from siteproof.sites import catalogue
from siteproof.sites.catalogue import ROOT, Metric
from siteproof.sites.site import Site

MAX_BYTES = 1_000_000
MOST = 6  # names that a line tells
OWN = ("checks", "siteproof")  # packages of the clone


@dataclass(frozen=True)
class Lost:
    """A check that is not in its file. file: below the clone. what: is told behind its name.

    read: there is a file, which ReFrame will load. elsewhere: the file that holds the check now.
    """

    check: str
    file: str
    what: str
    read: bool
    elsewhere: str = ""

    def __str__(self) -> str:
        return f"{self.file} {self.what}"


def lost(table: Mapping[str, Metric], bare: Collection[str], root: Path = ROOT) -> dict[str, Lost]:
    """The checks whose files do not hold them, by name.

    bare: checks that are no tests by themselves, but classes of which sweeps make tests.
    """
    named = {m.check: m.file for m in table.values() if m.check and m.file}
    found = {}
    for check, file in named.items():
        if not file.startswith("checks/"):  # sweeps.py makes its classes while it is loaded
            continue
        what, read = _wrong(root / file, check, bare, root)
        if what:
            elsewhere = _elsewhere(root, check, bare)
            found[check] = Lost(check, file, what, read, elsewhere)
    return found


def gone(table: Mapping[str, Metric], bare: Collection[str], root: Path = ROOT) -> dict[str, Lost]:
    """Those of them that no other file holds, so that nothing measures their metrics."""
    return {name: one for name, one in lost(table, bare, root).items() if not one.elsewhere}


def lint(
    chosen: Iterable[Site],
    sweeps: Mapping[str, Collection[str]],
    bare: Collection[str],
    root: Path = ROOT,
) -> list[UserError]:
    """A mistake for each lost check: what it measures, and who needs it.

    sweeps: the sweeps of each check.
    """
    table, documents = catalogue.read()
    sites, mistakes = list(chosen), []
    for check, one in lost(table, bare, root).items():
        metrics = [name for name, metric in table.items() if metric.check == check]
        what = f"{one}, so nothing measures {_some(metrics)}"
        if one.elsewhere:
            what = f"{one}; {check} stands in {one.elsewhere}"
        needed = [text for site in sites if (text := _needed(site, check))]
        if of_sweeps := sweeps.get(check):
            needed.append(f"by the sweeps {_some(of_sweeps)}")
        if needed:
            what += f"; needed {', '.join(needed)}"
        where = _where(documents, metrics[0])
        right = one.elsewhere or f"a file with the test class {check}"
        mistakes.append(UserError(where, f"{what} in {metrics[0]}.file", right))
    return mistakes


def told_before_run(one: Lost, site: Site) -> str:
    """What a run is told that lacks a check."""
    ids = criteria_of(site, one.check)
    if not ids:
        return f"warning: {one}: {one.check} is not run; no criterion of {site.name} needs it"
    return f"{one}: {one.check} is not run, so nothing new answers {_some(ids)} of {site.name}"


def criteria_of(site: Site, check: str) -> list[str]:
    """The criteria that a check answers."""
    return [key for key, promise in site.criteria.items() if _check(promise.metric) == check]


def _needed(site: Site, check: str) -> str:
    ids = criteria_of(site, check)
    ids += [key for key, usual in site.baselines.items() if _check(usual.metric) == check]
    return f"by {_some(ids)} of {site.name}" if ids else ""


def _check(metric: str) -> str:
    return metric.partition(".")[0]


def _some(names: Collection[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MOST} more" if len(listed) > MOST else ""
    return ", ".join(listed[:MOST]) + more


def _where(documents: Iterable[Document], metric: str) -> str:
    document = next(d for d in documents if metric in (d.data or {}))
    return f"{shown(document.path)}:{document.line((metric, 'file'))}"


def _elsewhere(root: Path, check: str, bare: Collection[str]) -> str:
    for path in sorted((root / "checks").rglob("*.py")):
        if not _wrong(path, check, bare, root)[0]:
            return str(path.relative_to(root))
    return ""


def _wrong(path: Path, check: str, bare: Collection[str], root: Path) -> tuple[str, bool]:
    """Why a file does not hold a check, empty if it does; and whether it could be read."""
    try:
        text = files.read_named(path, MAX_BYTES)
    except FileNotFoundError:
        return ("is a link to nowhere" if path.is_symlink() else "is gone"), False
    except UserError as error:
        return error.what, False
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        return f"is no Python (line {error.lineno or 1}: {error.msg})", True
    except (ValueError, RecursionError, MemoryError):
        return "is no Python", True
    classes = [s for s in body if isinstance(s, ast.ClassDef) and s.name == check]
    if not classes:
        return f"has no class {check}", True
    if check not in bare and not classes[-1].decorator_list:
        return f"has {check} without @rfm.simple_test", True
    missing = [name for name in _imported(body) if not _is_there(name, root)]
    return (f"imports {missing[0]}, which is not there" if missing else ""), True


def _imported(body: Iterable[ast.stmt]) -> Iterable[str]:
    """The modules that a file needs while it is loaded."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module


def _is_there(module: str, root: Path) -> bool:
    """Whether there is such a module; none is imported for it."""
    first = module.partition(".")[0]
    if first not in OWN:
        return find_spec(first) is not None
    path = root.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()
