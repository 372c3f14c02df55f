"""The sources of this clone: each is read and parsed once for all tests that look at them."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

from clone import TOP


@cache
def of(*folders: str) -> tuple[Path, ...]:
    """The Python files of these folders."""
    return tuple(sorted(path for name in folders for path in (TOP / name).rglob("*.py")))


@cache
def text(path: Path) -> str:
    """What a file holds."""
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    """A file as its syntax tree."""
    is_on = gc.isenabled()
    gc.disable()  # nothing of a tree is garbage, and to look for it takes three times as long
    try:
        return ast.parse(text(path))
    finally:
        if is_on:
            gc.enable()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's tree, the module first."""
    return tuple(ast.walk(tree(path)))
