"""What a release says of itself is the same everywhere; the CI files are valid."""

import json
import subprocess
import sys

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
