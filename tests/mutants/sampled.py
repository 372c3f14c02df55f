"""Which mutants there are: small mistakes, one at a time, that somebody could make in siteproof/.

A mutant is a text that replaces another on one line of one function. It is kept as that: file,
function, the line before and after, and which of several equal lines, so that it is still found
when other lines come and go.
"""

from __future__ import annotations

import ast
import csv
import random
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("list.tsv")
# Rooms that decide get three times as many mutants a line as others.
DECIDE = ("answers", "judge", "verdict", "gate", "nodes", "rounding", "units", "collect")

_SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_Edit = tuple[int, int, int, str]  # line, first column, column after the last, new text


@dataclass(frozen=True)
class Mutant:
    """One mistake. nth: of the equal lines in the function, from 0; column: where it begins."""

    file: str
    function: str
    before: str
    after: str
    nth: int = 0

    @property
    def room(self) -> str:
        """The room of the package, or the module at its root."""
        return room_of(self.file)


def room_of(file: str) -> str:
    """The room of a file of the package, or the module at its root."""
    return file.split("/")[1].removesuffix(".py")


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a module, in order."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    file = str(path.relative_to(TOP))
    found = []
    for name, function in functions(ast.parse(text)):
        seen = set()
        for line, start, end, new in _edits(function, lines):
            before = lines[line - 1]
            after = before[:start] + new + before[end:]
            nth = [n for n in range(function.lineno, line) if lines[n - 1] == before]
            mutant = Mutant(file, name, before.strip(), after.strip(), len(nth))
            if mutant not in seen:
                seen.add(mutant)
                found.append(mutant)
    return found


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods, with their names; those within functions belong to these."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    yield f"{node.name}.{part.name}", part


def function_at(tree: ast.Module, name: str, line: int) -> ast.FunctionDef:
    """The function of that name at a line."""
    return next(
        node
        for known, node in functions(tree)
        if known == name and node.lineno <= line <= (node.end_lineno or 0)
    )


def _edits(function: ast.FunctionDef, lines: list[str]) -> Iterator[_Edit]:
    """Each mistake in a function."""
    told = _words_only(function)
    for statement in function.body:
        for node in ast.walk(statement):
            if node in told:
                continue
            yield from _of(node, lines)


def _words_only(function: ast.FunctionDef) -> set[ast.AST]:
    """What a mutant would not change: docstrings, annotations, what is raised, formatted text."""
    left = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Raise | ast.JoinedStr):
            left |= {*ast.walk(node)}
        elif isinstance(node, ast.AnnAssign):
            left |= {*ast.walk(node.annotation)}
    return left


def _of(node: ast.AST, lines: list[str]) -> Iterator[_Edit]:
    if isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp):
        yield from _operators(node, lines)
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and _on_one_line(node.test):
        text = lines[node.test.lineno - 1][node.test.col_offset : node.test.end_col_offset]
        yield _instead(node.test, f"(not ({text}))")
    elif isinstance(node, ast.expr):
        yield from _word(node)
    elif isinstance(node, ast.stmt) and _on_one_line(node):
        yield from _line(node)


def _operators(node: ast.Compare | ast.BoolOp | ast.BinOp, lines: list[str]) -> Iterator[_Edit]:
    if isinstance(node, ast.Compare):
        for left, op, right in zip(
            [node.left, *node.comparators], node.ops, node.comparators, strict=False
        ):
            yield from _between(left, op, right, lines)
    elif isinstance(node, ast.BoolOp):
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from _between(left, node.op, right, lines)
    else:
        yield from _between(node.left, node.op, node.right, lines)


def _word(node: ast.expr) -> Iterator[_Edit]:
    """Another constant, another function, no 'not'."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _instead(node, str(not node.value))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield _instead(node, str(node.value + 1))
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield _instead(node, _NAMES[node.id])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.lineno, node.col_offset, node.col_offset + len("not "), ""


def _line(node: ast.stmt) -> Iterator[_Edit]:
    """A statement that does something else, or nothing."""
    if isinstance(node, ast.Continue):
        yield _instead(node, "break")
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield _instead(node, "return None")
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield _instead(node, "pass")


def _instead(node: ast.expr | ast.stmt, text: str) -> _Edit:
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_col_offset, text


def _between(left: ast.expr, op: ast.AST, right: ast.expr, lines: list[str]) -> Iterator[_Edit]:
    """The operator between two expressions, where they meet on one line."""
    if type(op) not in _SWAPS or left.end_lineno != right.lineno:
        return
    old, new = _SWAPS[type(op)]
    line = left.end_lineno
    text = lines[line - 1]
    at = text.find(old, left.end_col_offset, right.col_offset)
    if text.isascii() and at >= 0:
        yield line, at, at + len(old), new


def _on_one_line(node: ast.expr | ast.stmt) -> bool:
    return node.lineno == node.end_lineno


# ---- a sample, and the list


def sample(number: int, seed: int, places: tuple[str, ...] = ("",)) -> list[Mutant]:
    """Mutants over all rooms: as many as each room has, three times as many where it decides.

    places: how the names of the files begin from which they are drawn.
    """
    chosen = random.Random(seed)
    weighted = []
    for path in sorted((TOP / "siteproof").rglob("*.py")):
        for mutant in mutants_of(path) if str(path.relative_to(TOP)).startswith(places) else ():
            weight = 3 if mutant.room in DECIDE else 1
            weighted.append((chosen.random() ** (1 / weight), mutant))
    weighted.sort(key=lambda pair: -pair[0])
    return sorted((m for _, m in weighted[:number]), key=astuple)


def mutated(mutant: Mutant) -> str | None:
    """The module's text with the mistake; None where the line is not there any more."""
    path = TOP / mutant.file
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for name, function in functions(ast.parse(text)):
        if name != mutant.function:
            continue
        numbers = range(function.lineno, (function.end_lineno or 0) + 1)
        equal = [n for n in numbers if lines[n - 1].strip() == mutant.before]
        if len(equal) > mutant.nth:
            n = equal[mutant.nth]
            lines[n - 1] = lines[n - 1].replace(mutant.before, mutant.after)
            return "\n".join(lines) + "\n"
    return None


def line_of(mutant: Mutant) -> int:
    """Where the mistake is, now; 0 where the line is not there any more."""
    text = (TOP / mutant.file).read_text(encoding="utf-8")
    made = mutated(mutant)
    if made is None:
        return 0
    pairs = zip(text.splitlines(), made.splitlines(), strict=True)
    return next((n for n, (old, new) in enumerate(pairs, 1) if old != new), 0)


def read() -> dict[Mutant, tuple[str, str]]:
    """The list that is kept: outcome and reason of each mutant."""
    with LIST.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows)
        return {
            Mutant(file, function, before, after, int(nth)): (outcome, reason)
            for outcome, file, function, nth, before, after, reason in rows
        }


def write(outcomes: dict[Mutant, tuple[str, str]]) -> None:
    """Keep a list."""
    with LIST.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerow(["outcome", "file", "function", "nth", "before", "after", "reason"])
        for mutant, (outcome, reason) in sorted(
            outcomes.items(), key=lambda item: astuple(item[0])
        ):
            file_, function, before, after, nth = astuple(mutant)
            rows.writerow([outcome, file_, function, nth, before, after, reason])
