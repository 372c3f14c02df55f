"""What an installed copy holds: every file of the package, and what it imports."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import sources
from clone import TOP
from setuptools import Distribution

PACKAGE = TOP / "siteproof"
NAMES = {  # of what a library is a part, or with what it comes
    "ClusterShell": "clustershell",
    "reframe": "reframe-hpc",
    "openstack": "openstacksdk",
    "yaml": "pyyaml",
    "PIL": "matplotlib",
    "scipy": "ruptures",
    "globus_sdk": "globus-sdk",
    "websocket": "websocket-client",
}


@pytest.fixture
def package(monkeypatch):
    """The package as setuptools reads it; nothing is built or written."""
    monkeypatch.chdir(TOP)
    found = Distribution({"script_name": "setup.py"})
    found.parse_config_files(["pyproject.toml"])
    found.include_package_data = False  # or a manifest is written into the clone
    return found


def test_every_file_of_the_package_is_installed(package):
    build = package.get_command_obj("build_py")
    build.ensure_finalized()
    held = {Path(folder, name) for _, folder, _, names in build.data_files for name in names}
    held |= {Path(file) for _, _, file in build.find_all_modules()}
    there = {
        path.relative_to(TOP)
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {path.suffix for path in there} >= {".css", ".j2", ".py", ".sh"}
    assert held == there


@pytest.mark.deep
def test_every_library_that_is_imported_is_a_requirement():
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    required = {name.lower() for name in project["dependencies"]}
    used = {
        name.partition(".")[0]
        for path in sources.of("siteproof")
        for node in sources.nodes(path)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom) and node.module
            else []
        )
    }
    used -= {"siteproof", *sys.stdlib_module_names}
    assert {NAMES.get(name, name) for name in used} <= required


@pytest.mark.deep
def test_a_command_that_needs_no_arrays_does_not_wait_for_numpy():
    look = "import sys, siteproof.cli.verdict, siteproof.cli.why; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
