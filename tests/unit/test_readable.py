"""How much a reader must keep in mind: one step a line, and short ways through a function."""

import ast

import complexipy
import pytest
import sources
from clone import TOP

MAX_COGNITIVE = 15  # Campbell, Cognitive Complexity (2018), and its usual limit
MAX_BRANCHES = 0.35  # branches a line of code in a room; ClusterShell has .25
PACKAGES = ("siteproof", "checks", "testbed")
BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp)


@pytest.mark.deep
def test_no_function_is_hard_to_follow():
    hard = {
        f"{path.relative_to(TOP)}: {function.name}": function.complexity
        for path in sources.of(*PACKAGES)
        for function in complexipy.file_complexity(str(path)).functions
        if function.complexity > MAX_COGNITIVE
    }
    assert not hard


def branches(nodes):
    found = 0
    for node in nodes:
        if isinstance(node, BRANCHES):
            found += 1
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
    return found


def code_lines(text, nodes):
    """Lines that are neither empty, nor a comment, nor a docstring."""
    prose = set()
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            prose |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in prose
        for number, line in enumerate(text.splitlines(), 1)
    )


@pytest.mark.deep
def test_the_package_has_few_branches_a_line():
    paths = sources.of("siteproof")
    lines = sum(code_lines(sources.text(path), sources.nodes(path)) for path in paths)
    assert sum(branches(sources.nodes(path)) for path in paths) < MAX_BRANCHES * lines


def test_branches_are_counted():
    def nodes(text):
        return list(ast.walk(ast.parse(text)))

    assert branches(nodes("if a and b:\n    c = [d for d in e if d]\n")) == 4
    assert code_lines('"""Prose."""\n# no\n\na = 1\n', nodes('"""Prose."""\na = 1\n')) == 1
