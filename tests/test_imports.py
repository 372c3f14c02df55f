"""The direction of imports: one way only, each rule with its reason. Types alone are no import."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "siteproof"
ONLY = {  # part: what it may import of ours
    "errors": ((), "everything else raises them"),
    "units": (("errors",), "all figures pass through them"),
    "rounding": (("errors", "units"), "contracts are judged by it alone"),
    "parsers": (("errors", "units", "parsers"), "text in, readings out"),
    "samples": (("errors", "units"), "the datum knows neither who measures nor who judges"),
    "analysis": (
        ("analysis", "errors", "rounding", "samples", "sweeps.point", "units"),
        "pure functions: no file, site or job",
    ),
    "figure": (("figure", "units"), "plain data in, a picture out"),
}
HOME = {  # a library, and the parts that may know it
    "reframe": ("checks",),
    "click": ("cli",),
    "rich": ("cli",),
    "matplotlib": ("figure",),
    "duckdb": ("history",),
    "ruptures": ("analysis",),
    "jinja2": ("report",),
    "pydantic": ("manifest", "sites", "spack", "sweeps"),
}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path):
    """What a file imports, by its whole name, but for types."""
    tree = ast.parse(path.read_text())
    types = {
        id(below)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for below in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in types:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("part", ONLY)
def test_it_imports_nothing_of_what_builds_on_it(part):
    allowed, why = ONLY[part]
    files = [path for path in modules() if part_of(path) == part]
    assert files
    strangers = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in files
        for name in imported(path)
        if name.startswith("siteproof.")
        and not name.startswith(tuple(f"siteproof.{known}" for known in allowed))
    ]
    assert strangers == [], why


@pytest.mark.parametrize("library", HOME)
def test_a_library_is_known_in_its_own_place_only(library):
    users = {
        part_of(path)
        for path in modules()
        if any(name.split(".")[0] == library for name in imported(path))
    }
    assert users
    assert users <= set(HOME[library])


def test_nothing_but_the_commands_imports_the_commands():
    users = {
        str(path.relative_to(PACKAGE))
        for path in modules()
        if any(name.startswith("siteproof.cli") for name in imported(path))
    }
    assert {name for name in users if not name.startswith("cli/")} == set()
