"""How much a reader must keep in mind: one step a line, and short ways through a function."""

import ast

import complexipy
import pytest
from clone import TOP

MAX_COGNITIVE = 15  # Campbell, Cognitive Complexity (2018), and its usual limit
MAX_BRANCHES = 0.35  # branches a line of code in a room; ClusterShell has .25
PACKAGES = ("siteproof", "checks", "testbed")
BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp)


def files(*folders):
    return sorted(path for name in folders for path in (TOP / name).rglob("*.py"))


@pytest.mark.parametrize("name", PACKAGES)
def test_no_function_is_hard_to_follow(name):
    hard = {
        f"{path.relative_to(TOP)}: {function.name}": function.complexity
        for path in files(name)
        for function in complexipy.file_complexity(str(path)).functions
        if function.complexity > MAX_COGNITIVE
    }
    assert not hard


def branches(tree):
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, BRANCHES):
            found += 1
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
    return found


def code_lines(text, tree):
    """Lines that are neither empty, nor a comment, nor a docstring."""
    prose = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            prose |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in prose
        for number, line in enumerate(text.splitlines(), 1)
    )


def density(paths):
    texts = [path.read_text() for path in paths]
    trees = [ast.parse(text) for text in texts]
    lines = sum(map(code_lines, texts, trees))
    return sum(map(branches, trees)) / max(lines, 1)


def test_the_package_has_few_branches_a_line():
    assert density(files("siteproof")) < MAX_BRANCHES


def test_branches_are_counted():
    tree = ast.parse("if a and b:\n    c = [d for d in e if d]\n")
    assert branches(tree) == 4
    assert code_lines('"""Prose."""\n# no\n\na = 1\n', ast.parse('"""Prose."""\na = 1\n')) == 1
