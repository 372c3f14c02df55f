"""The features that a site's own checks ask for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from siteproof import files
from siteproof.errors import UserError

MAX_BYTES = 1_000_000
MAX_FILES = 2_000  # Python files of a centre's own checks


def of_checks(folder: Path) -> set[str]:
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
        elif isinstance(node, ast.Compare) and _is_about_features(node):
            yield from _texts(node.left)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (part[1:] for part in node.value.split() if part.startswith("+"))


def _is_features(node: ast.Assign | ast.AnnAssign) -> bool:
    """Whether it is `features = …` of a class, or `self.features = …`."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [ast.unparse(target).rpartition(".")[2] for target in targets]
    return "features" in names


def _is_about_features(node: ast.Compare) -> bool:
    """Whether it is `'mkl' in self.current_environ.features`."""
    return any(ast.unparse(side).endswith("features") for side in node.comparators)


def _texts(node: ast.AST | None) -> Iterator[str]:
    for below in ast.walk(node) if node else ():
        if isinstance(below, ast.Constant) and isinstance(below.value, str):
            yield below.value
