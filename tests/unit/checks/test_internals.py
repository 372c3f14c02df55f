"""No other file than the adapter touches ReFrame's internals."""

import ast

from clone import TOP

from siteproof import checks


def files():
    """Every file of ours that may meet ReFrame's objects, but for the adapter."""
    for folder in ("siteproof", "checks", "sweeps"):
        for path in (TOP / folder).rglob("*.py"):
            text = path.read_text()
            checks = "checks" in path.relative_to(TOP).parts
            if path.name != "adapter.py" and (checks or "import reframe" in text):
                yield path, ast.parse(text)


def from_reframe(tree):
    """The names of ReFrame's that a file imports, each with the name that it has there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            for name in node.names:
                if (module or name.name).split(".")[0] == "reframe":
                    yield name.name, (name.asname or name.name).split(".")[0]


def own(tree):
    """What a file itself defines: functions, classes, names, and attributes of self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and (ast.unparse(node.value) == "self")
        ):
            yield node.attr


def strange(tree):
    """Names of ReFrame's internals that a file uses, and what it assigns to ReFrame's."""
    yield from (name for name, _ in from_reframe(tree) if name.startswith("_"))
    theirs, mine = {name for _, name in from_reframe(tree)}, set(own(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        if node.attr.startswith("_") and not node.attr.endswith("__") and node.attr not in mine:
            yield node.attr
        root = ast.unparse(node).split(".")[0]
        if isinstance(node.ctx, ast.Store) and root in theirs:
            yield f"{ast.unparse(node)} ="


def test_the_rule_notices():
    for text, found in (
        ("from reframe.core.schedulers.slurm import _SlurmJob", "_SlurmJob"),
        ("import reframe.frontend.executors as e\ne.Runner.runall = 1", "e.Runner.runall ="),
        ("class A:\n def f(self):\n  self.job._state = 1", "_state"),
        ("class A:\n def f(self):\n  self._setup_run_job()", "_setup_run_job"),
    ):
        assert list(strange(ast.parse(text))) == [found]


def test_no_other_file_touches_reframes_internals():
    found = {f"{path.relative_to(TOP)}: {name}" for path, tree in files() for name in strange(tree)}
    assert found == set()


def test_every_base_class_of_a_check_is_where_the_room_says():
    room = TOP / "siteproof/checks"
    for name, home in checks._HOMES.items():
        assert f"\nclass {name}(" in (room / f"{home}.py").read_text(), name
