"""What a release says of itself is the same everywhere; the CI files are valid."""

import ast
import json
import re
import runpy
import subprocess
import sys
import tomllib

import pytest
import yaml
from clone import TOP

import siteproof

GITHUB = [".github/workflows/ci.yml", "docs/ci/github-nightly.yml"]
GITLAB = [".gitlab-ci.yml", "docs/ci/gitlab-nightly.yml"]


def test_the_version_is_the_same_wherever_it_stands():
    versions = {
        yaml.safe_load((TOP / "CITATION.cff").read_text())["version"],
        json.loads((TOP / "codemeta.json").read_text())["version"],
        (TOP / "CHANGELOG.md").read_text().partition("\n## ")[2].partition(",")[0],
    }
    assert versions == {siteproof.__version__}


@pytest.mark.parametrize("kind, names", [("github-workflows", GITHUB), ("gitlab-ci", GITLAB)])
def test_ci_files_are_as_the_schema_of_their_host_wants(kind, names):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{kind}"]
    done = subprocess.run([*command, *names], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


PACKAGING = TOP / "packaging"
RECIPE = PACKAGING / "spack_repo/siteproof_release/packages/siteproof/package.py"
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
NEEDED = {re.split("[<>~=]", word)[0].lower() for word in PROJECT["dependencies"]}


def test_the_recipe_of_spack_has_what_pyproject_requires():
    calls = [node for node in ast.walk(ast.parse(RECIPE.read_text())) if isinstance(node, ast.Call)]
    words = [node.args[0].value for node in calls if getattr(node.func, "id", "") == "depends_on"]
    names = {word.partition("@")[0].removeprefix("py-") for word in words}
    assert {"reframe" if name == "reframe-hpc" else name for name in NEEDED} <= names
    assert {"python@3.11:3.13", "reframe@4.9.3:4.11", "py-ruptures@1.1.10:1.1"} <= set(words)
    assert PROJECT["requires-python"] == ">=3.11,<3.14"
    assert {"ReFrame-HPC>=4.9.3,<4.12", "ruptures~=1.1.10"} <= set(PROJECT["dependencies"])


def test_the_recipe_of_easybuild_has_what_pyproject_requires():
    recipe = runpy.run_path(str(PACKAGING / "Siteproof.eb"))
    entries = [*recipe["dependencies"], *recipe["exts_list"]]
    in_bundles = {"click", "jinja2", "rich", "numpy", "scipy"}
    assert NEEDED - in_bundles <= {entry[0].lower() for entry in entries}
    sums = [entry[2]["checksums"] for entry in recipe["exts_list"]]
    assert sums.pop() == ["@SHA256@"], "setup/release writes it"
    assert all(re.fullmatch("[0-9a-f]{64}", word) for [word] in sums)


def test_the_container_has_what_is_in_the_clone():
    text = (PACKAGING / "Containerfile").read_text()
    copied = {
        word for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE) for word in line.split()
    }
    made = {"wheels", "dist/*.whl"}  # by setup/wheels and setup/release
    assert made < copied
    assert all((TOP / word).is_file() for word in copied - made)


def test_the_script_of_the_image_takes_no_argument():
    done = subprocess.run([PACKAGING / "image", "x"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "siteproof: packaging/image: unknown argument 'x'. It takes none.\n"
